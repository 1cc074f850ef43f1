"""Table and figure of the consistency experiment."""

from pathlib import Path
from typing import Any

import numpy as np

from mauc._typing import Floats
from mauc.experiments.consistency import BAYES, METHODS, PROBLEM, QUICK_SIZES, SIZES
from mauc.experiments.plots import MARKERS, SERIES
from mauc.experiments.report_parts import machine, markdown_table, save_figure
from mauc.experiments.store import Store, write_whole

__all__ = ["write_report"]


def write_report(store: Store, folder: Path, device: str = "cpu", *, quick: bool = False) -> list[Path]:
    """Write ``consistency.md`` and ``consistency.png`` of what is on disk; returns the files."""
    depth, sizes = ("quick", QUICK_SIZES) if quick else ("full", SIZES)
    runs: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for method in (BAYES, *METHODS):
        for n in sizes:
            files = sorted((store.folder / depth / device / method / f"{n:06d}").glob("*.json"))
            found = [store.read((depth, device, method, f"{n:06d}", path.stem)) for path in files]
            if found:
                runs.setdefault(method, {})[n] = found
    if BAYES not in runs or len(runs) < 2:
        return []
    ceiling = next(iter(runs.pop(BAYES).values()))[0]["test"]
    gaps = {m: {n: _gaps(found, ceiling) for n, found in by_size.items()} for m, by_size in runs.items()}
    lost = {
        m: sum(r["diverged"] is not None for found in by_size.values() for r in found) for m, by_size in runs.items()
    }
    page = folder / "consistency.md"
    write_whole(page, _markdown(gaps, lost, ceiling, sizes))
    return [page, save_figure(_figure(gaps), folder / "consistency.png")]


def _gaps(found: list[dict[str, Any]], ceiling: float) -> Floats:
    return 100 * np.array([ceiling - r["test"] for r in found if r["test"] is not None], dtype=np.float64)


def _markdown(gaps: dict[str, dict[int, Floats]], lost: dict[str, int], ceiling: float, sizes: tuple[int, ...]) -> str:
    shown = [n for n in sizes if any(n in by_size for by_size in gaps.values())]
    rows = []
    for method, by_size in gaps.items():
        row = [method]
        for n in shown:
            points = by_size.get(n, np.empty(0))
            spread = f" ± {points.std():.2f}" if len(points) > 1 else ""
            row.append(f"{points.mean():.2f}{spread}" if len(points) else "–")
        rows.append([*row, str(lost[method]) if lost[method] else ""])
    note = (
        f"Bayes MAUC × 100 less test MAUC × 100 after training on N samples: mean ± standard deviation over the "
        f"seeds, {PROBLEM['n_classes']} Gaussian classes, the largest {PROBLEM['imbalance']:g} times the smallest, "
        f"{PROBLEM['n_features']} features. The exact posteriors reach {100 * ceiling:.2f} on the same test samples. "
        "One network and one number of steps for all; the surrogates have four samples of every class in each batch. "
        + machine()
    )
    head = ["method", *(f"N = {n:,}" for n in shown), "diverged"]
    return f"{note}\n\n{markdown_table(head, rows)}\n"


def _figure(gaps: dict[str, dict[int, Floats]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for k, (method, by_size) in enumerate(gaps.items()):
        points = {n: values.mean() for n, values in by_size.items() if len(values)}
        style: dict[str, Any] = {"color": SERIES[k % len(SERIES)], "marker": MARKERS[k % len(MARKERS)], "markersize": 4}
        line = "-" if method.startswith("MAUC") else "--"
        axes.plot(list(points), list(points.values()), line, label=method, **style)
    axes.set(xscale="log", yscale="log", xlabel="training samples", ylabel="Bayes MAUC − MAUC, × 100")
    sizes = sorted({n for by_size in gaps.values() for n in by_size})
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.set_xticks([], minor=True)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=7)
    return figure
