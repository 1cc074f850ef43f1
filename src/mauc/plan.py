"""Polynomial pieces of a surrogate: exact where ℓ is a polynomial, to a tolerance where it is only smooth.

A polynomial ``g`` of ``t = p − q`` is a bilinear form in basis functions of ``p`` and of ``q``; its matrix is all
that the kernels need, in Chebyshev polynomials on the range of the scores. Exact pieces of several are powers of the
distance from their end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.polynomial import chebyshev as cheb
from scipy.interpolate import BPoly

from mauc._typing import Floats
from mauc.kernels.piecewise import Piece as KernelPiece
from mauc.surrogates import Piece, Surrogate

__all__ = ["APPROXIMATIONS", "Approximation", "approximate", "bernstein", "difference_matrix"]

APPROXIMATIONS = ("chebyshev", "bernstein")
DEFAULT_TOLERANCE = 1e-6
DEFAULT_BERNSTEIN_DEGREE = 32
MAX_DEGREE = 256
"""Of one piece over the whole range: beyond it blocked pairs cost no more on the sizes where they are feasible."""
MAX_RUN_DEGREE = 32
MAX_RUNS = 24
"""Of a piece within the range, whose every degree is a gather per score."""


class Univariate(Protocol):
    """What NumPy's and SciPy's polynomials share."""

    def __call__(self, t: Floats, /) -> Floats: ...


@dataclass(frozen=True)
class Approximation:
    """Polynomial pieces that stand for ℓ on ``[−radius, radius]``."""

    pieces: tuple[KernelPiece, ...]
    degree: int
    """Largest degree among the pieces."""
    error: float
    """Largest error of ℓ on a fine grid, relative to ``|ℓ(0)|``, the risk of constant scores; 0 if exact."""
    radius: float


def approximate(
    surrogate: Surrogate,
    radius: float,
    *,
    method: str = "chebyshev",
    tolerance: float | None = None,
    degree: int | None = None,
) -> Approximation | None:
    """Polynomial pieces of ``surrogate`` for differences in ``[−radius, radius]``; None if the tolerance is out of
    reach.

    ``degree`` fixes the degree of the approximated pieces, whatever their error. Otherwise it is the smallest found
    whose ℓ and ℓ′ are within ``tolerance``, relative to ``|ℓ(0)|`` and ``|ℓ′(0)|``, rounding included.
    """
    if degree is None and tolerance is None:
        tolerance = DEFAULT_TOLERANCE if method == "chebyshev" else None
        degree = None if method == "chebyshev" else DEFAULT_BERNSTEIN_DEGREE
    # Not below 1/64: on a narrower range the polynomial would be all rounding, and the wider one serves it too.
    radius = max(radius, 2.0**-6)
    target = _Target(surrogate, radius, method, tolerance, degree)
    pieces: list[KernelPiece] = []
    errors = [0.0]
    for piece in surrogate.pieces:
        low, high = max(piece.low, -radius), min(piece.high, radius)
        if low >= high or piece.coefficients == (0.0,):
            continue
        alone = piece.low == -np.inf and piece.high == np.inf
        if piece.coefficients is not None:
            pieces.append(_exact(piece, radius if alone else None))
            continue
        found = _fit_whole(target) if alone else _fit_runs(target, piece, low, high)
        if found is None:
            return None
        pieces += [kernel_piece for kernel_piece, _ in found]
        errors += [error for _, error in found]
    top = max((len(piece.matrix) - 1 for piece in pieces), default=0)
    return Approximation(tuple(pieces), top, max(errors), radius)


@dataclass(frozen=True)
class _Target:
    surrogate: Surrogate
    radius: float
    method: str
    tolerance: float | None
    degree: int | None

    def scale(self) -> tuple[float, float]:
        """Natural size of ℓ and of ℓ′: their value at 0, or their largest where that is 0."""
        out = []
        for function in (self.surrogate.loss, self.surrogate.derivative):
            at_zero = abs(float(function(np.zeros(1))[0]))
            largest = float(np.abs(function(np.linspace(-self.radius, self.radius, 65))).max())
            out.append(at_zero or largest or 1.0)
        return out[0], out[1]


def _exact(piece: Piece, radius: float | None) -> KernelPiece:
    assert piece.coefficients is not None
    if radius is not None:
        degree = len(piece.coefficients) - 1
        matrix = difference_matrix(Polynomial(piece.coefficients), degree, radius / 2)
        return KernelPiece(piece.low, piece.high, matrix, radius / 2)
    return KernelPiece(piece.low, piece.high, np.array(piece.from_end)[:, None], None)


def _fit_whole(target: _Target) -> list[tuple[KernelPiece, float]] | None:
    """One piece over the whole range, of the smallest degree that will do."""
    for degree in _degrees(target, MAX_DEGREE):
        found = _fit(target, -np.inf, np.inf, -target.radius, target.radius, degree)
        if found is not None:
            return [found]
    return None


def _fit_runs(target: _Target, piece: Piece, low: float, high: float) -> list[tuple[KernelPiece, float]] | None:
    """Pieces within the range, halved until each will do."""
    pending = [(low, high)]
    done: list[tuple[KernelPiece, float]] = []
    while pending:
        if len(pending) + len(done) > MAX_RUNS:
            return None
        begin, end = pending.pop()
        for degree in _degrees(target, MAX_RUN_DEGREE):
            low_end = begin if begin > -target.radius else piece.low
            high_end = end if end < target.radius else piece.high
            found = _fit(target, low_end, high_end, begin, end, degree)
            if found is not None:
                done.append(found)
                break
        else:
            middle = 0.5 * (begin + end)
            pending += [(begin, middle), (middle, end)]
    return done


def _degrees(target: _Target, most: int) -> list[int]:
    if target.degree is not None:
        return [target.degree] if target.degree <= most else []
    return [k for k in (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256) if k <= most]


def _fit(
    target: _Target, low: float, high: float, begin: float, end: float, degree: int
) -> tuple[KernelPiece, float] | None:
    """The polynomial of that degree on ``[begin, end]``, used on ``[low, high)``, with its error; None if that
    is too large.
    """
    surrogate, half_width = target.surrogate, target.radius / 2
    fit = chebyshev_interpolant if target.method == "chebyshev" else bernstein
    with np.errstate(over="ignore", invalid="ignore"):
        polynomial, _ = fit(surrogate.loss, begin, end, degree)
        matrix = difference_matrix(polynomial, degree, half_width)
        slope = -cheb.chebder(matrix, axis=1) / half_width
        if not np.isfinite(matrix).all():
            return None
    # What counts is the form in p and q that the kernels evaluate, rounding included; a polynomial of a narrow piece is
    # huge outside of it, and there its form loses the digits that count inside.
    t = _check_points(begin, end, degree)
    scale, slope_scale = target.scale()
    error = _largest_error(matrix, t / half_width, surrogate.loss(t)) / scale
    slope_error = (
        _largest_error(np.asarray(slope, dtype=np.float64), t / half_width, surrogate.derivative(t)) / slope_scale
    )
    if target.tolerance is None:
        unrounded = float(np.abs(polynomial(t) - surrogate.loss(t)).max()) / scale
        acceptable = error <= 2.0 * unrounded + 1e-9
    else:
        # Rounding makes the risk rough for an optimiser, so it gets a tenth of the tolerance.
        eps = float(np.finfo(np.float64).eps)
        rounding = eps * max(float(np.abs(matrix).sum()) / scale, float(np.abs(slope).sum()) / slope_scale)
        acceptable = max(error, slope_error, 10.0 * rounding) <= target.tolerance
    if not acceptable:
        return None
    return KernelPiece(low, high, matrix, half_width), error


def _check_points(begin: float, end: float, degree: int) -> Floats:
    """Points inside the piece: dense towards its ends, where the error is largest and a far score leaves no grid."""
    middle, half = 0.5 * (begin + end), 0.5 * (end - begin)
    grid = middle + half * np.cos(np.linspace(0.0, np.pi, 8 * degree + 33))[1:-1]
    near = (end - begin) * 0.5 ** np.arange(2, 120)
    points = np.concatenate([grid, begin + near, end - near])
    return points[(points > begin) & (points < end)]


def _largest_error(matrix: Floats, difference: Floats, truth: Floats) -> float:
    """Largest error of the form over pairs ``x − z = difference`` in the middle and at both ends of ``[−1, 1]``."""
    errors = []
    for shift in (-1.0, 0.0, 1.0):
        room = 1.0 - 0.5 * np.abs(difference)
        x = shift * room + 0.5 * difference
        errors.append(np.abs(cheb.chebval2d(x, x - difference, matrix) - truth).max())
    return float(np.max(errors))


def chebyshev_interpolant(
    function: Callable[[Floats], Floats], begin: float, end: float, degree: int
) -> tuple[Univariate, Univariate]:
    """The interpolant in the Chebyshev points of ``[begin, end]``, and its derivative."""
    polynomial = Chebyshev.interpolate(function, degree, domain=[begin, end])
    return polynomial, polynomial.deriv()


def bernstein(
    function: Callable[[Floats], Floats], begin: float, end: float, degree: int
) -> tuple[Univariate, Univariate]:
    """``B(t) = Σ_k f(t_k) C(K, k) s^k (1 − s)^(K−k)`` with ``s`` the place of ``t`` in ``[begin, end]``, and its
    derivative.

    Keeps convexity and monotonicity, hence the consistency condition; its error falls only like 1/K.
    """
    nodes = np.linspace(begin, end, degree + 1)
    polynomial = BPoly(function(nodes)[:, None], [begin, end])
    return polynomial, polynomial.derivative()


def difference_matrix(polynomial: Univariate, degree: int, half_width: float) -> Floats:
    """``A`` with ``polynomial(half_width·(x − z)) = Σ_kl A_kl T_k(x) T_l(z)``: interpolation in a grid of
    Chebyshev points.
    """
    nodes = cheb.chebpts1(degree + 1)
    inverse = cheb.chebvander(nodes, degree).T * (2.0 / (degree + 1))
    inverse[0] /= 2.0
    values = np.asarray(polynomial((half_width * (nodes[:, None] - nodes)).ravel())).reshape(degree + 1, degree + 1)
    matrix = inverse @ values @ inverse.T
    total_degree = np.add.outer(np.arange(degree + 1), np.arange(degree + 1))
    return np.where(total_degree <= degree, matrix, 0.0)
