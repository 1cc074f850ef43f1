"""Turn ARFF files, which Weka and OpenML use, into CSV."""

import csv
import io
import re

from mauc._tables.errors import Failure
from mauc._tables.text import Source

QUOTED = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|"""
# The list of a nominal column may follow its name without a blank: class{a,b}.
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}[^\s{{'\"][^\s{{]*)(?:\s+|(?={{))(.+)", re.IGNORECASE)
# A quote that opens a cell must close at its end: else no cell is found, and the row is too short.
CELL = re.compile(rf"\s*({QUOTED}(?:[^,'\"\s][^,]*?)?)\s*(,|$)")


def arff_as_csv(source: Source, encoding: str) -> Source:
    """Return the rows below a line of names; ``?`` becomes an empty cell. Values tell the types, as in CSV."""
    names: list[str] | None = None
    found: list[str] = []
    text = io.StringIO()
    writer = csv.writer(text)
    # Not splitlines, which also cuts at U+2028.
    for number, line in enumerate(source.content.decode(encoding, errors="replace").split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        if names is not None:
            if line.startswith("{"):
                raise _unreadable(source, f"line {number}: sparse rows, in braces, are not read")
            cells = _cells(line)
            if len(cells) != len(names):
                raise _unreadable(source, f"line {number}: {len(names)} values are needed, got {len(cells)}")
            writer.writerow(cells)
        elif match := ATTRIBUTE.fullmatch(line):
            if match[2].lower().startswith("relational"):
                raise _unreadable(source, f"line {number}: tables inside of cells are not read")
            found.append(_unquoted(match[1]))
        elif line.lower().startswith("@data"):
            names = found
            writer.writerow(names)
        elif not line.lower().startswith("@relation"):
            raise _unreadable(source, f"line {number}: got {line[:40]!r} before @data")
    if not names:
        raise _unreadable(source, "it has no columns, or no line @data")
    return Source(source.path, "csv", text.getvalue().encode())


def _cells(line: str) -> list[str]:
    cells: list[str] = []
    at = 0
    while match := CELL.match(line, at):
        cells.append("" if match[1] == "?" else _unquoted(match[1]))
        at = match.end()
        if not match[2]:
            break
    return cells


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _unreadable(source: Source, reason: str) -> Failure:
    return Failure(f"{source.path} cannot be read as ARFF ({reason}): correct it, or save it as CSV")
