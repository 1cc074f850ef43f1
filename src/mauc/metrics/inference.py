"""How sure is a multiclass AUC? Intervals and paired comparisons by DeLong's method for U-statistics."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats
from sklearn.exceptions import UndefinedMetricWarning

from mauc._typing import Floats
from mauc._validation import check_real, check_scored_classes
from mauc.kernels.auc import auc_influence, auc_matrix
from mauc.metrics.scores import check_pair_weights, weighted_mean
from mauc.partition import ClassPartition

__all__ = ["Comparison", "Interval", "compare_mauc", "mauc_interval"]


@dataclass(frozen=True)
class Interval:
    """A multiclass AUC with its confidence interval."""

    score: float
    low: float
    high: float
    stderr: float


@dataclass(frozen=True)
class Comparison:
    """The difference of two multiclass AUCs on the same samples, with its confidence interval and paired test."""

    difference: float
    low: float
    high: float
    stderr: float
    pvalue: float


def mauc_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    absent: str = "raise",
) -> Interval:
    r"""Multiclass AUC with a confidence interval.

    Each sample has an influence :math:`h_n`, its share as a positive in its own column and as a negative in all
    others. With :math:`S_i^2` the variance of the influences inside class i,

    .. math:: \operatorname{Var} \approx \sum_i S_i^2 / n_i ,

    DeLong's estimate for U-statistics. The interval is symmetric on the logit scale, so it stays inside (0, 1), with
    the quantile of Student's t at Welch and Satterthwaite's degrees of freedom, because a rare class has few samples
    to estimate its variance from.

    Parameters
    ----------
    y_true, y_score, pairs, labels, sample_weight, absent
        As in :func:`mauc_score`. Weights are taken as sampling weights; pair weights as fixed.
    level : float, default=0.95
        Confidence level, between 0 and 1.

    Returns
    -------
    Interval
        With ``score``, ``low``, ``high``, ``stderr``. The last three are NaN, with ``UndefinedMetricWarning``, if a
        class has a single sample; ``low = high = score``, with the same warning, where all pairs are ranked perfectly
        or all wrongly.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson: Comparing the areas under two or more correlated receiver operating characteristic
    curves. Biometrics 44, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import mauc_interval
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * np.eye(3)[y]
    >>> result = mauc_interval(y, scores)
    >>> print(f"{result.score:.3f} [{result.low:.3f}, {result.high:.3f}]")
    0.871 [0.796, 0.921]
    """
    _check_level(level)
    scored = check_scored_classes(y_true, y_score, labels, sample_weight)
    partition = ClassPartition(scored.codes, len(scored.labels), scored.sample_weight)
    v = check_pair_weights(scored, partition, pairs, absent)
    if v is None:
        return Interval(np.nan, np.nan, np.nan, np.nan)
    score, influence = _score_and_influence(partition, scored.scores, v)
    stderr, freedom = _standard_error(partition, influence, scored.labels)
    if np.isnan(stderr):
        return Interval(score, np.nan, np.nan, np.nan)
    if stderr == 0.0 or not 0.0 < score < 1.0:
        _warn(
            "no influence varies within a class: the interval is the score itself and says nothing of its uncertainty"
        )
        return Interval(score, score, score, stderr)
    reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * stderr / (score * (1.0 - score))
    low, high = special.expit(special.logit(score) + np.array([-reach, reach]))
    return Interval(score, float(low), float(high), stderr)


def compare_mauc(
    y_true: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    level: float = 0.95,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    absent: str = "raise",
) -> Comparison:
    r"""Is model a better than model b? The paired difference of their multiclass AUCs on the same samples.

    The variance of the difference is that of the differences of the influences (see :func:`mauc_interval`), so what
    both models find hard cancels. The test is two-sided, of "no difference".

    Parameters
    ----------
    y_true : (N,) array of classes
    score_a, score_b : (N, C) arrays of scores of the two models
    level, pairs, labels, sample_weight, absent
        As in :func:`mauc_interval`.

    Returns
    -------
    Comparison
        With ``difference`` (a minus b), ``low``, ``high``, ``stderr``, ``pvalue``. Equal models: difference 0,
        p-value 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import compare_mauc
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [150, 40, 10])
    >>> good = rng.normal(size=(200, 3)) + 1.5 * np.eye(3)[y]
    >>> bad = good + 2 * rng.normal(size=(200, 3))
    >>> result = compare_mauc(y, good, bad)
    >>> print(f"{result.difference:.3f} [{result.low:.3f}, {result.high:.3f}], p = {result.pvalue:.1g}")
    0.193 [0.119, 0.267], p = 3e-05
    """
    _check_level(level)
    a = check_scored_classes(y_true, score_a, labels, sample_weight, "score_a")
    b = check_scored_classes(y_true, score_b, labels, sample_weight, "score_b")
    partition = ClassPartition(a.codes, len(a.labels), a.sample_weight)
    v = check_pair_weights(a, partition, pairs, absent)
    if v is None:
        return Comparison(np.nan, np.nan, np.nan, np.nan, np.nan)
    value_a, influence_a = _score_and_influence(partition, a.scores, v)
    value_b, influence_b = _score_and_influence(partition, b.scores, v)
    difference = value_a - value_b
    stderr, freedom = _standard_error(partition, influence_a - influence_b, a.labels)
    if np.isnan(stderr):
        return Comparison(difference, np.nan, np.nan, np.nan, np.nan)
    if stderr == 0.0:
        return Comparison(difference, difference, difference, 0.0, 1.0 if difference == 0.0 else 0.0)
    reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * stderr
    pvalue = 2.0 * float(stats.t.sf(abs(difference) / stderr, freedom))
    return Comparison(difference, difference - reach, difference + reach, stderr, pvalue)


def _check_level(level: float) -> None:
    check_real("level", level, low=0, high=1)


def _score_and_influence(partition: ClassPartition, scores: NDArray[np.floating], v: Floats) -> tuple[float, Floats]:
    matrix = auc_matrix(partition.problem(scores, normalised=False))
    return weighted_mean(matrix, v), auc_influence(partition.problem(scores, v))


def _standard_error(partition: ClassPartition, influence: Floats, labels: NDArray[Any]) -> tuple[float, float]:
    """Standard error of the sum over classes of the mean influence, and its degrees of freedom.

    With ``a_m`` the share of a sample in the weight of its class, the variance of a class's weighted mean is
    ``Σ a_m² (h_m − mean)²``, divided by what makes it unbiased; with equal weights this is ``S_i² / n_i``.
    """
    codes, n_classes = partition.codes, partition.n_classes
    single = np.flatnonzero(partition.counts == 1)
    if len(single):
        _warn(f"class {labels[single[0]]} has a single sample, whose variance cannot be estimated: no interval", 4)
        return np.nan, np.nan
    present = partition.present
    weight = np.ones(len(codes)) if partition.sample_weight is None else partition.sample_weight
    share = weight / partition.weights[codes]
    mean = np.bincount(codes, share * influence, n_classes)
    centred = influence - mean[codes]
    # Differences of rounding size are none: equal models must come out equal.
    centred[np.abs(centred) < 1e-14] = 0.0
    squares, cubes = (np.bincount(codes, share**k, n_classes)[present] for k in (2, 3))
    unbiased = 1.0 - 2.0 * cubes / squares + squares
    if (unbiased < 1e-12).any():
        _warn("a class has a single sample of positive weight, whose variance cannot be estimated: no interval", 4)
        return np.nan, np.nan
    variance = np.bincount(codes, (share * centred) ** 2, n_classes)[present] / unbiased
    total = float(variance.sum())
    if total == 0.0:
        return 0.0, np.inf
    effective = 1.0 / squares
    return float(np.sqrt(total)), total**2 / float(np.sum(variance**2 / (effective - 1.0)))


def _warn(message: str, stacklevel: int = 3) -> None:
    warnings.warn(message, UndefinedMetricWarning, stacklevel=stacklevel)
