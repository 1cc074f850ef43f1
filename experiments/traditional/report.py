"""Tables and figures of the traditional experiments, from the results that are on disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.baselines import BASELINES
from experiments.plots import bars_with_points, critical_difference, rare_pairs
from experiments.report_parts import folded, machines, save_figure
from experiments.score_tables import (
    Results,
    direction_sizes,
    directions_of,
    friedman_sentence,
    points,
    rank_test,
    read_common,
    score_table,
    splits,
)
from experiments.store import Store, write_whole
from experiments.traditional.margins import margins
from experiments.traditional.run import LOSSES, TABLES, methods
from experiments.traditional.stopping import table_of_iterations
from mauc._typing import Floats

__all__ = ["BEST_OF_OURS", "write_report"]

BEST_OF_OURS = "MAUC, best of the three"
RARE_PAIRS = 5
FLOOR = 70.0
"""The paper's Figure 2 leaves out what is below."""


SPLITS = {
    "authors": "on the authors' own splits (about 20/40/40; the paper's text says 80/10/10)",
    "80-10-10": "on our own stratified 80/10/10 splits, as in the paper's text (its files have about 20/40/40)",
}


def read_results(store: Store, protocol: str, preprocessing: str, tables: Sequence[str], depth: str) -> Results:
    """Return results by method and table, for the splits that all methods have; methods without any are left out."""
    names = [method.name for method in methods(tables[0])]
    out = read_common(store, (depth, protocol, preprocessing), tables, names)
    _add_best(out, tables)
    return out


def _add_best(results: Results, tables: Sequence[str]) -> None:
    """Add the loss with the highest multiclass AUC on the validation part of the split."""
    ours = [f"MAUC {loss}" for loss in LOSSES]
    if all(name in results for name in ours):
        best = {}
        for table in tables:
            runs = zip(*(results[name][table] for name in ours), strict=True)
            best[table] = [max(run, key=lambda r: r["validation"]) for run in runs]
        results[BEST_OF_OURS] = best


def write_report(
    store: Store,
    folder: Path,
    *,
    protocol: str = "authors",
    preprocessings: Sequence[str] = ("rows", "standard"),
    tables: Sequence[str] = TABLES,
    depth: str = "full",
) -> list[Path]:
    """Write the table and the figures of each preprocessing; return the files."""
    files = []
    for preprocessing in preprocessings:
        results = read_results(store, protocol, preprocessing, tables, depth)
        if not results:
            continue
        stem = f"traditional-{protocol}-{preprocessing}"
        page = folder / f"{stem}.md"
        text = [_markdown(results, tables, protocol, preprocessing, stem), _margins(results, tables, protocol)]
        text.append(_rarest(stem))
        stopping = table_of_iterations(store, protocol, tables) if preprocessing == "rows" else None
        if stopping:
            note = "The table shows the mean test MAUC × 100 after so many accelerated gradient steps."
            text += ["## Stopping early", note, stopping]
        measured_on = machines(run for by_table in results.values() for runs in by_table.values() for run in runs)
        write_whole(page, "\n\n".join([*text, measured_on]) + "\n")
        files.append(page)
        names = list(results)
        files.append(save_figure(bars_with_points(points(results), tables), folder / f"{stem}-figure1.png"))
        figure = rare_pairs(_rare(results, tables), _pair_sizes(results, tables), floor=FLOOR)
        files.append(save_figure(figure, folder / f"{stem}-figure2.png"))
        test = rank_test(results, tables)
        if test:
            files.append(save_figure(critical_difference(names, test), folder / f"{stem}-ranks.png"))
    return files


def _rare(results: Results, tables: Sequence[str]) -> dict[str, dict[str, Floats]]:
    """Return the mean AUC_{i|j} × 100 over the splits by method and table, both directions of each of the rarest pairs;
    NaN where no split has the pair.
    """

    def mean(runs: list[dict[str, Any]]) -> Floats:
        values = np.array([directions_of(run, "counts", RARE_PAIRS) for run in runs])
        there = ~np.isnan(values)
        total = np.where(there, values, 0.0).sum(axis=0)
        return 100 * np.divide(total, there.sum(axis=0), out=np.full(len(total), np.nan), where=there.any(axis=0))

    return {name: {table: mean(by_table[table]) for table in tables} for name, by_table in results.items()}


def _pair_sizes(results: Results, tables: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Return the sizes of classes i and j in the whole table, for every value of :func:`_rare`."""
    some = next(iter(results.values()))
    return {table: direction_sizes(some[table][0]["counts"], RARE_PAIRS) for table in tables}


def _markdown(results: Results, tables: Sequence[str], protocol: str, preprocessing: str, stem: str) -> str:
    intro = (
        f"This page shows the paper's Figures 1 and 2 {SPLITS[protocol]}, with methods that the paper does not have. "
        f"The table shows test MAUC × 100: mean ± standard deviation over {splits(results)} ({protocol}), "
        f"preprocessing `{preprocessing}`. The validation part alone chooses hyper-parameters. The best mean of a "
        "column is bold; the last columns are the mean, the mean rank and the median milliseconds of the chosen fit."
    )
    parts = [intro, folded(f"All {len(results)} methods", score_table(results, tables, "ms", 1e-3))]
    test = rank_test(results, tables)
    if test:
        parts.append(friedman_sentence(test))
    parts.append(f"![Mean and splits of every method on every table]({stem}-figure1.png)")
    return "\n\n".join(parts)


def _rarest(stem: str) -> str:
    intro = (
        f"## The rarest pairs (Figure 2)\n\nThe figure shows the mean AUC_{{i|j}} × 100 over the splits, one line per "
        f"method; “i|j” are the sizes of the two classes. It has both directions of the {RARE_PAIRS} pairs with the "
        f"smallest p_i p_j in the whole table. Values below {FLOOR:g} are not drawn, as in the paper."
    )
    return f"{intro}\n\n![AUC of the rarest pairs of every table]({stem}-figure2.png)"


def _margins(results: Results, tables: Sequence[str], protocol: str) -> str:
    means = {name: {t: float(v.mean()) for t, v in by_table.items()} for name, by_table in points(results).items()}
    competitors = [name for name, entry in BASELINES.items() if entry.in_paper]
    intro = (
        "## Margins\n\nThe table shows differences of mean test MAUC × 100. Competitors are LR, BM, MM, IHT, NM and TL."
    )
    return f"{intro}\n\n{margins(means, tables, competitors, BEST_OF_OURS, protocol)}"
