"""Table and figure of the acceleration experiment."""

from pathlib import Path
from typing import Any

import numpy as np

from mauc.experiments.acceleration import LOSSES, cells
from mauc.experiments.report_parts import machine, markdown_table, save_figure
from mauc.experiments.store import Store, write_whole

__all__ = ["write_report"]


def write_report(store: Store, folder: Path, *, quick: bool = False) -> list[Path]:
    """Write ``acceleration.md`` and ``acceleration.png``; returns the files."""
    results: dict[str, list[dict[str, Any]]] = {loss: [] for loss in LOSSES}
    for cell in cells(quick=quick):
        results[cell.key[1]].append(store.read(cell.key))
    table = folder / "acceleration.md"
    write_whole(table, _markdown(results))
    return [table, save_figure(_figure(results), folder / "acceleration.png")]


def _markdown(results: dict[str, list[dict[str, Any]]]) -> str:
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


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def _figure(results: dict[str, list[dict[str, Any]]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.6), layout="constrained")
    ratio_axes = figure.subplots(1, 3)
    titles = ("value: loops / ours", "value and gradient: loops / ours", "value and gradient, seconds")
    for axes, title in zip(ratio_axes, titles, strict=True):
        axes.set(xscale="log", yscale="log", title=title, xlabel="samples N")
        axes.grid(alpha=0.3)
    for color, marker, (loss, measured) in zip(("#0072B2", "#D55E00", "#009E73"), "oDs", results.items(), strict=True):
        style = {"color": color, "marker": marker, "label": loss, "markersize": 4}
        slow = [r for r in measured if "naive_value" in r]
        for axes, what in zip(ratio_axes, ("value", "gradient"), strict=False):
            ratio = [np.median(r[f"naive_{what}"]) / np.median(r[what]) for r in slow]
            axes.plot([r["n"] for r in slow], ratio, **style)
            axes.set_xticks([r["n"] for r in slow], [str(r["n"]) for r in slow], minor=False)
            axes.set_xticks([], minor=True)
        ratio_axes[2].plot([r["n"] for r in measured], [np.median(r["gradient"]) for r in measured], **style)
    loops = results["squared"]
    pairs = [(r["n"], np.median(r["naive_gradient"])) for r in loops if "naive_gradient" in r]
    ratio_axes[2].plot(*zip(*pairs, strict=True), color="#666666", linestyle="--", label="loops (squared)")
    ratio_axes[2].legend(frameon=False, fontsize=8)
    return figure
