"""A judgement in the terminal and in JSON."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD

from mauc.cli.output import TextTable
from mauc.report import Judgement
from mauc.report.numbers import as_json

__all__ = ["as_json", "comparison", "headline", "sizes", "worst_pairs"]

WORST = 5
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
    """The ordered pairs that the model ranks worst."""
    matrix = judgement.headline.matrix
    n = len(matrix)
    pairs = sorted((matrix[i, j], i, j) for i in range(n) for j in range(n) if i != j)[:WORST]
    table = TextTable(f"The {len(pairs)} worst pairs of classes")
    for heading in ("class", "rows", "ranked against", "rows", "AUC"):
        table.add_column(heading, justify="right")
    for auc, i, j in pairs:
        names, counts = judgement.labels, judgement.counts
        table.add_row(names[i], str(counts[i]), names[j], str(counts[j]), f"{auc:.4f}")
    return table


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
        difference, p = ("–", "–") if test is None else (f"{test.comparison.difference:+.4f}", _p(test.holm))
        row = (f"{interval.score:.4f}", reach, f"{model.ova.score:.4f}", f"{model.accuracy:.4f}", difference, p)
        table.add_row(model.name, *row)
    return table


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
