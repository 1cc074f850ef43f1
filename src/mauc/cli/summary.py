"""A judgement in the terminal and in JSON."""

import math
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD

from mauc.cli.output import TextTable
from mauc.metrics import Importance
from mauc.report import Judgement
from mauc.report.numbers import as_json
from mauc.tables.leaderboard import Leaderboard

__all__ = ["as_json", "comparison", "headline", "importance", "leaderboard", "sizes", "worst_pairs"]

WORST = 5
COLUMNS = 10
MOST_SIZES = 20


def headline(judgement: Judgement) -> list[str]:
    """The two multiclass AUCs and accuracy, as lines."""
    model = judgement.headline
    reach = f"{judgement.level_text} interval {model.mauc.low:.4f} to {model.mauc.high:.4f}"
    lines = [
        f"MAUC (ovo, every pair of classes counts the same)  {model.mauc.score:.4f}   {reach}",
        f"MAUC (ova, frequent classes count more)            {model.ova.score:.4f}",
        f"accuracy                                           {model.accuracy:.4f}",
    ]
    return [*lines, *judgement.notes]


def sizes(judgement: Judgement, training: Mapping[str, int] | None = None) -> TextTable:
    """Rows of each class, the rarest ones if there are many."""
    labels = judgement.labels
    shown = range(len(labels)) if len(labels) <= MOST_SIZES else range(len(labels) - MOST_SIZES, len(labels))
    title = "Rows of each class" if len(shown) == len(labels) else f"Rows of the {MOST_SIZES} rarest of {len(labels)}"
    table = TextTable(title)
    table.add_column("class")
    for heading in (*(["training"] if training is not None else []), "judged", "mean AUC"):
        table.add_column(heading, justify="right")
    means = judgement.class_auc
    for k in shown:
        before = [str(training.get(labels[k], 0))] if training is not None else []
        table.add_row(labels[k], *before, str(judgement.counts[k]), f"{means[k]:.4f}")
    return table


def worst_pairs(judgement: Judgement) -> TextTable:
    """The pairs that these rows show to be ranked worst: by the high end of their intervals."""
    pairs = judgement.worst[:WORST]
    table = TextTable(f"The {len(pairs)} worst pairs of classes, by the high end of intervals")
    for heading in ("class", "rows", "and", "rows", "mean AUC", f"{judgement.level_text} interval"):
        table.add_column(heading, justify="right")
    names, counts = judgement.labels, judgement.counts
    for pair in pairs:
        i, j, found = pair.i, pair.j, pair.interval
        reach = f"{found.low:.3f}–{found.high:.3f}"
        table.add_row(names[i], str(counts[i]), names[j], str(counts[j]), f"{found.score:.4f}", reach)
    return table


def leaderboard(judgement: Judgement, board: Leaderboard) -> TextTable:
    """The models that were compared, the winner first: how it was chosen, and how all fare on the rows judged by."""
    table = TextTable("Models compared; p: paired test against the first", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("model", overflow="fold")
    for heading in ("validation", "MAUC", f"{judgement.level_text} interval", "difference", "p"):
        table.add_column(heading, justify="right")
    tests = {test.name: test for test in judgement.tests}
    scores = {model.name: model for model in judgement.models}
    for entry in board.tried:
        found, test = scores[entry.name].mauc, tests.get(entry.name)
        difference, p = ("–", "–") if test is None else (f"{test.comparison.difference:+z.4f}", _p(test.holm))
        validation = "–" if math.isnan(entry.validation) else f"{entry.validation:.4f}"
        reach = f"{found.low:.3f}–{found.high:.3f}"
        table.add_row(entry.name, validation, f"{found.score:.4f}", reach, difference, p)
    return table


def importance(found: Sequence[Importance], how: str) -> list[str | TextTable]:
    """The columns that the model needs most, over all pairs of classes and for each pair that was asked for."""
    said: list[str | TextTable] = []
    for pair in dict.fromkeys(each.pair for each in found):
        rows = [each for each in found if each.pair == pair]
        of = "" if pair is None else f" of {pair[0]} and {pair[1]}"
        which = f"; the first {COLUMNS} of {len(rows)} columns" if len(rows) > COLUMNS else ""
        table = TextTable("")
        for heading in ("column", "MAUC lost", "standard error"):
            table.add_column(heading, justify="right")
        for each in rows[:COLUMNS]:
            table.add_row(each.column, f"{each.drop:z.4f}", f"{each.stderr:.4f}")
        said += [f"What the MAUC{of} loses without a column ({how}{which})", table]
    return said or ([how] if how else [])


def comparison(judgement: Judgement) -> TextTable:
    """All models; differences and paired tests against the first."""
    title = f"Models compared; p: paired test against {judgement.headline.name}"
    table = TextTable(title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("model", overflow="fold")
    for heading in ("MAUC", f"{judgement.level_text} interval", "ova", "accuracy", "difference", "p"):
        table.add_column(heading, justify="right")
    tests = {test.name: test for test in judgement.tests}
    for model in judgement.models:
        interval, test = model.mauc, tests.get(model.name)
        reach = f"{interval.low:.3f}–{interval.high:.3f}"
        difference, p = ("–", "–") if test is None else (f"{test.comparison.difference:+z.4f}", _p(test.holm))
        row = (f"{interval.score:.4f}", reach, f"{model.ova.score:.4f}", f"{model.accuracy:.4f}", difference, p)
        table.add_row(model.name, *row)
    return table


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
