"""Tables of scores of ``mauc predict`` or any other program: their rows, their score columns, and the class of each.

A table is in memory (:class:`WholeTable`) or in Parquet files (:class:`mauc._tables.parts.PartsTable`). Both hand out
distinct values and slices of rows, and all else is computed from these: the form of a table changes no result.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.errors import Failure
from mauc._tables.read import Table, class_labels, count_of, nearest, no_class, rows_with_lists
from mauc._tables.saved_scores import cell_hashes
from mauc._tables.text import EXACT, PREFIX, display_path
from mauc._text import of_cell
from mauc._typing import Ints
from mauc._validation import listing

SLICE = 1 << 20
"""Rows that are compared at a time."""
MOST_CLASSES = 100_000
"""A column with more distinct values holds no classes."""


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as its distinct values, and the place of each row's value among them."""

    values: Any
    """A series of the distinct values, none of them missing, as :func:`mauc._tables.read.read_table` reads them."""
    codes: NDArray[Any]
    """``(N,)`` places, -1 where the value is missing, in as few bytes as possible."""

    def series(self, rows: NDArray[np.bool_]) -> Any:
        """Return the values of some of the rows."""
        return self.values.reindex(self.codes[rows]).reset_index(drop=True)


class ScoreTable(ABC):
    """A table that can be read several times."""

    display: str
    """The name in messages: the path as typed."""
    name: str
    """The name in a report."""
    names: list[str]
    n_rows: int
    tell: Callable[[str], None] = staticmethod(lambda _: None)
    """Is told how far a long pass over the rows is."""

    @abstractmethod
    def coded(self, name: str, most: int) -> CodedColumn | None:
        """Return a column, or None if it has more than ``most`` distinct values; refuse lists."""

    @abstractmethod
    def slices(self, names: Sequence[str], n_rows: int) -> Iterator[Table]:
        """Yield these columns of all rows in order, ``n_rows`` rows at a time, fewer at the end."""

    @abstractmethod
    def place(self, k: int) -> str:
        """Return where the row at position ``k`` is, in words that count rows from 1."""

    def classes(self, name: str, rows: NDArray[np.bool_]) -> "RowClasses":
        """Return the classes of some of the rows in column ``name``; refuse a row without one."""
        column = self.coded(name, MOST_CLASSES)
        if column is None:
            raise Failure(
                f"column {name!r} of {self.display} holds over {MOST_CLASSES:,} different values, not classes: choose "
                "another column"
            )
        empty = np.flatnonzero((column.codes < 0) & rows)
        if len(empty):
            raise no_class(f"column {name!r} of {self.display}", len(empty), self.place(int(empty[0])))
        labels = class_labels(column.values, name, Path(self.display), as_named=True)
        return RowClasses(np.arange(len(labels)).astype(str), column.codes[rows]).renamed(labels)


class WholeTable(ScoreTable):
    """A table in memory."""

    def __init__(self, path: Path, rows: Table) -> None:
        self.path, self.rows = display_path(path), rows
        self.display, self.name = str(self.path), self.path.name
        self.names, self.n_rows = [str(name) for name in rows.columns], len(rows)

    def coded(self, name: str, most: int) -> CodedColumn | None:
        """Return as :meth:`ScoreTable.coded` does."""
        import pandas as pd

        if rows_with_lists(self.rows[name]):
            raise holds_lists(name, self.display)
        codes, values = pd.factorize(self.rows[name])
        return CodedColumn(pd.Series(values), signed(codes, len(values))) if len(values) <= most else None

    def slices(self, names: Sequence[str], n_rows: int) -> Iterator[Table]:
        """Yield as :meth:`ScoreTable.slices` does."""
        rows = self.rows[list(names)]
        for first in range(0, self.n_rows, n_rows):
            yield rows.iloc[first : first + n_rows].reset_index(drop=True)

    def place(self, k: int) -> str:
        """Return as :meth:`ScoreTable.place` does."""
        return f"row {k + 1}"


def holds_lists(name: str, display: str) -> Failure:
    """Return the error for a column of lists, which Parquet may hold."""
    return Failure(f"column {name!r} of {display} holds lists, not single values: choose another column")


def signed(codes: Any, n: int) -> NDArray[Any]:
    """Return numbers from -1 to n - 1 in as few bytes as possible."""
    return np.asarray(codes).astype(np.min_scalar_type(-max(n, 1)))


class ScoreColumns:
    """Columns of scores, read again in each pass; a :class:`mauc.metrics.out_of_core.ScoredRows`."""

    def __init__(
        self, table: ScoreTable, names: Sequence[str], codes: NDArray[Any], counts: Ints, rows: NDArray[np.bool_]
    ) -> None:
        """Use the given ``rows`` of the table; ``codes`` and ``counts`` describe these alone."""
        self.table, self.names, self.codes, self.counts, self.rows = table, list(names), codes, counts, rows
        self._checked: set[str] = set()
        """Columns whose scores are known to be finite."""

    def scan(self, columns: Sequence[int], n_rows: int) -> Iterator[tuple[int, list[NDArray[np.floating]]]]:
        """Yield as :class:`mauc.metrics.out_of_core.ScoredRows` does; check what is read for the first time."""
        names = [self.names[k] for k in columns]
        first = n_before = 0
        for some in self.table.slices(names, n_rows):
            used = np.flatnonzero(self.rows[first : first + len(some)])
            if len(used):
                every = len(used) == len(some)
                yield n_before, [self._numbers(some[name] if every else some[name].iloc[used], first) for name in names]
            n_before += len(used)
            first += len(some)
        self._checked.update(names)

    def _numbers(self, values: Any, first: int) -> NDArray[np.floating]:
        """Return the scores of a column of a slice whose first row is at position ``first``."""
        name = str(values.name)
        where = f"column {name!r} of {self.table.display}"
        try:
            single = values.dtype.kind == "f" and values.dtype.itemsize <= 4
            array: NDArray[np.floating] = np.asarray(values, dtype=np.float32 if single else np.float64)
        except (TypeError, ValueError):
            raise Failure(f"{where} must hold numbers, the scores of a class: correct it") from None
        if name in self._checked:
            return array
        finite = np.isfinite(array)
        if not finite.all():
            k = int(np.argmin(finite))
            what = "missing" if np.isnan(array[k]) else "infinite"
            raise Failure(
                f"{where} has a score that is {what} ({self.table.place(first + values.index[k])}): every row needs a "
                "finite score for every class"
            )
        if values.dtype.kind in "iuO" and (np.abs(array) >= EXACT).any():
            raise Failure(
                f"{where} holds whole numbers of 2**53 or more, of which float64 merges some: subtract a common "
                "number, or write ranks"
            )
        return array


def differing_row(one: ScoreTable, other: ScoreTable, name: str, rows: NDArray[np.bool_]) -> int | None:
    """Return the first of these rows whose cells in a common column differ.

    Return None if none does, and for lists and for numbers with fractions, which may be scores of a class without a
    row.
    """
    first, found = 0, None
    for pair in zip(one.slices([name], SLICE), other.slices([name], SLICE), strict=True):
        both = [table[name] for table in pair]
        if any(rows_with_lists(values) or _has_fractions(values) for values in both):
            return None
        if found is None:
            mine, theirs = (cell_hashes(values.to_frame())[name] for values in both)
            differ = np.flatnonzero((mine != theirs) & rows[first : first + len(mine)])
            found = first + int(differ[0]) if len(differ) else None
        first += len(both[0])
    return found


def _has_fractions(values: Any) -> bool:
    return bool(values.dtype.kind == "f" and (values % 1 > 0).any())


@dataclass(frozen=True, eq=False)
class RowClasses:
    """The class of every row of a table."""

    labels: NDArray[np.str_]
    """Classes, sorted."""
    codes: NDArray[Any]
    """``(N,)`` index of each row's class, in as few bytes as possible."""

    def renamed(self, names: Any) -> "RowClasses":
        """Return the same rows with other names for the labels; labels that get the same name are merged."""
        labels, place = np.unique(names, return_inverse=True)
        return RowClasses(labels, smallest_ints(place, len(labels))[self.codes])

    def subset(self, rows: NDArray[np.bool_]) -> "RowClasses":
        """Return some of the rows, and the labels that they have."""
        codes = self.codes[rows]
        used = np.bincount(codes, minlength=len(self.labels)) > 0
        return RowClasses(self.labels[used], smallest_ints(np.cumsum(used) - 1, int(used.sum()))[codes])


def smallest_ints(index: Any, n: int) -> NDArray[Any]:
    """Return numbers below n in as few bytes as possible."""
    return np.asarray(index).astype(np.min_scalar_type(max(n - 1, 0)))


def scored_rows(true: RowClasses, names: Sequence[str], path: str, prefix: str | None) -> Any:
    """Return an ``(N,)`` mask of the rows whose class has scores, in a table of ``mauc predict``; warn of the others.

    A model does not know the classes that ``--min-rows`` left out. In other tables a class without scores is a mistake,
    and so is one that differs only in case or blanks: all rows stay, and :func:`score_columns` refuses them.
    """
    before = PREFIX if prefix is None else prefix
    known = np.array([before + c in names for c in true.labels])
    unknown = true.labels[~known].tolist()
    folded = [name.casefold().strip() for name in names]
    scored = {name.removeprefix(before).strip() for name in folded if name.startswith(before)}
    alike = scored & {c.casefold().strip() for c in unknown}
    if before != PREFIX or not unknown or alike or known.sum() < 2:
        return np.ones(len(true.codes), dtype=bool)
    rows = known[true.codes]
    which = listing(list(map(repr, unknown)), 5)
    warnings.warn(
        f"{count_of(int((~rows).sum()))} of {path} left out: the model does not know the classes {which}", stacklevel=2
    )
    return rows


def score_columns(
    names: list[str], classes: list[str], path: str, prefix: str | None, place: Callable[[str], str]
) -> dict[str, str]:
    """Return the name of the score column of each class: columns with the prefix, else those named as the classes.

    ``place`` returns where a class first occurs, for the error of a class without scores. With a prefix, a class may
    have a column but no row; without one, such a column cannot be recognised.
    """
    detected, own = prefix is None, classes
    classes = _as_written(names, prefix, classes)
    prefix = _prefix(names, prefix, classes)
    missing = [c for c in classes if prefix + c not in names]
    if missing:
        wanted = prefix + missing[0]
        close, at = nearest(wanted, names), classes.index(missing[0])
        hint = f"; the nearest column is {close[0]!r}" if close else ""
        raise Failure(
            f"{path} has no column {wanted!r} with the scores of class {missing[0]!r}, first in "
            f"{place(own[at])}{hint}\n"
            "run mauc predict first if the table holds no scores; else name the score columns as the classes, or give "
            "the text before the class with --prefix"
        )
    # Other columns may have a detected prefix too: p_cat, and p_value.
    known = not prefix or (detected and prefix != PREFIX)
    found = classes if known else [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    as_read = dict(zip(classes, own, strict=True))
    return {as_read.get(c, c): prefix + c for c in found}


def _as_written(names: list[str], prefix: str | None, classes: list[str]) -> list[str]:
    """Return classes as score columns name them: a reader turns TRUE or true into True, and 1.0 into 1."""
    ways = [str.upper, str.lower] if set(classes) == {"True", "False"} else ["{}.0".format]
    for written in (classes, *([way(c) for c in classes] for way in ways)):
        if {_prefix(names, prefix, written) + c for c in written} <= set(names):
            return written
    return classes


def as_in_columns(classes: Sequence[str], names: list[str], prefix: str | None) -> list[str]:
    """Return classes as score columns name them: ``mauc predict`` quotes a class that reads as a formula."""
    unquoted = [of_cell(c).strip() for c in classes]
    before = _prefix(names, prefix, unquoted)
    return [
        plain if before + c not in names and before + plain in names else c
        for c, plain in zip(classes, unquoted, strict=True)
    ]


def _prefix(names: list[str], prefix: str | None, classes: Sequence[str]) -> str:
    """Return the prefix of score columns: the given one, that of ``mauc predict``, none, or one that fits."""
    if prefix is not None:
        return prefix
    if any(name.startswith(PREFIX) for name in names):
        return PREFIX
    there = set(names)
    if there.issuperset(classes):
        return ""
    befores = {name.removesuffix(classes[0]) for name in names if name.endswith(classes[0])}
    fitting = sorted(before for before in befores if there.issuperset(before + c for c in classes))
    if len(fitting) > 1:
        raise Failure(
            f"there are columns {fitting[0] + classes[0]!r} and {fitting[1] + classes[0]!r} for the class "
            f"{classes[0]!r}: choose one with --prefix {fitting[0]} or --prefix {fitting[1]}"
        )
    return fitting[0] if fitting else ""
