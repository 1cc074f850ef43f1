"""A smooth ℓ on scores of a softmax: a short polynomial for those near 0, the long one for the others.

One polynomial ``Σ_kl A_kl T_k(x_p) T_l(x_q)`` for all differences in ``[−1, 1]`` has a degree of 12 for the logistic
loss with α = 1. Over the crowd of negatives, ``0 <= q < 1/16``, a degree of 4 in ``q`` is as close,

    ℓ(p − q) = Σ_km B_km T_k(x_p) q^m,

so most scores cost a third; the others are taken one by one.
"""

from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import DTypeLike, NDArray

from mauc._typing import Floats
from mauc.kernels.crowd import MANY, Apart, Crowd, Interval, Sample, Side
from mauc.kernels.crowd_sums import sum_dtype
from mauc.kernels.threads import over_rows
from mauc.kernels.tiles import Problem, Scattered

__all__ = ["crowd_moments_risk", "short_form"]

WIDTH = 1.0 / 16.0
MOST_APART = 0.1
"""Share of the scores that may be beyond: at 15 to 20 in a hundred the long form for all is as fast."""
GRID = 33


def short_form(matrix: Floats, centre: float, half_width: float, tolerance: float) -> Floats | None:
    """``(K + 1, m + 1)`` ``B`` of the smallest degree ``m`` whose ℓ and ℓ′ are within ``tolerance`` of the long form's,
    relative to those at ``p = q = 0``; None where ``m`` would be more than half of ``K``.
    """
    degree = len(matrix) - 1

    def long_form(q: Floats) -> tuple[Floats, Floats]:
        """Coefficients of ``T_k(x_p)`` at each ``q``, and of its derivative."""
        x = (q - centre) / half_width
        return matrix @ chebyshev.chebvander(x, degree).T, np.asarray(
            chebyshev.chebder(matrix, axis=1) / half_width @ chebyshev.chebvander(x, degree - 1).T
        )

    grid = np.linspace(0.0, WIDTH, GRID)
    of_p = chebyshev.chebvander((np.linspace(0.0, 1.0, GRID) - centre) / half_width, degree)
    exact = [of_p @ of_q for of_q in long_form(grid)]
    for size in range(2, degree // 2 + 2):
        nodes = 0.5 * WIDTH * (1.0 + chebyshev.chebpts1(size))
        scale = WIDTH ** np.arange(size)
        short = np.linalg.solve(np.vander(nodes / WIDTH, increasing=True), long_form(nodes)[0].T).T / scale
        powers = np.vander(grid, size, increasing=True)
        slopes = np.arange(1, size) * powers[:, :-1]
        found = of_p @ short @ powers.T, of_p @ short[:, 1:] @ slopes.T
        if all(np.abs(a - b).max() <= tolerance * abs(b[0, 0]) for a, b in zip(found, exact, strict=True)):
            return np.asarray(short)
    return None


def crowd_moments_risk(
    problem: Problem,
    matrix: Floats,
    short: Floats,
    centre: float,
    half_width: float,
    *,
    gradient: bool,
    dtype: DTypeLike = np.float64,
) -> tuple[float, NDArray[Any] | None] | None:
    """Value and gradient, of that ``dtype``, of scores in ``[0, 1]``; None where too many are beyond the crowd.

    ``O(m)`` operations for a score, ``m`` the degree of the ``short`` form.
    """
    classes, shape = problem.classes, problem.scores.shape
    precision = sum_dtype(problem)
    interval = Interval(np.zeros(shape[1], precision), np.full(shape[1], WIDTH, precision))
    if problem.scores.size < MANY or not interval.holds(Sample(problem), MOST_APART):
        return None
    degree = len(matrix) - 1
    of_own = chebyshev.chebvander((problem.own - centre) / half_width, degree)
    moment_p = np.zeros((degree + 1, shape[1]))
    for total, term in zip(moment_p, of_own.T, strict=True):
        total += np.bincount(classes.y, classes.unit * term, shape[1])
    crowd = Crowd(interval, [Side(interval.low, short.T @ moment_p, upper=True)], MOST_APART)
    steepness = np.asarray(chebyshev.chebder(matrix.T @ moment_p, axis=0) / half_width)
    slope = np.empty(shape, dtype) if gradient else None

    def visit(first: int, last: int) -> tuple[Floats, Floats] | None:
        """Moments of the crowd in some rows, and of the scores beyond."""
        (sums,), apart, beyond = crowd.sums(), Apart(), _Beyond(centre, half_width, steepness)
        for rows in crowd.blocks(problem, first, last):
            exceptions = crowd.visit(problem, rows, [sums], slope)
            if exceptions is None:
                return None
            if apart.add(exceptions):
                beyond.visit(apart.take(), slope)
        if apart:
            beyond.visit(apart.take(), slope)
        return sums, beyond.moments

    of_p = np.zeros_like(moment_p)
    for found in over_rows(shape, visit):
        if found is None:
            return None
        of_p += short @ found[0] + matrix @ found[1]
    if slope is not None:
        of_own_slope = np.asarray(chebyshev.chebder(of_p, axis=0) / half_width).take(classes.y, axis=1)
        at_own = np.einsum("nk,kn->n", of_own[:, :degree], of_own_slope)
        slope[np.arange(shape[0]), classes.y] = classes.unit * at_own
    return float(np.vdot(moment_p, of_p)), slope


class _Beyond:
    """Scores beyond the crowd, by the long form."""

    def __init__(self, centre: float, half_width: float, steepness: Floats) -> None:
        self.centre, self.half_width, self.steepness = centre, half_width, steepness
        self.moments = np.zeros((len(steepness) + 1, steepness.shape[1]))
        """``(K + 1, C)`` sums of ``ω T_l(x_q)``."""

    def visit(self, scores: Scattered, slope: NDArray[Any] | None) -> None:
        """Add the moments of some scores; their slopes, by the ``(K, C)`` ``steepness``, go into ``slope``."""
        degree, n_columns = len(self.moments) - 1, self.moments.shape[1]
        terms = chebyshev.chebvander((scores.x - self.centre) / self.half_width, degree).T
        for total, term in zip(self.moments, terms, strict=True):
            total += np.bincount(scores.column, scores.weight * term, n_columns)
        if slope is not None:
            scores.store(np.einsum("kn,kn->n", self.steepness.take(scores.column, axis=1), terms[:degree]), slope)
