"""The paper's acceleration figure: loops over all pairs against the exact schemes, loss and gradient apart."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mauc._typing import Floats, Ints
from mauc.experiments.plots import GUIDE, series
from mauc.experiments.registry import Experiment
from mauc.experiments.report_parts import machine, markdown_table, save_figure
from mauc.experiments.store import Cell, Store, write_whole
from mauc.risk import SurrogateRisk

__all__ = ["LARGE_SIZES", "LOSSES", "PRIORS", "SIZES", "cells", "experiment", "pairs_of_samples", "write_report"]

PRIORS = (0.2, 0.1, 0.2, 0.4, 0.1)
SIZES = (32, 64, 128, 256, 512, 1024)
LARGE_SIZES = (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
REPETITIONS = 30

Scalar = Callable[[float], float]
LOSSES: dict[str, tuple[Scalar, Scalar]] = {
    "squared": (lambda t: (1.0 - t) ** 2, lambda t: -2.0 * (1.0 - t)),
    "exponential": (lambda t: math.exp(-t), lambda t: -math.exp(-t)),
    "hinge": (lambda t: max(1.0 - t, 0.0), lambda t: -1.0 if t < 1.0 else 0.0),
}
Results = dict[str, list[dict[str, Any]]]
"""Measurements of each loss, the fewest samples first."""


def experiment(*, quick: bool = False) -> Experiment:
    """Cells and report."""
    return Experiment(cells(quick=quick), partial(write_report, quick=quick))


def pairs_of_samples(y: Ints) -> Iterator[tuple[int, int, int, float]]:
    """The sum of the risk as a loop: sample m, sample n of another class, the class i of m, and the pair's weight,
    ``1 / (C (C − 1) n_i n_j)`` for the C classes that ``y`` has.
    """
    sizes = np.bincount(y)
    n_classes = np.count_nonzero(sizes)
    for m, i in enumerate(y):
        for n, j in enumerate(y):
            if i != j:
                yield m, n, i, 1.0 / (n_classes * (n_classes - 1) * sizes[i] * sizes[j])


def naive_value(y: Ints, scores: Floats, loss: Scalar) -> float:
    """The risk as its definition: a loop over all pairs of samples."""
    value = 0.0
    for m, n, i, weight in pairs_of_samples(y):
        value += weight * loss(scores[m, i] - scores[n, i])
    return value


def naive_gradient(y: Ints, scores: Floats, derivative: Scalar) -> Floats:
    """Its gradient, likewise."""
    gradient = np.zeros_like(scores)
    for m, n, i, weight in pairs_of_samples(y):
        slope = weight * derivative(scores[m, i] - scores[n, i])
        gradient[m, i] += slope
        gradient[n, i] -= slope
    return gradient


def cells(*, quick: bool = False) -> list[Cell]:
    """One cell for each loss and number of samples."""
    repetitions = 3 if quick else REPETITIONS
    small = SIZES[:4] if quick else SIZES
    large = LARGE_SIZES[:3] if quick else LARGE_SIZES
    depth = "quick" if quick else "full"
    return [
        Cell((depth, loss, f"{n:07d}"), measure, (loss, n, repetitions, n in small))
        for n in (*small, *large)
        for loss in LOSSES
    ]


def measure(name: str, n: int, repetitions: int, with_loops: bool) -> dict[str, Any]:
    """Seconds of each repetition, ours and, for few samples, those of the loops; and how far the results are apart."""
    rng = np.random.default_rng(n)
    y = np.repeat(np.arange(len(PRIORS)), _sizes(n))
    scores = rng.dirichlet(np.ones(len(PRIORS)), n)
    loss, derivative = LOSSES[name]
    risk = SurrogateRisk(name)
    value, gradient = risk.value_and_gradient(y, scores)
    out: dict[str, Any] = {
        "n": n,
        "scheme": risk.scheme_,
        "value": _time(lambda: risk.value(y, scores), repetitions),
        "gradient": _time(lambda: risk.value_and_gradient(y, scores), repetitions),
    }
    if with_loops:
        out["naive_value"] = _time(lambda: naive_value(y, scores, loss), repetitions)
        out["naive_gradient"] = _time(lambda: naive_gradient(y, scores, derivative), repetitions)
        slow = naive_gradient(y, scores, derivative)
        out["error"] = max(
            abs(value - naive_value(y, scores, loss)) / abs(value),
            float(np.abs(gradient - slow).max() / np.abs(slow).max()),
        )
    return out


def _sizes(n: int) -> Ints:
    """Class sizes in the proportions of the paper that sum to n."""
    sizes = np.floor(np.array(PRIORS) * n).astype(np.int64)
    sizes[np.argsort(PRIORS)[: n - sizes.sum()]] += 1
    return sizes


def _time(function: Callable[[], Any], repetitions: int) -> list[float]:
    seconds = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)
    return seconds


def write_report(store: Store, folder: Path, *, quick: bool = False) -> list[Path]:
    """Write ``acceleration.md`` and ``acceleration.png``; returns the files."""
    results: Results = {loss: [] for loss in LOSSES}
    for cell in cells(quick=quick):
        results[cell.key[1]].append(store.read(cell.key))
    table = folder / "acceleration.md"
    write_whole(table, _markdown(results))
    return [table, save_figure(_figure(results), folder / "acceleration.png")]


def _markdown(results: Results) -> str:
    head = ["loss", "N", "scheme", "value", "value, loops", "ratio", "gradient", "gradient, loops", "ratio", "error"]
    rows = []
    for loss, measured in results.items():
        for r in measured:
            row = [loss, f"{r['n']:,}", r["scheme"]]
            for what in ("value", "gradient"):
                ours = float(np.median(r[what]))
                loops = float(np.median(r[f"naive_{what}"])) if f"naive_{what}" in r else None
                row += [_seconds(ours), _seconds(loops) if loops else "", f"{loops / ours:,.0f}x" if loops else ""]
            rows.append([*row, f"{r['error']:.0e}" if "error" in r else ""])
    note = (
        "Median seconds of one evaluation of the risk, and of risk and gradient together, on softmax-like scores of "
        "five classes with shares .2, .1, .2, .4, .1; the loops are the definition in Python. " + machine()
    )
    return f"{note}\n\n{markdown_table(head, rows)}\n"


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def _figure(results: Results) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.6), layout="constrained")
    *of_ratios, of_seconds = figure.subplots(1, 3)
    titles = ("value: loops / ours", "value and gradient: loops / ours", "value and gradient, seconds")
    for axes, title in zip((*of_ratios, of_seconds), titles, strict=True):
        axes.set(xscale="log", yscale="log", title=title, xlabel="samples N")
        axes.grid(alpha=0.3)
    for k, (loss, measured) in enumerate(results.items()):
        style = series(k, label=loss)
        slow = [r for r in measured if "naive_value" in r]
        for axes, what in zip(of_ratios, ("value", "gradient"), strict=True):
            ratio = [np.median(r[f"naive_{what}"]) / np.median(r[what]) for r in slow]
            axes.plot([r["n"] for r in slow], ratio, **style)
            axes.set_xticks([r["n"] for r in slow], [str(r["n"]) for r in slow], minor=False)
            axes.set_xticks([], minor=True)
        of_seconds.plot([r["n"] for r in measured], [np.median(r["gradient"]) for r in measured], **style)
    loops = [(r["n"], np.median(r["naive_gradient"])) for r in results["squared"] if "naive_gradient" in r]
    of_seconds.plot(*zip(*loops, strict=True), color=GUIDE, linestyle="--", label="loops (squared)")
    of_seconds.legend(frameon=False, fontsize=8)
    return figure
