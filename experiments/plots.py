"""Figures of the experiments: one palette, one way to draw rows; matplotlib is imported when one is drawn."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.statistics import RankTest
from mauc._typing import Floats
from mauc.metrics.display.minority import COLORS, MARKERS

__all__ = ["COLORS", "bars_with_points", "critical_difference", "draw_bars", "rare_pairs", "series"]

OURS, OTHERS = COLORS[0], "#BBBBBB"
CEILING = COLORS[1]
"""Color of the highest possible score."""
GUIDE = "#666666"
"""Color of lines that are not measured."""
LEGEND_COLUMNS = 5


def series(k: int, **style: Any) -> dict[str, Any]:
    """Return the style of the k-th line or set of points."""
    return {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)], "markersize": 4, **style}


def _color(name: str) -> str:
    return OURS if name.startswith(("MAUC", "plug-in")) else OTHERS


def _label_rows(axes: Any, names: Sequence[str], fontsize: float) -> None:
    """Label one row per name, the first at the bottom."""
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_yticks(range(len(names)), names, fontsize=fontsize)


def draw_bars(axes: Any, scores: Mapping[str, Floats], *, fontsize: float, color: Callable[[str], str]) -> list[str]:
    """Draw one row per method: the mean as a bar, the runs as points, the best on top; return the names, the best last.

    A method without a run has all of them diverged.
    """
    names = sorted(scores, key=lambda name: float(scores[name].mean()) if len(scores[name]) else -1.0)
    for place, name in enumerate(names):
        points = scores[name]
        if not len(points):
            axes.text(0.02, place, "diverged", va="center", fontsize=fontsize, transform=axes.get_yaxis_transform())
            continue
        axes.barh(place, points.mean(), color=color(name), height=0.7)
        axes.plot(points, np.full(len(points), place), ".", color="black", markersize=2, alpha=0.6)
    _label_rows(axes, names, fontsize)
    return names


def _panels(titles: Sequence[str], width: float, height: float, above: float = 0.0) -> tuple[Any, dict[str, Any]]:
    """Return a figure and its axes by title, three in a row; inches are those of one panel."""
    from matplotlib.figure import Figure

    columns = min(3, len(titles))
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(width * columns, height * rows + above), layout="constrained")
    panels = {title: figure.add_subplot(rows, columns, k + 1) for k, title in enumerate(titles)}
    for title, axes in panels.items():
        axes.set_title(title, fontsize=9)
    return figure, panels


def bars_with_points(scores: Mapping[str, Mapping[str, Floats]], tables: Sequence[str]) -> Any:
    """Draw one panel per table: the mean of each method as a bar, its splits as points, the best on top."""
    figure, panels = _panels(tables, 5.2, 0.19 * len(scores) + 0.9)
    for table, axes in panels.items():
        points = {name: by_table[table] for name, by_table in scores.items()}
        draw_bars(axes, points, fontsize=6, color=_color)
        lowest = min(float(np.percentile(values, 10)) for values in points.values())
        axes.set_xlim(max(40.0, lowest - 2), 100.4)
        axes.tick_params(axis="x", labelsize=7)
    figure.supxlabel("test MAUC × 100 (bars: mean, points: splits; blue: this library)", fontsize=9)
    return figure


def rare_pairs(
    scores: Mapping[str, Mapping[str, Floats]],
    sizes: Mapping[str, Sequence[tuple[int, int]]],
    *,
    floor: float = 0.0,
) -> Any:
    """Draw one panel per table, one line per method: AUC_{i|j} of the rarest pairs of classes, the rarest first.

    ``sizes`` has the tables, and of each value the sizes of its two classes; values below ``floor`` are left out.
    """
    figure, panels = _panels(list(sizes), 4.4, 2.9, above=0.25 * -(-len(scores) // LEGEND_COLUMNS) + 0.6)
    handles: list[Any] = []
    for table, axes in panels.items():
        handles, place = [], np.arange(len(sizes[table]))
        for m, (name, by_table) in enumerate(scores.items()):
            values = by_table[table]
            shown = np.where(values < floor, np.nan, values)
            ours = {"linewidth": 1.6, "zorder": 3} if _color(name) == OURS else {"linewidth": 0.8}
            handles += axes.plot(place, shown, label=name, **series(m, alpha=0.85, **ours))
        axes.set_xticks(place, [f"{i}|{j}" for i, j in sizes[table]], rotation=45)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        if floor:
            axes.set_ylim(floor - 1.0, 101.0)
    below = f"; values below {floor:g} are not shown" if floor else ""
    figure.supxlabel(
        f"both directions i|j of the rarest pairs, rarest first, by the sizes of the two classes{below}", fontsize=9
    )
    figure.supylabel("AUC of i over j, × 100", fontsize=9)
    figure.legend(handles=handles, loc="outside upper center", ncols=LEGEND_COLUMNS, frameon=False, fontsize=8)
    return figure


def critical_difference(names: Sequence[str], test: RankTest) -> Any:
    """Draw mean ranks, the best on top, and a bar of the critical difference from the best."""
    from matplotlib.figure import Figure

    order = np.argsort(-test.mean_ranks)
    figure = Figure(figsize=(7.0, 0.2 * len(names) + 1.0), layout="constrained")
    axes = figure.subplots()
    for place, k in enumerate(order):
        axes.plot([0, test.mean_ranks[k]], [place, place], color="#EEEEEE", zorder=1)
        color = OURS if _color(names[k]) == OURS else "black"
        axes.plot(test.mean_ranks[k], place, "o", color=color, zorder=2)
    _label_rows(axes, [names[k] for k in order], 7)
    best = float(test.mean_ranks.min())
    axes.axvspan(best, best + test.critical_difference, color=COLORS[5], alpha=0.2)
    axes.set(xlim=(0.5, float(test.mean_ranks.max()) + 1), xlabel="mean rank over the tables")
    title = f"Friedman p = {test.pvalue:.1e}; shaded: not different from the best at 5 % (Nemenyi)"
    axes.set_title(title, fontsize=9)
    return figure
