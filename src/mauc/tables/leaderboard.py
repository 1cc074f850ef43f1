"""Several models on one table: which were tried, what each was worth on training rows held out from it, which won.

The winner is chosen by rows of the training part alone. The rows that judge it choose nothing, so that its score on
them is no better than it will be on new ones.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.metrics import mauc_score
from mauc.tables.candidates import CANDIDATES, Candidate, Fold, LeftOut, Part
from mauc.tables.durations import slowness
from mauc.tables.models import describe

__all__ = ["Entry", "Leaderboard", "Moment", "Silent", "compare_candidates"]


@dataclass(frozen=True)
class Entry:
    """A model that was tried, or why it was not."""

    name: str
    about: str
    """What it is, with the parameters that were chosen."""
    validation: float
    """Multiclass AUC on training rows that were held out from it; NaN where there is none."""
    seconds: float
    """What it took."""
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


@dataclass(frozen=True)
class Moment:
    """Where the training stands."""

    model: str
    step: str
    seconds_left: float
    """Until the time limit."""
    best: Entry | None
    """Of the models that are done."""


class Silent:
    """Watches the training and says nothing; the command line has one that speaks."""

    def begins(self, moment: Moment) -> None:
        """A fit begins."""

    def ends(self, entry: Entry) -> None:
        """A model is done, or left out."""


def compare_candidates(
    X: Floats,
    labels: NDArray[Any],
    folds: Sequence[Fold],
    *,
    seconds: float,
    seed: int = 0,
    chosen_by: str = "",
    watch: Silent | None = None,
    candidates: Sequence[Candidate] = CANDIDATES,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Leaderboard, dict[str, Any]]:
    """Train the candidates in turn, the quick ones first, and choose one by the rows that ``folds`` hold out.

    The first two are trained whatever the limit; a later one is left out where its time would not suffice, and
    stopped between two fits where it did not. Of equal validation scores the earlier model wins. Returns the fitted
    classifiers by name, the winner first. All are compared by the rows that all of them held out.
    """
    watch = watch or Silent()
    began, slow = clock(), slowness()
    entries: list[Entry] = []
    models: dict[str, Any] = {}
    held_out: dict[str, Floats] = {}
    for place, candidate in enumerate(candidates):
        start = clock()

        def step(text: str, name: str = candidate.name, must: bool = place < 2) -> None:
            left = began + seconds - clock()
            if left < 0 and not must:
                raise _Late
            watch.begins(Moment(name, text, max(0.0, left), _best(entries)))

        part = Part(X, labels, folds, seed, max(0.0, began + seconds - start), step, slow)
        try:
            trained = candidate.train(part)
        except LeftOut as why:
            entry = Entry(candidate.name, "", float("nan"), clock() - start, str(why))
        except _Late:
            took = clock() - start
            entry = Entry(candidate.name, "", float("nan"), took, f"was not ready after {took:.0f} s")
        else:
            models[candidate.name] = trained.classifier
            held_out[candidate.name] = trained.held_out
            score = _validation(trained.held_out, labels, _rows_of([trained.held_out]))
            about = describe(trained.classifier) + (f"; {trained.remark}" if trained.remark else "")
            entry = Entry(candidate.name, about, score, clock() - start)
        entries.append(entry)
        watch.ends(entry)
    rows = _rows_of(list(held_out.values()))
    entries = [
        replace(entry, validation=_validation(held_out[entry.name], labels, rows)) if entry.name in held_out else entry
        for entry in entries
    ]
    best = _best(entries)
    if best is None:
        # Nothing could be held out: the linear model is made for few rows of a class.
        best = next((e for e in reversed(entries) if not e.left_out and "stack" not in e.name), entries[0])
    board = Leaderboard(tuple(entries), best.name, f"{len(rows)} validation rows ({chosen_by})", clock() - began)
    return board, {entry.name: models[entry.name] for entry in board.tried}


class _Late(Exception):
    """The time is up."""


def _rows_of(held_out: Sequence[Floats]) -> Ints:
    """Those that all models held out, but for models that held none out."""
    missing = [np.isnan(scores[:, 0]) for scores in held_out]
    return np.flatnonzero(~np.any([none for none in missing if not none.all()] or missing, axis=0))


def _validation(held_out: Floats, labels: NDArray[Any], rows: Ints) -> float:
    if len(np.unique(labels[rows])) < 2 or np.isnan(held_out[rows, 0]).any():
        return float("nan")
    return mauc_score(labels[rows], held_out[rows], labels=np.unique(labels), absent="ignore")


def _best(entries: Sequence[Entry]) -> Entry | None:
    scored = [entry for entry in entries if not math.isnan(entry.validation)]
    return max(scored, key=lambda entry: entry.validation) if scored else None


def _or_worst(score: float) -> float:
    return -1.0 if math.isnan(score) else score
