r"""Multiclass AUC of samples that are never in one place: counts of parts, added up.

Of all ``N·C`` scores the metric needs together only ``N``: each sample's score in the column of its own class.

1. :class:`OwnScores` of every part; :func:`merge` sorts them into one :class:`Ladder` per class.
2. :func:`place` finds the other scores of every part on the ladders. The pairs that a sample wins as a negative add up
   to the matrix of AUCs (:func:`auc_of_lost`). Where the negatives land adds up to what each positive wins.
3. :func:`influence` joins, for every sample of a part, what it wins as a positive and as a negative. The squares of the
   influences about their means add up to the variance.

A loop over files (:mod:`mauc.metrics.out_of_core`) and Dask (:mod:`mauc.dask`) drive these phases. Ties, weights and
absent classes count as in :func:`mauc.pairwise_auc` and :func:`mauc.mauc_interval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.auc import auc_of_losses
from mauc._typing import Floats, Ints
from mauc._validation import invalid
from mauc.metrics.uncertainty import Sizes
from mauc.partition import ClassPartition

__all__ = [
    "ClassTotals",
    "Column",
    "Ladder",
    "Landed",
    "OwnScores",
    "Placed",
    "add_placed",
    "add_totals",
    "ascending",
    "auc_of_lost",
    "check_class_weights",
    "influence",
    "mean_influence",
    "merge",
    "place",
]

Column = NDArray[np.floating]

NO_EXPONENT = -1100
"""Below the exponent of every float: a part without weight in a class leaves the exponent to the others."""


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """Sizes and weights of the classes over all parts. A weight is ``2**exponent`` of its class times its unit, so that
    sums and products stay within the floats, however large or small the weights."""

    counts: Ints
    """``(C,)`` samples."""
    exponent: Ints
    """``(C,)``; 0 without weights."""
    powers: Floats
    """``(3, C)`` sums of the units, of their squares and of their cubes."""

    @classmethod
    def of(cls, codes: Ints, n_classes: int, weight: Floats | None = None) -> ClassTotals:
        """Of a part."""
        counts = np.bincount(codes, minlength=n_classes)
        if weight is None:
            return cls(counts, np.zeros(n_classes, dtype=np.int64), np.tile(counts.astype(np.float64), (3, 1)))
        largest = np.zeros(n_classes)
        np.maximum.at(largest, codes, weight)
        exponent = np.where(largest > 0, np.frexp(largest)[1], NO_EXPONENT).astype(np.int64)
        unit = np.ldexp(weight, -exponent[codes])
        return cls(counts, exponent, np.stack([np.bincount(codes, unit**k, n_classes) for k in (1, 2, 3)]))

    @property
    def units(self) -> Floats:
        """``(C,)`` summed units."""
        return self.powers[0]

    def partition(self) -> ClassPartition:
        """Class sizes as pair weights want them: one sample per class that stands for all of it."""
        present = np.flatnonzero(self.counts)
        highest = self.exponent[present].max(initial=NO_EXPONENT)
        weights = np.ldexp(self.units[present], self.exponent[present] - highest)
        return ClassPartition(present, len(self.counts), np.maximum(weights, np.finfo(np.float64).tiny))

    def unit(self, codes: Ints, weight: Floats | None) -> Floats:
        """``(n,)`` units of some samples."""
        if weight is None:
            return np.broadcast_to(1.0, codes.shape)
        return np.asarray(np.ldexp(weight, -self.exponent[codes]))

    def shares(self, codes: Ints, weight: Floats | None) -> Floats:
        """``(n,)`` shares of some samples in the weight of their class."""
        return self.unit(codes, weight) / self.units[codes]

    def sizes(self, v: Floats) -> Sizes:
        """What the variance needs of the classes, for pair weights ``v``."""
        present = self.counts > 0
        one, two, three = (np.where(present, power, 1.0) for power in self.powers)
        return Sizes.of_shares(present, two / one**2, three / one**3, v)


def add_totals(parts: Sequence[ClassTotals]) -> ClassTotals:
    """The totals of several parts."""
    exponent = np.max([part.exponent for part in parts], axis=0)
    power = np.arange(1, 4)[:, None]
    powers = np.sum([np.ldexp(part.powers, power * (part.exponent - exponent)) for part in parts], axis=0)
    return ClassTotals(np.sum([part.counts for part in parts], axis=0), exponent, powers)


def check_class_weights(totals: ClassTotals, labels: NDArray[Any]) -> None:
    """Refuse a class whose samples all weigh nothing, which only the totals of all parts can tell."""
    empty = np.flatnonzero((totals.units == 0) & (totals.counts > 0))
    if len(empty):
        advice = "drop the samples of that class, or give one of them a positive weight"
        came = f"zero for class {labels[empty[0]]}"
        raise invalid("sample_weight", "must have a positive sum in every class", came, advice)


def ascending(x: Column) -> Ints:
    """``np.argsort``. NumPy sorts integers that hold a float32 and its index three times as fast as indices."""
    if x.dtype != np.float32:
        return np.argsort(x)
    bits = (x + np.float32(0)).view(np.int32)  # -0.0 becomes the 0.0 that it equals
    keys = (bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))).astype(np.int64)
    keys <<= 32
    keys |= np.arange(len(x))
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys


class Ladder(NamedTuple):
    """One class's own scores, ascending: the rungs."""

    values: Column
    """``(M,)``"""
    below: Floats | None = None
    """``(M + 1,)`` summed units below each rung, and of all; None where each rung is 1."""

    def find(self, x: Column, block: int = 1 << 10) -> tuple[Ints, Ints]:
        """The first rung ``>= x`` and the first ``> x``, of ascending ``x``.

        Block by block the search stays within a few pages of the ladder; a search among all of it took three times as
        long, and one for unsorted scores thirty times.
        """
        left = np.zeros(len(x), dtype=np.int64)
        if not len(x) or not len(self.values):
            return left, left.copy()
        begins = range(0, len(x), block)
        reach = self.values.searchsorted(x[[*begins, -1]]).tolist()
        for begin, low, high in zip(begins, reach[:-1], reach[1:], strict=True):
            left[begin : begin + block] = self.values[low:high].searchsorted(x[begin : begin + block]) + low
        right = left.copy()
        tied = np.flatnonzero(self.values.take(left, mode="clip") == x)
        right[tied] += 1
        again = tied[self.values.take(right[tied], mode="clip") == x[tied]]
        right[again] = self.values.searchsorted(x[again], side="right")
        return left, right

    def beaten(self, left: Ints, right: Ints) -> Floats:
        """Units below each score, and half of those that it ties with."""
        if self.below is None:
            return np.asarray(0.5 * (left + right))
        return np.asarray(0.5 * (self.below.take(left) + self.below.take(right)))


@dataclass(frozen=True, eq=False)
class OwnScores:
    """The scores of samples in the column of their class, ascending within each class."""

    values: tuple[Column, ...]
    """``C`` arrays."""
    units: tuple[Floats, ...] | None
    """Weights of the same samples; None where each is 1."""
    totals: ClassTotals

    @classmethod
    def of(cls, codes: Ints, scores: NDArray[Any], n_classes: int, weight: Floats | None = None) -> OwnScores:
        """Of a part: ``(n,)`` class codes, ``(n, C)`` scores (float32 is kept) and clean weights. O(n log n)."""
        own = np.take_along_axis(scores, codes[:, None], axis=1)[:, 0]
        order = np.lexsort([own, codes])
        totals = ClassTotals.of(codes, n_classes, weight)
        ends = np.cumsum(totals.counts)[:-1]
        units = None if weight is None else tuple(np.split(totals.unit(codes, weight)[order], ends))
        return cls(tuple(np.split(own[order], ends)), units, totals)

    def __sizeof__(self) -> int:
        """Bytes of the arrays: a scheduler that takes them for nothing would carry them about."""
        return sum(each.nbytes for each in (*self.values, *(self.units or ())))

    def ladders(self) -> list[Ladder]:
        """One per class, for the second phase."""
        if self.units is None:
            return [Ladder(values) for values in self.values]
        below = [np.concatenate([[0.0], np.cumsum(units)]) for units in self.units]
        return [Ladder(*each) for each in zip(self.values, below, strict=True)]


def merge(parts: Sequence[OwnScores]) -> OwnScores:
    """The own scores of several parts, class by class; sorted runs are merged, not sorted anew."""
    totals = add_totals([part.totals for part in parts])
    values, units = [], []
    for k in range(len(parts[0].values)):
        joined = np.concatenate([part.values[k] for part in parts])
        if parts[0].units is None:
            values.append(np.sort(joined, kind="stable"))
            continue
        order = np.argsort(joined, kind="stable")
        shifted = [
            np.ldexp(part.units[k], part.totals.exponent[k] - totals.exponent[k]) for part in parts if part.units
        ]
        values.append(joined[order])
        units.append(np.concatenate(shifted)[order])
    return OwnScores(tuple(values), None if parts[0].units is None else tuple(units), totals)


def auc_of_lost(lost: Floats, totals: ClassTotals) -> Floats:
    """``(C, C)`` matrix of ``AUC_{i|j}`` from the lost pairs of all parts; NaN as in ``pairwise_auc``."""
    return auc_of_losses(lost.T, totals.units, totals.counts > 0)


class Landed(NamedTuple):
    """What negatives weigh on the rungs of one ladder where they land, and on none of the others."""

    rungs: Ints
    """Ascending; ``M`` for those above all."""
    weight: Floats


class Placed(NamedTuple):
    """What the second phase finds of a part."""

    lost: Floats
    """``(C, C)`` weight of the pairs that the samples of class j win against the positives of column i, at ``[j, i]``,
    ties at ½. A class against itself means nothing."""
    landed: tuple[Landed, ...]
    """One per ladder; empty without pair weights."""
    as_negative: Floats
    """``(n,)`` ``Σ_k v_ki mean_k ψ(·, F_nk)``; zeros without pair weights."""


def place(
    ladders: Sequence[Ladder],
    totals: ClassTotals,
    codes: Ints,
    scores: NDArray[np.floating],
    weight: Floats | None = None,
    v: Floats | None = None,
) -> Placed:
    """Find the ``(n, C)`` scores of a part on the ladders; with ``(C, C)`` pair weights ``v``, for influences too.

    About 0.1 µs a score and O(n) memory. A landing is at most twice as long as the part; the ladders are only read.
    """
    unit, share = totals.unit(codes, weight), totals.shares(codes, weight)
    lost = np.zeros((len(ladders), len(ladders)))
    as_negative = np.zeros(len(codes))
    landed = []
    for k, ladder in enumerate(ladders):
        order = ascending(scores[:, k])
        left, right = ladder.find(scores[order, k])
        beaten, here = ladder.beaten(left, right), codes[order]
        lost[:, k] = np.bincount(here, unit[order] * beaten, len(lost))
        if v is None:
            continue
        pair = v[k].take(here)
        if totals.units[k] > 0:
            as_negative[order] += pair * (1.0 - beaten / totals.units[k])
        # A positive wins against what lands up to its rung. What ties with it counts half: half of it lands above.
        half = 0.5 * pair * share[order]
        landed.append(_on_rungs(np.concatenate([left, right]), np.concatenate([half, half])))
    return Placed(lost, tuple(landed), as_negative)


def add_placed(parts: Sequence[Placed]) -> Placed:
    """The lost pairs and the landings of several parts; what each sample wins as a negative stays with its part."""
    landed = []
    for each in zip(*(part.landed for part in parts), strict=True):
        rungs, weight = (np.concatenate(some) for some in zip(*each, strict=True))
        landed.append(_on_rungs(rungs, weight))
    return Placed(np.sum([part.lost for part in parts], axis=0), tuple(landed), np.zeros(0))


def _on_rungs(at: Ints, weight: Floats) -> Landed:
    dense = np.bincount(at, weight).astype(np.float64, copy=False)
    rungs = np.flatnonzero(dense)
    return Landed(rungs, dense[rungs])


def influence(
    ladders: Sequence[Ladder],
    landed: Sequence[Landed],
    codes: Ints,
    scores: NDArray[np.floating],
    as_negative: Floats,
) -> Floats:
    """``(n,)`` influences of a part: ``Σ_j v_ij mean_j ψ(F_mi, ·)`` of each sample as a positive, from the landings of
    all parts, and what it wins as a negative."""
    out = as_negative.copy()
    for k, (ladder, (rungs, weight)) in enumerate(zip(ladders, landed, strict=True)):
        mine = np.flatnonzero(codes == k)
        order = mine[ascending(scores[mine, k])]
        won = np.concatenate([[0.0], np.cumsum(weight)])
        out[order] += won[np.searchsorted(rungs, ladder.find(scores[order, k])[0], side="right")]
    return out


def mean_influence(matrix: Floats, v: Floats) -> Floats:
    """``(C,)`` mean influence of each class, ``Σ_j v_ij AUC_{i|j} + Σ_k v_ki AUC_{k|i}``."""
    counted = np.where(v > 0, v * np.nan_to_num(matrix), 0.0)
    return counted.sum(axis=1) + counted.sum(axis=0)
