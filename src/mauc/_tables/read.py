"""Read CSV, TSV, Excel and Parquet files, their columns, and the classes in a column."""

import difflib
import io
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._archive import MAX_SIZE
from mauc._tables.errors import Failure, Usage, option_name
from mauc._tables.excel import excel_as_csv
from mauc._tables.model_file import is_model
from mauc._tables.text import (
    EXACT,
    NAMES_OF_MISSING,
    STDIN,
    Reading,
    check_names,
    kind_of,
    read_source,
    read_text,
    with_long_integers,
)
from mauc._validation import invalid, listing

Table = Any  # pandas is imported only when needed: it takes a second
READABLE = ".csv, .tsv, .xlsx or .parquet"
TEXT = ("csv", "tsv", "tab", "txt")
EXCEL = ("xlsx", "xlsm")
PARQUET = ("parquet", "pq")


def read_table(
    path: Path,
    text: Collection[str] = (),
    codes: Collection[str] = (),
    max_size: float = MAX_SIZE,
    names: Collection[str] = (),
    how: Reading | None = None,
) -> Table:
    """Return a table of at least one row and one column as a pandas DataFrame; ``-`` is standard input.

    From CSV and Excel, the columns named in ``text`` are read as text, never as numbers. Those in ``codes`` are read as
    text if a number would not be written like a cell, such as 007, 1E1 and 1.10. Those in ``names`` too, but fractions
    are numbers, and ``NA``, ``None`` or ``null`` among words is a word like the others. An archive may unpack to
    ``max_size`` GB more than its own size. Warnings say what was detected if it is unusual. ``attrs["reading"]`` has
    ``how`` and what was found.
    """
    return read_with_copies(path, (), text, codes, max_size, names, how)[0]


def read_with_copies(
    path: Path,
    copied: Collection[str],
    text: Collection[str] = (),
    codes: Collection[str] = (),
    max_size: float = MAX_SIZE,
    names: Collection[str] = (),
    how: Reading | None = None,
) -> tuple[Table, Table]:
    """Return a table as :func:`read_table` does, and those of the columns ``copied`` that it has.

    From CSV and Excel, a copy is text as it is written; from Parquet, it is of the type of the column.
    """
    how = how or Reading()
    if path.is_dir():
        raise Failure(f"{path} is a folder: name a file in it that ends in {READABLE}")
    if path != STDIN and not path.exists():
        others = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise Failure(f"File not found: {path}{did_you_mean(path.name, others)}")
    if path.is_file() and kind_of(path) not in (*TEXT, *EXCEL, *PARQUET):
        if is_model(path):
            raise Failure(f"{path} is a model file, not a table: to score a table use mauc predict {path.name} TABLE")
        raise Failure(f"{path} must end in {READABLE}: rename it, or save it as one of these")
    source = read_source(path, max_size)
    kind = source.kind
    check_how(how, kind, source.path)
    if kind in PARQUET:
        with parquet_errors(source.path):
            import pyarrow.parquet as pq

            table = pq.read_table(io.BytesIO(source.content))
        return frames_of_arrow(table, copied, how, source.path)
    if kind in EXCEL:
        source, how = excel_as_csv(source, how.sheet, max_size), replace(how, encoding="utf-8", separator=",")
    table, copies = read_text(source, copied, text, codes, names, how)
    return checked_table(table, source.path), copies


def arrow_frame(table: Any) -> Table:
    """Return a table of pyarrow as a data frame in which integers beside missing values have all digits."""
    import pandas as pd
    import pyarrow as pa

    frame = table.to_pandas()
    long = [name for name in with_long_integers(frame) if pa.types.is_integer(table.schema.field(name).type)]
    for name in long:
        frame[name] = pd.array(table[name].to_pylist(), dtype="UInt64" if (frame[name] >= 2.0**63).any() else "Int64")
    return frame


def frames_of_arrow(table: Any, copied: Collection[str], how: Reading, path: Path) -> tuple[Table, Table]:
    """Return what :func:`read_with_copies` does for a table of pyarrow, such as a batch of a file."""
    frame = arrow_frame(table).reset_index(drop=True)
    copies = frame[[name for name in frame.columns if str(name) in copied]].rename(columns=str)
    frame = without_texts(frame, how.missing)
    frame.attrs["reading"] = how
    return checked_table(frame, path), copies


def check_how(how: Reading, kind: str, path: Path) -> None:
    """Refuse options that a file of this kind does not have."""
    for option, value, kinds, which in (
        ("--sheet", how.sheet, EXCEL, "Excel"),
        ("--separator", how.separator, TEXT, "text"),
        ("--encoding", how.encoding, TEXT, "text"),
        ("--header/--no-header", how.header, TEXT + EXCEL, "text and Excel"),
    ):
        if value is not None and kind not in kinds:
            raise Usage(f"{option} is for {which} files, and {path} is not one: leave it out")


def checked_table(table: Table, path: Path) -> Table:
    """Return a data frame as text files give it; refuse one without rows, or with two columns of one name."""
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise Failure(f"{path} has no rows: check that it is the right one")
    table = table.rename(columns=str)
    check_names(table.columns, path)
    return as_in_text(table)


def as_frame(table: Any) -> Table:
    """Return a data frame of pandas, made of one of another library if need be."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    if not hasattr(table, "to_pandas"):
        raise invalid("table", "must be a data frame", type(table).__name__, "pass pandas.DataFrame(…)")
    frame = table.to_pandas()
    for name in with_long_integers(frame):
        cells = list(table[name])
        if all(cell is None or isinstance(cell, int) for cell in cells):
            frame[name] = pd.array(cells, dtype="Int64")
    return frame


def as_read(table: Any, missing: Collection[str] = ()) -> Table:
    """Return a data frame of the user as :func:`read_table` returns tables; ``missing`` as in :class:`Reading`."""
    return checked_table(without_texts(as_frame(table).reset_index(drop=True), missing), Path("the table"))


def without_texts(table: Table, missing: Collection[str]) -> Table:
    """Return a table in which cells that would be written as one of these texts are missing."""
    if not missing:
        return table
    written = table.map(str)
    return table.mask(written.isin(missing) | written.map(lambda text: text.removesuffix(".0")).isin(missing))


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Say what to do about a Parquet file that cannot be read."""
    try:
        yield
    except Failure:
        raise
    except ImportError:
        raise Failure(f"reading {path} needs pyarrow: pip install 'mauc[parquet]', or save the table as CSV") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Failure(f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}): write it again") from None


def warn_of_missing_signs(table: Table, unchanged: Collection[str], path: Path, most_signs: int = 4) -> None:
    """Warn of columns read as text because a few other texts, such as ``?``, recur among their numbers."""
    import pandas as pd

    from mauc.ensemble.columns import MISSING_TEXTS

    for name in other_columns(table):
        cells = table[name].dropna()
        if name in unchanged or not len(cells) or not isinstance(cells.iloc[0], str):
            continue
        cells = cells.astype(str)
        if np.isnan(pd.to_numeric(cells.head(1000).unique(), errors="coerce")).all():
            continue
        # TableColumns takes ? and the like among numbers for missing values.
        others = cells[
            pd.to_numeric(cells, errors="coerce").isna() & ~cells.str.strip().str.lower().isin(MISSING_TEXTS)
        ]
        signs = list(map(str, others.unique()[: most_signs + 1]))
        if 0 < len(signs) <= most_signs and 2 * len(others) < len(cells):
            options = " ".join(f"--missing {sign}" if sign.isalnum() else f"--missing '{sign}'" for sign in signs)
            warnings.warn(
                f"column {name!r} of {path} holds numbers, and {' and '.join(map(repr, signs))} in {len(others)} of "
                f"{len(cells)} rows, so it is read as text; to read numbers with missing values use {options}",
                stacklevel=2,
            )


def as_in_text(table: Table) -> Table:
    """Return dates, categories and decimals as a CSV file would have them, so that all formats give the same model.

    Dates with a time zone are in UTC, and durations in seconds. ``attrs["ordered"]`` holds the categories of columns
    with an ordered data type, from lowest to highest.
    """
    import pandas as pd

    table = table.copy(deep=False)
    ordered = {name: kind for name, kind in table.dtypes.items() if getattr(kind, "ordered", False)}
    table.attrs["ordered"] = {
        name: list(map(as_label, _in_text(pd.Series(kind.categories, name=name)))) for name, kind in ordered.items()
    }
    for name in other_columns(table):
        values = table[name]
        found = _in_text(values)
        if found is not values:
            table[name] = found
    return table


def _in_text(values: Any) -> Any:
    """Return a column as :func:`as_in_text` has it, or the column itself."""
    import pandas as pd
    from pandas.api.types import infer_dtype

    if str(values.dtype) == "category":
        kind = values.cat.categories.dtype
        if isinstance(kind, pd.IntervalDtype):
            kind = np.dtype(object)
        values = values.astype("float64" if kind.kind in "iu" and values.isna().any() else kind)
    form = infer_dtype(values, skipna=True)
    if form == "complex":
        raise Failure(
            f"column {values.name!r} must hold real numbers, dates or texts, got complex numbers: replace it by two "
            "columns, such as the real and the imaginary part"
        )
    if form == "datetime":
        values = values.where(values.notna(), None).infer_objects()
    if values.dtype.kind == "M":
        return dates_in_text(values)
    if form.startswith("timedelta"):
        return pd.to_timedelta(values).dt.total_seconds().astype("float64")
    if form in ("date", "datetime", "interval", "period"):
        return values.astype(object).where(values.notna(), None).map(str, na_action="ignore")
    if form == "decimal":
        values = values.astype(object)
        values = values.where(values.notna(), None)
        known = values.dropna()
        whole = len(known) == len(values) and all(
            v.is_finite() and v == int(v) and abs(v) < 2**63 for v in known
        )  # as far as integers keep every digit
        return values.map(int).astype("int64") if whole else values.astype("float64")
    return values


def as_label(value: Any) -> str:
    """Return a class or a group as text, without blanks around it; 1.0 is 1, as it may be read with or without gaps.

    >>> as_label(1.0), as_label(" p1 "), as_label(True)
    ('1', 'p1', 'True')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def other_columns(table: Table) -> list[str]:
    """Return the columns whose data type is not numeric; quick for thousands of columns."""
    return [name for name, kind in table.dtypes.items() if kind.kind not in "iufb"]


def dates_in_text(values: Any) -> Any:
    """Return dates as text without loss; those with a time zone in UTC, for local times recur when clocks go back."""
    import pandas as pd

    dates = pd.Series(pd.DatetimeIndex(values), index=values.index)  # pyarrow's types too
    has_zone = dates.dt.tz is not None
    dates = dates.dt.tz_convert("UTC") if has_zone else dates
    known = dates.dropna()
    only_days = not has_zone and (known == known.dt.normalize()).all()
    form = "%Y-%m-%d" if only_days else "%Y-%m-%d %H:%M:%S"
    nanoseconds = known.dt.nanosecond
    text = dates.dt.strftime(form + ".%f" if known.dt.microsecond.any() or nanoseconds.any() else form)
    if nanoseconds.any():
        text += nanoseconds.map("{:03d}".format)
    return text + "+0000" if has_zone else text


def drop_duplicates(table: Table, path: Path) -> Table:
    """Return each distinct row once, with a warning about the others."""
    try:
        repeated = table.duplicated()
    except TypeError:  # lists, which Parquet may hold
        repeated = table.map(repr).duplicated()
    n = int(repeated.sum())
    if n:
        verb = "is" if n == 1 else "are"
        warnings.warn(f"{count_of(n, 'duplicate row')} of {path} {verb} dropped", stacklevel=2)
    return table[~repeated].reset_index(drop=True)


def count_of(n: int, what: str = "row") -> str:
    """Return a number of things in words.

    >>> count_of(1), count_of(3, "column")
    ('1 row', '3 columns')
    """
    return f"1 {what}" if n == 1 else f"{n:,} {what}s"


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three of the names that look like this one, ignoring case."""
    by_lower = {other.lower(): other for other in names}
    return [by_lower[key] for key in difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.65)]


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a question about the names that look like this one; empty if none does."""
    close = nearest(name, names)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def get_column(table: Table, name: str, option: str, path: Path) -> Any:
    """Return a column, or raise an error if there is none of this name."""
    check_column([str(c) for c in table.columns], name, option, str(path))
    return table[name]


def check_column(names: Sequence[str], name: str, option: str, path: str, otherwise: str = "") -> None:
    """Raise an error if a column is missing, with the names nearest to the one asked for, or all names and advice."""
    if name not in names:
        last = f", {names[-1]}" if len(names) > 8 else ""  # often the target
        hint = did_you_mean(name, names) or f"; its columns are {listing(names)}{last}{otherwise}"
        if all(re.fullmatch(r"-?[\d.]+", each) for each in names):
            hint += "; if these are the first row, use --no-header"
        raise Usage(f"{option} {name!r} is not a column of {path}{hint}")


def rows_with_lists(values: Any) -> list[int]:
    """Return the rows of a column that hold a list, a set or a dictionary, as Parquet may have them."""
    if str(values.dtype).startswith(("list", "large_list", "fixed_size_list", "struct", "map")):  # of pyarrow
        return np.flatnonzero(values.notna()).tolist()
    if values.dtype != object:
        return []
    return [k for k, v in enumerate(values) if isinstance(v, list | tuple | set | dict | np.ndarray)]


def check_single(table: Table, path: Path, advice: str) -> None:
    """Refuse lists, which Parquet may hold."""
    for name in other_columns(table):
        bad = rows_with_lists(table[name])
        if bad:
            raise Failure(
                f"column {name!r} of {path} holds lists (first: row {bad[0] + 1}), not single values: {advice}"
            )


def has_class(found: NDArray[np.bool_], name: str, path: Path) -> NDArray[np.bool_]:
    """Return the ``(N,)`` mask of the rows that have a class, with a warning about the others."""
    n = int((~found).sum())
    if n:
        verb = "is" if n == 1 else "are"
        warnings.warn(f"{count_of(n)} of {path} without a class in {name!r} {verb} left out", stacklevel=2)
    return found


def no_class(column: str, n: int, first: str) -> Failure:
    """Return the error for a column with ``n`` rows without a class."""
    advice = f"fill them in, or leave them out with {option_name('drop-unlabelled')}"
    return Failure(f"{column} has no class in {count_of(n)} (first: {first}): {advice}")


def class_labels(values: Any, name: str, path: Path, *, as_named: bool = False) -> Any:
    """Return the class of every row as a string, stripped of blanks.

    Refuses a column without two classes, of measurements, of lists, or with two classes that differ only in blanks.
    Whole numbers are measurements where there are many and few recur, unless the names of scores name them as classes
    (``as_named``).
    """
    import pandas as pd

    where = f"column {name!r} of {path}"
    lists = rows_with_lists(values)
    if lists:
        raise Failure(f"{where} holds lists (first: row {lists[0] + 1}), not classes: choose another column")
    missing = np.flatnonzero(np.asarray(values.isna()))
    if len(missing):
        raise no_class(where, len(missing), f"row {missing[0] + 1}")
    if values.dtype.kind == "f":
        numbers = np.asarray(values, dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise Failure(f"{where} holds infinite numbers, not classes: correct them")
        if not np.array_equal(numbers, np.floor(numbers)):
            fraction = numbers[numbers != np.floor(numbers)][0]
            raise Failure(f"{where} holds measurements such as {fraction:g}, not classes: choose another column")
        if np.abs(numbers).max() >= EXACT:
            huge = numbers[np.abs(numbers) >= EXACT][0]
            raise Failure(f"{where} holds {huge:g}, too large to be read exactly: use texts as classes")
        values = values.astype("int64")
    if values.dtype.kind in "iu" and not as_named:
        _check_few_numbers(values, name, path)
    # As text, if values are of several types: True is not 1.
    codes, distinct = pd.factorize(values.map(str) if values.dtype == object else values)
    spelling: dict[str, str] = {}
    for text in map(str, distinct):
        label = text.strip()
        if spelling.setdefault(label, text) != text:
            raise Failure(
                f"{where} holds {spelling[label]!r} and {text!r}, which differ only in blanks: write them alike if "
                "they are one class, else rename one"
            )
    found = list(spelling)
    for label in sorted(NAMES_OF_MISSING.intersection(found)):
        warnings.warn(f"{where} has a class named {label}; if it means missing, use --missing {label}", stacklevel=2)
    if len(found) < 2:
        raise Failure(f"{where} has one class, {found[0]!r}: multiclass AUC needs two or more")
    return np.array(found)[codes]


def _check_few_numbers(values: Any, name: str, path: Path) -> None:
    """Refuse whole numbers as classes, unless they are few, recur often, or leave few gaps, as codes do."""
    distinct = np.unique(np.asarray(values))
    span = float(distinct[-1]) - float(distinct[0]) + 1
    rows_each = len(values) / len(distinct)
    recur = rows_each >= (20.0 if len(distinct) > 100 else 5.0)
    if len(distinct) > 30 and not recur and len(distinct) < 0.9 * span:
        raise Failure(
            f"column {name!r} of {path} holds measurements such as {distinct[0]} and {distinct[1]} ({len(distinct)} "
            f"numbers in {len(values)} rows), not classes: choose another column, group them into ranges, or, if they "
            f"are classes, write {name}_{distinct[0]} and so on"
        )
