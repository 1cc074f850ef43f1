"""Theorem 3's sufficient condition for consistency, point by point, and the verdict for given scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.interpolate import BPoly
from scipy.optimize import brentq

from mauc._typing import Floats
from mauc._validation import check_choice, check_whole, invalid
from mauc.surrogates import SURROGATES, CustomSurrogate, Surrogate, get_surrogate
from mauc.theory.minimiser import (
    PROVED,
    SCORES,
    SOLVED,
    TIE,
    RiskMinimiser,
    Scores,
    check_log_loss_scores,
    check_ratio,
    likelihoods,
    risk_minimiser,
)

__all__ = ["ConsistencyReport", "Point", "Verdict", "bernstein", "consistency_report"]

GRID_POINTS = 4097
EXACT_ERROR, CUSTOM_ERROR = 1e-12, 1e-9
"""Rounding error of a slope relative to the largest one: of the library's surrogates, and of all other functions."""

RATIOS = (4.0, 25.0, 400.0, 1e4, 1e6, 1e9, 1e12)
"""Largest by smallest likelihood ratio of the problems that are tried as counterexamples."""
NEAR = (0.25, 0.1, 0.02, 0.004)
"""Distances, in the logarithm, of the second ratios from the extreme ones: minimisers tie these two first."""
CENTRED = (1.0, 1e-3)
"""P(x) of the extreme points divided by that of the middle point: the spread of the scores is largest if nearly all
probability is in the middle."""
KINKED = (0.2, 0.3, 1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 2.0, 1.0)
"""Ratios and P(x) of a problem in which every minimiser of the hinge has ties; symmetric ones may have one without."""
NEVER_WITH_SOFTMAX = ("squared", "exponential")
"""Not consistent with three classes or more, with or without the log-loss: docs/theory.md proves it for all α. For
other losses the counterexample decides."""
NEVER_WITH_SIGMOID = ("exponential",)
"""Not consistent with the log-loss and three classes or more: proved there too."""
UNDECIDED = "no counterexample found, and no proof"


@dataclass(frozen=True)
class Point:
    """One requirement of the theorem."""

    name: str
    """``"differentiable"``, ``"convex"``, ``"non-increasing"`` or ``"negative slope at 0"``."""
    satisfied: bool
    where: float | None = None
    """The leftmost place found at which the requirement fails; None if it holds."""
    detail: str = ""

    def __bool__(self) -> bool:
        return self.satisfied


@dataclass(frozen=True, eq=False)
class Verdict:
    """Answer whether minimising the risk over the given scores leads to the best ranking, with the reason."""

    scores: str
    consistent: bool | None
    """True and False are proved, or shown by the counterexample; None: neither is known."""
    reason: str
    counterexample: RiskMinimiser | None = None
    smallest_alpha: float | None = None
    """On [0, 1] and for the given ratio: :func:`mauc.theory.smallest_alpha`."""
    largest_alpha: float | None = None

    def __str__(self) -> str:
        answer = {True: "consistent", False: "not consistent", None: "not decided"}[self.consistent]
        return f"{self.scores} scores: {answer}, {self.reason}"


@dataclass(frozen=True)
class ConsistencyReport:
    """Result of :func:`consistency_report`; ``print`` it for a table."""

    surrogate: str
    differentiable: Point
    convex: Point
    non_increasing: Point
    slope_at_zero: Point
    verdict: Verdict
    note: str = ""

    @property
    def points(self) -> tuple[Point, ...]:
        """The four requirements, in the order of the theorem."""
        return (self.differentiable, self.convex, self.non_increasing, self.slope_at_zero)

    @property
    def satisfied(self) -> bool:
        """True if all four hold on [−1, 1]. :attr:`consistent` says what follows for the scores."""
        return all(self.points)

    @property
    def consistent(self) -> bool | None:
        """True if the scores that minimise the risk rank best; None if neither is proved."""
        return self.verdict.consistent

    @property
    def counterexample(self) -> RiskMinimiser | None:
        """A distribution whose risk minimiser does not rank best, if the surrogate is not consistent."""
        return self.verdict.counterexample

    def __str__(self) -> str:
        verdict = "met" if self.satisfied else "not met (it is sufficient, not necessary)"
        lines = [f"{self.surrogate} on [-1, 1]: condition {verdict}"]
        lines += [f"  {'yes' if point else 'no':<4} {point.name:<20} {point.detail}".rstrip() for point in self.points]
        lines += [f"  note: {self.note}"] if self.note else []
        return "\n".join([*lines, f"  {self.verdict}"])


def consistency_report(
    surrogate: Any,
    scores: Scores = "unbounded",
    *,
    ratio: float | None = None,
    log_loss: float = 0.0,
    n_classes: int | None = None,
    alpha: float | None = None,
    **options: float,
) -> ConsistencyReport:
    r"""Report whether minimising the risk of ℓ leads to the best scores (Theorem 3, corrected).

    ℓ must be differentiable, convex and non-increasing on [−1, 1], where the differences of bounded scores are, with
    :math:`\ell'(0) < 0`. That is enough where scores are free; the theorem claims it for scores in [0, 1], where it is
    enough only if [0, 1] holds the unbounded minimiser (``docs/theory.md``).

    Parameters
    ----------
    surrogate : str or object
        A name such as ``"exponential"`` (:data:`mauc.surrogates.SURROGATES` has all), or an object with ``loss(t)`` and
        ``derivative(t)``.
    scores : {"unbounded", "unit", "softmax", "sigmoid", "log_odds"}, default="unbounded"
        The range of the scores f: the whole line, [0, 1], or softmax, sigmoid or log-odds of free logits.
    ratio : float, optional
        Largest by smallest likelihood ratio of the distributions to answer for, with bounded scores. Default: any.
    log_loss : float >= 0, default=0.0
        Weight of the log-loss beside the risk: the verdict is on the sum of both terms. Needs scores that are made of
        logits.
    n_classes : int, optional
        Number of classes to answer for; two differ from three. Default: any number.
    alpha, **options
        Parameters of a surrogate given by its name.

    Returns
    -------
    ConsistencyReport
        ``satisfied`` and the four points of the condition, each with the place at which it fails; ``consistent`` for
        these scores, and the ``counterexample``; ``verdict`` with the reason, and the α that would be consistent.
        Surrogates of this library state these facts; your own are checked on a grid of 4097 points, and for kinks on
        one 32 times as fine.

    Notes
    -----
    A kink counts wherever it is. Left of its kink the hinge is a straight line, and with bounded scores a straight line
    is minimised by scores of two levels, which do not rank: moving the kink out of [−1, 1] must not pass.

    Examples
    --------
    >>> from mauc import theory
    >>> print(theory.consistency_report("squared", alpha=0.5))
    squared on [-1, 1]: condition not met (it is sufficient, not necessary)
      yes  differentiable
      yes  convex
      no   non-increasing       rises from t = 0.5 on
      yes  negative slope at 0  -1
      unbounded scores: consistent, for every alpha: its minimiser is a multiple of the posterior, in closed form
    >>> report = theory.consistency_report("exponential", scores="unit", ratio=400, alpha=1)
    >>> report.satisfied, report.consistent, round(report.verdict.smallest_alpha, 3)
    (True, False, 2.996)
    >>> report.counterexample.optimal
    False
    >>> both = {"alpha": 4, "log_loss": 1}
    >>> [theory.consistency_report("exponential", "softmax", **both, n_classes=n).consistent for n in (2, 3)]
    [True, False]
    >>> theory.consistency_report("exponential", "log_odds", alpha=0.5, log_loss=1).consistent
    True
    >>> theory.consistency_report("hinge").differentiable.where
    0.5
    >>> theory.consistency_report(theory.bernstein("hinge")).satisfied
    True
    """
    ratio = None if ratio is None or math.isinf(check_ratio(ratio)) else check_ratio(ratio)
    check_choice("scores", scores, SCORES)
    log_loss = check_log_loss_scores(log_loss, scores)
    n_classes = None if n_classes is None else check_whole("n_classes", n_classes, least=2)
    ell = get_surrogate(surrogate, alpha=alpha, **options)
    name = ell.name if ell.name != "custom" else type(surrogate).__name__
    named = not isinstance(ell, CustomSurrogate)
    t = np.linspace(-1.0, 1.0, GRID_POINTS)
    slope = np.asarray(ell.derivative(t), dtype=np.float64)
    if not np.isfinite(slope).all():
        k = int(np.flatnonzero(~np.isfinite(slope))[0])
        raise invalid("surrogate", "must have finite slopes", f"{slope[k]} at {t[k]:g}", "pass another surrogate")
    error = (EXACT_ERROR if named else CUSTOM_ERROR) * (float(np.abs(slope).max()) or 1.0)
    points = (
        Point("differentiable", True) if named and ell.smooth else _differentiable(ell),
        Point("convex", True) if named and ell.convex else _convex(t, slope, error),
        _non_increasing(ell, t, slope, error),
        _slope_at_zero(ell, error),
    )
    straight = bool(np.ptp(slope) <= error)
    verdict = _verdict(ell, scores, all(points), straight, ratio, named, log_loss, n_classes)
    note = "a straight line here: with bounded scores it is minimised by scores of two levels, which do not rank"
    return ConsistencyReport(name, *points, verdict, note if straight else "")


def bernstein(surrogate: Any, degree: int = 32, *, alpha: float | None = None, **options: float) -> CustomSurrogate:
    r"""Approximate a surrogate on [−1, 1] by its Bernstein polynomial, as the paper does (Corollary 2).

    .. math:: B(t) = \sum_{k=0}^{K} \ell\Bigl(\frac{2k}{K} - 1\Bigr) \binom{K}{k} s^k (1 - s)^{K - k},
        \qquad s = \frac{t + 1}{2}

    It keeps convexity and monotonicity, and it has no kink. Its error falls only like 1/K. The library itself uses
    Chebyshev polynomials, which are closer to ℓ but may ripple.

    Parameters
    ----------
    surrogate, alpha, **options
        As in :func:`consistency_report`.
    degree : int, default=32
        At most 1000: the binomial coefficients of higher degrees overflow.

    Examples
    --------
    >>> from mauc import theory
    >>> float(theory.bernstein("hinge", 4, alpha=1.0).loss(0.0))
    1.0
    """
    ell = get_surrogate(surrogate, alpha=alpha, **options)
    nodes = np.linspace(-1.0, 1.0, check_whole("degree", degree, least=1, most=1000) + 1)
    polynomial = BPoly(np.asarray(ell.loss(nodes), dtype=np.float64)[:, None], [-1.0, 1.0])
    return CustomSurrogate(polynomial, polynomial.derivative())


def _differentiable(ell: Surrogate) -> Point:
    def sides(t: float) -> tuple[float, float]:
        """Return the slopes left and right of t, from values: a derivative has one value at a kink."""
        step = 1e-7 * max(1.0, abs(t))
        left, here, right = np.asarray(ell.loss(np.array([t - step, t, t + step])), dtype=np.float64)
        return float((here - left) / step), float((right - here) / step)

    def is_kink(t: float) -> bool:
        left, right = sides(t)
        return abs(right - left) > 1e-3 * max(abs(left), abs(right), 1e-12)

    kinks = [piece.low for piece in ell.pieces[1:] if is_kink(piece.low)] or _kinks(ell)
    if not kinks:
        return Point("differentiable", True)
    first = min(kinks, key=lambda t: (abs(t) > 1.0, t))
    left, right = sides(first)
    outside = ", outside of [-1, 1]" if abs(first) > 1.0 else ""
    return Point("differentiable", False, first, f"slope {left:.3g} left of t = {first:g}, {right:.3g} right{outside}")


def _kinks(ell: Surrogate, finer: int = 32) -> list[float]:
    """Return the places in [−1, 1] where the slope of the values jumps.

    From cell to cell of a grid that is 32 times finer, a smooth slope changes a 32nd as much; at a kink, as much.
    """
    t = np.linspace(-1.0, 1.0, finer * (GRID_POINTS - 1) + 1)
    values = np.asarray(ell.loss(t), dtype=np.float64)
    coarse = np.abs(np.diff(values[::finer], n=2)) / (finer * (t[1] - t[0]))
    fine = np.zeros_like(t)
    fine[1:-1] = np.abs(np.diff(values, n=2)) / (t[1] - t[0])
    # One row of the fine grid around each inner point of the coarse one.
    around = fine[finer // 2 : -finer // 2 - 1].reshape(-1, finer)
    largest = around.max(axis=1)
    scale = float(np.abs(np.diff(values)).max()) / (t[1] - t[0])
    cells = np.flatnonzero((largest > 0.25 * coarse) & (largest > 1e-6 * scale))
    return [round(float(t[finer // 2 + k * finer + around[k].argmax()]), 5) for k in cells]


def _convex(t: Floats, slope: Floats, error: float) -> Point:
    falls = np.flatnonzero(np.diff(slope) < -error)
    if len(falls) == 0:
        return Point("convex", True)
    where = float(t[falls[0]])
    return Point("convex", False, where, f"slope falls from t = {where:.4g} on")


def _non_increasing(ell: Surrogate, t: Floats, slope: Floats, error: float) -> Point:
    rises = np.flatnonzero(slope > error)
    if len(rises) == 0:
        return Point("non-increasing", True)
    where = float(t[rises[0]])
    if rises[0] > 0:
        above = lambda s: float(np.asarray(ell.derivative(np.array([s])))[0]) - error  # noqa: E731
        where = float(brentq(above, t[rises[0] - 1], where, xtol=1e-12))
    return Point("non-increasing", False, round(where, 9), f"rises from t = {where:.4g} on")


def _slope_at_zero(ell: Surrogate, error: float) -> Point:
    slope = float(np.asarray(ell.derivative(np.zeros(1)))[0])
    satisfied = slope < -error
    return Point("negative slope at 0", satisfied, None if satisfied else 0.0, f"{slope:.4g}")


def _verdict(
    ell: Surrogate,
    scores: Scores,
    met: bool,
    straight: bool,
    ratio: float | None,
    named: bool,
    log_loss: float,
    n_classes: int | None,
) -> Verdict:
    """Return the verdict on ℓ.

    ``met``: it meets the theorem's condition; ``named``: it is a surrogate of the library, not a polynomial for it.
    """
    if scores == "log_odds":
        return _log_odds(ell, met, named, log_loss, n_classes)
    if log_loss > 0:
        return _both_terms(ell, scores, named, log_loss, n_classes)
    if scores == "unbounded":
        return _unbounded(ell, met, straight, named)
    within = _within_unit(ell, scores, ratio, named)
    if scores != "softmax" or n_classes == 2:
        return within
    found = _of_three_classes(ell, "softmax")
    if found is not None or (named and ell.name in NEVER_WITH_SOFTMAX):
        reason = "with three classes or more: rows that sum to 1 tie the columns together; with two as on [0, 1]"
        return replace(within, consistent=False, reason=reason, counterexample=found)
    return replace(within, consistent=None, reason=UNDECIDED) if within.consistent else within


def _log_odds(ell: Surrogate, met: bool, named: bool, log_loss: float, n_classes: int | None) -> Verdict:
    """Return the verdict on log-odds: two classes have one free score; with more, one α is right in every column."""
    scores: Scores = "log_odds"
    if named and ell.log_odds_alpha is not None and ell.log_odds_alpha == vars(ell)["alpha"]:
        beside = " and the log-loss" if log_loss else ""
        return Verdict(
            scores, True, f"for any number of classes: the best scores minimise every column{beside} at once"
        )
    if n_classes == 2 and met:
        return Verdict(scores, True, "with two classes: they have one score, and it is free")
    found = None if n_classes == 2 else _of_three_classes(ell, scores, log_loss)
    if found is None:
        return Verdict(scores, None, UNDECIDED)
    rates = {name: kind.log_odds_alpha for name, kind in SURROGATES.items()}
    right = " and ".join(f"{name} with alpha = {alpha:g}" for name, alpha in rates.items() if alpha is not None)
    return Verdict(scores, False, f"with three classes or more; {right} are", found)


def _both_terms(ell: Surrogate, scores: Scores, named: bool, log_loss: float, n_classes: int | None) -> Verdict:
    """Return the verdict on softmax or sigmoid scores with the log-loss."""
    if n_classes == 2:
        if scores == "softmax" and ell.smooth and ell.convex and ell.non_increasing:
            return Verdict(scores, True, "with two classes, for every alpha and every weight of the log-loss")
        return Verdict(scores, None, "proved for two classes with softmax scores and a smooth loss that never rises")
    found = _of_three_classes(ell, scores, log_loss)
    never = NEVER_WITH_SOFTMAX if scores == "softmax" else NEVER_WITH_SIGMOID
    if found is not None or (named and ell.name in never):
        reason = "with three classes or more: the two terms have different minimisers, and their sum has a third"
        return Verdict(scores, False, reason, found)
    return Verdict(scores, None, UNDECIDED)


def _unbounded(ell: Surrogate, met: bool, straight: bool, named: bool) -> Verdict:
    scores = "unbounded"
    if named and ell.name == "squared":
        return Verdict(scores, True, "for every alpha: its minimiser is a multiple of the posterior, in closed form")
    if straight and not named:
        return Verdict(scores, False, "a straight line has no least risk")
    if met:
        limit = "" if named else ", as far as the minimiser's differences stay in [-1, 1]"
        return Verdict(scores, True, f"by the condition{limit}")
    if named and not ell.smooth:
        found = risk_minimiser(ell, likelihoods(*KINKED))
        if not found.optimal:
            return Verdict(scores, False, "its minimiser ties points whose ratios differ", found)
    return Verdict(scores, None, "the condition is sufficient, not necessary")


def _within_unit(ell: Surrogate, scores: str, ratio: float | None, named: bool) -> Verdict:
    """Return the verdict on [0, 1], and on the sigmoid and softmax of two classes, which come arbitrarily close."""
    low = high = None
    proved = named and ell.name in PROVED
    if proved:
        low, high = PROVED[ell.name](math.inf if ratio is None else math.log(ratio))
        if low <= vars(ell)["alpha"] <= high and not math.isinf(low):
            for_which = "for every distribution" if ratio is None else f"for ratios within a factor of {ratio:g}"
            return Verdict(scores, True, f"{for_which}: [0, 1] holds the unbounded minimiser", None, low, high)
    found = _counterexample(ell, ratio)
    if found is not None or proved:
        return Verdict(scores, False, "the minimiser ties points at the ends of [0, 1]", found, low, high)
    return Verdict(scores, None, UNDECIDED, None, low, high)


def _counterexample(ell: Surrogate, ratio: float | None) -> RiskMinimiser | None:
    """Return the symmetric problem of five points whose minimiser on [0, 1] loses most."""
    if not _usable(ell):
        return None
    for near in NEAR:
        found = []
        for widest, rare in product(RATIOS if ratio is None else (ratio,), CENTRED):
            ratios = np.exp(0.5 * math.log(widest) * np.array([-1.0, near - 1.0, 0.0, 1.0 - near, 1.0]))
            one = risk_minimiser(ell, likelihoods(ratios, [rare, rare, 1.0, rare, rare]), "unit")
            if not one.optimal and (not ell.smooth or one.spread > 1.0 - TIE):
                found.append(one)
        if found:
            return max(found, key=lambda each: each.gap)
    return None


def _usable(ell: Surrogate) -> bool:
    """Return True for a convex ℓ, stated or checked on a grid: then a minimum found is the least."""
    slope = np.asarray(ell.derivative(np.linspace(-1.0, 1.0, 1025)))
    return bool(ell.convex or (np.diff(slope) >= -1e-9 * np.abs(slope).max()).all())


def _of_three_classes(ell: Surrogate, scores: Scores, log_loss: float = 0.0) -> RiskMinimiser | None:
    """Return the random problem of five points whose minimiser loses most; only solved ones count."""
    found = []
    for seed in range(8) if ell.smooth and _usable(ell) else ():
        g = np.random.default_rng(seed).dirichlet(np.ones(5), 3).T
        one = risk_minimiser(ell, g, scores, log_loss=log_loss)
        if not one.optimal and not one.excess > SOLVED:
            found.append(one)
    return max(found, key=lambda each: each.gap, default=None)
