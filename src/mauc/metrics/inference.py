"""How sure is a multiclass AUC? Intervals and paired comparisons that hold from two samples per class on.

DeLong's variance of a U-statistic, steadied by one imagined sample per class, and intervals whose variance is that of
the value asked about, as Wilson's for a proportion. In large samples both are DeLong's.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.exceptions import UndefinedMetricWarning

from mauc._typing import Floats, Ints
from mauc._validation import check_real, check_scored_classes
from mauc.kernels.auc import auc_influence, auc_matrix
from mauc.metrics.scores import check_pair_weights, weighted_mean
from mauc.partition import ClassPartition

__all__ = ["Comparison", "Interval", "Sample", "compare_mauc", "comparison", "interval", "mauc_interval"]

# The share of others that a sample beats varies by 1/12 where scores tell nothing: a third of what it would vary by if
# each sample beat all of the others or none.
SPREAD = 1.0 / 3.0

# What one class may borrow from the others, in samples; and what they are worth in degrees of freedom, since the others
# back it up. With 1 there, the interval of two samples among hundreds was a quarter wider and covered 99.8 %.
BORROWED = 1.0
BORROWED_FREEDOM = 2.0

# Scores of 0 and 1 are taken for a little less than certain, by this many effective samples that are half right.
UNCERTAIN = 0.5


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
    others; within class i it lies between 0 and :math:`w_i = \sum_j v_{ij} + v_{ji}`. DeLong's variance of a
    U-statistic is :math:`\sum_i S_i^2 / n_i` with the variances :math:`S_i^2` of the influences inside the classes.
    Few samples estimate them badly, as 0 where all pairs are ranked right, so each class borrows one sample from all
    classes together; the ratio of that variance to :math:`\sum_i w_i^2 \, \theta (1 - \theta) / n_i` gives the
    number :math:`m` of right-or-wrong samples that are worth these. The interval is Wilson's, all :math:`\theta` with

    .. math:: (\hat\theta - \theta)^2 \le t^2 \, \theta (1 - \theta) / m ,

    with Student's t at Welch and Satterthwaite's degrees of freedom. It stays inside [0, 1], always has a width, and
    is [low, 1] at a score of 1. In large samples it is DeLong's.

    Parameters
    ----------
    y_true, y_score, pairs, labels, sample_weight, absent
        As in :func:`mauc_score`. Weights are taken as sampling weights; pair weights as fixed.
    level : float, default=0.95
        Confidence level, between 0 and 1.

    Returns
    -------
    Interval
        With ``score``, ``low``, ``high``, ``stderr``. A class with a single sample, whose variance cannot be estimated,
        borrows all of it from the others, with ``UndefinedMetricWarning``.

    Notes
    -----
    O(N·C) time after a sort of each class, O(N) extra memory. Coverage from 2 samples per class on is in the table of
    :doc:`/results/intervals`.

    References
    ----------
    DeLong, DeLong, Clarke-Pearson: Comparing the areas under two or more correlated receiver operating characteristic
    curves. Biometrics 44, 1988.
    Wilson: Probable inference, the law of succession, and statistical inference. JASA 22, 1927.

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
    sample = Sample.of(partition, v)
    _warn_of_singles(sample, scored.labels)
    return interval(sample, *_score_and_influence(partition, scored.scores, v), level)


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
    both models find hard cancels. Test and interval agree: the interval holds all differences :math:`\delta` with

    .. math:: (\hat\delta - \delta)^2 \le t^2 \, (2 \bar\theta (1 - \bar\theta) - \delta^2 / 2) / m ,

    where :math:`\bar\theta` is the mean of both scores and :math:`m` the number of right-or-wrong samples, judged by
    independent models, that are worth these. The test is two-sided, of "no difference".

    Parameters
    ----------
    y_true : (N,) array of classes
    score_a, score_b : (N, C) arrays of scores of the two models
    level, pairs, labels, sample_weight, absent
        As in :func:`mauc_interval`.

    Returns
    -------
    Comparison
        With ``difference`` (a minus b), ``low``, ``high``, ``stderr``, ``pvalue``. Models that rank these samples alike
        have the difference 0 and the p-value 1; the interval says by how much they may still differ.

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
    sample = Sample.of(partition, v)
    _warn_of_singles(sample, a.labels)
    model_a, model_b = (_score_and_influence(partition, scores, v) for scores in (a.scores, b.scores))
    return comparison(sample, model_a, model_b, level)


@dataclass(frozen=True, eq=False)
class Sample:
    """What the variance of a multiclass AUC needs of the samples, whatever their scores."""

    codes: Ints
    share: Floats
    """``(N,)`` share of each sample in the weight of its class."""
    size: Floats
    """``(C,)`` samples of equal weight that are worth those of the class; 0 where it has none."""
    unbiased: Floats
    """``(C,)`` what ``Σ a_m² (h_m − mean)²`` over the shares ``a_m`` of a class is divided by to be the variance of its
    mean without bias; with equal weights that variance is ``S_i² / n_i``."""
    weight: Floats
    """``(C,)`` how much the class counts, ``w_i = Σ_j v_ij + v_ji``: the range of its influences."""

    @classmethod
    def of(cls, partition: ClassPartition, v: Floats) -> "Sample":
        if partition.sample_weight is None:
            square = 1.0 / np.maximum(partition.counts, 1)
            cube = square**2
        else:
            square, cube = (_sums(partition.codes, partition.shares**k, partition.n_classes) for k in (2, 3))
            square[~partition.present] = 1.0
        size = np.where(partition.present, 1.0 / square, 0.0)
        unbiased = 1.0 - 2.0 * cube / square + square
        return cls(partition.codes, partition.shares, size, unbiased, v.sum(axis=0) + v.sum(axis=1))

    @property
    def counts(self) -> NDArray[np.bool_]:
        """``(C,)`` which classes have samples and weight."""
        return (self.size > 0) & (self.weight > 0)

    def mean(self, influence: Floats) -> Floats:
        """``(C,)`` mean influence of each class."""
        return _sums(self.codes, self.share * influence, len(self.size))

    def squares(self, influence: Floats) -> Floats:
        """``(C,)`` variance of the influences of each class, times its degrees of freedom ``n_i − 1``."""
        centred = influence - self.mean(influence)[self.codes]
        # Differences of rounding size are none: equal models must come out equal.
        centred[np.abs(centred) < 1e-14] = 0.0
        of_mean = _sums(self.codes, (self.share * centred) ** 2, len(self.size))
        np.divide(of_mean, self.unbiased, out=of_mean, where=self.unbiased > 1e-12)
        return of_mean * self.size * np.maximum(self.size - 1.0, 0.0)


def _sums(codes: Ints, x: Floats, n_classes: int) -> Floats:
    """``(C,)`` sum over each class."""
    return np.bincount(codes, x, n_classes).astype(np.float64, copy=False)


def interval(sample: Sample, score: float, influence: Floats, level: float) -> Interval:
    """Wilson's interval of a score with ``(N,)`` influences."""
    mean = _inside(sample, influence)
    worth, freedom = _worth(sample, influence, mean * (1.0 - mean), score * (1.0 - score), 0.25)
    k = _quantile(level, freedom) ** 2 / worth
    middle = (score + 0.5 * k) / (1.0 + k)
    reach = math.sqrt(k * score * (1.0 - score) + 0.25 * k * k) / (1.0 + k)
    near = _less_certain(score, worth)
    return Interval(
        score,
        low=max(0.0, min(score, middle - reach)),
        high=min(1.0, max(score, middle + reach)),
        stderr=math.sqrt(near * (1.0 - near) / worth),
    )


def comparison(sample: Sample, a: tuple[float, Floats], b: tuple[float, Floats], level: float) -> Comparison:
    """Interval and test of the difference of two scores, each with its ``(N,)`` influences."""
    (score_a, influence_a), (score_b, influence_b) = a, b
    difference = score_a - score_b
    mean_a, mean_b = _inside(sample, influence_a), _inside(sample, influence_b)
    by_class = mean_a * (1.0 - mean_a) + mean_b * (1.0 - mean_b)
    in_all = score_a * (1.0 - score_a) + score_b * (1.0 - score_b)
    worth, freedom = _worth(sample, influence_a - influence_b, by_class, in_all, 0.5)
    both = _less_certain(0.5 * (score_a + score_b), worth)
    under_null = 2.0 * both * (1.0 - both)
    k = _quantile(level, freedom) ** 2 / worth
    middle = difference / (1.0 + 0.5 * k)
    reach = math.sqrt(k * (under_null * (1.0 + 0.5 * k) - 0.5 * difference**2)) / (1.0 + 0.5 * k)
    t = abs(difference) / math.sqrt(under_null / worth)
    return Comparison(
        difference,
        low=middle - reach,
        high=middle + reach,
        stderr=math.sqrt((under_null - 0.5 * (difference * worth / (worth + UNCERTAIN)) ** 2) / worth),
        pvalue=max(2.0 * float(special.stdtr(freedom, -t)), float(np.finfo(np.float64).tiny)),
    )


def _worth(sample: Sample, influence: Floats, by_class: Floats, in_all: float, unknown: float) -> tuple[float, float]:
    """How many right-or-wrong samples these are worth, ``m``, and the degrees of freedom of that estimate.

    ``by_class`` and ``in_all`` are what the influence of right-or-wrong samples would vary by, ``θ(1 − θ)``, for each
    class and for all; ``unknown`` is the same where scores tell nothing. All variances are in units of ``w_i²``.
    """
    used = sample.counts
    n, w2 = sample.size[used], sample.weight[used] ** 2
    squares = sample.squares(influence)[used] / w2
    known = np.maximum(n - 1.0, 0.0)
    prior = BORROWED * unknown
    spread = (prior * SPREAD + squares.sum()) / (prior + (known * by_class[used]).sum())
    variance = w2 / n * (prior * spread + squares) / (BORROWED + known)
    right_or_wrong = w2 / n * (prior + known * in_all) / (BORROWED + known)
    total = float(variance.sum())
    freedom = total**2 / float(np.sum(variance**2 / (known + BORROWED_FREEDOM)))
    return float(right_or_wrong.sum() / total / (w2 / n).sum()), freedom


def _inside(sample: Sample, influence: Floats) -> Floats:
    """``(C,)`` mean influence of each class as a share of its range; 0 where it does not count."""
    share = np.divide(sample.mean(influence), sample.weight, out=np.zeros(len(sample.size)), where=sample.counts)
    return np.clip(share, 0.0, 1.0)  # it rounds


def _less_certain(score: float, worth: float) -> float:
    return (score * worth + 0.5 * UNCERTAIN) / (worth + UNCERTAIN)


def _quantile(level: float, freedom: float) -> float:
    return float(special.stdtrit(freedom, 0.5 + 0.5 * level))


def _check_level(level: float) -> None:
    check_real("level", level, low=0, high=1)


def _score_and_influence(partition: ClassPartition, scores: NDArray[np.floating], v: Floats) -> tuple[float, Floats]:
    matrix = auc_matrix(partition.problem(scores, v, normalised=False))
    return weighted_mean(matrix, v), auc_influence(partition.problem(scores, v))


def _warn_of_singles(sample: Sample, labels: NDArray[Any]) -> None:
    single = labels[sample.counts & (sample.size < 1.0 + 1e-9)]
    if len(single):
        shown = ", ".join(str(name) for name in single[:8]) + (", …" if len(single) > 8 else "")
        classes = f"class {shown} has" if len(single) == 1 else f"classes {shown} have"
        warnings.warn(
            f"{classes} a single sample (of positive weight), whose variance cannot be estimated: it is left out and "
            "taken from the other classes instead",
            UndefinedMetricWarning,
            stacklevel=3,
        )
