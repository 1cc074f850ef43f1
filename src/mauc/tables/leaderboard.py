"""Several models on one table: which were tried, what each was worth on training rows held out from it, which won.

The winner is chosen by rows of the training part alone. The rows that judge it choose nothing, so that its score on
them is no better than it will be on new ones.
"""

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Entry", "Leaderboard"]


@dataclass(frozen=True)
class Entry:
    """A model that was tried, or why it was not."""

    name: str
    about: str
    """What it is, with the parameters that were chosen."""
    validation: float
    """Multiclass AUC on training rows that were held out from it; NaN where there is none."""
    seconds: float
    """What it took, or would have taken."""
    left_out: str = ""
    """Why there is no such model; empty where there is one."""

    def to_json(self) -> dict[str, Any]:
        """By name, as JSON has it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Leaderboard:
    """What was tried, in the order of trying, and which model won."""

    entries: tuple[Entry, ...]
    winner: str
    chosen_by: str
    """How the winner was chosen, in words."""
    seconds: float

    @property
    def tried(self) -> tuple[Entry, ...]:
        """Those that have a model, the winner first, then by falling validation score."""
        there = [entry for entry in self.entries if not entry.left_out]
        return tuple(sorted(there, key=lambda e: (e.name != self.winner, -_or_worst(e.validation))))

    @property
    def left_out(self) -> tuple[Entry, ...]:
        """Those that have none."""
        return tuple(entry for entry in self.entries if entry.left_out)

    def to_json(self) -> dict[str, Any]:
        """By name, as JSON has it."""
        return {**vars(self), "entries": [entry.to_json() for entry in self.entries]}


def _or_worst(score: float) -> float:
    return -1.0 if math.isnan(score) else score
