"""From scores to classes: who is taken for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.report.proportions import Share, at_least, mean_of_shares, share

__all__ = ["Decision", "Mistake", "are_probabilities", "decide", "mistakes"]


@dataclass(frozen=True, eq=False)
class Decision:
    """A rule that names a class for each row, and what comes of it."""

    name: str
    words: str
    confusion: Ints
    """``(C, C)`` with ``[i, j]`` = rows of class i that are taken for class j."""
    accuracy: Share
    balanced_accuracy: Share
    """Mean recall of the classes."""


@dataclass(frozen=True)
class Mistake:
    """Rows of class i taken for class j."""

    i: int
    j: int
    rows: int
    of_class: Share
    """Part of the rows of class i."""


def are_probabilities(scores: NDArray[Any]) -> bool:
    """Whether all scores lie in [0, 1] and add up to 1 in each row."""
    return bool(scores.min() >= 0.0 and scores.max() <= 1.0 and np.abs(scores.sum(axis=1) - 1.0).max() < 1e-3)


def decide(scores: NDArray[Any], codes: Ints, counts: Ints, priors: Floats | None, level: float) -> list[Decision]:
    """By the highest score; and of probabilities, with the ``(C,)`` shares of the classes in training, by the highest
    ratio to that share, which favours no class for its size."""
    rules = [("highest score", "the class with the highest score", scores.argmax(axis=1))]
    if priors is not None and are_probabilities(scores):
        words = "the class whose score is highest for its frequency: score divided by the share of the class"
        rules.append(("highest for its frequency", words, (scores / priors).argmax(axis=1)))
    return [_decision(name, words, taken, codes, counts, level) for name, words, taken in rules]


def _decision(name: str, words: str, taken: Ints, codes: Ints, counts: Ints, level: float) -> Decision:
    n = len(counts)
    confusion = np.bincount(codes * n + taken, minlength=n * n).reshape(n, n)
    right = confusion.diagonal()
    return Decision(
        name,
        words,
        confusion,
        accuracy=share(float(right.sum()), float(counts.sum()), level),
        balanced_accuracy=mean_of_shares(right.astype(np.float64), counts.astype(np.float64), level),
    )


def mistakes(decision: Decision, counts: Ints, listed: int, level: float) -> list[Mistake]:
    """By the least part of the class that they may make: those that these rows show to be frequent."""
    i, j = np.nonzero(decision.confusion)
    found = [
        Mistake(int(a), int(b), n := int(decision.confusion[a, b]), share(n, float(counts[a]), level))
        for a, b in zip(i, j, strict=True)
        if a != b
    ]
    found.sort(key=lambda mistake: -at_least(mistake.rows, float(counts[mistake.i]), level))
    return found[:listed]
