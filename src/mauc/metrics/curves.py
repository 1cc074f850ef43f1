"""ROC curves of classes and of pairs of classes, with confidence bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.metrics import roc_curve

from mauc._typing import Floats, Ints, PairName
from mauc._validation import (
    check_groups,
    check_pair_name,
    check_predicted,
    check_scored_classes,
    class_position,
    invalid,
)
from mauc.metrics.inference import score_and_influence
from mauc.metrics.scores import present_pairs
from mauc.metrics.uncertainty import Interval, Sample, design_effect, interval, wilson


@dataclass(frozen=True, eq=False)
class Strata:
    """The rows on one side of a curve. Each of their classes is a sample of its own, with a fixed part in the rate."""

    weights: Floats
    """``(J,)`` part ``v_j`` of each class in the rate; they sum to 1."""
    sizes: Floats
    """``(J,)`` effective number ``n_j`` of independent rows of each class."""
    points: Sequence[Ints]
    """For each class, the points of the curve at which its rows are counted, ascending."""
    shares: Sequence[Floats]
    """For each class, 0 and the running sum of the shares of these rows."""

    @classmethod
    def of(cls, codes: Ints, weight: Floats, points: Ints, groups: Ints | None, thresholds: int = 40) -> Strata:
        """Return the strata of rows with the classes, weights, points and groups.

        The rows of a group may depend on each other. One design effect divides all sizes: the variance of the rate with
        these groups over that with independent rows, summed over thresholds.
        """
        order = np.lexsort((points, codes))
        codes, weight, points = codes[order], weight[order], points[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        each = [slice(*ends) for ends in pairwise([*starts, len(codes)])]
        weights = np.add.reduceat(weight, starts)
        share = weight / np.repeat(weights, np.diff([*starts, len(codes)]))
        sizes = 1.0 / np.add.reduceat(share**2, starts)
        found = cls(
            weights / weights.sum(), sizes, [points[one] for one in each], [np.cumsum(share[one]) for one in each]
        )
        found = replace(found, shares=[np.r_[0.0, sums] for sums in found.shares])
        if groups is None:
            return found
        at = np.unique(points[np.linspace(0, len(points) - 1, thresholds).astype(np.int64)])
        rows = [len(one) for one in found.points]
        errors = (weight * ((points <= k) - np.repeat(found.at(k), rows)) for k in at)
        return replace(found, sizes=np.maximum(sizes / design_effect(errors, groups[order]), 1.0))

    def at(self, points: Ints) -> Floats:
        """Return the ``(J, X)`` shares of the rows of each class that are counted at these points."""
        return np.array(
            [sums[np.searchsorted(own, points, "right")] for own, sums in zip(self.points, self.shares, strict=True)]
        )

    def interval(self, shares: Floats, quantile: float) -> tuple[Floats, Floats]:
        r"""Return the low and high ends of the rates :math:`\sum_j v_j F_j`, from the ``(J, X)`` shares.

        The variance of a rate is :math:`\sum_j v_j^2 F_j (1 - F_j) / n_j`. Wilson's interval of each share has the
        smaller quantile with which the sum of the ends has this variance (Yan and Su, Statistics in Biopharmaceutical
        Research 2, 2010); one row of random scores is added to each class, for shares of 0 and 1.
        """
        weights, sizes, deviation = self.weights[:, None], self.sizes[:, None], self._deviation(shares)
        reduced = quantile * np.sqrt(np.square(deviation).sum(axis=0)) / deviation.sum(axis=0)
        low, high = wilson(shares, reduced**2 / sizes)
        return (weights * low).sum(axis=0), (weights * high).sum(axis=0)

    def reach(self, shares: Floats, quantile: float) -> Floats:
        """Return how far the rates of these rows may be from true rates with these ``(J, X)`` shares."""
        return np.asarray(quantile * np.sqrt(np.square(self._deviation(shares)).sum(axis=0)))

    def _deviation(self, shares: Floats) -> Floats:
        """Return the ``(J, X)`` standard deviations of the terms of the rate, with a row of random scores added."""
        sizes = self.sizes[:, None]
        near = (sizes * shares + 0.5) / (sizes + 1.0)
        return np.asarray(self.weights[:, None] * np.sqrt(near * (1.0 - near) / sizes))


@dataclass(frozen=True, eq=False)
class ROCCurve:
    """Sensitivity over false positive rate, from (0, 0) to (1, 1), linear across ties."""

    name: str
    fpr: Floats
    tpr: Floats
    auc: Interval
    positives: Strata | None = None
    """None for a mean of curves, which has no band."""
    negatives: Strata | None = None
    point: tuple[float, float] | None = None
    """False positive rate and sensitivity of a decision."""

    def sensitivity(self, x: Floats, *, upper: bool = False) -> Floats:
        """Return the curve at rates ``x``; its lower or upper end where it is vertical, and 1 at the rate 1."""
        before, after, part = self._between(x)
        found = self.tpr[before] + part * (self.tpr[after] - self.tpr[before])
        if not upper:
            first = np.searchsorted(self.fpr, x, "left")
            exact = (self.fpr[np.minimum(first, len(self.fpr) - 1)] == x) & (x < 1.0)
            found[exact] = self.tpr[first[exact]]
        return np.asarray(found)

    def negative_shares(self, x: Floats) -> Floats:
        """Return the ``(J, X)`` shares of the rows of each negative class at the false positive rates ``x``."""
        assert self.negatives is not None
        before, after, part = self._between(x)
        low, high = self.negatives.at(before), self.negatives.at(after)
        return np.asarray(low + part * (high - low))

    def _between(self, x: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the points before and after the rates ``x``, and the part of the way from one to the other."""
        after = np.minimum(np.searchsorted(self.fpr, x, "right"), len(self.fpr) - 1)
        before = np.maximum(after - 1, 0)
        step = self.fpr[after] - self.fpr[before]
        return before, after, np.divide(x - self.fpr[before], step, out=np.ones_like(x), where=step > 0)


def band(curve: ROCCurve, x: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Return the low and high ends of the sensitivity at false positive rates ``x``.

    The sensitivity and the false positive rate at a threshold are independent rates. The curve translates the interval
    of the false positive rate into sensitivities. It holds both the true rates that this rate may have, and the rates
    that these rows may have where the true rate is ``x``: with the first alone, bands of 50 positives and 100 negatives
    covered 81 % at a rate of .01, where there may be no negative at all. The distances to the ends of both intervals
    are added in quadrature (method of variance estimates recovery, Zou and Donner 2008). The band always has a width.
    """
    assert curve.positives is not None
    assert curve.negatives is not None
    y = curve.sensitivity(x)
    low, high = curve.positives.interval(y[None], quantile)
    # The nearest rates that the negatives can have.
    step = float((curve.negatives.weights / curve.negatives.sizes).max())
    first = np.searchsorted(curve.fpr, x + 1e-9, "right") - 1
    last = np.searchsorted(curve.fpr, x - 1e-9, "left")
    below, above = np.maximum(curve.fpr[first], x - step), np.minimum(curve.fpr[last], x + step)
    least, _ = curve.negatives.interval(curve.negative_shares(below), quantile)
    _, most = curve.negatives.interval(curve.negative_shares(above), quantile)
    reach = curve.negatives.reach(curve.negative_shares(x), quantile)
    before = curve.sensitivity(np.minimum(least, x - reach).clip(0.0, 1.0))
    after = curve.sensitivity(np.maximum(most, x + reach).clip(0.0, 1.0), upper=True)
    return y - np.hypot(y - low, y - before), y + np.hypot(high - y, after - y)


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
    """Return the quantile for which :func:`band` covers the whole curve; the normal quantile covers one point.

    The bootstrap, within each class, gives the largest distance of a resampled curve from this one, in units of the
    pointwise band. Few resampled rows vary too little at the ends of the curve, so the quantile is at least that of
    ``looks`` independent points. Without this limit, the bands of 20 positives and 20 negatives with random scores
    covered 87 %.
    """
    assert curve.positives is not None
    assert curve.negatives is not None
    rng = np.random.default_rng(seed)
    pointwise = float(special.ndtri(0.5 + 0.5 * level))
    inside = (x > 0.0) & (x < 1.0)
    x = x[inside]
    y = curve.sensitivity(x)
    low, high = band(curve, x, pointwise)
    down, up = np.maximum(y - low, 1e-9), np.maximum(high - y, 1e-9)
    kept = thinned(curve.fpr, curve.tpr, most_points)
    drawn = []
    for strata in (curve.negatives, curve.positives):
        rate = np.zeros((draws, len(kept) - 1))
        for part, size, shares in zip(strata.weights, strata.sizes, strata.at(kept), strict=True):
            rows, steps = max(1, round(size)), np.maximum(np.diff(shares), 0.0)
            rate += part * np.cumsum(rng.multinomial(rows, steps / steps.sum(), draws), axis=1) / rows
        drawn.append(rate)
    largest = np.empty(draws)
    for k, (fpr, tpr) in enumerate(zip(*drawn, strict=True)):
        moved = replace(curve, fpr=np.r_[0.0, fpr], tpr=np.r_[0.0, tpr]).sensitivity(x) - y
        largest[k] = np.maximum(moved / up, -moved / down).max(initial=0.0)
    least = float(special.ndtri(0.5 + 0.5 * level ** (1.0 / looks)))
    return max(least, pointwise * float(np.quantile(largest, level)))


def thinned(x: Floats, y: Floats, most: int) -> NDArray[np.intp]:
    """Return the indices of at most ``most`` points of a curve, at even steps along it, with both ends."""
    if len(x) <= most:
        return np.arange(len(x))
    along = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    return np.unique(np.minimum(np.searchsorted(along, np.linspace(0.0, along[-1], most)), len(x) - 1))


def curves_of(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    between: Sequence[tuple[Any, Any]] | None = None,
    pairs: PairName = "ovo",
    y_pred: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> tuple[list[ROCCurve], ROCCurve | None, int]:
    """Return the curves, their average over all classes, and how many classes are left out.

    Classes without samples have no curve, and pairs of classes no average. Parameters are those of
    ``MulticlassROCDisplay.from_predictions``.
    """
    scored = check_scored_classes(y_true, y_score, labels, sample_weight)
    partition, v = present_pairs(scored, check_pair_name(pairs))
    group_codes = check_groups(groups, len(scored.codes))
    predicted = check_predicted(y_pred, scored.labels, len(scored.codes))

    def auc(v: Floats) -> Interval:
        return interval(Sample.of(partition, v, group_codes), *score_and_influence(partition, scored.scores, v), level)

    @np.errstate(over="ignore", invalid="ignore")  # scikit-learn adds and subtracts scores
    def curve(k: int, row: Floats, name: str) -> ROCCurve:
        """Return the curve of class k against the others with the weights ``row``."""
        v = np.zeros((len(row), len(row)))
        v[k] = row / row.sum()
        own = partition.codes == k
        weight = partition.shares * np.where(own, 1.0, v[k, partition.codes])
        counted = weight > 0
        column = np.asarray(scored.scores[:, k], dtype=np.float64)
        fpr, tpr, _ = roc_curve(own[counted], column[counted], sample_weight=weight[counted], drop_intermediate=False)
        point = None
        if predicted is not None:
            chosen = predicted == k
            point = (float(weight[chosen & ~own].sum()), float(weight[chosen & own].sum()))
        points = np.zeros(len(weight), dtype=np.int64)
        points[counted] = 1 + np.unique(-column[counted], return_inverse=True)[1]

        def strata(rows: NDArray[np.bool_]) -> Strata:
            groups = None if group_codes is None else group_codes[rows]
            return Strata.of(partition.codes[rows], weight[rows], points[rows], groups)

        return ROCCurve(name, fpr, tpr, auc(v), strata(own & counted), strata(counted & ~own), point)

    present = np.flatnonzero(partition.present)
    if between is not None:
        found = []
        for first, second in between:
            i, j = (present[class_position("between", name, scored.labels[present])] for name in (first, second))
            if i == j:
                advice = "pass pairs of classes to compare"
                raise invalid("between", "must hold pairs of two different classes", repr((first, second)), advice)
            found.append(curve(i, np.eye(partition.n_classes)[j], f"{first} over {second}"))
        return found, None, 0
    every = {int(k): curve(int(k), v[k], str(scored.labels[k])) for k in present}
    average = average_of(list(every.values()), "average of all classes", auc(v))
    if classes is not None:
        asked = [class_position("classes", name, scored.labels) for name in np.asarray(classes).tolist()]
        return [every[k] for k in asked if k in every], average, 0
    shown = lowest_auc(list(every.values()))
    return shown, average, len(every) - len(shown)


def lowest_auc(curves: list[ROCCurve], most: int = 8) -> list[ROCCurve]:
    """Return the curves with the lowest AUC, or all in their order if there are at most ``most``."""
    return sorted(curves, key=lambda curve: curve.auc.score)[:most] if len(curves) > most else curves


def average_of(curves: Sequence[ROCCurve], name: str, auc: Interval | None = None) -> ROCCurve:
    """Return the mean sensitivity at each false positive rate, exact at all points where one of the curves bends.

    ``auc`` is that of the average; default: the mean and the range of those of the curves.
    """
    x = np.unique(np.concatenate([curve.fpr for curve in curves]))
    # Just before and at each rate: where a curve is vertical, so is the average.
    before, at = (np.mean([c.sensitivity(x, upper=upper) for c in curves], axis=0) for upper in (False, True))
    scores = [curve.auc.score for curve in curves]
    if auc is None:
        auc = Interval(float(np.mean(scores)), min(scores), max(scores), float("nan"))
    fpr, tpr = np.repeat(x, 2), np.column_stack([before, at]).ravel()
    return ROCCurve(name, fpr, tpr, auc)
