"""Surrogates that split into products of a function of the positive and one of the negative: ``O(N·C)``.

Writing ``a_m`` for the weight of a positive and ``ω_n`` for that of a negative (``Σ_m a_m = 1``, ``Σ_n ω_n = V``), the
part of one column is ``Σ_m Σ_n a_m ω_n ℓ(P_m − Q_n)``, and a few weighted sums over each side give it exactly.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from mauc._kernels.threads import over_rows
from mauc._kernels.tiles import Problem, Tile, chebyshev_terms, column_centre, tiles, walks
from mauc._typing import Floats

__all__ = ["exponential_risk", "polynomial_risk", "squared_risk"]


SMALLER = 2.0**-1000
"""Factor that makes squares of the largest floats finite."""


def squared_risk(problem: Problem, alpha: float, *, gradient: bool) -> tuple[float, Floats | None]:
    """Compute the risk of ``ℓ(t) = (α − t)²`` as ``V (Var P + Var Q + (α − mean P + mean Q)²)``, column by column.

    This is the centred form: expanding the square cancels, and scores of 1e8 ± 1 would lose every digit.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        value, slope = _squared_risk(problem, alpha, gradient=gradient)
        if np.isfinite(value):
            return value, slope
        # Squares overflow long before the gradient does.
        smaller = replace(problem, scores=problem.scores * SMALLER)
        value, slope = _squared_risk(smaller, alpha * SMALLER, gradient=gradient)
        return value / SMALLER / SMALLER, None if slope is None else slope / SMALLER


def _squared_risk(problem: Problem, alpha: float, *, gradient: bool) -> tuple[float, Floats | None]:
    classes = problem.classes
    y, unit, n_classes = classes.y, classes.unit, classes.n_classes
    total = classes.v @ np.bincount(y, unit, n_classes)

    # Far from 0 the rounding of the means would be larger than the differences.
    centre = _typical_positive(problem)
    own = problem.own - centre[y]
    mean_p = np.bincount(y, unit * own, n_classes)
    walk = walks(problem)

    def sum_of_negatives(part: Iterable[Tile]) -> Floats:
        return sum((tile.total(tile.weight, tile.x - tile.along(centre)) for tile in part), np.zeros(n_classes))

    mean_q: Floats = np.sum(walk(sum_of_negatives), axis=0)
    np.divide(mean_q, total, out=mean_q, where=total > 0)

    gap = alpha - mean_p + mean_q
    own_centred = own - mean_p[y]
    spread_p = np.bincount(y, unit * own_centred**2, n_classes)
    slope = np.empty(problem.scores.shape) if gradient else None

    def spread_of_negatives(part: Iterable[Tile]) -> Floats:
        spread = np.zeros(n_classes)
        for tile in part:
            centred = tile.x - tile.along(centre)
            centred -= tile.along(mean_q)
            weighted = tile.weight * centred
            spread += tile.total(weighted, centred)
            if slope is not None:
                centred += tile.along(gap)
                centred *= tile.weight
                np.multiply(centred, 2.0, out=tile.of(slope))
        return spread

    spread_q: Floats = np.sum(walk(spread_of_negatives), axis=0)
    if slope is not None:
        slope[np.arange(len(y)), y] = -2.0 * unit * total[y] * (gap[y] - own_centred)
    return float(np.sum(total * (spread_p + gap**2) + spread_q)), slope


def _typical_positive(problem: Problem) -> Floats:
    """Return ``(C,)`` the own-class score nearest to the mean of its column, among those with a weight; 0 without any.

    A score, not the mean: differences of equal scores from it are exactly 0, but the mean of equal scores may round.
    """
    y, unit = problem.classes.y, problem.classes.unit
    mean = np.bincount(y, unit * problem.own, problem.classes.n_classes)
    distance = np.where(unit > 0, np.abs(problem.own - mean[y]), np.inf)
    nearest = np.full(len(mean), np.inf)
    np.minimum.at(nearest, y, distance)
    chosen = np.flatnonzero(np.isfinite(distance) & (distance == nearest[y]))
    centre = np.zeros(len(mean))
    centre[y[chosen]] = problem.own[chosen]
    return centre


def exponential_risk(problem: Problem, alpha: float, *, gradient: bool) -> tuple[float, Floats | None]:
    """Compute the risk of ``ℓ(t) = exp(−α t)``: ``R = Σ_i (Σ_m a_m exp(−α P_m)) (Σ_n ω_n exp(α Q_n))``.

    Both sums are in log space. Nothing overflows or underflows before the result does, whatever the size of the scores.
    """
    y, unit, n_classes = problem.classes.y, problem.classes.unit, problem.classes.n_classes
    # Relative to the lowest positive of each column, which has the largest term: far from 0 the products would round.
    centre = np.full(n_classes, np.inf)
    # Only positives with a weight: a far one without would cost the others their digits.
    np.minimum.at(centre, y, np.where(unit > 0, problem.own, np.inf))
    centre[np.isinf(centre)] = 0.0
    with np.errstate(divide="ignore"):
        term_p = np.log(unit) - alpha * (problem.own - centre[y])
    peak_p = np.full(n_classes, -np.inf)
    np.maximum.at(peak_p, y, term_p)
    peak_p = _finite_peak(peak_p)
    log_p = _log(np.bincount(y, np.exp(term_p - peak_p[y]), n_classes)) + peak_p

    walk = walks(problem)
    # Terms are computed twice, unless there is only one tile: 3000 samples of ten classes take 0.54 ms instead of
    # 0.92 ms. With more tiles, storing the terms in the slope was no faster.
    only_tile: list[Floats] = []

    def peak_of_negatives(part: Iterable[Tile]) -> Floats:
        peak = np.full(n_classes, -np.inf)
        for tile in part:
            term = _log_terms(tile, alpha, centre)
            np.maximum(peak, tile.peak(term), out=peak)
            if term.size == problem.scores.size:
                only_tile.append(term)
        return peak

    peak_q = _finite_peak(np.max(walk(peak_of_negatives), axis=0))

    slope = np.empty(problem.scores.shape) if gradient else None
    # Above a peak of e²⁰, small terms would underflow before they are multiplied by it.
    extreme = bool(np.max(log_p + peak_q) > 20.0)

    @np.errstate(over="ignore", invalid="ignore")
    def sum_of_negatives(part: Iterable[Tile]) -> Floats:
        scale = alpha * np.exp(log_p + peak_q)
        total = np.zeros(n_classes)
        for tile in part:
            term = only_tile.pop() if only_tile else _log_terms(tile, alpha, centre)
            if slope is not None and extreme:
                tile.of(slope)[...] = alpha * np.exp(term + tile.along(log_p))
            term -= tile.along(peak_q)
            np.exp(term, out=term)
            total += tile.sum(term)
            if slope is not None and not extreme:
                np.multiply(term, tile.along(scale), out=tile.of(slope))
        return total

    log_q = _log(np.sum(walk(sum_of_negatives), axis=0)) + peak_q
    with np.errstate(over="ignore", invalid="ignore"):
        if slope is not None:
            slope[np.arange(len(y)), y] = -alpha * np.exp(term_p + log_q[y])
        return float(np.sum(np.exp(log_p + log_q))), slope


def _log_terms(tile: Tile, alpha: float, centre: Floats) -> Floats:
    term = tile.x - tile.along(centre)
    term *= alpha
    term += _log(tile.weight)
    return term


def _log(x: NDArray[Any]) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


def _finite_peak(peak: Floats) -> Floats:
    """Replace the peak of a class without samples or weight: it has no term, so any finite shift is right."""
    return np.where(np.isneginf(peak), 0.0, peak)


def polynomial_risk(
    problem: Problem, matrix: Floats, half_width: float, *, gradient: bool
) -> tuple[float, Floats | None]:
    """Compute the risk of ``ℓ(p − q) = Σ_kl matrix[k, l] T_k(x_p) T_l(x_q)``, ``x = (score − centre) / half_width``.

    The Chebyshev moments of each side, ``K + 1`` numbers per column, give the value; the gradient of a score is the
    derivative of a polynomial of it. Moments of powers cancel from degree 16 on, those of Chebyshev polynomials do not.
    ``O(K·N·C)`` time, ``O(K·C)`` memory.
    """
    classes, degree = problem.classes, len(matrix) - 1
    centre = column_centre(problem)
    y, unit, n_classes = classes.y, classes.unit, classes.n_classes
    own = (problem.own - centre[y]) / half_width
    moment_p = np.stack([np.bincount(y, unit * t, n_classes) for t in chebyshev_terms(own, degree)])
    of_negative = chebyshev.chebder(matrix.T @ moment_p, axis=0) / half_width
    slope = np.empty(problem.scores.shape) if gradient else None

    def visit(first: int, last: int) -> Floats:
        moments = np.zeros((degree + 1, n_classes))
        for tile in tiles(problem, first, last):
            x = tile.x - tile.along(centre)
            x /= half_width
            steepness = np.zeros_like(x)
            # The weight is in the first terms, and the recurrence carries it to all others.
            for k, term in enumerate(chebyshev_terms(x, degree, tile.weight)):
                moments[k] += tile.sum(term)
                if slope is not None and k < degree:
                    steepness += term * tile.along(of_negative[k])
            if slope is not None:
                tile.of(slope)[...] = steepness
        return moments

    moment_q = np.sum(over_rows(problem.scores.shape, visit), axis=0)
    of_p = matrix @ moment_q
    if slope is not None:
        of_positive = chebyshev.chebder(of_p, axis=0) / half_width
        slope[np.arange(len(y)), y] = unit * chebyshev.chebval(own, of_positive[:, y], tensor=False)
    return float(np.sum(moment_p * of_p)), slope
