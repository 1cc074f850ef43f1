"""How a text file is laid out: what stands between its columns, and whether its first line names them."""

import csv
import io
import warnings
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from mauc._tables.errors import Failure, Usage
from mauc._tables.source import Source
from mauc._tables.text import MARKS, SEPARATORS, UNREADABLE, _encoding, _known

__all__ = ["PREFIX", "check_separator", "has_header", "laid_out", "no_table", "separator_of"]

PREFIX = "score:"
"""What ``mauc predict`` writes before a class in the name of its column."""
BLOCK = 1 << 20
SAMPLE_ROWS = 50


def check_separator(told: str | None) -> str | None:
    """``--separator`` as a character: one that was typed, or its name."""
    names = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|"}
    if told is None or told in SEPARATORS:
        return told
    if told not in names:
        raise Usage(f"--separator must be comma, semicolon, tab or bar, got {told!r}: write the file with one of these")
    return names[told]


def laid_out(source: Source, separator: str | None, header: bool | None, encoding: str | None) -> tuple[Source, str]:
    """The text with a header line, and its separator; both as they are told, or else found.

    Columns without names become ``column_1``, ``column_2`` and so on, which a warning tells where it was found.
    """
    sample, encoding = _sample(source, encoding)
    separator = separator or _separator(sample)
    rows = _rows(sample, separator)
    if header is None and rows and not has_header(rows[0], rows[1:]):
        header = False
        warnings.warn(
            f"{source.path} seems to have no header, its first line is read as a row: its columns are named column_1 "
            f"to column_{len(rows[0])}; --header says that the first line names them",
            stacklevel=3,
        )
    if header is False and rows:
        source = _with_header(source, [f"column_{k}" for k in range(1, len(rows[0]) + 1)], separator, encoding)
    return source, separator


def no_table(path: Path, error: Exception) -> Failure:
    """What to say of a text file that cannot be parsed."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return Failure(
        f"{path} cannot be read as a table ({reason}): save it as CSV in UTF-8, one header line, one line per row"
    )


def separator_of(source: Source) -> str:
    """Of a text file in UTF-8, or with a mark that tells otherwise."""
    return _separator(_sample(source, None)[0])


def _sample(source: Source, encoding: str | None) -> tuple[str, str]:
    """The first lines, and the encoding that they are in."""
    try:
        with source.open() as stream:
            start = stream.read(BLOCK)
    except UNREADABLE as error:
        raise no_table(source.path, error) from None
    encoding = _encoding(Source(source.path, start)) if encoding is None else _known(encoding)
    text = start.decode(encoding, errors="replace")
    return (text if len(start) < BLOCK else text[: text.rfind("\n") + 1] or text), encoding


def _rows(sample: str, separator: str) -> list[list[str]]:
    """The cells of the first lines; a line ends where pandas ends it, and not at U+2028, which may be in a name."""
    try:
        lines = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
        return [row for row in islice(lines, SAMPLE_ROWS) if row]
    except csv.Error:
        return []


def _separator(sample: str) -> str:
    """The one that cuts most of the first lines into as many cells as the header, then the one with most cells.

    A header of ``mauc predict`` has commas, whatever its classes are called.
    """
    by_commas = _rows(sample, ",")
    if by_commas and sum(name.startswith(PREFIX) for name in by_commas[0]) > 1:
        return ","

    def merit(separator: str) -> tuple[float, int]:
        widths = [len(row) for row in _rows(sample, separator)]
        if not widths or widths[0] < 2:
            return 0.0, 0
        return widths.count(widths[0]) / len(widths), widths[0]

    best = max(SEPARATORS, key=merit)
    return best if merit(best)[1] else ","


def has_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line names columns: it does unless its words recur below, or its numbers are measurements.

    A word above numbers, or above words that recur without it, is a name. Numbers that rise from column to column,
    such as wavelengths, and whole ones, such as years, may well be names.

    >>> has_header(["5.1", "3.5", "setosa"], [["4.9", "3.0", "setosa"]])
    False
    >>> has_header(["400.5", "401.0", "401.5"], [["4.9", "3.0", "5.1"]])
    True
    """
    numbers = [value for cell in first if (value := _as_number(cell)) is not None]
    words = {k: cell.strip() for k, cell in enumerate(first) if _as_number(cell) is None and cell.strip()}
    below = {k: [row[k].strip() for row in rows if len(row) > k and row[k].strip()] for k in words}
    n_again = sum(words[k] in below[k] for k in words)
    for k, word in words.items():
        is_above_numbers = bool(below[k]) and all(_as_number(cell) is not None for cell in below[k])
        if is_above_numbers and any(map(str.isalpha, word)):
            return True
    if words and 2 * n_again >= len(words) and n_again + len(numbers) > 1:
        return False
    if any(words[k] not in below[k] and 2 * len(set(below[k])) <= len(below[k]) for k in words):
        return True
    written = [cell.strip() for cell in first if _as_number(cell) is not None]
    measured = len(set(written)) < len(written) or any(value != int(value) for value in numbers)
    rising = all(a < b for a, b in pairwise(numbers))
    return not (measured and len(numbers) > 1 and 2 * len(numbers) > len(first) and not rising)


def _as_number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if abs(value) < 1e300 else None  # neither nan nor inf


def _with_header(source: Source, names: Sequence[str], separator: str, encoding: str) -> Source:
    """The text with one more line before it, after the mark that tells its encoding."""
    with source.open() as stream:
        data = stream.read()
    mark: Any = next((mark for mark in MARKS if data.startswith(mark)), b"")
    plain = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le" if mark == b"\xff\xfe" else "utf-16-be", "utf-32": "utf-32-le"}
    line = (separator.join(names) + "\n").encode(plain.get(encoding, encoding))
    return Source(source.path, mark + line + data[len(mark) :], source.max_size)
