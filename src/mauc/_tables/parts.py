"""A table in parts: the files of a folder, of a pattern or of a list, read in batches of bounded size."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mauc._tables.errors import Failure, Usage
from mauc._tables.layout import has_header, no_table, separator_of
from mauc._tables.read import READABLE, Reading, Table, as_in_text, date_form, first_of, read_table
from mauc._tables.source import Source, shown
from mauc._tables.text import check_names

__all__ = [
    "MANIFEST",
    "Parts",
    "available_memory",
    "check_fits",
    "find_parts",
    "kind_of",
    "no_number",
    "no_target",
    "opened",
    "part_batches",
    "table_chunks",
    "table_rows",
]

KINDS = {"csv": "csv", "tsv": "csv", "tab": "csv", "txt": "csv", "parquet": "parquet", "pq": "parquet", "npz": "npz"}
MANIFEST = ".mauc-predict.json"
"""In a folder of scores that ``mauc predict`` writes in parts: of what, and whether it is complete."""
BATCH_ROWS = 1 << 18
BYTES_PER_CELL = 40
"""Of a table that is read whole and judged: the cell, its copies, and what is worked out of it."""
CELL_OF_TEXT, CELL_ZIPPED = 8, 3
"""Bytes that a cell of CSV takes, about."""
UNREADABLE = (UnicodeError, ValueError)
"""What pandas raises for a file that is no table; its own errors are among them."""
SHARE = 0.5
"""Of the memory that is free, what reading a table whole may take."""


def kind_of(path: Path) -> str:
    """``"csv"``, ``"parquet"`` or ``"npz"`` by the name of the file; ``""`` where it ends in nothing known."""
    return KINDS.get(path.name.removesuffix(".gz").rpartition(".")[2].lower(), "")


def find_parts(given: Sequence[Path], option: str) -> "Parts":
    """The files that are meant: those of a folder, those that a pattern matches, or these themselves."""
    found = [file for path in given for file in _expanded(path)]
    twice = [path for path, times in Counter(found).items() if times > 1]
    if twice:
        raise Usage(f"{option} names {twice[0]} twice: its rows would count twice")
    for folder in dict.fromkeys(path.parent for path in found):
        _check_complete(folder)
    parts = Parts(tuple(given), tuple(found))
    if parts.several:
        for path in found:
            if kind_of(path) not in ("csv", "parquet"):
                raise Failure(f"{path} cannot be one of several parts: a part must end in .csv, .tsv or .parquet")
            if kind_of(path) != parts.kind:
                raise Failure(f"{path} and {found[0]} are of different kinds: the parts of a table must be of one")
    return parts


def _expanded(path: Path) -> list[Path]:
    if path.is_dir():
        # Spark and Dask put files such as _SUCCESS and _metadata beside the parts.
        files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith((".", "_")) and kind_of(p))
        if not files:
            raise Failure(f"the folder {path} holds no file that ends in {READABLE}: check the name")
        return files
    if not path.exists() and any(c in str(path) for c in "*?["):
        files = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not files:
            raise Failure(f"no file matches {path}: check the pattern")
        return files
    return [path]


def _check_complete(folder: Path) -> None:
    """A number of a part of the rows is not that of all."""
    manifest = folder / MANIFEST
    if manifest.is_file() and not json.loads(manifest.read_text(encoding="utf-8")).get("complete"):
        raise Failure(f"the scores in {folder} are not complete: run the same mauc predict again, it goes on there")


@dataclass(frozen=True)
class Parts:
    """The files of one table, in order."""

    given: tuple[Path, ...]
    paths: tuple[Path, ...]

    @property
    def several(self) -> bool:
        """More than one file, or a folder or a pattern that happens to stand for one."""
        return len(self.paths) > 1 or self.paths != self.given

    @property
    def kind(self) -> str:
        return kind_of(self.paths[0])

    @property
    def shown(self) -> str:
        """For messages: what was typed, or the first of many and how many follow."""
        return str(shown(self.given[0])) if len(self.given) == 1 else f"{self.given[0]} and {len(self.given) - 1} more"

    @property
    def name(self) -> str:
        """For a report: of a file or a folder its name, of others that of the folder they are all in."""
        if len(self.given) == 1 and self.paths == self.given:
            return shown(self.given[0]).name
        if len(self.given) == 1 and self.given[0].exists():
            return self.given[0].name
        folders = {path.parent for path in self.paths}
        return (len(folders) == 1 and folders.pop().name) or f"{self.paths[0].name} and {len(self.paths) - 1} more"

    @cached_property
    def names(self) -> list[str]:
        """The columns of the first part, which all others have too, of the same types."""
        first = self.paths[0]
        expected = _header(first)
        for path in self.paths[1:]:
            _check_alike(path, _header(path), first, expected)
        return list(expected)

    @cached_property
    def date_forms(self) -> dict[str, str]:
        """How each column of dates in Parquet is written: with hours where any row of any part has some."""
        import pyarrow as pa

        dates = [str(f.name) for f in opened(self.paths[0]).schema_arrow if pa.types.is_timestamp(f.type)]
        forms = dict.fromkeys(dates, "")
        for path in self.paths if dates else ():
            for batch in part_batches(path, dates):
                for name, values in pa.Table.from_batches([batch]).to_pandas()[dates].items():
                    forms[str(name)] = max(forms[str(name)], date_form(values), key=len)
        return forms

    @property
    def n_rows(self) -> int:
        """Of all parts; those of CSV are read for it."""
        if self.kind == "parquet":
            return sum(opened(path).metadata.num_rows for path in self.paths)
        return sum(_csv(path, self.names[:1], text=True).count_rows() for path in self.paths)

    @property
    def n_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.paths)

    def rows_that_fit(self) -> int:
        """How many rows of the table can be read and worked on in the memory that is free, about."""
        return int(SHARE * available_memory() / (BYTES_PER_CELL * max(1, len(self.names))))

    def fits(self) -> bool:
        """Whether the whole table can be read and worked on in the memory that is free."""
        if self.kind == "npz" or not all(path.is_file() for path in self.paths):
            return True  # read whole, or refused, by others
        cells = sum(
            path.stat().st_size / (CELL_ZIPPED if path.suffix == ".gz" else CELL_OF_TEXT) for path in self.paths
        )
        if self.kind == "parquet":
            metadata = [opened(path).metadata for path in self.paths]
            cells = sum(m.num_rows * m.num_columns for m in metadata)
        return cells * BYTES_PER_CELL < SHARE * available_memory()


def check_fits(parts: Parts) -> None:
    """What is trained on in memory is read whole."""
    if parts.several:
        raise Failure(
            f"mauc fit reads a single file into memory, and {parts.shown} stands for {len(parts.paths)}: join them, or "
            "train on all of them with --engine dask"
        )
    if not parts.fits():
        raise Failure(
            f"{parts.shown} does not fit in memory ({parts.n_bytes / 1e9:.2g} GB, and {available_memory() / 1e9:.2g} "
            f"are free): about {parts.rows_that_fit()} of its rows do; take as many of them, at random, or train on "
            "all of them with --engine dask"
        )


def no_target(parts: Parts, how: Reading, max_size: float) -> Usage:
    """What to say where no target is told: the columns there are to choose from."""
    if parts.several or not parts.fits():
        names = parts.names
    else:
        names = [str(name) for name in read_table(parts.paths[0], max_size=max_size, how=how).columns]
    return Usage(
        f"--target must name the column of {parts.shown} that holds the class of each row, got none: "
        f"choose one of {first_of(names)}"
    )


def available_memory() -> float:
    """Bytes that may still be used, of the machine or of the container; 8 GiB where nothing tells."""
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
    """Record batches of pyarrow, of these columns or of all; those of CSV are read as text, or else as numbers.

    Parquet is not read through pyarrow.dataset, which decodes a group of rows whole: 10,000,000 rows of five scores in
    one group took 340 MB that way, and nothing beyond a batch this way.
    """
    try:
        if kind_of(path) == "parquet":
            yield from opened(path).iter_batches(rows, columns=columns)
        else:
            yield from _csv(path, columns or (), text=text).to_batches(batch_size=rows)
    except Failure:
        raise
    except Exception as error:
        raise _unreadable(path, error) from None


def opened(path: Path) -> Any:
    """The Parquet file, read through a small buffer: a group of rows may hold all of them."""
    with _needing_pyarrow(path):
        import pyarrow.parquet as pq
    try:
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except Exception as error:
        raise _unreadable(path, error) from None


def _csv(path: Path, columns: Sequence[str], *, text: bool) -> Any:
    """Some columns of a CSV file as a dataset of pyarrow. Of text, nothing but an empty cell is a gap."""
    with _needing_pyarrow(path):
        import pyarrow as pa
        import pyarrow.csv as csv
        import pyarrow.dataset as ds
    types = dict.fromkeys(columns, pa.string() if text else pa.float64())
    gaps = {"null_values": [""]} if text else {}
    layout = ds.CsvFileFormat(
        parse_options=csv.ParseOptions(delimiter=separator_of(Source(path)), newlines_in_values=True),
        read_options=csv.ReadOptions(block_size=1 << 23),
        convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True, **gaps),
    )
    return ds.dataset([str(path)], format=layout, schema=pa.schema(list(types.items())))


@contextmanager
def _needing_pyarrow(path: Path) -> Iterator[None]:
    try:
        yield
    except ImportError:
        other = "save the table as CSV" if kind_of(path) == "parquet" else "name one file that fits in memory"
        raise Failure(f"reading {path} needs pyarrow: pip install 'mauc[parquet]', or {other}") from None


def _unreadable(path: Path, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno is not None:
        return error
    if kind_of(path) != "parquet":
        place = re.search(r"In CSV column #(\d+): .*conversion error to double", str(error))
        return no_table(path, error) if place is None else no_number(list(_header(path))[int(place[1])], path)
    return Failure(f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}): write it again")


def no_number(name: str, path: Path) -> Failure:
    """What to say of a column of scores that holds something else."""
    return Failure(f"column {name!r} of {path} must hold numbers: it is read as the scores of a class")


def _header(path: Path) -> dict[str, str]:
    """Name → type of the columns of a part; the types of a CSV file are those of its values."""
    import pandas as pd

    if kind_of(path) == "csv":
        if not path.exists():
            raise Failure(f"file not found: {path}")
        try:
            separator = separator_of(Source(path))
            written = pd.read_csv(path, sep=separator, header=None, nrows=50, dtype=str, keep_default_na=False)
            first, *rows = written.to_numpy().tolist()
            if not has_header(first, rows):
                raise Failure(f"{path} seems to have no header, and parts of a table need one: add the names")
            names = pd.Index(first)
            check_names(names[names != ""], path)
            return dict.fromkeys(pd.read_csv(path, sep=separator, nrows=0).columns, "text")
        except UNREADABLE as error:
            raise no_table(path, error) from None
    schema = opened(path).schema_arrow
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    check_names(pd.Index(schema.names), path)
    return {field.name: _type_name(field.type) for field in schema if field.name not in index}


def _type_name(of: Any) -> str:
    """Text is text and a date is a date, however it is stored."""
    import pyarrow as pa

    of = of.value_type if pa.types.is_dictionary(of) else of
    if pa.types.is_timestamp(of):
        return "timestamp" if of.tz is None else f"timestamp of {of.tz}"
    return "string" if pa.types.is_large_string(of) or pa.types.is_string_view(of) else str(of)


def _check_alike(path: Path, found: Mapping[str, str], first: Path, expected: Mapping[str, str]) -> None:
    for name in expected:
        if name not in found:
            raise Failure(f"{path} has no column {name!r}, which {first} has: parts of a table have the same columns")
    for name, of in found.items():
        if name not in expected:
            raise Failure(f"{path} has a column {name!r}, which {first} lacks: parts of a table have the same columns")
        if of != expected[name] and "null" not in (of, expected[name]):  # the type of a column without a value
            raise Failure(
                f"column {name!r} of {path} holds {of}, and {expected[name]} in {first}: write all parts with one type"
            )


def table_chunks(parts: Parts, path: Path, rows: int, text: Sequence[str]) -> Iterator[tuple[Table, Any]]:
    """One of the parts as tables of so many rows, read as the whole would be; columns in ``text`` as they are written.

    With each table comes the batch of pyarrow that it was made of, None if it was made of CSV. CSV is read by pandas,
    as a whole table is: pyarrow takes the types of the columns from the first block, and fails where a later one has
    others.
    """
    if parts.kind == "parquet":
        for batch in part_batches(path, rows=rows):
            import pyarrow as pa  # after the reader has said what is missing

            yield _as_table(pa.Table.from_batches([batch]), parts.date_forms), batch
        return
    with _read_csv(path, text, chunksize=rows) as chunks:
        for chunk in chunks:
            if len(chunk):
                yield chunk.reset_index(drop=True), None


def table_rows(parts: Parts, path: Path, groups: Sequence[int] | None, text: Sequence[str]) -> Table:
    """Some groups of rows of a Parquet part, or a whole one of CSV, read as :func:`table_chunks` reads them."""
    if parts.kind == "parquet":
        return _as_table(opened(path).read_row_groups(list(groups or ())), parts.date_forms)
    with _read_csv(path, text) as table:
        return table


@contextmanager
def _read_csv(path: Path, text: Sequence[str], **options: Any) -> Iterator[Any]:
    """The table, or its chunks."""
    import pandas as pd

    try:
        dtypes = dict.fromkeys(text, str)
        found = pd.read_csv(path, sep=separator_of(Source(path)), dtype=dtypes, low_memory=False, **options)
        with found if "chunksize" in options else nullcontext():
            yield found
    except UNREADABLE as error:
        raise no_table(path, error) from None


def _as_table(rows: Any, forms: Mapping[str, str]) -> Table:
    table = rows.to_pandas().rename(columns=str)
    for name, form in forms.items():
        table[name] = table[name].dt.strftime(form)
    return as_in_text(table.reset_index(drop=True))
