"""Compute intervals and tests from the influences of the rows; they are valid from two rows per class on.

The variance is DeLong's for a U-statistic, with the variance of each class shrunk to that of all classes. Intervals and
tests use the variance at the tested value, as Wilson's interval of a proportion does. In large samples both equal
DeLong's. docs/results/intervals.md has the measured coverage and size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from mauc._typing import Floats, Ints
from mauc.partition import ClassPartition

# With random scores, the share of other rows that a row beats has the variance 1/12. That is a third of the Bernoulli
# variance 1/4, the variance if each row beats all others or none.
RANDOM_RATIO = 1.0 / 3.0

# Scores of 0 and 1 are shrunk to 1/2 by this many effective rows.
PRIOR_ROWS = 0.5


class _Shrinkage(NamedTuple):
    """Amount by which the variance of a class is shrunk to that of all classes."""

    rows: float
    """Weight of the common variance, in rows."""
    least_ratio: float
    """Lower limit of the common ratio of the variance to a Bernoulli variance."""

    @property
    def freedom(self) -> float:
        """Degrees of freedom that the shrinkage adds: two for each row, since all classes contribute."""
        return 2.0 * self.rows


# A class may have errors that its few rows do not show. With ``rows=1`` and no lower limit, the intervals of a class of
# twenty rows among 500, 5 % of them mislabelled, covered 83 %. With twice this limit, intervals of 40 rows at .98 were
# a sixth wider and covered 98 %.
INTERVAL_SHRINKAGE = _Shrinkage(3.0, RANDOM_RATIO / 2.0)

# The differences of two models that make the same errors do not vary. With the shrinkage of intervals, a test with five
# rows per class did not separate a perfect ranking from constant scores.
TEST_SHRINKAGE = _Shrinkage(1.0, 0.0)


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


@dataclass(frozen=True)
class ModelComparison(Comparison):
    """One of several comparisons: model a minus model b."""

    a: str
    b: str
    holm: float
    """The p-value with Holm's correction for the number of comparisons."""


NO_DIFFERENCE = Comparison(0.0, 0.0, 0.0, 0.0, 1.0)
"""The result for identical scores, whatever the rows."""


class Moments(NamedTuple):
    """Sums over the rows from which the variance of a multiclass AUC is computed."""

    mean: Floats
    """``(C,)`` mean influence of each class."""
    squares: Floats
    """``(C,)`` ``Σ a_m² (h_m − mean)²`` over the shares ``a_m`` of the rows in the weight of their class; with groups,
    ``Σ (Σ a_m (h_m − mean))²`` over the cells."""
    cross: float = 0.0
    """Part of the sum of squares from rows of different classes in one group; 0 without groups."""
    cell_ratio: Floats | float = 1.0
    """``(C,)`` variance of the mean of a cell over that of a single row; 1 without groups."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Sizes and weights of the classes, from which the variance of a multiclass AUC is computed."""

    size: Floats
    """``(C,)`` effective number of rows of each class: that of rows of equal weight; 0 for a class without rows."""
    unbiased: Floats
    """``(C,)`` divisor that turns :attr:`Moments.squares` into the unbiased variance of the mean, ``S_i² / n_i`` with
    equal weights."""
    weight: Floats
    """``(C,)`` ``w_i = Σ_j v_ij + v_ji``, the range of the influences of the class."""
    concentration: Floats
    """``(C,)`` sum of the squared shares of the columns in the influence of a row; 1 if one column makes all of it."""
    groups: float = field(default=math.inf, kw_only=True)
    """Effective number of groups; infinite if no group has rows of two classes."""
    overlap: float = field(default=1.0, kw_only=True)
    """Factor of the variance for scores of models with common training rows; see :func:`overlap_of_folds`."""

    @classmethod
    def of_shares(cls, present: NDArray[np.bool_], square: Floats, cube: Floats, v: Floats) -> Sizes:
        """Return the sizes, from the ``(C,)`` sums of squares and of cubes of the shares; 1 where there are no rows."""
        size = np.where(present, 1.0 / square, 0.0)
        weight = v.sum(axis=0) + v.sum(axis=1)
        # A row counts in its own column as a positive, in each other one as a negative.
        share = np.divide(v + np.diag(v.sum(axis=1)), weight, out=np.zeros_like(v), where=weight > 0)
        return Sizes(size, 1.0 - 2.0 * cube / square + square, weight, np.square(share).sum(axis=0))

    @classmethod
    def of_counts(cls, counts: Ints, v: Floats) -> Sizes:
        """Return the sizes, from the number of rows of each class, all of equal weight."""
        share = 1.0 / np.maximum(counts, 1)
        return cls.of_shares(counts > 0, share, share**2, v)

    @cached_property
    def counts(self) -> NDArray[np.bool_]:
        """``(C,)`` which classes have rows, and pairs whose weight is more than rounding."""
        return (self.size > 0) & (self.weight > 1e-12)

    @cached_property
    def freedom(self) -> Floats:
        """``(C,)`` degrees of freedom of the variance of each class, ``n_i − 1``; 0 where it does not count."""
        return np.where(self.counts, np.maximum(self.size - 1.0, 0.0), 0.0)

    def scaled(self, squares: Floats) -> Floats:
        """Return the ``(C,)`` variances of the influences in units of ``w_i²``, times their degrees of freedom."""
        several = self.counts & (self.unbiased > 1e-12)
        found = np.zeros(len(self.size))
        np.divide(squares * self.size * self.freedom, self.unbiased * self.weight**2, out=found, where=several)
        return found


class Cells(NamedTuple):
    """Cells, each with the rows of one class in one group. A cell takes the place of an independent row."""

    of_row: Ints
    """``(N,)`` cell of each row."""
    codes: Ints
    """``(K,)`` class of each cell."""
    groups: Ints
    """``(K,)`` group of each cell."""
    shares: Floats
    """``(K,)`` share of the cell in the weight of its class."""

    @classmethod
    def of(cls, groups: Ints, partition: ClassPartition) -> Cells:
        """Return the cells, from the ``(N,)`` groups of the rows."""
        n_classes = partition.n_classes
        found, of_row = np.unique(groups * np.int64(n_classes) + partition.codes, return_inverse=True)
        return cls(of_row, found % n_classes, found // n_classes, _sums(of_row, partition.shares, len(found)))

    def effective_groups(self, weight: Floats) -> float:
        """Return the effective number of groups; infinite if no group has rows of two classes, because the classes are
        then independent."""
        filled = self.shares > 0
        if np.bincount(self.groups[filled]).max(initial=0) < 2:
            return np.inf
        by_group = np.bincount(self.groups, (weight[self.codes] * self.shares) ** 2)
        return float(by_group.sum() ** 2 / np.square(by_group).sum())


@dataclass(frozen=True, eq=False)
class Sample(Sizes):
    """The sizes together with the rows. With groups, a cell replaces a row: the rows of one class in one group."""

    partition: ClassPartition
    cells: Cells | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, partition: ClassPartition, v: Floats, groups: Ints | None = None, *, overlap: float = 1.0) -> Sample:
        """Return the sample, from the classes of the rows, pair weights, and the group number of each row."""
        cells = None if groups is None else Cells.of(groups, partition)
        if cells is None and partition.sample_weight is None:
            sizes = Sizes.of_counts(partition.counts, v)
        else:
            codes, shares = (partition.codes, partition.shares) if cells is None else (cells.codes, cells.shares)
            square, cube = (_sums(codes, shares**k, partition.n_classes) for k in (2, 3))
            square[~partition.present] = 1.0
            sizes = Sizes.of_shares(partition.present, square, cube, v)
        n_groups = math.inf if cells is None else cells.effective_groups(sizes.weight)
        return cls(
            *(sizes.size, sizes.unbiased, sizes.weight, sizes.concentration, partition),
            groups=n_groups,
            overlap=overlap,
            cells=cells,
        )

    def moments(self, influence: Floats) -> Moments:
        """Return the moments of ``(N,)`` influences."""
        codes, shares, n_classes = self.partition.codes, self.partition.shares, len(self.size)
        mean = _sums(codes, shares * influence, n_classes)
        centred = influence - mean[codes]
        # Differences of rounding size are set to 0: equal models must come out equal.
        centred[np.abs(centred) < 1e-14] = 0.0
        if self.cells is None:
            return Moments(mean, _sums(codes, (shares * centred) ** 2, n_classes))
        of_cells = _sums(self.cells.of_row, shares * centred, len(self.cells.codes))
        squares = _sums(self.cells.codes, of_cells**2, n_classes)
        cross = float(np.square(np.bincount(self.cells.groups, of_cells)).sum() - np.square(of_cells).sum())
        return Moments(mean, squares, cross, self._cell_ratio(_sums(codes, shares * centred**2, n_classes), squares))

    def _cell_ratio(self, row_variance: Floats, squares: Floats) -> Floats:
        """Return :attr:`Moments.cell_ratio`: ``ρ + (1 − ρ) / r_i`` for cells of ``r_i`` rows of equal weight.

        The correlation ρ of the rows of a cell is assumed to be the same for all classes. It is estimated from the
        variances of cells and of rows in all classes, and shrunk to 1 by as many cells as the variance is.
        """
        square = _sums(self.partition.codes, self.partition.shares**2, len(self.size))
        rows_per_cell = np.divide(1.0, square * self.size, out=np.ones_like(square), where=self.counts)
        single = np.divide(
            self.freedom * row_variance, self.weight**2, out=np.zeros_like(row_variance), where=self.counts
        )
        total, known = float(single.sum()), float(self.freedom.sum())
        if total <= 0.0:
            return np.ones_like(row_variance)
        prior = INTERVAL_SHRINKAGE.rows * total / known
        cells = (prior + float(self.scaled(squares).sum())) / (prior + total)
        independent = (prior + float((single / rows_per_cell).sum())) / (prior + total)
        common = min(1.0, max(0.0, (cells - independent) / (1.0 - independent))) if independent < 1.0 else 0.0
        return np.asarray(common + (1.0 - common) / rows_per_cell)


def _sums(codes: Ints, x: Floats, n_codes: int) -> Floats:
    """Return the ``(n_codes,)`` sums over the classes, or over the cells."""
    return np.bincount(codes, x, n_codes).astype(np.float64, copy=False)


def interval(sample: Sample, score: float, influence: Floats, level: float) -> Interval:
    """Return Wilson's interval of a score with ``(N,)`` influences."""
    return interval_of_moments(sample, score, sample.moments(influence), level)


def interval_of_moments(sizes: Sizes, score: float, moments: Moments, level: float) -> Interval:
    """Return :func:`interval` from the sums over the rows alone."""
    return estimate_of_moments(sizes, score, moments).interval(level)


@dataclass(frozen=True)
class Estimate:
    """A score that varies as the share of ``size`` Bernoulli rows, known to ``freedom`` degrees of freedom."""

    score: float
    size: float
    freedom: float

    @property
    def stderr(self) -> float:
        """The standard error, which is never 0."""
        shrunk = _shrunk(self.score, self.size)
        return math.sqrt(shrunk * (1.0 - shrunk) / self.size)

    def interval(self, level: float) -> Interval:
        """Return Wilson's interval."""
        low, high = wilson(self.score, _quantile(level, self.freedom) ** 2 / self.size)
        return Interval(self.score, float(low), float(high), self.stderr)


def estimate_of_moments(sizes: Sizes, score: float, moments: Moments) -> Estimate:
    """Return a score with its effective size, from the sums over the rows alone."""
    model = _Model.of(sizes, score, moments)
    # The common variance is about the mean of all rows, not about that of the class.
    from_common_mean = model.mean - np.average(model.mean, weights=np.where(sizes.counts, sizes.size, 0.0))
    size, freedom = _effective_size(
        sizes, moments, model.bernoulli, score * (1.0 - score), 0.25, INTERVAL_SHRINKAGE, from_common_mean**2
    )
    return Estimate(score, size, freedom)


def contrast(
    estimates: Sequence[Estimate], weights: Floats, level: float, correlation: Floats | None = None
) -> Comparison:
    r"""Return interval and test of the weighted sum of some scores, whose weights sum to 0.

    The distances of the scores to the ends of their intervals are added as standard errors are, with their correlation
    (method of variance estimates recovery, Zou, American Journal of Epidemiology 165, 2007):

    .. math:: L = \hat\delta - \sqrt{\sum_{kl} \rho_{kl} \, a_k a_l} ,

    where :math:`a_k = c_k (\hat\theta_k - l_k)` for weights above 0 and :math:`c_k (u_k - \hat\theta_k)` below; the
    other end exchanges the two. The p-value is one minus the highest level at which the interval excludes 0.
    """
    scores, sizes, freedom = (
        np.array([getattr(one, name) for one in estimates]) for name in ("score", "size", "freedom")
    )
    together = np.eye(len(scores)) if correlation is None else correlation
    difference = float(weights @ scores)

    def ends(at: float) -> tuple[float, float]:
        low, high = wilson(scores, special.stdtrit(freedom, 0.5 + 0.5 * at) ** 2 / sizes)
        down, up = weights * (scores - low), weights * (high - scores)
        below, above = np.where(weights > 0.0, down, up), np.where(weights > 0.0, up, down)
        return difference - _norm(below, together), difference + _norm(above, together)

    low, high = ends(level)
    stderr = _norm(weights * [one.stderr for one in estimates], together)
    return Comparison(difference, max(-1.0, low), min(1.0, high), stderr, _touching(difference, ends))


def _norm(x: Floats, together: Floats) -> float:
    return math.sqrt(max(0.0, float(x @ together @ x)))


def _touching(difference: float, ends: Callable[[float], tuple[float, float]], smallest: float = 1e-15) -> float:
    """Return one minus the highest level at which the interval excludes 0."""
    if difference == 0.0:
        return 1.0

    def distance(log_pvalue: float) -> float:
        low, high = ends(-math.expm1(log_pvalue))
        return low if difference > 0.0 else -high

    least = math.log(smallest)
    return smallest if distance(least) > 0.0 else math.exp(optimize.brentq(distance, least, 0.0))


def any_difference(estimates: Sequence[Estimate], correlation: Floats | None = None) -> float:
    r"""Return the p-value of the test that the true scores of two or more estimates are all equal.

    With the variances :math:`s_k^2 = \bar\theta (1 - \bar\theta) / m_k` at the common score and their covariance
    matrix :math:`\Sigma`, the statistic is :math:`Q = \min_\mu (\hat\theta - \mu)^T \Sigma^{-1} (\hat\theta - \mu)`.
    It has Welch's F distribution (Biometrika 38, 1951), which allows for the degrees of freedom of the variances.
    """
    scores, sizes, freedom = (
        np.array([getattr(one, name) for one in estimates]) for name in ("score", "size", "freedom")
    )
    k = len(scores)
    common = _shrunk(float(np.average(scores, weights=sizes)), float(sizes.sum()))
    deviation = np.sqrt(common * (1.0 - common) / sizes)
    covariance = np.diag(deviation**2) if correlation is None else correlation * np.outer(deviation, deviation)
    precision = np.linalg.pinv(covariance, hermitian=True)
    centred = scores - precision.sum(axis=0) @ scores / precision.sum()
    unsure = float(np.sum((1.0 - sizes / sizes.sum()) ** 2 / freedom))
    ratio = float(centred @ precision @ centred) / (k - 1) / (1.0 + 2.0 * (k - 2) / (k**2 - 1) * unsure)
    return float(special.fdtrc(k - 1, (k**2 - 1) / (3.0 * unsure), ratio))


def wilson(share: Floats | float, k: Floats | float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval of a share of n rows, where ``k`` is the squared quantile over n."""
    middle = (share + 0.5 * k) / (1.0 + k)
    reach = np.sqrt(k * share * (1.0 - share) + 0.25 * k * k) / (1.0 + k)
    return np.minimum(share, middle - reach).clip(0.0, 1.0), np.maximum(share, middle + reach).clip(0.0, 1.0)


def comparison(
    sample: Sample, a: tuple[float, Floats], b: tuple[float, Floats], level: float, margin: float | None = None
) -> Comparison:
    """Return interval and test of the difference of two scores, each with its ``(N,)`` influences."""
    one, two, difference = (sample.moments(influence) for influence in (a[1], b[1], a[1] - b[1]))
    return comparison_of_moments(sample, (a[0], one), (b[0], two), difference, level, margin)


def comparison_of_moments(
    sizes: Sizes,
    a: tuple[float, Moments],
    b: tuple[float, Moments],
    between: Moments,
    level: float,
    margin: float | None = None,
) -> Comparison:
    r"""Return :func:`comparison` from the sums over the rows alone; ``between`` are those of the differences.

    The interval holds all differences δ with

    .. math:: (\hat\delta - \delta)^2 \le t^2 V(\delta) , \qquad
        V(\delta) = \frac{x \, \theta_a (1 - \theta_a) + y \, \theta_b (1 - \theta_b)}{m} ,

    where the scores are the likeliest ones that differ by δ (:func:`_likeliest`), so that the variance is never
    negative. The test compares δ̂ with δ in the same way. With a ``margin``, it is one-sided, against δ = ``-margin``.

    Scores that move by the same amount in opposite directions leave [0, 1], and near it they have too small a variance:
    with rows of 300, 60 and 15, AUCs of .93 and .98 and a margin of .05, such a test at .025 rejected in .058 of draws.

    References
    ----------
    Miettinen, Nurminen: Comparative analysis of two rates. Statistics in Medicine 4, 1985.
    """
    difference = a[0] - b[0]
    one, other = _Model.of(sizes, *a), _Model.of(sizes, *b)
    # The score of the model that varies more moves more: constant scores are certainly 1/2.
    ratios = one.ratio + other.ratio
    x, y = (2.0 * model.ratio / ratios if ratios > 0 else 1.0 for model in (one, other))
    bernoulli = x * one.bernoulli + y * other.bernoulli
    in_all = x * one.score * (1.0 - one.score) + y * other.score * (1.0 - other.score)
    size, freedom = _effective_size(
        sizes, between, bernoulli, in_all, 0.5, TEST_SHRINKAGE, np.zeros_like(between.squares)
    )
    theta_a, theta_b = _shrunk(one.score, size), _shrunk(other.score, size)

    def variance(delta: float) -> float:
        first, second = _likeliest(theta_a, theta_b, x, y, delta * size / (size + PRIOR_ROWS))  # shrunk, as the scores
        found = (x * first * (1.0 - first) + y * second * (1.0 - second)) / size
        return max(found, float(np.finfo(np.float64).tiny))  # 0 if constant scores would have to differ from 1/2

    squared = _quantile(level, freedom) ** 2

    def end(limit: float) -> float:
        """Return the difference between the estimate and ``limit`` at which the test changes its answer."""

        def excess(delta: float) -> float:
            return (delta - difference) ** 2 - squared * variance(delta)

        return float(optimize.brentq(excess, difference, limit)) if excess(limit) > 0.0 else limit

    tested = 0.0 if margin is None else -margin
    distance = (tested - difference) / math.sqrt(variance(tested))
    one_sided, two_sided = special.stdtr(freedom, distance), 2.0 * special.stdtr(freedom, -abs(distance))
    pvalue = float(two_sided if margin is None else one_sided)
    return Comparison(
        difference,
        low=end(-1.0),
        high=end(1.0),
        stderr=math.sqrt((x * theta_a * (1.0 - theta_a) + y * theta_b * (1.0 - theta_b)) / size),
        pvalue=max(pvalue, float(np.finfo(np.float64).tiny)),
    )


def _likeliest(theta_a: float, theta_b: float, x: float, y: float, delta: float) -> tuple[float, float]:
    """Return the two shares that differ by ``delta`` and fit the two given ones best.

    They are the shares of Bernoulli samples of sizes in the ratio y : x, since their variances are in the ratio x : y.
    The likelihood is largest at a root of a cubic equation (Farrington and Manning, Statistics in Medicine 9, 1990).
    """
    if (x, theta_a, delta) < (y, theta_b, 0.0):  # exchanged models give exactly the opposite interval
        second, first = _likeliest(theta_b, theta_a, y, x, -delta)
        return first, second
    square = -(x + y + y * theta_a + x * theta_b + delta * (x + 2.0 * y)) / (3.0 * (x + y))
    linear = y * delta**2 + delta * (2.0 * y * theta_a + x + y) + y * theta_a + x * theta_b
    linear /= 3.0 * (x + y)
    constant = -y * theta_a * delta * (1.0 + delta) / (x + y)
    shift = square**3 - 1.5 * square * linear + 0.5 * constant
    radius = math.copysign(math.sqrt(max(square**2 - linear, 0.0)), shift)
    cosine = min(1.0, max(-1.0, shift / radius**3)) if radius else 0.0
    first = 2.0 * radius * math.cos((math.pi + math.acos(cosine)) / 3.0) - square
    first = min(max(first, 0.0, delta), 1.0, 1.0 + delta)  # rounding may leave [0, 1]
    return first, first - delta


def overlap_of_folds(n_folds: int) -> float:
    r"""Return the factor of the variance of a score that K-fold cross-validation pools.

    Any two training sets share rows. Nadeau and Bengio (Machine Learning 52, 2003) replace the variance
    :math:`\sigma^2 / K` of a mean over K folds by :math:`(1/K + n_{\mathrm{test}} / n_{\mathrm{train}}) \, \sigma^2`.
    With :math:`n_{\mathrm{test}} / n_{\mathrm{train}} = 1 / (K - 1)` the factor is :math:`1 + K / (K - 1)`.
    """
    return 1.0 + n_folds / (n_folds - 1.0)


def holm(pvalues: Floats) -> Floats:
    """Return Holm's corrected p-values: the k-th smallest of K times K − k + 1, made monotone; NaN stays NaN."""
    order = np.argsort(pvalues)
    factor = np.count_nonzero(~np.isnan(pvalues)) - np.arange(len(pvalues))
    corrected = np.empty_like(pvalues)
    corrected[order] = np.minimum(np.maximum.accumulate(pvalues[order] * factor), 1.0)
    return corrected


class _Model(NamedTuple):
    """A score with the means of its influences, in units of ``w_i``."""

    score: float
    mean: Floats
    """``(C,)`` means of the classes, ``θ_i``."""
    bernoulli: Floats
    """``(C,)`` Bernoulli variances, ``θ_i (1 − θ_i)``."""
    ratio: float
    """The variance of the influences over the Bernoulli variance, for all classes together: 0 for constant scores."""

    @classmethod
    def of(cls, sizes: Sizes, score: float, moments: Moments) -> _Model:
        mean = np.zeros(len(sizes.size))
        np.divide(moments.mean, sizes.weight, out=mean, where=sizes.counts)
        mean.clip(0.0, 1.0, out=mean)  # rounding may leave [0, 1]
        bernoulli = mean * (1.0 - mean)
        total = float((sizes.freedom * bernoulli).sum())
        squares = float(sizes.scaled(moments.squares).sum())
        return cls(score, mean, bernoulli, squares / total if total > 1e-12 else RANDOM_RATIO)


def _effective_size(
    sizes: Sizes,
    moments: Moments,
    bernoulli: Floats,
    in_all: float,
    random: float,
    shrinkage: _Shrinkage,
    extra: Floats,
) -> tuple[float, float]:
    """Return how many Bernoulli rows have this variance, ``m``, and the degrees of freedom of that estimate.

    ``bernoulli`` and ``in_all`` are ``θ (1 − θ)`` of each class and of all rows; ``random`` is the same for random
    scores. The variance of each class is shrunk to the common ratio times its ``θ_i (1 − θ_i)``, plus ``extra``; that
    ratio is shrunk by one row of random scores. Shrinking each class directly to random scores made the intervals of
    20 rows per class at .98 a fifth wider. An influence that is a mean over fewer columns or fewer rows varies more.
    """
    used = sizes.counts
    squares, known = sizes.scaled(moments.squares), sizes.freedom[used]
    part = sizes.weight[used] ** 2 / sizes.size[used]
    cell_ratio = np.broadcast_to(moments.cell_ratio, used.shape)[used]
    relative = sizes.concentration[used] * cell_ratio
    relative /= relative.max()

    def shrunk(prior: Floats | float, own: Floats, rows: float = 1.0) -> Floats:
        return np.asarray((rows * prior + own) / (rows + known))

    ratio = (random * RANDOM_RATIO + squares.sum()) / (random + (known * relative * bernoulli[used]).sum())
    ratio = max(ratio, shrinkage.least_ratio * float(cell_ratio.max()))
    common = ratio * relative * shrunk(random, known * bernoulli[used]) + extra[used]
    variance = part * shrunk(common, squares[used], shrinkage.rows)
    of_bernoulli = part * shrunk(shrunk(random, known * in_all), known * in_all)
    total = float(variance.sum())
    freedom = total**2 / float(np.sum(variance**2 / (known + shrinkage.freedom)))
    total *= _between_classes(sizes, moments, shrinkage) * sizes.overlap
    if not math.isinf(sizes.groups):
        freedom = min(freedom, sizes.groups - 1.0 + shrinkage.freedom)
    return float(of_bernoulli.sum() / total / part.sum()), freedom


def _between_classes(sizes: Sizes, moments: Moments, shrinkage: _Shrinkage) -> float:
    """Return the factor by which rows of different classes in one group change the variance.

    It is above 1 if the errors of a group are positively correlated across classes, and below 1 if a group raises a
    whole column. Few groups estimate it badly, so it is shrunk to 1.
    """
    within = float(moments.squares.sum())
    if math.isinf(sizes.groups) or within <= 0.0:
        return 1.0
    return max(0.1, 1.0 + moments.cross / within * sizes.groups / (sizes.groups + shrinkage.rows))


def _shrunk(score: float, size: float) -> float:
    return (score * size + 0.5 * PRIOR_ROWS) / (size + PRIOR_ROWS)


def _quantile(level: float, freedom: float) -> float:
    return float(special.stdtrit(freedom, 0.5 + 0.5 * level))


def design_effect(errors: Iterable[Floats], groups: Ints, added: float = 3.0) -> float:
    """Return the factor by which groups of dependent rows change the variance of a sum.

    It is the variance of the group sums over that of independent rows, each summed over several ``(N,)`` errors of the
    rows. Groups of equal rows, as many as ``added``, stabilise it. It is at least 1, and at most that of equal rows in
    each group.
    """
    _, of_row, counts = np.unique(groups, return_inverse=True, return_counts=True)
    per_group = float(np.square(counts).sum()) / len(groups)
    sums = [(float(each @ each), float(np.square(np.bincount(of_row, each)).sum())) for each in errors]
    of_rows, of_groups = map(sum, zip(*sums, strict=True))
    if of_rows <= 0.0:
        return per_group
    few = added * of_rows / len(groups)
    return min(max((few * per_group + of_groups) / (few + of_rows), 1.0), per_group)
