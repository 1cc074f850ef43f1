"""Compare subgroups, the rows of each level of a column such as the sex or the centre, with all other rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from mauc._labels import names_of
from mauc._typing import Ints
from mauc._validation import check_row_values, invalid, listing
from mauc.metrics.inference import score_and_influence
from mauc.metrics.uncertainty import Comparison, Interval, Moments, Sample, holm, interval_of_moments
from mauc.partition import ClassPartition

_Part = tuple[Sample, float, Moments]


@dataclass(frozen=True)
class Subgroup:
    """The rows of one level."""

    level: str
    rows: int
    mauc: Interval
    """Over the pairs of classes that have rows in the level; NaN if there is none."""
    difference: Comparison
    """The score of the level minus that of all other rows, over the pairs of classes that have rows in both."""
    holm: float
    """The p-value with Holm's correction for the number of levels; two levels are one comparison."""
    absent: tuple[str, ...]
    """Classes without rows in the level."""
    split_groups: bool
    """True if a group has rows in this level and in others; the test assumes that the two parts are independent."""


def subgroup_scores(
    partition: ClassPartition,
    scores: NDArray[Any],
    labels: NDArray[Any],
    subgroups: ArrayLike,
    *,
    groups: Ints | None = None,
    level: float = 0.95,
) -> list[Subgroup]:
    """Return the multiclass AUC of each level with its interval, and its difference to that of all other rows.

    The two parts have no row in common, so their errors are independent. The distances of both scores to the ends of
    their intervals are added in quadrature (method of variance estimates recovery, Zou and Donner 2008). The p-value is
    one minus the highest level at which the interval of the difference excludes 0.
    """
    names, level_codes = check_row_values(
        subgroups, len(partition.codes), "subgroups", "pass the level of each row, such as the sex"
    )
    if len(names) < 2:
        came, advice = f"only {names[0]}", "a level is compared with the other rows: pass a column that varies"
        raise invalid("subgroups", "must have two levels or more", came, advice)

    def present(rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.bincount(partition.codes, partition.shares * rows, partition.n_classes) > 0

    found = []
    for k, name in enumerate(names):
        rows = level_codes == k
        here = present(rows)
        common = here & present(~rows)
        own = _part(partition, scores, groups, rows, here)
        a, b = (_part(partition, scores, groups, some, common) for some in (rows, ~rows))
        difference = Comparison(*(math.nan,) * 5)
        if a is not None and b is not None:
            difference = _compare_independent(a, b, level)
        found.append(
            Subgroup(
                level=name,
                rows=int(rows.sum()),
                mauc=Interval(*(math.nan,) * 4) if own is None else interval_of_moments(*own, level),
                difference=difference,
                holm=math.nan,
                absent=tuple(names_of(labels[partition.present & ~here])),
                split_groups=groups is not None and bool(np.isin(groups[rows], groups[~rows]).any()),
            )
        )
    pvalues = np.array([each.difference.pvalue for each in found])
    # Two levels are one comparison, seen from both sides.
    corrected = pvalues if len(found) == 2 else holm(pvalues)
    return [replace(each, holm=float(p)) for each, p in zip(found, corrected, strict=True)]


def subgroup_notes(found: Sequence[Subgroup]) -> list[str]:
    """Return notes on the limits of these scores."""
    notes = [
        f"level {one.level} has no row of class {listing(one.absent)}: its "
        "score and its difference to the rest are over the other classes"
        for one in found
        if one.absent
    ]
    if any(one.split_groups for one in found):
        notes.append("some groups have rows in several levels, but the tests assume that the levels are independent")
    return notes


def _part(
    partition: ClassPartition,
    scores: NDArray[Any],
    groups: Ints | None,
    rows: NDArray[np.bool_],
    classes: NDArray[np.bool_],
) -> _Part | None:
    """Return the arguments of :func:`interval_of_moments` for the pairs of these classes; None without a pair."""
    if classes.sum() < 2:
        return None
    rows = rows & classes[partition.codes]
    weight = partition.sample_weight
    part = ClassPartition(partition.codes[rows], partition.n_classes, None if weight is None else weight[rows])
    v = part.pair_weights("ovo")
    score, influence = score_and_influence(part, scores[rows], v)
    sample = Sample.of(part, v, None if groups is None else groups[rows])
    return sample, score, sample.moments(influence)


def _compare_independent(a: _Part, b: _Part, level: float) -> Comparison:
    """Return the difference of two scores of different rows."""

    def ends(at: float) -> tuple[float, float]:
        one, two = (interval_of_moments(*each, at) for each in (a, b))
        low = difference - math.hypot(one.score - one.low, two.high - two.score)
        return low, difference + math.hypot(one.high - one.score, two.score - two.low)

    difference = a[1] - b[1]
    low, high = ends(level)
    stderr = math.hypot(*(interval_of_moments(*each, level).stderr for each in (a, b)))
    return Comparison(difference, max(-1.0, low), min(1.0, high), stderr, _pvalue(difference, ends))


def _pvalue(difference: float, ends: Callable[[float], tuple[float, float]], smallest: float = 1e-15) -> float:
    """Return one minus the highest level at which the interval excludes 0."""
    if difference == 0.0:
        return 1.0

    def distance(log_pvalue: float) -> float:
        low, high = ends(-math.expm1(log_pvalue))
        return low if difference > 0.0 else -high

    least = math.log(smallest)
    return smallest if distance(least) > 0.0 else math.exp(optimize.brentq(distance, least, 0.0))
