"""Names and cells that others wrote, made harmless for a terminal and for a spreadsheet."""

import re
import unicodedata
from typing import Any

__all__ = ["as_cell", "of_cell", "visible"]

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of control, format, surrogate and line-breaking characters."""
JOINERS = frozenset("\u200c\u200d")  # format characters that Persian, Indic scripts and emoji are written with
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]inf")
# As spreadsheets trim and fold it: spaces before, full-width signs. Quotes before stand for a cell quoted already.
FORMULA = re.compile(r"'*(\s*[=+\-@＝＋－＠]|[\t\r\n])")


def visible(text: object, *, lines: bool = False) -> str:
    r"""Control characters, and those that turn the direction of text, as escapes; line ends too, unless ``lines``.

    >>> print(visible("yew\x1b[2J"), visible("a\nb"), visible("fir\u202egnp"))
    yew\x1b[2J a\nb fir\u202egnp
    """
    return "".join(_escaped(c) if _is_hidden(c) and not (lines and c in "\n\t") else c for c in str(text))


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in HIDDEN and character not in JOINERS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def as_cell(value: Any) -> Any:
    """A cell of a CSV file: text that a spreadsheet would run as a formula gets a quote before it; numbers stay.

    >>> [as_cell(value) for value in ("=1+1", "-0.5", "-x", "'=1", "oak", -2)]
    ["'=1+1", '-0.5', "'-x", "''=1", 'oak', -2]
    """
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value) else value


def of_cell(value: Any) -> Any:
    """What :func:`as_cell` was given.

    >>> [of_cell(as_cell(value)) for value in ("=1+1", "'=1", "oak", "'oak'")]
    ['=1+1', "'=1", 'oak', "'oak'"]
    """
    return value[1:] if isinstance(value, str) and value.startswith("'") and as_cell(value[1:]) == value else value
