r"""Compute multiclass AUC of rows in several parts, such as partitions, whose counts add up.

Only ``N`` of the ``N·C`` scores are needed in one place: the score of each row in the column of its own class.

1. :func:`own_scores` takes these scores from every part, and :func:`sort_positives` sorts those of each class.
2. :func:`count_part` searches all scores of a part among the sorted positives of their columns. The pairs that
   negatives win add up to the matrix of AUCs (:func:`pair_matrix`). The positions of the negatives add up to the wins
   of each positive (:func:`wins_of_positives`).
3. :func:`influence` adds, for every row of a part, its wins as a positive and as a negative.

:mod:`mauc.dask` runs these phases on partitions; :mod:`mauc.metrics.out_of_core` uses the sort and the search.

A row counts as its *unit*: 1 without sample weights, else its share in the weight of its class. ``totals`` are the
``(C,)`` sums of the units.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mauc._kernels.auc import auc_of_losses
from mauc._typing import Floats, Ints

__all__ = [
    "Column",
    "PartCounts",
    "Positives",
    "add_counts",
    "argsort",
    "count_part",
    "find",
    "influence",
    "own_scores",
    "pair_matrix",
    "sort_positives",
    "wins_of_positives",
]

Column = NDArray[np.floating]


def argsort(x: Column) -> Ints:
    """Return ``np.argsort(x)``. NumPy sorts integers that hold a float32 and its index three times as fast."""
    if x.dtype != np.float32:
        return np.argsort(x)
    bits = (x + np.float32(0)).view(np.int32)  # -0.0 becomes the 0.0 that it equals
    keys = (bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))).astype(np.int64)
    keys <<= 32
    keys |= np.arange(len(x))
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys


def find(values: Column, x: Column, block: int = 1 << 10) -> tuple[Ints, Ints]:
    """Return the first positions in ``values`` that are ``>= x`` and ``> x``; both arrays are ascending.

    Block by block the search stays within a few pages of the values. One search among all of them took three times as
    long, and one for unsorted scores thirty times.
    """
    left = np.zeros(len(x), dtype=np.int64)
    if not len(x) or not len(values):
        return left, left.copy()
    begins = range(0, len(x), block)
    reach = values.searchsorted(x[[*begins, -1]]).tolist()
    for begin, low, high in zip(begins, reach[:-1], reach[1:], strict=True):
        left[begin : begin + block] = values[low:high].searchsorted(x[begin : begin + block]) + low
    right = left.copy()
    tied = np.flatnonzero(values.take(left, mode="clip") == x)
    right[tied] += 1
    again = tied[values.take(right[tied], mode="clip") == x[tied]]
    right[again] = values.searchsorted(x[again], side="right")
    return left, right


def own_scores(
    codes: Ints, scores: NDArray[Any], unit: Floats | None, n_classes: int
) -> list[tuple[Column, Floats | None]]:
    """Return, for each class, the scores of its rows in its own column, and their units; float32 is kept."""
    own = np.take_along_axis(scores, codes[:, None], axis=1)[:, 0]
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=n_classes))[:-1]
    units = [None] * n_classes if unit is None else np.split(unit[order], ends)
    return list(zip(np.split(own[order], ends), units, strict=True))


class Positives(NamedTuple):
    """The scores of one class in its own column, ascending."""

    values: Column
    """``(M,)``"""
    below: Floats | None
    """``(M + 1,)`` prefix sums of their units; None if each unit is 1."""

    def beaten(self, left: Ints, right: Ints) -> Floats:
        """Return the summed units below each score plus half of those that tie, from positions of :func:`find`."""
        if self.below is None:
            return np.asarray(0.5 * (left + right))
        return np.asarray(0.5 * (self.below.take(left) + self.below.take(right)))


def sort_positives(parts: Sequence[list[tuple[Column, Floats | None]]]) -> list[Positives]:
    """Return the sorted positives of each class, from the own scores of all parts."""
    found = []
    for of_class in zip(*parts, strict=True):
        values = np.concatenate([each for each, _ in of_class])
        if of_class[0][1] is None:
            found.append(Positives(np.sort(values), None))
            continue
        units = np.concatenate([unit for _, unit in of_class if unit is not None])
        order = np.argsort(values)
        found.append(Positives(values[order], np.concatenate([[0.0], np.cumsum(units[order])])))
    return found


class PartCounts(NamedTuple):
    """The counts of the second phase, for one part or summed over several."""

    lost: Floats
    """``(C, C)``, ``[j, i]`` is the weight of the pairs that rows of class j win against the positives of column i,
    ties at ½. The diagonal is not used."""
    negatives_at: sparse.csr_array | None
    """``(1, N + C)`` weight of the negatives that fall on each positive, class after class, the last place of each
    class for those above all; None without pair weights."""
    as_negative: Floats
    """``(n,)`` ``Σ_k v_ki mean_k ψ(·, F_nk)`` of the rows of the part."""


def count_part(
    positives: Sequence[Positives],
    totals: Floats,
    codes: Ints,
    scores: NDArray[np.floating],
    unit: Floats | None = None,
    v: Floats | None = None,
) -> PartCounts:
    """Count the ``(n, C)`` scores of a part among the positives; with pair weights ``v``, for the influences too.

    About 0.1 µs a score and O(n) memory.
    """
    unit = np.ones(len(codes)) if unit is None else unit
    lost = np.zeros((len(positives), len(positives)))
    as_negative = np.zeros(len(codes))
    places, weights, first = [], [], 0
    for k, positive in enumerate(positives):
        order = argsort(scores[:, k])
        left, right = find(positive.values, scores[order, k])
        beaten, classes = positive.beaten(left, right), codes[order]
        lost[:, k] = np.bincount(classes, unit[order] * beaten, len(lost))
        if v is not None:
            pair = v[k].take(classes)
            if totals[k] > 0:
                as_negative[order] += pair * (1.0 - beaten / totals[k])
            # A positive beats the negatives at or below its position. Half of a tie counts at the next position.
            counted = np.flatnonzero(pair)
            half = (0.5 * pair * unit[order] / totals[classes])[counted]
            places += [first + left[counted], first + right[counted]]
            weights += [half, half]
            first += len(positive.values) + 1
    if v is None:
        return PartCounts(lost, None, as_negative)
    at = np.concatenate(places)
    negatives_at = sparse.csr_array((np.concatenate(weights), (np.zeros_like(at), at)), shape=(1, first))
    return PartCounts(lost, negatives_at, as_negative)


def add_counts(parts: Sequence[PartCounts]) -> PartCounts:
    """Return the sum of the counts of several parts, without ``as_negative``."""
    negatives_at = [part.negatives_at for part in parts if part.negatives_at is not None]
    total = reduce(lambda a, b: a + b, negatives_at) if negatives_at else None
    return PartCounts(np.sum([part.lost for part in parts], axis=0), total, np.zeros(0))


def pair_matrix(lost: Floats, totals: Floats) -> Floats:
    """Return the ``(C, C)`` matrix of ``AUC_{i|j}`` from the lost pairs of all parts; NaN as in ``pairwise_auc``."""
    return auc_of_losses(lost.T, totals, totals > 0)


def wins_of_positives(negatives_at: sparse.csr_array, positives: Sequence[Positives]) -> list[Floats]:
    """Return, for each class, ``(M + 1,)`` ``Σ_j v_ij mean_j ψ(F_mi, ·)`` of its sorted positives."""
    sizes = np.cumsum([len(each.values) + 1 for each in positives])[:-1]
    return [np.cumsum(each) for each in np.split(negatives_at.toarray().ravel(), sizes)]


def influence(
    positives: Sequence[Positives],
    wins: Sequence[Floats],
    codes: Ints,
    scores: NDArray[np.floating],
    as_negative: Floats,
) -> Floats:
    """Return the ``(n,)`` influences of the rows of a part."""
    out = as_negative.copy()
    for k, (positive, won) in enumerate(zip(positives, wins, strict=True)):
        members = np.flatnonzero(codes == k)
        order = members[argsort(scores[members, k])]
        out[order] += won[find(positive.values, scores[order, k])[0]]
    return out
