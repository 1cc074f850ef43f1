"""Where commands speak: results on standard output, notes and progress on standard error.

Names of files, columns and classes are other people's text: every way out of here escapes what would steer a terminal.
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mauc._text import visible

__all__ = ["Output", "TextTable", "current", "speaking"]


class TextTable(Table):
    """A table of plain text: no markup, no control characters, in titles, headings or cells."""

    def __init__(self, title: str, **kwargs: Any) -> None:
        # A title may be wider than its table: it is not wrapped for that.
        text = Text(visible(title), style="table.title", no_wrap=True, overflow="ignore")
        super().__init__(title=text, title_justify="left", **kwargs)

    def add_column(self, header: Any = "", *args: Any, **kwargs: Any) -> None:
        """As in rich."""
        super().add_column(_text(header), *args, **kwargs)

    def add_row(self, *cells: Any, **kwargs: Any) -> None:
        """As in rich."""
        super().add_row(*map(_text, cells), **kwargs)


def _text(cell: Any) -> Text:
    return Text(visible(cell))


class Output:
    """What a command says, under ``--json`` and ``--quiet``."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.console = Console(highlight=False, markup=False, emoji=False)
        self.errors = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def say(self, *things: str | TextTable) -> None:
        """For people: lines and tables."""
        if not self.silent:
            for thing in things:
                if isinstance(thing, TextTable):
                    self.console.print(thing)
                else:
                    # Long lines are for the terminal to wrap: a path must survive copying.
                    self.console.print(visible(thing, lines=True), soft_wrap=True)

    @property
    def silent(self) -> bool:
        """Nothing but results and errors is wanted."""
        return self.quiet or self.as_json

    def tell(self, text: str) -> None:
        """How far the work is, on standard error."""
        if not self.silent:
            self.errors.print(visible(text), soft_wrap=True)

    def note(self, text: str) -> None:
        """Worth knowing, and no result."""
        if not self.quiet:
            self.errors.print(f"note: {visible(text)}", soft_wrap=True)

    def fail(self, text: str) -> None:
        """Why there is no result, in one or two lines."""
        self.errors.print(f"mauc: {visible(text, lines=True)}", soft_wrap=True)

    def result(self, found: Mapping[str, Any]) -> None:
        """For machines: one JSON object."""
        if self.as_json:
            # JSON escapes all control characters but one.
            print(json.dumps(_plain(found), allow_nan=False).replace("\x7f", "\\u007f"), flush=True)

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show that something takes a while."""
        if self.silent or not self.errors.is_terminal:
            yield
            return
        with self.errors.status(_text(text)):
            yield

    def progress_console(self) -> Console:
        """For progress bars: silent where it must be."""
        return Console(stderr=True, quiet=self.silent)


_current: ContextVar[Output | None] = ContextVar("output", default=None)


def current() -> Output:
    """The output of the command that is running."""
    return _current.get() or Output()


@contextmanager
def speaking(output: Output) -> Iterator[Output]:
    """Make it the current one."""
    token = _current.set(output)
    try:
        yield output
    finally:
        _current.reset(token)


def _plain(value: Any) -> Any:
    """As JSON has it: NaN is null, NumPy's numbers are numbers, paths are strings."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
