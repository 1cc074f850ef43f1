"""Tables of users: CSV, TSV, Parquet or NPZ, columns by name, classes of a column."""

import difflib
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mauc._archive import MAX_SIZE, Refused, TooLarge, read_arrays
from mauc.tables.errors import Failure, Usage

__all__ = ["classes_of", "column", "date_form", "nearest", "read_table", "rows_with_lists"]

Table = Any  # pandas has types; they are not needed here, and importing it takes a second
READABLE = ".csv, .tsv, .parquet or .npz"
EXACT = 2.0**53  # from here on, floating-point numbers skip whole ones


def read_table(
    path: Path, text: Collection[str] = (), codes: Collection[str] = (), max_size: float = MAX_SIZE
) -> Table:
    """A table with at least one row and one column, as a pandas DataFrame.

    The columns named in ``text`` are read from CSV as they are written, never as numbers; those in ``codes`` only where
    one of their values begins with a 0 that a number would lose, as 007 does. An NPZ may unpack to ``max_size`` GB more
    than it has.
    """
    if path.is_dir():
        raise Failure(f"{path} is a folder: name a file in it that ends in {READABLE}")
    if not path.exists():
        others = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise Failure(f"{path} is not there: check the name{_did_you_mean(path.name, others)}")
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if kind in ("csv", "tsv", "tab", "txt"):
        table = _csv(path, text, codes)
    elif kind in ("parquet", "pq"):
        table = _parquet(path)
    elif kind == "npz":
        table = _npz(path, max_size)
    else:
        raise Failure(f"{path} must end in {READABLE}: rename it, or save it as one of these")
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise Failure(f"{path} has no rows: check that it is the right file")
    table = table.rename(columns=str)
    _check_names(table.columns, path)
    return _as_in_text(table)


def _check_names(names: Any, path: Path) -> None:
    twice = names[names.duplicated()]
    if len(twice):
        raise Failure(f"{path} has two columns named {twice[0]!r}: rename one of them")


def _as_in_text(table: Table) -> Table:
    """Dates and categories as a CSV file would have them, so that all formats give the same model."""
    table = table.copy()
    for name in table.columns:
        values = table[name]
        if values.dtype.kind == "M":
            table[name] = values.dt.strftime(date_form(values))
        elif str(values.dtype) == "category":
            table[name] = values.astype(values.cat.categories.dtype)
    return table


def date_form(values: Any) -> str:
    """How dates are written so that none loses anything."""
    stays = values.dropna()
    form = "%Y-%m-%d" if (stays == stays.dt.normalize()).all() else "%Y-%m-%d %H:%M:%S"
    return form + ".%f" if stays.dt.microsecond.any() else form


def _csv(path: Path, text: Collection[str], codes: Collection[str]) -> Table:
    import pandas as pd

    try:
        separator = _separator(path)
        # By itself: pandas renames the second of two columns of one name.
        header = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False)
        table = pd.read_csv(path, sep=separator, low_memory=False, dtype=dict.fromkeys(text, str))
        for name in set(codes) & set(table.select_dtypes("number").columns):
            written = pd.read_csv(path, sep=separator, usecols=[name], dtype=str)[name]
            if written.str.match(r"\s*0\d").any():
                table[name] = written
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Failure(
            f"{path} cannot be read as a table ({reason}): save it as CSV in UTF-8, one header line, one line per row"
        ) from None
    names = pd.Index(header.iloc[0])
    _check_names(names[names != ""], path)
    return table


def _separator(path: Path) -> str:
    """Comma, semicolon or tab: whichever the header line has most of outside quotes."""
    if path.suffix == ".gz":
        return "\t" if path.name.endswith((".tsv.gz", ".tab.gz")) else ","
    with path.open(encoding="utf-8") as file:
        header = re.sub(r'"[^"]*"', "", file.readline(1 << 20))
    return max(",\t;", key=header.count)


def _parquet(path: Path) -> Table:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:
        raise Failure(f"reading {path} needs pyarrow: pip install pyarrow, or save the table as CSV") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Failure(f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}): write it again") from None


def _npz(path: Path, max_size: float) -> Table:
    """One column of every 1-d array, and ``name_0``, ``name_1``, … of every 2-d one."""
    import pandas as pd

    try:
        arrays = read_arrays(path, max_size)
    except TooLarge as error:
        raise Failure(f"{path} {error}: raise --max-size if you know where the file comes from") from None
    except Refused as error:
        raise Failure(
            f"{path} cannot be read as NPZ, it {error}: write it by numpy.savez, arrays of numbers or strings"
        ) from None
    lengths = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or any(array.ndim not in (1, 2) for array in arrays.values()):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in list(arrays.items())[:6])
        raise Failure(
            f"{path} must hold arrays of one length, of one or two dimensions, got {shapes}: leave others out"
        )
    parts = [
        pd.DataFrame({name: array} if array.ndim == 1 else {f"{name}_{k}": column for k, column in enumerate(array.T)})
        for name, array in arrays.items()
    ]
    return pd.concat(parts, axis=1) if parts else pd.DataFrame()


def column(table: Table, name: str, option: str, path: Path, otherwise: str = "") -> Any:
    """A column of the table, or an error with the names nearest to the one asked for, or all and what else to do."""
    names = [str(c) for c in table.columns]
    if name not in names:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        hint = _did_you_mean(name, names) or f"; its columns are {shown}{otherwise}"
        raise Usage(f"{option} {name!r} is no column of {path}{hint}")
    return table[name]


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """Up to three of the names that look like this one, case aside."""
    by_lower = {other.lower(): other for other in names}
    return [by_lower[key] for key in difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.65)]


def _did_you_mean(name: str, names: Sequence[str]) -> str:
    close = nearest(name, names)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def rows_with_lists(values: Any) -> list[int]:
    """The rows of a column that hold no single value but a list, a set or a dictionary, as Parquet may have them."""
    if values.dtype != object:
        return []
    return [k for k, v in enumerate(values) if isinstance(v, list | tuple | set | dict | np.ndarray)]


def classes_of(values: Any, name: str, path: Path) -> Any:
    """The class of every row as a string without the blanks around it.

    A column without two classes, of measurements, of lists, or with two classes that differ only in such blanks is
    refused.
    """
    lists = rows_with_lists(values)
    if lists:
        raise Failure(
            f"column {name!r} of {path} holds lists (first: row {lists[0] + 1}), not classes: choose another column"
        )
    missing = np.flatnonzero(np.asarray(values.isna()))
    if len(missing):
        rows = "1 row" if len(missing) == 1 else f"{len(missing)} rows"
        raise Failure(
            f"column {name!r} of {path} has no class in {rows} (first: row {missing[0] + 1}): fill them in or drop them"
        )
    if values.dtype.kind == "f":
        numbers = np.asarray(values, dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise Failure(f"column {name!r} of {path} holds infinite numbers, not classes: correct them")
        if not np.array_equal(numbers, np.floor(numbers)):
            odd = numbers[numbers != np.floor(numbers)][0]
            raise Failure(f"column {name!r} of {path} holds measurements such as {odd:g}, not classes: choose another")
        if np.abs(numbers).max() >= EXACT:
            huge = numbers[np.abs(numbers) >= EXACT][0]
            raise Failure(
                f"column {name!r} of {path} holds {huge:g}, too large for its last digits to be kept: "
                "name the classes by words or smaller numbers"
            )
        values = values.astype("int64")
    written = {str(v): str(v).strip() for v in values.unique()}
    as_first: dict[str, str] = {}
    for text, label in written.items():
        if as_first.setdefault(label, text) != text:
            raise Failure(
                f"column {name!r} of {path} holds {as_first[label]!r} and {text!r}, which differ in blanks alone: "
                "write them alike if they are one class, or else name them apart"
            )
    labels = np.array([written[str(v)] for v in values], dtype=object).astype(str)
    found = np.unique(labels)
    if len(found) < 2:
        raise Failure(f"column {name!r} of {path} has one class, {str(found[0])!r}: multiclass AUC needs two or more")
    return labels
