"""Tables of users: CSV, TSV, Excel, ARFF, Parquet or NPZ, columns by name, classes of a column."""

import difflib
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mauc._archive import MAX_SIZE, Refused, TooLarge, read_arrays
from mauc._tables.arff import read_arff
from mauc._tables.errors import Failure, Usage
from mauc._tables.excel import as_csv
from mauc._tables.layout import laid_out
from mauc._tables.model_file import is_model
from mauc._tables.source import Source
from mauc._tables.text import Reading, check_names, read_text

__all__ = [
    "Reading",
    "classes_of",
    "column",
    "date_form",
    "first_of",
    "labelled",
    "nearest",
    "read_table",
    "rows_with_lists",
    "without_repeats",
]

Table = Any  # pandas has types; they are not needed here, and importing it takes a second
READABLE = ".csv, .tsv, .xlsx, .arff, .parquet or .npz"
TEXT = ("csv", "tsv", "tab", "txt")
EXCEL = ("xlsx", "xlsm")
NAMES_OF_GAPS = frozenset({"NA", "N/A", "n/a", "NaN", "nan", "None", "none", "NULL", "Null", "null", "<NA>"})
EXACT = 2.0**53  # from here on, floating-point numbers skip whole ones


def read_table(
    path: Path,
    text: Collection[str] = (),
    codes: Collection[str] = (),
    max_size: float = MAX_SIZE,
    names: Collection[str] = (),
    how: Reading | None = None,
) -> Table:
    """A table with at least one row and one column, as a pandas DataFrame; ``-`` is standard input.

    The columns named in ``text`` are read from CSV and Excel as they are written, never as numbers; those in ``codes``
    only where one of their values begins with a 0 that a number would lose, as 007 does; in those of ``names`` besides,
    ``NA``, ``None`` or ``null`` among words is a word like the others. An archive may unpack to ``max_size`` GB more
    than it has. What was detected and is not plain is told by warnings.
    """
    how = how or Reading()
    if path.is_dir():
        raise Failure(f"{path} is a folder: name a file in it that ends in {READABLE}")
    source = Source.of(path, max_size)
    if source.kept is None and not path.exists():
        others = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise Failure(f"file not found: {path}{_did_you_mean(path.name, others)}")
    kind = source.kind
    _check_options(how, kind, source)
    if kind in TEXT or kind in EXCEL:
        if kind in EXCEL:
            source = as_csv(source, how.sheet, max_size)
            laid, separator = laid_out(source, ",", how.header, "utf-8")
            table = read_text(laid, text, {*codes, *names}, names, Reading(how.missing, "utf-8"), separator)
        else:
            laid, separator = laid_out(source, how.separator, how.header, how.encoding)
            table = read_text(laid, text, {*codes, *names}, names, how, separator)
    elif kind == "arff":
        table = _without(read_arff(source, text, how.encoding), how.missing)
    elif kind in ("parquet", "pq"):
        table = _without(_parquet(source), how.missing)
    elif kind == "npz" and source.kept is None:
        table = _without(_npz(path, max_size), how.missing)
    elif is_model(path):
        raise Failure(f"{path} is a model file, not a table: mauc predict {path.name} TABLE scores a table by it")
    else:
        raise Failure(f"{source.path} must end in {READABLE}: rename it, or save it as one of these")
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise Failure(f"{source.path} has no rows: check that it is the right file")
    table = table.rename(columns=str)
    check_names(table.columns, source.path)
    table = as_in_text(table)
    _hint_at_gaps(table, {*text, *codes, *names}, source.path)
    return table


def _check_options(how: Reading, kind: str, source: Source) -> None:
    """What is told about a file is about files of its kind."""
    if how.sheet is not None and kind not in EXCEL:
        raise Usage(f"--sheet is for Excel files, and {source.path} is none: leave it out")
    if how.separator is not None and kind not in TEXT:
        raise Usage(f"--separator is for text files, and {source.path} is none: leave it out")
    if how.header is not None and kind not in (*TEXT, *EXCEL):
        raise Usage(f"--header and --no-header are for text and Excel, and {source.path} is neither: leave it out")


def _hint_at_gaps(table: Table, as_they_are: Collection[str], path: Path, most_signs: int = 2) -> None:
    """Numbers among which one or two other texts recur are read as text, which is hardly meant."""
    import pandas as pd

    for name in table.columns:
        cells = table[name].dropna()
        if name in as_they_are or not len(cells) or not isinstance(cells.iloc[0], str):
            continue
        cells = cells.astype(str)
        if pd.to_numeric(cells.head(1000), errors="coerce").isna().all():
            continue
        others = cells[pd.to_numeric(cells, errors="coerce").isna()]
        signs = list(map(str, others.unique()[: most_signs + 1]))
        if 0 < len(signs) <= most_signs and 2 * len(others) < len(cells):
            options = " ".join(f"--missing {sign}" if sign.isalnum() else f"--missing '{sign}'" for sign in signs)
            warnings.warn(
                f"column {name!r} of {path} holds numbers, and {' and '.join(map(repr, signs))} in {len(others)} of "
                f"{len(cells)} rows: it is read as text; {options} reads numbers with gaps",
                stacklevel=3,
            )


def without_repeats(table: Table, path: Path) -> Table:
    """The rows that are alike in every column once each, which is told."""
    try:
        repeated = table.duplicated()
    except TypeError:  # lists, which Parquet may hold
        repeated = table.map(repr).duplicated()
    n = int(repeated.sum())
    if n:
        rows, again = ("1 row", "repeats another") if n == 1 else (f"{n} rows", "repeat others")
        left = "is" if n == 1 else "are"
        warnings.warn(f"{rows} of {path} {again} in every column, and {left} left out", stacklevel=2)
    return table[~repeated].reset_index(drop=True)


def _without(table: Table, missing: Collection[str]) -> Table:
    """Cells that are written as one of these become missing."""
    if not missing:
        return table
    return table.mask(table.map(lambda value: str(value).removesuffix(".0") in missing or str(value) in missing))


def as_in_text(table: Table) -> Table:
    """Dates, categories and decimals as a CSV file would have them, so that all formats give the same model.

    ``attrs["ordered"]`` has the categories of columns that had an ordered data type, from the lowest to the highest.
    """
    from pandas.api.types import infer_dtype

    table = table.copy()
    ordered = {name: table[name].dtype for name in table.columns if getattr(table[name].dtype, "ordered", False)}
    table.attrs["ordered"] = {name: [str(each).strip() for each in kind.categories] for name, kind in ordered.items()}
    for name in table.columns:
        values = table[name]
        if values.dtype.kind == "M":
            table[name] = values.dt.strftime(date_form(values))
        elif str(values.dtype) == "category":
            table[name] = values.astype(values.cat.categories.dtype)
        elif values.dtype == object and infer_dtype(values, skipna=True) == "decimal":
            table[name] = _of_decimals(values)
    return table


def _of_decimals(values: Any) -> Any:
    """Numbers, as CSV would have them: whole ones where all are, as far as these keep every digit."""
    there = values.dropna()
    if len(there) == len(values) and all(v.is_finite() and v == int(v) and abs(v) < 2**63 for v in there):
        return values.map(int).astype("int64")
    return values.astype("float64")


def date_form(values: Any) -> str:
    """How dates are written so that none loses anything."""
    stays = values.dropna()
    form = "%Y-%m-%d" if (stays == stays.dt.normalize()).all() else "%Y-%m-%d %H:%M:%S"
    return form + ".%f" if stays.dt.microsecond.any() else form


def _parquet(source: Source) -> Table:
    import pandas as pd

    path = source.path
    try:
        return pd.read_parquet(path if source.kept is None else source.raw())
    except ImportError:
        raise Failure(f"reading {path} needs pyarrow: pip install 'mauc[parquet]', or save the table as CSV") from None
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
        hint = _did_you_mean(name, names) or f"; its columns are {first_of(names)}{otherwise}"
        raise Usage(f"{option} {name!r} is no column of {path}{hint}")
    return table[name]


def first_of(names: Sequence[str]) -> str:
    """The names, or the first of many."""
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


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


def labelled(target: Any, name: str, path: Path) -> Any:
    """``(N,)`` which rows have a class; those without are left out, which is told."""
    found = np.asarray(target.notna())
    n = int((~found).sum())
    if n:
        rows, are = ("1 row", "is") if n == 1 else (f"{n} rows", "are")
        warnings.warn(f"{rows} of {path} without a class in {name!r} {are} left out", stacklevel=2)
    return found


def classes_of(values: Any, name: str, path: Path, *, as_named: bool = False) -> Any:
    """The class of every row as a string without the blanks around it.

    A column without two classes, of measurements, of lists, or with two classes that differ only in such blanks is
    refused. Whole numbers are measurements where there are many and few recur, unless scores name them as classes.
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
            f"column {name!r} of {path} has no class in {rows} (first: row {missing[0] + 1}): fill them in, "
            "or leave them out with --drop-unlabelled"
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
    if values.dtype.kind in "iu" and not as_named:
        _check_counted(values, name, path)
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
    for label in sorted(NAMES_OF_GAPS.intersection(found)):
        told = f"column {name!r} of {path} has a class named {label}; --missing {label} makes it a gap"
        warnings.warn(told, stacklevel=2)
    if len(found) < 2:
        raise Failure(f"column {name!r} of {path} has one class, {str(found[0])!r}: multiclass AUC needs two or more")
    return labels


def _check_counted(values: Any, name: str, path: Path, many: int = 100, rows_each: float = 20.0) -> None:
    """Whole numbers are classes where they are few, recur often, or leave hardly a number out, as codes do."""
    distinct = np.unique(np.asarray(values))
    span = float(distinct[-1]) - float(distinct[0]) + 1
    if len(distinct) > many and len(values) < rows_each * len(distinct) and len(distinct) < 0.5 * span:
        raise Failure(
            f"column {name!r} of {path} holds measurements such as {distinct[0]} and {distinct[1]} ({len(distinct)} "
            f"numbers in {len(values)} rows), not classes: choose another, join them to ranges, or write "
            f"{name}_{distinct[0]} and so on if they are classes"
        )
