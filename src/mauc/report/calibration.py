"""Do scores mean what they say? Of the rows scored 0.7, seven in ten should be of the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.report.proportions import Share, share_of

__all__ = ["Bin", "Calibration", "calibration", "reliability"]

BINS = 10


@dataclass(frozen=True)
class Bin:
    """The rows whose score lies in one tenth of [0, 1]."""

    rows: int
    mean: float
    """Of their scores."""
    right: Share
    """Part of them that is of the class."""


@dataclass(frozen=True)
class Calibration:
    """Of the highest score of each row: how often it is right."""

    bins: tuple[Bin, ...]
    error: float
    """Mean distance of scores from what came true, over rows: the expected calibration error."""


def calibration(scores: NDArray[Any], codes: Ints, level: float, groups: Ints | None = None) -> Calibration:
    """Of ``(N, C)`` probabilities."""
    taken = scores.argmax(axis=1)
    bins = reliability(scores[np.arange(len(codes)), taken], taken == codes, level, groups)
    error = sum(part.rows * abs(part.mean - part.right.score) for part in bins) / len(codes)
    return Calibration(bins, float(error))


def reliability(column: Floats, right: NDArray[np.bool_], level: float, groups: Ints | None = None) -> tuple[Bin, ...]:
    """The tenths of [0, 1] that hold rows."""
    place = np.minimum((column * BINS).astype(np.int64), BINS - 1)
    found = []
    for k in np.unique(place):
        inside = place == k
        some = None if groups is None else groups[inside]
        found.append(Bin(int(inside.sum()), float(column[inside].mean()), share_of(right[inside], some, level)))
    return tuple(found)
