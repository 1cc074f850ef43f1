"""Tables and figures of the tabular experiment, from the results that are on disk."""

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from experiments.plots import critical_difference
from experiments.report_parts import folded, machine, markdown_table, save_figure
from experiments.score_tables import (
    Results,
    friedman_sentence,
    means,
    median_seconds,
    points,
    rank_test,
    rare_pairs_of,
    read_common,
    splits,
    with_std,
)
from experiments.statistics import wilcoxon_holm
from experiments.store import Store, write_whole
from experiments.tabular.data import DEVELOPMENT, LOOKED_AT, SETS
from experiments.tabular.methods import OURS, entries
from mauc._text import as_cell

__all__ = ["every_set", "group_table", "groups_of", "read_results", "write_report"]

FRESH = "Held-out sets"
RAREST_SHARE = 0.25
FEW = 5
"""Methods that need not be folded away."""


def read_results(store: Store, sets: Sequence[str], depth: str) -> Results:
    """Return results by method and set, for the splits that all methods have; methods without any are left out."""
    return read_common(store, (depth,), sets, [entry.name for entry in entries()])


def write_report(store: Store, folder: Path, *, sets: Sequence[str] = SETS, depth: str = "full") -> list[Path]:
    """Write the page and the figure of ranks; return the files. Sets and methods without results are left out."""
    there = [s for s in sets if (store.folder / depth / s).is_dir()]
    results = read_results(store, there, depth) if there else {}
    if not results:
        return []
    groups = groups_of(there)
    parts = [f"# Tables\n\n{_intro(results)}", *(group_table(results, *group) for group in groups.items())]
    parts += ["## Every set", *(folded(f"{len(some)} sets", every_set(results, some)) for some in groups.values())]
    parts += ["All methods on every set: [tabular.csv](tabular.csv).", machine()]
    files = [folder / "tabular.md", folder / "tabular.csv"]
    write_whole(files[0], "\n\n".join(parts) + "\n")
    write_whole(files[1], _csv(results, there))
    test = rank_test(results, groups.get(FRESH, there))
    if test is not None:
        files.append(save_figure(critical_difference(list(results), test), folder / "tabular-ranks.png"))
    return files


def groups_of(sets: Sequence[str]) -> dict[str, list[str]]:
    """Group the sets by what was decided on them, held-out sets first; groups without a set are left out."""
    groups = {
        FRESH: [s for s in sets if s not in (*DEVELOPMENT, *LOOKED_AT)],
        "Public sets on which the stack was developed": [s for s in sets if s in LOOKED_AT],
        "Bundled sets on which the stack was developed": [s for s in sets if s in DEVELOPMENT],
    }
    return {title: some for title, some in groups.items() if some}


def _intro(results: Results) -> str:
    return (
        f"Test MAUC × 100 over {splits(results)}, stratified, 60 % training; hyper-parameters chosen by "
        "cross-validation inside the training part. Rarest pairs: mean AUC × 100 of the quarter of the class pairs "
        "with the fewest training samples. Seconds: median of the final fit; of a combination, of all its fits."
    )


def group_table(results: Results, title: str, sets: Sequence[str], ours: str = OURS) -> str:
    """Tabulate one line per method: mean, mean rank, rarest pairs, and the comparison with ours; best rank first."""
    names, mean, test = list(results), means(results, sets), rank_test(results, sets)
    ranks = rankdata(-mean, axis=1).mean(axis=0)
    head = ["method", "mean", "rank", "rarest pairs", "fit s", *(["predict s"] if len(_times(results)) > 1 else [])]
    rows = {
        names[k]: [
            names[k],
            f"{mean[:, k].mean():.2f}",
            f"{ranks[k]:.1f}",
            f"{100 * np.mean([np.nanmean([_rare_auc(r) for r in results[names[k]][s]]) for s in sets]):.2f}",
            *(f"{median_seconds(results, names[k], sets, of):.2f}" for of in _times(results)),
        ]
        for k in np.lexsort((-mean.mean(axis=0), ranks))
    }
    lines = [f"## {title} ({len(sets)})"]
    if len(names) > 1 and len(sets) > 2 and ours in results:
        head += [f"{ours} − it", "won–lost", "p (Holm)" if len(names) > 2 else "p"]
        reference = names.index(ours)
        difference = mean[:, [reference]] - mean
        won, lost = (difference > 1e-9).sum(axis=0), (difference < -1e-9).sum(axis=0)
        corrected = wilcoxon_holm(mean, reference)
        for k, name in enumerate(names):
            theirs = [f"{difference[:, k].mean():+.2f}", f"{won[k]}–{lost[k]}", f"{corrected[k]:.4f}"]
            rows[name] += ["", "", ""] if k == reference else theirs
        corrections = f", corrected by Holm for {len(names) - 1} methods" if len(names) > 2 else ""
        lines.append(
            f"{friedman_sentence(test) + ' ' if test else ''}p: Wilcoxon's test over the sets, two-sided{corrections}; "
            f"the smallest p that it can give{', before correction,' if corrections else ''} is "
            f"{2.0 ** (1 - len(sets)):.1e}."
        )
    table = markdown_table(head, list(rows.values()))
    listed = f"{', '.join(sets)}.\n\n{table}"
    return "\n\n".join([*lines, listed if len(names) <= FEW else folded(f"All {len(names)} methods", listed)])


def _times(results: Results) -> list[str]:
    """Return the names of the times in the results."""
    runs = [run for by_set in results.values() for of_set in by_set.values() for run in of_set]
    return [time for time in ("fit_seconds", "predict_seconds") if any(time in run for run in runs)]


def every_set(results: Results, sets: Sequence[str], most_methods: int = 8) -> str:
    """Tabulate one line per set, with the methods of the best mean ranks."""
    names, by_method, mean = list(results), points(results), means(results, sets)
    few = np.argsort(rankdata(-mean, axis=1).mean(axis=0), kind="stable")[:most_methods].tolist()
    rows = []
    for s, name in enumerate(sets):
        run = results[names[0]][name][0]
        sizes = np.add(run["train_counts"], run["test_counts"])
        row = [name, str(sizes.sum()), str(len(sizes)), f"{sizes.max() / sizes.min():.0f}"]
        best = int(mean[s].argmax())
        row += [with_std(by_method[names[k]][name], mean[s, best]) for k in few]
        shown = mean[s, few].max() >= mean[s, best] - 1e-9
        rows.append([*row, "" if shown else f"{names[best]} {mean[s, best]:.2f}"])
    head = ["set", "rows", "classes", "largest : smallest", *(names[k] for k in few), "best of the others"]
    return markdown_table(head, rows)


def _csv(results: Results, sets: Sequence[str]) -> str:
    """Return one line per set and method; names of sets may come from files of users."""
    by_method, text = points(results), StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["set", "method", "splits", "mean", "std", "rarest_pairs", "fit_seconds"])
    for s in sets:
        for name in results:
            scores, rarest = by_method[name][s], 100 * np.nanmean([_rare_auc(r) for r in results[name][s]])
            numbers = (scores.mean(), scores.std(), rarest, median_seconds(results, name, [s]))
            out.writerow([as_cell(s), name, len(scores), *(f"{number:.4f}" for number in numbers)])
    return text.getvalue()


def _rare_auc(run: dict[str, Any]) -> float:
    """Return the mean AUC of the rarest quarter of the pairs that the test part has."""
    pairs = rare_pairs_of(run, "train_counts")
    known = pairs[~np.isnan(pairs)]
    return float(known[: max(1, int(RAREST_SHARE * len(known)))].mean())
