"""The place of each column's crowd among the positives, and the polynomial that the pieces of ℓ make there."""

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.crowd import Interval, Sample, Side
from mauc.kernels.ends import Ends
from mauc.kernels.search import SortedColumns

__all__ = ["Stand", "Stands", "interval_at", "sides_of"]


def interval_at(table: SortedColumns, position: dict[float, Ints], sample: Sample, dtype: np.dtype[Any]) -> Interval:
    """For a ``(C,)`` vector of positions for each break.

    A few roundings narrower than the bounds: what is nearer to one is told by the search alone.
    """
    low, high = np.full(len(sample.typical.x), -np.inf), np.full(len(sample.typical.x), np.inf)
    slack = 8.0 * float(np.finfo(dtype).eps)
    for b, at in position.items():
        below = np.where(at > table.start[:-1], table.values.take(at - 1), -np.inf) - b
        above = table.values.take(at) - b
        # |p| <= |p − b| + |b|
        np.maximum(low, np.maximum(below * (1.0 - slack), below * (1.0 + slack)) + 2.0 * slack * abs(b), out=low)
        np.minimum(high, np.minimum(above * (1.0 - slack), above * (1.0 + slack)) - 2.0 * slack * abs(b), out=high)
    # Where no bound is below, nothing depends on the distance from it, and any that the scores keep to will do.
    low = np.where(np.isinf(low), sample.lowest - 1.0, low).astype(dtype)
    width = (np.maximum(high - low, 0.0) * (1.0 - slack)).astype(dtype)
    return Interval(low, width)


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
