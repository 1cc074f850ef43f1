"""Where most scores of a column stand at one place, they need no search.

A negative ``q`` ends at a place of its column's sorted positives, which changes only where ``q`` passes a bound
``p − b``, ``b`` a break of ℓ. Most scores of a softmax lie near 0, between the same two bounds. There the sum of ℓ over
the positives is one polynomial of ``q``: value, slope and what the positives are handed are vector arithmetic,

    Σ_u a_u ℓ(u − q) = Σ_k P_ki d^k,    Σ_q ω_q d^k = M_k,    value Σ_ki P_ki M_ki,    d the distance from the end.

Only the others, found by two comparisons, are searched, read and landed one by one. Several pieces of ℓ add up to one
polynomial of the smallest of their distances: the larger ones are ``d + δ`` with ``δ >= 0``, so all terms of the
expansion are those of sums that do not cancel.

Apart from the crowd were, in a hundred: 0.1 of trained-like softmax scores (4096 × 1000, α = ½), 1 to 7 of those of
linear models on CIFAR-100-Imb, 0.4 to 15 on KDD Cup 99.
"""

from collections.abc import Iterable
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.ends import Ends
from mauc.kernels.search import SortedColumns
from mauc.kernels.tiles import Problem, Scattered, Tile

__all__ = ["MANY", "Apart", "Crowd", "Sample", "Stand", "between_bounds"]

MANY = 1 << 16
"""Scores from which on looking for a crowd costs less than it saves where there is one, and next to nothing else."""
MOST_APART = 0.25
"""Share of the scores that may stand apart; one by one they take about three times as long as in a tile."""
SAMPLE_ROWS = 16
AT_ONCE = 1 << 14
"""Scores apart that are searched together."""


class Sample:
    """A few rows of the scores."""

    def __init__(self, problem: Problem) -> None:
        n_rows, n_columns = problem.scores.shape
        rows = np.linspace(0, n_rows - 1, min(n_rows, SAMPLE_ROWS)).astype(np.int64)
        y = problem.classes.y[rows]
        self.x = problem.scores[rows].astype(np.float64)
        # A sample is no negative in its own column: the median of a class that has most rows would be a positive's.
        self.x[np.arange(len(y)), y] = self.x.min(axis=0)[y]
        middle = len(rows) // 2
        median = np.partition(self.x, middle, axis=0)[middle]
        self.typical = Scattered(median, np.ones(n_columns), np.zeros(n_columns, np.int64), np.arange(n_columns))
        """The median of each column's negatives."""

    def is_within(self, low: NDArray[Any], high: NDArray[Any]) -> bool:
        """Whether so many scores lie between the ``(C,)`` bounds that searching the others alone pays."""
        return bool(np.count_nonzero((self.x < low) | (self.x > high)) <= MOST_APART * self.x.size)


def between_bounds(
    table: SortedColumns, position: dict[float, Ints], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """``(C,)`` lowest and highest score that surely is at these ``position``, a ``(C,)`` vector for each break.

    A few roundings inside: what is nearer to a bound is told by the search alone.
    """
    low, high = np.full(len(table.start) - 1, -np.inf), np.full(len(table.start) - 1, np.inf)
    slack = 8.0 * float(np.finfo(dtype).eps)
    for b, at in position.items():
        before, after = table.values.take(np.maximum(at - 1, 0)), table.values.take(at)
        above = before - b + slack * (np.abs(before) + abs(b))
        below = after - b - slack * (np.abs(np.where(np.isinf(after), 0.0, after)) + abs(b))
        np.maximum(low, np.where(at > table.start[:-1], above, -np.inf), out=low)
        np.minimum(high, below, out=high)
    return low.astype(dtype), high.astype(dtype)


class Stand(NamedTuple):
    """The place of each column's crowd in one of the sums that make a run."""

    run: int
    ends: Ends
    place: Ints
    landing: slice
    """Its rows of what lands for the run."""


class Crowd:
    """The scores between ``low`` and ``high``, and their polynomials; sums over a tile are in the dtype of these."""

    def __init__(self, low: NDArray[Any], high: NDArray[Any], stands: Iterable[Stand]) -> None:
        self.low, self.high, self.dtype = low, high, low.dtype
        stands = list(stands)
        sides = ([stand for stand in stands if stand.ends.upper == upper] for upper in (True, False))
        self.sides = [_Side(side, self.dtype) for side in sides if side]

    @property
    def is_finite(self) -> bool:
        """Whether all polynomials are within the floats."""
        return all(bool(np.isfinite(side.powers).all()) for side in self.sides)

    def sums(self) -> list[Floats]:
        """Zeros for what :meth:`visit` adds up."""
        return [np.zeros_like(side.powers) for side in self.sides]

    def visit(self, tile: Tile, sums: list[Floats], slope: NDArray[Any] | None) -> Scattered | None:
        """Take the crowd of a tile: its moments into ``sums``, its slopes into ``slope``.

        Returns the scores apart; None, with nothing done, where they are many or a number is beyond the floats.
        """
        outside = tile.x < tile.along(self.low)
        outside |= tile.x > tile.along(self.high)
        apart = np.flatnonzero(outside)
        weight = tile.weight.ravel()
        apart = apart[weight.take(apart) != 0.0]
        if len(apart) > MOST_APART * tile.x.size:
            return None
        exceptions = tile.scattered(apart)
        weight[apart] = 0.0
        distances = [side.distance(tile) for side in self.sides]
        moments = [side.moments(tile, d) for side, d in zip(self.sides, distances, strict=True)]
        if not all(np.isfinite(m).all() for m in moments):
            weight[apart] = exceptions.weight
            return None
        for total, m in zip(sums, moments, strict=True):
            total += m
        if slope is not None:
            steepness = [side.slope(tile, d) for side, d in zip(self.sides, distances, strict=True)]
            np.multiply(tile.weight, sum(steepness[1:], steepness[0]), out=tile.of(slope))
        return exceptions

    def settle(self, sums: list[Floats], landed: list[Floats]) -> float:
        """The value of all that was visited; what it hands to the positives lands."""
        value = 0.0
        for side, moments in zip(self.sides, sums, strict=True):
            value += float(np.vdot(side.powers, moments))
            side.land(moments, landed)
        return value


class _Side:
    """``Σ_k powers[k] d^k`` for the stands whose distances count from bounds on the same side."""

    def __init__(self, stands: list[Stand], dtype: np.dtype[Any]) -> None:
        self.stands, self.upper = stands, stands[0].ends.upper
        anchor = np.stack([stand.ends.anchor.take(stand.place) for stand in stands])
        bound = np.array([stand.ends.bound for stand in stands])
        powers = [stand.ends.powers.take(stand.place, axis=1) for stand in stands]
        sign = 1.0 if self.upper else -1.0
        held = np.stack([p.any(axis=0) for p in powers])
        nearest = np.argmin(np.where(held, sign * (bound[:, None] - anchor), np.inf), axis=0)
        at, to = anchor[nearest, np.arange(len(nearest))], bound[nearest]
        more = sign * ((bound[:, None] - to) + (at - anchor))
        self.further = np.where(held, np.maximum(more, 0.0), 0.0)
        """``(S, C)`` how much more than ``d`` the distance of each stand is."""
        self.powers = np.zeros((max(len(p) for p in powers), len(at)))
        for p, further in zip(powers, self.further, strict=True):
            self.powers[: len(p)] += _shifted(p, further)
        self.anchor, self.bound = at.astype(dtype), to.astype(dtype)
        degrees = np.arange(1, len(self.powers))
        self.steepness = (sign * degrees[:, None] * self.powers[1:]).astype(dtype)

    def distance(self, tile: Tile) -> Floats:
        d = tile.along(self.anchor) - tile.x
        if self.upper:
            return np.subtract(tile.along(self.bound), d, out=d)
        return np.subtract(d, tile.along(self.bound), out=d)

    def moments(self, tile: Tile, distance: Floats) -> Floats:
        """``(K + 1, C)`` ``Σ ω d^k``."""
        found = np.empty(self.powers.shape)
        found[0] = tile.sum(tile.weight)
        term = tile.weight
        for k in range(1, len(found)):
            found[k] = tile.total(term, distance)
            if k + 1 < len(found):
                term = term * distance
        return found

    def slope(self, tile: Tile, distance: Floats) -> Floats:
        """Of the polynomial, in the score."""
        if not len(self.steepness):
            return np.zeros(1, self.steepness.dtype)
        value = tile.along(self.steepness[-1])
        for row in self.steepness[-2::-1]:
            value = value * distance
            value += tile.along(row)
        return value

    def land(self, moments: Floats, landed: list[Floats]) -> None:
        for stand, further in zip(self.stands, self.further, strict=True):
            rows = landed[stand.run][stand.landing]
            for k, row in enumerate(rows):
                total = np.zeros(len(further))
                for j in range(k + 1):  # Σ ω (d + δ)^k
                    total *= further
                    total += comb(k, j) * moments[j]
                np.add.at(row, stand.place, total)


def _shifted(powers: Floats, by: Floats) -> Floats:
    """The coefficients of ``Σ_k powers[k] (d + by)^k``."""
    out = np.zeros_like(powers)
    for i in range(len(powers)):
        for k in range(len(powers) - 1, i - 1, -1):
            out[i] *= by
            out[i] += comb(k, i) * powers[k]
    return out


class Apart:
    """Scores apart, kept until they are worth a search."""

    def __init__(self) -> None:
        self._kept: list[Scattered] = []
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, some: Scattered) -> bool:
        """Whether they are enough now."""
        self._kept.append(some)
        self._count += len(some.x)
        return self._count >= AT_ONCE

    def take(self) -> Scattered:
        """All of them; none are left."""
        whole = Scattered(*(np.concatenate(column) for column in zip(*self._kept, strict=True)))
        self._kept, self._count = [], 0
        return whole
