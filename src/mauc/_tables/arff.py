"""ARFF files, as Weka and OpenML have them: attributes by name and type, then rows with commas."""

import re
from collections.abc import Collection
from typing import Any

from mauc._tables.errors import Failure
from mauc._tables.source import Source
from mauc._tables.text import _encoding, _known

__all__ = ["read_arff"]

NAME = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|"""
ATTRIBUTE = re.compile(rf"@attribute\s+({NAME}\S+)\s+(.+)", re.IGNORECASE)
CELL = re.compile(rf"\s*({NAME}[^,]*?)\s*(,|$)")
NUMBERS = ("numeric", "real", "integer")


def read_arff(source: Source, text: Collection[str], encoding: str | None) -> Any:
    """A pandas DataFrame: numbers, and all else as it is written; ``?`` is missing.

    The columns named in ``text`` are not read as numbers. Rows in braces, which leave out zeros, are refused.
    """
    import pandas as pd

    found = _encoding(source) if encoding is None else _known(encoding)
    kinds: dict[str, str] = {}
    rows: list[list[str | None]] = []
    in_data = False
    with source.open() as stream:
        # Not splitlines, which cuts at U+2028 too.
        for number, line in enumerate(stream.read().decode(found, errors="replace").split("\n"), 1):
            line = line.strip()
            if not line or line.startswith("%"):
                continue
            if in_data:
                rows.append(_cells(line, len(kinds), number, source))
            elif match := ATTRIBUTE.fullmatch(line):
                name = _unquoted(match[1])
                if name in kinds:
                    raise Failure(f"{source.path} has two columns named {name!r}: rename one of them")
                kinds[name] = match[2].strip().lower()
            elif line.lower().startswith("@data"):
                in_data = True
            elif not line.lower().startswith("@relation"):
                raise _unreadable(source, number, f"got {line[:40]!r} before @data")
    if not in_data:
        raise Failure(f"{source.path} cannot be read as ARFF (it has no line @data): save it as CSV")
    table = pd.DataFrame(rows, columns=list(kinds), dtype=object)
    for name, kind in kinds.items():
        if kind in NUMBERS and name not in text:
            table[name] = _numbers(table[name], name, source)
        elif kind not in NUMBERS and not kind.startswith(("{", "string", "date")):
            raise Failure(
                f"column {name!r} of {source.path} is of the type {kind[:40]}, which is not read: save the table as CSV"
            )
    return table


def _cells(line: str, n_columns: int, number: int, source: Source) -> list[str | None]:
    if line.startswith("{"):
        raise _unreadable(source, number, "rows in braces, which leave out zeros, are not read")
    if "'" not in line and '"' not in line:
        cells: list[str | None] = [cell.strip() for cell in line.split(",")]
        cells = [None if cell == "?" else cell for cell in cells]
    else:
        cells, at = [], 0
        while match := CELL.match(line, at):
            cells.append(None if match[1] == "?" else _unquoted(match[1]))
            at = match.end()
            if not match[2]:
                break
    if len(cells) != n_columns:
        raise _unreadable(source, number, f"{n_columns} values are needed, got {len(cells)}")
    return cells


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _numbers(values: Any, name: str, source: Source) -> Any:
    import pandas as pd

    try:
        return pd.to_numeric(values)
    except ValueError:
        odd = values[pd.to_numeric(values, errors="coerce").isna() & values.notna()].iloc[0]
        raise Failure(f"column {name!r} of {source.path} is numeric, and holds {odd!r}: correct it") from None


def _unreadable(source: Source, number: int, why: str) -> Failure:
    return Failure(f"{source.path} cannot be read as ARFF (line {number}: {why}): correct it, or save it as CSV")
