"""Multiclass AUC of Dask collections: the functions of :mod:`mauc.metrics`, under the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.base import tokenize
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_real, check_whole, invalid
from mauc.dask._counting import ScoredPartitions
from mauc.metrics import Comparison, Interval
from mauc.metrics.inference import NO_DIFFERENCE, warn_of_singles
from mauc.metrics.scores import weighted_mean
from mauc.metrics.uncertainty import Moments, comparison_of_moments, interval_of_moments

__all__ = ["BinnedScore", "binned_mauc_score", "compare_mauc", "mauc_interval", "mauc_score", "pairwise_auc"]


def pairwise_auc(y_true: Any, y_score: Any, *, labels: ArrayLike | None = None, sample_weight: Any = None) -> Floats:
    """:func:`mauc.pairwise_auc` of Dask collections.

    Parameters
    ----------
    y_true : Dask array or series of classes
    y_score : Dask array or data frame of scores, one column per class
        A data frame's columns that are named as the classes are taken by name. Partitions of unknown size are fine.
    labels, sample_weight
        As in :func:`mauc.pairwise_auc`; the weights are a Dask array or series.

    Returns
    -------
    (C, C) array
        A NumPy array, equal to that of :func:`mauc.pairwise_auc` but for the last digits of float64.

    Notes
    -----
    Each partition is read three times: its classes, its scores in their own columns, its other scores. Persist what is
    costly to make. Every worker receives the N own-class scores once, 8 N bytes in float64, at most 2²⁵ of them at a
    time; for that, more samples are passed over several times, once per block of columns.
    An error in a partition names it and the row in it.

    Examples
    --------
    >>> import dask.array as da
    >>> from mauc.dask import pairwise_auc
    >>> y = da.from_array(["cat", "cat", "dog", "fox"], chunks=2)
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> pairwise_auc(y, da.from_array(scores, chunks=(2, 3)))
    array([[ nan, 0.5 , 1.  ],
           [0.75,  nan, 1.  ],
           [1.  , 1.  ,  nan]])
    """
    scored = ScoredPartitions(y_true, labels, sample_weight, {"y_score": y_score})
    return scored.rankings[0].matrix() if scored.rankings else np.full((1, 1), np.nan)


def mauc_score(
    y_true: Any,
    y_score: Any,
    *,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: Any = None,
    absent: str = "raise",
) -> float:
    """:func:`mauc.mauc_score` of Dask collections; parameters as there, input and cost as in :func:`pairwise_auc`.

    Examples
    --------
    >>> import dask.array as da
    >>> from mauc.dask import mauc_score
    >>> y = da.from_array(["cat", "cat", "dog", "fox"], chunks=2)
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> mauc_score(y, da.from_array(scores, chunks=(2, 3)))
    0.875
    """
    scored = ScoredPartitions(y_true, labels, sample_weight, {"y_score": y_score}, pairs=pairs, absent=absent)
    v = scored.pair_weights()
    return float(np.nan) if v is None else weighted_mean(scored.rankings[0].matrix(), v)


def mauc_interval(
    y_true: Any,
    y_score: Any,
    *,
    level: float = 0.95,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: Any = None,
    absent: str = "raise",
) -> Interval:
    """:func:`mauc.mauc_interval` of Dask collections; parameters as there, input as in :func:`pairwise_auc`.

    One pass more than the score. A partition of n rows sends back where its negatives stand among the own-class scores,
    at most 16 n bytes per class, and each worker receives 8 N bytes once more; 8 N bytes stay on the workers meanwhile.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from mauc.dask import mauc_interval
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * np.eye(3)[y]
    >>> result = mauc_interval(da.from_array(y, chunks=50), da.from_array(scores, chunks=(50, 3)))
    >>> print(f"{result.score:.3f} [{result.low:.3f}, {result.high:.3f}]")
    0.871 [0.797, 0.921]
    """
    level = check_real("level", level, low=0, high=1)
    scored = ScoredPartitions(y_true, labels, sample_weight, {"y_score": y_score}, pairs=pairs, absent=absent)
    v = scored.pair_weights()
    if v is None:
        return Interval(np.nan, np.nan, np.nan, np.nan)
    sizes = scored.totals.sizes(v)
    warn_of_singles(sizes, scored.labels)
    score, mean, influences = scored.rankings[0].influences(v)
    (squares,) = scored.squares([influences], [mean])
    return interval_of_moments(sizes, score, Moments(mean, squares), level)


def compare_mauc(
    y_true: Any,
    score_a: Any,
    score_b: Any,
    *,
    level: float = 0.95,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: Any = None,
    absent: str = "raise",
) -> Comparison:
    """:func:`mauc.compare_mauc` of Dask collections; parameters as there, input and cost as in :func:`mauc_interval`,
    for both models.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from mauc.dask import compare_mauc
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [150, 40, 10])
    >>> good = rng.normal(size=(200, 3)) + 1.5 * np.eye(3)[y]
    >>> bad = good + 2 * rng.normal(size=(200, 3))
    >>> y, good, bad = (da.from_array(x, chunks=(50, 3)[: x.ndim]) for x in (y, good, bad))
    >>> result = compare_mauc(y, good, bad)
    >>> print(f"{result.difference:.3f} [{result.low:.3f}, {result.high:.3f}], p = {result.pvalue:.1g}")
    0.193 [0.118, 0.265], p = 3e-05
    """
    level = check_real("level", level, low=0, high=1)
    scored = ScoredPartitions(
        y_true, labels, sample_weight, {"score_a": score_a, "score_b": score_b}, pairs=pairs, absent=absent
    )
    v = scored.pair_weights()
    if v is None:
        return Comparison(np.nan, np.nan, np.nan, np.nan, np.nan)
    sizes = scored.totals.sizes(v)
    warn_of_singles(sizes, scored.labels)
    (a, mean_a, of_a), (b, mean_b, of_b) = (ranking.influences(v) for ranking in scored.rankings)
    squares = scored.squares([of_a, of_b], [mean_a, mean_b])
    if not squares[2].any() and tokenize(score_a) == tokenize(score_b):
        return NO_DIFFERENCE
    model_a, model_b = (a, Moments(mean_a, squares[0])), (b, Moments(mean_b, squares[1]))
    return comparison_of_moments(sizes, model_a, model_b, squares[2], level)


@dataclass(frozen=True)
class BinnedScore:
    """A multiclass AUC of binned scores, and the most by which the exact one can differ from it."""

    score: float
    error_bound: float


def binned_mauc_score(
    y_true: Any,
    y_score: Any,
    *,
    thresholds: int | ArrayLike = 1000,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: Any = None,
    absent: str = "raise",
) -> BinnedScore:
    r"""Multiclass AUC where only the bin of a score counts: for so many rows that N numbers are too many to send.

    Two samples in one bin count ½, whichever is higher. With the share :math:`h_{ij}(t)` of class j in bin t of column
    i, the exact score differs by at most :math:`\tfrac12 \sum_{i \ne j} v_{ij} \sum_t h_{ii}(t) h_{ij}(t)`, as in
    :class:`mauc.nn.MAUC`. That is small where the thresholds lie densely among the scores.

    Parameters
    ----------
    y_true, y_score, pairs, labels, sample_weight, absent
        As in :func:`mauc_score`.
    thresholds : int or (T,) increasing numbers, default=1000
        Bins lie between them: T from 0 to 1, for probabilities, or those given.

    Returns
    -------
    BinnedScore
        With ``score`` and ``error_bound``.

    Notes
    -----
    Workers receive at most 16 C (T + 1) bytes, whatever N.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from mauc.dask import binned_mauc_score
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 10_000)
    >>> scores = rng.gamma(1 + np.eye(3)[y])
    >>> scores /= scores.sum(axis=1, keepdims=True)
    >>> result = binned_mauc_score(da.from_array(y, chunks=1000), da.from_array(scores, chunks=(1000, 3)))
    >>> print(f"{result.score:.3f} +- {result.error_bound:.4f}")
    0.802 +- 0.0004
    """
    scored = ScoredPartitions(
        y_true, labels, sample_weight, {"y_score": y_score}, pairs=pairs, absent=absent, edges=_edges(thresholds)
    )
    v = scored.pair_weights()
    if v is None:
        return BinnedScore(np.nan, np.nan)
    ranking = scored.rankings[0]
    matrix, higher = ranking.matrix(), ranking.matrix(lowered=0.5)
    # Lowered by half a bin, a negative loses to what it ties with: twice the difference is the share of ties.
    return BinnedScore(weighted_mean(matrix, v), weighted_mean(higher - matrix, v))


def _edges(thresholds: Any) -> Floats:
    advice = "pass a number of thresholds from 0 to 1, or the thresholds"
    if np.ndim(thresholds) == 0:
        return np.linspace(0.0, 1.0, check_whole("thresholds", thresholds, least=2, advice=advice))
    edges = np.asarray(thresholds, dtype=np.float64)
    if edges.ndim != 1 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all() or len(edges) == 0:
        raise invalid("thresholds", "must be finite numbers in increasing order", repr(thresholds), advice)
    return edges
