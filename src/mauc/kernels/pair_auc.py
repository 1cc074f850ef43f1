"""AUCs of class pairs of which each has a ranking of its own: ``O(N·C)`` after a sort of ``N·C`` scores.

Where column i ranks class i against all others, its positives are sorted once (:mod:`mauc.kernels.auc`). Here the
samples of class i have another score in each pair (i, j); they are sorted for a block of classes j at a time, and the
samples of each j are searched among those of its pair. The score is one of two:

- ``F_i − F_j``, the difference. That of (j, i) ranks the other way round, so that a pair has one AUC.
- ``−F_j``, the other column reversed: how column j ranks its own class above class i, seen from class i.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from mauc._typing import Floats, Ints
from mauc.kernels.auc import BLOCK_POSITIVES, auc_of_losses
from mauc.kernels.search import locate_each, sort_columns
from mauc.kernels.standing import standing_in
from mauc.kernels.threads import LARGE, Crew, thread_count
from mauc.kernels.tiles import TILE_ELEMENTS, Problem

__all__ = ["pair_matrix", "pair_matrix_and_influence"]


def pair_matrix(problem: Problem, *, difference: bool, share: float = 1.0) -> Floats:
    """``(C, C)`` AUC of class i against class j, NaN on the diagonal and where a class has no sample.

    With a ``share`` below 1, of the lowest share of class i: :mod:`mauc.kernels.standing`. Differences must be finite.
    """
    return _matrix(problem, difference, share, None)


def pair_matrix_and_influence(problem: Problem, *, difference: bool, share: float = 1.0) -> tuple[Floats, Floats]:
    """:func:`pair_matrix`, and the ``(N,)`` share of each sample in its sum under the weights ``v``.

    The shares of the samples of a class have the mean ``Σ_j v_ij AUC_ij + v_ji AUC_ji``.
    """
    influence = np.zeros(len(problem.classes.y))
    return _matrix(problem, difference, share, influence), influence


def _matrix(problem: Problem, difference: bool, share: float, influence: Floats | None) -> Floats:
    classes, n_classes = problem.classes, problem.classes.n_classes
    total = np.bincount(classes.y, classes.unit, n_classes).astype(np.float64, copy=False)
    # The AUC of a difference over all samples is the same from either side: one of them will do.
    one_side = difference and share == 1.0
    v = None
    if influence is not None:
        v = np.triu(classes.v + classes.v.T) if one_side else classes.v
    lost = np.zeros((n_classes, n_classes))
    work = _Work(problem, problem.own, difference, share, v, total)
    with Crew(thread_count() if problem.scores.size >= LARGE else 1) as crew:
        for found in crew.each(partial(work.against, *block) for block in _blocks(classes.offsets, one_side=one_side)):
            lost[found.i, found.first : found.first + len(found.lost)] = found.lost
            if influence is not None:
                influence[found.mine] += found.as_positive
                influence[found.others] += found.as_negative
    if one_side:
        lost += lost.T
    return auc_of_losses(lost, total, np.diff(classes.offsets) > 0, share)


def _blocks(offsets: Ints, *, one_side: bool) -> Iterator[tuple[int, int, int]]:
    """Each class that has samples with ranges of others, of about :data:`mauc.kernels.auc.BLOCK_POSITIVES` scores."""
    size = np.diff(offsets)
    for i in np.flatnonzero(size).tolist():
        step = max(1, BLOCK_POSITIVES // int(size[i]))
        for low, high in ((i + 1, len(size)),) if one_side else ((0, i), (i + 1, len(size))):
            yield from ((i, first, min(first + step, high)) for first in range(low, high, step))


class _Found(NamedTuple):
    """Of class i against the classes from ``first`` on."""

    i: int
    first: int
    lost: Floats
    """``(classes,)`` weight of the pairs of samples that class i loses, ties at ½."""
    mine: Ints
    as_positive: Floats
    others: Ints
    as_negative: Floats


class _Work(NamedTuple):
    """What every block needs."""

    problem: Problem
    own: Floats
    """``(N,)`` score of each sample in the column of its class."""
    difference: bool
    share: float
    v: Floats | None
    """``(C, C)`` pair weights; None where influences are not wanted."""
    total: Floats
    """``(C,)`` weight of each class."""

    def against(self, i: int, first: int, last: int) -> _Found:
        """Class i against the classes from ``first`` to ``last``."""
        classes, width = self.problem.classes, last - first
        mine, others = (classes.order[classes.offsets[a] : classes.offsets[b]] for a, b in ((i, i + 1), (first, last)))
        of_others = self.problem.scores[mine, first:last].T.astype(np.float64)
        weight = None if classes.counted else np.tile(classes.unit[mine], width)
        ranked = (self.own.take(mine) - of_others if self.difference else -of_others).ravel()
        table = sort_columns(ranked, np.arange(width + 1) * len(mine), weight)
        standing = standing_in(table, counted=classes.counted, share=self.share)
        wanted = self.v is not None
        lost, as_positive, as_negative = np.zeros(width), np.zeros(0), np.zeros(len(others) if wanted else 0)
        landed = np.zeros(len(table.values) if wanted else 0)
        for begin in range(0, len(others), TILE_ELEMENTS):
            some = others[begin : begin + TILE_ELEMENTS]
            column, unit, x = classes.y[some] - first, classes.unit[some], -self.own.take(some)
            if self.difference:
                x += self.problem.scores[some, i]
            position, tied = locate_each(table, x, column)
            ties = np.flatnonzero(tied)
            beaten = standing.beaten(position, ties, table.start[column])
            lost += np.bincount(column, unit * beaten, width)
            if self.v is not None:
                pair = self.v[i, first:last].take(column)
                as_negative[begin : begin + TILE_ELEMENTS] = pair * (1.0 - beaten / (self.share * self.total[i]))
                standing.land(landed, position, pair * unit / self.total[first:last].take(column), ties)
        if wanted:
            as_positive = standing.won(landed).reshape(width, len(mine)).sum(axis=0)
        return _Found(i, first, lost, mine, as_positive, others, as_negative)
