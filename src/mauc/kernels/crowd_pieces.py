"""The crowd of a piecewise polynomial: which piece each positive meets there, and what the pieces add up to.

Between two bounds the difference of a positive ``p`` from every score ``q`` of the crowd is in one piece of ℓ, so ℓ is
one polynomial ``Σ_k c_k (s + d)^k``: ``s`` the distance of ``p`` less the interval's end from the end of the piece,
``d`` that of ``q`` from the interval's. Nothing is sorted. Scores apart are taken pair by pair where these are few, and
left to the search among sorted positives where they are not.
"""

from collections.abc import Iterator
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.crowd import MANY, Apart, Crowd, Interval, Sample, Side
from mauc.kernels.crowd_sums import sum_dtype
from mauc.kernels.tiles import Negatives, Problem, Scattered, tiles

__all__ = ["CrowdPart", "CrowdedPieces", "Exact", "find_crowd"]

MOST_APART = 0.25
"""Share of the scores that may stand apart; searched one by one they take about three times as long as in a tile."""
MOST_PAIRS = 1 << 16
"""Pairs of scores apart and positives that take less time than a sort of the positives."""


class Exact(NamedTuple):
    """ℓ on ``low <= t < high`` is ``Σ_k coefficients[k] s^k``, ``s`` as in :class:`mauc.kernels.piecewise.Piece`."""

    low: float
    high: float
    coefficients: Floats

    @property
    def upper(self) -> bool:
        """Whether ``s`` is the distance from the upper end."""
        return self.high < np.inf

    def distance(self, t: Floats) -> Floats:
        """``s``"""
        return self.high - t if self.upper else t - self.low

    def holds(self, t: Floats) -> NDArray[np.bool_]:
        """Which differences are in the piece."""
        inside = t < self.high
        return inside if self.low == -np.inf else inside & (t >= self.low)


@np.errstate(over="ignore", invalid="ignore")
def find_crowd(problem: Problem, pieces: list[Exact]) -> "CrowdedPieces | None":
    """The scores that meet the same pieces as the typical one of their column; None where many do not, or where they
    are too few to tell.

    Their interval is a few roundings narrower than the bounds: what is nearer to one is not of the crowd.
    """
    if problem.scores.size < MANY:
        return None
    classes, sample, dtype = problem.classes, Sample(problem), sum_dtype(problem)
    own, start = problem.own[classes.order], classes.offsets
    filled = start[1:] > start[:-1]
    low, high = np.full(len(filled), -np.inf), np.full(len(filled), np.inf)
    difference = own - sample.typical.repeat(start[1:] - start[:-1])
    slack = 8.0 * float(np.finfo(dtype).eps)
    for b in sorted({b for piece in pieces for b in (piece.low, piece.high) if np.isfinite(b)}):
        before = difference < b
        below = np.maximum.reduceat(np.where(before, own, -np.inf), start[:-1][filled]) - b
        above = np.minimum.reduceat(np.where(before, np.inf, own), start[:-1][filled]) - b
        # |p| <= |p − b| + |b|
        below = np.maximum(below * (1.0 - slack), below * (1.0 + slack)) + 2.0 * slack * abs(b)
        above = np.minimum(above * (1.0 - slack), above * (1.0 + slack)) - 2.0 * slack * abs(b)
        low[filled], high[filled] = np.maximum(low[filled], below), np.minimum(high[filled], above)
    # Where no bound is below, no positive counts its distance from there, and any that the scores keep to will do.
    low = np.where(np.isinf(low), sample.lowest - 1.0, low).astype(dtype)
    interval = Interval(low, (np.maximum(high - low, 0.0) * (1.0 - slack)).astype(dtype))
    if not interval.holds(sample, MOST_APART):
        return None
    found = CrowdedPieces(problem, pieces, sample.typical, interval)
    return found if found.is_finite else None


class _Polynomials(Side):
    """Of the positives whose distances count from ends on the same side, and their sum in each column."""

    def __init__(self, problem: Problem, pieces: list[Exact], typical: Floats, origin: NDArray[Any]) -> None:
        y, unit, own = problem.classes.y, problem.classes.unit, problem.own
        upper = pieces[0].upper
        from_typical, from_origin = own - typical[y], own - origin[y]
        self.y, self.unit = y, unit
        self.of_positive = np.zeros((max(len(piece.coefficients) for piece in pieces), len(y)))
        """``(K + 1, N)`` coefficients of ``d^k`` for each positive."""
        for piece in pieces:
            inside = piece.holds(from_typical)
            distance = np.where(inside, piece.distance(from_origin), 0.0)
            for j in range(len(piece.coefficients)):
                term = np.zeros(len(y))
                for k in range(len(piece.coefficients) - 1, j - 1, -1):
                    term *= distance
                    term += comb(k, j) * piece.coefficients[k]
                self.of_positive[j] += term * inside
        n_classes = problem.classes.n_classes
        powers = np.array([np.bincount(y, unit * row, n_classes) for row in self.of_positive])
        super().__init__(origin, powers, upper=upper)

    def own_slope(self, moments: Floats) -> Floats:
        """``(N,)`` slope in each positive: ``∓Σ_k (k + 1) c_(k+1) M_k``."""
        total = np.zeros(len(self.y))
        for k, row in enumerate(self.of_positive[1:]):
            total += (k + 1) * row * moments[k].take(self.y)
        return self.unit * (-total if self.upper else total)


class CrowdedPieces:
    """A crowd with its polynomials, and the pairs of scores apart."""

    def __init__(self, problem: Problem, pieces: list[Exact], typical: Floats, interval: Interval) -> None:
        self.problem, self.pieces = problem, pieces
        high = interval.low.astype(np.float64) + interval.width
        top = np.where(np.isinf(high), interval.low, high).astype(interval.low.dtype)
        groups = ((interval.low, [p for p in pieces if p.upper]), (top, [p for p in pieces if not p.upper]))
        sides = [_Polynomials(problem, group, typical, origin) for origin, group in groups if group]
        self.crowd = Crowd(interval, sides, MOST_APART)

    @property
    def is_finite(self) -> bool:
        """Whether all polynomials are within the floats."""
        return all(bool(np.isfinite(side.of_positive).all()) for side in self.crowd.sides)

    def settle(self, parts: "list[CrowdPart]") -> tuple[float, Floats]:
        """Value of all crowds and pairs, and the ``(N,)`` slope in each positive."""
        value, own = sum(part.value for part in parts), np.zeros(len(self.problem.classes.y))
        for k, side in enumerate(self.crowd.sides):
            moments = np.sum([part.sums[k] for part in parts], axis=0)
            value += float(np.vdot(side.powers, moments))
            own += side.own_slope(moments)
        for part in parts:
            own = own if part.own is None else own + part.own
        return value, own


class CrowdPart:
    """Some rows: the moments of their crowd, and their pairs."""

    def __init__(self, whole: CrowdedPieces) -> None:
        self.whole, self.sums = whole, whole.crowd.sums()
        self.value = 0.0
        self.own: Floats | None = None
        """``(N,)`` slope in each positive, of the pairs."""

    def visit(self, first: int, last: int, slope: NDArray[Any] | None) -> Iterator[Negatives]:
        """Take all that can be taken of the rows, slopes included; yields the negatives that are to be searched."""
        problem, apart = self.whole.problem, Apart()
        for rows in self.whole.crowd.blocks(problem, first, last):
            exceptions = self.whole.crowd.visit(problem, rows, self.sums, slope)
            if exceptions is None:
                yield from tiles(problem, rows.start, rows.stop)
            elif apart.add(exceptions):
                yield from self._take(apart.take(), slope)
        if apart:
            yield from self._take(apart.take(), slope)

    def _take(self, scores: Scattered, slope: NDArray[Any] | None) -> list[Scattered]:
        offsets = self.whole.problem.classes.offsets
        count = (offsets[1:] - offsets[:-1]).take(scores.column)
        if int(count.sum()) > MOST_PAIRS:
            return [scores]
        self._take_pairs(scores, count, slope)
        return []

    def _take_pairs(self, scores: Scattered, count: Ints, slope: NDArray[Any] | None) -> None:
        """The definition, for scores with ``count`` positives each."""
        problem = self.whole.problem
        classes = problem.classes
        negative = np.arange(len(count)).repeat(count)
        within = np.arange(len(negative)) - (np.cumsum(count) - count).repeat(count)
        positive = classes.order[classes.offsets.take(scores.column).take(negative) + within]
        t = problem.own[positive] - scores.x.take(negative)
        loss, derivative = np.zeros(len(t)), np.zeros(len(t))
        for piece in self.whole.pieces:
            inside = piece.holds(t)
            s = np.where(inside, piece.distance(t), 0.0)
            value, steepness = np.zeros(len(t)), np.zeros(len(t))
            for c in piece.coefficients[::-1].tolist():
                steepness = steepness * s + value
                value = value * s + c
            loss += value * inside
            derivative += (-steepness if piece.upper else steepness) * inside
        unit = classes.unit[positive]
        weight = unit * scores.weight.take(negative)
        self.value += float(weight @ loss)
        if slope is not None:
            self.own = np.zeros(len(classes.y)) if self.own is None else self.own
            self.own += np.bincount(positive, weight * derivative, len(classes.y))
            steepness = np.zeros(len(count))
            steepness -= np.bincount(negative, unit * derivative, len(count))
            scores.store(steepness, slope)
