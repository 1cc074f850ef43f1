"""Show a judgement in the terminal."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mauc._cli.output import TextTable
from mauc._tables.training import Entry
from mauc.metrics import BinnedMAUC, Importance, Interval
from mauc.report import Judgement
from mauc.report.advice import advice as advice_of
from mauc.report.numbers import as_json as as_json


def headline(judgement: Judgement, decided: str = "") -> list[str]:
    """Return lines with the test scores, beside the scores of always guessing the largest class.

    ``decided`` says how the model predicts classes.
    """
    model, guess = judgement.headline, judgement.guess
    reach = f"{judgement.level_text} interval {model.mauc.low:.4f} to {model.mauc.high:.4f}"
    always = f"always guessing {guess.label}:"
    lines = [
        f"MAUC (every pair of classes counts the same)     {model.mauc.score:.4f}   {reach}",
        f"MAUC, one-vs-rest (frequent classes count more)  {model.ova.score:.4f}",
        f"accuracy                                         {model.accuracy:.4f}   {always} {guess.accuracy:.4f}",
        f"balanced accuracy                                {model.balanced_accuracy:.4f}   {always} "
        f"{guess.balanced_accuracy:.4f}",
    ]
    return [*lines, *([f"({decided})"] if decided else []), *judgement.notes]


class Counted(NamedTuple):
    """Scores from counts in bins, for people and for programs."""

    lines: list[str | TextTable]
    as_json: dict[str, Any]


def binned(state: BinnedMAUC, level: float) -> Counted:
    """Return what ``mauc evaluate --bins`` prints."""
    found, bound = state.interval(level), state.error_bound()
    ova, ova_bound = state.score("ova"), state.error_bound("ova")
    matrix = state.pairwise_auc()
    counts = state.counts.sum(axis=2).diagonal()
    reach = f"{100 * level:g} % interval {found.low:.6f} to {found.high:.6f}"
    table = TextTable("Classes", ["class"], ["test rows", "mean AUC"])
    for label, n, mean in zip(state.labels.tolist(), counts.tolist(), np.nanmean(matrix, axis=1), strict=True):
        table.add_row(label, f"{n:,}", f"{mean:.6f}")
    lines: list[str | TextTable] = [
        f"MAUC (every pair of classes counts the same)     {found.score:.6f} ± {bound:.1g}   {reach}",
        f"MAUC, one-vs-rest (frequent classes count more)  {ova:.6f} ± {ova_bound:.1g}",
        f"± is the most by which {state.bins:,} bins can change the score of {state.n_rows:,} rows; there is no report",
        "",
        table,
    ]
    numbers = {
        "rows": state.n_rows,
        "bins": state.bins,
        "mauc": {**vars(found), "bound": bound},
        "ova": {"score": ova, "bound": ova_bound},
        "classes": dict(zip(state.labels.tolist(), counts.tolist(), strict=True)),
        "pairs": matrix.tolist(),
    }
    return Counted(lines, numbers)


def sizes(judgement: Judgement, training: Mapping[str, int] | None = None, most: int = 20) -> TextTable:
    """Return the rows of each class, or of the rarest if there are many."""
    labels = judgement.labels
    shown = range(max(0, len(labels) - most), len(labels))
    title = "Classes" if len(shown) == len(labels) else f"The {most} rarest of {len(labels)} classes"
    further = judgement.further
    before, after = ["training rows"] if training is not None else [], ["recall"] if further is not None else []
    table = TextTable(title, ["class"], [*before, "test rows", "mean AUC", *after])
    means = judgement.class_auc
    for k in shown:
        trained = [f"{training.get(labels[k], 0):,}"] if training is not None else []
        recall = [f"{further.classes[k].recall.score:.4f}"] if further is not None else []
        table.add_row(labels[k], *trained, f"{judgement.counts[k]:,}", f"{means[k]:.4f}", *recall)
    return table


def worst_pairs(judgement: Judgement, most: int = 5) -> TextTable:
    """Return the pairs whose simultaneous intervals have the lowest upper ends."""
    pairs = judgement.worst[:most]
    n_pairs = len(judgement.labels) * (len(judgement.labels) - 1) // 2
    title = f"Weakest class pairs; the intervals of all {n_pairs:,} pairs hold together"
    title = "Weakest class pair" if n_pairs == 1 else title
    headings = ("class", "test rows", "and", "test rows", "AUC", f"{judgement.level_text} interval")
    table = TextTable(title, (), headings)
    names, counts = judgement.labels, judgement.counts
    for pair in pairs:
        i, j, found = pair.i, pair.j, pair.interval
        table.add_row(names[i], f"{counts[i]:,}", names[j], f"{counts[j]:,}", f"{found.score:.4f}", _range(found))
    return table


def advice(judgement: Judgement) -> list[str]:
    """Return what the test rows suggest to do next; often nothing."""
    found = advice_of(judgement)
    return ["What to do next", *(f"- {line}" for line in found), ""] if found else []


def importance_table(found: Sequence[Importance], how: str, most: int = 10) -> list[str | TextTable]:
    """Return the most important columns, and how their importance was computed."""
    if not found:
        return [how] if how else []
    which = f"; the top {most} of {len(found)} columns" if len(found) > most else ""
    table = TextTable("", (), ("column", "drop", "standard error"))
    for each in found[:most]:
        table.add_row(each.column, f"{each.drop:z.4f}", f"{each.stderr:.4f}" if each.drop else "–")
    return [f"Permutation importance (MAUC drop): {how}{which}", table]


def comparison(judgement: Judgement, entries: Sequence[Entry] = ()) -> TextTable:
    """Return the scores of all models, with paired tests against the first.

    The entries of a leaderboard, if given, add validation scores and seconds of training.
    """
    trained = {entry.name: entry for entry in entries}
    interval = f"{judgement.level_text} interval"
    title = "Models compared; p: paired test against the first, corrected for their number"
    headings = ["MAUC", interval, "difference", "p"]
    if trained:  # short headings, so that the names of the models fit into 80 columns
        title = "Models compared by MAUC; p: corrected paired test against the first; s: seconds"
        headings = ["validation", "test", interval, "vs first", "p", "s"]
    table = TextTable(title, ["model"], headings, narrow=True)
    tests = {test.a: test for test in judgement.tests}
    for model in judgement.models:
        row, seconds = [f"{model.mauc.score:.4f}", _range(model.mauc)], []
        if trained:
            entry = trained[model.name]
            row.insert(0, "–" if math.isnan(entry.validation) else f"{entry.validation:.4f}")
            seconds = [f"{entry.seconds:.1f}" if entry.seconds else "–"]
        test = tests.get(model.name)
        against_first = ("–", "–") if test is None else _tested(test.difference, test.holm)
        table.add_row(model.name, *row, *against_first, *seconds)
    return table


def _range(interval: Interval) -> str:
    """Return both ends of an interval; a dash for constant scores, whose AUC is always 0.5."""
    return f"{interval.low:.4f}–{interval.high:.4f}" if interval.low < interval.high else "–"


def subgroups(judgement: Judgement) -> list[TextTable]:
    """Return the scores of the first model on each subgroup; nothing if there are none."""
    if not judgement.subgroups:
        return []
    title = "Subgroups, each minus the mean of the others; p: corrected for the number of levels"
    if len(judgement.subgroups) > 2 and not math.isnan(judgement.subgroups_pvalue):
        title += f"; any difference: p = {_pvalue(judgement.subgroups_pvalue)}"
    table = TextTable(title, ["level"], ("test rows", "MAUC", f"{judgement.level_text} interval", "difference", "p"))
    for one in judgement.subgroups:
        known, tested = not math.isnan(one.mauc.score), not math.isnan(one.holm)
        table.add_row(
            one.level,
            f"{one.rows:,}",
            f"{one.mauc.score:.4f}" if known else "–",
            f"{one.mauc.low:.4f}–{one.mauc.high:.4f}" if known else "–",
            *(_tested(one.difference.difference, one.holm) if tested else ("–", "–")),
        )
    return [table]


def _tested(difference: float, pvalue: float) -> tuple[str, str]:
    """Return a difference and its p-value as cells."""
    return f"{difference:+z.4f}", _pvalue(pvalue)


def _pvalue(pvalue: float) -> str:
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}"
