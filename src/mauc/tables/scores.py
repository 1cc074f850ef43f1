"""Tables of scores, from ``mauc predict`` or any other program: which columns are scores, and of which class."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mauc._text import of_cell
from mauc.tables.errors import Failure
from mauc.tables.read import Table, nearest

__all__ = ["PREFIX", "Scores", "as_in_columns", "score_columns", "scores_in"]

PREFIX = "score:"


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


def score_columns(names: list[str], classes: list[str], path: Path | str, prefix: str | None = None) -> dict[str, str]:
    """Class → the name of its column, of all that :func:`scores_in` takes."""
    prefix = _prefix(names, prefix)
    missing = [c for c in classes if prefix + c not in names]
    if missing:
        wanted = prefix + missing[0]
        close = nearest(wanted, names)
        hint = f"; the nearest column is {close[0]!r}" if close else ""
        raise Failure(
            f"{path} has no column {wanted!r} with the scores of class {missing[0]!r}{hint}\n"
            "name the score columns as the classes, or say what stands before the class with --prefix"
        )
    found = [name.removeprefix(prefix) for name in names if name.startswith(prefix)] if prefix else classes
    return {c: prefix + c for c in found}


def as_in_columns(labels: Any, table: Table, prefix: str | None = None) -> Any:
    """Classes as the score columns name them: ``mauc predict`` puts a quote before a class that reads as a formula."""
    names = [str(c) for c in table.columns]
    before = _prefix(names, prefix)
    found, code = np.unique(labels, return_inverse=True)
    named = [
        c if before + c in names or before + of_cell(c).strip() not in names else of_cell(c).strip() for c in found
    ]
    return np.array(named)[code]


def _prefix(names: list[str], prefix: str | None) -> str:
    if prefix is None and any(name.startswith(PREFIX) for name in names):
        return PREFIX
    return prefix or ""


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
