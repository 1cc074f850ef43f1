"""The place of each column's crowd among the positives, and the polynomial that the pieces of ℓ make there."""

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.crowd import MANY, Interval, Sample, Side
from mauc.kernels.crowd_sums import sum_dtype
from mauc.kernels.ends import Ends
from mauc.kernels.tiles import Problem, Scattered

__all__ = ["MOST_APART", "Stand", "Stands", "find_crowd", "sides_of"]

MOST_APART = 0.25
"""Share of the scores that may stand apart; one by one they take about three times as long as in a tile."""


@np.errstate(over="ignore", invalid="ignore")
def find_crowd(
    problem: Problem, positives: NDArray[np.floating], start: Ints, breaks: list[float]
) -> tuple[Scattered, Interval] | None:
    """The typical score of each column, and the interval of scores whose runs end at the same positives; None where
    many scores are outside, or they are too few to tell.

    ``positives`` are grouped by column, in any order within one: column ``i`` has ``[start[i], start[i + 1])``. The
    interval is a few roundings narrower than the bounds: what is nearer to one is told by the search alone.
    """
    if problem.scores.size < MANY:
        return None
    sample, dtype = Sample(problem), sum_dtype(problem)
    low, high = np.full(len(start) - 1, -np.inf), np.full(len(start) - 1, np.inf)
    length = start[1:] - start[:-1]
    filled = length > 0
    first, difference = start[:-1][filled], positives - sample.typical.x.repeat(length)
    slack = 8.0 * float(np.finfo(dtype).eps)
    for b in breaks:
        before = difference < b
        below = np.maximum.reduceat(np.where(before, positives, -np.inf), first) - b
        above = np.minimum.reduceat(np.where(before, np.inf, positives), first) - b
        # |p| <= |p − b| + |b|
        below = np.maximum(below * (1.0 - slack), below * (1.0 + slack)) + 2.0 * slack * abs(b)
        above = np.minimum(above * (1.0 - slack), above * (1.0 + slack)) - 2.0 * slack * abs(b)
        low[filled], high[filled] = np.maximum(low[filled], below), np.minimum(high[filled], above)
    # Where no bound is below, nothing depends on the distance from it, and any that the scores keep to will do.
    low = np.where(np.isinf(low), sample.lowest - 1.0, low).astype(dtype)
    width = (np.maximum(high - low, 0.0) * (1.0 - slack)).astype(dtype)
    interval = Interval(low, width)
    return (sample.typical, interval) if interval.holds(sample, MOST_APART) else None


class Stand(NamedTuple):
    """The place of each column's crowd in one of the sums that make a run."""

    run: int
    ends: Ends
    place: Ints
    landing: slice
    """Its rows of what lands for the run."""


class Stands(Side):
    """What stands make together: those whose distances grow with the score (``upper``), or those whose fall."""

    def __init__(self, origin: NDArray[Any], stands: list[Stand]) -> None:
        self.stands, upper = stands, stands[0].ends.upper
        powers = np.zeros((max(len(stand.ends.powers) for stand in stands), len(origin)))
        self.further = []
        """How much more than ``d`` the distance of each stand is, a ``(C,)`` vector each."""
        for stand in stands:
            of_stand = stand.ends.powers.take(stand.place, axis=1)
            further = (origin - stand.ends.anchor.take(stand.place)) + stand.ends.bound
            self.further.append((further if upper else -further) * of_stand.any(axis=0))
            powers[: len(of_stand)] += _shifted(of_stand, self.further[-1])
        super().__init__(origin, powers, upper=upper)

    def settle(self, moments: Floats, landed: list[Floats]) -> float:
        """The value of all that was visited; what it hands to the positives lands."""
        for stand, further in zip(self.stands, self.further, strict=True):
            for k, row in enumerate(landed[stand.run][stand.landing]):
                total = np.zeros(len(further))
                for j in range(k + 1):  # Σ ω (d + δ)^k
                    total *= further
                    total += comb(k, j) * moments[j]
                np.add.at(row, stand.place, total)
        return float(np.vdot(self.powers, moments))


def sides_of(interval: Interval, stands: list[Stand]) -> list[Stands] | None:
    """The polynomials of all stands, from either end of the interval; None where one is beyond the floats."""
    high = interval.low.astype(np.float64) + interval.width
    ends = (True, interval.low), (False, np.where(np.isinf(high), interval.low, high).astype(interval.low.dtype))
    groups = ((origin, [stand for stand in stands if stand.ends.upper == upper]) for upper, origin in ends)
    sides = [Stands(origin, group) for origin, group in groups if group]
    return sides if all(np.isfinite(side.powers).all() for side in sides) else None


def _shifted(powers: Floats, by: Floats) -> Floats:
    """The coefficients of ``Σ_k powers[k] (d + by)^k``."""
    out = np.zeros_like(powers)
    for i in range(len(powers)):
        for k in range(len(powers) - 1, i - 1, -1):
            out[i] *= by
            out[i] += comb(k, i) * powers[k]
    return out
