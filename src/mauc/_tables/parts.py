"""Read Parquet tables that are several files, or larger than memory, in batches of bounded size."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.errors import Failure, Usage
from mauc._tables.read import (
    EXCEL,
    PARQUET,
    READABLE,
    TEXT,
    as_in_text,
    class_labels,
    parquet_errors,
    read_table,
)
from mauc._tables.scores import RowClasses, bad_score, smallest_ints
from mauc._tables.text import Reading, check_names, display_path, kind_of
from mauc._typing import Ints
from mauc._validation import listing

BYTES_PER_CELL = 40
"""Memory per cell of a table that is read whole and evaluated: the cell, its copies, and results."""
CSV_CELL, GZIPPED_CELL = 8, 3
"""Approximate size of a cell in a CSV file, in bytes."""
MEMORY_SHARE = 0.5
"""Share of the free memory that a table may take if it is read whole."""


def find_parts(given: Sequence[Path], option: str) -> "Parts":
    """Return the files that the user names, one by one or by a folder."""
    found = [file for path in given for file in (_files_in(path) if path.is_dir() else [path])]
    duplicates = [path for path, times in Counter(found).items() if times > 1]
    if duplicates:
        raise Usage(f"{option} names {duplicates[0]} twice: its rows would count twice")
    return Parts(tuple(given), tuple(found))


def _files_in(folder: Path) -> list[Path]:
    # Spark and Dask put files such as _SUCCESS and _metadata beside the parts.
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith((".", "_")))
    files = [path for path in files if kind_of(path) in (*TEXT, *EXCEL, *PARQUET)]
    if not files:
        raise Failure(f"the folder {folder} holds no file that ends in {READABLE}: check the name")
    return files


@dataclass(frozen=True)
class Parts:
    """The files of one table, in order."""

    given: tuple[Path, ...]
    paths: tuple[Path, ...]

    @property
    def several(self) -> bool:
        """Whether there is more than one file, or a folder that stands for one."""
        return self.paths != self.given or len(self.paths) > 1

    @property
    def display(self) -> str:
        """The name in messages: the path as typed, or the first of several."""
        first = display_path(self.given[0])
        return str(first) if len(self.given) == 1 else f"{first} and {len(self.given) - 1} more"

    @property
    def name(self) -> str:
        """The name in a report."""
        return Path(self.display).name

    @property
    def n_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.paths)

    @property
    def n_rows(self) -> int:
        return sum(open_parquet(path).metadata.num_rows for path in self.paths)

    @cached_property
    def names(self) -> list[str]:
        """The columns of the first part; all parts must have the same columns, of the same types."""
        first = self.paths[0]
        expected = _column_types(first)
        for path in self.paths[1:]:
            found = _column_types(path)
            for name in expected.keys() ^ found.keys():
                has, lacks = (path, first) if name in found else (first, path)
                raise Failure(f"{lacks} has no column {name!r}, but {has} has: all parts need the same columns")
            for name, kind in found.items():
                if expected[name] == "null":  # a column without a value
                    expected[name] = kind
                if kind not in ("null", expected[name]):
                    raise Failure(
                        f"column {name!r} of {path} holds {kind}, and {expected[name]} in parts before it: write all "
                        "parts with one type"
                    )
        return list(expected)

    def row_number(self, k: int) -> int:
        """Return the number of the row at position ``k``, from 1."""
        return k + 1

    def classes(self, name: str, most_values: int = 100_000) -> RowClasses:
        """Return the classes in column ``name``, the same as :func:`class_labels` of the whole table."""
        import pyarrow as pa

        places: dict[Any, int] = {}
        found: list[NDArray[Any]] = []
        for path in self.paths:
            row = 0
            for values, index in _distinct_values(path, name):
                empty = np.flatnonzero(index < 0)
                if len(empty):
                    raise Failure(
                        f"column {name!r} of {path} has no class in row {row + empty[0] + 1}: fill in such cells, or "
                        "drop the rows"
                    )
                row += len(index)
                place = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
                if len(places) > most_values:
                    raise Failure(
                        f"column {name!r} of {self.display} holds over {most_values} different values, not classes: "
                        "choose another column"
                    )
                found.append(smallest_ints(place, len(places))[index])
        if not places:
            raise Failure(f"{self.display} has no rows: check that it is the right file")
        distinct = as_in_text(pa.table({name: list(places)}).to_pandas())[name]
        labels = class_labels(distinct, name, Path(self.display), as_named=True)
        return RowClasses(np.arange(len(places)).astype(str), np.concatenate(found)).renamed(labels)


def fits(path: Path) -> bool:
    """Return whether a table can be read whole and evaluated in the free memory."""
    kind = kind_of(path)
    if not path.is_file() or kind not in (*TEXT, *PARQUET):
        return True  # a stream, or a file that its reader bounds or refuses
    if kind in PARQUET:
        metadata = open_parquet(path).metadata
        cells = metadata.num_rows * metadata.num_columns
    else:
        cells = path.stat().st_size / (GZIPPED_CELL if path.suffix.lower() == ".gz" else CSV_CELL)
    return cells * BYTES_PER_CELL < MEMORY_SHARE * available_memory()


def check_fits(path: Path, advice: str) -> None:
    """Refuse a table that is larger than the free memory."""
    if not fits(path):
        raise Failure(
            f"{path} does not fit in memory ({path.stat().st_size / 1e9:.2g} GB, and {available_memory() / 1e9:.2g} "
            f"are free): {advice}"
        )


def are_in_parts(tables: Sequence[Parts], target: str) -> bool:
    """Return whether to read the tables in parts: if one of them is several files, or does not fit in memory."""
    if not any(table.several or not fits(table.paths[0]) for table in tables):
        return False
    for path in (path for table in tables for path in table.paths):
        if not path.is_file():
            raise Failure(f"File not found: {path}")
        if kind_of(path) not in PARQUET:
            how = (
                f" by\nfor k, part in enumerate(pandas.read_csv({str(path)!r}, dtype={{{target!r}: str}}, "
                f"chunksize=10**6)): part.to_parquet(f'{path.name.partition('.')[0]}-{{k:04}}.parquet')"
            )
            raise Failure(
                f"{path} is not Parquet, and a table in several files or larger than memory must be: save it"
                f"{how if kind_of(path) in TEXT else ' as Parquet'}"
            )
    return True


def target_missing(parts: Parts, how: Reading, max_size: float) -> Usage:
    """Return the error for a missing ``--target``, which names the columns to choose from."""
    if are_in_parts([parts], "TARGET"):
        names = parts.names
    else:
        names = [str(name) for name in read_table(parts.paths[0], max_size=max_size, how=how).columns]
    return Usage(
        f"--target is required: name the column of {parts.display} that holds the class of each row, one of "
        f"{listing(names)}"
    )


def available_memory() -> float:
    """Return the free bytes of the machine or of the container; 8 GiB if the system does not say."""
    free = 8.0 * 2**30
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


def open_parquet(path: Path) -> Any:
    """Open a Parquet file with a small buffer: one row group may hold all rows."""
    with parquet_errors(path):
        import pyarrow.parquet as pq

        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)


def part_batches(path: Path, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield record batches of pyarrow, of these columns.

    Parquet is not read through pyarrow.dataset, whose batches are row groups or parts of one. From 10,000,000 rows of
    five scores, a group of all rows took 250 to 380 MiB that way and 100 MiB this way; groups of 1,000 rows came as
    batches of 1,000 rows.
    """
    with parquet_errors(path):
        yield from open_parquet(path).iter_batches(rows, columns=columns)


def _column_types(path: Path) -> dict[str, str]:
    """Return name → type of the columns of a part; all ways to store text are one type."""
    import pandas as pd

    schema = open_parquet(path).schema_arrow
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    check_names(pd.Index(schema.names), path)
    return {field.name: _type_name(field.type) for field in schema if field.name not in index}


def _type_name(kind: Any) -> str:
    name = str(getattr(kind, "value_type", kind))  # of categories
    return "string" if name in ("large_string", "string_view") else name


def _distinct_values(path: Path, name: str) -> Iterator[tuple[list[Any], Ints]]:
    """Yield for each batch of a column its distinct values, and the index of each row's value, -1 where missing."""
    import pyarrow.types as t

    for batch in part_batches(path, [name], 1 << 20):
        values = batch.column(0)
        if t.is_nested(values.type):
            raise Failure(f"column {name!r} of {path} holds lists, not classes: choose another column")
        # A column of categories may have some without a row: encoded anew, it has none.
        coded = (values.dictionary_decode() if t.is_dictionary(values.type) else values).dictionary_encode()
        index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        distinct = coded.dictionary.to_pylist()
        index[np.isin(index, [k for k, value in enumerate(distinct) if value != value])] = -1  # NaN
        yield distinct, index


class ScoreColumns:
    """Columns of scores in parts, read again in each pass; a :class:`mauc.metrics.out_of_core.ScoredRows`."""

    def __init__(
        self, parts: Parts, names: Sequence[str], codes: NDArray[Any], counts: Ints, rows: NDArray[np.bool_]
    ) -> None:
        """Use the given ``rows`` of the parts; ``codes`` and ``counts`` describe these alone."""
        self.parts, self.names, self.codes, self.counts = parts, list(names), codes, counts
        self.rows = rows
        self._checked: set[str] = set()
        """Columns whose scores are known to be finite."""

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
            raise bad_score(name, path)
        single = t.is_float16(kind) or t.is_float32(kind)
        array = values.to_numpy(zero_copy_only=False).astype(np.float32 if single else np.float64, copy=False)
        if name not in self._checked:
            finite = np.isfinite(array)
            if not finite.all():
                k = int(np.argmin(finite))
                raise bad_score(name, path, array[k], row + k + 1)
        return np.asarray(array)
