"""Predict classes from scores: accuracy, confusion matrix, and the accuracy of always guessing one class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Ints
from mauc.report.proportions import Share, at_least, independent_rows, mean_of_shares, share_of

__all__ = ["Decision", "Guess", "Mistake", "are_probabilities", "decide", "guess_of", "mistakes"]


@dataclass(frozen=True, eq=False)
class Decision:
    """A rule that predicts a class for each row, and its accuracy."""

    name: str
    words: str
    predicted: Ints
    """``(N,)`` class of each row; -1 for one without test rows."""
    confusion: Ints
    """``(C, C)`` with ``[i, j]`` = rows of class i that are predicted as class j."""
    accuracy: Share
    balanced_accuracy: Share


@dataclass(frozen=True)
class Guess:
    """Score of always guessing the largest class of the training rows."""

    label: str
    accuracy: float
    balanced_accuracy: float


@dataclass(frozen=True)
class Mistake:
    """Rows of class i that are predicted as class j."""

    i: int
    j: int
    rows: int
    of_class: Share
    """Their share of the rows of class i."""


def are_probabilities(scores: NDArray[Any]) -> bool:
    """Return True if all scores lie in [0, 1]; probabilities of each class against all others need not sum to 1."""
    return bool(scores.min() >= 0.0 and scores.max() <= 1.0)


def guess_of(label: str, labels: Sequence[str], counts: Ints) -> Guess:
    """Score always guessing ``label`` on test rows with these class sizes.

    >>> guess_of("oak", ["oak", "elm"], np.array([30, 10]))
    Guess(label='oak', accuracy=0.75, balanced_accuracy=0.5)
    """
    right = np.array([name == label for name in labels])
    return Guess(label, float(counts[right].sum() / counts.sum()), float(right.sum() / len(counts)))


def decide(
    scores: NDArray[Any],
    codes: Ints,
    counts: Ints,
    level: float,
    predicted: Ints | None = None,
    groups: Ints | None = None,
) -> list[Decision]:
    """Predict by the highest score; if ``predicted`` is given, the predictions of the model come first."""
    rules = [] if predicted is None else [("prediction of the model", "the class that the model predicts", predicted)]
    rules.append(("highest score", "the class with the highest score", scores.argmax(axis=1)))
    return [_decision(name, words, predicted, codes, counts, level, groups) for name, words, predicted in rules]


def _decision(
    name: str, words: str, predicted: Ints, codes: Ints, counts: Ints, level: float, groups: Ints | None
) -> Decision:
    n = len(counts)
    known = predicted >= 0  # a class without test rows has no column
    confusion = np.bincount(codes[known] * n + predicted[known], minlength=n * n).reshape(n, n)
    right = predicted == codes
    rows = np.array([independent_rows(right, groups, codes == k) for k in range(n)])
    return Decision(
        name,
        words,
        predicted,
        confusion,
        accuracy=share_of(right, groups, level),
        balanced_accuracy=mean_of_shares(confusion.diagonal() * rows / counts, rows, level),
    )


def mistakes(
    decision: Decision, codes: Ints, counts: Ints, listed: int, level: float, groups: Ints | None = None
) -> list[Mistake]:
    """Return the most reliable mistakes first: by the low end of the interval of their share of the class."""
    i, j = np.nonzero(decision.confusion)
    wrong = [(int(a), int(b), int(decision.confusion[a, b])) for a, b in zip(i, j, strict=True) if a != b]
    wrong.sort(key=lambda each: -at_least(each[2], float(counts[each[0]]), level))
    return [
        Mistake(a, b, rows, share_of(decision.predicted == b, groups, level, codes == a))
        for a, b, rows in wrong[:listed]
    ]
