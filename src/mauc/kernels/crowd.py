"""Where most scores of a column stand at one place, they need no search.

A negative ``q`` ends at a place of its column's sorted positives, which changes only where ``q`` passes a bound
``p − b``, ``b`` a break of ℓ. Most scores of a softmax lie near 0, between the same two bounds. There the sum of ℓ over
the positives is one polynomial of ``q``: value, slope and what the positives are handed are vector arithmetic,

    Σ_u a_u ℓ(u − q) = Σ_k P_ki d^k,    M_ki = Σ_q ω_q d^k,    value Σ_ki P_ki M_ki,    d the distance from the bound.

Only the others, found by one comparison, are searched, read and landed one by one. Several pieces of ℓ add up to one
polynomial: their distances, from their own ends, are ``d + δ`` with ``δ >= 0``, so no sum cancels.

Apart from the crowd were, in a hundred: 0.1 of trained-like softmax scores (4096 × 1000, α = ½), 1 to 7 of those of
linear models on CIFAR-100-Imb, 0.4 to 15 on KDD Cup 99.
"""

from collections.abc import Iterator
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.ends import Ends
from mauc.kernels.search import SortedColumns
from mauc.kernels.tiles import COLUMNS_FIRST_BELOW, Classes, Problem, Scattered, V

__all__ = ["MANY", "Apart", "Crowd", "Interval", "Sample", "Stand", "crowd_dtype"]

MANY = 1 << 16
"""Scores from which on looking for a crowd costs less than it saves where there is one, and next to nothing else."""
MOST_APART = 0.25
"""Share of the scores that may stand apart; one by one they take about three times as long as in a tile."""
SAMPLE_ROWS = 16
BLOCK = 1 << 18
"""Scores taken at a time: the few temporaries stay in a second-level cache."""
AT_ONCE = 1 << 14
"""Scores apart that are searched together."""
LEFT = 2.0**-10
"""Share of the weight of all rows that must be left when that of the others is taken off: three digits of sixteen."""
SHORT = 128
"""Rows summed in single precision before double precision takes over."""


def crowd_dtype(problem: Problem) -> np.dtype[Any]:
    """In which the crowd is summed: single precision for such scores where :func:`_short_sums` keeps the digits."""
    by_rows = problem.classes.factors is not None and problem.scores.shape[1] >= COLUMNS_FIRST_BELOW
    return np.dtype(np.float32 if by_rows and problem.scores.dtype == np.float32 else np.float64)


class Sample:
    """A few rows of the scores."""

    def __init__(self, problem: Problem) -> None:
        n_rows, n_columns = problem.scores.shape
        some = slice(None, None, -(-n_rows // SAMPLE_ROWS))
        y = problem.classes.y[some]
        self.x = problem.scores[some].astype(np.float64)
        # A sample is no negative in its own column: the median of a class that has most rows would be a positive's.
        self.lowest = self.x.min(axis=0)
        self.x[np.arange(len(y)), y] = self.lowest[y]
        middle = len(y) // 2
        median = np.partition(self.x, middle, axis=0)[middle]
        self.typical = Scattered(median, np.ones(n_columns), np.zeros(n_columns, np.int64), np.arange(n_columns))
        """The median of each column's negatives."""


class Interval(NamedTuple):
    """Of scores that surely are at the same positions as the typical one."""

    low: NDArray[Any]
    """``(C,)`` the lowest one."""
    width: NDArray[Any]
    """``(C,)`` they are less than this above it; 0 where there are none."""

    @classmethod
    def of(
        cls, table: SortedColumns, position: dict[float, Ints], sample: Sample, dtype: np.dtype[Any]
    ) -> "Interval | None":
        """For a ``(C,)`` vector of positions for each break; None where too few scores of the sample are inside.

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
        found = cls(low, width)
        outside = np.count_nonzero(found.excludes(sample.x.astype(dtype) - low, width))
        return found if outside <= MOST_APART * sample.x.size else None

    @staticmethod
    def excludes(distance: NDArray[Any], width: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether not ``0 <= distance < width``, in one comparison: numbers below 0 and NaN are the largest of bits."""
        bits = np.uint32 if distance.dtype == np.float32 else np.uint64
        return distance.view(bits) >= width.view(bits)


class Stand(NamedTuple):
    """The place of each column's crowd in one of the sums that make a run."""

    run: int
    ends: Ends
    place: Ints
    landing: slice
    """Its rows of what lands for the run."""


class Crowd:
    """The scores in an interval, with their polynomials."""

    def __init__(self, interval: Interval, stands: list[Stand]) -> None:
        self.interval, self.dtype = interval, interval.low.dtype
        high = interval.low.astype(np.float64) + interval.width
        origins = ((True, interval.low), (False, np.where(np.isinf(high), interval.low, high).astype(self.dtype)))
        sides = ((origin, [stand for stand in stands if stand.ends.upper == upper]) for upper, origin in origins)
        self.sides = [_Side(origin, side) for origin, side in sides if side]

    @property
    def is_finite(self) -> bool:
        """Whether all polynomials are within the floats."""
        return all(bool(np.isfinite(side.powers).all()) for side in self.sides)

    def sums(self) -> list[Floats]:
        """Zeros for what :meth:`visit` adds up."""
        return [np.zeros_like(side.powers) for side in self.sides]

    def blocks(self, problem: Problem, first: int, last: int) -> Iterator[slice]:
        """The rows to visit at a time."""
        step = max(1, BLOCK // max(1, problem.scores.shape[1]))
        return (slice(begin, min(begin + step, last)) for begin in range(first, last, step))

    def visit(self, problem: Problem, rows: slice, sums: list[Floats], slope: NDArray[Any] | None) -> Scattered | None:
        """Take the crowd of some rows: its moments into ``sums``, its slopes into ``slope``.

        Returns the scores apart; None, with nothing done, where they are many or a sum would lose its digits.
        """
        block = _Block(problem, rows, self.dtype)
        weights = (_Matrix if problem.classes.factors is None else _Product)(problem.classes, block)
        distance = weights.cleared(block.x - block.along(self.interval.low))
        index = np.flatnonzero(self.interval.excludes(distance, block.along(self.interval.width)))
        apart, index = weights.at(index)
        if len(index) > MOST_APART * block.x.size:
            return None
        weights.leave_out(index, apart)
        distances = [
            distance if side.upper else weights.cleared(block.along(side.origin) - block.x) for side in self.sides
        ]
        moments = [weights.moments(d, len(side.powers)) for side, d in zip(self.sides, distances, strict=True)]
        if not (weights.are_left and all(np.isfinite(m).all() for m in moments)):
            return None
        for total, m in zip(sums, moments, strict=True):
            total += m
        if slope is not None:
            steepness = [side.steepness for side in self.sides]
            weights.store(distances, steepness, slope)
        return apart

    def settle(self, sums: list[Floats], landed: list[Floats]) -> float:
        """The value of all that was visited; what it hands to the positives lands."""
        value = 0.0
        for side, moments in zip(self.sides, sums, strict=True):
            value += float(np.vdot(side.powers, moments))
            side.land(moments, landed)
        return value


class _Side:
    """``Σ_k powers[k] d^k`` for the stands whose distances grow with the score (``upper``) or fall, ``d`` from the
    ``(C,)`` ``origin``.
    """

    def __init__(self, origin: NDArray[Any], stands: list[Stand]) -> None:
        self.origin, self.stands, self.upper = origin, stands, stands[0].ends.upper
        sign = 1.0 if self.upper else -1.0
        degree = max(len(stand.ends.powers) for stand in stands) - 1
        self.powers = np.zeros((degree + 1, len(origin)))
        self.further = []
        """How much more than ``d`` the distance of each stand is, a ``(C,)`` vector each."""
        for stand in stands:
            powers = stand.ends.powers.take(stand.place, axis=1)
            further = sign * ((origin - stand.ends.anchor.take(stand.place)) + stand.ends.bound)
            self.further.append(further * powers.any(axis=0))
            self.powers[: len(powers)] += _shifted(powers, self.further[-1])
        self.steepness = sign * np.arange(1.0, degree + 1.0)[:, None] * self.powers[1:]

    def land(self, moments: Floats, landed: list[Floats]) -> None:
        for stand, further in zip(self.stands, self.further, strict=True):
            for k, row in enumerate(landed[stand.run][stand.landing]):
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


class _Block:
    """Some rows of the scores, in the layout of a :class:`mauc.kernels.tiles.Tile`."""

    def __init__(self, problem: Problem, rows: slice, dtype: np.dtype[Any]) -> None:
        scores = problem.scores[rows]
        self.rows, self.columns_first = rows, problem.scores.shape[1] < COLUMNS_FIRST_BELOW
        self.x = np.asarray(scores.T if self.columns_first else scores, dtype, order="C")

    def along(self, of_class: V) -> V:
        return of_class[:, None] if self.columns_first else of_class

    def down(self, of_row: V) -> V:
        return of_row if self.columns_first else of_row[:, None]

    def place(self, index: Ints) -> tuple[Ints, Ints]:
        """Row and column of places of the flattened block."""
        outer = index // self.x.shape[1]
        inner = index - outer * self.x.shape[1]
        return (inner, outer) if self.columns_first else (outer, inner)

    def index(self, row: Ints, column: Ints) -> Ints:
        """The inverse of :meth:`place`."""
        return column * self.x.shape[1] + row if self.columns_first else row * self.x.shape[1] + column

    def of(self, whole: NDArray[Any]) -> NDArray[Any]:
        part = whole[self.rows]
        return part.T if self.columns_first else part

    def scattered(self, index: Ints, weight: Floats, row: Ints, column: Ints) -> Scattered:
        return Scattered(self.x.ravel().take(index).astype(np.float64), weight, row + self.rows.start, column)


class _Matrix:
    """Weights of the scores of a block, one by one."""

    are_left = True

    def __init__(self, classes: Classes, block: _Block) -> None:
        self.block = block
        self.weight = classes.negative_weights(block.rows, columns_first=block.columns_first)

    def cleared(self, distance: NDArray[Any]) -> NDArray[Any]:
        """0 where the weight alone does not leave a score out."""
        return distance

    def at(self, index: Ints) -> tuple[Scattered, Ints]:
        """Those of some places that have a weight, with it, and their places."""
        weight = self.weight.ravel().take(index)
        index, weight = index[weight != 0.0], weight[weight != 0.0]
        return self.block.scattered(index, weight, *self.block.place(index)), index

    def leave_out(self, index: Ints, apart: Scattered) -> None:
        """Of the moments, the scores apart."""
        self.weight.ravel()[index] = 0.0

    def moments(self, distance: NDArray[Any], size: int) -> Floats:
        """``(size, C)`` sums ``Σ ω d^k``; ``distance`` may be 0 where something is left out, from now on."""
        axis = 1 if self.block.columns_first else 0
        total = "cn,cn->c" if self.block.columns_first else "nc,nc->c"
        found = [self.weight.sum(axis=axis)]
        term = self.weight
        for k in range(1, size):
            found.append(np.einsum(total, term, distance))
            term = term * distance if k + 1 < size else term
        return np.stack(found)

    def store(self, distances: list[NDArray[Any]], steepness: list[Floats], slope: NDArray[Any]) -> None:
        """Write the weighted slopes, of polynomials with the coefficients ``steepness``."""
        whole = _sum_of_polynomials(self.block, distances, steepness)
        np.multiply(self.weight, whole, out=self.block.of(slope), casting="same_kind")


class _Product:
    """Weights that are products of a row's and a column's: nothing of the size of the block is made."""

    def __init__(self, classes: Classes, block: _Block) -> None:
        assert classes.factors is not None
        self.block, self.y = block, classes.y[block.rows]
        self.row, self.column = classes.factors[0][block.rows], classes.factors[1]
        self.own = block.index(np.arange(len(self.y)), self.y)

    def cleared(self, distance: NDArray[Any]) -> NDArray[Any]:
        """As :meth:`_Matrix.cleared`, in the own columns."""
        distance.ravel()[self.own] = 0.0
        return distance

    def at(self, index: Ints) -> tuple[Scattered, Ints]:
        """As :meth:`_Matrix.at`."""
        row, column = self.block.place(index)
        weight = self.row.take(row) * self.column.take(column)
        counts = np.flatnonzero((self.y.take(row) != column) & (weight != 0.0))
        index = index[counts]
        return self.block.scattered(index, weight[counts], row[counts], column[counts]), index

    def leave_out(self, index: Ints, apart: Scattered) -> None:
        """As :meth:`_Matrix.leave_out`, and the own columns."""
        self.out = index
        all_rows = float(self.row.sum())
        left_out = np.bincount(self.y, self.row, len(self.column))
        left_out += np.bincount(apart.column, self.row.take(apart.row - self.block.rows.start), len(self.column))
        self.left = all_rows - left_out
        self.are_left = bool((self.left >= LEFT * all_rows).all())

    def moments(self, distance: NDArray[Any], size: int) -> Floats:
        """As :meth:`_Matrix.moments`."""
        distance.ravel()[self.out] = 0.0
        found = [self.left]
        row, term = self.row.astype(distance.dtype), distance
        for k in range(1, size):
            if self.block.columns_first:
                found.append(term @ row)
            else:
                found.append(_short_sums(row, term))
            term = term * distance if k + 1 < size else term
        return np.stack(found) * self.column

    def store(self, distances: list[NDArray[Any]], steepness: list[Floats], slope: NDArray[Any]) -> None:
        """As :meth:`_Matrix.store`."""
        whole = _sum_of_polynomials(self.block, distances, [s * self.column for s in steepness])
        row = self.block.down(self.row.astype(whole.dtype))
        np.multiply(row, whole, out=self.block.of(slope), casting="same_kind")


def _short_sums(row: NDArray[Any], x: NDArray[Any]) -> Floats:
    """``row @ x``, of which single precision sums no more than a few rows."""
    if x.dtype == np.float64:
        return np.asarray(row @ x)
    whole = len(x) // SHORT * SHORT
    parts = row[:whole].reshape(-1, 1, SHORT) @ x[:whole].reshape(-1, SHORT, x.shape[1])
    return np.asarray(parts.sum(axis=(0, 1), dtype=np.float64) + row[whole:] @ x[whole:])


def _sum_of_polynomials(block: _Block, distances: list[NDArray[Any]], coefficients: list[Floats]) -> NDArray[Any]:
    """``Σ_k coefficients[k] d^k`` by Horner's rule, summed over the sides; broadcasts over the block."""
    total: NDArray[Any] | None = None
    for d, rows in zip(distances, coefficients, strict=True):
        if not len(rows):
            continue
        value, *more = (block.along(row.astype(d.dtype)) for row in rows[::-1])
        for row in more:
            value = value * d
            value += row
        total = value if total is None else total + value
    return np.zeros(1, distances[0].dtype) if total is None else total


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
