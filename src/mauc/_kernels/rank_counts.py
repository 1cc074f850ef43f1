"""The weight of positives that a score beats, and the wins of each positive: of all of them, or of a lowest share.

A partial AUC over the sensitivities of at least ``1 − share`` is the AUC of the positives in the lowest ``share`` of
their class: every threshold of such a sensitivity finds the others. The ROC curve is straight across a tie, so a cut
may go through tied positives: if a share ``q`` of them is below the cut, these are the last that a falling threshold
finds, and win ``q / 2`` against a negative that ties with them.

With the share ``q_k`` that is left of the k-th value, 1 below the cut ξ and 0 above it, a positive there wins ``g_k``:
all negatives below, and ``q_k − q_k²/2`` of those that tie; ``q_k`` of that goes to the positives above. The mean over
the lowest share c is ``(mean g − (1 − c) g(ξ)) / c``, and a positive moves it by ``(g_k − (1 − c) g(ξ)) / c``. The cut
moves too, but no density is needed for that, as the positives at the cut have ``g(ξ)`` already.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.search import SortedColumns
from mauc._typing import Floats, Ints

__all__ = ["RankCounts", "add_wins", "rank_counts", "sum_wins", "weight_beaten"]

# If less than this part of the class weight is left of the share at a value, it is rounding: 1 − 0.9 is not 0.1.
ROUNDING = 1e-12


class RankCounts(NamedTuple):
    """The weights that count at each position of a sorted table, as ``(M + C,)`` arrays."""

    table: SortedColumns
    share: float
    below: Floats | None
    """Counted weight below each position; None if that is its index in the column."""
    reached: NDArray[np.bool_] | None
    """True where some of the value counts; None: all of every value."""
    at_tie: Floats | None
    """Share of its weight that a tied negative beats; None: a half."""
    above_tie: Floats | None
    """Share of a tie that goes to the positives above; None: a half."""


def rank_counts(table: SortedColumns, *, counted: bool, share: float = 1.0) -> RankCounts:
    """Count all positives, or the lowest ``share`` of each column; ``counted``: each of them weighs 1."""
    if share == 1.0:
        distinct = counted and len(table.values) == len(table.slot) + len(table.start) - 1
        return RankCounts(table, share, None if distinct else _weight_below(table), None, None, None)
    below = _weight_below(table)
    total = below[table.start[1:] - 1].repeat(np.diff(table.start))
    cut = share * total
    room = cut - below
    room[(np.abs(room) <= ROUNDING * total) & (below > 0.0)] = 0.0
    reached = room > 0.0
    left = reached.astype(np.float64)
    np.divide(room, table.mass, out=left, where=reached & (table.mass > room))
    above_tie = 0.5 * left**2
    return RankCounts(table, share, np.minimum(below, cut), reached, left - above_tie, above_tie)


def weight_beaten(counts: RankCounts, position: Ints, ties: Ints, start: Ints) -> Floats:
    """Return the weight of the positives below scores at ``position``, and half of those that tie.

    ``ties`` are the indices of scores that tie; ``start`` is the first position of each score's column, in a shape
    that broadcasts.
    """
    beaten = (position - start).astype(np.float64) if counts.below is None else counts.below.take(position)
    at = position.ravel()[ties]
    beaten.ravel()[ties] += counts.table.mass[at] * (0.5 if counts.at_tie is None else counts.at_tie[at])
    return beaten


def add_wins(counts: RankCounts, received: Floats, place: Ints, weight: Floats, ties: Ints) -> None:
    """Add the weight of each negative at its place, for the positives at or above it: half of it where they tie.

    np.bincount would go over all of ``received`` for every tile. ``weight`` is overwritten.
    """
    at, tied = place[ties], weight[ties]
    if counts.reached is not None:
        weight *= counts.reached.take(place)
    weight[ties] = tied * (0.5 if counts.at_tie is None else counts.at_tie[at])
    np.add.at(received, place, weight)
    np.add.at(received, at + 1, tied * (0.5 if counts.above_tie is None else counts.above_tie[at]))


def sum_wins(counts: RankCounts, received: Floats) -> Floats:
    """Return the ``(N,)`` wins of each positive, from all weights at or below it. ``received`` is overwritten."""
    for begin, end in pairwise(counts.table.start):
        column = received[begin:end]
        np.cumsum(column, out=column)
        if counts.share < 1.0:
            column -= (1.0 - counts.share) * column[-1]
            column /= counts.share
    return received.take(counts.table.slot)


def _weight_below(table: SortedColumns) -> Floats:
    """Return the ``(M + C,)`` weight of the positives below each position of its column."""
    below = np.zeros(len(table.values))
    for begin, end in pairwise(table.start):
        np.cumsum(table.mass[begin : end - 1], out=below[begin + 1 : end])
    return below
