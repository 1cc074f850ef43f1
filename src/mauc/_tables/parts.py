"""Read tables in parts: the files of a folder, of a pattern or of a list, in batches of bounded size."""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.errors import Failure, Usage
from mauc._tables.read import (
    READABLE,
    Table,
    as_in_text,
    class_labels,
    count_of,
    date_format,
    first_names,
    read_table,
)
from mauc._tables.text import (
    UNREADABLE,
    Reading,
    Source,
    as_code,
    check_names,
    detect_separator,
    display_path,
    has_header,
    unreadable_text,
)
from mauc._typing import Ints

FORMATS = {"csv": "csv", "tsv": "csv", "tab": "csv", "txt": "csv", "parquet": "parquet", "pq": "parquet", "npz": "npz"}
MANIFEST = ".mauc-predict.json"
"""File beside the scores that ``mauc predict`` writes in parts: names the table, and whether all parts are written."""
BATCH_ROWS = 1 << 18
BYTES_PER_CELL = 40
"""Memory per cell of a table that is read whole and evaluated: the cell, its copies, and results."""
CSV_CELL, GZIPPED_CELL = 8, 3
"""Approximate size of a cell in a CSV file, in bytes."""
MEMORY_SHARE = 0.5
"""Share of the free memory that a table may take if it is read whole."""


def format_of(path: Path) -> str:
    """Return ``"csv"``, ``"parquet"`` or ``"npz"`` by the name of the file, else ``""``."""
    return FORMATS.get(path.name.removesuffix(".gz").rpartition(".")[2].lower(), "")


def find_parts(given: Sequence[Path], option: str) -> "Parts":
    """Return the files that the user names: by a folder, by a pattern, or one by one."""
    found = [file for path in given for file in _expanded(path)]
    duplicates = [path for path, times in Counter(found).items() if times > 1]
    if duplicates:
        raise Usage(f"{option} names {duplicates[0]} twice: its rows would count twice")
    for folder in dict.fromkeys(path.parent for path in found):
        manifest = folder / MANIFEST
        if manifest.is_file() and not json.loads(manifest.read_text(encoding="utf-8")).get("complete"):
            raise Failure(f"the scores in {folder} are incomplete: run the same mauc predict again to complete them")
    parts = Parts(tuple(given), tuple(found))
    for path in found if parts.several else ():
        if format_of(path) not in ("csv", "parquet"):
            raise Failure(f"{path} cannot be one of several parts: a part must end in .csv, .tsv or .parquet")
        if format_of(path) != parts.format:
            raise Failure(f"{path} and {found[0]} have different formats: all parts of a table must have one format")
    return parts


def _expanded(path: Path) -> list[Path]:
    if path.is_dir():
        # Spark and Dask put files such as _SUCCESS and _metadata beside the parts.
        files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith((".", "_")) and format_of(p))
        if not files:
            raise Failure(f"the folder {path} holds no file that ends in {READABLE}: check the name")
        return files
    if not path.exists() and any(c in str(path) for c in "*?["):
        files = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not files:
            raise Failure(f"no file matches {path}: check the pattern")
        return files
    return [path]


@dataclass(frozen=True)
class Parts:
    """The files of one table, in order."""

    given: tuple[Path, ...]
    paths: tuple[Path, ...]

    @property
    def several(self) -> bool:
        """Whether there is more than one file, or a folder or pattern that stands for one."""
        return len(self.paths) > 1 or self.paths != self.given

    @property
    def format(self) -> str:
        return format_of(self.paths[0])

    @property
    def display(self) -> str:
        """The name in messages: the path or pattern as typed, or the first of several."""
        first = display_path(self.given[0])
        return str(first) if len(self.given) == 1 else f"{first} and {len(self.given) - 1} more"

    @property
    def name(self) -> str:
        """The name in a report: that of the file or folder, or of the folder that all files are in."""
        if len(self.given) == 1 and (self.paths == self.given or self.given[0].exists()):
            return display_path(self.given[0]).name
        folders = {path.parent for path in self.paths}
        return (len(folders) == 1 and folders.pop().name) or f"{self.paths[0].name} and {len(self.paths) - 1} more"

    @cached_property
    def names(self) -> list[str]:
        """The columns of the first part; all parts must have the same columns, of the same types."""
        first = self.paths[0]
        expected = _header(first)
        for path in self.paths[1:]:
            found = _header(path)
            for name in expected.keys() ^ found.keys():
                has, lacks = (path, first) if name in found else (first, path)
                raise Failure(f"{lacks} has no column {name!r}, but {has} has: all parts need the same columns")
            for name, kind in found.items():
                if kind != expected[name] and "null" not in (kind, expected[name]):  # a column without a value
                    raise Failure(
                        f"column {name!r} of {path} holds {kind}, and {expected[name]} in {first}: write all parts "
                        "with one type"
                    )
        return list(expected)

    @cached_property
    def date_formats(self) -> dict[str, str]:
        """Format of each column of dates in Parquet: with hours if a row of any part has some."""
        import pyarrow as pa

        dates = [str(f.name) for f in open_parquet(self.paths[0]).schema_arrow if pa.types.is_timestamp(f.type)]
        forms = dict.fromkeys(dates, "")
        for path in self.paths if dates else ():
            for batch in part_batches(path, dates):
                for name, values in pa.Table.from_batches([batch]).to_pandas()[dates].items():
                    forms[str(name)] = max(forms[str(name)], date_format(values), key=len)
        return forms

    @property
    def n_rows(self) -> int:
        """Rows of all parts; counting those of CSV reads the files."""
        if self.format == "parquet":
            return sum(open_parquet(path).metadata.num_rows for path in self.paths)
        return sum(_csv(path, self.names[:1], text=True).count_rows() for path in self.paths)

    @property
    def n_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.paths)

    def fits(self) -> bool:
        """Return whether the whole table can be read and evaluated in the free memory."""
        if self.format == "npz" or not all(path.is_file() for path in self.paths):
            return True  # read whole, or refused, elsewhere
        cells = sum(path.stat().st_size / (GZIPPED_CELL if path.suffix == ".gz" else CSV_CELL) for path in self.paths)
        if self.format == "parquet":
            metadata = [open_parquet(path).metadata for path in self.paths]
            cells = sum(m.num_rows * m.num_columns for m in metadata)
        return cells * BYTES_PER_CELL < MEMORY_SHARE * available_memory()


def check_fits(parts: Parts) -> None:
    """Refuse to read a table whole that is in parts, or larger than the free memory."""
    if parts.several:
        raise Failure(
            f"mauc fit reads one file into memory, and {parts.display} stands for {len(parts.paths)}: join them, or "
            "train a linear model on all of them in Python with mauc.dask"
        )
    if not parts.fits():
        raise Failure(
            f"{parts.display} does not fit in memory ({parts.n_bytes / 1e9:.2g} GB, and {available_memory() / 1e9:.2g} "
            "are free): take a random sample of its rows, or train a linear model on all of them in Python with "
            "mauc.dask"
        )


def target_missing(parts: Parts, how: Reading, max_size: float) -> Usage:
    """Return the error for a missing ``--target``, which names the columns to choose from."""
    if parts.several or not parts.fits():
        names = parts.names
    else:
        names = [str(name) for name in read_table(parts.paths[0], max_size=max_size, how=how).columns]
    return Usage(
        f"--target is required: name the column of {parts.display} that holds the class of each row, one of "
        f"{first_names(names)}"
    )


def available_memory() -> float:
    """Return the free bytes of the machine or of the container; 8 GiB if the system does not say."""
    free = 8.0 * 2**30
    if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        free = float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        pass
    try:
        group = Path("/sys/fs/cgroup")
        free = min(free, float((group / "memory.max").read_text()) - float((group / "memory.current").read_text()))
    except (OSError, ValueError):  # no group, or one without a limit, which says "max"
        pass
    return free


def part_batches(
    path: Path, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS, *, text: bool = False
) -> Iterator[Any]:
    """Yield record batches of pyarrow, of these columns or of all; columns of CSV are read as text, or as numbers.

    Parquet is not read through pyarrow.dataset, whose batches are row groups or parts of one. From 10,000,000 rows of
    five scores, a group of all rows took 250 to 380 MiB that way and 100 MiB this way; groups of 1,000 rows came as
    batches of 1,000 rows.
    """
    try:
        if format_of(path) == "parquet":
            yield from open_parquet(path).iter_batches(rows, columns=columns)
        else:
            yield from _csv(path, columns or (), text=text).to_batches(batch_size=rows)
    except Failure:
        raise
    except Exception as error:
        raise _unreadable(path, error) from None


def open_parquet(path: Path) -> Any:
    """Open a Parquet file with a small buffer: one row group may hold all rows."""
    with _needing_pyarrow(path):
        import pyarrow.parquet as pq
    try:
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except Exception as error:
        raise _unreadable(path, error) from None


def _csv(path: Path, columns: Sequence[str], *, text: bool) -> Any:
    """Return some columns of a CSV file as a dataset of pyarrow; in text, only an empty cell is missing."""
    with _needing_pyarrow(path):
        import pyarrow as pa
        import pyarrow.csv as csv_reader
        import pyarrow.dataset as ds
    types = dict.fromkeys(columns, pa.string() if text else pa.float64())
    missing = {"null_values": [""]} if text else {}
    layout = ds.CsvFileFormat(
        parse_options=csv_reader.ParseOptions(delimiter=detect_separator(Source(path)), newlines_in_values=True),
        read_options=csv_reader.ReadOptions(block_size=1 << 23),
        convert_options=csv_reader.ConvertOptions(column_types=types, strings_can_be_null=True, **missing),
    )
    return ds.dataset([str(path)], format=layout, schema=pa.schema(list(types.items())))


@contextmanager
def _needing_pyarrow(path: Path) -> Iterator[None]:
    try:
        yield
    except ImportError:
        other = "save the table as CSV" if format_of(path) == "parquet" else "name one file that fits in memory"
        raise Failure(f"reading {path} needs pyarrow: pip install 'mauc[parquet]', or {other}") from None


def _unreadable(path: Path, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno is not None:
        return error
    if format_of(path) != "parquet":
        place = re.search(r"In CSV column #(\d+): .*conversion error to double", str(error))
        return unreadable_text(path, error) if place is None else _not_numbers(list(_header(path))[int(place[1])], path)
    return Failure(f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}): write it again")


def _not_numbers(name: str, path: Path) -> Failure:
    return Failure(f"column {name!r} of {path} must hold numbers, the scores of a class: correct it")


def _header(path: Path) -> dict[str, str]:
    """Return name → type of the columns of a part; all columns of CSV are text."""
    import pandas as pd

    if format_of(path) == "csv":
        if not path.exists():
            raise Failure(f"File not found: {path}")
        try:
            separator = detect_separator(Source(path))
            written = pd.read_csv(path, sep=separator, header=None, nrows=50, dtype=str, keep_default_na=False)
            first, *rows = written.to_numpy().tolist()
            if not has_header(first, rows):
                raise Failure(f"{path} seems to have no header, and parts of a table need one: add the names")
            names = pd.Index(first)
            check_names(names[names != ""], path)
            return dict.fromkeys(pd.read_csv(path, sep=separator, nrows=0).columns, "text")
        except UNREADABLE as error:
            raise unreadable_text(path, error) from None
    schema = open_parquet(path).schema_arrow
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    check_names(pd.Index(schema.names), path)
    return {field.name: _type_name(field.type) for field in schema if field.name not in index}


def _type_name(kind: Any) -> str:
    """Return the name of a type, the same for all ways to store text or dates."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else f"timestamp of {kind.tz}"
    return "string" if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else str(kind)


def table_chunks(parts: Parts, path: Path, rows: int, text: Sequence[str]) -> Iterator[tuple[Table, Any]]:
    """Yield a part in tables of ``rows`` rows, with the types of the whole; columns in ``text`` are read as text.

    With each table comes its batch of pyarrow, None for CSV. pandas reads CSV, as in a whole table: pyarrow takes the
    types of the columns from the first block, and fails if a later block has other types.
    """
    import pandas as pd

    if parts.format == "parquet":
        for batch in part_batches(path, rows=rows):
            import pyarrow as pa  # after the reader has said that it is missing

            yield _as_table(pa.Table.from_batches([batch]), parts.date_formats), batch
        return
    try:
        separator, dtypes = detect_separator(Source(path)), dict.fromkeys(text, str)
        with pd.read_csv(path, sep=separator, dtype=dtypes, low_memory=False, chunksize=rows) as chunks:
            yield from ((chunk.reset_index(drop=True), None) for chunk in chunks if len(chunk))
    except UNREADABLE as error:
        raise unreadable_text(path, error) from None


def _as_table(rows: Any, forms: Mapping[str, str]) -> Table:
    table = rows.to_pandas().rename(columns=str)
    for name, form in forms.items():
        table[name] = table[name].dt.strftime(form)
    return as_in_text(table.reset_index(drop=True))


@dataclass(frozen=True, eq=False)
class TrueClasses:
    """The class of every row of a table in parts."""

    labels: NDArray[np.str_]
    """Classes, sorted."""
    codes: NDArray[Any]
    """``(N,)`` index of each row's class, in as few bytes as possible."""

    def renamed(self, names: NDArray[np.str_]) -> "TrueClasses":
        """Return the same rows with other names for the labels; labels that get the same name are merged."""
        labels, place = np.unique(names, return_inverse=True)
        return TrueClasses(labels, smallest_ints(place, len(labels))[self.codes])

    def subset(self, rows: NDArray[np.bool_]) -> "TrueClasses":
        """Return some of the rows, and the labels that they have."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return TrueClasses(self.labels[used], smallest_ints(codes, len(used)))


def read_target(parts: Parts, name: str, most_values: int = 100_000) -> TrueClasses:
    """Return the classes in column ``name``, the same as :func:`class_labels` of the whole table."""
    places: dict[Any, int] = {}
    found: list[NDArray[Any]] = []
    for path in parts.paths:
        missing, first_missing, row = 0, 0, 0
        for values, index in _distinct_values(path, name):
            empty = np.flatnonzero(index < 0)
            first_missing = row + int(empty[0]) + 1 if len(empty) and not missing else first_missing
            missing += len(empty)
            row += len(index)
            place = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
            if len(places) > most_values:
                raise Failure(
                    f"column {name!r} of {parts.display} holds over {most_values} different values, not classes: "
                    "choose another column"
                )
            if not missing:
                found.append(smallest_ints(place, len(places))[index])
        if missing:
            raise Failure(
                f"column {name!r} of {path} has no class in {count_of(missing)} (first: row {first_missing}): fill "
                "them in or drop them"
            )
    if not places:
        raise Failure(f"{parts.display} has no rows: check that it is the right file")
    labels = class_labels(_as_series(parts, name, list(places)), name, Path(parts.display), as_named=True)
    return TrueClasses(np.arange(len(places)).astype(str), np.concatenate(found)).renamed(labels)


def smallest_ints(index: Any, n: int) -> NDArray[Any]:
    """Return numbers below n in as few bytes as possible."""
    return np.asarray(index).astype(np.min_scalar_type(max(n - 1, 0)))


def _distinct_values(path: Path, name: str) -> Iterator[tuple[list[Any], Ints]]:
    """Yield for each batch of a column its distinct values, and the index of each row's value, -1 where missing.

    Those of CSV are text: whether NA is missing or a class depends on the other values.
    """
    for batch in part_batches(path, [name], 1 << 20, text=True):
        import pyarrow.types as t  # after the reader has said that it is missing

        values = batch.column(0)
        if t.is_nested(values.type):
            raise Failure(f"column {name!r} of {path} holds lists, not classes: choose another column")
        coded = values if t.is_dictionary(values.type) else values.dictionary_encode()
        index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        distinct = coded.dictionary.to_pylist()
        used = np.flatnonzero(np.bincount(index + 1, minlength=len(distinct) + 1)[1:]).tolist()
        used = [k for k in used if distinct[k] is not None and distinct[k] == distinct[k]]
        place = np.full(len(distinct) + 1, -1)  # the last for those at -1
        place[used] = np.arange(len(used))
        yield [distinct[k] for k in used], place[index]


def _as_series(parts: Parts, name: str, values: list[Any]) -> Any:
    """Return distinct values of a column, with the type of the column in the whole table."""
    import pandas as pd

    if parts.format == "parquet":
        import pyarrow as pa

        kind = open_parquet(parts.paths[0]).schema_arrow.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return as_in_text(pa.table({name: pa.array(values, type=kind)}).to_pandas())[name]
    text = io.StringIO(pd.DataFrame({name: values}).to_csv(index=False, quoting=csv.QUOTE_ALL))
    written = pd.Series(values, dtype=str)
    typed = as_code(pd.read_csv(text, low_memory=False)[name], written, literal=True)
    missing = written[typed.isna()].tolist()
    if missing:
        raise Failure(
            f"column {name!r} of {parts.display} holds {missing[0]!r} among numbers: fill it in or drop such rows"
        )
    return typed


class ScoreColumns:
    """Columns of scores in parts, read again in each pass; a :class:`mauc.metrics.out_of_core.ScoredRows`."""

    def __init__(
        self, parts: Parts, names: Sequence[str], codes: NDArray[Any], counts: Ints, rows: NDArray[np.bool_]
    ) -> None:
        """Use the given ``rows`` of the parts; ``codes`` and ``counts`` describe these alone."""
        self.parts, self.names, self.codes, self.counts = parts, list(names), codes, counts
        self.rows = rows
        self._checked: set[str] = set()

    def scan(self, columns: Sequence[int], n_rows: int) -> Iterator[tuple[int, list[NDArray[np.floating]]]]:
        """Yield as :class:`mauc.metrics.out_of_core.ScoredRows` does; check what is read for the first time."""
        names = [self.names[k] for k in columns]
        first = n_before = 0
        for path in self.parts.paths:
            row = 0
            for batch in part_batches(path, names, n_rows):
                found = dict(zip(batch.schema.names, batch.columns, strict=True))
                arrays = [self._numbers(found[name], name, path, row) for name in names]
                wanted = self.rows[first + row : first + row + len(arrays[0])]
                row += len(arrays[0])
                if wanted.any():
                    yield n_before, arrays if wanted.all() else [array[wanted] for array in arrays]
                n_before += int(wanted.sum())
            first += row
        self._checked.update(names)

    def _numbers(self, values: Any, name: str, path: Path, row: int) -> NDArray[np.floating]:
        import pyarrow.types as t

        kind = values.type
        if not any(is_kind(kind) for is_kind in (t.is_floating, t.is_integer, t.is_boolean, t.is_decimal)):
            raise _not_numbers(name, path)
        single = t.is_float16(kind) or t.is_float32(kind)
        array = values.to_numpy(zero_copy_only=False).astype(np.float32 if single else np.float64, copy=False)
        if name not in self._checked:
            finite = np.isfinite(array)
            if not finite.all():
                k = int(np.argmin(finite))
                what = "missing" if np.isnan(array[k]) else "infinite"
                raise Failure(
                    f"column {name!r} of {path} has a score that is {what} (row {row + k + 1}): every row needs a "
                    "finite score for every class"
                )
        return np.asarray(array)
