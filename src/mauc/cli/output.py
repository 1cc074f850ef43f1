"""Where commands speak: results on standard output, notes and progress on standard error."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from rich.console import Console

__all__ = ["Output", "current", "speaking"]


class Output:
    """What a command says, under ``--json`` and ``--quiet``."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.console = Console(highlight=False)
        self.errors = Console(stderr=True, highlight=False)

    def say(self, *things: Any) -> None:
        """For people: lines and tables."""
        if not self.as_json and not self.quiet:
            for thing in things:
                # Long lines are for the terminal to wrap: a path must survive copying.
                self.console.print(thing, soft_wrap=isinstance(thing, str), markup=False)

    def note(self, text: str) -> None:
        """Worth knowing, and no result."""
        if not self.quiet:
            self.errors.print(f"note: {text}", soft_wrap=True, markup=False)

    def result(self, found: Mapping[str, Any]) -> None:
        """For machines: one JSON object."""
        if self.as_json:
            print(json.dumps(_plain(found), allow_nan=False))

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show that something takes a while."""
        if self.quiet or self.as_json or not self.errors.is_terminal:
            yield
            return
        with self.errors.status(text):
            yield

    def progress_console(self) -> Console:
        """For progress bars: silent where it must be."""
        return Console(stderr=True, quiet=self.quiet or self.as_json)


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
