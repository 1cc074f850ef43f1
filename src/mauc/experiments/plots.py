"""Figures of the experiments; matplotlib is imported when one is drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mauc._typing import Floats
from mauc.experiments.statistics import RankTest

__all__ = ["bars_with_points", "critical_difference", "rare_pairs"]

COLORS = {"ours": "#0072B2", "other": "#BBBBBB"}
SERIES = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
MARKERS = "oDs^vPX"


def _is_ours(name: str) -> bool:
    return name.startswith(("MAUC", "plug-in"))


def bars_with_points(scores: Mapping[str, Mapping[str, Floats]], tables: Sequence[str]) -> Any:
    """A panel for each table: the mean of each method as a bar, its splits as points, the best on top."""
    from matplotlib.figure import Figure

    columns = min(3, len(tables))
    rows = -(-len(tables) // columns)
    figure = Figure(figsize=(5.2 * columns, (0.19 * len(scores) + 0.9) * rows), layout="constrained")
    for k, table in enumerate(tables):
        axes = figure.add_subplot(rows, columns, k + 1)
        names = sorted(scores, key=lambda name: float(scores[name][table].mean()))
        for place, name in enumerate(names):
            points = scores[name][table]
            color = COLORS["ours" if _is_ours(name) else "other"]
            axes.barh(place, points.mean(), color=color, height=0.7)
            axes.plot(points, np.full(len(points), place), ".", color="black", markersize=2, alpha=0.6)
        lowest = min(float(np.percentile(scores[name][table], 10)) for name in names)
        axes.set(yticks=range(len(names)), ylim=(-0.6, len(names) - 0.4), xlim=(max(40.0, lowest - 2), 100.4))
        axes.set_yticklabels(names, fontsize=6)
        axes.set_title(table, fontsize=9)
        axes.tick_params(axis="x", labelsize=7)
    figure.supxlabel("test MAUC × 100 (bars: mean, points: splits; blue: this library)", fontsize=9)
    return figure


def rare_pairs(scores: Mapping[str, Mapping[str, Floats]], tables: Sequence[str]) -> Any:
    """A panel for each table: mean AUC of its rarest pairs of classes, the rarest first, method beside method."""
    from matplotlib.figure import Figure

    columns = min(3, len(tables))
    rows = -(-len(tables) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.2 * rows + 0.6), layout="constrained")
    handles: list[Any] = []
    for k, table in enumerate(tables):
        axes = figure.add_subplot(rows, columns, k + 1)
        handles = []
        for m, (name, by_table) in enumerate(scores.items()):
            values = by_table[table]
            x = np.arange(1, len(values) + 1) + 0.08 * (m - len(scores) / 2)
            style: dict[str, Any] = {
                "color": SERIES[m % len(SERIES)],
                "marker": MARKERS[m % len(MARKERS)],
                "markersize": 5,
            }
            handles += axes.plot(x, values, linestyle="none", label=name, **style)
        axes.set_xticks(range(1, len(values) + 1))
        axes.set_title(table, fontsize=9)
        axes.tick_params(labelsize=7)
        axes.grid(axis="y", alpha=0.3)
    figure.supxlabel("rarest pairs of classes, rarest first", fontsize=9)
    figure.supylabel("AUC × 100", fontsize=9)
    figure.legend(handles=handles, loc="outside upper center", ncols=len(scores), frameon=False, fontsize=8)
    return figure


def critical_difference(names: Sequence[str], test: RankTest) -> Any:
    """Mean ranks, the best on top, and a bar of the critical difference from the best."""
    from matplotlib.figure import Figure

    order = np.argsort(-test.mean_ranks)
    figure = Figure(figsize=(7.0, 0.2 * len(names) + 1.0), layout="constrained")
    axes = figure.subplots()
    for place, k in enumerate(order):
        color = COLORS["ours" if _is_ours(names[k]) else "other"]
        axes.plot([0, test.mean_ranks[k]], [place, place], color="#EEEEEE", zorder=1)
        axes.plot(test.mean_ranks[k], place, "o", color="black" if color == COLORS["other"] else color, zorder=2)
    best = float(test.mean_ranks.min())
    axes.axvspan(best, best + test.critical_difference, color="#56B4E9", alpha=0.2)
    axes.set(yticks=range(len(names)), xlim=(0.5, float(test.mean_ranks.max()) + 1), xlabel="mean rank over the tables")
    axes.set_yticklabels([names[k] for k in order], fontsize=7)
    title = f"Friedman p = {test.pvalue:.1e}; shaded: not different from the best at 5 % (Nemenyi)"
    axes.set_title(title, fontsize=9)
    return figure
