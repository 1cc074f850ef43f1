"""Show the progress of a training in the terminal."""

import math
import time
from typing import Self

from rich.live import Live
from rich.text import Text

from mauc._cli.output import Output
from mauc._tables.training import full_name
from mauc._text import visible
from mauc.ensemble.fitting import Watch


class TrainingProgress(Watch):
    """Show the running fit, the seconds left and the best model so far, as a context manager.

    In a terminal, one line changes; elsewhere, each finished model is a line. The ``deadline`` is in the seconds of
    :func:`time.monotonic`.
    """

    def __init__(self, output: Output, deadline: float) -> None:
        self.output, self.deadline, self.text, self.prefix = output, deadline, "", ""
        self.best = (-math.inf, "")
        self.live = Live(self, console=output.errors, transient=True, refresh_per_second=2)

    def __enter__(self) -> Self:
        if self.output.has_terminal:
            self.live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def __rich__(self) -> Text:
        score, name = self.best
        parts = [self.text, f"{max(0.0, self.deadline - time.monotonic()):.0f} s left"]
        parts += [f"best so far {score:.4f}, {name}"] if name else []
        return Text(visible("   ".join(parts)), no_wrap=True, overflow="ellipsis")

    def step(self, text: str) -> None:
        """Show that a step begins."""
        self.text = self.prefix + text
        if self.live.is_started:
            self.live.refresh()

    def begins(self, name: str, step: str) -> None:
        """Show that a fit of a member of the stack begins."""
        self.step(f"{full_name(name)}: {step}")

    def ends(self, name: str, score: float, seconds: float) -> None:
        """Print the validation score of a complete member of the stack."""
        name = full_name(name)
        self.best = max(self.best, (-math.inf if math.isnan(score) else score, name))
        self.output.progress(f"{self.prefix}{name}: validation MAUC {score:.4f}, {seconds:.1f} s")
