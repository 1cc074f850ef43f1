"""Compute results of the first model besides pairs: classes, predicted classes, calibration."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import average_precision_score, roc_curve

from mauc._typing import Floats, Ints
from mauc.metrics.inference import class_against_others, class_influence
from mauc.metrics.predictions import highest_score, in_own_class, predicted_as
from mauc.metrics.uncertainty import Interval, Sample, interval
from mauc.partition import ClassPartition
from mauc.report.proportions import Share, at_least, independent_rows, mean_of_shares, share_of


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


@dataclass(frozen=True, eq=False)
class Decision:
    """A rule that predicts a class for each row, and its accuracy."""

    name: str
    words: str
    shares: sparse.csc_array
    """``(N, C)`` share of each row that is predicted as each class; a tie is split in equal parts."""
    confusion: Floats
    """``(C, C)`` with ``[i, j]`` = rows of class i that are predicted as class j."""
    accuracy: Share
    balanced_accuracy: Share

    def share_in(self, k: int) -> Floats:
        """Return the ``(N,)`` share of each row that is predicted as class k."""
        return np.asarray(self.shares[:, [k]].toarray().ravel())

    @property
    def text(self) -> str:
        """The rule and its accuracy in words."""
        return f"Predicted class: {self.words}. Accuracy {self.accuracy}, balanced accuracy {self.balanced_accuracy}."


@dataclass(frozen=True)
class Mistake:
    """Rows of class i that are predicted as class j."""

    i: int
    j: int
    rows: float
    of_class: Share
    """Their share of the rows of class i."""


def tenths(rows: float) -> int | float:
    """Return a number of rows as people read it: whole, or with one decimal where ties count in parts."""
    rounded = round(float(rows), 1)
    return int(rounded) if rounded.is_integer() else rounded


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
    predicted: Ints | None,
    groups: Ints | None,
) -> Further:
    """Return the results by class of the model with these scores and AUCs.

    ``predicted`` are the ``(N,)`` classes that the model predicts, -1 for a class without test rows. There is a
    calibration if all scores lie in [0, 1]: probabilities of each class against all others need not sum to 1.
    """
    codes = partition.codes
    highest = highest_score(scores.T)
    tied = "; a row with several counts for each in equal parts" if highest.nnz > len(codes) else ""
    rules = [("highest score", f"the one with the highest score{tied}", highest)]
    if predicted is not None:
        given = predicted_as(predicted, partition.n_classes)
        rules.insert(0, ("prediction of the model", "the one that the model predicts", given))
    decisions = [_decision(*rule, partition, level, groups) for rule in rules]
    are_probabilities = scores.min() >= 0.0 and scores.max() <= 1.0
    return Further(
        classes=_class_scores(partition, scores, np.nanmean(matrix, axis=1), decisions[0], level, groups),
        decisions=tuple(decisions),
        mistakes=_mistakes(decisions[0], partition, listed, level, groups),
        calibration=_calibration(scores, in_own_class(highest, codes), level, groups) if are_probabilities else None,
    )


@np.errstate(over="ignore", invalid="ignore")  # scikit-learn adds and subtracts scores
def _class_scores(
    partition: ClassPartition,
    scores: NDArray[Any],
    auc: Floats,
    decision: Decision,
    level: float,
    groups: Ints | None,
) -> tuple[ClassScore, ...]:
    """Return the scores of every class; ``auc`` are their ``(C,)`` mean AUCs."""
    found = []
    for k in range(partition.n_classes):
        v = class_against_others(k, partition.present)
        influence = class_influence(partition, scores[:, k], k, v)
        own, chosen = partition.codes == k, decision.share_in(k)
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


def _decision(
    name: str, words: str, shares: sparse.csr_array, partition: ClassPartition, level: float, groups: Ints | None
) -> Decision:
    n, codes = partition.n_classes, partition.codes
    own = predicted_as(codes, n)
    confusion = (own.T @ shares).toarray()
    right = in_own_class(shares, codes)
    rows = np.array([independent_rows(right, groups, codes == k) for k in range(n)])
    balanced = mean_of_shares(confusion.diagonal() * rows / partition.counts, rows, level)
    return Decision(name, words, shares.tocsc(), confusion, share_of(right, groups, level), balanced)


def _mistakes(
    decision: Decision, partition: ClassPartition, listed: int, level: float, groups: Ints | None
) -> tuple[Mistake, ...]:
    """Return the most reliable mistakes first: by the low end of the interval of their share of the class."""
    i, j = np.nonzero(decision.confusion)
    wrong = [(int(a), int(b), float(decision.confusion[a, b])) for a, b in zip(i, j, strict=True) if a != b]
    wrong.sort(key=lambda each: -at_least(each[2], float(partition.counts[each[0]]), level))
    return tuple(
        Mistake(a, b, rows, share_of(decision.share_in(b), groups, level, partition.codes == a))
        for a, b, rows in wrong[:listed]
    )


@np.errstate(over="ignore", invalid="ignore")  # scikit-learn adds and subtracts scores
def roc(column: NDArray[Any], codes: Ints, counts: Ints, k: int) -> tuple[Floats, Floats]:
    """Return false and true positive rates of class k against the others, which count the same.

    The area under the curve is the mean AUC of the class.
    """
    fpr, tpr, _ = roc_curve(codes == k, column, sample_weight=1.0 / counts[codes], drop_intermediate=False)
    return fpr, tpr


def _calibration(scores: NDArray[Any], right: Floats, level: float, groups: Ints | None) -> Reliability:
    bins = reliability(scores.max(axis=1), right, level, groups)
    error = sum(part.rows * abs(part.mean - part.right.score) for part in bins) / len(right)
    return Reliability(bins, float(error))


def reliability(
    column: Floats, right: NDArray[np.bool_] | Floats, level: float, groups: Ints | None, *, bins: int = 10
) -> tuple[Bin, ...]:
    """Return the bins of [0, 1] that hold rows; scores of 0.7 are calibrated if seven rows in ten are ``right``."""
    place = np.minimum((column * bins).astype(np.int64), bins - 1)
    found = []
    for k in np.unique(place):
        inside = place == k
        found.append(Bin(int(inside.sum()), float(column[inside].mean()), share_of(right, groups, level, inside)))
    return tuple(found)
