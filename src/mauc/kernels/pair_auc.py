"""AUCs of class pairs of which each has a ranking of its own: ``O(N·C)`` after a sort of ``N·C`` scores.

Where column i ranks class i against all others, its positives are sorted once (:mod:`mauc.kernels.auc`). Here the
samples of class i have another score in each pair (i, j), say ``F_i − F_j``; they are sorted for a block of classes j
at a time, and the samples of each j are searched among those of its pair.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.auc import BLOCK_POSITIVES, auc_of_lost
from mauc.kernels.search import locate_each, sort_columns
from mauc.kernels.standing import standing_in
from mauc.kernels.threads import LARGE, Crew, thread_count
from mauc.kernels.tiles import TILE_ELEMENTS, Problem

__all__ = ["Ranking", "difference", "other_reversed", "pair_matrix", "pair_matrix_and_influence"]

Ranking = Callable[[Floats, Floats], Floats]
"""The score that ranks class i above class j, from the scores of a sample in columns i and j."""


def difference(of_i: Floats, of_j: Floats) -> Floats:
    """``F_i − F_j``: that of (j, i) ranks the other way round, so that a pair has one AUC."""
    return of_i - of_j


def other_reversed(of_i: Floats, of_j: Floats) -> Floats:
    """``−F_j``: how column j ranks its own class above class i, seen from class i."""
    return np.broadcast_to(-of_j, np.broadcast_shapes(of_i.shape, of_j.shape))


def pair_matrix(problem: Problem, ranking: Ranking, share: float = 1.0) -> Floats:
    """``(C, C)`` AUC of class i against class j, NaN on the diagonal and where a class has no sample.

    With a ``share`` below 1, of the lowest share of class i: :mod:`mauc.kernels.standing`.
    """
    return _matrix(problem, ranking, share, None)


def pair_matrix_and_influence(problem: Problem, ranking: Ranking, share: float = 1.0) -> tuple[Floats, Floats]:
    """:func:`pair_matrix`, and the ``(N,)`` share of each sample in its sum under the weights ``v``.

    The shares of the samples of a class have the mean ``Σ_j v_ij AUC_ij + v_ji AUC_ji``.
    """
    influence = np.zeros(len(problem.classes.y))
    return _matrix(problem, ranking, share, influence), influence


def _matrix(problem: Problem, ranking: Ranking, share: float, influence: Floats | None) -> Floats:
    classes, n_classes = problem.classes, problem.classes.n_classes
    total = np.bincount(classes.y, classes.unit, n_classes)
    # An AUC of all samples of a pair is the same from either side: one of them will do.
    one_side = ranking is difference and share == 1.0
    v = None
    if influence is not None:
        v = np.triu(classes.v + classes.v.T) if one_side else classes.v
    lost = np.zeros((n_classes, n_classes))
    task = partial(_against, problem, ranking, share, v, total)
    with Crew(thread_count() if problem.scores.size >= LARGE else 1) as crew:
        for found in crew.each(partial(task, *block) for block in _blocks(classes.offsets, one_side=one_side)):
            lost[found.i, found.first : found.first + len(found.lost)] = found.lost
            if influence is not None:
                influence[found.mine] += found.as_positive
                influence[found.others] += found.as_negative
    if one_side:
        lost += lost.T
    return auc_of_lost(lost, total, share, np.diff(classes.offsets) > 0)


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


def _against(
    problem: Problem, ranking: Ranking, share: float, v: Floats | None, total: Floats, i: int, first: int, last: int
) -> _Found:
    """One block; ``v`` is None where influences are not wanted."""
    classes, scores, width = problem.classes, problem.scores, last - first
    mine, others = (classes.order[classes.offsets[a] : classes.offsets[b]] for a, b in ((i, i + 1), (first, last)))
    own = ranking(_wide(scores[mine, i]), _wide(scores[mine, first:last].T)).ravel()
    weight = None if classes.counted else np.tile(classes.unit[mine], width)
    table = sort_columns(own, np.arange(width + 1) * len(mine), weight)
    standing = standing_in(table, counted=classes.counted, share=share)
    lost, as_negative = np.zeros(width), np.zeros(0 if v is None else len(others))
    landed = np.zeros(0 if v is None else len(table.values))
    for begin in range(0, len(others), TILE_ELEMENTS):
        some = others[begin : begin + TILE_ELEMENTS]
        y, unit = classes.y[some], classes.unit[some]
        x = ranking(_wide(scores[some, i]), _wide(scores[some, y]))
        position, tied = locate_each(table, x, y - first)
        ties = np.flatnonzero(tied)
        beaten = standing.beaten(position, ties, table.start[y - first])
        lost += np.bincount(y - first, unit * beaten, width)
        if v is not None:
            pair = v[i].take(y)
            as_negative[begin : begin + TILE_ELEMENTS] = pair * (1.0 - beaten / (share * total[i]))
            standing.land(landed, position, pair * unit / total[y], ties)
    as_positive = np.zeros(0) if v is None else standing.won(landed).reshape(width, len(mine)).sum(axis=0)
    return _Found(i, first, lost, mine, as_positive, others, as_negative)


def _wide(scores: NDArray[np.floating]) -> Floats:
    return scores.astype(np.float64)
