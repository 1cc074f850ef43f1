"""Shares of rows with their intervals."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from mauc._typing import Floats

__all__ = ["Share", "at_least", "mean_of_shares", "share"]


@dataclass(frozen=True)
class Share:
    """A share of rows, with Wilson's interval; NaN of no rows."""

    score: float
    low: float
    high: float


def share(hits: float, rows: float, level: float) -> Share:
    """Of ``rows`` rows, ``hits``.

    >>> found = share(9, 10, 0.95)
    >>> round(found.low, 3), found.score, round(found.high, 3)
    (0.596, 0.9, 0.982)
    """
    if rows == 0:
        return Share(math.nan, 0.0, 1.0)
    z = float(special.ndtri(0.5 + 0.5 * level))
    p, k = hits / rows, z * z / rows
    middle = (p + 0.5 * k) / (1.0 + k)
    reach = math.sqrt(k * p * (1.0 - p) + 0.25 * k * k) / (1.0 + k)
    return Share(p, max(0.0, min(p, middle - reach)), min(1.0, max(p, middle + reach)))


def at_least(hits: float, rows: float, level: float) -> float:
    """The low end of the exact interval (Clopper and Pearson), which one row of one does not raise: for rankings.

    >>> round(at_least(1, 1, 0.95), 3), round(at_least(16, 120, 0.95), 3)
    (0.025, 0.078)
    """
    return float(special.betaincinv(hits, rows - hits + 1.0, 0.5 - 0.5 * level)) if hits else 0.0


def mean_of_shares(hits: Floats, rows: Floats, level: float) -> Share:
    """The mean of independent shares, such as the recalls of all classes, with the interval that theirs make: distances
    to the ends add up as standard errors do (the method of variance estimates recovered, Zou and Donner 2008)."""
    parts = [share(float(h), float(n), level) for h, n in zip(hits, rows, strict=True)]
    score = float(np.mean([part.score for part in parts]))
    down = math.sqrt(sum((part.score - part.low) ** 2 for part in parts)) / len(parts)
    up = math.sqrt(sum((part.high - part.score) ** 2 for part in parts)) / len(parts)
    return Share(score, max(0.0, score - down), min(1.0, score + up))
