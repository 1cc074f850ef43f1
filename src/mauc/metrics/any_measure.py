"""Intervals, paired and unpaired comparisons of any measure: a function from scores to a value with influences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from mauc._typing import Floats, Ints, PairName
from mauc._validation import check_groups, check_pair_name, check_real, check_scored_classes, invalid
from mauc.metrics.inference import NO_DIFFERENCE, Comparison, Interval, score_and_influence, warn_of_singles
from mauc.metrics.scores import scored_pairs
from mauc.metrics.uncertainty import Estimate, Sample, comparison, contrast, design_effect, estimate_of_moments
from mauc.partition import ClassPartition

__all__ = ["Measure", "MulticlassAUC", "Scored", "Value", "compare_measure", "compare_samples", "measure_interval"]


class Scored(NamedTuple):
    """Checked rows with their scores; every class has rows."""

    partition: ClassPartition
    scores: NDArray[np.floating]
    labels: NDArray[Any]
    groups: Ints | None

    @property
    def shares(self) -> Floats:
        """``(N,)`` share of each row in the weight of all."""
        return np.asarray(self.partition.shares * self.partition.priors[self.partition.codes])

    def probabilities(self) -> Floats:
        """Return the scores; raise if they are not probabilities that sum to 1 in each row."""
        found = np.asarray(self.scores, dtype=np.float64)
        off = np.abs(found.sum(axis=1) - 1.0)
        if found.min() < 0.0 or off.max() > 1e-3:
            came = f"{found.min():.3g}" if found.min() < 0.0 else f"the sum {1.0 + off.max():.4g}"
            advice = "pass predict_proba, or the softmax of logits"
            raise invalid("y_score", "must hold probabilities that sum to 1 in each row", came, advice)
        return found / found.sum(axis=1, keepdims=True)


class Value(NamedTuple):
    """The value of a measure, with what its error is made of."""

    value: float
    influence: Floats
    """``(N,)`` influence of each row. Their mean over the shares of all rows is the error, if ``v`` is None."""
    v: Floats | None = None
    """Pair weights if each class is a sample of its own, as in :func:`score_and_influence`."""
    rows: float | None = None
    """Number of rows of which the value is a share; None if it is no share."""


class Measure(Protocol):
    """A function from scores to a value with influences."""

    def evaluate(self, scored: Scored) -> Value:
        """Return the value and the influences."""
        ...


@dataclass(frozen=True)
class MulticlassAUC:
    """The multiclass AUC as a measure, with the pairs of :func:`mauc_score`."""

    pairs: PairName = "ovo"

    def evaluate(self, scored: Scored) -> Value:
        """Return the multiclass AUC."""
        v = scored.partition.pair_weights(check_pair_name(self.pairs))
        return Value(*score_and_influence(scored.partition, scored.scores, v), v)


@dataclass(frozen=True)
class Normal:
    """A value with a standard error, of which Student's t is known."""

    score: float
    stderr: float
    freedom: float

    def interval(self, level: float) -> Interval:
        """Return Student's interval."""
        reach = float(special.stdtrit(self.freedom, 0.5 + 0.5 * level)) * self.stderr
        return Interval(self.score, self.score - reach, self.score + reach, self.stderr)

    def comparison(self, level: float) -> Comparison:
        """Return the interval with the p-value of a difference of 0."""
        smallest = float(np.finfo(np.float64).tiny)  # a difference that is the same in all rows has no error
        pvalue = 2.0 * float(special.stdtr(self.freedom, -abs(self.score) / max(self.stderr, smallest)))
        found = self.interval(level)
        return Comparison(self.score, found.low, found.high, self.stderr, max(pvalue, smallest))


def measure_interval(
    measure: Measure,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Interval:
    r"""Compute a measure with a confidence interval.

    If the measure compares rows of different classes (:class:`MulticlassAUC`, :class:`PDI`), the interval is that of
    :func:`mauc_interval`. If it is a share of rows, such as a sensitivity, it is Wilson's, with the rows over their
    design effect. Otherwise it is Student's, with the variance :math:`\frac{1}{N (N - 1)} \sum_n \varphi_n^2` of the
    influences, or with ``groups`` that of their sums.

    ``measure`` is :class:`PDI`, :class:`MulticlassAUC`, :class:`AtThreshold`, :class:`Calibration` or
    :class:`ProbabilityError`. The other parameters and the result are as in :func:`mauc_interval`. Each class of
    ``labels`` needs rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.metrics import PDI, measure_interval
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["oak", "elm", "yew"], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * (y[:, None] == ["elm", "oak", "yew"])
    >>> found = measure_interval(PDI(), y, scores)
    >>> print(f"{found.score:.3f} [{found.low:.3f}, {found.high:.3f}]")
    0.794 [0.680, 0.874]
    """
    level = check_real("level", level, low=0, high=1)
    scored = check_scored(y_true, y_score, labels, sample_weight, groups)
    return estimate(scored, measure.evaluate(scored)).interval(level)


def compare_measure(
    measure: Measure,
    y_true: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    level: float = 0.95,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Comparison:
    """Compare a measure of two models on the same rows, by the differences of the influences of each row.

    For measures of classes it is the test of :func:`compare_mauc`. For others it is a paired t-test; half of a row on
    which the models differ is added for a share, so that the variance is never 0 (Agresti and Min, Statistics in
    Medicine 24, 2005).

    The parameters are those of :func:`compare_mauc` and :func:`measure_interval`. The :class:`Comparison` has
    ``difference`` (a minus b), ``low``, ``high``, ``stderr``, ``pvalue``. Identical scores give 0 ± 0.
    """
    level = check_real("level", level, low=0, high=1)
    a, b = (
        check_scored(y_true, scores, labels, sample_weight, groups, name)
        for name, scores in (("score_a", score_a), ("score_b", score_b))
    )
    if np.array_equal(a.scores, b.scores):
        return NO_DIFFERENCE
    one, two = (measure.evaluate(each) for each in (a, b))
    if one.v is not None:
        sample = Sample.of(a.partition, one.v, a.groups)
        return comparison(sample, one[:2], two[:2], level)
    difference = _normal(a, one.value - two.value, one.influence - two.influence)
    if one.rows is None or two.rows is None:
        return difference.comparison(level)
    rows = min(one.rows, two.rows)
    stderr = math.hypot(difference.stderr, math.sqrt(0.5) / rows)
    found = Normal(difference.score, stderr, max(1.0, min(difference.freedom, rows - 1.0))).comparison(level)
    return Comparison(found.difference, max(-1.0, found.low), min(1.0, found.high), stderr, found.pvalue)


def compare_samples(
    measure: Measure,
    y_a: ArrayLike,
    score_a: ArrayLike,
    y_b: ArrayLike,
    score_b: ArrayLike,
    *,
    level: float = 0.95,
    labels: ArrayLike | None = None,
    groups_a: ArrayLike | None = None,
    groups_b: ArrayLike | None = None,
) -> Comparison:
    """Compare a measure on two samples without a common row, such as two hospitals or two years.

    The distances of both values to the ends of their intervals are added in quadrature (:func:`contrast`); values that
    are no shares have Welch's t-test. Parameters and result are as in :func:`compare_measure`, for each sample.
    """
    level = check_real("level", level, low=0, high=1)
    both = [
        check_scored(y, scores, labels, None, groups, f"score_{name}")
        for name, y, scores, groups in (("a", y_a, score_a, groups_a), ("b", y_b, score_b, groups_b))
    ]
    one, two = (estimate(each, measure.evaluate(each)) for each in both)
    if isinstance(one, Estimate) and isinstance(two, Estimate):
        return contrast([one, two], np.array([1.0, -1.0]), level)
    squares = np.square([one.stderr, two.stderr])
    freedom = float(squares.sum() ** 2 / np.sum(squares**2 / [one.freedom, two.freedom]))
    return Normal(one.score - two.score, math.sqrt(squares.sum()), freedom).comparison(level)


def estimate(scored: Scored, found: Value) -> Estimate | Normal:
    """Return the value with its uncertainty."""
    if found.v is not None:
        sample = Sample.of(scored.partition, found.v, scored.groups)
        warn_of_singles(sample, scored.labels, stacklevel=4)
        return estimate_of_moments(sample, found.value, sample.moments(found.influence))
    if found.rows is None:
        return _normal(scored, found.value, found.influence)
    effect = 1.0 if scored.groups is None else design_effect([scored.shares * found.influence], scored.groups)
    return Estimate(found.value, max(found.rows / effect, 1.0), math.inf)


def _normal(scored: Scored, value: float, influence: Floats) -> Normal:
    """Return the value with the standard error of the mean influence of one sample of rows or groups."""
    whole = ClassPartition(np.zeros(len(influence), dtype=np.int64), 1, scored.partition.sample_weight)
    sample = Sample.of(whole, np.array([[0.5]]), scored.groups)
    freedom = float(sample.freedom[0])
    if freedom < 1e-9:
        raise invalid("groups", "must be two or more", "one", "pass the group of each row, or none")
    variance = float(sample.moments(influence).squares[0] / sample.unbiased[0])
    return Normal(value, math.sqrt(variance), freedom)


def check_scored(y: Any, score: Any, labels: Any, weight: Any, groups: Any, parameter: str = "y_score") -> Scored:
    """Check the arguments; raise if a class of ``labels`` has no row."""
    checked = check_scored_classes(y, score, labels, weight, parameter)
    partition, _ = scored_pairs(checked, "ovo", "raise")
    return Scored(partition, checked.scores, checked.labels, check_groups(groups, len(checked.codes)))
