"""Where most scores of a column meet the same pieces of ℓ, they need no search.

A negative ``q`` meets a positive ``p`` in another piece only beyond a bound ``p − b``, ``b`` a break of ℓ. Most scores
of a softmax lie near 0, between the same two bounds. There the sum of ℓ over the positives is one polynomial of ``q``:
value, slope and what the positives are handed are vector arithmetic,

    Σ_u a_u ℓ(u − q) = Σ_k P_ki d^k,    M_ki = Σ_q ω_q d^k,    value Σ_ki P_ki M_ki,    d the distance from the bound,

and only the others, found by one comparison, are taken one by one.

Apart from the crowd were, in a hundred: 0.1 of trained-like softmax scores (4096 × 1000, α = ½), 1 to 7 of those of
linear models on CIFAR-100-Imb, 0.4 to 15 on KDD Cup 99.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats
from mauc.kernels.crowd_sums import Block, weights_of
from mauc.kernels.tiles import Problem, Scattered

__all__ = ["MANY", "Apart", "Crowd", "Interval", "Sample", "Side"]

MANY = 3 << 15
"""Scores from which on looking for a crowd costs less than it saves where there is one, and next to nothing else."""
SAMPLE_ROWS = 16
BLOCK = 1 << 20
"""Bytes of scores taken at a time, the size of a second-level cache: less costs too many calls."""
AT_ONCE = 1 << 14
"""Scores apart that are taken together."""


class Sample:
    """A few rows of the scores."""

    def __init__(self, problem: Problem) -> None:
        some = slice(None, None, -(-len(problem.scores) // SAMPLE_ROWS))
        y = problem.classes.y[some]
        self.x = problem.scores[some].astype(np.float64)
        # A sample is no negative in its own column: the median of a class that has most rows would be a positive's.
        self.lowest = self.x.min(axis=0)
        self.x[np.arange(len(y)), y] = self.lowest[y]
        middle = len(y) // 2
        self.typical = np.partition(self.x, middle, axis=0)[middle]
        """``(C,)`` median of each column's negatives."""


class Interval(NamedTuple):
    """Of scores that surely meet the same pieces as the typical one."""

    low: NDArray[Any]
    """``(C,)`` the lowest one."""
    width: NDArray[Any]
    """``(C,)`` they are less than this above it; 0 where there are none."""

    def holds(self, sample: Sample, most_apart: float) -> bool:
        """Whether no more than that share of the sample is outside."""
        outside = self.excludes(sample.x.astype(self.low.dtype) - self.low, self.width)
        return bool(np.count_nonzero(outside) <= most_apart * outside.size)

    @staticmethod
    def excludes(distance: NDArray[Any], width: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether not ``0 <= distance < width``, in one comparison: numbers below 0 and NaN are the largest of bits."""
        bits = np.uint32 if distance.dtype == np.float32 else np.uint64
        return distance.view(bits) >= width.view(bits)


class Side:
    """``Σ_k powers[k] d^k``, ``d`` the distance from the ``(C,)`` ``origin``: above it (``upper``) or below."""

    def __init__(self, origin: NDArray[Any], powers: Floats, *, upper: bool) -> None:
        self.origin, self.powers, self.upper = origin, powers, upper
        degrees = np.arange(1.0, len(powers)) if upper else -np.arange(1.0, len(powers))
        self.steepness = degrees[:, None] * powers[1:]
        """``(K, C)`` coefficients of the slope in the score."""


S = TypeVar("S", bound=Side)


class Crowd(Generic[S]):
    """The scores in an interval, with their polynomials."""

    def __init__(self, interval: Interval, sides: Sequence[S], most_apart: float) -> None:
        self.interval, self.sides, self.most_apart = interval, sides, most_apart
        self.dtype = interval.low.dtype

    def sums(self) -> list[Floats]:
        """Zeros for what :meth:`visit` adds up."""
        return [np.zeros_like(side.powers) for side in self.sides]

    def blocks(self, problem: Problem, first: int, last: int) -> Iterator[slice]:
        """The rows to visit at a time."""
        step = max(1, BLOCK // (self.dtype.itemsize * problem.scores.shape[1]))
        return (slice(begin, min(begin + step, last)) for begin in range(first, last, step))

    def visit(self, problem: Problem, rows: slice, sums: list[Floats], slope: NDArray[Any] | None) -> Scattered | None:
        """Take the crowd of some rows: its moments into ``sums``, its slopes into ``slope``.

        Returns the scores apart; None, with nothing done, where they are many or a sum would lose its digits.
        """
        block = Block(problem, rows, self.dtype)
        weights = weights_of(problem.classes, block)
        distance = weights.cleared(block.x - block.along(self.interval.low))
        index = np.flatnonzero(self.interval.excludes(distance, block.along(self.interval.width)))
        apart, index = weights.at(index)
        if len(index) > self.most_apart * block.x.size:
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
            weights.store(distances, [side.steepness for side in self.sides], slope)
        return apart


class Apart:
    """Scores apart, kept until they are worth the calls."""

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
