"""Find the files of a table, and read Parquet files as one table, in batches of bounded size."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._archive import MAX_SIZE
from mauc._tables.errors import Failure, Usage
from mauc._tables.read import (
    EXCEL,
    PARQUET,
    READABLE,
    TEXT,
    Table,
    arrow_frame,
    as_in_text,
    check_how,
    parquet_errors,
    read_table,
    without_texts,
)
from mauc._tables.scores import SLICE, CodedColumn, ScoreTable, WholeTable, holds_lists, signed
from mauc._tables.text import Reading, check_names, display_path, kind_of
from mauc._validation import listing

BYTES_PER_CELL = 40
"""Memory per cell of a table that is read whole and evaluated: the cell, its copies, and results."""
CSV_CELL, GZIPPED_CELL = 8, 3
"""Approximate size of a cell in a CSV file, in bytes."""
MEMORY_SHARE = 0.5
"""Share of the free memory that a table may take if it is read whole."""


@dataclass(frozen=True)
class Files:
    """The files of one table, in order."""

    given: tuple[Path, ...]
    paths: tuple[Path, ...]
    by_numbers: bool = False
    """Whether the numbers in the names decide the order, and the text of the names would give another."""

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


def find_files(given: Sequence[Path], option: str) -> Files:
    """Return the files that the user names, one by one or by a folder.

    Names in the order of a dictionary, as in a folder or from ``part-*``, are sorted by their numbers.
    """
    found = [file for path in given for file in (_files_in(path) if path.is_dir() else [path])]
    duplicates = [path for path, times in Counter(found).items() if times > 1]
    if duplicates:
        raise Usage(f"{option} names {duplicates[0]} twice: its rows would count twice")
    ordered = sorted(found, key=_by_numbers) if found == sorted(found) else found
    return Files(tuple(given), tuple(ordered), ordered != found)


def _by_numbers(path: Path) -> list[Any]:
    """Return the key that puts part-2 before part-10."""
    return [int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", str(path))]


def _files_in(folder: Path) -> list[Path]:
    # Spark and Dask put files such as _SUCCESS and _metadata beside the parts.
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith((".", "_")))
    files = [path for path in files if kind_of(path) in (*TEXT, *EXCEL, *PARQUET)]
    if not files:
        raise Failure(f"the folder {folder} holds no file that ends in {READABLE}: check the name")
    return files


def open_table(
    files: Files, how: Reading, max_size: float = MAX_SIZE, codes: Sequence[str] = (), names: Sequence[str] = ()
) -> ScoreTable:
    """Return the table in these files: Parquet files stay on the disk, and another file is read.

    ``codes`` and ``names`` are columns, as in :func:`mauc._tables.read.read_table`; the first of ``names`` has the
    classes.
    """
    for path in files.paths if files.several else ():
        if not path.is_file():
            raise Failure(f"File not found: {path}")
        if kind_of(path) not in PARQUET:
            raise _no_parquet(path, [*names, "TARGET"][0])
    path = files.paths[0]
    if path.is_file() and path.suffix.lower().removeprefix(".") in PARQUET:
        return PartsTable(files, how)
    if not fits(path):
        raise _no_parquet(path, [*names, "TARGET"][0])
    return WholeTable(path, read_table(path, codes=codes, max_size=max_size, names=names, how=how))


def _no_parquet(path: Path, target: str) -> Failure:
    way = (
        f" by\nfor k, part in enumerate(pandas.read_csv({str(path)!r}, dtype={{{target!r}: str}}, chunksize=10**6)): "
        f"part.to_parquet(f'{path.name.partition('.')[0]}-{{k:04}}.parquet')"
    )
    return Failure(
        f"{path} is not Parquet, and a table in several files or larger than memory must be: save it"
        f"{way if kind_of(path) in TEXT else ' as Parquet'}"
    )


class PartsTable(ScoreTable):
    """A table in Parquet files, which are read in batches of bounded size.

    All parts must have the same columns, of the same types.
    """

    def __init__(self, files: Files, how: Reading) -> None:
        check_how(how, PARQUET[0], Path(files.display))
        self.paths, self.display, self.name, self.missing = files.paths, files.display, files.name, how.missing
        opened = [open_parquet(path) for path in files.paths]
        self.ends = list(accumulate(part.metadata.num_rows for part in opened))
        self.n_rows = self.ends[-1]
        if not self.n_rows:
            raise Failure(f"{self.display} has no rows: check that it is the right file")
        self.fields = self._common_fields([part.schema_arrow for part in opened])
        self.names = list(self.fields)

    def _common_fields(self, schemas: Sequence[Any]) -> dict[str, Any]:
        """Return name → type of the columns, which are those of every part."""
        first, *others = (_fields(schema, path) for schema, path in zip(schemas, self.paths, strict=True))
        for path, found in zip(self.paths[1:], others, strict=True):
            for name in first.keys() ^ found.keys():
                has, lacks = (path, self.paths[0]) if name in found else (self.paths[0], path)
                raise Failure(f"{lacks} has no column {name!r}, but {has} has: all parts need the same columns")
            for name, kind in found.items():
                if str(first[name]) == "null":  # a column without a value
                    first[name] = kind
                if kind != first[name] and str(kind) != "null":
                    raise Failure(
                        f"column {name!r} of {path} holds {_type_name(kind)}, and {_type_name(first[name])} in parts "
                        "before it: write all parts with one type"
                    )
        return first

    def place(self, k: int) -> str:
        """Return as :meth:`ScoreTable.place` does."""
        part = bisect_right(self.ends, k)
        row = k + 1 - (self.ends[part - 1] if part else 0)
        return f"row {row} of {self.paths[part]}" if len(self.paths) > 1 else f"row {row}"

    def rows_of(self, part: int) -> int:
        """Return the number of rows of a part."""
        return self.ends[part] - (self.ends[part - 1] if part else 0)

    def slices(self, names: Sequence[str], n_rows: int) -> Iterator[Table]:
        """Yield as :meth:`ScoreTable.slices` does."""
        import pyarrow as pa

        schema = pa.schema([(name, self.fields[name]) for name in names])
        held: list[Any] = []
        n_held = 0
        for batch in self._batches(names, n_rows):
            while batch.num_rows:
                held.append(batch.slice(0, n_rows - n_held))
                n_held += held[-1].num_rows
                batch = batch.slice(held[-1].num_rows)
                if n_held == n_rows:
                    yield self._as_read(pa.Table.from_batches(held, schema))
                    held, n_held = [], 0
        if held:
            yield self._as_read(pa.Table.from_batches(held, schema))

    def _batches(self, names: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Yield record batches of these columns, of their common types.

        Parquet is not read through pyarrow.dataset, whose batches are row groups or parts of one. From 10,000,000 rows
        of five scores, a group of all rows took 250 to 380 MiB that way and 100 MiB this way; groups of 1,000 rows came
        as batches of 1,000 rows.
        """
        import pyarrow as pa

        schema = pa.schema([(name, self.fields[name]) for name in names])
        what = f"column {names[0]!r}" if len(names) == 1 else f"{len(names)} columns"
        n_read = 0
        for number, path in enumerate(self.paths, 1):
            with parquet_errors(path):
                file = open_parquet(path)
                ranges = _ranges(file.metadata, names)
                for batch in file.iter_batches(n_rows, columns=list(names)):
                    part = f", part {number} of {len(self.paths)}" if len(self.paths) > 1 else ""
                    self.tell(f"reading {what} of {self.display}{part}: {n_read / self.n_rows:.0%}")
                    n_read += batch.num_rows
                    for name, (low, high) in ranges.items():
                        _check_range(batch[name], low, high, name, path)
                    columns = [_cast(batch[name], self.fields[name]) for name in names]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _as_read(self, table: Any) -> Table:
        """Return a table of pyarrow as :func:`mauc._tables.read.read_table` does."""
        return as_in_text(without_texts(arrow_frame(table), self.missing))

    def coded(self, name: str, most: int) -> CodedColumn | None:
        """Return as :meth:`ScoreTable.coded` does."""
        import pyarrow as pa

        kind = self.fields[name]
        if pa.types.is_nested(kind):
            raise holds_lists(name, self.display)
        places: dict[Any, int] = {}
        found: list[NDArray[Any]] = []
        for batch in self._batches([name], SLICE):
            coded = batch[name].dictionary_encode()
            index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            new = [places.setdefault(value, len(places)) for value in coded.dictionary.to_pylist()]
            if len(places) > most + 1:  # one of them may be missing
                return None
            found.append(signed(np.array([*new, -1])[index], len(places)))
        values = self._as_read(pa.table({name: pa.array(list(places), kind)}))[name]
        known = np.asarray(values.notna())  # NaN and --missing texts
        order = np.append(np.where(known, np.cumsum(known) - 1, -1), -1)
        return CodedColumn(values[known].reset_index(drop=True), signed(order, len(order))[np.concatenate(found)])


def _ranges(metadata: Any, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the smallest and the largest number of some columns, as far as the file gives them."""
    places = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
    found = {}
    for name in names:
        groups = (
            []
            if name not in places
            else [metadata.row_group(k).column(places[name]) for k in range(metadata.num_row_groups)]
        )
        known = [each.statistics for each in groups if each.physical_type in ("FLOAT", "DOUBLE")]
        if known and all(each is not None and each.has_min_max for each in known):
            found[name] = min(each.min for each in known), max(each.max for each in known)
    return found


def _check_range(values: Any, low: float, high: float, name: str, path: Path) -> None:
    """Refuse numbers that the file itself excludes: a page of random bytes decodes to some numbers."""
    import pyarrow.compute as pc

    smallest, largest = pc.min_max(values).as_py().values()
    if smallest is not None and (smallest < low or largest > high):  # neither holds for NaN
        odd = smallest if smallest < low else largest
        raise Failure(
            f"{path} is damaged: column {name!r} holds {odd:g}, outside of {low:g} to {high:g}, which the file gives "
            "as its range: write the file again"
        )


def _fields(schema: Any, path: Path) -> dict[str, Any]:
    """Return name → type of the columns of a part; all ways to store text are one type, and categories are values."""
    import pandas as pd

    index = (schema.pandas_metadata or {}).get("index_columns", [])
    check_names(pd.Index(schema.names), path)
    return {field.name: _plain_type(field.type) for field in schema if field.name not in index}


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if str(kind) in ("string", "string_view") else kind


def _cast(values: Any, kind: Any) -> Any:
    return values if values.type == kind else values.cast(kind)


def _type_name(kind: Any) -> str:
    return str(kind).removeprefix("large_")


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


def target_missing(files: Files, how: Reading, max_size: float) -> Usage:
    """Return the error for a missing ``--target``, which names the columns to choose from."""
    return Usage(
        f"--target is required: name the column of {files.display} that holds the class of each row, one of "
        f"{listing(open_table(files, how, max_size).names)}"
    )


def available_memory(machine: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the free bytes of the machine or of the container; 8 GiB if the system does not say."""
    free = 8.0 * 2**30
    try:
        lines = machine.read_text().splitlines()
        free = next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        pass
    try:
        limit, used = (float((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        # Pages of files that were read are used memory, but the system gives them up when they are needed.
        pages = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        free = min(free, limit - used + sum(float(pages.get(f"{kind}_file", 0)) for kind in ("active", "inactive")))
    except (OSError, ValueError):  # no group, or one without a limit, which says "max"
        pass
    return free


def open_parquet(path: Path) -> Any:
    """Open a Parquet file with a small buffer: one row group may hold all rows."""
    with parquet_errors(path):
        import pyarrow.parquet as pq

        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True)
