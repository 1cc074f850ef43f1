"""The gap between training and test risk over sample size and imbalance, beside ξ/√N; and which samples close it."""

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments.datasets.counts import imbalanced_counts
from experiments.datasets.known import KnownClasses
from experiments.datasets.simulated import load_simulated
from experiments.plots import GUIDE, series
from experiments.registry import Experiment
from experiments.report_parts import folded, markdown_table, save_figure
from experiments.store import Cell, Store, write_whole
from mauc._typing import Floats, Ints
from mauc.linear import MAUCClassifier
from mauc.metrics import mauc_score
from mauc.risk import SurrogateRisk
from mauc.theory.bounds import for_estimator
from mauc.theory.imbalance import xi

__all__ = ["ADDED", "BASE", "RATIOS", "SIZES", "cells", "experiment", "measure", "write_report"]

N_CLASSES, N_FEATURES, SEPARATION = 3, 20, 2.0
SURROGATE, ALPHA, L2 = "squared", 1.0, 1e-3
SIZES = (150, 300, 600, 1200, 2400, 4800)
RATIOS = (1, 5, 25)
BASE = (400, 80, 16)
"""Class sizes that the advice starts from."""
ADDED = (0, 16, 48, 112, 240)
REPETITIONS = 40
TEST_PER_CLASS = 10_000
TRAIN, TEST = range(2)

Results = dict[str, list[dict[str, Any]]]
"""Measurements by imbalance, or by the class that samples are added to."""


def experiment(*, quick: bool = False) -> Experiment:
    """Plan the experiment."""
    return Experiment(cells(quick=quick), partial(write_report, quick=quick))


def cells(*, quick: bool = False) -> list[Cell]:
    """Return one cell for each number of samples and imbalance, and for each number of samples added to one class."""
    repetitions = 5 if quick else REPETITIONS
    sizes = SIZES[:3] if quick else SIZES
    depth = "quick" if quick else "full"
    out = []
    for ratio in RATIOS:
        for n in sizes:
            counts = tuple(imbalanced_counts(n, N_CLASSES, float(ratio)).tolist())
            out.append(Cell((depth, "sizes", f"ratio-{ratio:03d}", f"{n:06d}"), measure, (counts, repetitions)))
    for name, grown in (("frequent", 0), ("rare", len(BASE) - 1)):
        for added in ADDED[:3] if quick else ADDED:
            counts = tuple(n + added * (k == grown) for k, n in enumerate(BASE))
            out.append(Cell((depth, "added", name, f"{added:06d}"), measure, (counts, repetitions)))
    return out


def measure(class_counts: tuple[int, ...], repetitions: int, test_per_class: int = TEST_PER_CLASS) -> dict[str, Any]:
    """Measure risks, test MAUC and the bound on the gap of a linear model on several samples of these class sizes.

    A larger class holds the samples of a smaller one of the same repetition, so that what they add is not lost in the
    difference of two draws.
    """
    classes = problem()
    risk = SurrogateRisk(SURROGATE, alpha=ALPHA)
    train, test, mauc, bound = [], [], [], []
    for repetition in range(repetitions):
        X, y = draw(classes, np.array(class_counts), repetition, TRAIN)
        # Fresh ones each time: an error that all repetitions share would not show in their spread.
        X_test, y_test = draw(classes, np.full(N_CLASSES, test_per_class), repetition, TEST)
        model = MAUCClassifier(SURROGATE, alpha=ALPHA, l2=L2, tol=1e-5, max_iter=500)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        scores = model.predict_proba(X_test)
        train.append(risk.value(y, model.predict_proba(X)))
        test.append(risk.value(y_test, scores))
        mauc.append(mauc_score(y_test, scores))
        bound.append(for_estimator(model, X, y).gap)
    counts = np.array(class_counts, dtype=np.float64)
    return {
        "class_counts": list(class_counts),
        "rate": xi(counts) / float(np.sqrt(counts.sum())),
        "train": train,
        "test": test,
        "mauc": mauc,
        "bound": bound,
    }


def problem() -> KnownClasses:
    """Return Gaussian classes at equal distances; which of them is rare makes no difference."""
    data = load_simulated(class_counts=[2] * N_CLASSES, n_features=N_FEATURES, separation=SEPARATION, seed=N_FEATURES)
    known: KnownClasses = data.classes
    return known


def draw(classes: KnownClasses, class_counts: Ints, repetition: int, purpose: int) -> tuple[Floats, Ints]:
    """Draw samples of every class, from a stream for each purpose, repetition and class."""
    parts = []
    for k, n in enumerate(class_counts):
        rng = np.random.default_rng([purpose, repetition, k])
        parts.append(classes.draw(np.full(n, k), rng, np.dtype(np.float64)))
    return np.concatenate(parts), np.repeat(np.arange(len(class_counts)), class_counts)


def write_report(store: Store, folder: Path, *, quick: bool = False) -> list[Path]:
    """Write ``generalization.md`` and ``generalization.png``; return the files."""
    sizes: Results = {}
    added: Results = {}
    for cell in cells(quick=quick):
        _, part, name, _ = cell.key
        (sizes if part == "sizes" else added).setdefault(name, []).append(store.read(cell.key))
    page = folder / "generalization.md"
    write_whole(page, _markdown(sizes, added))
    return [page, save_figure(_figure(sizes, added), folder / "generalization.png")]


def _gap(result: dict[str, Any]) -> tuple[float, float]:
    """Return the mean of test less training risk over the repetitions, and its standard error."""
    gaps = np.array(result["test"]) - np.array(result["train"])
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps)))


def _fit(sizes: Results) -> tuple[float, float, float]:
    """Fit the gap on ξ/√N over all cells; return the slope through 0, the correlation and the power in log-log."""
    rate = np.array([r["rate"] for results in sizes.values() for r in results])
    gap = np.array([_gap(r)[0] for results in sizes.values() for r in results])
    power = np.polyfit(np.log(rate), np.log(np.maximum(gap, 1e-6)), 1)[0]
    return float(rate @ gap / (rate @ rate)), float(np.corrcoef(rate, gap)[0, 1]), float(power)


def _row(result: dict[str, Any]) -> list[str]:
    gap, error = _gap(result)
    return [
        " + ".join(str(n) for n in result["class_counts"]),
        f"{sum(result['class_counts']):,}",
        f"{result['rate']:.3f}",
        f"{np.mean(result['train']):.3f}",
        f"{np.mean(result['test']):.3f}",
        f"{gap:.3f} ± {error:.3f}",
        f"{gap / result['rate']:.2f}",
        f"{np.mean(result['bound']):,.0f}",
        f"{np.mean(result['mauc']):.3f}",
    ]


def _markdown(sizes: Results, added: Results) -> str:
    head = ["class sizes", "N", "ξ/√N", "training risk", "test risk", "gap", "gap by ξ/√N", "bound", "test MAUC"]
    slope, correlation, power = _fit(sizes)
    repetitions = len(next(iter(sizes.values()))[0]["train"])
    intro = (
        "`python -m experiments generalization` writes the tables and the figure. It measures the gap between the "
        f"{SURROGATE} risk of `MAUCClassifier` on its training sample and on {TEST_PER_CLASS:,} fresh samples of each "
        f"class, drawn anew each time. The data have {N_CLASSES} Gaussian classes, {SEPARATION:g} standard deviations "
        f"apart, in {N_FEATURES} dimensions. The tables have means of {repetitions} repetitions, ± their standard "
        "error. Class sizes enter the bounds of `mauc.theory` by the factor ξ/√N = √(Σ 1/n_i). “Bound” is the bound of "
        "Theorem 7 on the gap, from `bounds.for_estimator`."
    )
    parts = [intro, "![gap over N, over ξ/√N, and with samples added](generalization.png)", "## Size and imbalance"]
    table = markdown_table(head, [_row(r) for results in sizes.values() for r in results])
    parts.append(folded("All sizes and ratios", table))
    parts.append(
        f"Over all these cells the gap follows ξ/√N with correlation {correlation:.3f}. The line through 0 has the "
        f"slope {slope:.2f}. The relation is not linear: the gap grows as the power {power:.1f} of ξ/√N. The gap of "
        "one model with few weights and a fixed penalty may fall faster than 1/√n; a bound for all models at once may "
        "not. The bound does not predict the gap: it holds for the worst of all models of such norms."
    )
    parts.append("## Which samples to add")
    base = " + ".join(map(str, BASE))
    parts.append(f"To {base} samples we add more of the most frequent class, or as many of the rarest.")
    rows = [
        [f"{name}, {extra} more", *_row(result)]
        for name, results in added.items()
        for extra, result in zip(ADDED, results, strict=False)
    ]
    parts.append(markdown_table(["added to", *head], rows))
    first, last = added["rare"][0], {name: results[-1] for name, results in added.items()}
    gap = _gap(first)[0]
    extra = sum(last["rare"]["class_counts"]) - sum(BASE)
    closed = {name: 1.0 - _gap(result)[0] / gap for name, result in last.items()}
    forecast = {name: 1.0 - result["rate"] / first["rate"] for name, result in last.items()}
    parts.append(
        f"{extra} more samples of the rare class close {closed['rare']:.0%} of the gap (ξ/√N falls by "
        f"{forecast['rare']:.0%}), as many of the frequent class {closed['frequent']:.0%} ({forecast['frequent']:.0%})."
    )
    return "\n\n".join(parts) + "\n"


def _figure(sizes: Results, added: Results) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 3.8), layout="constrained")
    over_n, over_rate, over_added = figure.subplots(1, 3)
    for k, (ratio, results) in enumerate(zip(RATIOS, sizes.values(), strict=True)):
        gaps, errors = zip(*map(_gap, results), strict=True)
        style = series(k, capsize=2, label=f"{ratio} : 1")
        n = [sum(r["class_counts"]) for r in results]
        over_n.errorbar(n, gaps, errors, **style)
        over_rate.errorbar([r["rate"] for r in results], gaps, errors, linestyle="none", **style)
    slope, correlation, _ = _fit(sizes)
    end = max(r["rate"] for results in sizes.values() for r in results) * 1.05
    over_rate.plot([0, end], [0, slope * end], color=GUIDE, linewidth=1, linestyle="--", zorder=1)
    over_rate.text(0.05, 0.93, f"correlation {correlation:.3f}", transform=over_rate.transAxes, va="top", fontsize=9)
    over_n.set(xscale="log", yscale="log", xlabel="samples N", ylabel="test risk − training risk")
    over_n.set_title("gap over N", fontsize=10)
    ticks = [sum(r["class_counts"]) for r in next(iter(sizes.values()))]
    over_n.set_xticks(ticks, [f"{n:,}" for n in ticks], minor=False, fontsize=8)
    over_n.set_xticks([], minor=True)
    over_n.legend(title="largest : smallest class", frameon=False, fontsize=8, title_fontsize=8)
    over_rate.set(xlabel="ξ/√N = √(Σ 1/n)", xlim=(0, end), ylim=(0, None))
    over_rate.set_title("the same gaps over ξ/√N", fontsize=10)
    for k, (name, results) in enumerate(added.items()):
        gaps, errors = zip(*map(_gap, results), strict=True)
        extra = [sum(r["class_counts"]) - sum(BASE) for r in results]
        style = series(k, capsize=2, label=f"to the {name} class")
        over_added.errorbar(extra, gaps, errors, **style)
        forecast = [_gap(results[0])[0] * r["rate"] / results[0]["rate"] for r in results]
        over_added.plot(extra, forecast, color=style["color"], linestyle=":")
    over_added.plot([], [], color=GUIDE, linestyle=":", label="as ξ/√N falls")
    over_added.set(xlabel=f"samples added to {' + '.join(map(str, BASE))}", ylim=(0, None))
    over_added.set_title("gap with samples added", fontsize=10)
    over_added.legend(frameon=False, fontsize=8)
    for axes in (over_n, over_rate, over_added):
        axes.grid(alpha=0.3)
    return figure
