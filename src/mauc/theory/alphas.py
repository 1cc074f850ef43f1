"""Which α are right for scores in [0, 1]: those whose unbounded minimiser fits into the interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_choice, invalid
from mauc.surrogates import SURROGATES, get_surrogate, has_alpha
from mauc.theory.minimiser import column_minimiser, likelihoods

__all__ = ["PROVED", "checked_ratio", "largest_alpha", "reference_ratios", "smallest_alpha"]

INF = math.inf
POINTS = 9
SHARPNESS = 1e-9

# (least, largest) α for which [0, 1] holds the minimiser of every problem whose ratios are within a factor e^L, and of
# no more: docs/theory.md has the proofs. As L → ∞ the squared loss keeps α <= ½.
PROVED: dict[str, Callable[[float], tuple[float, float]]] = {
    "exponential": lambda log_ratio: (0.5 * log_ratio, INF),
    "logistic": lambda log_ratio: (log_ratio, INF),
    "squared": lambda log_ratio: (0.0, 0.5 / math.tanh(0.25 * log_ratio) if log_ratio > 0 else INF),
}


def smallest_alpha(surrogate: str, ratio: ArrayLike, *, weights: ArrayLike | None = None, **options: float) -> float:
    r"""The least α for which scores in [0, 1] are enough: the interval holds the minimiser of the unbounded risk.

    Below it, points whose likelihood ratios differ are tied at 0 or at 1. What :func:`largest_alpha` returns must not
    be exceeded either: the minimiser of the exponential and of the logistic loss shrinks with α, that of the squared
    loss and of the hinges, whose margin is α, grows with it.

    ========================  ==========================  ================================================
    surrogate                 least α                     largest α
    ========================  ==========================  ================================================
    exponential               ½ log(ratio)                ∞
    logistic                  log(ratio)                  ∞
    squared                   0 (any above it)            ½ / tanh(¼ log(ratio)), hence ½ for every ratio
    q_hinge and others        by bisection                by bisection
    hinge                     ∞: none                     0: none
    ========================  ==========================  ================================================

    Parameters
    ----------
    surrogate : str
        A name of :class:`mauc.SurrogateRisk` that has an α.
    ratio : float or (n,) array
        Largest by smallest likelihood ratio :math:`g_i / \operatorname{mean}_{j \ne i} g_j` of the distribution, up to
        infinity; or the ratios of n points, for that one distribution.
    weights : (n,) array, optional
        P(x) of these points, up to a factor; equal by default.
    **options
        Other parameters of the surrogate.

    Returns
    -------
    float
        For a number and the first three surrogates, exact over all distributions with such ratios. For a number and
        the others it is that of nine ratios in geometric progression with equal P(x): distributions exist that need
        more.

    Examples
    --------
    >>> from mauc import theory
    >>> round(theory.smallest_alpha("exponential", 400), 3)
    2.996
    >>> theory.smallest_alpha("squared", 1e6), round(theory.largest_alpha("squared", 1e6), 4)
    (0.0, 0.501)
    >>> theory.smallest_alpha("hinge", 2)
    inf
    """
    return _range(surrogate, ratio, weights, options)[0]


def largest_alpha(surrogate: str, ratio: ArrayLike, *, weights: ArrayLike | None = None, **options: float) -> float:
    """The largest α for which scores in [0, 1] are enough: the other end of the table of :func:`smallest_alpha`.

    Parameters
    ----------
    surrogate : str
        A name of :class:`mauc.SurrogateRisk` that has an α.
    ratio : float or (n,) array
        Largest by smallest likelihood ratio of the distribution, up to infinity; or the ratios of n points.
    weights : (n,) array, optional
        P(x) of these points, up to a factor; equal by default.
    **options
        Other parameters of the surrogate.

    Examples
    --------
    >>> from mauc import theory
    >>> theory.largest_alpha("squared", float("inf"))
    0.5
    """
    return _range(surrogate, ratio, weights, options)[1]


def reference_ratios(ratio: float) -> Floats:
    """Nine ratios in geometric progression, ``ratio`` from the first to the last, 1 in the middle."""
    return np.exp(np.linspace(-0.5, 0.5, POINTS) * math.log(ratio))


def _range(
    surrogate: Any, ratio: ArrayLike, weights: ArrayLike | None, options: dict[str, float]
) -> tuple[float, float]:
    kind = SURROGATES[check_choice("surrogate", surrogate, tuple(SURROGATES))]
    if not has_alpha(surrogate):
        advice = "ask consistency_report(..., scores='unit')"
        raise invalid("surrogate", "must have an alpha", repr(surrogate), advice)
    if np.ndim(ratio) == 0:
        if weights is not None:
            raise invalid("weights", "goes with the ratios of points", "it with one number", "pass all the ratios")
        log_ratio = math.log(checked_ratio(ratio))
        if surrogate in PROVED:
            return PROVED[surrogate](log_ratio)
        if math.isinf(log_ratio):
            return (INF, 0.0)
        ratio = reference_ratios(math.exp(log_ratio))
    both = likelihoods(ratio, weights)
    if not kind.smooth:
        return (INF, 0.0)

    def spread(log_alpha: float) -> float:
        ell = get_surrogate(surrogate, alpha=math.exp(log_alpha), **options)
        return float(np.ptp(column_minimiser(ell, both[:, 0], both[:, 1], None)))

    if spread(0.5) < spread(0.0):
        return (_where_one(spread, falling=True), INF)
    return (0.0, _where_one(spread, falling=False))


def checked_ratio(ratio: Any) -> float:
    """A ratio of at least 1, up to infinity."""
    value = float(ratio) if not isinstance(ratio, bool | str) else math.nan
    if not value >= 1:
        raise invalid("ratio", "must be at least 1", repr(ratio), "pass the largest likelihood ratio by the smallest")
    return value


def _where_one(spread: Callable[[float], float], *, falling: bool, reach: float = 8.0) -> float:
    """The α at which the spread, monotone in α, is 1; looked for from α = 1 outwards, up to e^±8."""

    def enough(log_alpha: float) -> bool:
        return (spread(log_alpha) <= 1.0) == falling

    below = above = 0.0
    while not enough(above):
        below, above = above, above + 1.0
        if above > reach:
            return INF
    while enough(below):
        below, above = below - 1.0, below
        if below < -reach:
            return 0.0
    while above - below > SHARPNESS:
        middle = 0.5 * (below + above)
        below, above = (below, middle) if enough(middle) else (middle, above)
    return math.exp(above if falling else below)
