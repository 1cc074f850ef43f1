"""Tables and figures of the tabular experiment, from the results that are on disk."""

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from mauc._text import as_cell
from mauc.experiments.plots import bars_with_points, critical_difference
from mauc.experiments.report_parts import folded, machine, markdown_table, save_figure
from mauc.experiments.score_tables import (
    Results,
    fit_seconds,
    friedman_sentence,
    means,
    points,
    rank_test,
    rare_pairs_of,
    read_common,
    score_table,
    splits,
    with_std,
)
from mauc.experiments.statistics import wilcoxon_holm
from mauc.experiments.store import Store, write_whole
from mauc.experiments.tabular.data import DEVELOPMENT, LOOKED_AT, SETS
from mauc.experiments.tabular.methods import OURS, entries

__all__ = ["read_results", "write_report"]

RAREST_SHARE = 0.25
FIGURE_SETS = 15
"""Panels, and columns of a table, that can be read."""
SHOWN = 8
"""Methods in a table of more sets than that."""


def read_results(store: Store, sets: Sequence[str], depth: str) -> Results:
    """Results by method and set, for the splits that all methods have; methods without any are left out."""
    return read_common(store, (depth,), sets, [entry.name for entry in entries()])


def write_report(store: Store, folder: Path, *, sets: Sequence[str] = SETS, depth: str = "full") -> list[Path]:
    """Write the page and its figures; returns the files. Sets and methods without results are left out."""
    there = [s for s in sets if (store.folder / depth / s).is_dir()]
    results = read_results(store, there, depth) if there else {}
    if not results:
        return []
    fresh = [s for s in there if s not in (*DEVELOPMENT, *LOOKED_AT)]
    seen = [s for s in there if s in LOOKED_AT]
    chosen_on = [s for s in there if s in DEVELOPMENT]
    groups = {
        "Sets kept for judging": fresh,
        "Sets after which one rule was changed": seen,
        "Both together": [*fresh, *seen] if fresh and seen else [],
        "Sets on which the defaults were chosen": chosen_on,
    }
    groups = {title: sets for title, sets in groups.items() if sets}
    page = folder / "tabular.md"
    parts = [f"# Tables\n\n{_intro(results)}", *(_group(results, *group) for group in groups.items()), "## Every set"]
    parts += [folded(f"{len(sets)} sets", _every_set(results, sets)) for sets in (fresh, seen, chosen_on) if sets]
    parts += ["All methods on every set: [tabular.csv](tabular.csv).", machine()]
    write_whole(page, "\n\n".join(parts) + "\n")
    numbers = folder / "tabular.csv"
    write_whole(numbers, _csv(results, there))
    files = [page, numbers]
    if len(there) <= FIGURE_SETS:
        files.append(save_figure(bars_with_points(points(results), there), folder / "tabular-sets.png"))
    judging = next(some for some in (fresh, [*fresh, *seen], there) if len(some) > 2 or some is there)
    test = rank_test(results, judging)
    if test:
        files.append(save_figure(critical_difference(list(results), test), folder / "tabular-ranks.png"))
    return files


def _intro(results: Results) -> str:
    return (
        f"Test MAUC × 100 over {splits(results)}, stratified, 60 % training; hyper-parameters chosen by "
        "cross-validation inside the training part. Rarest pairs: mean AUC × 100 of the quarter of the class pairs "
        "with the fewest training samples. Seconds: median of the final fit; of a combination, of all its fits."
    )


def _group(results: Results, title: str, sets: Sequence[str]) -> str:
    """One line per method: mean, mean rank, rarest pairs, and how the reference does against it; best rank first."""
    names, mean, test = list(results), means(results, sets), rank_test(results, sets)
    ranks = np.full(len(names), np.nan) if test is None else test.mean_ranks
    order = np.argsort(-mean.mean(axis=0) if test is None else ranks, kind="stable")
    head = ["method", "mean", "rank", "rarest pairs", "fit s"]
    rows = {
        names[k]: [
            names[k],
            f"{mean[:, k].mean():.2f}",
            "" if test is None else f"{ranks[k]:.1f}",
            f"{100 * np.mean([np.nanmean([_rare_auc(r) for r in results[names[k]][s]]) for s in sets]):.2f}",
            f"{fit_seconds(results, names[k], sets):.2f}",
        ]
        for k in order
    }
    lines = [f"## {title} ({len(sets)})"]
    if test is not None and OURS in results:
        head += [f"{OURS} − it", "won–lost", "p (Holm)"]
        reference = names.index(OURS)
        difference = mean[:, [reference]] - mean
        won, lost = (difference > 1e-9).sum(axis=0), (difference < -1e-9).sum(axis=0)
        corrected = wilcoxon_holm(mean, reference)
        for k, name in enumerate(names):
            theirs = [f"{difference[:, k].mean():+.2f}", f"{won[k]}–{lost[k]}", f"{corrected[k]:.4f}"]
            rows[name] += ["", "", ""] if k == reference else theirs
        lines.append(
            f"{friedman_sentence(test)} Wilcoxon's test over the sets, two-sided, is corrected by Holm "
            f"for {len(names) - 1} methods; its least p there is, before that, {2.0 ** (1 - len(sets)):.1e}."
        )
    table = markdown_table(head, list(rows.values()))
    return "\n\n".join([*lines, folded(f"All {len(names)} methods", f"{', '.join(sets)}.\n\n{table}")])


def _every_set(results: Results, sets: Sequence[str]) -> str:
    """Methods by sets; of many sets one line each, with the methods of the best mean ranks."""
    if len(sets) <= FIGURE_SETS:
        return score_table(results, sets, "s", 1.0)
    names, by_method, mean, test = list(results), points(results), means(results, sets), rank_test(results, sets)
    order = list(range(len(names))) if test is None else np.argsort(test.mean_ranks, kind="stable").tolist()
    rows = []
    for s, name in enumerate(sets):
        run = results[names[0]][name][0]
        sizes = np.add(run["train_counts"], run["test_counts"])
        row = [name, str(sizes.sum()), str(len(sizes)), f"{sizes.max() / sizes.min():.0f}"]
        best = int(mean[s].argmax())
        row += [with_std(by_method[names[k]][name], mean[s, best]) for k in order[:SHOWN]]
        shown = mean[s, order[:SHOWN]].max() >= mean[s, best] - 1e-9
        rows.append([*row, "" if shown else f"{names[best]} {mean[s, best]:.2f}"])
    head = ["set", "rows", "classes", "largest : smallest", *(names[k] for k in order[:SHOWN]), "best of the others"]
    return markdown_table(head, rows)


def _csv(results: Results, sets: Sequence[str]) -> str:
    """One line per set and method; sets may be named by files of others."""
    by_method, text = points(results), StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["set", "method", "splits", "mean", "std", "rarest_pairs", "fit_seconds"])
    for s in sets:
        for name in results:
            scores, rarest = by_method[name][s], 100 * np.nanmean([_rare_auc(r) for r in results[name][s]])
            numbers = (scores.mean(), scores.std(), rarest, fit_seconds(results, name, [s]))
            out.writerow([as_cell(s), name, len(scores), *(f"{number:.4f}" for number in numbers)])
    return text.getvalue()


def _rare_auc(run: dict[str, Any]) -> float:
    """Mean AUC of the rarest quarter of the pairs that the test part has."""
    pairs = rare_pairs_of(run, "train_counts")
    known = pairs[~np.isnan(pairs)]
    return float(known[: max(1, int(RAREST_SHARE * len(known)))].mean())
