"""Tables as text: in which encoding, between which separators, with which decimal sign; detected, and told.

What is plain is not mentioned: UTF-8, commas (tabs in .tsv), decimal points. All else is one warning for each file.
"""

import codecs
import gzip
import re
import warnings
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mauc._tables.errors import Failure, Usage
from mauc._tables.source import Source

__all__ = ["Reading", "as_code", "check_names", "read_text"]

BLOCK = 1 << 20
UNREADABLE = (EOFError, UnicodeError, ValueError, gzip.BadGzipFile, zlib.error)
"""What pandas raises for text that is no table, and what damaged archives raise."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
"""The likelier ones first where all else is equal: commas also stand in numbers and in text."""
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
NAMES = {
    "utf-16": "UTF-16",
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
}
# A comma before other than three digits, or after a 0, is a decimal one; two commas, or one before a point, are not.
# Nobody writes a 0 before thousands: beside decimal commas 0.125 is no number, and 1.125 is one thousand.
NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
WITH_DECIMAL_COMMA = r"[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?"
WITH_THOUSANDS_COMMA = r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?"
WITH_THOUSANDS_POINT = r"[+-]?(?:0|[1-9]\d{0,2}(?:\.\d{3})*)"


@dataclass(frozen=True)
class Reading:
    """What the user says about a file, where detection would not do."""

    missing: tuple[str, ...] = ()
    """Texts that count as missing in every column, beside empty cells."""
    encoding: str | None = None
    sheet: str | None = None
    """Of an Excel file."""
    separator: str | None = None
    """Between the columns of a text file."""
    header: bool | None = None
    """Whether its first line names the columns."""


def read_text(
    source: Source,
    text: Collection[str],
    codes: Collection[str],
    names: Collection[str],
    how: Reading,
    separator: str,
) -> Any:
    """A pandas DataFrame; parameters as in :func:`mauc._tables.read.read_table`."""
    import pandas as pd

    try:
        encoding = _encoding(source) if how.encoding is None else _known(how.encoding)

        def parsed(**options: Any) -> Any:
            with source.open() as stream:
                return pd.read_csv(stream, sep=separator, encoding=encoding, **options)

        # By itself: pandas renames the second of two columns of one name.
        header = pd.Index(parsed(header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0])
        check_names(header[header != ""], source.path)
        table = parsed(low_memory=False, dtype=dict.fromkeys(text, str), na_values=list(how.missing))
        written = _as_written(parsed, set(codes) & set(table.columns), how.missing)
    except UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Failure(
            f"{source.path} cannot be read as a table ({reason}): save it as CSV in UTF-8, one header line, one line "
            "per row"
        ) from None
    for name, values in written.items():
        table[name] = as_code(table[name], values, literal=name in names)
    decimal = _with_commas(table, {*text, *codes}, partial(parsed, na_values=list(how.missing)), source)
    told = [] if encoding in ("utf-8", "utf-8-sig") else [f"in {NAMES.get(encoding, encoding)}"]
    if separator != ("\t" if source.kind in ("tsv", "tab") else ",") and len(header) > 1:
        told.append(f"with {SEPARATORS[separator]} between columns")
    if told or decimal:
        told += [f"with {decimal}"] if decimal else []
        other = "; --encoding names another" if encoding in ("cp1252", "latin-1") and how.encoding is None else ""
        warnings.warn(f"{source.path} is read as a table {', '.join(told)}{other}", stacklevel=3)
    return table


def check_names(names: Any, path: Path) -> None:
    """No column twice."""
    twice = names[names.duplicated()]
    if len(twice):
        raise Failure(f"{path} has two columns named {twice[0]!r}: rename one of them")


def _known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise Usage(f"--encoding {encoding!r} is unknown: name one such as utf-8, cp1252, cp1250 or utf-16") from None


def _encoding(source: Source) -> str:
    """UTF-8 where every byte fits it; else by its mark or its zeros UTF-16, and Windows-1252 for all the rest."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    undefined = False
    with source.open() as stream:
        start = block = stream.read(BLOCK)
        for mark, encoding in MARKS.items():
            if start.startswith(mark):
                return encoding
        if b"\0" in start:
            return _by_zeros(start, source)
        is_utf8 = True
        while block:
            try:
                if is_utf8:
                    decoder.decode(block)
            except UnicodeDecodeError:
                is_utf8 = False
            # Windows-1252 has no letter for these five; an old Latin-1 file may.
            undefined = undefined or bool(re.search(rb"[\x81\x8d\x8f\x90\x9d]", block))
            block = stream.read(BLOCK)
    try:
        decoder.decode(b"", final=is_utf8)
    except UnicodeDecodeError:
        is_utf8 = False
    return "utf-8" if is_utf8 else "latin-1" if undefined else "cp1252"


def _by_zeros(start: bytes, source: Source) -> str:
    """UTF-16 without a mark: in most scripts every second byte of separators and digits is zero."""
    low, high = start[1::2].count(0), start[0::2].count(0)
    if max(low, high) > 0.2 * len(start) and min(low, high) < 0.01 * len(start):
        return "utf-16-le" if low > high else "utf-16-be"
    raise Failure(f"{source.path} is no text: check the file, or give it the ending of what it is")


def _as_written(parsed: Any, names: Collection[str], missing: Collection[str]) -> dict[str, Any]:
    """These columns as text, in which only empty cells and what the user named are missing."""
    if not names:
        return {}
    found = parsed(usecols=sorted(names), dtype=str, keep_default_na=False, na_values=["", *missing])
    return {name: found[name] for name in found.columns}


def as_code(values: Any, written: Any, *, literal: bool) -> Any:
    """A column of codes: text where a number would lose a leading zero, or where ``NA`` and the like are names."""
    is_number = values.dtype.kind in "iuf"
    if is_number and written.str.match(r"\s*0\d").any():
        return written.where(values.notna())
    # Beside numbers, NA is a gap; beside words it may well be one of them.
    return written if literal and not is_number and bool((values.isna() & written.notna()).any()) else values


def _with_commas(table: Any, as_they_are: Collection[str], parsed: Any, source: Source) -> str | None:
    """Turn columns of numbers with commas into numbers, in place; returns what the commas are."""
    conventions = {
        name: found
        for name in table.columns
        if name not in as_they_are
        and table[name].dtype.kind not in "iufbM"
        and (found := _convention(table[name])) is not None
    }
    settled = set(conventions.values()) - {"open"}
    if len(settled) != 1:
        for name in conventions:
            example = next(value for value in table[name].dropna() if "," in value)
            warnings.warn(
                f"column {name!r} of {source.path} holds numbers such as {example}, whose comma may stand before "
                "decimals or after thousands: it is read as text; write them without commas",
                stacklevel=4,
            )
        return None
    (convention,) = settled
    for name in conventions:
        table[name] = _as_numbers(table[name], convention)
    if convention == "thousands":
        return "commas between thousands"
    pointed = [n for n in table.columns if n not in conventions and n not in as_they_are and table[n].dtype.kind == "f"]
    written = parsed(usecols=pointed, dtype=str) if pointed else {}
    for name in pointed:
        cells = written[name].dropna().str.strip()
        # Beside decimal commas, 1.234 is one thousand.
        if cells.str.fullmatch(WITH_THOUSANDS_POINT).all() and cells.str.contains(".", regex=False).any():
            table[name] = _as_numbers(written[name], convention)
    return "decimal commas"


def _convention(values: Any) -> str | None:
    """Of a column of numbers with commas: ``"decimal"``, ``"thousands"``, or ``"open"`` if each could be either."""
    cells = values.dropna()
    # The first cell tells most columns of words from numbers.
    if not len(cells) or not isinstance(cells.iloc[0], str) or not re.fullmatch(r"[\s\d.,eE+-]+", cells.iloc[0]):
        return None
    cells = cells.astype(str).str.strip()
    if not cells.str.contains(",", regex=False).any():
        return None
    decimal = cells.str.fullmatch(WITH_DECIMAL_COMMA)
    thousands = cells.str.fullmatch(f"{WITH_THOUSANDS_COMMA}|{NUMBER}")
    if decimal.all():
        either = cells.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}},\d{{3}}|{NUMBER}")
        return "open" if either.all() else "decimal"
    return "thousands" if thousands.all() else None


def _as_numbers(values: Any, convention: str) -> Any:
    import pandas as pd

    signs = str.maketrans(",", ".", ".") if convention == "decimal" else str.maketrans("", "", ",")
    return pd.to_numeric(values.astype("str").str.strip().str.translate(signs).where(values.notna()))
