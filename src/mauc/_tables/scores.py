"""Tables of scores, from ``mauc predict`` or any other program: which columns are scores, and of which class."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mauc._tables.errors import Failure
from mauc._tables.layout import PREFIX
from mauc._tables.read import Table, nearest
from mauc._text import of_cell

__all__ = ["PREFIX", "Scores", "as_in_columns", "score_columns", "scored_rows", "scores_in"]


@dataclass(frozen=True, eq=False)
class Scores:
    """``(N, C)`` scores and the class of each column."""

    classes: list[str]
    values: Any


def scores_in(table: Table, labels: Any, path: Path, prefix: str | None = None) -> Scores:
    """The score columns: those that start with the prefix, else those that are named as the classes.

    With a prefix, a class may have a column and no row; without one, nothing tells such a column from other columns.
    """
    columns = score_columns([str(c) for c in table.columns], np.unique(labels).tolist(), path, prefix)
    return Scores(list(columns), _numbers(table, list(columns.values()), path))


def scored_rows(names: Sequence[str], classes: Any, codes: Any, path: Path | str, prefix: str | None = None) -> Any:
    """``(N,)`` which rows are of classes that have scores, in a table of ``mauc predict``; the others are told.

    ``codes`` are the places of the rows' classes among ``classes``. A model does not know the classes that
    ``--min-rows`` left out of its training. Elsewhere a class without scores is a slip, and so is one that differs from
    another in capitals or blanks: all rows stay, for :func:`score_columns` to say so.
    """
    before = PREFIX if prefix is None else prefix
    known = np.array([before + c in names for c in classes])
    unknown = [str(c) for c, is_known in zip(classes, known, strict=True) if not is_known]
    alike = {name.casefold().strip() for name in names} & {(before + c).casefold().strip() for c in unknown}
    if before != PREFIX or not unknown or alike or known.sum() < 2:
        return np.ones(len(codes), dtype=bool)
    rows = known[codes]
    n = int((~rows).sum())
    which = ", ".join(map(repr, unknown[:5])) + (", …" if len(unknown) > 5 else "")
    warnings.warn(
        f"{n} {'row' if n == 1 else 'rows'} of {path} without scores left out, of classes that the model does not "
        f"know: {which}",
        stacklevel=2,
    )
    return rows


def score_columns(names: list[str], classes: list[str], path: Path | str, prefix: str | None = None) -> dict[str, str]:
    """Class → the name of its column, of all that :func:`scores_in` takes."""
    detected = prefix is None
    prefix = _prefix(names, prefix, classes)
    missing = [c for c in classes if prefix + c not in names]
    if missing:
        wanted = prefix + missing[0]
        close = nearest(wanted, names)
        hint = f"; the nearest column is {close[0]!r}" if close else ""
        raise Failure(
            f"{path} has no column {wanted!r} with the scores of class {missing[0]!r}{hint}\n"
            "name the score columns as the classes, or say what stands before the class with --prefix"
        )
    # A prefix that was found may stand before other columns too: p_cat, and p_value.
    known = not prefix or (detected and prefix != PREFIX)
    found = classes if known else [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return {c: prefix + c for c in found}


def as_in_columns(labels: Any, table: Table, prefix: str | None = None) -> Any:
    """Classes as the score columns name them: ``mauc predict`` puts a quote before a class that reads as a formula."""
    names = [str(c) for c in table.columns]
    found, code = np.unique(labels, return_inverse=True)
    before = _prefix(names, prefix, [of_cell(str(c)).strip() for c in found])
    named = [
        c if before + c in names or before + of_cell(c).strip() not in names else of_cell(c).strip() for c in found
    ]
    return np.array(named)[code]


def _prefix(names: list[str], prefix: str | None, classes: Sequence[str]) -> str:
    """What stands before the class in the names of score columns: as told, ours, none, or one that fits all classes."""
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
            f"{classes[0]!r}: say which are the scores, with --prefix {fitting[0]} or --prefix {fitting[1]}"
        )
    return fitting[0] if fitting else ""


def _numbers(table: Table, names: list[str], path: Path) -> Any:
    columns = []
    for name in names:
        try:
            values = np.asarray(table[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise Failure(f"column {name!r} of {path} must hold numbers: it is read as the scores of a class") from None
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            what = "missing" if np.isnan(values[bad[0]]) else "infinite"
            raise Failure(
                f"column {name!r} of {path} has a score that is {what} (row {bad[0] + 1}, {len(bad)} in all): "
                "every row needs a finite score for every class"
            )
        columns.append(values)
    return np.column_stack(columns)
