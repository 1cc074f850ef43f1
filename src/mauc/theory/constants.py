"""Lipschitz constant and range of a surrogate on an interval, which every bound needs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mauc._validation import check_real
from mauc.surrogates import get_surrogate

__all__ = ["SurrogateConstants", "surrogate_constants"]

GRID = 4097


@dataclass(frozen=True)
class SurrogateConstants:
    """What the bounds need of ℓ."""

    lipschitz: float
    """Largest ``|ℓ′|``: φ."""
    bound: float
    """Largest ``|ℓ|``: B."""


def surrogate_constants(
    surrogate: Any, *, radius: float = 1.0, alpha: float | None = None, **options: float
) -> SurrogateConstants:
    r"""Lipschitz constant φ and bound B of a surrogate on ``[−radius, radius]``.

    Differences of softmax or sigmoid scores are in [−1, 1]. Both are taken at the ends, on a fine grid and at the
    breakpoints, hence exact for convex surrogates, whose extremes are at the ends.

    Examples
    --------
    >>> from mauc.theory.bounds import surrogate_constants
    >>> surrogate_constants("squared", alpha=1.0)
    SurrogateConstants(lipschitz=4.0, bound=4.0)
    """
    ell = get_surrogate(surrogate, alpha=alpha, **options)
    radius = check_real("radius", radius, low=0)
    edges = np.array([piece.low for piece in ell.pieces if -radius < piece.low < radius])
    t = np.concatenate([np.linspace(-radius, radius, GRID), edges, np.nextafter(edges, -np.inf)])
    # A steep surrogate on a wide range may exceed the largest float: its bound is then infinite, as it should be.
    with np.errstate(over="ignore"):
        return SurrogateConstants(float(np.abs(ell.derivative(t)).max()), float(np.abs(ell.loss(t)).max()))
