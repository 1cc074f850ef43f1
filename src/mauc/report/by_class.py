"""One class at a time: how well its score finds it, with the curves that show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.metrics.curves import found_above
from mauc.metrics.inference import class_against_others, class_influence
from mauc.metrics.uncertainty import Interval, Sample, interval
from mauc.partition import ClassPartition
from mauc.report.proportions import Share, independent_rows, share_of

__all__ = ["ClassScore", "Curve", "class_scores", "precision_recall", "roc"]


@dataclass(frozen=True)
class ClassScore:
    """A class against all others."""

    auc: Interval
    """Mean of its AUCs against each of the other classes, which count the same."""
    recall: Share
    """Share of its rows that are predicted as this class."""
    precision: Share
    """Share of the rows predicted as this class that belong to it."""
    average_precision: float
    rows: float
    """How many independent rows its own are worth."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a curve from left to right."""

    x: Floats
    y: Floats


def class_scores(
    partition: ClassPartition,
    repeats: tuple[NDArray[Any], ...],
    auc: Floats,
    predicted: Ints,
    level: float,
    groups: Ints | None = None,
) -> tuple[ClassScore, ...]:
    """Of every class; ``auc`` are the ``(C,)`` means over the repeats, ``predicted`` is that of a ``Decision``."""
    found = []
    for k in range(partition.n_classes):
        v = class_against_others(k, partition.present)
        influence = np.mean([class_influence(partition, scores[:, k], k, v) for scores in repeats], axis=0)
        own, chosen = partition.codes == k, predicted == k
        in_class, among_chosen = (None if groups is None else groups[rows] for rows in (own, chosen))
        found.append(
            ClassScore(
                auc=interval(Sample.of(partition, v, groups), float(auc[k]), influence, level),
                recall=share_of(chosen[own], in_class, level),
                precision=share_of(own[chosen], among_chosen, level),
                average_precision=_average_precision(repeats[0][:, k], own),
                rows=independent_rows(chosen[own], in_class),
            )
        )
    return tuple(found)


def roc(column: NDArray[Any], codes: Ints, counts: Ints, k: int) -> Curve:
    """Class k against all others, every other class counting the same: its area is the mean AUC of the class."""
    own = codes == k
    weight = np.where(own, 1.0 / counts[k], 1.0 / ((len(counts) - 1.0) * counts[codes]))
    true, false = found_above(column, own, weight)
    return Curve(false, true)


def precision_recall(column: NDArray[Any], codes: Ints, k: int) -> Curve:
    """Recall and precision of class k among all rows as they are."""
    own = codes == k
    true, false = found_above(column, own, np.ones(len(column)))
    true, false = true[1:], false[1:]
    return Curve(true / own.sum(), true / (true + false))


def _average_precision(column: NDArray[Any], own: NDArray[np.bool_]) -> float:
    """``Σ (R_n − R_{n−1}) P_n`` over the thresholds."""
    true, false = found_above(column, own, np.ones(len(column)))
    return float(np.sum(np.diff(true) * true[1:] / (true[1:] + false[1:])) / own.sum())
