"""How far a training is: a line that changes in a terminal, one line for each finished model elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task
from rich.table import Column
from rich.text import Text

from mauc._cli.output import Output
from mauc._tables.leaderboard import Entry, Moment, Silent
from mauc._text import visible

__all__ = ["Speaking", "watching"]


class Speaking(Silent):
    """Shows the model, the fit that is running, the seconds left and the best model so far."""

    def __init__(self, output: Output, ends: float | None, progress: Progress | None) -> None:
        self.output = output
        self.progress = progress
        self.prefix = ""
        if progress is not None:
            self.task = progress.add_task("", moment=None, ends=ends)

    def begins(self, moment: Moment) -> None:
        """A fit begins."""
        if self.progress is not None:
            self.progress.update(self.task, description=self.prefix, moment=moment)

    def under(self, prefix: str) -> None:
        """What comes next is part of this."""
        self.prefix = prefix

    def does(self, text: str) -> None:
        """Something else begins."""
        self.begins(Moment(text, ""))

    def ends(self, entry: Entry) -> None:
        """A model is done."""
        self.output.tell(self.prefix + one_line(entry))


def one_line(entry: Entry) -> str:
    """A model that is done."""
    return f"{entry.name}: MAUC {entry.validation:.4f} on validation rows, {entry.seconds:.1f} s"


@contextmanager
def watching(output: Output, ends: float | None) -> Iterator[Speaking]:
    """Something that speaks where the output may: changing lines only where there is a terminal.

    ``ends`` is the deadline in the seconds of :func:`time.monotonic`, where there is one.
    """
    if output.silent or not output.errors.is_terminal:
        yield Speaking(output, ends, None)
        return
    columns = (SpinnerColumn(), *(each(table_column=Column(no_wrap=True)) for each in (_What, _Left, _Best)))
    with Progress(*columns, console=output.errors, transient=True) as progress:
        yield Speaking(output, ends, progress)


class _What(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Which model, and which fit of it."""
        moment = task.fields["moment"]
        if moment is None:
            return Text("")
        return Text(visible(task.description + moment.model + (f": {moment.step}" if moment.step else "")))


class _Left(ProgressColumn):
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Seconds until the time limit, where there is one; else since the beginning."""
        if task.fields["ends"] is None:
            return Text(f"{task.elapsed or 0.0:.0f} s")
        return Text(f"{max(0.0, task.fields['ends'] - time.monotonic()):.0f} s left")


class _Best(ProgressColumn):
    def render(self, task: Task) -> Text:
        """The best of the models that are done."""
        best: Any = task.fields["moment"] and task.fields["moment"].best
        return Text(f"best so far {best.validation:.4f}, {best.name}" if best else "")
