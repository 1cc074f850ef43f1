r"""Multiclass AUC of samples that are never in one place: counts of parts, added up.

Of all ``N·C`` scores the metric needs together only ``N``: each sample's score in the column of its own class.

1. :class:`OwnScores` of every part, sorted by class; :func:`merge` puts parts together, :meth:`OwnScores.ladders` makes
   of the whole a :class:`Ladder` per class: the ascending own scores with the weight below each.
2. :func:`count_lost` of every part: the weight of the pairs that its samples win as negatives, ``(C, k)`` for ``k``
   columns, so that ladders can be had a few columns at a time. Added over the parts, :func:`auc_of_lost` is
   :func:`mauc.pairwise_auc`, ties, weights and absent classes included.

The influences of :func:`mauc.mauc_interval` need what lies below each own score too, and that is additive as well:

2. :func:`place` gives, beside the lost pairs, where on the ladders the negatives of the part land (:class:`Landed`,
   :func:`add_landed`) and each sample's influence as a negative. :func:`won_by_rung` turns all landings of a column
   into the influence, as a positive, of a sample on each rung.
3. :func:`influence` of every part joins both; :func:`influence_squares` are the sums that the variance is made of,
   about the means that :func:`mean_influence` has from the pair matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc._validation import invalid
from mauc.kernels.auc import auc_of_losses
from mauc.kernels.search import locate, sort_columns
from mauc.kernels.tiles import TILE_ELEMENTS
from mauc.metrics.uncertainty import Sizes, squares_about
from mauc.partition import ClassPartition

__all__ = [
    "ClassTotals",
    "Ladder",
    "Landed",
    "OwnScores",
    "Placed",
    "add_landed",
    "add_totals",
    "auc_of_lost",
    "check_class_weights",
    "count_lost",
    "influence",
    "influence_squares",
    "mean_influence",
    "merge",
    "own_scores",
    "place",
    "won_by_rung",
]

# Bins over a ladder cost as much as sorting four scores per rung; then a score costs a tenth of its place in a sort.
SCORES_PER_RUNG = 4

NO_EXPONENT = -1100
"""Below that of every float: a part without weight in a class leaves the exponent to the others."""


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
    weighted: bool

    @classmethod
    def of(cls, codes: Ints, n_classes: int, weight: Floats | None = None) -> ClassTotals:
        """Of a part."""
        counts = np.bincount(codes, minlength=n_classes)
        if weight is None:
            exponent = np.zeros(n_classes, dtype=np.int64)
            return cls(counts, exponent, np.tile(counts.astype(np.float64), (3, 1)), False)
        largest = np.zeros(n_classes)
        np.maximum.at(largest, codes, weight)
        exponent = np.where(largest > 0, np.frexp(largest)[1], NO_EXPONENT).astype(np.int64)
        unit = np.ldexp(weight, -exponent[codes])
        return cls(counts, exponent, np.stack([np.bincount(codes, unit**k, n_classes) for k in (1, 2, 3)]), True)

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

    def shares(self, codes: Ints, weight: Floats | None) -> Floats:
        """``(n,)`` shares of some samples in the weight of their class."""
        return self.unit(codes, weight) / self.units[codes]

    def unit(self, codes: Ints, weight: Floats | None) -> Floats:
        """``(n,)`` units of some samples."""
        if weight is None:
            return np.broadcast_to(1.0, codes.shape)
        return np.asarray(np.ldexp(weight, -self.exponent[codes]))

    def sizes(self, v: Floats) -> Sizes:
        """What the variance needs of the classes, for pair weights ``v``."""
        present = self.counts > 0
        one, two, three = (np.where(present, power, 1.0) for power in self.powers)
        return Sizes.of_shares(present, two / one**2, three / one**3, v)


@dataclass(frozen=True, eq=False)
class OwnScores:
    """The scores of samples in the column of their class: ascending, equal ones joined."""

    values: tuple[NDArray[np.floating], ...]
    """``C`` arrays."""
    mass: tuple[Floats | None, ...]
    """Summed units of the samples that have the value; None where each is 1."""
    totals: ClassTotals
    first: int = 0
    """The class of the first array, where these are some of the columns; the totals are those of all."""

    @classmethod
    def of(cls, codes: Ints, own: NDArray[np.floating], n_classes: int, weight: Floats | None = None) -> OwnScores:
        """Of a part: ``(n,)`` class codes, own-class scores (float32 is kept) and clean weights. O(n log n)."""
        order = np.argsort(codes, kind="stable")
        totals = ClassTotals.of(codes, n_classes, weight)
        ends = np.cumsum(totals.counts)[:-1]
        units: list[Floats | None] = [None] * n_classes
        if weight is not None:
            units = list(np.split(totals.unit(codes, weight)[order], ends))
        joined = [_joined(*each) for each in zip(np.split(own[order], ends), units, strict=True)]
        values, mass = zip(*joined, strict=True)
        return cls(values, mass, totals)

    def __sizeof__(self) -> int:
        """Bytes of the arrays: a scheduler that takes them for nothing would carry them about."""
        return sum(each.nbytes for each in (*self.values, *self.mass) if each is not None)

    def columns(self, first: int, last: int) -> OwnScores:
        """The classes ``first`` to ``last`` alone."""
        return OwnScores(self.values[first:last], self.mass[first:last], self.totals, first)

    def ladders(self) -> list[Ladder]:
        """One per class, for the second phase."""
        return [Ladder.of(*each) for each in zip(self.values, self.mass, strict=True)]


class Ladder(NamedTuple):
    """One class's own scores, all distinct, ascending: the rungs."""

    values: NDArray[np.floating]
    """``(M,)``"""
    below: Floats | None
    """``(M + 1,)`` summed units below each rung, and of all; None where each rung is 1."""

    @classmethod
    def of(cls, values: NDArray[np.floating], mass: Floats | None) -> Ladder:
        return cls(values, None if mass is None else np.concatenate([[0.0], np.cumsum(mass)]))

    def find(self, x: NDArray[np.floating]) -> tuple[Ints, NDArray[np.bool_]]:
        """The first rung ``>= x`` (``M`` where none is), and whether it equals it.

        Where scores outnumber rungs by far, bins over the rungs; else scores are sorted, for a search that goes up a
        long ladder in order finds the next rungs in the caches: 2 000 000 rungs, 460 ns a score out of order, 170 in.
        """
        rungs = len(self.values)
        if SCORES_PER_RUNG * rungs > len(x):
            order = np.argsort(x)
            position, ascending = np.empty(len(x), dtype=np.int64), x[order]
            found = np.searchsorted(self.values, ascending)
            position[order] = found
            tied = np.zeros(len(x), dtype=bool)
            if rungs:
                tied[order] = (self.values.take(found, mode="clip") == ascending) & (found < rungs)
            return position, tied
        if not rungs:
            return np.zeros(len(x), dtype=np.int64), np.zeros(len(x), dtype=bool)
        wide = self.values.astype(np.float64, copy=False)
        table = sort_columns(wide, np.array([0, rungs]), np.broadcast_to(1.0, wide.shape))
        position, tied = np.empty(len(x), dtype=np.int64), np.empty(len(x), dtype=bool)
        for begin in range(0, len(x), TILE_ELEMENTS):
            rows = slice(begin, begin + TILE_ELEMENTS)
            tile = np.array(x[None, rows], dtype=np.float64)
            (position[rows],), (tied[rows],) = locate(table, tile, columns_first=True)
        return position, tied

    def beaten(self, position: Ints, tied: NDArray[np.bool_]) -> Floats:
        """Units below each score, and half of those at it."""
        if self.below is None:
            return position + 0.5 * tied
        beaten = self.below.take(position)
        ties = np.flatnonzero(tied)
        at = position[ties]
        beaten[ties] += 0.5 * (self.below[at + 1] - self.below[at])
        return beaten


def merge(parts: Sequence[OwnScores]) -> OwnScores:
    """The own scores of several parts, class by class; sorted runs are merged, not sorted anew."""
    if len(parts) == 1:
        return parts[0]
    totals = add_totals([part.totals for part in parts])
    shifts = [part.totals.exponent - totals.exponent for part in parts]
    values, mass = zip(*(_merged(parts, shifts, k) for k in range(len(parts[0].values))), strict=True)
    return OwnScores(values, mass, totals, parts[0].first)


def add_totals(parts: Sequence[ClassTotals]) -> ClassTotals:
    """The totals of several parts."""
    exponent = np.max([part.exponent for part in parts], axis=0)
    power = np.arange(1, 4)[:, None]
    powers = np.sum([np.ldexp(part.powers, power * (part.exponent - exponent)) for part in parts], axis=0)
    return ClassTotals(np.sum([part.counts for part in parts], axis=0), exponent, powers, parts[0].weighted)


def check_class_weights(totals: ClassTotals, labels: NDArray[Any]) -> None:
    """Refuse a class whose samples all weigh nothing, which only the totals of all parts can tell."""
    empty = np.flatnonzero((totals.units == 0) & (totals.counts > 0))
    if len(empty):
        advice = "drop the samples of that class, or give one of them a positive weight"
        came = f"zero for class {labels[empty[0]]}"
        raise invalid("sample_weight", "must have a positive sum in every class", came, advice)


def _merged(parts: Sequence[OwnScores], shifts: list[Ints], k: int) -> tuple[NDArray[np.floating], Floats | None]:
    values = np.concatenate([part.values[k] for part in parts])
    if all(part.mass[k] is None for part in parts):
        return _joined(values, None)
    filled = []
    for part, shift in zip(parts, shifts, strict=True):
        mass = part.mass[k]
        filled.append(np.ones(len(part.values[k])) if mass is None else np.ldexp(mass, shift[part.first + k]))
    return _joined(values, np.concatenate(filled))


def _joined(values: NDArray[np.floating], mass: Floats | None) -> tuple[NDArray[np.floating], Floats | None]:
    """Ascending distinct values with their summed masses."""
    # NumPy's stable sort finds the runs that are sorted already.
    if mass is None:
        values = np.sort(values, kind="stable")
    else:
        order = np.argsort(values, kind="stable")
        values, mass = values[order], mass[order]
    new = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    if new.all():
        return values, mass
    first = np.flatnonzero(new)
    joined = np.diff(first, append=len(values)).astype(np.float64) if mass is None else np.add.reduceat(mass, first)
    return values[first], joined


def count_lost(
    ladders: Sequence[Ladder],
    totals: ClassTotals,
    codes: Ints,
    scores: NDArray[np.floating],
    weight: Floats | None = None,
) -> Floats:
    """``(C, k)`` weight of the pairs that the samples of class j win against the k ladders, ties at ½.

    ``scores`` are the part's ``(n, k)`` in the columns of the ladders. Cells of a class against itself mean nothing.
    About 0.2 µs a score and O(n) memory; the ladders are only read.
    """
    unit = totals.unit(codes, weight)
    lost = np.zeros((len(totals.counts), len(ladders)))
    for k, ladder in enumerate(ladders):
        beaten = ladder.beaten(*ladder.find(scores[:, k]))
        lost[:, k] = np.bincount(codes, unit * beaten, len(lost))
    return lost


def auc_of_lost(lost: Floats, totals: ClassTotals) -> Floats:
    """``(C, C)`` matrix of ``AUC_{i|j}`` from the lost pairs of all parts and columns; NaN as in ``pairwise_auc``."""
    return auc_of_losses(lost.T, totals.units, totals.counts > 0)


class Landed(NamedTuple):
    """What negatives weigh on the rungs of one ladder where they land, and on none of the others."""

    rungs: Ints
    """Ascending; ``M`` for those above all."""
    weight: Floats


class Placed(NamedTuple):
    """What the second phase finds of a part and k ladders, for influences."""

    lost: Floats
    """As :func:`count_lost` has it."""
    landed: tuple[Landed, ...]
    as_negative: Floats
    """``(n,)`` ``Σ_k v_ki mean_k ψ(·, F_nk)`` over these ladders: to be added up over the columns."""


def place(
    ladders: Sequence[Ladder],
    totals: ClassTotals,
    v: Floats,
    codes: Ints,
    scores: NDArray[np.floating],
    weight: Floats | None = None,
    *,
    first: int = 0,
) -> Placed:
    """The second phase with all that influences need; ``v`` are the ``(C, C)`` pair weights, ``first`` is the class of
    the first ladder. A landing is at most as long as the part, and as the ladder.
    """
    unit = totals.unit(codes, weight)
    share = totals.shares(codes, weight)
    lost = np.zeros((len(totals.counts), len(ladders)))
    as_negative = np.zeros(len(codes))
    landed = []
    for k, ladder in enumerate(ladders):
        position, tied = ladder.find(scores[:, k])
        beaten = ladder.beaten(position, tied)
        lost[:, k] = np.bincount(codes, unit * beaten, len(lost))
        pair = v[first + k].take(codes)
        if totals.units[first + k] > 0:
            as_negative += pair * (1.0 - beaten / totals.units[first + k])
        # A positive on rung r wins against what lands up to r. What ties with r counts half on it: it lands half on r,
        # half above.
        pair *= share
        half = np.flatnonzero(tied)
        at = np.concatenate([position, position[half] + 1])
        moved = 0.5 * pair[half]
        pair[half] -= moved
        landed.append(_on_rungs(at, np.concatenate([pair, moved])))
    return Placed(lost, tuple(landed), as_negative)


def add_landed(parts: Sequence[Landed]) -> Landed:
    """The landings of several parts on one ladder."""
    return _on_rungs(np.concatenate([part.rungs for part in parts]), np.concatenate([part.weight for part in parts]))


def _on_rungs(at: Ints, weight: Floats) -> Landed:
    dense = np.bincount(at, weight).astype(np.float64, copy=False)
    rungs = np.flatnonzero(dense)
    return Landed(rungs, dense[rungs])


def won_by_rung(ladder: Ladder, landed: Landed) -> Floats:
    """``(M,)`` influence as a positive, ``Σ_j v_ij mean_j ψ(F_mi, ·)``, of a sample on each rung."""
    dense = np.zeros(len(ladder.values) + 1)
    dense[landed.rungs] = landed.weight
    return np.cumsum(dense[:-1])


def influence(
    ladders: Sequence[Ladder],
    won: Sequence[Floats],
    codes: Ints,
    own: NDArray[np.floating],
    as_negative: Floats,
    *,
    first: int = 0,
) -> Floats:
    """``(n,)`` influences, of those samples of a part whose class has one of these ladders: add the part as a positive
    to ``as_negative``."""
    out = as_negative.copy()
    for k, (ladder, of_rung) in enumerate(zip(ladders, won, strict=True)):
        mine = np.flatnonzero(codes == first + k)
        if len(mine):
            out[mine] += of_rung[ladder.find(own[mine])[0]]
    return out


def mean_influence(matrix: Floats, v: Floats) -> Floats:
    """``(C,)`` mean influence of each class, ``Σ_j v_ij AUC_{i|j} + Σ_k v_ki AUC_{k|i}``."""
    counted = np.where(v > 0, v * np.nan_to_num(matrix), 0.0)
    return counted.sum(axis=1) + counted.sum(axis=0)


def influence_squares(
    mean: Floats, influences: Floats, totals: ClassTotals, codes: Ints, weight: Floats | None = None
) -> Floats:
    """``(C,)`` :attr:`mauc.metrics.uncertainty.Moments.squares` of a part, about the means of all."""
    return squares_about(mean, influences, codes, totals.shares(codes, weight))


def own_scores(codes: Ints, scores: NDArray[Any]) -> NDArray[Any]:
    """``(n,)`` score of each sample in the column of its class."""
    return np.take_along_axis(scores, codes[:, None], axis=1)[:, 0]
