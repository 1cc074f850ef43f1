"""The kind of each column, as people are told once: number, category, date or text."""

from collections.abc import Mapping
from typing import Any

from mauc._tables.doubts import are_dates
from mauc._tables.read import Table

__all__ = ["column_kinds", "kinds_in_words"]

KINDS = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}
"""Each kind and its plural."""


def column_kinds(table: Table, *, most_categories: int = 40) -> dict[str, str]:
    """``number``, ``category``, ``date`` or ``text`` for each column.

    Truth values are numbers. A column of words is a category up to ``most_categories`` different values, else text.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"x": [1.5, 2.0], "soil": ["sand", "clay"], "seen": ["2021-01-01", "2021-01-02"]})
    >>> column_kinds(table)
    {'x': 'number', 'soil': 'category', 'seen': 'date'}
    """
    return {str(name): _kind(table[name], most_categories) for name in table.columns}


def _kind(values: Any, most_categories: int) -> str:
    from pandas.api.types import infer_dtype

    if values.dtype.kind in "iufb" or infer_dtype(values, skipna=True) in ("boolean", "decimal", "integer", "floating"):
        return "number"
    there = values.dropna()
    if values.dtype.kind == "M" or (len(there) and are_dates(there.astype(str))):
        return "date"
    return "category" if there.nunique() <= most_categories else "text"


def kinds_in_words(kinds: Mapping[str, str], *, shown: int = 4) -> str:
    """How many columns of each kind there are, with the first names.

    >>> kinds_in_words({"x": "number", "soil": "category", "y": "number"})
    '3: 2 numbers (x, y), 1 category (soil)'
    """
    parts = []
    for kind, plural in KINDS.items():
        names = [name for name, each in kinds.items() if each == kind]
        if names:
            some = ", ".join(names[:shown]) + (", …" if len(names) > shown else "")
            parts.append(f"{len(names)} {kind if len(names) == 1 else plural} ({some})")
    return f"{len(kinds)}: {', '.join(parts)}"
