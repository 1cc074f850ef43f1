"""Tables and figures of the tabular experiment, from the results that are on disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mauc.bench.plots import bars_with_points, critical_difference
from mauc.bench.report_parts import machine, markdown_table, save_figure
from mauc.bench.score_tables import Results, means, pair_scores, points, rank_test, read_common, score_table, splits
from mauc.bench.statistics import friedman, wilcoxon_holm
from mauc.bench.store import Store, write_whole
from mauc.bench.tabular import DEVELOPMENT, SETS
from mauc.bench.tabular_methods import OURS, entries

__all__ = ["read_results", "write_report"]

RAREST_SHARE = 0.25


def read_results(store: Store, sets: Sequence[str], depth: str) -> Results:
    """Results by method and set, for the splits that all methods have; methods without any are left out."""
    return read_common(store, (depth,), sets, [entry.name for entry in entries()])


def write_report(store: Store, folder: Path, *, sets: Sequence[str] = SETS, depth: str = "full") -> list[Path]:
    """Write the page and its figures; returns the files. Sets and methods without results are left out."""
    there = [s for s in sets if (store.folder / depth / s).is_dir()]
    results = read_results(store, there, depth) if there else {}
    if not results:
        return []
    page = folder / "tabular.md"
    parts = [_scores(results, there), _tests(results, there), _rarest(results, there), machine()]
    write_whole(page, "\n\n".join(part for part in parts if part) + "\n")
    files = [page, save_figure(bars_with_points(points(results), there), folder / "tabular-sets.png")]
    test = rank_test(results, there)
    if test:
        files.append(save_figure(critical_difference(list(results), test), folder / "tabular-ranks.png"))
    return files


def _scores(results: Results, sets: Sequence[str]) -> str:
    intro = (
        f"Test MAUC × 100, mean ± standard deviation over {splits(results)} stratified splits with 60 % training; "
        "hyper-parameters chosen by cross-validation inside the training part; best mean of a column in bold; last "
        "columns: mean, mean rank, median seconds of the final fit (of a combination: of all its fits)."
    )
    return f"# Tables\n\n{intro}\n\n{score_table(results, sets, 's', 1.0)}"


def _tests(results: Results, sets: Sequence[str]) -> str:
    """Friedman's test, and the reference against each other method: over all sets, and over those nothing was chosen
    on.
    """
    if rank_test(results, sets) is None or OURS not in results:
        return ""
    names = list(results)
    reference = names.index(OURS)
    groups = {"all sets": list(sets), "judged sets": [s for s in sets if s not in DEVELOPMENT]}
    groups = {title: chosen for title, chosen in groups.items() if len(chosen) > 2}
    head, columns, lines = [f"{OURS} against"], [], []
    for title, chosen in groups.items():
        mean = means(results, chosen)
        test = friedman(mean)
        lines.append(
            f"- {title} ({len(chosen)}): Friedman χ² = {test.statistic:.1f}, p = {test.pvalue:.1e}; mean ranks further "
            f"apart than {test.critical_difference:.1f} differ at 5 % (Nemenyi); rank of {OURS} "
            f"{test.mean_ranks[reference]:.2f}. The least p that Wilcoxon can give there, before Holm's correction for "
            f"{len(names) - 1} methods, is {2.0 ** (1 - len(chosen)):.1e}."
        )
        difference = mean[:, [reference]] - mean
        wins, losses = (difference > 1e-9).sum(axis=0), (difference < -1e-9).sum(axis=0)
        corrected = wilcoxon_holm(mean, reference)
        head += [f"{title}: difference", "won–lost", "p (Holm)"]
        columns.append(
            [
                (f"{difference[:, k].mean():+.2f}", f"{wins[k]}–{losses[k]}", f"{corrected[k]:.3f}")
                for k in range(len(names))
            ]
        )
    others = sorted((k for k in range(len(names)) if k != reference), key=lambda k: float(columns[0][k][0]))
    rows = [[names[k], *(text for column in columns for text in column[k])] for k in others]
    note = f"Chosen on, and not judged: {', '.join(s for s in sets if s in DEVELOPMENT) or 'none'}."
    return "\n\n".join(["## Tests", "\n".join([*lines, f"- {note}"]), markdown_table(head, rows)])


def _rarest(results: Results, sets: Sequence[str]) -> str:
    """Mean AUC of the rarest quarter of the class pairs."""
    rows = []
    for name, by_set in results.items():
        by_name = [100 * float(np.nanmean([_rare_auc(run) for run in by_set[s]])) for s in sets]
        rows.append((float(np.mean(by_name)), [name, *(f"{v:.2f}" for v in by_name), f"{np.mean(by_name):.2f}"]))
    rows.sort(key=lambda row: -row[0])
    intro = "## Rarest pairs\n\nMean AUC × 100 of the quarter of the class pairs with the fewest training samples."
    return f"{intro}\n\n{markdown_table(['method', *sets, 'mean'], [row for _, row in rows])}"


def _rare_auc(run: dict[str, Any]) -> float:
    pairs, sizes = pair_scores(run, "train_counts")
    there = ~np.isnan(pairs)
    rarest = np.argsort(sizes[there], kind="stable")[: max(1, int(RAREST_SHARE * there.sum()))]
    return float(pairs[there][rarest].mean())
