"""Make untrusted names and cells safe for terminals and spreadsheets."""

import re
import unicodedata
from typing import Any

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of control, format, surrogate and line-breaking characters."""
JOINERS = frozenset("\u200c\u200d")  # format characters that Persian, Indic scripts and emoji are written with
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]inf")
# With spaces and full-width signs, which spreadsheets ignore; a quote first means that the cell is quoted already.
FORMULA = re.compile(r"'*(\s*[=+\-@＝＋－＠]|[\t\r\n])")


def visible(text: object, *, lines: bool = False) -> str:
    r"""Escape control characters and those that change the direction of text; also line ends, unless ``lines``.

    >>> print(visible("yew\x1b[2J"), visible("a\nb"), visible("fir\u202egnp"))
    yew\x1b[2J a\nb fir\u202egnp
    """
    kept = JOINERS | {"\n", "\t"} if lines else JOINERS
    shown = str(text)
    hidden = {c for c in set(shown) - kept if unicodedata.category(c) in HIDDEN}
    return "".join(c.encode("unicode_escape").decode("ascii") if c in hidden else c for c in shown)


def as_cell(value: Any) -> Any:
    """Return a cell of a CSV file: quote text that a spreadsheet would run as a formula; numbers stay.

    A formula has a letter or a digit, so classes such as + and -- stay as they are.

    >>> [as_cell(value) for value in ("=1+1", "-0.5", "-x", "'=1", "oak", "+", -2)]
    ["'=1+1", '-0.5', "'-x", "''=1", 'oak', '+', -2]
    """
    if not isinstance(value, str) or NUMBER.fullmatch(value):
        return value
    return f"'{value}" if FORMULA.match(value) and any(map(str.isalnum, value)) else value


def of_cell(value: Any) -> Any:
    """Undo :func:`as_cell`.

    >>> [of_cell(as_cell(value)) for value in ("=1+1", "'=1", "oak", "'oak'")]
    ['=1+1', "'=1", 'oak', "'oak'"]
    """
    return value[1:] if isinstance(value, str) and value.startswith("'") and as_cell(value[1:]) == value else value
