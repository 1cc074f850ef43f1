"""Find the score columns in a table of ``mauc predict`` or any other program, and the class of each."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.errors import Failure
from mauc._tables.read import Table, class_labels, count_of, nearest
from mauc._tables.text import PREFIX, display_path
from mauc._text import of_cell
from mauc._validation import listing


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


class WholeTable:
    """A table in memory, with the attributes of :class:`mauc._tables.parts.Parts` that an evaluation needs."""

    def __init__(self, path: Path, rows: Table) -> None:
        self.path, self.rows = display_path(path), rows
        self.display, self.name = str(self.path), self.path.name

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.rows.columns]

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def row_number(self, k: int) -> int:
        """Return the number of the row at position ``k``, from 1, as in the file."""
        return int(self.rows.index[k]) + 1

    def classes(self, name: str) -> RowClasses:
        """Return the classes in column ``name``."""
        labels = class_labels(self.rows[name], name, self.path, as_named=True)
        return RowClasses(*np.unique(labels, return_inverse=True))

    def scores(self, names: Sequence[str]) -> Any:
        """Return the ``(N, C)`` scores in these columns."""
        columns = []
        for name in names:
            try:
                values = np.asarray(self.rows[name], dtype=np.float64)
            except (TypeError, ValueError):
                raise bad_score(name, self.path) from None
            finite = np.isfinite(values)
            if not finite.all():
                k = int(np.argmin(finite))
                raise bad_score(name, self.path, values[k], self.row_number(k))
            columns.append(values)
        return np.column_stack(columns)


def bad_score(name: str, path: Path, value: float | None = None, row: int = 0) -> Failure:
    """Return the error for a column of scores that holds other things than numbers, or a value that is not finite."""
    if value is None:
        return Failure(f"column {name!r} of {path} must hold numbers, the scores of a class: correct it")
    what = "missing" if np.isnan(value) else "infinite"
    return Failure(
        f"column {name!r} of {path} has a score that is {what} (row {row}): every row needs a finite score for every "
        "class"
    )


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


def score_columns(names: list[str], classes: list[str], path: str, prefix: str | None) -> dict[str, str]:
    """Return the name of the score column of each class: columns with the prefix, else those named as the classes.

    With a prefix, a class may have a column but no row; without one, such a column cannot be recognised.
    """
    detected, own = prefix is None, classes
    classes = _as_written(names, prefix, classes)
    prefix = _prefix(names, prefix, classes)
    missing = [c for c in classes if prefix + c not in names]
    if missing:
        wanted = prefix + missing[0]
        close = nearest(wanted, names)
        hint = f"; the nearest column is {close[0]!r}" if close else ""
        raise Failure(
            f"{path} has no column {wanted!r} with the scores of class {missing[0]!r}{hint}\n"
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
