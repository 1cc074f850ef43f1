"""ROC curves of classes and of pairs of classes, with confidence bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from mauc.metrics.uncertainty import Interval, Sample, interval, wilson


@dataclass(frozen=True, eq=False)
class ROCCurve:
    """Sensitivity over false positive rate, from (0, 0) to (1, 1), linear across ties."""

    name: str
    fpr: Floats
    tpr: Floats
    auc: Interval
    positives: float
    """Effective number of independent positives."""
    negatives: float
    point: tuple[float, float] | None = None
    """False positive rate and sensitivity of a decision."""

    def sensitivity(self, x: Floats, *, upper: bool = False) -> Floats:
        """Return the curve at rates ``x``; its lower or upper end where it is vertical, and 1 at the rate 1."""
        fpr, tpr = self.fpr, self.tpr
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


def band(curve: ROCCurve, x: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Return the low and high ends of the sensitivity at false positive rates ``x``.

    The sensitivity and the false positive rate at a threshold are independent shares with Wilson's intervals. The curve
    translates the interval of the false positive rate into sensitivities. The distances to both intervals are added in
    quadrature (method of variance estimates recovery, Zou and Donner 2008). The band always has a width.
    """
    y, n = curve.sensitivity(x), curve.negatives
    low, high = wilson(y, quantile**2 / curve.positives)
    # The nearest rates that n negatives can have.
    below, above = np.floor(n * x + 1e-9) / n, np.minimum(np.ceil(n * x - 1e-9) / n, 1.0)
    before = curve.sensitivity(wilson(below, quantile**2 / n)[0])
    after = curve.sensitivity(wilson(above, quantile**2 / n)[1])
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

    The bootstrap gives the largest distance of a resampled curve from this one, in units of the pointwise band. Few
    resampled rows vary too little at the ends of the curve, so the quantile is at least that of ``looks`` independent
    points. Without this limit, the bands of 20 positives and 20 negatives with random scores covered 87 %.
    """
    rng = np.random.default_rng(seed)
    pointwise = float(special.ndtri(0.5 + 0.5 * level))
    inside = (x > 0.0) & (x < 1.0)
    x = x[inside]
    y = curve.sensitivity(x)
    low, high = band(curve, x, pointwise)
    down, up = np.maximum(y - low, 1e-9), np.maximum(high - y, 1e-9)
    kept = thinned(curve.fpr, curve.tpr, most_points)
    drawn = []
    for rate, n in ((curve.fpr, curve.negatives), (curve.tpr, curve.positives)):
        rows, steps = max(1, round(n)), np.maximum(np.diff(rate[kept]), 0.0)
        drawn.append(np.cumsum(rng.multinomial(rows, steps / steps.sum(), draws), axis=1) / rows)
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
        units = np.arange(len(weight)) if group_codes is None else group_codes
        positives, negatives = (_effective_number(units[rows], weight[rows]) for rows in (own, counted & ~own))
        return ROCCurve(name, fpr, tpr, auc(v), positives, negatives, point)

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
    return ROCCurve(name, fpr, tpr, auc, float("inf"), float("inf"))


def _effective_number(units: Ints, weight: Floats) -> float:
    """Return the effective number of rows, or of groups."""
    sums = np.bincount(units, weight)
    return float(sums.sum() ** 2 / np.square(sums).sum())
