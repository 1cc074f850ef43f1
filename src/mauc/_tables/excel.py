"""Excel workbooks: one sheet, as the CSV file that a spreadsheet would save."""

import csv
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Any

from mauc._archive import GB, Refused, TooLarge, open_archive
from mauc._tables.errors import Failure, Usage
from mauc._tables.source import Source

__all__ = ["as_csv"]

MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14
"""Of a sheet, in every version of Excel."""
BYTES_OF_CELL, BYTES_OF_TEXT = 8, 56
"""Memory that a cell takes, and more where it is filled."""


def as_csv(source: Source, sheet: str | None, max_size: float) -> Source:
    """The cells of a sheet, the first one unless named; dates as 2024-03-31, errors such as #DIV/0! empty."""
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError:
        raise Failure(
            f"reading {source.path} needs openpyxl: pip install 'mauc[excel]', or save the sheet as CSV"
        ) from None
    with source.raw() as stream:
        try:
            open_archive(stream, max_size)
            stream.seek(0)
            book = load_workbook(stream, read_only=True, data_only=True)
            chosen = _sheet(book, sheet, source)
            # The sheet says which cells it has, and may say it wrongly: all are read.
            chosen.reset_dimensions()
            cells = _filled(chosen.iter_rows(), stream.seek(0, 2) + max_size * GB)
        except TooLarge as error:
            raise Failure(f"{source.path} {error}: raise --max-size if you know where the file comes from") from None
        except (Refused, KeyError, ValueError, TypeError, OSError, SyntaxError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise Failure(
                f"{source.path} cannot be read as an Excel file ({error}): save it again, or as CSV"
            ) from None
    if sheet is None and len(book.worksheets) > 1:
        warnings.warn(
            f"{source.path} has {len(book.worksheets)} sheets, and {chosen.title!r} is read; --sheet names another",
            stacklevel=3,
        )
    if n := cells.n_errors:
        which = "1 cell with an error" if n == 1 else f"{n} cells with errors"
        warnings.warn(f"{source.path} has {which} such as #DIV/0!, read as missing", stacklevel=3)
    text = io.StringIO()
    csv.writer(text).writerows(cells.table())
    return Source(source.path, text.getvalue().encode())


def _sheet(book: Any, name: str | None, source: Source) -> Any:
    titles = [sheet.title for sheet in book.worksheets]
    if not titles:
        raise Failure(f"{source.path} has no sheet of cells: check that it is the right file")
    if name is not None and name not in titles:
        raise Usage(f"--sheet {name!r} is no sheet of {source.path}; its sheets are {', '.join(titles[:8])}")
    return book.worksheets[0 if name is None else titles.index(name)]


@dataclass
class _Cells:
    """The filled cells of a sheet, and what they take."""

    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    """Of each row that is not empty: the place of its first filled cell, and the text of all cells up to its last."""
    first: int = MOST_COLUMNS
    last: int = -1
    n_errors: int = 0
    n_bytes: int = 0

    def add(self, line: Iterable[Any]) -> None:
        """One row of the sheet."""
        texts = {}
        for k, cell in enumerate(line):
            is_error = cell.data_type == "e"
            self.n_errors += is_error
            if not is_error and (text := _text(cell.value)):
                texts[k] = text
        if not texts:
            return
        first, last = min(texts), max(texts)
        self.rows.append((first, [texts.get(k, "") for k in range(first, last + 1)]))
        self.first, self.last = min(self.first, first), max(self.last, last)
        self.n_bytes += sum(BYTES_OF_TEXT + len(text) for text in texts.values())

    @property
    def size(self) -> int:
        """Bytes of the cells as a table, in which every row is as wide as the widest."""
        return self.n_bytes + BYTES_OF_CELL * len(self.rows) * (self.last - self.first + 1)

    def table(self) -> Iterator[list[str]]:
        """Without empty rows, and without the empty columns left and right."""
        width = self.last - self.first + 1
        for first, texts in self.rows:
            yield [*[""] * (first - self.first), *texts, *[""] * (width - (first - self.first) - len(texts))]


def _filled(lines: Iterable[Sequence[Any]], allowed: float) -> _Cells:
    """The cells of a sheet that take at most ``allowed`` bytes; a single cell far out makes a sheet of many rows."""
    cells = _Cells()
    for number, line in enumerate(lines, 1):
        if number > MOST_ROWS:
            raise Refused(f"it holds a row beyond the last of a sheet, {MOST_ROWS}")
        if not line:
            continue
        cells.add(line)
        if cells.size > allowed:
            raise TooLarge(
                f"holds a sheet of {len(cells.rows)} rows or more and {cells.last - cells.first + 1} columns, which "
                f"takes over {allowed / GB:.2g} GB"
            )
    return cells


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time(0) else value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
