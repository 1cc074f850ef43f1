"""Print results on standard output, and notes and progress on standard error.

Names of files, columns and classes may hold control characters: everything printed here escapes them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mauc._io import json_text
from mauc._text import visible


class TextTable(Table):
    """A table of plain text: no markup, no control characters, in titles, headings or cells.

    The columns of ``left`` are aligned to the left, those of ``right`` to the right.
    """

    def __init__(self, title: str, left: Sequence[str], right: Sequence[str], *, narrow: bool = False) -> None:
        # A title may be wider than its table, and is not wrapped.
        text = Text(visible(title), style="table.title", no_wrap=True, overflow="ignore")
        frame: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0)} if narrow else {}
        super().__init__(title=text, title_justify="left", **frame)
        for heading in left:
            self.add_column(_text(heading), overflow="fold")
        for heading in right:
            self.add_column(_text(heading), justify="right")

    def add_row(self, *cells: Any, **kwargs: Any) -> None:
        """Add a row, as in rich, of plain text."""
        super().add_row(*map(_text, cells), **kwargs)


def _text(cell: Any) -> Text:
    return Text(visible(cell))


class Output:
    """Print the output of a command, unless ``--json`` or ``--quiet`` forbid it."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.console = Console(highlight=False, markup=False, emoji=False)
        self.errors = Console(stderr=True, highlight=False, markup=False, emoji=False)

    @property
    def results_only(self) -> bool:
        """Whether to print nothing but results and errors."""
        return self.quiet or self.as_json

    @property
    def has_terminal(self) -> bool:
        """Whether progress is shown in a line of a terminal that changes."""
        return self.errors.is_terminal and not self.results_only

    def say(self, *things: str | TextTable) -> None:
        """Print lines and tables for people."""
        if not self.results_only:
            for thing in things:
                if isinstance(thing, TextTable):
                    self.console.print(thing)
                else:
                    # The terminal wraps long lines: a path must survive copying.
                    self.console.print(visible(thing, lines=True), soft_wrap=True)

    def progress(self, text: str) -> None:
        """Print how far the work is, on standard error."""
        if not self.results_only:
            self.errors.print(visible(text), soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a note on standard error."""
        if not self.quiet:
            self.errors.print(f"note: {visible(text)}", soft_wrap=True)

    def fail(self, text: str) -> None:
        """Print an error, in one or two lines."""
        self.errors.print(f"mauc: {visible(text, lines=True)}", soft_wrap=True)

    def result(self, found: Mapping[str, Any]) -> None:
        """Print one JSON object for programs, if asked for."""
        if self.as_json:
            # JSON escapes all control characters but one.
            print(json_text(found).replace("\x7f", "\\u007f"), flush=True)

    @contextmanager
    def working(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show in a terminal that something takes a while; the result changes what is shown."""
        if not self.has_terminal:
            yield lambda _: None
            return
        with self.errors.status(_text(text)) as status:
            yield lambda new: status.update(_text(new))


_current: ContextVar[Output | None] = ContextVar("output", default=None)


def current() -> Output:
    """Return the output of the running command."""
    return _current.get() or Output()


@contextmanager
def use_output(output: Output) -> Iterator[Output]:
    """Make ``output`` the current one within the context."""
    token = _current.set(output)
    try:
        yield output
    finally:
        _current.reset(token)
