"""Is a model as good for every level of a column, such as the sex or the centre? Each level against all other rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from mauc._kernels.auc import auc_matrix_and_influence
from mauc._typing import Ints
from mauc._validation import invalid
from mauc.metrics.groups import check_groups
from mauc.metrics.scores import weighted_mean
from mauc.metrics.uncertainty import Comparison, Interval, Moments, Sample, holm, interval_of_moments
from mauc.partition import ClassPartition

__all__ = ["Subgroup", "check_subgroups", "subgroup_notes", "subgroup_scores", "warn_of_subgroups"]

NOTHING = Interval(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Subgroup:
    """The rows of one level."""

    level: str
    rows: int
    mauc: Interval
    """Over the pairs of classes that have rows in the level; NaN where there is none."""
    difference: Comparison
    """The score of the level minus that of all other rows, over the pairs of classes that have rows in both."""
    holm: float
    """The p-value, corrected by Holm for the number of levels; two levels are one comparison."""
    absent: tuple[str, ...]
    """Classes without rows in the level."""
    confounded: bool
    """Whether groups have rows in this level and in others: the test takes the two parts as independent."""


def check_subgroups(subgroups: ArrayLike, n_rows: int) -> tuple[list[str], Ints]:
    """Names of the levels, sorted, and the ``(N,)`` level of each row."""
    codes = check_groups(subgroups, n_rows, "subgroups", "pass the level of each row, such as the sex")
    assert codes is not None
    values = np.asarray(subgroups)
    names = np.array([str(values[row]) for row in np.unique(codes, return_index=True)[1]])
    if len(names) < 2:
        came, advice = f"only {names[0]}", "a level is compared with the other rows: pass a column that varies"
        raise invalid("subgroups", "must have two levels or more", came, advice)
    order = np.argsort(names, kind="stable")
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    return names[order].tolist(), place[codes]


def subgroup_scores(
    partition: ClassPartition,
    scores: NDArray[Any],
    labels: NDArray[Any],
    subgroups: ArrayLike,
    *,
    groups: Ints | None = None,
    level: float = 0.95,
) -> list[Subgroup]:
    """The multiclass AUC of each level with its interval, and how it differs from that of all other rows.

    Both parts have their own rows, so that their errors are independent: the distances of each score to the ends of its
    interval add up as standard errors do (the method of variance estimates recovered, Zou and Donner 2008), and the
    p-value is one minus the highest level at which the interval of the difference excludes 0.
    """
    names, of_row = check_subgroups(subgroups, len(partition.codes))
    parts = _Parts(partition, scores, groups)
    found = [_one(parts, of_row == k, name, labels, level) for k, name in enumerate(names)]
    pvalues = np.array([each.difference.pvalue for each in found])
    # Two levels are one comparison, seen from both sides.
    corrected = pvalues if len(found) == 2 else holm(pvalues)
    return [
        Subgroup(each.level, each.rows, each.mauc, each.difference, float(p), each.absent, each.confounded)
        for each, p in zip(found, corrected, strict=True)
    ]


def subgroup_notes(found: Sequence[Subgroup]) -> list[str]:
    """What a reader must know of these scores."""
    said = [
        f"level {one.level} has no row of class {', '.join(one.absent[:8])}{', …' if len(one.absent) > 8 else ''}: its "
        "score is over the other classes, and so is its difference to the rest"
        for one in found
        if one.absent
    ]
    if any(one.confounded for one in found):
        said.append("some groups have rows in several levels: the tests between levels take them as independent")
    return said


def warn_of_subgroups(found: list[Subgroup]) -> None:
    """A warning for each note."""
    for note in subgroup_notes(found):
        warnings.warn(note, UndefinedMetricWarning, stacklevel=3)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Scores of some rows and classes."""

    partition: ClassPartition
    scores: NDArray[Any]
    groups: Ints | None

    def present(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """``(C,)`` which classes have rows of positive weight among these."""
        weight = self.partition.shares * rows
        return np.bincount(self.partition.codes, weight, self.partition.n_classes) > 0

    def judged(self, rows: NDArray[np.bool_], classes: NDArray[np.bool_]) -> tuple[Sample, float, Moments] | None:
        """What :func:`interval_of_moments` takes, over the pairs of these classes; None where there is none."""
        rows = rows & classes[self.partition.codes]
        if classes.sum() < 2:
            return None
        weight = self.partition.sample_weight
        part = ClassPartition(
            self.partition.codes[rows], self.partition.n_classes, None if weight is None else weight[rows]
        )
        v = part.pair_weights("ovo")
        matrix, influence = auc_matrix_and_influence(part.problem(self.scores[rows], v, normalised=False))
        sample = Sample.of(part, v, None if self.groups is None else self.groups[rows])
        return sample, weighted_mean(matrix, v), sample.moments(influence)


def _one(parts: _Parts, rows: NDArray[np.bool_], name: str, labels: NDArray[Any], level: float) -> Subgroup:
    """A level, its p-value not corrected yet."""
    here, there = parts.present(rows), parts.present(~rows)
    own, common = parts.judged(rows, here), here & there
    a, b = parts.judged(rows, common), parts.judged(~rows, common)
    difference = Comparison(*(math.nan,) * 5) if a is None or b is None else _independent(a, b, level)
    groups = parts.groups
    confounded = groups is not None and bool(np.isin(groups[rows], groups[~rows]).any())
    return Subgroup(
        name,
        int(rows.sum()),
        NOTHING if own is None else interval_of_moments(*own, level),
        difference,
        math.nan,
        tuple(str(label) for label in labels[parts.partition.present & ~here]),
        confounded,
    )


def _independent(a: tuple[Sample, float, Moments], b: tuple[Sample, float, Moments], level: float) -> Comparison:
    """The difference of two scores of different rows."""

    def ends(at: float) -> tuple[float, float]:
        one, two = (interval_of_moments(*each, at) for each in (a, b))
        difference = one.score - two.score
        low = difference - math.hypot(one.score - one.low, two.high - two.score)
        return low, difference + math.hypot(one.high - one.score, two.score - two.low)

    difference = a[1] - b[1]
    low, high = ends(level)
    stderr = math.hypot(*(interval_of_moments(*each, level).stderr for each in (a, b)))
    return Comparison(difference, max(-1.0, low), min(1.0, high), stderr, _pvalue(difference, ends))


def _pvalue(difference: float, ends: Any, steps: int = 50) -> float:
    """One minus the highest level at which the interval excludes 0, by halving on the scale of the logarithm."""
    if difference == 0.0:
        return 1.0
    smallest, largest = math.log(1e-15), 0.0
    for _ in range(steps):
        middle = 0.5 * (smallest + largest)
        low, high = ends(-math.expm1(middle))
        if low > 0.0 or high < 0.0:
            largest = middle
        else:
            smallest = middle
    return math.exp(largest)
