"""Compute results of the first model besides pairs: classes, predicted classes, calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_curve

from mauc._typing import Floats, Ints
from mauc.metrics.inference import class_against_others, class_influence
from mauc.metrics.uncertainty import Interval, Sample, interval
from mauc.partition import ClassPartition
from mauc.report.decisions import Decision, Mistake, are_probabilities, decide, mistakes
from mauc.report.proportions import Share, independent_rows, share_of

__all__ = ["Bin", "ClassScore", "Further", "Reliability", "look_further", "reliability", "roc"]


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
    """Effective number of independent rows of the class."""


@dataclass(frozen=True)
class Bin:
    """The rows whose score lies in one tenth of [0, 1]."""

    rows: int
    mean: float
    """Mean of their scores."""
    right: Share
    """Share of them that belong to the class."""


@dataclass(frozen=True)
class Reliability:
    """Share of correct predictions by the highest score of the row."""

    bins: tuple[Bin, ...]
    error: float
    """Expected calibration error: the mean distance between score and share of right rows."""


@dataclass(frozen=True)
class Further:
    """Results of the first model by class, most frequent class first."""

    classes: tuple[ClassScore, ...]
    decisions: tuple[Decision, ...]
    """The first is what the model predicts, if that was given, else the highest score."""
    mistakes: tuple[Mistake, ...]
    """Mistakes of the first decision."""
    calibration: Reliability | None
    """None if the scores are not probabilities."""


def look_further(
    partition: ClassPartition,
    scores: NDArray[Any],
    matrix: Floats,
    *,
    level: float,
    listed: int,
    predicted: Ints | None = None,
    groups: Ints | None = None,
) -> Further:
    """Return the results by class of the model with these scores and AUCs.

    ``predicted`` are the ``(N,)`` classes that the model predicts, -1 for a class without test rows.
    """
    codes, counts = partition.codes, partition.counts
    decisions = decide(scores, codes, counts, level, predicted, groups)
    return Further(
        classes=_class_scores(partition, scores, np.nanmean(matrix, axis=1), decisions[0].predicted, level, groups),
        decisions=tuple(decisions),
        mistakes=tuple(mistakes(decisions[0], codes, counts, listed, level, groups)),
        calibration=_calibration(scores, codes, level, groups) if are_probabilities(scores) else None,
    )


@np.errstate(over="ignore", invalid="ignore")  # scikit-learn adds and subtracts scores
def _class_scores(
    partition: ClassPartition,
    scores: NDArray[Any],
    auc: Floats,
    predicted: Ints,
    level: float,
    groups: Ints | None,
) -> tuple[ClassScore, ...]:
    """Return the scores of every class; ``auc`` are their ``(C,)`` mean AUCs."""
    found = []
    for k in range(partition.n_classes):
        v = class_against_others(k, partition.present)
        influence = class_influence(partition, scores[:, k], k, v)
        own, chosen = partition.codes == k, predicted == k
        found.append(
            ClassScore(
                auc=interval(Sample.of(partition, v, groups), float(auc[k]), influence, level),
                recall=share_of(chosen, groups, level, own),
                precision=share_of(own, groups, level, chosen),
                average_precision=float(average_precision_score(own, scores[:, k])),
                rows=independent_rows(chosen, groups, own),
            )
        )
    return tuple(found)


@np.errstate(over="ignore", invalid="ignore")  # scikit-learn adds and subtracts scores
def roc(column: NDArray[Any], codes: Ints, counts: Ints, k: int) -> tuple[Floats, Floats]:
    """Return false and true positive rates of class k against the others, which count the same.

    The area under the curve is the mean AUC of the class.
    """
    fpr, tpr, _ = roc_curve(codes == k, column, sample_weight=1.0 / counts[codes], drop_intermediate=False)
    return fpr, tpr


def _calibration(scores: NDArray[Any], codes: Ints, level: float, groups: Ints | None) -> Reliability:
    taken = scores.argmax(axis=1)
    bins = reliability(scores[np.arange(len(codes)), taken], taken == codes, level, groups)
    error = sum(part.rows * abs(part.mean - part.right.score) for part in bins) / len(codes)
    return Reliability(bins, float(error))


def reliability(
    column: Floats, right: NDArray[np.bool_], level: float, groups: Ints | None, *, bins: int = 10
) -> tuple[Bin, ...]:
    """Return the bins of [0, 1] that hold rows; scores of 0.7 are calibrated if seven rows in ten are ``right``."""
    place = np.minimum((column * bins).astype(np.int64), bins - 1)
    found = []
    for k in np.unique(place):
        inside = place == k
        found.append(Bin(int(inside.sum()), float(column[inside].mean()), share_of(right, groups, level, inside)))
    return tuple(found)
