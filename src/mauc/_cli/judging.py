"""Judge tables of scores: find the rows, the classes and the score columns of each model, in memory or in parts."""

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mauc._cli.output import current
from mauc._tables.data import parse_groups
from mauc._tables.errors import Failure, Usage
from mauc._tables.flags import are_recurring_codes
from mauc._tables.parts import Parts, ScoreColumns, available_memory
from mauc._tables.read import check_column, count_of, get_column, has_class, rows_with_lists
from mauc._tables.saved_scores import TRAINED_ON, cell_hashes, trained_note
from mauc._tables.scores import RowClasses, WholeTable, as_in_columns, score_columns, scored_rows, smallest_ints
from mauc._tables.text import PREDICTED
from mauc._text import as_cell, of_cell
from mauc.report import Judgement, judge
from mauc.report.judgement import judge_rows

GIB = 2.0**30
BY_SCORE = "predicted class: the one with the highest score, ties in equal parts"
ScoreTable = WholeTable | Parts
Models = dict[str, tuple[Any, dict[str, str]]]
"""The table of each model, and the score column of each class in it."""


@dataclass(frozen=True)
class ScoreTables:
    """Scores of one model or of several for the same rows; all tables are in memory, or all are read in parts."""

    scores: ScoreTable
    others: Sequence[ScoreTable]
    truth: ScoreTable | None
    """A table with the class of each row; None: the first scores have it."""
    target: str
    prefix: str | None
    """Text before the class in the names of score columns; None: detected."""

    @property
    def source(self) -> ScoreTable:
        """The table with the class of each row."""
        return self.truth or self.scores

    @property
    def models(self) -> tuple[ScoreTable, ...]:
        return self.scores, *self.others

    @property
    def all(self) -> list[Any]:
        return [*self.models, *([self.truth] if self.truth else [])]

    def each(self, change: Callable[[Any], ScoreTable]) -> "ScoreTables":
        """Return these tables, changed one by one."""
        scores, others = change(self.scores), [change(table) for table in self.others]
        return replace(self, scores=scores, others=others, truth=change(self.truth) if self.truth else None)

    def target_in(self, table: ScoreTable) -> str:
        """Return the name of the target column, which ``mauc predict`` may have quoted."""
        quoted = str(as_cell(self.target))
        return quoted if self.target not in table.names and quoted in table.names else self.target

    def check_rows(self) -> None:
        """Check that the target is there, and that all tables have the same number of rows."""
        source, scores, truth, column = self.source, self.scores, self.truth, self.target_in(self.source)
        if truth and column not in truth.names and self.target_in(scores) in scores.names:
            raise Usage(
                f"--truth {truth.display} has no column {self.target!r}, but {scores.display} has: name the scores "
                "first, then --truth"
            )
        hint = "" if truth else "; if another table of the same rows has it, name that table with --truth"
        check_column(source.names, column, "--target", source.display, hint)
        for table in self.models:
            if table.n_rows != source.n_rows:
                raise Failure(
                    f"{table.display} has {table.n_rows} rows and {source.display} has {source.n_rows}: they must be "
                    "of the same rows in the same order"
                )

    def align(self, keys: Collection[str] = ()) -> tuple[RowClasses, Any, list[str], Models]:
        """Return the class of each row to judge, a mask of these rows, the classes that have scores, and the models.

        Tables of different classes are refused. ``keys`` are columns that hold no scores, beside the target.
        """
        source, scores = self.source, self.scores
        true = self._classes_of(source, scores)
        rows = scored_rows(true, self._score_names(scores, keys), scores.display, self.prefix)
        judged = true if rows.all() else true.subset(rows)
        classes: list[str] = []
        models: Models = {}
        for table in self.models:
            theirs = self._own_classes(table) if table is not source else None
            if theirs is not None:
                place = {label: k for k, label in enumerate(true.labels.tolist())}
                codes = np.array([place.get(label, -1) for label in theirs.labels.tolist()])[theirs.codes]
                differ = np.flatnonzero(codes != true.codes)
                if len(differ):
                    raise Failure(
                        f"{table.display} has other classes in {self.target!r} than {source.display} (first: row "
                        f"{table.row_number(differ[0])}): both need the same rows in the same order"
                    )
            names = self._score_names(table, keys)
            columns = score_columns(names, judged.labels.tolist(), table.display, self.prefix)
            classes = classes or list(columns)
            odd = sorted(columns.keys() ^ set(classes))
            if odd:
                raise Failure(
                    f"only one of {table.display} and {scores.display} scores the class {odd[0]!r}: both must score "
                    "the same classes"
                )
            others = [each.name for each in self.models if each is not table]
            name = table.display if table.name in others else table.name
            if name in models:
                raise Usage(
                    f"--compare {table.display} is given twice, or is the scores file itself: name another file"
                )
            models[name] = table, columns
        return judged, rows, classes, models

    def _classes_of(self, table: ScoreTable, scored: ScoreTable) -> RowClasses:
        """Return the class of each row, named as the columns of another table are."""
        found = table.classes(self.target_in(table))
        return found.renamed(as_in_columns(found.labels.tolist(), scored.names, self.prefix))

    def _own_classes(self, table: ScoreTable) -> RowClasses | None:
        """Return the class of each row in a table of scores; None if it has none, or gaps where another has them."""
        if self.target_in(table) not in table.names:
            return None
        try:
            return self._classes_of(table, table)
        except Failure:
            if table is self.scores:  # mauc predict copies a target that is not known yet
                return None
            raise

    def _score_names(self, table: ScoreTable, keys: Collection[str]) -> list[str]:
        return [name for name in table.names if name not in {self.target_in(table), *keys}]

    def check_cells(self, ignored: Collection[str]) -> None:
        """Refuse tables in memory whose common columns differ: their rows are others, or in another order.

        Numbers with fractions may differ: they may be scores of a class without a row.
        """
        first: dict[str, Any] = {}
        for table in self.all:
            for name in table.names:
                other = first.setdefault(name, table)
                pair = [each.rows[name] for each in (table, other)]
                if name in ignored or other is table or any(map(rows_with_lists, pair)):
                    continue
                if any(values.dtype.kind == "f" and (values % 1 > 0).any() for values in pair):
                    continue
                mine, theirs = (cell_hashes(values.to_frame())[name] for values in pair)
                differ = np.flatnonzero(mine != theirs)
                if len(differ):
                    raise Failure(
                        f"{table.display} and {other.display} must have the same rows in the same order, got other "
                        f"cells in column {name!r} (first: row {table.row_number(differ[0])}): sort both files alike, "
                        "or leave the column out of one if it does not describe the rows"
                    )


def judge_whole(
    tables: ScoreTables, *, group: str | None, by: str | None, drop_unlabelled: bool, level: float
) -> tuple[Judgement, str]:
    """Judge tables in memory; say how the first model predicts classes."""
    scores: Any = tables.scores
    source: Any = tables.source
    tables.check_rows()
    target = tables.target_in(source)
    if drop_unlabelled:
        labelled = has_class(source.rows[target], tables.target, source.path)
        for table in tables.all:
            table.rows = table.rows[labelled]
    keys = [name for name in (group, by) if name]
    judged, rows, classes, models = tables.align(keys)
    scored = {name for _, columns in models.values() for name in columns.values()}
    tables.check_cells({target, PREDICTED, TRAINED_ON, *scored})
    for table in tables.all:
        table.rows = table.rows[rows]
    labels = judged.labels[judged.codes]
    belonging: dict[str, Any] = {}
    for keyword, option, key in (("groups", "--group", group), ("subgroups", "--by", by)):
        if key is not None:
            table = scores if key in scores.names and key not in source.names else source
            values = get_column(table.rows, key, option, table.path)
            belonging[keyword] = parse_groups(values, key, table.path, option)
    features = [name for name in scores.names if name not in (tables.target_in(scores), *keys)]
    for name in features if group is None else ():
        if not rows_with_lists(scores.rows[name]) and are_recurring_codes(name, scores.rows[name], labels):
            current().note(
                f"column {name!r} of {scores.display} holds codes that recur: if rows of one code depend on each "
                f"other, use --group {shlex.quote(name)}"
            )
    matrices = {name: table.scores([columns[c] for c in classes]) for name, (table, columns) in models.items()}
    predicted, decided = None, BY_SCORE
    if PREDICTED in features and PREDICTED not in next(iter(models.values()))[1].values():
        predicted = _predicted_classes(scores, classes)
        decided = BY_SCORE if predicted is None else f"predicted class: column {PREDICTED!r}"
    judgement = judge(labels, matrices, labels=np.array(classes), y_pred=predicted, **belonging, level=level)
    if TRAINED_ON in features:
        note = trained_note(int((scores.rows[TRAINED_ON] == "yes").sum()), scores.n_rows)
        judgement = replace(judgement, notes=(*([f"{note}."] if note else []), *judgement.notes))
    return judgement, decided


def _predicted_classes(scores: WholeTable, classes: Sequence[str]) -> list[str] | None:
    """Return the class in the column ``predicted`` of each row; None if the column holds something else."""

    def key(name: str) -> str:  # a reader may turn true into True, and 1 into 1.0
        return name.removesuffix(".0").casefold()

    spelling = {key(c): c for c in classes}
    known = {**(spelling if len(spelling) == len(classes) else {}), **{c: c for c in classes}}
    found = [of_cell(str(value)).strip() for value in scores.rows[PREDICTED]]
    found = [known.get(name, known.get(key(name), name)) for name in found]
    unknown = [name for name in found if name not in known]
    if len(unknown) == len(found):
        current().note(
            f"column {PREDICTED!r} of {scores.display} holds {found[0]!r}, which is not a class: accuracies use the "
            "class with the highest score"
        )
        return None
    if unknown:
        current().note(
            f"column {PREDICTED!r} of {scores.display} holds unknown classes in {count_of(len(unknown))}, such as "
            f"{unknown[0]!r}: they count as wrong"
        )
    return found


def judge_parts(tables: ScoreTables, *, level: float) -> Judgement:
    """Judge tables in parts."""
    scores = tables.scores
    tables.check_rows()
    needed = scores.n_rows * (8.0 + 1.0)  # a score and a class code of every row
    if needed > max(available_memory(), GIB):
        raise Failure(
            f"{scores.display} has {scores.n_rows} rows, which need {needed / GIB:.1f} GiB of memory, and "
            f"{available_memory() / GIB:.1f} are free: use a larger machine, or mauc.dask on several"
        )
    judged, rows, classes, models = tables.align()
    counts = dict(zip(judged.labels.tolist(), np.bincount(judged.codes).tolist(), strict=True))
    present = sorted((c for c in classes if c in counts), key=lambda c: -counts[c])
    place = {c: k for k, c in enumerate(present)}
    codes = smallest_ints([place[c] for c in judged.labels.tolist()], len(present))[judged.codes]
    sizes = np.array([counts[c] for c in present])
    scored = {
        name: ScoreColumns(table, [columns[c] for c in present], codes, sizes, rows)
        for name, (table, columns) in models.items()
    }
    absent = [c for c in classes if c not in counts]
    return judge_rows(scored, present, absent, level=level)
