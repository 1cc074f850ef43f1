"""From scores to the ROC curves that a display draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._kernels.auc import auc_matrix, auc_matrix_and_influence
from mauc._typing import Floats, Ints
from mauc._validation import ScoredClasses, check_choice, check_scored_classes, invalid
from mauc.metrics.curves import ROCCurve, found_above
from mauc.metrics.groups import check_groups
from mauc.metrics.scores import check_pair_weights, weighted_mean
from mauc.metrics.uncertainty import Interval, Sample, interval
from mauc.partition import ClassPartition

__all__ = ["BANDS", "average_of", "check_curves", "curves_of"]

BANDS = ("auto", "pointwise", "simultaneous")
PAIRS = ("ovo", "ova")


def check_curves(curves: Sequence[ROCCurve]) -> list[ROCCurve]:
    """At least one, and all of them curves."""
    found = list(curves)
    if not found or not all(isinstance(curve, ROCCurve) for curve in found):
        came = "none" if not found else type(found[0]).__name__
        raise invalid("curves", "must hold one ROCCurve or more", came, "use from_predictions")
    return found


def curves_of(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    between: Sequence[tuple[Any, Any]] | None = None,
    pairs: str = "ovo",
    y_pred: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    absent: str = "raise",
    most: int = 8,
) -> tuple[list[ROCCurve], ROCCurve | None, int]:
    """The curves, their average over all classes, and how many classes are left out.

    Pairs of classes have no average. Parameters as in ``MulticlassROCDisplay.from_predictions``.
    """
    check_choice("pairs", pairs, PAIRS)
    scored = check_scored_classes(y_true, y_score, labels, sample_weight)
    partition = ClassPartition(scored.codes, len(scored.labels), scored.sample_weight)
    v = check_pair_weights(scored.labels, partition, pairs, absent)
    if v is None:
        raise invalid("y_true", "must hold two classes or more", "one", "multiclass AUC compares classes")
    maker = _Maker(scored, partition, check_groups(groups, len(scored.codes)), _decided(y_pred, scored), level)
    if between is not None:
        return [maker.of_pair(*(_code(scored, name, "between") for name in pair)) for pair in between], None, 0
    there = np.flatnonzero(partition.present)
    every = {int(k): maker.of_class(int(k), v) for k in there}
    average = average_of(list(every.values()), "average of all classes", maker.of_all(v))
    if classes is None:
        found = [every[int(k)] for k in there]
        shown = sorted(found, key=lambda curve: curve.auc.score)[:most] if len(found) > most else found
        return shown, average, len(found) - len(shown)
    asked = [_code(scored, name, "classes") for name in np.asarray(classes).tolist()]
    return [every[k] for k in asked if k in every], average, 0


def average_of(curves: Sequence[ROCCurve], name: str, auc: Interval | None = None) -> ROCCurve:
    """The mean sensitivity at each false positive rate; exact at all points where one of the curves bends.

    ``auc``: that of the average; default: the mean and the range of those of the curves.
    """
    x = np.unique(np.concatenate([curve.fpr for curve in curves]))
    # Just before and at each rate: where a curve is vertical, so is the average.
    before, at = (np.mean([c.sensitivity(x, upper=upper) for c in curves], axis=0) for upper in (False, True))
    scores = [curve.auc.score for curve in curves]
    if auc is None:
        auc = Interval(float(np.mean(scores)), min(scores), max(scores), float("nan"))
    fpr, tpr = np.repeat(x, 2), np.column_stack([before, at]).ravel()
    return ROCCurve(name, fpr, tpr, auc, float("inf"), float("inf"))


class _Maker:
    """Curves of one set of scores."""

    def __init__(
        self,
        scored: ScoredClasses,
        partition: ClassPartition,
        groups: Ints | None,
        decided: Ints | None,
        level: float,
    ) -> None:
        self.scored, self.partition, self.groups, self.decided, self.level = scored, partition, groups, decided, level
        self.matrix = auc_matrix(partition.problem(scored.scores, normalised=False))

    def of_class(self, k: int, v: Floats) -> ROCCurve:
        """Class k against the others, which count as in row k of ``v``."""
        row = np.zeros_like(v)
        row[k] = v[k] / v[k].sum()
        return self._curve(k, row, str(self.scored.labels[k]))

    def of_pair(self, i: int, j: int) -> ROCCurve:
        """Class i above class j by column i."""
        for k in (i, j):
            if not self.partition.present[k]:
                came = repr(self.scored.labels[k])
                raise invalid("between", "must name classes that have rows", came, "leave the pair out")
        v = np.zeros_like(self.matrix)
        v[i, j] = 1.0
        return self._curve(i, v, f"{self.scored.labels[i]} over {self.scored.labels[j]}")

    def of_all(self, v: Floats) -> Interval:
        """The multiclass AUC."""
        _, influence = auc_matrix_and_influence(self.partition.problem(self.scored.scores, v, normalised=False))
        sample = Sample.of(self.partition, v, self.groups)
        return interval(sample, weighted_mean(self.matrix, v), influence, self.level)

    def _curve(self, k: int, v: Floats, name: str) -> ROCCurve:
        partition = self.partition
        own = partition.codes == k
        # Classes weigh in the negatives as in v; the shares of the rows of a class add up to 1.
        weight = partition.shares * np.where(own, 1.0, v[k, partition.codes])
        counted = weight > 0
        column = np.asarray(self.scored.scores[:, k], dtype=np.float64)
        true, false = found_above(column[counted], own[counted], weight[counted])
        point = None
        if self.decided is not None:
            chosen = self.decided == k
            point = (float(weight[chosen & ~own].sum()), float(weight[chosen & own].sum()))
        return ROCCurve(
            name,
            false / false[-1],
            true / true[-1],
            self.of_all(v),
            self._independent(own, weight),
            self._independent(counted & ~own, weight),
            point,
        )

    def _independent(self, rows: NDArray[np.bool_], weight: Floats) -> float:
        """Rows of equal weight, or groups, that are worth these."""
        units = np.arange(len(weight)) if self.groups is None else self.groups
        sums = np.bincount(units[rows], weight[rows])
        return float(sums.sum() ** 2 / np.square(sums).sum())


def _decided(y_pred: ArrayLike | None, scored: ScoredClasses) -> Ints | None:
    if y_pred is None:
        return None
    given = np.asarray(y_pred)
    if given.shape != scored.codes.shape:
        advice = "pass one decided class for each row"
        raise invalid("y_pred", f"must have the shape ({len(scored.codes)},)", f"{given.shape}", advice)
    place = {name: k for k, name in enumerate(scored.labels.tolist())}
    return np.array([place.get(name, -1) for name in given.tolist()])


def _code(scored: ScoredClasses, name: Any, parameter: str) -> int:
    there = scored.labels.tolist()
    if name not in there:
        advice = f"choose from {', '.join(map(str, there[:8]))}" + (", …" if len(there) > 8 else "")
        raise invalid(parameter, "must name classes of labels", repr(name), advice)
    return int(there.index(name))
