"""Compute shares of rows with their intervals."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mauc._typing import Floats, Ints
from mauc.metrics.uncertainty import wilson


@dataclass(frozen=True)
class Share:
    """A share of rows with Wilson's interval; NaN if there are no rows."""

    score: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.score:.3f} ({self.low:.3f} to {self.high:.3f})"


def share(hits: float, rows: float, level: float) -> Share:
    """Return the share ``hits / rows`` with its interval.

    >>> found = share(9, 10, 0.95)
    >>> round(found.low, 3), found.score, round(found.high, 3)
    (0.596, 0.9, 0.982)
    """
    if rows == 0:
        return Share(math.nan, 0.0, 1.0)
    low, high = wilson(hits / rows, float(special.ndtri(0.5 + 0.5 * level)) ** 2 / rows)
    return Share(hits / rows, float(low), float(high))


def share_of(
    hit: NDArray[np.bool_] | Floats, groups: Ints | None, level: float, part: NDArray[np.bool_] | Floats | None = None
) -> Share:
    """Return the share of rows that are hit, among all or among the ``part`` of each row that counts.

    Rows of a group may depend on each other. Rows that are hit in part count in part, as ties do.
    """
    weight = np.ones(len(hit)) if part is None else np.asarray(part, dtype=np.float64)
    counted = weight > 0.0
    total = float(weight.sum())
    effective = independent_rows(hit, groups, counted) * total / max(int(counted.sum()), 1)
    return share(float(weight @ hit) * effective / max(total, 1e-12), effective, level)


def independent_rows(
    hit: NDArray[np.bool_] | Floats, groups: Ints | None, rows: NDArray[np.bool_] | slice = slice(None)
) -> float:
    """Return the effective sample size: N, or with groups N divided by the design effect.

    The design effect is the variance of the group sums over that of independent rows. Three groups of equal rows are
    added to stabilise it.

    >>> independent_rows(np.array([1.0, 1.0, 0.0, 0.0] * 25), np.repeat(np.arange(50), 2)) < 55
    True
    """
    hit = hit[rows]
    if groups is None or not len(hit):
        return float(len(hit))
    _, of_row, counts = np.unique(groups[rows], return_inverse=True, return_counts=True)
    centred = np.asarray(hit, dtype=np.float64) - np.mean(hit)
    of_groups, of_rows = float(np.square(np.bincount(of_row, centred)).sum()), float(np.square(centred).sum())
    per_group = float(np.square(counts).sum()) / len(centred)
    added = 3.0 * of_rows / len(centred)
    effect = (added * per_group + of_groups) / (added + of_rows) if of_rows > 0.0 else per_group
    return len(centred) / min(max(effect, 1.0), per_group)


def at_least(hits: float, rows: float, level: float) -> float:
    """Return the low end of the exact interval (Clopper and Pearson), to rank shares: one row of one ranks low.

    >>> round(at_least(1, 1, 0.95), 3), round(at_least(16, 120, 0.95), 3)
    (0.025, 0.078)
    """
    return float(special.betaincinv(hits, rows - hits + 1.0, 0.5 - 0.5 * level)) if hits else 0.0


def mean_of_shares(hits: Floats, rows: Floats, level: float) -> Share:
    """Return the mean of independent shares, such as the recalls of all classes.

    The distances to the ends of its interval are combined as standard errors (method of variance estimates recovery,
    Zou and Donner 2008).
    """
    parts = [share(float(h), float(n), level) for h, n in zip(hits, rows, strict=True)]
    score = float(np.mean([part.score for part in parts]))
    down = math.sqrt(sum((part.score - part.low) ** 2 for part in parts)) / len(parts)
    up = math.sqrt(sum((part.high - part.score) ** 2 for part in parts)) / len(parts)
    return Share(score, max(0.0, score - down), min(1.0, score + up))
