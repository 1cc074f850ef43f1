"""ROC curves of classes and pairs of classes, with bands that say how sure they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mauc._typing import Floats
from mauc.metrics.uncertainty import Interval

__all__ = ["ROCCurve", "band", "found_above", "simultaneous_quantile", "thinned"]


@dataclass(frozen=True, eq=False)
class ROCCurve:
    """Sensitivity over false positive rate, from (0, 0) to (1, 1), straight across ties."""

    name: str
    fpr: Floats
    tpr: Floats
    auc: Interval
    positives: float
    """Independent samples of equal weight that are worth the positives."""
    negatives: float
    point: tuple[float, float] | None = None
    """False positive rate and sensitivity of a decision."""

    def sensitivity(self, x: Floats, *, upper: bool = False) -> Floats:
        """At false positive rates ``x``; the lower or upper end where the curve is vertical."""
        return _interpolated(x, self.fpr, self.tpr, upper=upper)


def _interpolated(x: Floats, fpr: Floats, tpr: Floats, *, upper: bool = False) -> Floats:
    """The curve at rates ``x``; its lower or upper end where it is vertical, and 1 at the rate 1."""
    after = np.minimum(np.searchsorted(fpr, x, "right"), len(fpr) - 1)
    before = np.maximum(after - 1, 0)
    step = fpr[after] - fpr[before]
    part = np.divide(x - fpr[before], step, out=np.ones_like(x), where=step > 0)
    found = tpr[before] + part * (tpr[after] - tpr[before])
    if not upper:
        first = np.searchsorted(fpr, x, "left")
        exact = (fpr[np.minimum(first, len(fpr) - 1)] == x) & (x < 1.0)
        found[exact] = tpr[first[exact]]
    return np.asarray(found)


def found_above(column: NDArray[np.floating], own: NDArray[np.bool_], weight: Floats) -> tuple[Floats, Floats]:
    """Weight of the rows of the class, and of all others, that score at least each threshold, from none to all."""
    order = np.argsort(-column, kind="stable")
    falling = column[order]
    ends = np.flatnonzero(np.r_[falling[1:] != falling[:-1], True])
    true = np.cumsum(np.where(own, weight, 0.0)[order])[ends]
    false = np.cumsum(np.where(own, 0.0, weight)[order])[ends]
    return np.concatenate([[0.0], true]), np.concatenate([[0.0], false])


def band(curve: ROCCurve, x: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Low and high ends of the sensitivity at false positive rates ``x``.

    A threshold has a sensitivity and a false positive rate, which are independent shares with Wilson's intervals. What
    the second does to the first is read off the curve, and both distances add up as standard errors do (the method of
    variance estimates recovered, Zou and Donner 2008). No density is estimated, and no band is without width.
    """
    y = curve.sensitivity(x)
    low, high = _wilson(y, curve.positives, quantile)
    # The nearest rates that so many negatives can have.
    n = curve.negatives
    before = curve.sensitivity(_wilson(np.floor(n * x + 1e-9) / n, n, quantile)[0])
    after = curve.sensitivity(_wilson(np.minimum(np.ceil(n * x - 1e-9) / n, 1.0), n, quantile)[1])
    return y - np.hypot(y - low, y - before), y + np.hypot(high - y, after - y)


def _wilson(share: Floats, n: float, quantile: float) -> tuple[Floats, Floats]:
    k = quantile**2 / n
    middle, reach = (share + 0.5 * k) / (1.0 + k), np.sqrt(k * share * (1.0 - share) + 0.25 * k * k) / (1.0 + k)
    return np.minimum(share, middle - reach).clip(0.0, 1.0), np.maximum(share, middle + reach).clip(0.0, 1.0)


def simultaneous_quantile(
    curve: ROCCurve,
    x: Floats,
    level: float,
    *,
    draws: int = 400,
    most_points: int = 400,
    looks: int = 10,
    seed: int = 0,
) -> float:
    """The quantile with which :func:`band` holds the whole curve, in place of the normal one of a single point.

    From curves of samples drawn again: the largest of their distances from this one, in units of the pointwise band.
    Few samples drawn again vary too little at the ends of the curve: it is at least that of ``looks`` independent
    points. Without that, the bands of 20 positives and 20 negatives that tell nothing covered in 87 % of draws.
    """
    rng = np.random.default_rng(seed)
    pointwise = float(special.ndtri(0.5 + 0.5 * level))
    inside = (x > 0.0) & (x < 1.0)
    x = x[inside]
    y = curve.sensitivity(x)
    low, high = band(curve, x, pointwise)
    down, up = np.maximum(y - low, 1e-9), np.maximum(high - y, 1e-9)
    kept = thinned(curve.fpr, curve.tpr, most_points)
    drawn = [
        np.cumsum(rng.multinomial(max(1, round(n)), _steps(rate[kept]), draws), axis=1) / max(1, round(n))
        for rate, n in ((curve.fpr, curve.negatives), (curve.tpr, curve.positives))
    ]
    largest = np.empty(draws)
    for k, (fpr, tpr) in enumerate(zip(*drawn, strict=True)):
        moved = _interpolated(x, np.r_[0.0, fpr], np.r_[0.0, tpr]) - y
        largest[k] = np.maximum(moved / up, -moved / down).max(initial=0.0)
    least = float(special.ndtri(0.5 + 0.5 * level ** (1.0 / looks)))
    return max(least, pointwise * float(np.quantile(largest, level)))


def _steps(rate: Floats) -> Floats:
    """Differences that add up to 1."""
    found = np.maximum(np.diff(rate), 0.0)
    return np.asarray(found / found.sum())


def thinned(x: Floats, y: Floats, most: int) -> NDArray[np.intp]:
    """Places of at most so many points of a curve, at even steps along it, with both ends."""
    if len(x) <= most:
        return np.arange(len(x))
    along = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    return np.unique(np.minimum(np.searchsorted(along, np.linspace(0.0, along[-1], most)), len(x) - 1))
