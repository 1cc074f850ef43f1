"""Dates with the day first, such as 31/12/2024: told from those with the month first, and turned into 2024-12-31."""

import re
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

from mauc._tables.errors import Usage

__all__ = ["DAY_FIRST", "ORDERS", "as_iso", "order_of", "with_iso_dates"]

DAY_FIRST = "day first"
"""The kind of a column, beside ``"number"`` and ``"other"``."""
ORDERS = ("day-first", "month-first")
WRITTEN = r"\s*(\d{1,2})([./-])(\d{1,2})\2(\d{4})((?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?)\s*"
ISO = r"\s*\d{4}-\d{2}-\d{2}.*"


def order_of(values: Any, told: str | None = None) -> str | None:
    """``"day-first"``, ``"month-first"``, ``"open"`` if every date could be either, None for what is no such date.

    What the numbers leave open the user may have ``told``; else points between them stand where the day comes first.
    """
    cells = values.dropna()
    if values.dtype.kind in "iufbM" or not len(cells) or not re.fullmatch(WRITTEN, str(cells.iloc[0])):
        return None
    parts = cells.astype(str).str.extract(f"^{WRITTEN}$")
    if parts[0].isna().any() or parts[1].nunique() > 1:
        return None
    first, second = (int(parts[k].astype(int).max()) for k in (0, 2))
    if first > 12 or second > 12:
        return "day-first" if second <= 12 else "month-first" if first <= 12 else None
    return told or ("day-first" if parts[1].iloc[0] == "." else "open")


def as_iso(values: Any) -> Any:
    """A column with the day first as text like 2024-12-31; what is written so already stays; None where a cell is
    neither."""
    import pandas as pd

    cells = values.dropna().astype(str)
    parts = cells.str.extract(f"^{WRITTEN}$")
    turned = parts[3] + "-" + parts[2].str.zfill(2) + "-" + parts[0].str.zfill(2) + parts[4]
    turned = turned.where(~cells.str.fullmatch(ISO), cells)
    if pd.to_datetime(turned, format="ISO8601", errors="coerce", utc=True).isna().any():
        return None
    return turned.reindex(values.index)


def with_iso_dates(table: Any, kinds: dict[str, str], told: str | None, path: Path) -> tuple[Any, dict[str, str]]:
    """The table with day-first dates turned, and its kinds, in which such columns are :data:`DAY_FIRST`.

    ``told`` is what the user says about columns that leave it open; else another column may tell, and else the month is
    taken to come first, as skrub does.
    """
    orders = {name: order for name in table.columns if (order := order_of(table[name], told)) is not None}
    settled = set(orders.values()) - {"open"}
    otherwise = settled.pop() if len(settled) == 1 else None
    table, kinds = table.copy(), dict(kinds)
    for name, order in orders.items():
        example = table[name].dropna().iloc[0]
        if order == "open" and otherwise is None:
            warnings.warn(
                f"column {name!r} of {path} holds dates such as {example}, all of which could be either of two days: "
                "the month is taken to come first; --dates day-first says otherwise",
                stacklevel=2,
            )
        if (otherwise if order == "open" else order) != "day-first" or (turned := as_iso(table[name])) is None:
            continue
        table[name], kinds[name] = turned, DAY_FIRST
        warnings.warn(f"column {name!r} of {path} holds dates with the day first, such as {example}", stacklevel=2)
    return table, kinds


def as_at_training(table: Any, names: Collection[str], path: Path) -> Any:
    """The same columns of another table, turned."""
    table = table.copy()
    for name in names:
        turned = as_iso(table[name])
        if turned is None:
            warnings.warn(
                f"column {name!r} of {path} held dates with the day first when the model was trained, and now holds "
                "others, or none: taken as missing; write all of them like 31/12/2024 or 2024-12-31",
                stacklevel=2,
            )
        table[name] = turned
    return table


def check_order(order: str | None) -> None:
    """``--dates`` has one of its two values."""
    if order is not None and order not in ORDERS:
        raise Usage(f"--dates must be day-first or month-first, got {order!r}")
