"""The multiclass AUC of Hand and Till and its matrix of class pairs."""

from __future__ import annotations

import math
import warnings
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from mauc._kernels.threads import threads
from mauc._typing import Absent, By, Floats, Pairs
from mauc._validation import (
    ScoredClasses,
    check_choice,
    check_n_jobs,
    check_pairs,
    check_scored_classes,
    invalid,
    listing,
)
from mauc.metrics.measures import PairMeasure
from mauc.partition import ClassPartition

__all__ = ["mauc_score", "pairwise_auc"]

ABSENT = get_args(Absent)
MANY = 100
"""With more classes, exact sums over all pairs (``math.fsum``) would take as long as the AUCs."""


def pairwise_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    by: By = "column",
    min_sensitivity: float | None = None,
    min_specificity: float | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    r"""Compute the AUC of every ordered pair of classes: how well column i ranks class i above class j.

    .. math:: \mathrm{AUC}_{i|j} = \operatorname{mean}_{m \in N_i,\, n \in N_j}
        [F_{mi} > F_{ni}] + \tfrac12 [F_{mi} = F_{ni}]

    Parameters
    ----------
    y_true : (N,) array of classes, integers or strings
    y_score : (N, C) array of real scores
        Column i ranks "is class i"; rows need not sum to 1. For two classes, one column may score the second.
        The columns of a data frame are matched by class name, with the same text before or after each class or none:
        1, 1.0, "1" and True are one class, and so are a date in any unit and bytes and their text. If no column has the
        name of a class, or the names are the default ones of pandas or polars, they are matched by position. If only
        some match, an error is raised.
    by : {"column", "difference"}, default="column"
        Rank class i above class j by column i, or by column i minus column j, as in AUC-μ. With the difference,
        :math:`\mathrm{AUC}_{i|j} = \mathrm{AUC}_{j|i}` over the whole curve.
    min_sensitivity : float, optional
        Partial AUC: the mean specificity over sensitivities from this value, at least 0 and below 1, to 1. It is the
        AUC of the share ``1 − min_sensitivity`` of class i that is hardest to find.
    min_specificity : float, optional
        Partial AUC: the mean sensitivity over specificities from this value to 1, that is, over false positive rates up
        to ``1 − min_specificity``. It cannot be combined with ``min_sensitivity``.
    labels : (C,) array, optional
        The class of each column. Default: the sorted classes of ``y_true``.
    sample_weight : (N,) array, optional
        Weights >= 0; the mean becomes a weighted mean.

    Returns
    -------
    (C, C) array
        ``[i, j]`` is :math:`\mathrm{AUC}_{i|j}`; the matrix is not symmetric. NaN on the diagonal and for classes
        without samples.

    Notes
    -----
    O(N·C) time after a sort of each class, O(N) extra memory. With ``by="difference"`` or ``min_specificity`` all N·C
    scores are sorted: with 20 000 samples of 10 and of 100 classes, AUC-μ takes 2 and 3 times as long, and
    ``min_specificity`` 4 and 8 times.

    The ROC curve is linear across ties, so a partial AUC is exact with ties. Constant scores have a partial AUC of half
    the width ``c = 1 − min_sensitivity`` of the region, perfect scores of 1. scikit-learn's ``max_fpr``
    (``1 − min_specificity``) returns McClish's standardised area for two classes: ``(1 + (a − c / 2) / (1 − c / 2)) /
    2`` of this partial AUC ``a``.

    References
    ----------
    Kleiman, Page: AUCμ: A performance metric for multi-class machine learning models. ICML 2019.
    McClish: Analyzing a portion of the ROC curve. Medical Decision Making 9, 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import pairwise_auc
    >>> y = ["cat", "cat", "dog", "fox"]
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> pairwise_auc(y, scores)
    array([[ nan, 0.5 , 1.  ],
           [0.75,  nan, 1.  ],
           [1.  , 1.  ,  nan]])
    >>> pairwise_auc(y, scores, min_sensitivity=0.5)
    array([[  nan, 0.   , 1.   ],
           [0.625,   nan, 1.   ],
           [1.   , 1.   ,   nan]])
    """
    measure = PairMeasure.checked(by, min_sensitivity, min_specificity)
    scored = check_scored_classes(y_true, y_score, labels, sample_weight)
    partition = ClassPartition(scored.codes, len(scored.labels), scored.sample_weight)
    return measure.matrix(partition.problem(scored.scores, normalised=False))


def mauc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pairs: Pairs = "ovo",
    by: By = "column",
    min_sensitivity: float | None = None,
    min_specificity: float | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    absent: Absent = "raise",
    n_jobs: int | None = None,
) -> float:
    r"""Compute the multiclass AUC: the weighted mean of :func:`pairwise_auc` over the ordered pairs of classes.

    .. math:: \mathrm{MAUC} = \sum_{i \ne j} v_{ij} \, \mathrm{AUC}_{i|j}

    Parameters
    ----------
    y_true : (N,) array of classes, integers or strings
    y_score : (N, C) array of real scores
        Column i ranks "is class i"; rows need not sum to 1. For two classes, one column may score the second. Columns
        of a data frame are matched by class name, see :func:`pairwise_auc`.
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        ``"ovo"``: every pair counts the same, :math:`v_{ij} = 1 / (C (C - 1))`, the M of Hand and Till, equal to
        scikit-learn's ``roc_auc_score(multi_class="ovo")``. ``"ova"`` or ``"ovr"``: :math:`v_{ij} = p_j / (C (1 -
        p_i))`, the mean of the one-vs-rest AUCs. A matrix: its entries off the diagonal, normalised; a data frame's
        rows and columns are matched by class name.
    by : {"column", "difference"}, default="column"
        Rank class i above class j by column i, or by column i minus column j. The difference with ``"ovo"`` is the
        AUC-μ of Kleiman and Page. For their partition matrix A, pass the scores ``-y_score @ A.T``.
    min_sensitivity, min_specificity : float, optional
        Partial AUC, over sensitivities or specificities of at least this value; see :func:`pairwise_auc`.
    labels : (C,) array, optional
        The class of each column. Default: the sorted classes of ``y_true``.
    sample_weight : (N,) array, optional
        Weights >= 0; the mean over a class becomes a weighted mean.
    absent : {"raise", "ignore"}, default="raise"
        Raise an error if a class of ``labels`` has no samples, or ignore its pairs.
    n_jobs : int, optional
        Number of threads for half a million scores or more; -1: one per core. None: one per core, at most
        eight, and at most ``OMP_NUM_THREADS``. The result does not depend on it.

    Returns
    -------
    float
        Between 0 and 1; 0.5 for constant scores. NaN with ``UndefinedMetricWarning`` if ``absent="ignore"`` leaves no
        pair.

    References
    ----------
    Hand, Till: A simple generalisation of the area under the ROC curve for multiple class classification problems.
    Machine Learning 45, 2001.
    Kleiman, Page: AUCμ: A performance metric for multi-class machine learning models. ICML 2019.

    Examples
    --------
    >>> from mauc import mauc_score
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> mauc_score(["cat", "cat", "dog", "fox"], scores)
    0.875

    AUC-μ, and the mean specificity where at least half of a class is found:

    >>> round(mauc_score(["cat", "cat", "dog", "fox"], scores, by="difference"), 3)
    0.833
    >>> round(mauc_score(["cat", "cat", "dog", "fox"], scores, min_sensitivity=0.5), 3)
    0.771
    """
    jobs, measure = check_n_jobs(n_jobs), PairMeasure.checked(by, min_sensitivity, min_specificity)
    scored = check_scored_classes(y_true, y_score, labels, sample_weight)
    partition, v = scored_pairs(scored, pairs, absent)
    if v is None:
        return float(np.nan)
    with threads(jobs):
        return weighted_mean(measure.matrix(partition.problem(scored.scores, normalised=False)), v)


def scored_pairs(scored: ScoredClasses, pairs: Pairs, absent: str) -> tuple[ClassPartition, Floats | None]:
    """Return the partition of the rows, and the pair weights of :func:`check_pair_weights`."""
    partition = ClassPartition(scored.codes, len(scored.labels), scored.sample_weight)
    return partition, check_pair_weights(scored.labels, partition, pairs, absent, stacklevel=4)


def present_pairs(
    scored: ScoredClasses, pairs: str = "ovo", parameter: str = "y_true"
) -> tuple[ClassPartition, Floats]:
    """Return the partition and the weights of the pairs of classes that have samples; raise if there is no pair."""
    partition = ClassPartition(scored.codes, len(scored.labels), scored.sample_weight)
    if partition.present.sum() < 2:
        raise _one_class(parameter, scored.labels[partition.present][0])
    return partition, partition.pair_weights(pairs)


def _one_class(parameter: str, name: Any) -> ValueError:
    advice = "multiclass AUC compares classes; check the split"
    return invalid(parameter, "must hold two classes or more", f"only the class {name}", advice)


def check_pair_weights(
    labels: NDArray[Any], partition: ClassPartition, pairs: Pairs, absent: str, *, stacklevel: int = 3
) -> Floats | None:
    """Return the ``(C, C)`` pair weights; None, with a warning, if ``absent="ignore"`` leaves no pair."""
    check_choice("absent", absent, ABSENT)
    weights = check_pairs(pairs, partition.n_classes, labels)
    missing = labels[~partition.present]
    if absent == "raise" and len(missing):
        advice = "drop the class from labels and its column from y_score, or pass absent='ignore'"
        raise invalid("y_true", "must hold every class of labels", f"no sample of {listing(missing)}", advice)
    if absent == "raise" and partition.n_classes < 2:
        raise _one_class("y_true", labels[0])
    v = partition.pair_weights(weights)
    if v.sum() > 0:
        return v
    warnings.warn(
        "no pair of classes with positive weight has samples: multiclass AUC is undefined and returned as NaN",
        UndefinedMetricWarning,
        stacklevel=stacklevel,
    )
    return None


def weighted_mean(matrix: Floats, v: Floats) -> float:
    """Return ``Σ v_ij AUC_{i|j}`` over the pairs with weight."""
    used = v > 0
    # Numerator and denominator are summed in the same way, so perfect scores give exactly 1 and constant ones 1/2.
    if len(v) <= MANY:
        return math.fsum(v[used] * matrix[used]) / math.fsum(v[used])
    won = np.where(used, v * matrix, 0.0)
    return math.fsum(won.sum(axis=1)) / math.fsum(v.sum(axis=1))
