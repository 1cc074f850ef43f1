r"""Surrogate → form: the description of a pair loss ℓ that the kernels use.

- :class:`Closed`: the exponential, squared and linear losses, whose sums over pairs split into sums over each side;
- :class:`Bilinear`: one polynomial of scores in [0, 1], as a bilinear form in Chebyshev polynomials of both scores;
- :class:`Truncated`: pieces of polynomials that end in 0, as a sum of truncated powers.
"""

from functools import lru_cache
from itertools import pairwise
from math import comb, inf
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev as cheb
from numpy.polynomial.polynomial import polyder, polyval

from mauc.plan import TOLERANCES, plan
from mauc.surrogates import Piece, Surrogate

EPS = float(np.finfo(np.float64).eps)


class Closed(NamedTuple):
    """``ℓ(t) = scale · kind_α(t)``: ``exp(−α t)``, ``(α − t)²`` or the line ``α − t``."""

    kind: str
    """``"exponential"``, ``"squared"`` or ``"line"``."""
    alpha: float
    scale: float = 1.0


@lru_cache(maxsize=256)
def closed_form(surrogate: Surrogate, *, bounded: bool = True) -> Closed | None:
    """Return the closed form, or None. A loss that is linear on [−1, 1] has one for ``bounded`` scores, in [0, 1]."""
    known = surrogate.closed_form
    if known is not None:
        return Closed(*known)
    for piece in surrogate.pieces if bounded else ():
        if piece.low <= -1.0 and piece.high >= 1.0 and piece.coefficients is not None and len(piece.coefficients) == 2:
            constant, slope = piece.coefficients
            return Closed("line", -constant / slope, -slope) if slope < 0 else None
    return None


Matrix = tuple[tuple[float, ...], ...]


class Bilinear(NamedTuple):
    """``ℓ(p − q) = Σ_kl A_kl T_k(2p − 1) T_l(2q − 1)``, and its slopes in the same functions."""

    numbers: tuple[Matrix, Matrix, Matrix]
    """Three of the same size: A, that of ``∂ℓ/∂q``, that of ``∂ℓ/∂p``."""

    @property
    def size(self) -> int:
        """Return the number of functions."""
        return len(self.numbers[0])


@lru_cache(maxsize=256)
def bilinear_form(surrogate: Surrogate, most: int = 32) -> Bilinear | None:
    """Return the form of a surrogate that is one polynomial of bounded scores in float32, or None."""
    found = plan(surrogate, 1.0, tolerances=TOLERANCES["float32"], saturated=True)
    if found is None or found.scheme != "moments" or found.degree > most:
        return None
    matrix = found.pieces[0].matrix
    in_q, in_p = np.zeros_like(matrix), np.zeros_like(matrix)
    # The functions take 2 F − 1.
    in_q[:, :-1] = 2.0 * cheb.chebder(matrix, axis=1)
    in_p[:-1] = 2.0 * cheb.chebder(matrix, axis=0)
    loss, of_q, of_p = (tuple(map(tuple, m.tolist())) for m in (matrix, in_q, in_p))
    return Bilinear((loss, of_q, of_p))


class Truncated(NamedTuple):
    r"""``ℓ(t) = Σ_b Σ_k c_bk (b − t)₊^k``, with one b for each end of a piece."""

    ends: tuple[float, ...]
    coefficients: Matrix
    """One row per end, all of the same length."""

    @property
    def degree(self) -> int:
        """Return the largest power."""
        return len(self.coefficients[0]) - 1

    @property
    def width(self) -> int:
        """Return the numbers per place of the table: a score and the coefficients, rounded up to a power of two."""
        return 1 << (self.degree + 1).bit_length()

    @property
    def numbers(self) -> Matrix:
        """Return the end and the coefficients of each piece."""
        return tuple((end, *row) for end, row in zip(self.ends, self.coefficients, strict=True))


@lru_cache(maxsize=256)
def truncated_powers(
    surrogate: Surrogate, *, bounded: bool = True, most_pieces: int = 3, most_degree: int = 5, digits: float = 1e-9
) -> Truncated | None:
    """Return a surrogate as a sum of truncated powers; None if it is none, or if sums over runs would lose digits.

    The float64 sums of the table lose ``digits`` if pieces are narrow or degrees high; the estimate is relative to
    ℓ(0). The float32 sums of the scores lose them if terms of both signs cancel, in a run or between runs.
    """
    pieces = surrogate.pieces
    if len(pieces) < 2 or len(pieces) > most_pieces + 1 or pieces[-1].coefficients != (0.0,):
        return None
    if any(piece.coefficients is None for piece in pieces):
        return None
    ends = tuple(piece.high for piece in pieces[:-1])
    jumps = [_jump(left, right) for left, right in pairwise(pieces)]
    degree = max(1, *(len(jump) - 1 for jump in jumps))
    if degree > most_degree:
        return None
    rows = tuple((*jump, *(0.0,) * (degree + 1 - len(jump))) for jump in jumps)
    terms = [(b, k, c) for b, row in zip(ends, rows, strict=True) for k, c in enumerate(row) if c]
    at_zero = sum(c * max(b, 0.0) ** k for b, k, c in terms)
    if EPS * sum(abs(c) * (2.0 * (1.0 + abs(b))) ** k for b, k, c in terms) > digits * abs(at_zero):
        return None
    alone = len(ends) == 1 or (bounded and _cancellation(ends, rows) <= 32.0)
    one_sign = all(min(row) >= 0.0 or max(row) <= 0.0 for row in rows)
    return Truncated(ends, rows) if alone and one_sign else None


def _cancellation(ends: tuple[float, ...], rows: Matrix) -> float:
    """Return the largest sum of the slopes' sizes over the largest slope, at scores in [0, 1].

    Up to 32, float32 sums have errors of about 1e-6.
    """
    t = np.linspace(-1.0, 1.0, 65)
    slopes = np.array([np.where(b > t, polyval(b - t, polyder(row)), 0.0) for b, row in zip(ends, rows, strict=True)])
    largest = float(np.abs(slopes.sum(0)).max())
    return float(np.abs(slopes).sum(0).max()) / largest if largest else inf


def _jump(left: Piece, right: Piece) -> tuple[float, ...]:
    """Return the left piece minus the right one, in powers of the distance from the left one's end."""
    mine, theirs = left.from_end, right.from_end
    further = 0.0 if right.high == inf else right.high - left.high
    out = []
    for k in range(max(len(mine), len(theirs))):
        here = mine[k] if k < len(mine) else 0.0
        there = [theirs[i] * comb(i, k) * further ** (i - k) for i in range(k, len(theirs))]
        value = here - sum(there)
        rounding = 16.0 * EPS * (abs(here) + sum(map(abs, there)))
        out.append(value if abs(value) > rounding else 0.0)
    while len(out) > 1 and out[-1] == 0.0:
        out.pop()
    return tuple(out)
