"""The models of a stack side by side: what each was worth on training rows held out from it, and what it took.

What is written is chosen by rows of the training part alone. The test rows choose nothing, so that its score on them is
no better than it will be on new ones.
"""

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["FREQUENCIES", "STACK", "Entry", "Leaderboard", "Moment", "Silent", "in_full"]

FREQUENCIES = "class frequencies"
STACK = "stack of models"
NAMES = {
    "starter": "small forest",
    "et": "extra trees",
    "lr": "logistic regression",
    "hgb": "boosted trees",
    "hgb_deep": "deep boosted trees",
    "rf": "random forest",
    "rf_deep": "deep random forest",
    "mauc": "linear MAUC model",
    "kernel": "kernel MAUC model",
    "et_deep": "deep extra trees",
    "mlp": "perceptron",
    "lr_strong": "logistic regression, strong penalty",
    "odds": "proportional odds",
    "odds_kernel": "proportional odds on a kernel",
    "combination": "combination of the models",
}


def in_full(name: str) -> str:
    """The name of a member of the stack as people read it."""
    return NAMES.get(name, name)


@dataclass(frozen=True)
class Entry:
    """A model that was trained."""

    name: str
    about: str
    """What it is, with the parameters that were chosen."""
    validation: float
    """Multiclass AUC on training rows that were held out from it; NaN where there is none."""
    seconds: float
    """What its fits took, added up."""
    weight: float = math.nan
    """In the stack."""

    def to_json(self) -> dict[str, Any]:
        """By name, as JSON has it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Leaderboard:
    """What was trained, which model is written, and what there was no time for."""

    entries: tuple[Entry, ...]
    winner: str
    chosen_by: str
    """How the winner was chosen, in words."""
    cut: tuple[str, ...] = ()
    """What the time limit cut, or what failed, in words; empty: another machine gives the same model."""

    @property
    def tried(self) -> tuple[Entry, ...]:
        """The winner first, then by falling validation score."""
        return tuple(sorted(self.entries, key=lambda e: (e.name != self.winner, -_or_worst(e.validation))))

    def to_json(self) -> dict[str, Any]:
        """By name, as JSON has it."""
        return {**vars(self), "entries": [entry.to_json() for entry in self.entries]}


@dataclass(frozen=True)
class Moment:
    """Where the training stands."""

    model: str
    step: str
    best: Entry | None = None
    """Of the models that are done."""


class Silent:
    """Watches the training and says nothing; the command line has one that speaks."""

    def under(self, prefix: str) -> None:
        """What comes next is part of this."""

    def does(self, text: str) -> None:
        """Something else begins."""

    def begins(self, moment: Moment) -> None:
        """A fit begins."""

    def ends(self, entry: Entry) -> None:
        """A model is done."""


def _or_worst(score: float) -> float:
    return -1.0 if math.isnan(score) else score
