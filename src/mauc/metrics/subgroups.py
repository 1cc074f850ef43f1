"""Compare subgroups, the rows of each level of a column such as the sex or the centre."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._labels import names_of
from mauc._typing import Floats, Ints
from mauc._validation import check_row_values, invalid, listing
from mauc.metrics.inference import score_and_influence
from mauc.metrics.uncertainty import (
    Comparison,
    Estimate,
    Interval,
    Sample,
    any_difference,
    contrast,
    estimate_of_moments,
    holm,
)
from mauc.partition import ClassPartition


@dataclass(frozen=True)
class Subgroup:
    """The rows of one level."""

    level: str
    rows: int
    mauc: Interval
    """Over the pairs of classes that have rows in the level; NaN if there is none."""
    difference: Comparison
    """The score of the level minus the mean score of the other levels, over the pairs of classes that have rows in the
    level and in another one."""
    holm: float
    """The p-value with Holm's correction for the number of levels; two levels are one comparison."""
    absent: tuple[str, ...]
    """Classes without rows in the level."""


def subgroup_scores(
    partition: ClassPartition,
    scores: NDArray[Any],
    labels: NDArray[Any],
    subgroups: ArrayLike,
    *,
    groups: Ints | None = None,
    level: float = 0.95,
) -> tuple[list[Subgroup], float]:
    r"""Return the multiclass AUC of each level, its difference to the mean of the others, and a test of any difference.

    Each AUC compares rows of one level. With the levels :math:`L_{ij}` other than k that have rows of both classes,

    .. math:: \delta_k = \operatorname{mean}_{ij} \Bigl( \mathrm{AUC}^{(k)}_{i|j}
        - \operatorname{mean}_{l \in L_{ij}} \mathrm{AUC}^{(l)}_{i|j} \Bigr)

    over the pairs of classes that level k and another level have. It is a contrast of scores of different rows
    (:func:`contrast`). If a group has rows in several levels, their covariance is that of its influence sums.

    The rest pooled into one sample would be wrong with three levels or more: it has pairs of rows of different levels.
    Three centres of equal AUC whose scores are shifted were then all "better than the rest".

    The p-value of any difference between the levels (:func:`any_difference`) is over the classes that all levels of two
    classes or more have; with two levels it is that of their difference. It is NaN if the levels share no pair.
    """
    names, level_codes = check_row_values(
        subgroups, len(partition.codes), "subgroups", "pass the level of each row, such as the sex"
    )
    if len(names) < 2:
        came, advice = f"only {names[0]}", "levels are compared with each other: pass a column that varies"
        raise invalid("subgroups", "must have two levels or more", came, advice)
    parts = Levels(partition, scores, level_codes, len(names), groups)
    found = [
        Subgroup(
            level=name,
            rows=int((level_codes == k).sum()),
            mauc=Interval(*(math.nan,) * 4) if not parts.pairs[k].any() else parts.of(k).estimate.interval(level),
            difference=parts.against_others(k, level),
            holm=math.nan,
            absent=tuple(names_of(labels[partition.present & ~parts.present[k]])),
        )
        for k, name in enumerate(names)
    ]
    pvalues = np.array([each.difference.pvalue for each in found])
    # Two levels are one comparison, seen from both sides.
    corrected = pvalues if len(found) == 2 else holm(pvalues)
    together = float(pvalues[0]) if len(found) == 2 else parts.any_difference()
    return [replace(each, holm=float(p)) for each, p in zip(found, corrected, strict=True)], together


def subgroup_notes(found: Sequence[Subgroup]) -> list[str]:
    """Return notes on the limits of these scores."""
    return [
        f"level {one.level} has no row of class {listing(one.absent)}: its "
        "score and its difference to the others are over the other classes"
        for one in found
        if one.absent
    ]


class Part(NamedTuple):
    """The score of one level, and the ``(N,)`` parts of the rows in its error; 0 for rows of other levels."""

    estimate: Estimate
    errors: Floats


@dataclass(eq=False)
class Levels:
    """The multiclass AUC within each of several levels."""

    partition: ClassPartition
    scores: NDArray[Any]
    codes: Ints
    n_levels: int
    groups: Ints | None
    present: NDArray[np.bool_] = field(init=False)
    """``(L, C)``: True for a class that has rows in the level."""
    pairs: NDArray[np.bool_] = field(init=False)
    """``(L, C, C)``: True for a pair of classes that both have rows in the level."""
    _known: dict[tuple[int, bytes], Part] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        cell, n = self.codes * self.partition.n_classes + self.partition.codes, self.partition.n_classes
        weight = np.bincount(cell, self.partition.shares, self.n_levels * n)
        self.present = weight.reshape(self.n_levels, n) > 0
        self.pairs = self.present[:, :, None] & self.present[:, None, :] & ~np.eye(n, dtype=bool)

    def of(self, k: int, pairs: NDArray[Any] | None = None) -> Part:
        """Return the mean AUC of level k over the pairs with these weights; default: over all that it has."""
        given = np.asarray(self.pairs[k] if pairs is None else pairs, dtype=np.float64)
        rows = np.flatnonzero(self.codes == k)
        weight = self.partition.sample_weight
        part = ClassPartition(
            self.partition.codes[rows], self.partition.n_classes, None if weight is None else weight[rows]
        )
        v = part.pair_weights(given)
        key = (k, v.tobytes())
        if key not in self._known:
            sample = Sample.of(part, v, None if self.groups is None else self.groups[rows])
            score, influence = score_and_influence(part, self.scores[rows], v)
            moments, errors = sample.moments(influence), np.zeros(len(self.codes))
            errors[rows] = part.shares * (influence - moments.mean[part.codes])
            self._known[key] = Part(estimate_of_moments(sample, score, moments), errors)
        return self._known[key]

    def against_others(self, k: int, level: float) -> Comparison:
        """Return the score of level k minus the mean of the others."""
        n_others = self.pairs.sum(axis=0) - self.pairs[k]
        common = self.pairs[k] & (n_others > 0)
        if not common.any():
            return Comparison(*(math.nan,) * 5)
        each = np.where(common, -1.0 * self.pairs / np.maximum(n_others, 1), 0.0) / common.sum()
        each[k] = common / common.sum()
        weights = each.sum(axis=(1, 2))
        used = np.flatnonzero(weights)
        parts = [self.of(int(i), abs(each[i])) for i in used]
        return contrast([part.estimate for part in parts], weights[used], level, self.correlation(parts))

    def any_difference(self) -> float:
        """Return the p-value of the test that all levels have the same score."""
        used = np.flatnonzero(self.pairs.any(axis=(1, 2)))
        common = np.all(self.pairs[used], axis=0)
        if len(used) < 2 or not common.any():
            return math.nan
        parts = [self.of(int(k), common) for k in used]
        return any_difference([part.estimate for part in parts], self.correlation(parts))

    def correlation(self, parts: Sequence[Part], rows: float = 3.0) -> Floats | None:
        """Return the ``(K, K)`` correlations of the scores; None if no group has rows in two levels.

        Few groups estimate them badly, so they are shrunk to 0 by three groups.
        """
        if self.groups is None:
            return None
        sums = np.array([np.bincount(self.groups, part.errors) for part in parts])
        shared = np.count_nonzero(np.count_nonzero(sums, axis=0) > 1)
        if not shared:
            return None
        covariance = sums @ sums.T
        deviation = np.sqrt(np.maximum(covariance.diagonal(), np.finfo(np.float64).tiny))
        found = covariance / np.outer(deviation, deviation) * shared / (shared + rows)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)
