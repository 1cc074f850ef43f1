"""Check the columns of a table, read dates with the day first, and compare new tables with the training table."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype

from mauc._tables.errors import Failure, option_name
from mauc._tables.read import Table, count_of, dates_in_text, nearest, other_columns, rows_with_lists
from mauc._tables.text import EXACT
from mauc._typing import Ints
from mauc._validation import listing
from mauc.ensemble import TableColumns
from mauc.ensemble.columns import MISSING_TEXTS, as_number, written_numbers

DAY_FIRST = "day first"
"""A kind of column in a model file, beside ``"number"`` and ``"other"``."""
WRITTEN = r"\s*(\d{1,2})([./-])(\d{1,2})\2(\d{4})((?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?)\s*"
ISO = r"\s*\d{4}-\d{2}-\d{2}.*"
ZONE = r":\d{2}[\d.]*\s*(?:Z|[+-]\d{2}:?(?:\d{2})?)\s*$"
# Forests take numbers as float32.
LARGEST = float(np.finfo(np.float32).max)


def describe_columns(columns: TableColumns) -> str:
    """Return how many columns of each kind a model uses, with the first names.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"x": [1.5, 2.0], "soil": ["sand", "clay"], "y": [0, 1]})
    >>> describe_columns(TableColumns().fit(table))
    '3: 2 numbers (x, y), 1 category (soil)'
    """
    encoders = {"OneHotEncoder": "category", "DateColumn": "date", "TextPlace": "text or date"}
    kinds = dict.fromkeys(map(str, columns.numbers_), "number")
    kinds |= dict.fromkeys(map(str, columns.categories_), "category")
    kinds |= {name: encoders.get(type(steps[-1]).__name__, "text") for name, steps in columns.steps_.items()}
    plurals = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}
    plurals["text or date"] = "texts or dates"
    parts = []
    for kind, plural in plurals.items():
        names = [name for name, each in kinds.items() if each == kind]
        if names:
            parts.append(f"{len(names)} {kind if len(names) == 1 else plural} ({listing(names, 4)})")
    return f"{len(kinds)}: {', '.join(parts)}"


def read_kinds(table: Table) -> dict[str, str]:
    """Return ``"number"`` or ``"other"`` for each column: how to read it in a new table. Booleans are numbers."""
    others = {name for name in other_columns(table) if infer_dtype(table[name]) != "boolean"}
    return {name: "other" if name in others else "number" for name in table.columns}


def are_dates(words: Any) -> bool:
    """Return whether nine tenths of the first strings can be read as dates."""
    if not any(map(str.isdigit, words.iloc[0])):
        return False  # at once, for hundreds of columns of categories
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas warns that it guesses the format
        return bool(pd.to_datetime(words.head(200), errors="coerce", utc=True).notna().mean() > 0.9)


def check_finite(table: Table, path: Path) -> None:
    """Refuse infinite or huge numbers: they are mistakes, and would dominate all others."""
    floats = [name for name, kind in table.dtypes.items() if kind.kind == "f"]
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in table[floats].items()}
    columns |= {name: found for name in other_columns(table) if (found := written_numbers(table[name])) is not None}
    for name, numbers in columns.items():
        bad = np.flatnonzero(np.isinf(numbers))
        if len(bad):
            raise Failure(
                f"column {name!r} of {path} has {count_of(len(bad), 'infinite number')} (first: row {bad[0] + 1}): "
                "correct or empty such cells"
            )
        huge = np.flatnonzero(np.abs(numbers) > LARGEST)
        if len(huge):
            raise Failure(
                f"column {name!r} of {path} holds {numbers[huge[0]]:g} (row {huge[0] + 1}), and the largest allowed "
                f"number is {LARGEST:.2g}: correct or empty such cells, or use another unit"
            )


def same_columns(table: Table, model: Any, path: Path) -> tuple[Table, list[str]]:
    """Return the table with the columns of a ``TableModel``, in its order and of its kinds, and the extra names.

    Lists, infinite and huge numbers become missing values, with a warning, and so do values of another kind. Another
    warning tells of categories that training did not have.
    """
    names, kinds = [str(c) for c in table.columns], model.kinds
    # The model ignores a column that was empty in training.
    missing = [name for name in kinds if name not in names and name not in model.columns.empty_]
    if missing:
        close = nearest(missing[0], [n for n in names if n not in kinds])
        hint = f" ({missing[0]!r} may now be {close[0]!r})" if close else ""
        if re.fullmatch(r"column_\d+", missing[0]):
            hint = " (if the first line of the file is a row, use --no-header)"
        raise Failure(
            f"{path} lacks {count_of(len(missing), 'column')} that the model was trained on: "
            f"{listing(list(map(repr, missing)), 5)}{hint}\n"
            "add what is missing under these names, or train again with mauc fit"
        )
    known = table.reindex(columns=list(kinds))
    for name, kind in kinds.items():
        values = known[name]
        # TableColumns treats cells that are no longer numbers as missing, with a warning.
        if kind != "number" and values.dtype.kind in "iufb":
            # Codes such as 1 and 2 come as 1.0 and 2.0 if a cell is missing.
            if values.dtype.kind == "f" and ((values.dropna() % 1 == 0) & (values.dropna().abs() < EXACT)).all():
                values = values.astype("Int64")
            known[name] = values.astype(object).where(values.notna(), None).map(str, na_action="ignore")
        if kind == DAY_FIRST:
            known[name] = dates_to_iso(values)
            odd = np.flatnonzero(values.notna() & known[name].isna())
            if len(odd):
                warnings.warn(
                    f"column {name!r} of {path} had dates with the day first in training, and here holds "
                    f"{values.iloc[odd[0]]!r} (row {odd[0] + 1}, {len(odd)} in all): treated as missing; write all "
                    "dates like 31/12/2024 or 2024-12-31",
                    stacklevel=2,
                )
    _empty_bad_cells(known, model.columns, path)
    _write_dates_as_trained(known, model.columns, path)
    _warn_of_new_values(known, model.columns, path)
    return known, [name for name in names if name not in kinds]


def _empty_bad_cells(table: Table, columns: TableColumns, path: Path) -> None:
    """Replace lists, infinite and huge numbers by missing values, in place: one bad cell must not cost all rows."""
    numeric = set(columns.numbers_)

    def empty(name: str, bad: Ints, what: str) -> None:
        if len(bad):
            table[name] = table[name].where(~np.isin(np.arange(len(table)), bad))
            warnings.warn(
                f"column {name!r} of {path} holds {what} (first: row {bad[0] + 1}, {len(bad)} in all): treated as "
                "missing",
                stacklevel=4,
            )

    for name, kind in table.dtypes.items():
        empty(name, np.array(rows_with_lists(table[name]), dtype=np.int64), "lists")
        if kind.kind == "f":
            numbers = np.asarray(table[name], dtype=np.float64)
        elif name in numeric and kind.kind not in "iub":
            numbers = np.array([as_number(cell) for cell in table[name]], dtype=np.float64)
        else:
            continue
        bad = np.flatnonzero(np.abs(numbers) > LARGEST)
        empty(name, bad, f"{numbers[bad[0]]:g}" if len(bad) else "")


def _warn_of_new_values(table: Table, columns: TableColumns, path: Path) -> None:
    """Warn of categories that training did not have."""
    for name, categories in columns.known_categories().items():
        values = table[name].dropna()
        new = values[~values.astype(str).isin([str(c) for c in categories if not pd.isna(c)])]
        if len(new):
            warnings.warn(
                f"column {name!r} of {path} holds values that the training rows do not have, such as {new.iloc[0]!r} "
                f"({count_of(len(new))}): these are treated as unknown",
                stacklevel=3,
            )


def _write_dates_as_trained(table: Table, columns: TableColumns, path: Path) -> None:
    """Write ISO dates in the format of training, in place; warn of others, which are read as missing.

    The text of dates depends on all rows: where all times are midnight, there are only days.
    """
    for name, steps in columns.steps_.items():
        values = table[name]
        for step in steps:
            kind = type(step).__name__
            if kind == "CleanNullStrings" and values.dtype.kind == "O":
                values = step.transform(values)
            elif kind == "ToDatetime":
                values, form = values.copy(), step.format_
                bad = _not_dates(values, form)
                text = values[bad].astype(str)
                # It is not known which zone a time without one is in.
                alike = text[text.str.fullmatch(ISO) & (text.str.contains(ZONE) == ("%z" in str(form)))]
                dates = pd.to_datetime(alike, format="ISO8601", errors="coerce", utc=True).dropna()
                if len(dates) and form:
                    values[dates.index] = dates.dt.strftime(form)
                    table[name] = values
                    bad = _not_dates(values, form)
                if bad.any():
                    of_form = f" of the form {form}" if form else ""
                    first = int(np.argmax(bad))
                    warnings.warn(
                        f"column {name!r} of {path} had dates{of_form} in training, and here holds "
                        f"{values.iloc[first]!r} (row {first + 1}, {int(bad.sum())} in all): treated as missing",
                        stacklevel=3,
                    )


def _not_dates(values: Any, form: str | None) -> NDArray[np.bool_]:
    """Return an ``(N,)`` mask of the cells that are not dates of this form."""
    return np.asarray(pd.to_datetime(values, format=form, errors="coerce", utc=True).isna() & values.notna())


def date_order(values: Any, given: str | None = None) -> str | None:
    """Return ``"day-first"``, ``"month-first"`` or, if every date could be either, ``"ambiguous"``; None if not dates.

    More than half of the cells must be dates with the year last, and nine tenths of these must agree. ``given`` is the
    user's answer for ambiguous dates; without it, points between the numbers mean that the day is first.
    """
    cells = _cells_like(WRITTEN, values)
    if cells is None:
        return None
    parts = cells.str.extract(f"^{WRITTEN}$").dropna()
    signs = parts[1].value_counts()
    n_day, n_month = (int((parts[k].astype(int) > 12).sum()) for k in (0, 2))
    if signs.iloc[0] < 0.9 * len(parts) or min(n_day, n_month) > 0.1 * (n_day + n_month):
        return None
    if n_day or n_month:
        return "day-first" if n_day > n_month else "month-first"
    return given or ("day-first" if signs.index[0] == "." else "ambiguous")


def _cells_like(form: str, values: Any, n_first: int = 20) -> Any:
    """Return the cells of a column as text if more than half of them have this form, else None."""
    if values.dtype.kind in "iufbM":
        return None
    known = values.dropna()
    for cells in (known.head(n_first), known):  # at once, for words
        fits = cells.astype(str).str.fullmatch(form)
        if not (fits.any() if cells is not known else 2 * fits.sum() > len(fits)):
            return None
    return known.astype(str)


def dates_to_iso(values: Any, order: str = "day-first") -> Any:
    """Return a column of dates with the year last or first as ISO text; None where a cell is neither."""
    cells = values.dropna().astype(str)
    parts = cells.str.extract(f"^{WRITTEN}$")
    day, month = (parts[k].str.zfill(2) for k in ((0, 2) if order == "day-first" else (2, 0)))
    dates = (parts[3] + "-" + month + "-" + day + parts[4]).where(~cells.str.fullmatch(ISO), cells)
    found = pd.to_datetime(dates, format="ISO8601", errors="coerce", utc=True)
    return dates.where(found.notna()).reindex(values.index)


def iso_dates(values: Any) -> Any:
    """Return a column of ISO dates as dates in UTC, missing where a cell is none; None for other columns."""
    cells = _cells_like(ISO, values)
    if cells is None:
        return None
    dates = pd.to_datetime(cells.where(cells.str.fullmatch(ISO)), format="ISO8601", errors="coerce", utc=True)
    return dates.reindex(values.index)


def with_iso_dates(table: Any, kinds: dict[str, str], given: str | None, path: Path) -> tuple[Any, dict[str, str]]:
    """Return the table with day-first dates in ISO format, and its kinds: those columns are ``DAY_FIRST``.

    Ambiguous columns follow ``given``, else the other columns, else the month is taken to be first, as skrub does. A
    cell that is no date is missing, with a warning: it would make the column one of texts.
    """
    orders = {name: order for name in other_columns(table) if (order := date_order(table[name], given))}
    known = set(orders.values()) - {"ambiguous"}
    common = known.pop() if len(known) == 1 else None
    table, kinds = table.copy(deep=False), dict(kinds)
    for name in other_columns(table):
        values, order = table[name], orders.get(name)
        if order is None:
            iso = iso_dates(values)
            if iso is not None:
                table[name] = _in_one_form(_without_others(values, iso, path), iso)
            continue
        example = values[values.astype(str).str.fullmatch(WRITTEN)].iloc[0]
        if order == "ambiguous" and common is None:
            warnings.warn(
                f"column {name!r} of {path} holds dates such as {example}, and all of them could have the day or the "
                "month first: they are read with the month first; if the day is first, use "
                f"{option_name('dates')} day-first",
                stacklevel=2,
            )
        order = (common or "month-first") if order == "ambiguous" else order
        dates = dates_to_iso(values, order)
        table[name] = _without_others(values, dates, path)
        if order == "day-first":
            table[name], kinds[name] = dates, DAY_FIRST
            warnings.warn(f"column {name!r} of {path} holds dates with the day first, such as {example}", stacklevel=2)
    return table, kinds


def _in_one_form(values: Any, dates: Any) -> Any:
    """Return ISO dates in one form: times and days among each other would be read as texts.

    If only some of them have a time zone, they stay as they are: it is not known which zone the others are in.
    """
    cells = values.dropna()
    have_zone = cells.str.contains(ZONE)
    if cells.str.replace(r"\d", "0", regex=True).nunique() < 2 or have_zone.nunique() > 1:
        return values
    return dates_in_text(dates if have_zone.any() else dates.dt.tz_localize(None))


def _without_others(values: Any, dates: Any, path: Path) -> Any:
    """Return the cells that are dates, with a warning about the others."""
    odd = values.notna() & dates.isna()
    told = values[odd & ~values.astype(str).str.strip().str.lower().isin(MISSING_TEXTS)]
    if len(told):
        warnings.warn(
            f"column {values.name!r} of {path} holds dates, and {told.iloc[0]!r} among them ({len(told)} in all): "
            "treated as missing",
            stacklevel=3,
        )
    return values.where(~odd) if odd.any() else values
