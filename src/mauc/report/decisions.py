"""From scores to predicted classes: accuracy, confusion matrix, and what always guessing one class would reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.report.proportions import Share, at_least, mean_of_shares, share

__all__ = ["Decision", "Guess", "Mistake", "are_probabilities", "decide", "guess_of", "mistakes"]


@dataclass(frozen=True, eq=False)
class Decision:
    """A rule that predicts a class for each row, and its accuracy."""

    name: str
    words: str
    confusion: Ints
    """``(C, C)`` with ``[i, j]`` = rows of class i that are predicted as class j."""
    accuracy: Share
    balanced_accuracy: Share


@dataclass(frozen=True)
class Guess:
    """What always guessing the same class would reach on the test rows."""

    label: str
    """The largest class of the training rows."""
    accuracy: float
    balanced_accuracy: float


@dataclass(frozen=True)
class Mistake:
    """Rows of class i that are predicted as class j."""

    i: int
    j: int
    rows: int
    of_class: Share
    """Part of the rows of class i."""


def are_probabilities(scores: NDArray[Any]) -> bool:
    """Whether all scores lie in [0, 1] and add up to 1 in each row."""
    return bool(scores.min() >= 0.0 and scores.max() <= 1.0 and np.abs(scores.sum(axis=1) - 1.0).max() < 1e-3)


def guess_of(label: str, labels: Sequence[str], counts: Ints) -> Guess:
    """Always guessing ``label``, on test rows with these classes and class sizes.

    >>> guess_of("oak", ["oak", "elm"], np.array([30, 10]))
    Guess(label='oak', accuracy=0.75, balanced_accuracy=0.5)
    """
    right = np.array([name == label for name in labels])
    return Guess(label, float(counts[right].sum() / counts.sum()), float(right.sum() / len(counts)))


def decide(
    scores: NDArray[Any],
    codes: Ints,
    counts: Ints,
    priors: Floats | None,
    level: float,
    predicted: Ints | None = None,
) -> list[Decision]:
    """What the model predicts, where ``predicted`` classes are given; then by the highest score; then, for
    probabilities with the ``(C,)`` shares of the classes in training, by the highest ratio to that share, which favours
    no class for its size."""
    rules = [] if predicted is None else [("prediction of the model", "the class that the model predicts", predicted)]
    rules.append(("highest score", "the class with the highest score", scores.argmax(axis=1)))
    if priors is not None and are_probabilities(scores):
        words = "the class with the highest score divided by the frequency of the class in training"
        rules.append(("highest score by class frequency", words, (scores / priors).argmax(axis=1)))
    return [_decision(name, words, predicted, codes, counts, level) for name, words, predicted in rules]


def _decision(name: str, words: str, predicted: Ints, codes: Ints, counts: Ints, level: float) -> Decision:
    n = len(counts)
    known = predicted >= 0  # a class without test rows has no column
    confusion = np.bincount(codes[known] * n + predicted[known], minlength=n * n).reshape(n, n)
    right = confusion.diagonal()
    return Decision(
        name,
        words,
        confusion,
        accuracy=share(float(right.sum()), float(counts.sum()), level),
        balanced_accuracy=mean_of_shares(right.astype(np.float64), counts.astype(np.float64), level),
    )


def mistakes(decision: Decision, counts: Ints, listed: int, level: float) -> list[Mistake]:
    """The most reliable ones first: by the low end of the interval of their share in the class."""
    i, j = np.nonzero(decision.confusion)
    found = [
        Mistake(int(a), int(b), n := int(decision.confusion[a, b]), share(n, float(counts[a]), level))
        for a, b in zip(i, j, strict=True)
        if a != b
    ]
    found.sort(key=lambda mistake: -at_least(mistake.rows, float(counts[mistake.i]), level))
    return found[:listed]
