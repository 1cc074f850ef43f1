"""How a surrogate is computed: which scheme, and with which polynomials."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from mauc._typing import Floats
from mauc.plan import approximate, difference_matrix
from mauc.surrogates import Exponential, Piece, Squared, Surrogate, get_surrogate

__all__ = ["Plan", "Segment", "needs_range", "only_piece", "plan", "resolve"]

TOLERANCE = {"float64": (1e-12, 1e-10, 1e-8, 1e-6), "float32": (1e-7, 1e-6)}
"""Errors of ℓ and ℓ′ that an approximation may have, the first that can be reached: at the rounding of the scores."""

MOST_CANCELLED = 64.0
"""Sum of a polynomial's terms over ``ℓ(0)`` from which on an exact piece is ranked rather than taken as moments."""


@dataclass(frozen=True)
class Segment:
    """ℓ on ``low <= p − q < high`` as ``Σ_kl matrix[k][l] φ_k(p) φ_l(q)``; powers if ``half_width`` is None, else
    Chebyshev polynomials of ``(score − centre) / half_width``.
    """

    low: float
    high: float
    matrix: tuple[tuple[float, ...], ...]
    half_width: float | None


@dataclass(frozen=True)
class Plan:
    """``kind`` is "squared", "exponential", "polynomial", "ranked" or "blocked"; ``segments`` are its pieces."""

    kind: str
    segments: tuple[Segment, ...] = ()


@lru_cache(maxsize=256)
def _by_name(name: str, alpha: float, options: tuple[tuple[str, float], ...]) -> Surrogate:
    return get_surrogate(name, alpha=alpha, **dict(options))


def resolve(surrogate: Any, alpha: float, options: dict[str, float]) -> Surrogate:
    """The surrogate; one of a name is made once."""
    if isinstance(surrogate, str):
        try:
            return _by_name(surrogate, alpha, tuple(options.items()))
        except TypeError:  # a parameter that cannot be hashed: let the surrogate say what is wrong with it
            pass
    return get_surrogate(surrogate, alpha=alpha, **options)


def plan(surrogate: Surrogate, radius: float, precision: str) -> Plan:
    """The scheme for score differences in ``[−radius, radius]``; an infinite radius where no range is needed."""
    if isinstance(surrogate, Squared):
        return Plan("squared")
    if isinstance(surrogate, Exponential):
        return Plan("exponential")
    try:
        return _plan(surrogate, radius, precision)
    except TypeError:  # a surrogate that cannot be hashed is planned anew each time
        return _plan.__wrapped__(surrogate, radius, precision)


def needs_range(surrogate: Surrogate) -> bool:
    """Whether the polynomials depend on the range of the scores."""
    if isinstance(surrogate, Squared | Exponential):
        return False
    pieces = surrogate.pieces
    return len(pieces) == 1 or any(piece.coefficients is None for piece in pieces)


@lru_cache(maxsize=256)
def _plan(surrogate: Surrogate, radius: float, precision: str) -> Plan:
    only = only_piece(surrogate, radius)
    if only is not None and only.coefficients is not None:
        degree = max(1, len(only.coefficients) - 1)
        matrix = difference_matrix(Polynomial(only.coefficients), degree, radius / 2)
        # Its terms cancel down to ℓ(0) and below; those of a run's own end do not, if there is one.
        if len(surrogate.pieces) == 1 or np.abs(matrix).sum() <= MOST_CANCELLED * abs(surrogate.loss(np.zeros(1))[0]):
            return Plan("polynomial", (Segment(-np.inf, np.inf, _nested(matrix), radius / 2),))
    for tolerance in TOLERANCE[precision]:
        found = approximate(surrogate, radius, tolerance=tolerance)
        if found is not None:
            segments = tuple(Segment(p.low, p.high, _nested(p.matrix), p.half_width) for p in found.pieces)
            kind = "polynomial" if len(surrogate.pieces) == 1 else "ranked"
            return Plan(kind, segments)
    return Plan("blocked")


def only_piece(surrogate: Surrogate, radius: float) -> Piece | None:
    """The piece that alone covers all differences: then nothing is searched.

    A hinge with ``α >= 1`` is a line on softmax scores. At ``t = α = 1`` itself, where its slope jumps, the
    activation is saturated and passes no gradient on, so that nothing is lost.
    """
    if not np.isfinite(radius):
        return None
    covering = [piece for piece in surrogate.pieces if piece.low <= -radius and piece.high >= radius]
    return covering[0] if covering else None


def _nested(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(x) for x in row) for row in matrix)
