"""What a score beats among sorted positives, and what each of these has beaten: all of them, or their lowest share.

A partial AUC over the sensitivities of at least ``1 − share`` is the AUC of the positives in the lowest ``share`` of
their class: the others are found at any threshold that finds so many. The ROC curve is straight across a tie, and so
is the cut through one: where a share ``q`` of tied positives is left, these are the last that a falling threshold
finds, and win ``q / 2`` against a negative that ties with them.
"""

from itertools import pairwise

import numpy as np

from mauc._typing import Floats, Ints
from mauc.kernels.search import SortedColumns

__all__ = ["Standing", "standing_in"]

# What is left of the share at a value, over the weight of the class, if that is but rounding: 1 − 0.9 is not 0.1.
ROUNDING = 1e-12


class Standing:
    """Every positive counts."""

    def __init__(self, table: SortedColumns, *, counted: bool) -> None:
        self.table = table
        n_columns = len(table.start) - 1
        places = counted and len(table.values) == len(table.slot) + n_columns
        self.below = None if places else _weight_below(table)
        """``(M + C,)`` weight below each position; None where that is its place in the column."""

    def beaten(self, position: Ints, ties: Ints, start: Ints) -> Floats:
        """Weight of the positives below scores at ``position`` and, for the ``ties`` among them, half of those at it.

        ``start`` is the first position of each score's column, in a shape that broadcasts.
        """
        beaten = (position - start).astype(np.float64) if self.below is None else self.below.take(position)
        beaten.ravel()[ties] += 0.5 * self.table.mass[position.ravel()[ties]]
        return beaten

    def land(self, landed: Floats, place: Ints, weight: Floats, ties: Ints) -> None:
        """Negatives hand their weight to the positives at or above their place: half of it to one that they tie with.

        np.bincount would go over all of ``landed`` for every tile. ``weight`` is spent.
        """
        weight[ties] *= 0.5
        np.add.at(landed, place, weight)
        np.add.at(landed, place[ties] + 1, weight[ties])

    def won(self, landed: Floats) -> Floats:
        """``(N,)`` what each given positive has won, from all that landed at or below it. ``landed`` is spent."""
        for begin, end in pairwise(self.table.start):
            np.cumsum(landed[begin:end], out=landed[begin:end])
        return landed.take(self.table.slot)


class LowestStanding(Standing):
    """The lowest ``share`` of each column's positives counts.

    With the share ``q_k`` that is left of the k-th value, 1 below the cut ξ and 0 above it, a positive there wins
    ``g_k``: what lands below, and ``q_k − q_k²/2`` of what ties; ``q_k`` of that reaches those above. The mean over the
    lowest share c is ``(mean g − (1 − c) g(ξ)) / c``, which moves by ``(g_k − (1 − c) g(ξ)) / c`` with a positive: the
    cut itself moves as well, and no density is needed for that, as what it gains is at ``g(ξ)`` already.
    """

    def __init__(self, table: SortedColumns, share: float) -> None:
        super().__init__(table, counted=False)
        assert self.below is not None
        self.share = share
        total = self.below[table.start[1:] - 1].repeat(np.diff(table.start))
        cut = share * total
        room = cut - self.below
        room[(np.abs(room) <= ROUNDING * total) & (self.below > 0.0)] = 0.0
        self.reached = room > 0.0
        left = self.reached.astype(np.float64)
        np.divide(room, table.mass, out=left, where=self.reached & (table.mass > room))
        self.above_tie = 0.5 * left**2
        self.at_tie = left - self.above_tie
        self.below = np.minimum(self.below, cut)

    def beaten(self, position: Ints, ties: Ints, start: Ints) -> Floats:
        assert self.below is not None
        beaten = self.below.take(position)
        at = position.ravel()[ties]
        beaten.ravel()[ties] += self.table.mass[at] * self.at_tie[at]
        return beaten

    def land(self, landed: Floats, place: Ints, weight: Floats, ties: Ints) -> None:
        at, tied = place[ties], weight[ties]
        weight *= self.reached.take(place)
        weight[ties] = tied * self.at_tie[at]
        np.add.at(landed, place, weight)
        np.add.at(landed, at + 1, tied * self.above_tie[at])

    def won(self, landed: Floats) -> Floats:
        for begin, end in pairwise(self.table.start):
            column = landed[begin:end]
            np.cumsum(column, out=column)
            column -= (1.0 - self.share) * column[-1]
            column /= self.share
        return landed.take(self.table.slot)


def standing_in(table: SortedColumns, *, counted: bool, share: float = 1.0) -> Standing:
    """Of all positives, or of the lowest share of each column; ``counted``: each of them weighs 1."""
    return Standing(table, counted=counted) if share == 1.0 else LowestStanding(table, share)


def _weight_below(table: SortedColumns) -> Floats:
    """``(M + C,)`` weight of the positives below each position of its column."""
    below = np.zeros(len(table.values))
    for begin, end in pairwise(table.start):
        np.cumsum(table.mass[begin : end - 1], out=below[begin + 1 : end])
    return below
