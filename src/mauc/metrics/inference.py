"""Confidence intervals and paired comparisons of multiclass AUC."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from mauc._kernels.auc import auc_influence
from mauc._kernels.threads import threads
from mauc._typing import Absent, By, Floats, Pairs
from mauc._validation import (
    ScoredClasses,
    check_choice,
    check_groups,
    check_model_names,
    check_n_jobs,
    check_real,
    check_scored_classes,
    invalid,
    listing,
)
from mauc.metrics.measures import PairMeasure
from mauc.metrics.scores import scored_pairs, weighted_mean
from mauc.metrics.uncertainty import (
    NO_DIFFERENCE,
    Comparison,
    Interval,
    ModelComparison,
    Sample,
    comparison,
    holm,
    interval,
)
from mauc.partition import ClassPartition

__all__ = ["NO_DIFFERENCE", "Comparison", "Interval", "ModelComparison", "compare_mauc", "mauc_interval"]


def mauc_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    pairs: Pairs = "ovo",
    by: By = "column",
    min_sensitivity: float | None = None,
    min_specificity: float | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    absent: Absent = "raise",
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Interval:
    r"""Compute the multiclass AUC with a confidence interval.

    Each sample has an influence :math:`h_n`: what it contributes as a positive in its own column and as a negative in
    all others. Within class i it lies between 0 and :math:`w_i = \sum_j v_{ij} + v_{ji}`. DeLong's variance of a
    U-statistic is :math:`\sum_i S_i^2 / n_i`, where :math:`S_i^2` is the variance of the influences within class i.
    Few samples estimate it badly (as 0 if all pairs are ranked right), so it is shrunk to the variance of all classes
    with the weight of three samples. The ratio of :math:`\sum_i w_i^2 \, \theta (1 - \theta) / n_i` to the shrunk
    variance is the effective number :math:`m` of Bernoulli samples. Wilson's interval holds all :math:`\theta` with

    .. math:: (\hat\theta - \theta)^2 \le t^2 \, \theta (1 - \theta) / m ,

    where t is Student's quantile at Welch and Satterthwaite's degrees of freedom. The interval stays inside [0, 1],
    always has a width, and ends at 1 for a score of 1. In large samples it equals DeLong's.

    Parameters
    ----------
    y_true : (N,) array of classes, integers or strings
    y_score : (N, C) array of real scores
        Column i ranks "is class i".
    level : float, default=0.95
        Confidence level, between 0 and 1.
    groups : (N,) array, optional
        The group of each row, such as the patient of an image. Rows of one group may depend on each other: the variance
        is then that of the sums over groups. Default: all rows are independent.
    pairs, by, min_sensitivity, min_specificity, labels, sample_weight, absent, n_jobs
        As in :func:`mauc_score`. A matrix of pair weights is treated as fixed, and sample weights as sampling weights.

    Returns
    -------
    Interval
        With ``score``, ``low``, ``high``, ``stderr``. A class with a single sample has no variance: that of the other
        classes is used, with ``UndefinedMetricWarning``. The same warning is given if the region of a partial AUC holds
        fewer than 10 samples of a class, because such a score is biased upwards.

    Notes
    -----
    O(N·C) time after a sort of each class, O(N) extra memory. :doc:`/results/intervals` has the measured coverage, from
    2 samples per class on.

    The lower end can fall when the score comes closer to 1: samples that are ranked (nearly) perfectly say little about
    how often errors happen.

    No interval accounts for errors that none of a few samples shows. If a fifth of a class is mislabelled, 10 samples
    show no error in one of nine draws. :func:`multiclass_auc_report`, the HTML report and ``mauc evaluate`` print a
    note where this may matter: a class of 5 to 60 rows contributes most of the uncertainty, and each of its rows beats
    three of four others.

    With ``groups``, the rows of one class in one group take the place of a sample, and the covariance between the
    classes of a group is added. See :doc:`/results/interval-groups`.

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
    0.871 [0.797, 0.921]
    """
    level, jobs = check_real("level", level, low=0, high=1), check_n_jobs(n_jobs)
    measure = PairMeasure.checked(by, min_sensitivity, min_specificity)
    scored = check_scored_classes(y_true, y_score, labels, sample_weight)
    partition, v = scored_pairs(scored, pairs, absent)
    if v is None:
        return Interval(np.nan, np.nan, np.nan, np.nan)
    sample = _sample(scored, partition, v, groups, measure)
    with threads(jobs):
        score, influence = score_and_influence(partition, scored.scores, v, measure)
    return interval(sample, score, influence, level)


def compare_mauc(
    y_true: ArrayLike,
    score_a: ArrayLike | Mapping[str, ArrayLike],
    score_b: ArrayLike | None = None,
    *,
    against: str = "best",
    margin: float | None = None,
    level: float = 0.95,
    pairs: Pairs = "ovo",
    by: By = "column",
    min_sensitivity: float | None = None,
    min_specificity: float | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    absent: Absent = "raise",
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Comparison | list[ModelComparison]:
    r"""Compare two or more models by the paired difference of their multiclass AUCs on the same samples.

    The variance is that of the differences between the influences of each sample (see :func:`mauc_interval`), so
    samples that are hard for both models cancel out. The interval holds all differences that a score test does not
    reject; like Wilson's interval, the test uses the variance at the tested difference. The p-value is that of the
    two-sided test of "no difference"; it is never 0. For scores of cross-validation splits, use
    :func:`compare_cv_scores`.

    Parameters
    ----------
    y_true : (N,) array of classes, integers or strings
    score_a, score_b : (N, C) arrays of real scores
        Scores of the two models on the same samples; column i ranks "is class i". For several models, pass a dict of
        name -> scores as ``score_a``, and no ``score_b``.
    against : "best", "all" or a name, default="best"
        With several models: compare each with the best model, with the named model, or all with all. Holm's correction
        counts all pairs of models, because the data choose the best; with a name, it counts the pairs with that model.
    margin : float, optional
        Test non-inferiority instead, with a one-sided p-value. A small p shows that a is less than ``margin`` worse
        than b.
    level, pairs, by, min_sensitivity, min_specificity, labels, sample_weight, absent, groups, n_jobs
        As in :func:`mauc_interval`.

    Returns
    -------
    Comparison
        For two models, with ``difference`` (a minus b), ``low``, ``high``, ``stderr``, ``pvalue``. Identical scores
        give 0 ± 0 and the p-value 1. Different scores with the same ranking also give the difference 0 and the p-value
        1, but their interval has a width: they may differ on other samples.
    list of ModelComparison
        For several models: the same with ``a``, ``b`` and ``holm``, the corrected p-value. The smallest difference
        comes first.

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
    0.193 [0.118, 0.265], p = 3e-05
    >>> for found in compare_mauc(y, {"good": good, "bad": bad, "near": good + rng.normal(size=(200, 3))}):
    ...     print(f"{found.a} - {found.b}: {found.difference:+.3f}, p = {found.holm:.1g}")
    bad - good: -0.193, p = 9e-05
    near - good: -0.058, p = 0.01
    >>> compare_mauc(y, good, bad, margin=0.02).pvalue < 0.025
    True
    """
    level, jobs = check_real("level", level, low=0, high=1), check_n_jobs(n_jobs)
    measure = PairMeasure.checked(by, min_sensitivity, min_specificity)
    margin = None if margin is None else check_real("margin", margin, low=0, high=1)
    given = _models(score_a, score_b, against)
    clean = {name: check_scored_classes(y_true, scores, labels, sample_weight, name) for name, scores in given.items()}
    first = next(iter(clean.values()))
    partition, v = scored_pairs(first, pairs, absent)
    if v is not None:
        sample = _sample(first, partition, v, groups, measure)
        with threads(jobs):
            results = {name: score_and_influence(partition, one.scores, v, measure) for name, one in clean.items()}

    def compared(a: str, b: str) -> Comparison:
        if v is None:
            return Comparison(np.nan, np.nan, np.nan, np.nan, np.nan)
        if np.array_equal(clean[a].scores, clean[b].scores):
            return NO_DIFFERENCE if margin is None else replace(NO_DIFFERENCE, pvalue=float(np.finfo(np.float64).tiny))
        return comparison(sample, results[a], results[b], level, margin)

    if not isinstance(score_a, Mapping):
        return compared(*given)
    best = next(iter(given)) if v is None else max(results, key=lambda name: results[name][0])
    return _several(list(given), best, against, compared)


def _models(score_a: Any, score_b: Any, against: Any) -> dict[str, Any]:
    """Return the scores by the name of their model."""
    if not isinstance(score_a, Mapping):
        if score_b is None:
            advice = "pass the scores of the other model, or a dict of name -> scores as score_a"
            raise invalid("score_b", "must be the scores of a model", "None", advice)
        return {"score_a": score_a, "score_b": score_b}
    if score_b is not None:
        raise invalid("score_b", "must be None beside a dict of models", type(score_b).__name__, "add it to the dict")
    given = dict(zip(check_model_names(score_a, "score_a"), score_a.values(), strict=True))
    if len(given) < 2:
        raise invalid("score_a", "must hold two models or more", f"{len(given)}", "pass name -> scores")
    check_choice("against", against, ("best", "all", *given))
    return given


def _several(
    names: list[str], best: str, against: str, compared: Callable[[str, str], Comparison]
) -> list[ModelComparison]:
    """Return the requested comparisons, with Holm's correction for all possible ones."""
    if against in ("best", "all"):
        tested = [(a, b) if b == best or against == "all" else (b, a) for a, b in combinations(names, 2)]
    else:
        tested = [(name, against) for name in names if name != against]
    found = [compared(a, b) for a, b in tested]
    corrected = holm(np.array([each.pvalue for each in found]))
    several = [
        ModelComparison(**vars(each), a=a, b=b, holm=float(p))
        for (a, b), each, p in zip(tested, found, corrected, strict=True)
        if against != "best" or b == best
    ]
    return sorted(several, key=lambda each: each.difference)


def _sample(
    scored: ScoredClasses, partition: ClassPartition, v: Floats, groups: ArrayLike | None, measure: PairMeasure
) -> Sample:
    """Return the effective sizes of the classes; warn of those that are too small."""
    sample = Sample.of(partition, v, check_groups(groups, len(scored.codes)))
    warn_of_singles(sample, scored.labels, stacklevel=4)
    measure.warn_of_few(sample, v, scored.labels, stacklevel=4)
    return measure.effective(sample, v)


def score_and_influence(
    partition: ClassPartition, scores: NDArray[np.floating], v: Floats, measure: PairMeasure | None = None
) -> tuple[float, Floats]:
    """Return the weighted mean of the AUCs, and the ``(N,)`` influence of each row on it."""
    measure = measure or PairMeasure()
    matrix, influence = measure.matrix_and_influence(partition.problem(scores, v, normalised=False))
    return weighted_mean(matrix, v), influence


def class_against_others(k: int, present: NDArray[np.bool_]) -> Floats:
    """Return the ``(C, C)`` weights of the pairs of one class with each other class that has rows, ``1 / (C − 1)``."""
    v = np.zeros((len(present), len(present)))
    v[k] = present
    v[k, k] = 0.0
    return v / max(v.sum(), 1.0)


def class_influence(partition: ClassPartition, column: NDArray[np.floating], k: int, v: Floats) -> Floats:
    """Return the ``(N,)`` influence of each row on the mean AUC of class k, from its column alone.

    All other classes are merged into one, in which each has the same weight: ``O(N log N)`` time; from all columns it
    would be ``O(N C log N)``. ``v`` is that of :func:`class_against_others`.
    """
    two = ClassPartition((partition.codes == k).astype(np.int64), 2, partition.shares)
    influence = auc_influence(two.problem(np.column_stack([column, column]), np.array([[0.0, 0.0], [1.0, 0.0]])))
    return influence * np.where(partition.codes == k, 1.0, v[k, partition.codes])


def small_class_note(
    sample: Sample,
    influence: Floats,
    labels: Sequence[Any] | NDArray[Any],
    *,
    least: int = 5,
    most: int = 60,
    beats: float = 0.75,
    part: float = 2 / 3,
) -> str:
    """Return a note on a class whose few rows may hide errors from the interval; often empty.

    Such a class has ``least`` to ``most`` rows, all of which beat the share ``beats`` of the others, and contributes at
    least ``part`` of the Bernoulli variance. If some of the class is mislabelled and by chance no row shows it, the
    interval is too narrow. Smaller classes take most of their variance from the others; larger ones would show errors.
    """
    variance = np.where(sample.counts, sample.weight**2 / np.maximum(sample.size, 1.0), 0.0)
    k = int(np.argmax(variance))
    if variance[k] < part * variance.sum() or not least - 1e-9 <= sample.size[k] <= most:
        return ""
    rows = (sample.partition.codes == k) & (sample.partition.shares > 0)
    if influence[rows].min() <= beats * sample.weight[k]:
        return ""
    of = "test rows" if sample.cells is None else "groups of test rows"
    return (
        f"class {labels[k]} has {sample.size[k]:.4g} {of}, none ranked low: if other rows of "
        "this class are mislabelled or differ from these, the interval is too narrow"
    )


def warn_of_singles(sample: Sample, labels: NDArray[Any], stacklevel: int = 3) -> None:
    """Warn of the classes that have a single sample."""
    single = labels[sample.counts & (sample.size < 1.0 + 1e-9)]
    if len(single):
        classes = f"class {single[0]} has" if len(single) == 1 else f"classes {listing(single)} have"
        one = "sample" if sample.cells is None else "group"
        warnings.warn(
            f"{classes} a single {one} (of positive weight): its variance cannot be estimated, and that of the other "
            "classes is used",
            UndefinedMetricWarning,
            stacklevel=stacklevel,
        )
