"""Theorem 3's sufficient condition for consistency, point by point, and what follows for the scores at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_choice, check_not_negative, check_whole, invalid
from mauc.plan import APPROXIMATIONS, DEFAULT_BERNSTEIN_DEGREE, bernstein, chebyshev_interpolant
from mauc.surrogates import CustomSurrogate, Surrogate, get_surrogate
from mauc.theory.alphas import checked_ratio
from mauc.theory.minimiser import RiskMinimiser
from mauc.theory.verdict import Verdict, judge

__all__ = ["ConsistencyReport", "Point", "consistency_report"]

GRID_POINTS = 4097
# Error of a slope, relative to the largest one: exact derivatives err by rounding, those of polynomials by more of it,
# and differences of values, over steps of 1e-6, by far more.
EXACT_ERROR, POLYNOMIAL_ERROR, DIFFERENCES_ERROR = 1e-12, 1e-9, 1e-5
# A kink is looked for where the slope changes so many times as much as three cells away, then in ever smaller cells
# down to this width, relative to the interval. There a smooth bend has flattened out by a factor of some thousands, far
# below this share of the change on the grid, which a kink keeps.
SUSPICIOUS, NARROWEST, KEPT_BY_A_KINK = 1.3, 1e-7, 0.25
# Two kinks nearer than this, relative to the interval, are one that was found in two cells.
KINKS_APART = 1e-3
# Slopes on the two sides of a declared kink that differ by less, relative to the larger, are the same slope.
SAME_SLOPE = 1e-3


@dataclass(frozen=True)
class Point:
    """One requirement of the theorem."""

    name: str
    """``"differentiable"``, ``"convex"``, ``"non-increasing"`` or ``"negative slope at 0"``."""
    satisfied: bool
    where: float | None
    """A place where it fails, the leftmost one found; None where it holds."""
    detail: str

    def __bool__(self) -> bool:
        return self.satisfied


@dataclass(frozen=True)
class ConsistencyReport:
    """What :func:`consistency_report` found; ``print`` it for a table."""

    surrogate: str
    interval: tuple[float, float]
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
        """All four hold on the interval. What follows depends on the scores: :attr:`consistent`."""
        return all(self.points)

    @property
    def consistent(self) -> bool | None:
        """Whether the scores asked about that minimise the risk rank best; None where neither is proved."""
        return self.verdict.consistent

    @property
    def counterexample(self) -> RiskMinimiser | None:
        """A distribution whose risk minimiser does not rank best, where it is not consistent."""
        return self.verdict.counterexample

    def __str__(self) -> str:
        verdict = "met" if self.satisfied else "not met (it is sufficient, not necessary)"
        low, high = self.interval
        lines = [f"{self.surrogate} on [{low:g}, {high:g}]: condition {verdict}"]
        lines += [f"  {'yes' if point else 'no':<4} {point.name:<20} {point.detail}".rstrip() for point in self.points]
        lines += [f"  note: {self.note}"] if self.note else []
        return "\n".join([*lines, f"  {self.verdict}"])


def consistency_report(
    surrogate: Any,
    scores: str = "unbounded",
    *,
    interval: ArrayLike = (-1.0, 1.0),
    ratio: float | None = None,
    log_loss: float = 0.0,
    n_classes: int | None = None,
    approximation: str | None = None,
    degree: int = DEFAULT_BERNSTEIN_DEGREE,
    alpha: float | None = None,
    **options: float,
) -> ConsistencyReport:
    r"""Whether minimising the risk of ℓ leads to the best scores (Theorem 3, corrected).

    ℓ must be differentiable, convex and non-increasing on the interval of score differences, with
    :math:`\ell'(0) < 0`. That is enough where scores are free; the theorem claims it for scores in [0, 1], where it is
    enough only if the interval holds the unbounded minimiser (``docs/theory.md``). Bernstein polynomials inherit the
    last three from ℓ (Corollary 2) and are differentiable even where ℓ has a kink; Chebyshev polynomials come closer to
    ℓ but may ripple.

    Parameters
    ----------
    surrogate : str, object or callable
        A name such as ``"exponential"`` (:data:`mauc.surrogates.SURROGATES` has all), an object with ``loss(t)`` and
        ``derivative(t)``, or just a function ℓ(t) of an array.
    scores : {"unbounded", "unit", "softmax", "sigmoid", "log_odds"}, default="unbounded"
        What f is taken from: the whole line, [0, 1], or softmax, sigmoid or log-odds of free logits.
    interval : (low, high), default=(-1, 1)
        Of the differences of scores, where the condition is looked at; it must hold 0.
    ratio : float, optional
        Largest by smallest likelihood ratio of the distributions to answer for, with bounded scores. Default: any.
    log_loss : float >= 0, default=0.0
        Weight of the log-loss beside the risk: judge the sum of both terms, on scores that are made of logits. With 0
        the risk alone is judged.
    n_classes : int, optional
        Answer for so many classes; two differ from three. Default: any number.
    approximation : {"bernstein", "chebyshev"}, optional
        Judge the polynomial that stands for ℓ on the interval instead of ℓ.
    degree : int, default=32
        Of that polynomial.
    alpha, **options
        Parameters of a surrogate given by its name.

    Returns
    -------
    ConsistencyReport
        ``satisfied`` and the four points of the condition, each with where it fails; ``consistent``, for the scores
        asked about, and the ``counterexample``; in ``verdict`` the reason and the α that would do. Surrogates of this
        library are judged by their stated facts and exact derivatives; callables on a grid of 4097 points, refined
        where their slope jumps.

    Notes
    -----
    A kink counts wherever it is. Left of its kink the hinge is a straight line, and with bounded scores a straight line
    is minimised by scores of two levels, which do not rank: moving the kink out of the interval must not pass.

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
    >>> theory.consistency_report("hinge", approximation="bernstein").satisfied
    True
    """
    low, high = _interval(interval)
    ratio = None if ratio is None or checked_ratio(ratio) == np.inf else checked_ratio(ratio)
    name, ell, tolerance = _subject(surrogate, alpha, options)
    named = approximation is None and not isinstance(ell, CustomSurrogate)
    if approximation is None:
        facts = ell if named else None
        differentiable, convex = _differentiable(ell, facts, low, high), _convex(ell, facts, low, high, tolerance)
    else:
        fit = bernstein if check_choice("approximation", approximation, APPROXIMATIONS) == "bernstein" else None
        value, slope = (fit or chebyshev_interpolant)(ell.loss, low, high, check_whole("degree", degree, least=1))
        name, tolerance = f"{approximation} polynomial of degree {degree} of {name}", POLYNOMIAL_ERROR
        ell = CustomSurrogate(value, slope)
        differentiable = Point("differentiable", True, None, "a polynomial")
        convex = _convex(ell, None, low, high, tolerance)
    points = (
        differentiable,
        convex,
        _non_increasing(ell, low, high, tolerance),
        _slope_at_zero(ell, low, high, tolerance),
    )
    note = _note(ell, low, high, tolerance)
    verdict = judge(
        ell,
        scores,
        met=all(points),
        straight=bool(note),
        ratio=ratio,
        named=named,
        log_loss=check_not_negative("log_loss", log_loss),
        n_classes=None if n_classes is None else check_whole("n_classes", n_classes, least=2),
    )
    return ConsistencyReport(name, (low, high), *points, verdict, note)


def _interval(interval: ArrayLike) -> tuple[float, float]:
    try:
        ends = np.asarray(interval, dtype=np.float64)
    except (TypeError, ValueError):
        ends = np.empty(0)
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < 0 < ends[1]:
        requirement = "must be two finite numbers, the first below 0 and the second above"
        raise invalid("interval", requirement, repr(interval), "differences of softmax scores are in (-1, 1)")
    return float(ends[0]), float(ends[1])


def _subject(surrogate: Any, alpha: float | None, options: dict[str, float]) -> tuple[str, Surrogate, float]:
    """A name for the report, the surrogate, and how far its slopes can be trusted."""
    if callable(surrogate) and not hasattr(surrogate, "loss"):
        if alpha is not None or options:
            given = next(iter(options), "alpha")
            raise invalid(given, "goes with a surrogate's name", "it with a function", "put it into the function")
        name = getattr(surrogate, "__name__", type(surrogate).__name__)
        return name, CustomSurrogate(_vectorised(surrogate), _differences(_vectorised(surrogate))), DIFFERENCES_ERROR
    ell = get_surrogate(surrogate, alpha=alpha, **options)
    own_name = ell.name if ell.name != "custom" else type(surrogate).__name__
    return own_name, ell, EXACT_ERROR if not isinstance(ell, CustomSurrogate) else POLYNOMIAL_ERROR


def _vectorised(function: Callable[..., Any]) -> Callable[[Floats], Floats]:
    def values(t: Floats) -> Floats:
        out = np.asarray(function(t), dtype=np.float64)
        if out.shape != t.shape:
            advice = "write it with NumPy, or wrap it in np.vectorize"
            raise invalid("surrogate", "must map an array to one of its shape", f"shape {out.shape}", advice)
        return out

    return values


def _differences(function: Callable[[Floats], Floats], step: float = 1e-6) -> Callable[[Floats], Floats]:
    return lambda t: (function(t + step) - function(t - step)) / (2.0 * step)


def _slopes(ell: Surrogate, low: float, high: float) -> tuple[Floats, Floats, float]:
    """A grid, the slopes on it, and the largest of them."""
    t = np.linspace(low, high, GRID_POINTS)
    slope = np.asarray(ell.derivative(t), dtype=np.float64)
    if not np.isfinite(slope).all():
        k = int(np.flatnonzero(~np.isfinite(slope))[0])
        raise invalid("surrogate", "must have finite slopes", f"{slope[k]} at {t[k]:g}", "choose another interval")
    return t, slope, float(np.abs(slope).max()) or 1.0


def _differentiable(ell: Surrogate, facts: Surrogate | None, low: float, high: float) -> Point:
    if facts is not None and facts.smooth:
        return Point("differentiable", True, None, "")
    declared = [piece.low for piece in ell.pieces[1:]]
    kinks = [t for t in declared if _jump(ell, t)]
    if not kinks:
        kinks = _found_kinks(ell, low, high)
    if not kinks:
        return Point("differentiable", True, None, "")
    first = min(kinks, key=lambda t: (not low <= t <= high, t))
    left, right = _sides(ell, first)
    outside = "" if low <= first <= high else ", outside of the interval"
    return Point("differentiable", False, first, f"slope {left:.3g} left of t = {first:g}, {right:.3g} right{outside}")


def _sides(ell: Surrogate, t: float) -> tuple[float, float]:
    """Slopes just left and right of t, from values: a derivative has one value at a kink."""
    step = 1e-7 * max(1.0, abs(t))
    at = np.array([t - step, t, t + step])
    left, here, right = np.asarray(ell.loss(at), dtype=np.float64)
    return float((here - left) / step), float((right - here) / step)


def _jump(ell: Surrogate, t: float) -> bool:
    left, right = _sides(ell, t)
    return abs(right - left) > SAME_SLOPE * max(abs(left), abs(right), 1e-12)


def _found_kinks(ell: Surrogate, low: float, high: float) -> list[float]:
    """Places within the interval where the slope of the values jumps.

    Where the slope changes more than around it, the cell is halved again and again: the change of a smooth ℓ shrinks
    with the cell, that of a kink stays.
    """
    t = np.linspace(low, high, GRID_POINTS)
    slope = np.diff(np.asarray(ell.loss(t), dtype=np.float64)) / np.diff(t)
    jump = np.abs(np.diff(slope))
    around = np.maximum(np.roll(jump, 3), np.roll(jump, -3))
    around[:3], around[-3:] = jump[3:6], jump[-6:-3]
    scale = float(np.abs(slope).max()) or 1.0
    found: list[float] = []
    for k in np.flatnonzero(jump > SUSPICIOUS * around + 1e-6 * scale):
        left, right = float(t[k]), float(t[k + 2])
        while right - left > NARROWEST * (high - low):
            quarter = np.linspace(left, right, 5)
            steps = np.diff(np.asarray(ell.loss(quarter), dtype=np.float64)) / np.diff(quarter)
            m = int(np.abs(np.diff(steps)).argmax())
            left, right = float(quarter[m]), float(quarter[m + 2])
        outer = np.array([left - (right - left), left, right, right + (right - left)])
        values = np.asarray(ell.loss(outer), dtype=np.float64)
        change = abs((values[3] - values[2]) - (values[1] - values[0])) / (right - left)
        middle = round(0.5 * (left + right), 5)
        if change > KEPT_BY_A_KINK * jump[k] and (not found or middle - found[-1] > KINKS_APART * (high - low)):
            found.append(middle)
    return found


def _convex(ell: Surrogate, facts: Surrogate | None, low: float, high: float, tolerance: float) -> Point:
    if facts is not None and facts.convex:
        return Point("convex", True, None, "")
    t, slope, scale = _slopes(ell, low, high)
    falls = np.flatnonzero(np.diff(slope) < -tolerance * scale)
    if len(falls) == 0:
        return Point("convex", True, None, "")
    where = float(t[falls[0]])
    return Point("convex", False, where, f"slope falls from t = {where:.4g} on")


def _non_increasing(ell: Surrogate, low: float, high: float, tolerance: float) -> Point:
    t, slope, scale = _slopes(ell, low, high)
    rises = np.flatnonzero(slope > tolerance * scale)
    if len(rises) == 0:
        return Point("non-increasing", True, None, "")
    begin, end = float(t[max(rises[0] - 1, 0)]), float(t[rises[0]])
    while end - begin > 1e-12 * (high - low) and rises[0] > 0:
        middle = 0.5 * (begin + end)
        if not begin < middle < end:
            break
        if float(np.asarray(ell.derivative(np.array([middle])))[0]) > tolerance * scale:
            end = middle
        else:
            begin = middle
    return Point("non-increasing", False, round(end, 9), f"rises from t = {end:.4g} on")


def _slope_at_zero(ell: Surrogate, low: float, high: float, tolerance: float) -> Point:
    slope = float(np.asarray(ell.derivative(np.zeros(1)))[0])
    satisfied = slope < -tolerance * _slopes(ell, low, high)[2]
    return Point("negative slope at 0", satisfied, None if satisfied else 0.0, f"{slope:.4g}")


def _note(ell: Surrogate, low: float, high: float, tolerance: float) -> str:
    _, slope, scale = _slopes(ell, low, high)
    if np.ptp(slope) > tolerance * scale:
        return ""
    return "a straight line here: with bounded scores it is minimised by scores of two levels, which do not rank"
