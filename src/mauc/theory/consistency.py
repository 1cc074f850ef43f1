"""Theorem 3's sufficient condition for consistency, point by point, and the verdict for given scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.optimize import brentq

from mauc._typing import Floats
from mauc._validation import check_choice, check_not_negative, check_whole, invalid
from mauc.surrogates import CustomSurrogate, Surrogate, get_surrogate

__all__ = ["ConsistencyReport", "Point", "Verdict", "consistency_report", "largest_alpha", "smallest_alpha"]

Scores = Literal["unbounded", "unit", "softmax", "sigmoid", "log_odds"]
SCORES = get_args(Scores)
OF_LOGITS = ("softmax", "sigmoid", "log_odds")
"""Scores that are made of logits, so that a log-loss is defined."""

# The smallest and the largest α for which [0, 1] holds the minimiser of every problem whose ratios are within a factor
# e^L; docs/theory.md proves that no other α does. For L → ∞ the squared loss has α <= ½.
ProvedSurrogate = Literal["exponential", "logistic", "squared"]
PROVED: dict[str, Callable[[float], tuple[float, float]]] = {
    "exponential": lambda log_ratio: (0.5 * log_ratio, math.inf),
    "logistic": lambda log_ratio: (log_ratio, math.inf),
    "squared": lambda log_ratio: (0.0, 0.5 / math.tanh(0.25 * log_ratio) if log_ratio > 0 else math.inf),
}

GRID_POINTS = 4097
EXACT_ERROR, CUSTOM_ERROR = 1e-12, 1e-9
"""Rounding error of a slope relative to the largest one: of the library's surrogates, and of all other functions."""

NEVER_WITH_SOFTMAX = ("squared", "exponential")
"""Not consistent with three classes or more, with or without the log-loss: docs/theory.md proves it for all α."""
NEVER_WITH_SIGMOID = ("exponential",)
"""Not consistent with the log-loss and three classes or more: proved there too."""
UNDECIDED = "no proof is known"


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
    """True and False are proved in docs/theory.md; None: neither is known."""
    reason: str
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
        these scores; ``verdict`` with the reason, and the α that would be consistent.
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
    >>> both = {"alpha": 4, "log_loss": 1}
    >>> [theory.consistency_report("exponential", "softmax", **both, n_classes=n).consistent for n in (2, 3)]
    [True, False]
    >>> theory.consistency_report("exponential", "log_odds", alpha=0.5, log_loss=1).consistent
    True
    >>> theory.consistency_report("hinge").differentiable.where
    0.5
    """
    ratio = None if ratio is None or math.isinf(check_ratio(ratio)) else check_ratio(ratio)
    check_choice("scores", scores, SCORES)
    log_loss = check_log_loss_scores(log_loss, scores)
    n_classes = None if n_classes is None else check_whole("n_classes", n_classes, least=2)
    ell = get_surrogate(surrogate, alpha=alpha, **options)
    name = ell.name if ell.name != "custom" else type(surrogate).__name__
    named = not isinstance(ell, CustomSurrogate)
    t, slope = _slopes(ell)
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


def _slopes(ell: Surrogate) -> tuple[Floats, Floats]:
    t = np.linspace(-1.0, 1.0, GRID_POINTS)
    slope = np.asarray(ell.derivative(t), dtype=np.float64)
    if not np.isfinite(slope).all():
        k = int(np.flatnonzero(~np.isfinite(slope))[0])
        raise invalid("surrogate", "must have finite slopes", f"{slope[k]} at {t[k]:g}", "pass another surrogate")
    return t, slope


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
    """Return the verdict on ℓ, where ``docs/theory.md`` proves one.

    ``met``: it meets the theorem's condition; ``named``: it is a surrogate of the library.
    """
    name = ell.name if named else ""
    if scores == "log_odds":
        return _log_odds(ell, met, named, log_loss, n_classes)
    if log_loss > 0:
        return _both_terms(ell, scores, name, n_classes)
    if scores == "unbounded":
        return _unbounded(ell, met, straight, named)
    within = _within_unit(ell, scores, ratio, name)
    if scores != "softmax" or n_classes == 2:
        return within
    if name in NEVER_WITH_SOFTMAX:
        reason = "with three classes or more: rows that sum to 1 tie the columns together; with two as on [0, 1]"
        return replace(within, consistent=False, reason=reason)
    return replace(within, consistent=None, reason=UNDECIDED) if within.consistent else within


def _log_odds(ell: Surrogate, met: bool, named: bool, log_loss: float, n_classes: int | None) -> Verdict:
    """Return the verdict on log-odds: two classes have one free score; with more, one α is right in every column."""
    right = ell.log_odds_alpha if named else None
    if right is not None and right == vars(ell)["alpha"]:
        beside = " and the log-loss" if log_loss else ""
        reason = f"for any number of classes: the best scores minimise every column{beside} at once"
        return Verdict("log_odds", True, reason)
    if n_classes == 2 and met:
        return Verdict("log_odds", True, "with two classes: they have one score, and it is free")
    if right is not None:
        return Verdict(
            "log_odds", False, f"with three classes or more: only alpha = {right:g} is right in every column"
        )
    return Verdict("log_odds", None, UNDECIDED)


def _both_terms(ell: Surrogate, scores: Scores, name: str, n_classes: int | None) -> Verdict:
    """Return the verdict on softmax or sigmoid scores with the log-loss."""
    if n_classes == 2:
        if scores == "softmax" and ell.smooth and ell.convex and ell.non_increasing:
            return Verdict(scores, True, "with two classes, for every alpha and every weight of the log-loss")
        return Verdict(scores, None, "proved for two classes with softmax scores and a smooth loss that never rises")
    if name in (NEVER_WITH_SOFTMAX if scores == "softmax" else NEVER_WITH_SIGMOID):
        reason = "with three classes or more: the two terms have different minimisers, and their sum has a third"
        return Verdict(scores, False, reason)
    return Verdict(scores, None, UNDECIDED)


def _unbounded(ell: Surrogate, met: bool, straight: bool, named: bool) -> Verdict:
    scores = "unbounded"
    if named and ell.name == "squared":
        return Verdict(scores, True, "for every alpha: its minimiser is a multiple of the posterior, in closed form")
    if named and ell.name == "hinge":
        return Verdict(scores, False, "its minimiser ties points whose ratios differ")
    if straight and isinstance(ell, CustomSurrogate):
        return Verdict(scores, False, "a straight line has no least risk")
    if met:
        limit = "" if named else ", as far as the minimiser's differences stay in [-1, 1]"
        return Verdict(scores, True, f"by the condition{limit}")
    return Verdict(scores, None, "the condition is sufficient, not necessary")


def _within_unit(ell: Surrogate, scores: str, ratio: float | None, name: str) -> Verdict:
    """Return the verdict on [0, 1], and on the sigmoid and softmax of two classes, which come arbitrarily close."""
    if name == "hinge":
        return Verdict(scores, False, "for every alpha: its minimiser ties points whose ratios differ")
    if name not in PROVED:
        return Verdict(scores, None, UNDECIDED)
    low, high = PROVED[name](math.inf if ratio is None else math.log(ratio))
    if low <= vars(ell)["alpha"] <= high and not math.isinf(low):
        for_which = "for every distribution" if ratio is None else f"for ratios within a factor of {ratio:g}"
        return Verdict(scores, True, f"{for_which}: [0, 1] holds the unbounded minimiser", low, high)
    return Verdict(scores, False, "the minimiser ties points at the ends of [0, 1]", low, high)


def smallest_alpha(surrogate: ProvedSurrogate, ratio: float) -> float:
    r"""Return the smallest α for which [0, 1] holds the minimiser of the unbounded risk, for all distributions.

    With a smaller α, points whose likelihood ratios differ are tied at 0 or at 1. α must not exceed
    :func:`largest_alpha` either: the minimiser of the exponential and of the logistic loss shrinks with α, that of the
    squared loss, whose margin is α, grows with it.

    ===========  ==============  ==============================================
    surrogate    smallest α      largest α
    ===========  ==============  ==============================================
    exponential  ½ log(ratio)    ∞
    logistic     log(ratio)      ∞
    squared      0 (any above)   ½ / tanh(¼ log(ratio)), hence ½ for every ratio
    ===========  ==============  ==============================================

    Parameters
    ----------
    surrogate : {"exponential", "logistic", "squared"}
        No α is right for the hinge. For other surrogates none is proved.
    ratio : float
        Largest by smallest likelihood ratio :math:`g_i / \operatorname{mean}_{j \ne i} g_j`, up to infinity.

    Examples
    --------
    >>> from mauc import theory
    >>> round(theory.smallest_alpha("exponential", 400), 3)
    2.996
    >>> theory.smallest_alpha("squared", 1e6), round(theory.largest_alpha("squared", 1e6), 4)
    (0.0, 0.501)
    """
    return _alpha_range(surrogate, ratio)[0]


def largest_alpha(surrogate: ProvedSurrogate, ratio: float) -> float:
    """Return the largest α for which [0, 1] holds the minimiser of the unbounded risk, for all distributions.

    Parameters and table are those of :func:`smallest_alpha`.

    Examples
    --------
    >>> from mauc import theory
    >>> theory.largest_alpha("squared", float("inf"))
    0.5
    """
    return _alpha_range(surrogate, ratio)[1]


def _alpha_range(surrogate: str, ratio: float) -> tuple[float, float]:
    return PROVED[check_choice("surrogate", surrogate, tuple(PROVED))](math.log(check_ratio(ratio)))


def check_ratio(ratio: Any) -> float:
    """Return a ratio of at least 1, up to infinity."""
    value = float(ratio) if not isinstance(ratio, bool | str) else math.nan
    if not value >= 1:
        raise invalid("ratio", "must be at least 1", repr(ratio), "pass the largest likelihood ratio by the smallest")
    return value


def check_log_loss_scores(log_loss: Any, scores: str) -> float:
    """Return the weight of a log-loss, which needs scores that are made of logits."""
    if check_not_negative("log_loss", log_loss) > 0 and scores not in OF_LOGITS:
        advice = f"use scores of {', '.join(OF_LOGITS)}"
        raise invalid("log_loss", "needs scores that are made of logits", f"it with {scores!r}", advice)
    return float(log_loss)
