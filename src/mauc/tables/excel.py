"""Excel workbooks: one sheet, as the CSV file that a spreadsheet would save."""

import csv
import io
import warnings
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from typing import Any

from mauc._archive import Refused, TooLarge, open_archive
from mauc.tables.errors import Failure, Usage
from mauc.tables.source import Source

__all__ = ["as_csv"]


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
            rows, n_errors = _rows(chosen.iter_rows())
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
    if n_errors:
        cells = "1 cell with an error" if n_errors == 1 else f"{n_errors} cells with errors"
        warnings.warn(f"{source.path} has {cells} such as #DIV/0!, read as missing", stacklevel=3)
    text = io.StringIO()
    csv.writer(text).writerows(_without_margins(rows))
    return Source(source.path, text.getvalue().encode())


def _sheet(book: Any, name: str | None, source: Source) -> Any:
    titles = [sheet.title for sheet in book.worksheets]
    if not titles:
        raise Failure(f"{source.path} has no sheet of cells: check that it is the right file")
    if name is not None and name not in titles:
        raise Usage(f"--sheet {name!r} is no sheet of {source.path}; its sheets are {', '.join(titles[:8])}")
    return book.worksheets[0 if name is None else titles.index(name)]


def _rows(cells: Iterable[Iterable[Any]]) -> tuple[list[list[str]], int]:
    n_errors = 0
    rows = []
    for line in cells:
        row = []
        for cell in line:
            is_error = cell.data_type == "e"
            n_errors += is_error
            row.append("" if is_error else _text(cell.value))
        rows.append(row)
    return rows, n_errors


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


def _without_margins(rows: list[list[str]]) -> Iterator[list[str]]:
    """Without empty lines, and without the empty columns left and right of the table."""
    filled = [row for row in rows if any(row)]
    used = [k for row in filled for k, cell in enumerate(row) if cell]
    first, last = min(used, default=0), max(used, default=-1)
    width = last + 1
    return ([*row, *[""] * width][first:width] for row in filled)
