"""Read Excel workbooks."""

import csv
import io
import warnings
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from functools import cache
from typing import Any, BinaryIO
from xml.parsers import expat

from mauc._archive import DAMAGED, GB, Refused, TooLarge, open_archive, printable
from mauc._tables.errors import Failure, Usage
from mauc._tables.text import EXACT, Source
from mauc._validation import listing

MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14
"""Size of the largest sheet, in every version of Excel."""
BYTES_OF_CELL, BYTES_OF_TEXT = 8, 150
"""Memory of every cell, and additional memory of a filled one."""


def excel_as_csv(source: Source, sheet: str | None, max_size: float) -> Source:
    """Return a sheet as CSV, by default the first. Dates are like 2024-03-31; errors such as #DIV/0! are empty."""
    try:
        import openpyxl.reader.excel
    except ModuleNotFoundError:
        raise Failure(
            f"reading {source.path} needs openpyxl: pip install 'mauc[excel]', or save the sheet as CSV"
        ) from None
    stream = io.BytesIO(source.content)
    try:
        open_archive(stream, max_size)
        reader = openpyxl.reader.excel.ExcelReader(stream, read_only=True, data_only=True)
        reader.read()
        book = reader.wb
        chosen = _sheet(book, sheet, source)
        n_empty, n_merged = 0, 0
        for about, link in reader.parser.find_sheets():
            if about.name == chosen.title and link.target in reader.valid_files:
                with reader.archive.open(link.target) as xml:
                    n_empty, n_merged = _checked_sheet(xml, link.target)
        chosen.reset_dimensions()  # what the sheet says about its size may be wrong
        rows, n_errors = _filled(chosen.iter_rows(), len(source.content) + max_size * GB)
    except TooLarge as error:
        raise Failure(f"{source.path} {error}: raise --max-size if you trust the file") from None
    except (*DAMAGED, expat.ExpatError, KeyError, ValueError, TypeError, OSError, SyntaxError) as error:
        raise Failure(f"{source.path} cannot be read as an Excel file ({error}): save it again, or as CSV") from None
    if sheet is None and len(book.worksheets) > 1:
        warnings.warn(
            f"{source.path} has {len(book.worksheets)} sheets, and {chosen.title!r} is read; --sheet names another",
            stacklevel=3,
        )
    if n_errors:
        which = "1 cell with an error" if n_errors == 1 else f"{n_errors} cells with errors"
        warnings.warn(f"{source.path} has {which} such as #DIV/0!, read as missing", stacklevel=3)
    if n_empty:
        which = "1 formula" if n_empty == 1 else f"{n_empty} formulas"
        warnings.warn(
            f"{source.path} has {which} without a result, read as missing: open it in a spreadsheet and save it",
            stacklevel=3,
        )
    if n_merged:
        which = "1 range" if n_merged == 1 else f"{n_merged} ranges"
        warnings.warn(
            f"{source.path} has {which} of merged cells, of which all but the first cell are read as missing: unmerge "
            "and fill them",
            stacklevel=3,
        )
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return Source(source.path, source.kind, text.getvalue().encode())


def _checked_sheet(xml: BinaryIO, name: str) -> tuple[int, int]:
    """Return the numbers of formulas without a result and of merged ranges, which openpyxl does not tell.

    Refuses a sheet whose rows or cells are out of order: openpyxl would skip those that come too late. It takes under a
    quarter of the time of reading the sheet, 23 % of 10,000 rows and 11 columns.
    """
    from openpyxl.utils import column_index_from_string
    from openpyxl.xml.constants import SHEET_MAIN_NS

    row_tag, cell_tag, formula_tag, value_tag, merged_tag = (
        f"{SHEET_MAIN_NS} {tag}" for tag in ("row", "c", "f", "v", "mergeCell")
    )
    index_of = cache(column_index_from_string)
    row, column = 0.0, 0
    n_formulas = n_results = n_merged = 0
    may_be_empty = is_formula = False

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal row, column, may_be_empty, is_formula, n_formulas, n_merged
        if tag == cell_tag:
            may_be_empty = attributes.get("t") == "str"  # the result of a formula may be a text without letters
            is_formula, parser.CharacterDataHandler = False, None
            # A cell such as AB12; without a place it follows the one before it.
            before, place = column, attributes.get("r")
            column = index_of(place.rstrip("0123456789")) if place else before + 1
            if column <= before:
                raise Refused(f"the rows or cells of {printable(name)!r} are out of order")
        elif tag == row_tag:
            above, row, column = row, float(attributes.get("r", row + 1)), 0
            if not row > above:
                raise Refused(f"the rows or cells of {printable(name)!r} are out of order")
        elif tag == formula_tag and not may_be_empty:
            is_formula, n_formulas = True, n_formulas + 1
        elif tag == value_tag and is_formula:
            parser.CharacterDataHandler = result
        elif tag == merged_tag:
            n_merged += 1

    def result(_: str) -> None:
        nonlocal n_results
        n_results, parser.CharacterDataHandler = n_results + 1, None

    def refuse_entities(*_: object) -> None:
        raise Refused(f"{printable(name)!r} declares entities, which may unpack to any size")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse_entities
    parser.ParseFile(xml)
    return n_formulas - n_results, n_merged


def _sheet(book: Any, name: str | None, source: Source) -> Any:
    titles = [sheet.title for sheet in book.worksheets]
    if not titles:
        raise Failure(f"{source.path} has no sheet of cells: check that it is the right file")
    if name is not None and name not in titles:
        raise Usage(f"--sheet {name!r} is not a sheet of {source.path}; its sheets are {listing(titles)}")
    return book.worksheets[0 if name is None else titles.index(name)]


def _filled(lines: Iterable[Sequence[Any]], allowed: float) -> tuple[list[list[str]], int]:
    """Return the cells from the first filled column to the last, and the number of cells with errors.

    They may take ``allowed`` bytes: a single cell far out would make a table of many columns.
    """
    rows: list[dict[int, str]] = []
    first, last, n_errors, n_bytes = MOST_COLUMNS, -1, 0, 0
    for number, line in enumerate(lines, 1):
        if number > MOST_ROWS:
            raise Refused(f"it holds a row beyond the last of a sheet, {MOST_ROWS}")
        n_errors += sum(cell.data_type == "e" for cell in line)
        row = {k: text for k, cell in enumerate(line) if cell.data_type != "e" and (text := _text(cell.value))}
        if row:
            rows.append(row)
            first, last = min(first, *row), max(last, *row)
            n_bytes += sum(BYTES_OF_TEXT + len(text) for text in row.values())
        n_columns = last - first + 1
        if n_bytes + BYTES_OF_CELL * len(rows) * n_columns > allowed:
            raise TooLarge(
                f"holds a sheet of {len(rows)} rows or more and {n_columns} columns, which takes over "
                f"{allowed / GB:.2g} GB"
            )
    return [[row.get(k, "") for k in range(first, last + 1)] for row in rows], n_errors


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time(0) else value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return str(value)
