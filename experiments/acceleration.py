"""The paper's acceleration figure: loops over all pairs against the exact schemes, for a linear model."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.plots import GUIDE, series
from experiments.registry import Experiment
from experiments.report_parts import folded, machine, machines, markdown_table, save_figure
from experiments.store import Cell, Store, write_whole
from mauc._typing import Floats, Ints
from mauc.activations import activate, pull_back
from mauc.risk import SurrogateRisk

__all__ = ["LARGE_SIZES", "LOSSES", "PRIORS", "SIZES", "cells", "experiment", "pairs_of_samples", "write_report"]

PRIORS = (0.2, 0.1, 0.2, 0.4, 0.1)
SIZES = (32, 64, 128, 256, 512, 1024)
N_FEATURES = 100
LARGE_SIZES = (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)

Scalar = Callable[[float], float]
LOSSES: dict[str, tuple[Scalar, Scalar]] = {  # each with α = 1
    "squared": (lambda t: (1.0 - t) ** 2, lambda t: -2.0 * (1.0 - t)),
    "exponential": (lambda t: math.exp(-t), lambda t: -math.exp(-t)),
    "hinge": (lambda t: max(1.0 - t, 0.0), lambda t: -1.0 if t < 1.0 else 0.0),
}
Results = dict[str, list[dict[str, Any]]]
"""Measurements of each loss, the fewest samples first."""


def experiment(*, quick: bool = False) -> Experiment:
    """Plan the experiment."""
    work = cells("quick", SIZES[:4], LARGE_SIZES[:3], repetitions=3) if quick else cells()
    return Experiment(work, partial(write_report, work=work))


def pairs_of_samples(y: Ints) -> Iterator[tuple[int, int, int, float]]:
    """Yield the terms of the risk as a loop: sample m, sample n of another class, the class i of m, and the weight,
    ``1 / (C (C − 1) n_i n_j)`` for the C classes that ``y`` has.
    """
    sizes = np.bincount(y)
    n_classes = np.count_nonzero(sizes)
    for m, i in enumerate(y):
        for n, j in enumerate(y):
            if i != j:
                yield m, n, i, 1.0 / (n_classes * (n_classes - 1) * sizes[i] * sizes[j])


def naive_value(y: Ints, scores: Floats, loss: Scalar) -> float:
    """Compute the risk by its definition, a loop over all pairs of samples."""
    value = 0.0
    for m, n, i, weight in pairs_of_samples(y):
        value += weight * loss(scores[m, i] - scores[n, i])
    return value


def naive_value_and_gradient(y: Ints, scores: Floats, loss: Scalar, derivative: Scalar) -> tuple[float, Floats]:
    """Compute both in one loop, the gradient with respect to the scores."""
    value, gradient = 0.0, np.zeros_like(scores)
    for m, n, i, weight in pairs_of_samples(y):
        difference = scores[m, i] - scores[n, i]
        value += weight * loss(difference)
        slope = weight * derivative(difference)
        gradient[m, i] += slope
        gradient[n, i] -= slope
    return value, gradient


@dataclass(frozen=True)
class LinearModel:
    """``f(x) = softmax(W x)`` on given samples, with W and x uniform on [0, 1]."""

    X: Floats
    """``(N, d)``"""
    W: Floats
    """``(C, d)``"""

    @classmethod
    def of(cls, n: int) -> "LinearModel":
        rng = np.random.default_rng(n)
        return cls(rng.random((n, N_FEATURES)), rng.random((len(PRIORS), N_FEATURES)))

    def scores(self) -> Floats:
        """Return the ``(N, C)`` scores."""
        return activate(self.X @ self.W.T, "softmax")

    def in_weights(self, scores: Floats, gradient: Floats) -> Floats:
        """Return the ``(C, d)`` gradient in W from the gradient in the scores."""
        return pull_back(scores, gradient, "softmax").T @ self.X


def cells(
    depth: str = "full", sizes: Sequence[int] = SIZES, large: Sequence[int] = LARGE_SIZES, *, repetitions: int = 30
) -> list[Cell]:
    """Return one cell for each loss and number of samples; the loops are measured on ``sizes`` alone."""
    return [
        Cell((depth, loss, f"{n:07d}"), measure, (loss, n, repetitions, n in sizes))
        for n in (*sizes, *large)
        for loss in LOSSES
    ]


def measure(name: str, n: int, repetitions: int, with_loops: bool) -> dict[str, Any]:
    """Time each repetition, from W to the loss and to its gradient in W, of ours and, for few samples, of the loops;
    time the risk alone from given scores; measure the relative error.

    The loops compute scores and chain rule once too, by matrix products: their price in every pair is not counted.
    """
    y = np.repeat(np.arange(len(PRIORS)), _sizes(n))
    model, risk = LinearModel.of(n), SurrogateRisk(name, alpha=1.0)
    loss, derivative = LOSSES[name]

    def gradient_in_weights(of_scores: Callable[[Floats], tuple[float, Floats]]) -> tuple[float, Floats]:
        scores = model.scores()
        value, gradient = of_scores(scores)
        return value, model.in_weights(scores, gradient)

    def ours() -> tuple[float, Floats]:
        return gradient_in_weights(lambda scores: risk.value_and_gradient(y, scores))

    def loops() -> tuple[float, Floats]:
        return gradient_in_weights(lambda scores: naive_value_and_gradient(y, scores, loss, derivative))

    value, gradient = ours()
    scores = model.scores()
    out: dict[str, Any] = {
        "n": n,
        "scheme": risk.scheme_,
        "machine": machine(),
        "value": _time(lambda: risk.value(y, model.scores()), repetitions),
        "gradient": _time(ours, repetitions),
        "risk_value": _time(lambda: risk.value(y, scores), repetitions),
        "risk_gradient": _time(lambda: risk.value_and_gradient(y, scores), repetitions),
    }
    if with_loops:
        out["naive_value"] = _time(lambda: naive_value(y, model.scores(), loss), repetitions)
        out["naive_gradient"] = _time(loops, repetitions)
        exact, slow = loops()
        out["error"] = max(abs(value - exact) / abs(exact), float(np.abs(gradient - slow).max() / np.abs(slow).max()))
    return out


def mean_ratio(result: dict[str, Any], what: str, *, alone: bool = False) -> float:
    """Return the paper's acceleration ratio, the mean over the repetitions of the loops' time over ours; ours from X
    and W, or the risk alone.
    """
    ours = result[f"risk_{what}" if alone else what]
    return float(np.mean(np.array(result[f"naive_{what}"]) / np.array(ours)))


def _sizes(n: int) -> Ints:
    """Return class sizes in the proportions of the paper that sum to n."""
    sizes = np.floor(np.array(PRIORS) * n).astype(np.int64)
    sizes[np.argsort(PRIORS)[: n - sizes.sum()]] += 1
    return sizes


def _time(function: Callable[[], Any], repetitions: int) -> list[float]:
    """Return processor seconds where that clock is fine enough: wall time would charge other work to the long loops."""
    fine = time.get_clock_info("process_time").resolution <= 1e-6
    now = time.process_time if fine else time.perf_counter
    seconds = []
    for _ in range(repetitions):
        begin = now()
        function()
        seconds.append(now() - begin)
    return seconds


def write_report(store: Store, folder: Path, *, work: Sequence[Cell]) -> list[Path]:
    """Write ``acceleration.md`` and ``acceleration.png`` of these cells; return the files."""
    results: Results = {loss: [] for loss in LOSSES}
    for cell in work:
        results[cell.key[1]].append(store.read(cell.key))
    table = folder / "acceleration.md"
    write_whole(table, _markdown(results))
    return [table, save_figure(_figure(results), folder / "acceleration.png")]


def _markdown(results: Results) -> str:
    head = ["loss", "N", "scheme"]
    head += [title for what in ("value", "gradient") for title in (what, "risk alone", "loops", "ratio", "alone")]
    rows = []
    for loss, measured in results.items():
        for r in measured:
            row = [loss, f"{r['n']:,}", r["scheme"]]
            for what in ("value", "gradient"):
                loops = f"naive_{what}" in r
                row += [_seconds(r[what]), _seconds(r[f"risk_{what}"]), _seconds(r[f"naive_{what}"]) if loops else ""]
                row += [f"{mean_ratio(r, what, alone=alone):,.0f}x" if loops else "" for alone in (False, True)]
            rows.append([*row, f"{r['error']:.0e}" if "error" in r else ""])
    note = (
        f"The setting is the paper's: x and W are uniform on [0, 1], d = {N_FEATURES}, f(x) = softmax(W x), five "
        "classes with shares .2, .1, .2, .4, .1. A ratio is the loops' time divided by ours, "
        f"averaged over {len(next(iter(results.values()))[0]['value'])} repetitions. “Value” computes the loss from X "
        "and W. “Gradient” computes the loss and its gradient with respect to W. “Risk alone” computes either of them "
        "from given scores. Times are medians of processor time. “Loops” compute the definition in Python, over all "
        "pairs of samples; for scores and chain rule they use the same matrix products as our scheme. So the ratio "
        "“alone” compares only the parts that differ. We ran loops only at the paper's six sizes. "
        + machines(r for measured in results.values() for r in measured)
    )
    figure = "![Ratios and times over the number of samples](acceleration.png)"
    table = folded("All losses and sizes", markdown_table([*head, "error"], rows))
    return f"{note}\n\n{figure}\n\n{table}\n"


def _seconds(repetitions: list[float]) -> str:
    """Format the median."""
    value = float(np.median(repetitions))
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def _figure(results: Results) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 3.6), layout="constrained")
    *of_ratios, of_seconds = figure.subplots(1, 3)
    titles = ("loss: loops / ours", "loss and gradient in W: loops / ours", "loss and gradient in W, seconds")
    for axes, title in zip((*of_ratios, of_seconds), titles, strict=True):
        axes.set(xscale="log", yscale="log", title=title, xlabel="samples N")
        axes.grid(alpha=0.3)
    for k, (loss, measured) in enumerate(results.items()):
        style, alone = series(k, label=loss), series(k, linestyle=":", marker="")
        sizes = [r["n"] for r in measured]
        slow = [r for r in measured if "naive_value" in r]
        for axes, what in zip(of_ratios, ("value", "gradient"), strict=True):
            axes.plot([r["n"] for r in slow], [mean_ratio(r, what) for r in slow], **style)
            axes.plot([r["n"] for r in slow], [mean_ratio(r, what, alone=True) for r in slow], **alone)
            axes.set_xticks([r["n"] for r in slow], [str(r["n"]) for r in slow], minor=False)
            axes.set_xticks([], minor=True)
        of_seconds.plot(sizes, [np.median(r["gradient"]) for r in measured], **style)
        of_seconds.plot(sizes, [np.median(r["risk_gradient"]) for r in measured], **alone)
    loops = [(r["n"], np.median(r["naive_gradient"])) for r in results["squared"] if "naive_gradient" in r]
    of_seconds.plot(*zip(*loops, strict=True), color=GUIDE, linestyle="--", label="loops (squared)")
    of_seconds.plot([], [], color=GUIDE, linestyle=":", label="risk alone, from scores")
    figure.legend(*of_seconds.get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    return figure
