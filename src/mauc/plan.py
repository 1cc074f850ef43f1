"""The plan of a surrogate for scores of some range: its scheme and its polynomials.

A polynomial ``g`` of ``t = p − q``, for a positive score p and a negative score q, is a bilinear form in basis
functions of both: ``g(p − q) = Σ_kl A_kl T_k(p) T_l(q)``. The kernels need only the matrix A, the *form*. Pieces of ℓ
that are polynomials are used directly, in powers of the distance from their end. Smooth pieces are approximated by
Chebyshev polynomials on the range of the scores. NumPy and torch share this module, each with its own tolerances.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.polynomial import chebyshev as cheb

from mauc._kernels.piecewise import KernelPiece
from mauc._typing import Floats
from mauc.surrogates import Piece, Surrogate

DEFAULT_TOLERANCE = 1e-6
TOLERANCES = {"float64": (1e-12, 1e-10, 1e-8, 1e-6), "float32": (1e-7, 1e-6)}
"""Tolerances of the torch loss by precision; the first that can be reached is used."""
EPS = float(np.finfo(np.float64).eps)
DEGREES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
MAX_DEGREE = 256
"""Largest degree of one piece over the whole range: above it, summing over blocks of pairs costs no more."""
MAX_RUN_DEGREE = 32
MAX_RUNS = 24
"""Largest degree, and largest number, of the polynomials for a piece that covers part of the range: each degree costs
one lookup per score."""
MOST_CANCELLED = 64.0
"""Largest ratio of the summed entries of a form to ``ℓ(0)`` for which an exact piece uses moments; above it, ranks."""


@dataclass(frozen=True)
class Plan:
    """Polynomial pieces that replace ℓ on ``[−radius, radius]``."""

    scheme: str
    """``"moments"``: one piece for all differences. ``"ranked"``: several, found by a search, and 0 elsewhere."""
    pieces: tuple[KernelPiece, ...]

    @property
    def degree(self) -> int:
        """Largest degree among the pieces."""
        return max((len(piece.matrix) - 1 for piece in self.pieces), default=0)


def radius_for(span: float) -> float:
    """Return the largest score difference to plan for, if the widest column of the scores has the range ``span``.

    It is 1 up to a range of 1, as softmax and sigmoid scores have, else the next power of two. So scores whose range
    changes a little, as in training, keep one polynomial, and the risk is smooth for an optimiser.
    """
    if span <= 1.0 or math.isinf(span):
        return max(span, 1.0)
    fraction, exponent = math.frexp(span)
    return span if fraction == 0.5 else math.ldexp(1.0, exponent) if exponent < 1024 else math.inf


def needs_range(surrogate: Surrogate) -> bool:
    """Return True if the polynomials depend on the range of the scores."""
    pieces = surrogate.pieces
    return len(pieces) == 1 or any(_is_approximated(piece) for piece in pieces)


def _is_approximated(piece: Piece) -> bool:
    """Return True if the kernels do not sum the piece exactly: it is no polynomial, or reaches to +∞ and is not 0."""
    return piece.coefficients is None or (piece.high == math.inf and piece.coefficients != (0.0,))


@lru_cache(maxsize=256)
def plan(
    surrogate: Surrogate,
    radius: float,
    *,
    tolerances: tuple[float, ...] = (DEFAULT_TOLERANCE,),
    saturated: bool = False,
) -> Plan | None:
    """Return the polynomials for score differences in ``[−radius, radius]``; None if none are accurate enough.

    Parameters
    ----------
    surrogate : Surrogate
    radius : float
        May be infinite if the polynomials do not depend on it (:func:`needs_range`).
    tolerances : tuple of float
        Largest errors of ℓ and ℓ′, relative to ``|ℓ(0)|`` and ``|ℓ′(0)|``, rounding included. The first tolerance that
        any degree meets is used, with the smallest such degree.
    saturated : bool
        Differences of ±radius come from saturated activations, whose gradient is 0: a piece that ends there covers all
        differences. So a hinge with ``α >= 1`` is a line on softmax scores, and its scheme is ``"moments"``.
    """
    if math.isinf(radius) and needs_range(surrogate):
        return None
    # At least 1/64: on a narrower range rounding would dominate, and the polynomial of this range is accurate enough.
    radius = max(radius, 2.0**-6)
    search = _DegreeSearch(surrogate, radius, tolerances)
    within = radius if saturated else math.inf
    for piece in surrogate.pieces:
        if piece.low <= -within and piece.high >= within:
            if piece.coefficients is None:
                whole = search.whole()
                return None if whole is None else Plan("moments", (whole,))
            degree = max(1, len(piece.coefficients) - 1)
            matrix = difference_matrix(Polynomial(piece.coefficients), degree, radius / 2)
            at_zero = abs(float(surrogate.loss(np.zeros(1))[0]))
            if len(surrogate.pieces) > 1 and float(np.abs(matrix).sum()) > MOST_CANCELLED * at_zero:
                break  # powers from the piece's end do not cancel
            return Plan("moments", (KernelPiece(-np.inf, np.inf, matrix, radius / 2),))
    if any(piece.low == radius and piece.coefficients != (0.0,) for piece in surrogate.pieces):
        # A difference of exactly the radius belongs to the piece that begins there.
        return plan(surrogate, 2.0 * radius, tolerances=tolerances)
    found: list[KernelPiece] = []
    for piece in surrogate.pieces:
        if max(piece.low, -radius) >= min(piece.high, radius) or piece.coefficients == (0.0,):
            continue
        if not _is_approximated(piece):
            found.append(KernelPiece(piece.low, piece.high, np.array(piece.from_end)[:, None], None))
            continue
        runs = search.runs(piece)
        if runs is None:
            return None
        found += runs
    return Plan("ranked", tuple(found))


class _Fit(NamedTuple):
    """A polynomial for the kernels, with its errors of ℓ and ℓ′ relative to their scales, rounding included."""

    piece: KernelPiece
    error: float
    slope_error: float
    rounding: float
    """Rounding error of the sum over the form's entries: it makes the risk rough for an optimiser."""


class _Interpolant(NamedTuple):
    """A polynomial in one variable on an interval, with its errors at points inside."""

    series: Chebyshev
    points: Floats
    loss: Floats
    derivative: Floats
    error: float
    slope_error: float


class _DegreeSearch:
    """Finds the smallest degree that meets a tolerance; interpolants and forms are cached for the next tolerance."""

    def __init__(self, surrogate: Surrogate, radius: float, goals: tuple[float, ...]) -> None:
        self.surrogate, self.radius, self.goals = surrogate, radius, goals
        self.interpolant, self.form = cache(self._interpolant), cache(self._form)

    @cached_property
    def sizes(self) -> tuple[float, float]:
        """The scales of ℓ and of ℓ′: their absolute value at 0, or their largest one if that is 0."""
        out = []
        for function in (self.surrogate.loss, self.surrogate.derivative):
            at_zero = abs(float(function(np.zeros(1))[0]))
            largest = float(np.abs(function(np.linspace(-self.radius, self.radius, 65))).max())
            out.append(at_zero or largest or 1.0)
        return out[0], out[1]

    def whole(self) -> KernelPiece | None:
        """Fit one polynomial over the whole range."""
        found = (self.smallest(-self.radius, self.radius, MAX_DEGREE, goal) for goal in self.goals)
        piece = next((each for each in found if each is not None), None)
        return None if piece is None else piece._replace(low=-np.inf, high=np.inf)

    def runs(self, piece: Piece) -> list[KernelPiece] | None:
        """Fit polynomials within the piece, halved until each meets the tolerance."""
        begin, end = max(piece.low, -self.radius), min(piece.high, self.radius)
        for goal in self.goals:
            pending, done = [(begin, end)], list[KernelPiece]()
            while pending and len(pending) + len(done) <= MAX_RUNS:
                first, last = pending.pop()
                run = self.smallest(first, last, MAX_RUN_DEGREE, goal)
                if run is None:
                    middle = 0.5 * (first + last)
                    pending += [(first, middle), (middle, last)]
                else:
                    low, high = piece.low if first == begin else first, piece.high if last == end else last
                    done.append(run._replace(low=low, high=high))
            if not pending:
                return done
        return None

    def smallest(self, begin: float, end: float, most: int, goal: float) -> KernelPiece | None:
        """Fit the polynomial on ``[begin, end]`` of the smallest degree that meets the goal, up to ``most``."""
        for degree in DEGREES:
            if degree > most:
                return None
            interpolant = self.interpolant(begin, end, degree)
            # The form costs K³, the interpolant K²: if the interpolant is not accurate enough, skip the form.
            if not max(interpolant.error, interpolant.slope_error) <= goal:
                continue
            fit = self.form(begin, end, degree)
            if not 10.0 * fit.rounding <= goal:
                return None  # no higher degree rounds less
            if max(fit.error, fit.slope_error) <= goal:
                return self._trimmed(fit, goal)
        return None

    def _trimmed(self, fit: _Fit, goal: float) -> KernelPiece:
        """Drop the functions of the highest degrees of each score that the goal does not need.

        A polynomial of ``p − q`` has the full degree only if one score varies over twice its range. Of the logistic
        loss on scores in [0, 1], nine of thirteen functions of each score are left.
        """
        matrix, (size, slope_size), half_width = fit.piece.matrix, self.sizes, self.radius / 2
        for kept in range(2, len(matrix)):
            rest = matrix.copy()
            rest[:kept, :kept] = 0.0
            steepest = max(float(np.abs(cheb.chebder(rest, axis=axis)).sum()) for axis in (0, 1)) / half_width
            error, slope_error = fit.error + np.abs(rest).sum() / size, fit.slope_error + steepest / slope_size
            if max(error, slope_error) <= goal:
                return fit.piece._replace(matrix=matrix[:kept, :kept].copy())
        return fit.piece

    def _interpolant(self, begin: float, end: float, degree: int) -> _Interpolant:
        loss, (size, slope_size) = self.surrogate.loss, self.sizes
        series = Chebyshev.interpolate(loss, degree, domain=[begin, end])
        # Points between the nodes, and ever closer to both ends: there the error is largest, and if an outlier widens
        # the range, most differences lie so close to an end that a grid would miss them.
        cosines, near_end = np.cos(np.linspace(0.0, np.pi, 8 * degree + 33)), 0.5 ** np.arange(1.0, 119.0)
        inner = np.concatenate([0.5 * (cosines + 1.0), near_end])
        t = np.concatenate([begin + (end - begin) * inner, end - (end - begin) * near_end])
        t = t[(t > begin) & (t < end)]
        values, slopes = loss(t), self.surrogate.derivative(t)
        error = np.abs(series(t) - values).max() / size
        slope_error = np.abs(series.deriv()(t) - slopes).max() / slope_size
        return _Interpolant(series, t, values, slopes, float(error), float(slope_error))

    def _form(self, begin: float, end: float, degree: int) -> _Fit:
        """Compute the form of an interpolant in p and q, and its errors as the kernels evaluate it.

        The polynomial of a narrow piece is huge outside of it, so its form loses digits that count inside.
        """
        near, half_width, (size, slope_size) = self.interpolant(begin, end, degree), self.radius / 2, self.sizes
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = difference_matrix(near.series, degree, half_width)
            slope = np.asarray(-cheb.chebder(matrix, axis=1) / half_width, dtype=np.float64)
            rounding = EPS * max(float(np.abs(matrix).sum()) / size, float(np.abs(slope).sum()) / slope_size)
            x = near.points / half_width
            error, slope_error = _largest_errors(x, (matrix, near.loss), (slope, near.derivative))
        piece = KernelPiece(begin, end, matrix, half_width)
        return _Fit(piece, error / size, slope_error / slope_size, rounding)


def _largest_errors(difference: Floats, *forms: tuple[Floats, Floats]) -> list[float]:
    """Return the largest error of each ``(matrix, truth)`` over pairs ``x − z = difference`` across ``[−1, 1]``."""
    largest = np.zeros(len(forms))
    degree = len(forms[0][0]) - 1
    for shift in (-1.0, 0.0, 1.0):
        x = shift * (1.0 - 0.5 * np.abs(difference)) + 0.5 * difference
        of_x, of_z = cheb.chebvander(x, degree), cheb.chebvander(x - difference, degree)
        errors = [np.einsum("nl,nl->n", of_x @ matrix, of_z[:, : matrix.shape[1]]) - truth for matrix, truth in forms]
        largest = np.maximum(largest, [np.abs(each).max() for each in errors])
    return largest.tolist()


def difference_matrix(polynomial: Callable[[Floats], Floats], degree: int, half_width: float) -> Floats:
    """Return ``A`` with ``polynomial(half_width·(x − z)) = Σ_kl A_kl T_k(x) T_l(z)``, by interpolation."""
    nodes = cheb.chebpts1(degree + 1)
    values = np.asarray(polynomial((half_width * (nodes[:, None] - nodes)).ravel())).reshape(degree + 1, degree + 1)
    # The matrix that turns values at the nodes into coefficients.
    inverse = cheb.chebvander(nodes, degree).T * (2.0 / (degree + 1))
    inverse[0] /= 2.0
    matrix = inverse @ values @ inverse.T
    total_degree = np.add.outer(np.arange(degree + 1), np.arange(degree + 1))
    return np.where(total_degree <= degree, matrix, 0.0)
