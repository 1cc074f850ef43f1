"""Judge tables of scores: find the rows, the classes and the score columns of each model."""

import shlex
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from mauc._cli.output import current
from mauc._tables.data import parse_groups
from mauc._tables.errors import Failure, Usage
from mauc._tables.flags import are_recurring_codes
from mauc._tables.parts import BYTES_PER_CELL, available_memory
from mauc._tables.read import check_column, count_of, has_class, rows_with_lists
from mauc._tables.saved_scores import TRAINED_ON, trained_note
from mauc._tables.scores import (
    MOST_CLASSES,
    SLICE,
    RowClasses,
    ScoreColumns,
    ScoreTable,
    as_in_columns,
    differing_row,
    score_columns,
    scored_rows,
    signed,
    smallest_ints,
)
from mauc._tables.text import PREDICTED
from mauc._text import as_cell, of_cell
from mauc.metrics import BinnedMAUC
from mauc.report import Judgement
from mauc.report.judgement import judge_rows

GIB = 2.0**30
BY_SCORE = "predicted class: the one with the highest score, ties in equal parts"
Rows = NDArray[np.bool_]
Models = dict[str, tuple[ScoreTable, dict[str, str]]]
"""The table of each model, and the score column of each class in it."""


@dataclass(frozen=True)
class ReadClasses:
    """The rows to judge, with their classes and score columns."""

    rows: Rows
    """``(N,)`` mask of the rows of the table."""
    codes: NDArray[Any]
    """Class of each of these rows, as a place in ``present``."""
    classes: list[str]
    """Classes with scores."""
    present: list[str]
    """Those with rows, by falling frequency."""
    counts: NDArray[Any]
    """Rows of each class of ``present``."""
    models: Models

    def scores(self, name: str) -> ScoreColumns:
        """Return the scores of a model."""
        table, columns = self.models[name]
        return ScoreColumns(table, [columns[c] for c in self.present], self.codes, self.counts, self.rows)


@dataclass(frozen=True)
class ScoreTables:
    """Scores of one model or of several for the same rows, and how to judge them."""

    scores: ScoreTable
    others: Sequence[ScoreTable]
    truth: ScoreTable | None
    """A table with the class of each row; None: the first scores have it."""
    target: str
    prefix: str | None = None
    """Text before the class in the names of score columns; None: detected."""
    group: str | None = None
    by: str | None = None
    drop_unlabelled: bool = False
    level: float = 0.95

    @property
    def source(self) -> ScoreTable:
        """The table with the class of each row."""
        return self.truth or self.scores

    @property
    def models(self) -> tuple[ScoreTable, ...]:
        return self.scores, *self.others

    @property
    def keys(self) -> list[str]:
        """Columns of groups and of subgroups, which hold no scores."""
        return [name for name in (self.group, self.by) if name]

    def judge(self) -> tuple[Judgement, str]:
        """Judge the first model, and compare the others with it; say how the first one predicts classes."""
        read = self._read()
        rows, classes, present, models = read.rows, read.classes, read.present, read.models
        self._check_memory(len(read.codes) * len(present) * len(models))
        predicted, decided = None, BY_SCORE
        if PREDICTED in self.scores.names and PREDICTED not in next(iter(models.values()))[1].values():
            predicted = self._predicted(classes, present, rows)
            decided = BY_SCORE if predicted is None else f"predicted class: column {PREDICTED!r}"
        judgement = judge_rows(
            {name: read.scores(name) for name in models},
            present,
            [c for c in classes if c not in present],
            predicted=predicted,
            groups=self._key(self.group, "--group", rows),
            subgroups=self._key(self.by, "--by", rows),
            level=self.level,
        )
        return replace(judgement, notes=(*self._notes(rows), *judgement.notes)), decided

    def count(self, bins: int, n_rows: int = 1 << 18) -> BinnedMAUC:
        """Count the scores of the first model in bins, in one pass.

        The bins are equal parts of [0, 1] unless quantiles of the first rows have less than half of their error.
        """
        read = self._read()
        if len(read.present) < 2:
            raise Failure(
                f"there is only the class {read.present[0]!r}: multiclass AUC compares classes; check the rows"
            )
        scored, labels = read.scores(next(iter(read.models))), np.arange(len(read.present))
        state = None
        for first, columns in scored.scan(range(len(labels)), n_rows):
            y, scores = read.codes[first : first + len(columns[0])], np.column_stack(columns)
            state = _suitable_bins(y, scores, labels, bins) if state is None else state
            state.update(y, scores)
        assert state is not None
        state.labels = np.asarray(read.present)
        return state

    def _read(self) -> "ReadClasses":
        """Find the rows, their classes and the score columns of each model, and check what can be checked."""
        self._check_rows()
        labelled = self._labelled()
        true = self._classes_of(self.source, self.scores, labelled)
        self._check_classes(true, labelled)
        known = scored_rows(true, self._score_names(self.scores), self.scores.display, self.prefix)
        rows = labelled.copy()
        rows[labelled] = known
        judged = true if known.all() else true.subset(known)
        models = self._find_models(judged, rows)
        scored = {name for _, columns in models.values() for name in columns.values()}
        self._check_cells({self._target_in(self.source), PREDICTED, TRAINED_ON, *scored}, labelled)

        classes = list(next(iter(models.values()))[1])
        counts = dict(zip(judged.labels.tolist(), np.bincount(judged.codes).tolist(), strict=True))
        present = sorted((c for c in classes if c in counts), key=lambda c: -counts[c])
        place = {c: k for k, c in enumerate(present)}
        codes = smallest_ints([place[c] for c in judged.labels.tolist()], len(present))[judged.codes]
        self._note_codes([name for name in self._score_names(self.scores) if name not in scored], codes, rows)
        return ReadClasses(rows, codes, classes, present, np.array([counts[c] for c in present]), models)

    def _check_rows(self) -> None:
        """Check that the target is there, and that all tables have the same number of rows."""
        source, scores, truth, column = self.source, self.scores, self.truth, self._target_in(self.source)
        if truth and column not in truth.names and self._target_in(scores) in scores.names:
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

    def _labelled(self) -> Rows:
        """``(N,)`` mask of the rows to judge as far as they have classes; without ``--drop-unlabelled``, all."""
        column = self.source.coded(self._target_in(self.source), MOST_CLASSES) if self.drop_unlabelled else None
        if column is None:
            return np.ones(self.source.n_rows, dtype=bool)
        return has_class(column.codes >= 0, self.target, Path(self.source.display))

    def _target_in(self, table: ScoreTable) -> str:
        """Return the name of the target column, which ``mauc predict`` may have quoted."""
        quoted = str(as_cell(self.target))
        return quoted if self.target not in table.names and quoted in table.names else self.target

    def _classes_of(self, table: ScoreTable, scored: ScoreTable, rows: Rows) -> RowClasses:
        """Return the class of each row, named as the columns of another table are."""
        found = table.classes(self._target_in(table), rows)
        return found.renamed(as_in_columns(found.labels.tolist(), scored.names, self.prefix))

    def _check_classes(self, true: RowClasses, rows: Rows) -> None:
        """Refuse tables of scores with a target that differs."""
        place = {label: k for k, label in enumerate(true.labels.tolist())}
        for table in self.models:
            if table is self.source or self._target_in(table) not in table.names:
                continue
            try:
                theirs = self._classes_of(table, table, rows)
            except Failure:
                if table is self.scores:  # mauc predict copies a target that is not known yet
                    continue
                raise
            codes = np.array([place.get(label, -1) for label in theirs.labels.tolist()])[theirs.codes]
            differ = np.flatnonzero(codes != true.codes)
            if len(differ):
                where = table.place(int(np.flatnonzero(rows)[differ[0]]))
                raise Failure(
                    f"{table.display} has other classes in {self.target!r} than {self.source.display} (first: "
                    f"{where}): both need the same rows in the same order"
                )

    def _find_models(self, judged: RowClasses, rows: Rows) -> Models:
        """Return the score columns of each model; refuse models of different classes."""
        labels = judged.labels.tolist()

        def first(label: str) -> str:
            k = int(np.argmax(judged.codes == labels.index(label)))
            return self.source.place(int(np.flatnonzero(rows)[k]))

        classes: set[str] = set()
        models: Models = {}
        for table in self.models:
            columns = score_columns(self._score_names(table), labels, table.display, self.prefix, first)
            classes = classes or set(columns)
            odd = sorted(columns.keys() ^ classes)
            if odd:
                raise Failure(
                    f"only one of {table.display} and {self.scores.display} scores the class {odd[0]!r}: both must "
                    "score the same classes"
                )
            others = [each.name for each in self.models if each is not table]
            name = table.display if table.name in others else table.name
            if name in models:
                raise Usage(
                    f"--compare {table.display} is given twice, or is the scores file itself: name another file"
                )
            models[name] = table, columns
        return models

    def _score_names(self, table: ScoreTable) -> list[str]:
        return [name for name in table.names if name not in {self._target_in(table), *self.keys}]

    def _check_cells(self, ignored: Collection[str], rows: Rows) -> None:
        """Refuse tables whose common columns differ: their rows are others, or in another order."""
        first: dict[str, ScoreTable] = {}
        for table in (*self.models, *([self.truth] if self.truth else [])):
            for name in table.names:
                other = first.setdefault(name, table)
                k = None if name in ignored or other is table else differing_row(other, table, name, rows)
                if k is not None:
                    raise Failure(
                        f"{table.display} and {other.display} must have the same rows in the same order, got other "
                        f"cells in column {name!r} (first: {table.place(k)}): sort both files alike, or leave the "
                        "column out of one if it does not describe the rows"
                    )

    def _check_memory(self, n_scores: int) -> None:
        """Refuse rows that the memory does not hold: a score and a class of each, or all scores with groups."""
        needed, what = 9.0 * self.scores.n_rows, ""
        if self.keys:
            needed, what = 2.0 * BYTES_PER_CELL * n_scores, " with --group or --by"
        if needed > max(available_memory(), GIB):
            raise Failure(
                f"{self.scores.display} has {self.scores.n_rows} rows, which need {needed / GIB:.1f} GiB of "
                f"memory{what}, and {available_memory() / GIB:.1f} are free: use a larger machine, or mauc.dask on "
                "several"
            )

    def _key(self, key: str | None, option: str, rows: Rows) -> Any:
        """Return the group or subgroup of each row."""
        if key is None:
            return None
        table = self.scores if key in self.scores.names and key not in self.source.names else self.source
        check_column(table.names, key, option, table.display)
        column = table.coded(key, table.n_rows)
        assert column is not None
        return parse_groups(column.series(rows), key, Path(table.display), option)

    def _note_codes(self, names: Sequence[str], codes: Any, rows: Rows) -> None:
        """Print a note on columns of codes that recur among the first rows: rows of one code may depend on each other.

        Not if the groups are known.
        """
        for name in () if self.group else names:
            values = next(self.scores.slices([name], SLICE))[name]
            used = rows[: len(values)]
            if not rows_with_lists(values) and are_recurring_codes(name, values[used], codes[: int(used.sum())]):
                current().note(
                    f"column {name!r} of {self.scores.display} holds codes that recur: if rows of one code depend on "
                    f"each other, use --group {shlex.quote(name)}"
                )

    def _predicted(self, classes: Sequence[str], present: Sequence[str], rows: Rows) -> NDArray[Any] | None:
        """Return the class in the column ``predicted`` of each row; None if the column holds something else."""

        def key(name: str) -> str:  # a reader may turn true into True, and 1 into 1.0
            return name.removesuffix(".0").casefold()

        spelling = {key(c): c for c in classes}
        known = {**(spelling if len(spelling) == len(classes) else {}), **{c: c for c in classes}}
        column = self.scores.coded(PREDICTED, MOST_CLASSES)
        found = [] if column is None else [of_cell(str(value)).strip() for value in column.values]
        found = [known.get(name, known.get(key(name), name)) for name in found] + [""]  # a missing value is the last
        where = f"column {PREDICTED!r} of {self.scores.display} holds"
        is_known = np.array([name in known for name in found])
        if column is None or not is_known[column.codes[rows]].any():
            shown = "too many values" if column is None else repr(found[column.codes[rows][0]])
            current().note(f"{where} {shown}, which is not a class: accuracies use the class with the highest score")
            return None
        unknown = np.flatnonzero(~is_known[column.codes] & rows)
        if len(unknown):
            example = found[column.codes[unknown[0]]]
            current().note(
                f"{where} unknown classes in {count_of(len(unknown))}, such as {example!r}: they count as wrong"
            )
        place = {c: k for k, c in enumerate(present)}
        return signed([place.get(name, -1) for name in found], len(present))[column.codes[rows]]

    def _notes(self, rows: Rows) -> list[str]:
        """Return a note if some of the rows were training rows."""
        column = self.scores.coded(TRAINED_ON, 2) if TRAINED_ON in self.scores.names else None
        if column is None:
            return []
        is_trained = np.append(np.asarray(column.values.astype(str) == "yes"), False)
        note = trained_note(int(is_trained[column.codes[rows]].sum()), int(rows.sum()))
        return [f"{note}."] if note else []


def _suitable_bins(y: Any, scores: Any, labels: Any, bins: int) -> BinnedMAUC:
    """Return an empty state for a first batch: equal bins, or quantiles if they have less than half of the error."""
    quantiles = BinnedMAUC.for_scores(y, scores, bins, labels=labels)
    if scores.min() < 0.0 or scores.max() > 1.0:
        return quantiles
    equal = BinnedMAUC(len(labels), bins)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the first rows may have one class
        several, one = (state.copy().update(y, scores).error_bound(absent="ignore") for state in (quantiles, equal))
    return quantiles if 2.0 * several < one else equal
