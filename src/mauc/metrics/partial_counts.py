r"""Compute multiclass AUC of rows in several parts, such as partitions, whose counts add up.

Only ``N`` of the ``N·C`` scores are needed in one place: the score of each row in the column of its own class.

1. :func:`own_scores` takes these scores from every part, and :func:`sort_positives` sorts those of each class.
2. :func:`lost_pairs` searches the scores of a part among the sorted positives of their column. The pairs that
   negatives win add up to the matrix of AUCs (:func:`pair_matrix`). For intervals, :func:`count_part` also keeps the
   weights of the negatives by position, which add up to the wins of each positive (:func:`wins_of_positives`).
3. :func:`influence` adds, for every row of a part, its wins as a positive and as a negative.

:mod:`mauc.dask` runs these phases on partitions, :mod:`mauc.metrics.out_of_core` runs the first two on batches of
files.

A row counts as its *unit*: 1 without sample weights, else its share in the weight of its class. ``totals`` are the
``(C,)`` sums of the units.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mauc._kernels.auc import auc_of_losses
from mauc._typing import Floats, Ints

Column = NDArray[np.floating]


def argsort(x: Column) -> Ints:
    """Return ``np.argsort(x)``. NumPy sorts integers that hold a float32 and its index three times as fast."""
    if x.dtype != np.float32:
        return np.argsort(x)
    keys = _keys(x)
    keys |= np.arange(len(x))
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys


def sort_with_classes(x: Column, codes: NDArray[Any]) -> tuple[Column, Ints]:
    """Return ascending scores and the class of each: of float32 in integers that hold both, without a lookup."""
    if x.dtype != np.float32:
        order = np.argsort(x)
        return x[order], codes[order]
    keys = _keys(x)
    keys |= codes
    keys.sort()
    bits = (keys >> 32).astype(np.int32)
    keys &= 0xFFFFFFFF
    return _flipped(bits).view(np.float32), keys


def _keys(x: Column) -> Ints:
    """Return integers that are ordered as float32 scores are, each shifted by 32 bits."""
    keys = _flipped((x + np.float32(0)).view(np.int32)).astype(np.int64)  # -0.0 becomes the 0.0 that it equals
    keys <<= 32
    return keys


def _flipped(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Flip the bits of negative numbers below the sign: floats become ordered integers, and those floats again."""
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))


def find(values: Column, x: Column) -> tuple[Ints, Ints]:
    """Return the first positions in ``values`` that are ``>= x`` and ``> x``; both arrays are ascending.

    np.searchsorted is fast for ascending scores: a search for unsorted ones took thirty times as long.
    """
    if not len(values):
        return np.zeros(len(x), dtype=np.int64), np.zeros(len(x), dtype=np.int64)
    left = values.searchsorted(x)
    right = left.copy()
    tied = np.flatnonzero(values.take(left, mode="clip") == x)
    right[tied] += 1
    again = tied[values.take(right[tied], mode="clip") == x[tied]]
    right[again] = values.searchsorted(x[again], side="right")
    return left, right


def rank(values: Column, x: Column, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Return these rows by ascending score, and the two positions of :func:`find` of each."""
    rows = rows[argsort(x[rows])]
    return rows, *find(values, x[rows])


class Rows(NamedTuple):
    """The rows of one part."""

    codes: NDArray[Any]
    """``(n,)`` class of each row."""
    columns: Sequence[Column]
    """``C`` arrays of scores; float32 is kept."""
    unit: Floats | None = None
    """``(n,)`` units; None if each is 1."""

    def by_class(self) -> list[Ints]:
        """Return the rows of each class."""
        order = np.argsort(self.codes, kind="stable")  # codes of 8 or 16 bits get a radix sort
        return np.split(order, np.cumsum(np.bincount(self.codes, minlength=len(self.columns)))[:-1])


def own_scores(rows: Rows) -> list[tuple[Column, Floats | None]]:
    """Return, for each class, the scores of its rows in its own column, and their units."""
    members = zip(rows.columns, rows.by_class(), strict=True)
    return [(x[own], None if rows.unit is None else rows.unit[own]) for x, own in members]


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
            values.sort()
            found.append(Positives(values, None))
            continue
        units = np.concatenate([unit for _, unit in of_class if unit is not None])
        order = np.argsort(values)
        found.append(Positives(values[order], np.concatenate([[0.0], np.cumsum(units[order])])))
    return found


class PartCounts(NamedTuple):
    """The counts of the second phase in some columns, for one part or summed over several."""

    lost: Floats
    """``(C, C)``, ``[j, i]`` is the weight of the pairs that rows of class j win against the positives of column i,
    ties at ½; 0 on the diagonal and in other columns."""
    negatives_at: sparse.csr_array
    """Weight of the negatives at the position of each positive, class after class: ``M + 1`` sums for the M positives
    of a column. The last position of each class holds the negatives above all its positives."""
    as_negative: Floats
    """``(n,)`` ``Σ_k v_ki mean_k ψ(·, F_nk)`` of the rows of the part, over these columns k."""


def lost_pairs(
    k: int, positive: Positives, n_classes: int, codes: NDArray[Any], x: Column, unit: Floats | None = None
) -> Floats:
    """Return the ``(C,)`` weights of the pairs that rows of each class win in column ``k``, with their scores ``x``."""
    others = np.flatnonzero(codes != k)
    if unit is None:
        sorted_x, classes = sort_with_classes(x[others], codes[others])
        beaten = positive.beaten(*find(positive.values, sorted_x))
    else:
        others, left, right = rank(positive.values, x, others)
        classes, beaten = codes[others], unit[others] * positive.beaten(left, right)
    return np.bincount(classes, beaten, n_classes).astype(np.float64)


def lost_in_part(positives: Sequence[Positives], rows: Rows) -> Floats:
    """Return :attr:`PartCounts.lost` alone."""
    columns = zip(positives, rows.columns, strict=True)
    each = [lost_pairs(k, own, len(positives), rows.codes, x, rows.unit) for k, (own, x) in enumerate(columns)]
    return np.stack(each, axis=1)


def count_part(
    positives: Sequence[Positives], totals: Floats, rows: Rows, v: Floats, columns: Sequence[int]
) -> PartCounts:
    """Count the scores of a part in some columns among the positives, for influences with pair weights ``v``.

    Memory for one column of the part, and :func:`bytes_counted` for the result.
    """
    codes = rows.codes
    unit = np.ones(len(codes)) if rows.unit is None else rows.unit
    lost = np.zeros((len(positives), len(positives)))
    as_negative = np.zeros(len(codes))
    found = []
    for k in columns:
        positive = positives[k]
        others, left, right = rank(positive.values, rows.columns[k], np.flatnonzero(codes != k))
        beaten, classes = positive.beaten(left, right), codes[others]
        lost[:, k] = np.bincount(classes, unit[others] * beaten, len(lost))
        pair = v[k].take(classes)
        if totals[k] > 0:
            as_negative[others] += pair * (1.0 - beaten / totals[k])
        # A positive beats the negatives at or below its position. Half of a tie counts at the next position.
        half = 0.5 * pair * unit[others] / totals[classes]
        shape = (1, len(positive.values) + 1)
        # Positions that occur twice are added up.
        each = [sparse.csr_array((half, (np.zeros_like(at), at)), shape=shape) for at in (left, right)]
        found.append(each[0] + each[1])
    return PartCounts(lost, sparse.csr_array(sparse.hstack(found, format="csr")), as_negative)


def bytes_counted(n_rows: int, n_positives: Ints) -> Ints:
    """Return the most bytes that :func:`count_part` returns for each column of a part, from the sizes of the classes:
    a number and its position for each distinct place of a row."""
    return 16 * np.minimum(2 * n_rows, n_positives + 1)


def column_groups(n_rows: int, n_positives: Ints, most: int = 1 << 26) -> list[list[int]]:
    """Return the columns in groups that are counted together, so that a part of ``n_rows`` returns at most ``most``
    bytes, or the counts of one column."""
    groups: list[list[int]] = []
    free = 0
    for k, size in enumerate(bytes_counted(n_rows, n_positives).tolist()):
        if not groups or size > free:
            groups.append([])
            free = most
        groups[-1].append(k)
        free -= size
    return groups


def add_counts(parts: Sequence[PartCounts]) -> PartCounts:
    """Return the sum of the counts of several parts, without ``as_negative``."""
    total = reduce(operator.add, (part.negatives_at for part in parts))
    return PartCounts(np.sum([part.lost for part in parts], axis=0), total, np.zeros(0))


def pair_matrix(lost: Floats, totals: Floats) -> Floats:
    """Return the ``(C, C)`` matrix of ``AUC_{i|j}`` from the lost pairs of all parts; NaN as in ``pairwise_auc``."""
    return auc_of_losses(lost.T, totals, totals > 0)


def wins_of_positives(total: PartCounts, positives: Sequence[Positives], columns: Sequence[int]) -> list[Floats]:
    """Return, for these classes, ``(M + 1,)`` ``Σ_j v_ij mean_j ψ(F_mi, ·)`` of the sorted positives."""
    sizes = np.cumsum([len(positives[k].values) + 1 for k in columns])[:-1]
    return [np.cumsum(each) for each in np.split(total.negatives_at.toarray().ravel(), sizes)]


def influence(positives: Sequence[Positives], wins: Sequence[Floats], rows: Rows, as_negative: Floats) -> Floats:
    """Return the ``(n,)`` influences of the rows of a part."""
    out = as_negative.copy()
    for positive, won, x, own in zip(positives, wins, rows.columns, rows.by_class(), strict=True):
        sorted_rows, left, _ = rank(positive.values, x, own)
        out[sorted_rows] += won[left]
    return out
