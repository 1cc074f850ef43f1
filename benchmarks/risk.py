"""The surrogate risk and its gradient: against Python loops, scheme against scheme, growth and memory."""

import math
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Row, alternate, extra_bytes, faster, seconds
from benchmarks.metric import softmax_scores
from experiments.acceleration import LOSSES, PRIORS, naive_value_and_gradient
from mauc import SurrogateRisk

LOOPS: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    **LOSSES,
    "q_hinge": (lambda t: max(1 - t, 0.0) ** 2, lambda t: -2 * max(1 - t, 0.0)),
}


def against_loops() -> list[Row]:
    """Time the paper's acceleration setting at its largest N."""
    rng = np.random.default_rng(0)
    n, c = 1024, len(PRIORS)
    y = rng.choice(c, n, p=PRIORS)
    scores = rng.dirichlet(np.ones(c), n)
    rows = []
    for name, (loss, derivative) in LOOPS.items():
        risk = SurrogateRisk(name, alpha=1.0)
        kept: list[tuple[float, np.ndarray]] = []
        ours, theirs = alternate(
            lambda risk=risk: risk.value_and_gradient(y, scores),
            lambda loss=loss, d=derivative, out=kept: out.append(naive_value_and_gradient(y, scores, loss, d)),
            repeat=200,
        )
        value, gradient = risk.value_and_gradient(y, scores)
        error = max(abs(value - kept[0][0]), float(np.abs(gradient - kept[0][1]).max()))
        target = 4_000 if risk.scheme_ == "ranked" else 10_000
        work = f"{name} value and gradient, N={n}, C={c}"
        rows.append(faster(work, "pairwise loops in Python", ours, theirs, target, error))
    return rows


def ranked_against_moments() -> list[Row]:
    """Time the hinge against both moments surrogates on the same scores."""
    y, p = softmax_scores(20_000, 100)
    hinge = SurrogateRisk("hinge", alpha=0.5)
    few = slice(0, 2000)
    oracle = SurrogateRisk("hinge", alpha=0.5, scheme="pairwise").value_and_gradient(y[few], p[few])[1]
    error = float(np.abs(hinge.value_and_gradient(y[few], p[few])[1] - oracle).max() / np.abs(oracle).max())
    rows = []
    # The squared risk is the cheapest there is: no target, but worth knowing.
    for name, target in (("exponential", 1.5), ("squared", None)):
        moments = SurrogateRisk(name, alpha=4.0)
        ours, theirs = alternate(
            lambda: hinge.value_and_gradient(y, p),
            lambda moments=moments: moments.value_and_gradient(y, p),
            repeat=15,
            repeat_theirs=15,
        )
        work, ratio = "hinge (ranked) value and gradient, N=20,000, C=100", ours / theirs
        against = f"{name} (moments)"
        asked, met = ("", None) if target is None else (f"≤ {target:g}x", ratio <= target)
        rows.append(Row(work, against, seconds(ours), seconds(theirs), ratio, asked, met, f"{error:.1e}"))
    return rows


def growth() -> list[Row]:
    """Measure the slope of the time in the number of samples, both logarithmic."""
    rows = []
    for name in ("squared", "exponential", "hinge", "logistic"):
        risk = SurrogateRisk(name, alpha=0.5)
        (y1, p1), (y2, p2) = softmax_scores(20_000, 20), softmax_scores(200_000, 20)
        large, small = alternate(
            lambda risk=risk, y=y2, p=p2: risk.value_and_gradient(y, p),
            lambda risk=risk, y=y1, p=p1: risk.value_and_gradient(y, p),
            repeat=7,
            repeat_theirs=7,
        )
        slope = math.log10(large / small)
        work = f"{name}: log-log growth from N=20,000 to 200,000, C=20"
        rows.append(Row(work, "linear", seconds(large), seconds(small), slope, "≤ 1.15", slope <= 1.15, ""))
    return rows


def memory() -> list[Row]:
    """Measure the extra memory, the gradient included, over the scores."""
    rows = []
    y, p = softmax_scores(200_000, 50)
    for name in ("squared", "exponential", "hinge", "logistic"):
        risk = SurrogateRisk(name, alpha=0.5)
        extra = extra_bytes(lambda risk=risk: risk.value_and_gradient(y, p))
        ratio = extra / p.nbytes
        ours, theirs = f"{extra / 2**20:.0f} MiB", f"{p.nbytes / 2**20:.0f} MiB"
        work = f"{name} value and gradient, extra memory, N=200,000, C=50"
        rows.append(Row(work, "the scores", ours, theirs, ratio, "≤ 3x", ratio <= 3, ""))
    return rows
