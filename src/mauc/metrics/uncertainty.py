"""From the influences of samples to intervals and tests that hold from two samples per class on.

DeLong's variance of a U-statistic, steadied by three samples per class that are borrowed from all classes, and
intervals whose variance is that of the value asked about, as in Wilson's for a proportion. In large samples both are
DeLong's. What was measured is on the page docs/results/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mauc._typing import Floats, Ints
from mauc.metrics.groups import Cells
from mauc.partition import ClassPartition

__all__ = [
    "NO_DIFFERENCE",
    "Comparison",
    "Interval",
    "ModelComparison",
    "Moments",
    "Sample",
    "Sizes",
    "class_without_errors",
    "comparison",
    "comparison_of_moments",
    "holm",
    "interval",
    "interval_of_moments",
    "squares_about",
]

# The share of others that a sample beats varies by 1/12 where scores tell nothing: a third of what it would vary by if
# each sample beat all of the others or none.
SPREAD = 1.0 / 3.0

# Samples in a part of a sum over all of them.
PART = 1 << 16

# Scores of 0 and 1 are taken for a little less than certain, by this many effective samples that are half right.
UNCERTAIN = 0.5


class _Loan(NamedTuple):
    """What one class borrows from all."""

    samples: float
    """How many."""
    spread: float
    """The least that their spread is taken for."""

    @property
    def freedom(self) -> float:
        """Degrees of freedom: two for each, since all classes back it up."""
        return 2.0 * self.samples


# Whatever the other classes show, a class may have errors that its few samples do not. With one sample and any spread,
# twenty among 500 of which 5 % are mislabelled covered 83 %. With twice the spread, intervals of 40 samples at .98 were
# a sixth wider and covered 98 %.
OF_INTERVALS = _Loan(3.0, SPREAD / 2.0)

# The differences of two models that err alike do not vary. With the loan of intervals, five samples per class did not
# tell a perfect ranking from constant scores.
OF_TESTS = _Loan(1.0, 0.0)


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
    """The p-value, corrected by Holm for the number of comparisons."""


NO_DIFFERENCE = Comparison(0.0, 0.0, 0.0, 0.0, 1.0)
"""Of a model with itself: identical scores differ by exactly 0, whatever the samples."""


class Moments(NamedTuple):
    """What the variance of a multiclass AUC needs of its influences; sums over the samples, so parts add up."""

    mean: Floats
    """``(C,)`` mean influence of each class."""
    squares: Floats
    """``(C,)`` ``Σ a_m² (h_m − mean)²`` over the shares ``a_m`` of the samples in the weight of their class; with
    groups, ``Σ (Σ a_m (h_m − mean))²`` over the cells."""
    cross: float = 0.0
    """What the rows of different classes in one group add to the sum of squares; 0 without groups."""
    of_cells: Floats | float = 1.0
    """``(C,)`` variance of the mean of a cell over that of a single row; 1 without groups."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """What the variance of a multiclass AUC needs of the classes, whatever their scores."""

    size: Floats
    """``(C,)`` samples of equal weight that are worth those of the class; 0 where it has none."""
    unbiased: Floats
    """``(C,)`` what :attr:`Moments.squares` are divided by to be the variance of the mean without bias; with equal
    weights that variance is ``S_i² / n_i``."""
    weight: Floats
    """``(C,)`` how much the class counts, ``w_i = Σ_j v_ij + v_ji``: the range of its influences."""
    concentration: Floats
    """``(C,)`` what columns that do not depend on one another leave of the variance of an influence, which is a mean
    over columns: the sum of squares of their shares in it, 1 where it is that of one column."""
    groups: float = field(default=math.inf, kw_only=True)
    """How many groups of equal influence there are; infinite where no group has rows of two classes."""

    @classmethod
    def of_shares(cls, present: NDArray[np.bool_], square: Floats, cube: Floats, v: Floats) -> Sizes:
        """From the ``(C,)`` sums of squares and of cubes of the shares in each class, 1 where it has no sample."""
        size = np.where(present, 1.0 / square, 0.0)
        weight = v.sum(axis=0) + v.sum(axis=1)
        # A sample counts in its own column as a positive, in each other one as a negative.
        share = np.divide(v + np.diag(v.sum(axis=1)), weight, out=np.zeros_like(v), where=weight > 0)
        return Sizes(size, 1.0 - 2.0 * cube / square + square, weight, np.square(share).sum(axis=0))

    @classmethod
    def of_counts(cls, counts: Ints, v: Floats) -> Sizes:
        """Of samples of equal weight: how many each class has."""
        share = 1.0 / np.maximum(counts, 1)
        return cls.of_shares(counts > 0, share, share**2, v)

    @cached_property
    def counts(self) -> NDArray[np.bool_]:
        """``(C,)`` which classes have samples, and pairs whose weight is more than rounding."""
        return (self.size > 0) & (self.weight > 1e-12)

    @cached_property
    def freedom(self) -> Floats:
        """``(C,)`` degrees of freedom of the variance of each class, ``n_i − 1``; 0 where it does not count."""
        return np.where(self.counts, np.maximum(self.size - 1.0, 0.0), 0.0)

    def spread(self, squares: Floats) -> Floats:
        """``(C,)`` variance of the influences of each class in units of ``w_i²``, times its degrees of freedom."""
        several = self.counts & (self.unbiased > 1e-12)
        found = np.zeros(len(self.size))
        np.divide(squares * self.size * self.freedom, self.unbiased * self.weight**2, out=found, where=several)
        return found


@dataclass(frozen=True, eq=False)
class Sample(Sizes):
    """The sizes with the samples themselves. With groups, a sample is a cell: the rows of one class in one group."""

    partition: ClassPartition
    cells: Cells | None = field(default=None, kw_only=True)

    @cached_property
    def rows_per_cell(self) -> Floats:
        """``(C,)`` rows of equal weight that are worth those of one cell."""
        square = _sums(self.partition.codes, self.partition.shares**2, len(self.size))
        return np.divide(1.0, square * self.size, out=np.ones_like(square), where=self.counts)

    @classmethod
    def of(cls, partition: ClassPartition, v: Floats, groups: Ints | None = None) -> Sample:
        cells = None
        if groups is not None:
            cells = Cells.of(groups, partition.codes, partition.shares, partition.n_classes)
            square, cube = (_sums(cells.codes, cells.shares**k, partition.n_classes) for k in (2, 3))
        elif partition.sample_weight is None:
            square = 1.0 / np.maximum(partition.counts, 1)
            cube = square**2
        else:
            square, cube = (_sums(partition.codes, partition.shares**k, partition.n_classes) for k in (2, 3))
        square[~partition.present] = 1.0
        sizes = Sizes.of_shares(partition.present, square, cube, v)
        together = math.inf if cells is None else cells.effective_groups(sizes.weight)
        return cls(
            sizes.size,
            sizes.unbiased,
            sizes.weight,
            sizes.concentration,
            partition,
            groups=together,
            cells=cells,
        )

    def moments(self, influence: Floats) -> Moments:
        """Those of ``(N,)`` influences."""
        n_classes = len(self.size)
        mean = self._sums(lambda codes, share, rows: _sums(codes, share * influence[rows], n_classes))
        if self.cells is not None:
            return self._moments_of_cells(self.cells, mean, influence)
        squares = self._sums(lambda codes, share, rows: squares_about(mean, influence[rows], codes, share))
        return Moments(mean, squares)

    def _moments_of_cells(self, cells: Cells, mean: Floats, influence: Floats) -> Moments:
        codes, shares = self.partition.codes, self.partition.shares
        centred = _centred(influence, mean[codes])
        of_cells = cells.sums(shares * centred)
        squares = _sums(cells.codes, of_cells**2, len(self.size))
        cross = float(np.square(cells.group_sums(of_cells)).sum() - np.square(of_cells).sum())
        return Moments(mean, squares, cross, self._of_cells(_sums(codes, shares * centred**2, len(self.size)), squares))

    def _of_cells(self, of_rows: Floats, squares: Floats) -> Floats:
        """:attr:`Moments.of_cells` from the ``(C,)`` variances of rows: ``ρ + (1 − ρ) / r_i`` for cells of ``r_i`` rows
        and one correlation ρ of the rows of a cell in all classes.

        ρ is what the variances of cells and rows of all classes tell, steadied by as many cells of equal rows as an
        interval borrows.
        """
        single = np.divide(self.freedom * of_rows, self.weight**2, out=np.zeros_like(of_rows), where=self.counts)
        one_of = 1.0 / self.rows_per_cell
        total, known = float(single.sum()), float(self.freedom.sum())
        if total <= 0.0:
            return np.ones_like(of_rows)
        loan = OF_INTERVALS.samples * total / known
        cells = (loan + float(self.spread(squares).sum())) / (loan + total)
        without = (loan + float((single * one_of).sum())) / (loan + total)
        common = min(1.0, max(0.0, (cells - without) / (1.0 - without))) if without < 1.0 else 0.0
        return np.asarray(common + (1.0 - common) * one_of)

    def _sums(self, of_rows: Callable[[Ints, Floats, slice], Floats]) -> Floats:
        """``(C,)`` sums of those of parts, from codes, shares and rows: no array of all samples."""
        partition, total = self.partition, np.zeros(len(self.size))
        for begin in range(0, len(partition.codes), PART):
            rows = slice(begin, begin + PART)
            codes = partition.codes[rows]
            share = partition.shares[rows] if partition.sample_weight is not None else 1.0 / partition.weights[codes]
            total += of_rows(codes, share, rows)
        return total


def squares_about(mean: Floats, influence: Floats, codes: Ints, share: Floats) -> Floats:
    """``(C,)`` :attr:`Moments.squares` of some samples, about the mean of all."""
    return _sums(codes, (share * _centred(influence, mean[codes])) ** 2, len(mean))


def _centred(influence: Floats, mean: Floats) -> Floats:
    centred = influence - mean
    # Differences of rounding size are none: equal models must come out equal.
    centred[np.abs(centred) < 1e-14] = 0.0
    return centred


def _sums(codes: Ints, x: Floats, n_classes: int) -> Floats:
    """``(C,)`` sum over each class."""
    return np.bincount(codes, x, n_classes).astype(np.float64, copy=False)


def interval(sample: Sample, score: float, influence: Floats, level: float) -> Interval:
    """Wilson's interval of a score with ``(N,)`` influences."""
    return interval_of_moments(sample, score, sample.moments(influence), level)


def interval_of_moments(sizes: Sizes, score: float, moments: Moments, level: float) -> Interval:
    """:func:`interval` from the sums over the samples alone."""
    model = _Model.of(sizes, score, moments)
    in_all = score * (1.0 - score)
    # What is borrowed varies about the mean of all samples, not about that of the class.
    apart = model.mean - np.average(model.mean, weights=np.where(sizes.counts, sizes.size, 0.0))
    worth, freedom = _worth(sizes, moments, model.by_class, in_all, 0.25, OF_INTERVALS, apart**2)
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


def class_without_errors(
    sample: Sample, influence: Floats, *, least: int = 5, most: int = 60, beats: float = 0.75, part: float = 2 / 3
) -> int | None:
    """The class that could hide errors too large for the interval, from the ``(N,)`` influences; mostly None.

    The class has ``least`` to ``most`` rows, all of which beat the share ``beats`` of the others, and makes at least
    the ``part`` of the variance that right-or-wrong samples would have. If a share of such a class is mislabelled and
    no row shows it by chance, the interval misses the truth; if none is, it covers more than it says. The rows cannot
    tell the two cases apart. Classes of fewer rows borrow most of their variance, and of more rows some would show it.
    """
    variance = np.where(sample.counts, sample.weight**2 / np.maximum(sample.size, 1.0), 0.0)
    k = int(np.argmax(variance))
    if variance[k] < part * variance.sum() or not least - 1e-9 <= sample.size[k] <= most:
        return None
    rows = (sample.partition.codes == k) & (sample.partition.shares > 0)
    return k if influence[rows].min() > beats * sample.weight[k] else None


def comparison(
    sample: Sample, a: tuple[float, Floats], b: tuple[float, Floats], level: float, margin: float | None = None
) -> Comparison:
    """Interval and test of the difference of two scores, each with its ``(N,)`` influences.

    At the difference ``δ + e`` the scores are taken for ``θ_a + λ_a e`` and ``θ_b − λ_b e``, less certain by a little,
    and the variance is ``(A + B e − C e²) / m``. The interval solves ``e² = t² (A + B e − C e²) / m``.
    """
    one, two, difference = (sample.moments(influence) for influence in (a[1], b[1], a[1] - b[1]))
    return comparison_of_moments(
        sample,
        (a[0], one),
        (b[0], two),
        difference.squares,
        level,
        cross=difference.cross,
        of_cells=difference.of_cells,
        margin=margin,
    )


def comparison_of_moments(
    sizes: Sizes,
    a: tuple[float, Moments],
    b: tuple[float, Moments],
    squares: Floats,
    level: float,
    *,
    cross: float = 0.0,
    of_cells: Floats | float = 1.0,
    margin: float | None = None,
) -> Comparison:
    """:func:`comparison` from the sums over the samples alone; ``squares``, ``cross`` and ``of_cells`` are those of the
    differences. With a ``margin``, the test is the one-sided one of a difference of minus that margin."""
    difference = a[0] - b[0]
    one, other = _Model.of(sizes, *a), _Model.of(sizes, *b)
    # The model that varies more gives way more: constant scores are no doubt about 1/2.
    spreads = one.spread + other.spread
    x, y = (2.0 * model.spread / spreads if spreads > 0 else 1.0 for model in (one, other))
    by_class = x * one.by_class + y * other.by_class
    in_all = x * one.score * (1.0 - one.score) + y * other.score * (1.0 - other.score)
    nothing = np.zeros_like(squares)
    moments = Moments(nothing, squares, cross, of_cells)
    worth, freedom = _worth(sizes, moments, by_class, in_all, 0.5, OF_TESTS, nothing)
    near, far = _less_certain(one.score, worth), _less_certain(other.score, worth)
    give, take = (0.5 * share * worth / (worth + UNCERTAIN) for share in (x, y))
    constant = x * near * (1.0 - near) + y * far * (1.0 - far)
    linear = x * give * (1.0 - 2.0 * near) - y * take * (1.0 - 2.0 * far)
    square = x * give**2 + y * take**2
    k = _quantile(level, freedom) ** 2 / worth
    reach = math.sqrt((k * linear) ** 2 + 4.0 * k * constant * (1.0 + k * square))
    low, high = (difference + (k * linear + end) / (2.0 * (1.0 + k * square)) for end in (-reach, reach))
    moved = (0.0 if margin is None else -margin) - difference
    under_null = (constant + linear * moved - square * moved**2) / worth
    above = -abs(moved) if margin is None else moved
    pvalue = (2.0 if margin is None else 1.0) * float(special.stdtr(freedom, above / math.sqrt(under_null)))
    return Comparison(
        difference,
        low=max(-1.0, low),
        high=min(1.0, high),
        stderr=math.sqrt(constant / worth),
        pvalue=max(pvalue, float(np.finfo(np.float64).tiny)),
    )


def holm(pvalues: Floats) -> Floats:
    """Holm's correction: the k-th smallest of K times K − k + 1, made monotone; NaN stays NaN."""
    order = np.argsort(pvalues)
    factor = np.count_nonzero(~np.isnan(pvalues)) - np.arange(len(pvalues))
    corrected = np.empty_like(pvalues)
    corrected[order] = np.minimum(np.maximum.accumulate(pvalues[order] * factor), 1.0)
    return corrected


@dataclass(frozen=True, eq=False)
class _Model:
    """A score with what its influences say of its variance, in units of ``w_i²``."""

    score: float
    squares: Floats
    """``(C,)`` variances within the classes, times their degrees of freedom."""
    mean: Floats
    """``(C,)`` means of the classes, ``θ_i``."""
    by_class: Floats
    """``(C,)`` what right-or-wrong samples of the same mean would vary by, ``θ_i (1 − θ_i)``."""
    spread: float
    """The ratio of the two over all classes: 0 for constant scores, :data:`SPREAD` where all pairs are ranked alike."""

    @classmethod
    def of(cls, sizes: Sizes, score: float, moments: Moments) -> _Model:
        used = sizes.counts
        mean = np.zeros(len(used))
        np.divide(moments.mean, sizes.weight, out=mean, where=used)
        mean.clip(0.0, 1.0, out=mean)  # it rounds
        squares, by_class = sizes.spread(moments.squares), mean * (1.0 - mean)
        whole = float((sizes.freedom * by_class).sum())
        return cls(score, squares, mean, by_class, float(squares.sum()) / whole if whole > 1e-12 else SPREAD)


def _worth(
    sizes: Sizes, moments: Moments, by_class: Floats, in_all: float, unknown: float, loan: _Loan, further: Floats
) -> tuple[float, float]:
    """How many right-or-wrong samples these are worth, ``m``, and the degrees of freedom of that estimate.

    ``by_class`` and ``in_all`` are what the influence of right-or-wrong samples would vary by, ``θ(1 − θ)``, for each
    class and for all; ``unknown`` is the same where scores tell nothing. What a class borrows varies by the spread of
    all classes times ``θ_i(1 − θ_i)`` of its own, which in turn is steadied by one sample that tells nothing, and by
    what is ``further``. Shrinking each class to the latter at once made the intervals of 20 per class at .98 a fifth
    wider. Where an influence is a mean over fewer columns than that of other classes, or over fewer rows of a group, it
    varies more.
    """
    used = sizes.counts
    squares, known, part = (
        sizes.spread(moments.squares),
        sizes.freedom[used],
        sizes.weight[used] ** 2 / sizes.size[used],
    )
    of_cells = np.broadcast_to(moments.of_cells, used.shape)[used]
    relative = sizes.concentration[used] * of_cells
    relative /= relative.max()

    def steadied(of_others: Floats | float, of_own: Floats, others: float = 1.0) -> Floats:
        return np.asarray((others * of_others + of_own) / (others + known))

    spread = (unknown * SPREAD + squares.sum()) / (unknown + (known * relative * by_class[used]).sum())
    spread = max(spread, loan.spread * float(of_cells.max()))
    borrowed = spread * relative * steadied(unknown, known * by_class[used]) + further[used]
    variance = part * steadied(borrowed, squares[used], loan.samples)
    right_or_wrong = part * steadied(steadied(unknown, known * in_all), known * in_all)
    total = float(variance.sum())
    freedom = total**2 / float(np.sum(variance**2 / (known + loan.freedom)))
    total *= _between_classes(sizes, moments, loan)
    if not math.isinf(sizes.groups):
        freedom = min(freedom, sizes.groups - 1.0 + loan.freedom)
    return float(right_or_wrong.sum() / total / part.sum()), freedom


def _between_classes(sizes: Sizes, moments: Moments, loan: _Loan) -> float:
    """What rows of different classes in one group make of the variance: more where they err together, less where the
    group lifts a whole column. Few groups tell that badly: as many as the loan are taken to have nothing in common."""
    within = float(moments.squares.sum())
    if math.isinf(sizes.groups) or within <= 0.0:
        return 1.0
    return max(0.1, 1.0 + moments.cross / within * sizes.groups / (sizes.groups + loan.samples))


def _less_certain(score: float, worth: float) -> float:
    return (score * worth + 0.5 * UNCERTAIN) / (worth + UNCERTAIN)


def _quantile(level: float, freedom: float) -> float:
    return float(special.stdtrit(freedom, 0.5 + 0.5 * level))
