"""Find the score columns in a table of ``mauc predict`` or any other program, and the class of each."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mauc._tables.errors import Failure
from mauc._tables.read import Table, count_of, first_names, nearest
from mauc._tables.text import PREFIX
from mauc._text import of_cell


def scores_in(table: Table, labels: Any, path: Path, prefix: str | None = None) -> tuple[list[str], Any]:
    """Return the classes and ``(N, C)`` scores of columns with the prefix, else of columns named as the classes.

    With a prefix, a class may have a column but no row; without one, such a column cannot be recognised.
    """
    columns = score_columns([str(c) for c in table.columns], np.unique(labels).tolist(), path, prefix)
    return list(columns), _numbers(table, list(columns.values()), path)


def scored_rows(names: Sequence[str], classes: Any, codes: Any, path: Path | str, prefix: str | None = None) -> Any:
    """Return an ``(N,)`` mask of the rows whose class has scores, in a table of ``mauc predict``; warn of the others.

    ``codes`` are the indices of the rows' classes in ``classes``. A model does not know the classes that ``--min-rows``
    left out. In other tables a class without scores is a mistake, and so is one that differs only in case or blanks:
    all rows stay, and :func:`score_columns` refuses them.
    """
    before = PREFIX if prefix is None else prefix
    known = np.array([before + c in names for c in classes])
    unknown = [str(c) for c, is_known in zip(classes, known, strict=True) if not is_known]
    alike = {name.casefold().strip() for name in names} & {(before + c).casefold().strip() for c in unknown}
    if before != PREFIX or not unknown or alike or known.sum() < 2:
        return np.ones(len(codes), dtype=bool)
    rows = known[codes]
    n = int((~rows).sum())
    which = first_names(list(map(repr, unknown)), 5)
    warnings.warn(
        f"{count_of(n)} of {path} left out: the model does not know the classes {which}",
        stacklevel=2,
    )
    return rows


def score_columns(names: list[str], classes: list[str], path: Path | str, prefix: str | None = None) -> dict[str, str]:
    """Return the name of the score column of each class."""
    detected = prefix is None
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
    return {c: prefix + c for c in found}


def as_in_columns(labels: Any, table: Table, prefix: str | None = None) -> Any:
    """Return classes as score columns name them: ``mauc predict`` quotes a class that reads as a formula."""
    names = [str(c) for c in table.columns]
    found, code = np.unique(labels, return_inverse=True)
    before = _prefix(names, prefix, [of_cell(str(c)).strip() for c in found])
    named = [
        c if before + c in names or before + of_cell(c).strip() not in names else of_cell(c).strip() for c in found
    ]
    return np.array(named)[code]


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


def _numbers(table: Table, names: list[str], path: Path) -> Any:
    columns = []
    for name in names:
        try:
            values = np.asarray(table[name], dtype=np.float64)
        except (TypeError, ValueError):
            raise Failure(f"column {name!r} of {path} must hold numbers, the scores of a class: correct it") from None
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            what = "missing" if np.isnan(values[bad[0]]) else "infinite"
            raise Failure(
                f"column {name!r} of {path} has a score that is {what} (row {bad[0] + 1}, {len(bad)} in all): "
                "every row needs a finite score for every class"
            )
        columns.append(values)
    return np.column_stack(columns)
