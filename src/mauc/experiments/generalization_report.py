"""Table and figure of the generalisation experiment."""

from pathlib import Path
from typing import Any

import numpy as np

from mauc.experiments import generalization as experiment
from mauc.experiments.generalization import ADDED, BASE, RATIOS, cells
from mauc.experiments.report_parts import markdown_table, save_figure
from mauc.experiments.store import Store, write_whole

__all__ = ["write_report"]

Results = dict[str, list[dict[str, Any]]]
COLORS = ("#0072B2", "#D55E00", "#009E73")
MARKERS = "oDs"


def write_report(store: Store, folder: Path, *, quick: bool = False) -> list[Path]:
    """Write ``generalization.md`` and ``generalization.png``; returns the files."""
    sizes: Results = {}
    added: Results = {}
    for cell in cells(quick=quick):
        _, part, name, _ = cell.key
        (sizes if part == "sizes" else added).setdefault(name, []).append(store.read(cell.key))
    page = folder / "generalization.md"
    write_whole(page, _markdown(sizes, added))
    return [page, save_figure(_figure(sizes, added), folder / "generalization.png")]


def _gap(result: dict[str, Any]) -> tuple[float, float]:
    """Mean of test less training risk over the repetitions, and its standard error."""
    gaps = np.array(result["test"]) - np.array(result["train"])
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps)))


def _fit(sizes: Results) -> tuple[float, float, float]:
    """Of gap on ξ/√N over all cells: slope of the least-squares line through 0, correlation, and power in log-log."""
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
    e = experiment
    intro = (
        f"Gap between the {e.SURROGATE} risk of `MAUCClassifier` on its training sample and on {e.TEST_PER_CLASS:,} "
        f"fresh samples of each class, new ones each time: {e.N_CLASSES} Gaussian classes, {e.SEPARATION:g} standard "
        f"deviations apart, in {e.N_FEATURES} dimensions; means of {repetitions} samples, ± their standard error. "
        "ξ/√N = √(Σ 1/n_i) is the factor by which class sizes enter the bounds of `mauc.theory`; bound: that of "
        "Theorem 7 on the gap, from `bounds.for_estimator`. `mauc bench generalization` writes this page."
    )
    parts = [intro, "![gap over N, over ξ/√N, and with samples added](generalization.png)", "## Size and imbalance"]
    parts.append(markdown_table(head, [_row(r) for results in sizes.values() for r in results]))
    parts.append(
        f"Over all these cells the gap follows ξ/√N with correlation {correlation:.3f}; the line through 0 has the "
        f"slope {slope:.2f}. It is no straight line: in log-log the power is {power:.1f}. One model "
        "of few weights and a fixed penalty may gain faster than 1/√n; a bound for all models at once may not. Nor is "
        "the size of the bound a forecast: it holds for the worst of all models of such norms."
    )
    parts.append("## Which samples to add")
    base = " + ".join(map(str, BASE))
    parts.append(f"To {base} samples, more are added of the most frequent class, or as many of the rarest.")
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
    for ratio, color, marker, results in zip(RATIOS, COLORS, MARKERS, sizes.values(), strict=True):
        gaps, errors = zip(*map(_gap, results), strict=True)
        style = {"color": color, "marker": marker, "markersize": 4, "capsize": 2, "label": f"{ratio} : 1"}
        n = [sum(r["class_counts"]) for r in results]
        over_n.errorbar(n, gaps, errors, **style)
        over_rate.errorbar([r["rate"] for r in results], gaps, errors, linestyle="none", **style)
    slope, correlation, _ = _fit(sizes)
    end = max(r["rate"] for results in sizes.values() for r in results) * 1.05
    over_rate.plot([0, end], [0, slope * end], color="#666666", linewidth=1, linestyle="--", zorder=1)
    over_rate.text(0.05, 0.93, f"correlation {correlation:.3f}", transform=over_rate.transAxes, va="top", fontsize=9)
    over_n.set(xscale="log", yscale="log", xlabel="samples N", ylabel="test risk − training risk")
    over_n.set_title("gap over N", fontsize=10)
    ticks = [sum(r["class_counts"]) for r in next(iter(sizes.values()))]
    over_n.set_xticks(ticks, [f"{n:,}" for n in ticks], minor=False, fontsize=8)
    over_n.set_xticks([], minor=True)
    over_n.legend(title="largest : smallest class", frameon=False, fontsize=8, title_fontsize=8)
    over_rate.set(xlabel="ξ/√N = √(Σ 1/n)", xlim=(0, end), ylim=(0, None))
    over_rate.set_title("the same gaps over ξ/√N", fontsize=10)
    for (name, results), color, marker in zip(added.items(), (COLORS[0], COLORS[1]), MARKERS, strict=False):
        gaps, errors = zip(*map(_gap, results), strict=True)
        extra = [sum(r["class_counts"]) - sum(BASE) for r in results]
        label = f"to the {name} class"
        over_added.errorbar(extra, gaps, errors, color=color, marker=marker, markersize=4, capsize=2, label=label)
        forecast = [_gap(results[0])[0] * r["rate"] / results[0]["rate"] for r in results]
        over_added.plot(extra, forecast, color=color, linestyle=":")
    over_added.plot([], [], color="#666666", linestyle=":", label="as ξ/√N falls")
    over_added.set(xlabel=f"samples added to {' + '.join(map(str, BASE))}", ylim=(0, None))
    over_added.set_title("gap with samples added", fontsize=10)
    over_added.legend(frameon=False, fontsize=8)
    for axes in (over_n, over_rate, over_added):
        axes.grid(alpha=0.3)
    return figure
