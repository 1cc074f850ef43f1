"""AUCs where each class pair has its own score: ``O(N·C)`` after a sort of ``N·C`` scores.

Where column i ranks class i against all others, its positives are sorted once (:mod:`mauc._kernels.auc`). Here the
samples of class i have another score in each pair (i, j); they are sorted for a block of classes j at a time, and the
samples of each j are searched among those of its pair. The score is one of two:

- ``F_i − F_j``, the difference. The score of (j, i) is its negative, so that a pair has one AUC.
- ``−F_j``, the other column reversed: how well column j ranks its own class above class i.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from mauc._kernels.auc import auc_of_losses
from mauc._kernels.rank_counts import add_wins, rank_counts, sum_wins, weight_beaten
from mauc._kernels.search import locate_each, sort_columns
from mauc._kernels.threads import LARGE, ThreadPool, thread_count
from mauc._kernels.tiles import Problem
from mauc._typing import Floats, Ints

__all__ = ["pair_matrix"]


def pair_matrix(problem: Problem, *, difference: bool, share: float, influence: Floats | None) -> Floats:
    """Return the ``(C, C)`` AUC of class i against class j, NaN on the diagonal and where a class has no sample.

    With a ``share`` below 1, only the lowest share of class i counts: :mod:`mauc._kernels.rank_counts`.
    Differences must be finite. The influence of each sample is added to ``influence`` if it is given. The influences of
    the samples of a class have the mean ``Σ_j v_ij AUC_ij + v_ji AUC_ji``.
    """
    classes, n_classes = problem.classes, problem.classes.n_classes
    total = np.bincount(classes.y, classes.unit, n_classes).astype(np.float64, copy=False)
    # The AUC of a difference over all samples is the same from either side: one side is enough.
    one_side = difference and share == 1.0
    v = None
    if influence is not None:
        v = np.triu(classes.v + classes.v.T) if one_side else classes.v
    lost = np.zeros((n_classes, n_classes))
    blocks = list(_blocks(classes.offsets, problem.block_positives, one_side=one_side))
    search = partial(_against, problem, difference=difference, share=share, v=v, total=total)
    with ThreadPool(thread_count() if problem.scores.size >= LARGE else 1) as pool:
        found = pool.each(partial(search, *block) for block in blocks)
        for (i, first, last), (lost_here, as_positive, as_negative) in zip(blocks, found, strict=True):
            lost[i, first:last] = lost_here
            if influence is not None:
                influence[classes.order[classes.offsets[i] : classes.offsets[i + 1]]] += as_positive
                influence[classes.order[classes.offsets[first] : classes.offsets[last]]] += as_negative
    if one_side:
        lost += lost.T
    return auc_of_losses(lost, total, np.diff(classes.offsets) > 0, share)


def _blocks(offsets: Ints, block_positives: int, *, one_side: bool) -> Iterator[tuple[int, int, int]]:
    """Yield each class that has samples with ranges of others, of about ``block_positives`` scores."""
    size = np.diff(offsets)
    for i in np.flatnonzero(size).tolist():
        step = max(1, block_positives // int(size[i]))
        for low, high in ((i + 1, len(size)),) if one_side else ((0, i), (i + 1, len(size))):
            yield from ((i, first, min(first + step, high)) for first in range(low, high, step))


def _against(
    problem: Problem,
    i: int,
    first: int,
    last: int,
    *,
    difference: bool,
    share: float,
    v: Floats | None,
    total: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Compare class i with the classes from ``first`` to ``last``.

    ``v`` are the ``(C, C)`` pair weights, None if influences are not wanted; ``total`` is the weight of each class.
    Returns the ``(classes,)`` weight of the pairs of samples that class i loses, ties at ½, and the influences of its
    own samples and of the others.
    """
    classes, width, own = problem.classes, last - first, problem.own
    mine, others = (classes.order[classes.offsets[a] : classes.offsets[b]] for a, b in ((i, i + 1), (first, last)))
    of_others = problem.scores[mine, first:last].T.astype(np.float64)
    weight = None if classes.counted else np.tile(classes.unit[mine], width)
    ranked = (own.take(mine) - of_others if difference else -of_others).ravel()
    table = sort_columns(ranked, np.arange(width + 1) * len(mine), weight)
    counts = rank_counts(table, counted=classes.counted, share=share)
    lost, as_positive, as_negative = np.zeros(width), np.zeros(0), np.zeros(0 if v is None else len(others))
    received = np.zeros(0 if v is None else len(table.values))
    for begin in range(0, len(others), problem.tile_elements):
        some = others[begin : begin + problem.tile_elements]
        column, unit, x = classes.y[some] - first, classes.unit[some], -own.take(some)
        if difference:
            x += problem.scores[some, i]
        position, tied = locate_each(table, x, column)
        ties = np.flatnonzero(tied)
        beaten = weight_beaten(counts, position, ties, table.start[column])
        lost += np.bincount(column, unit * beaten, width)
        if v is not None:
            pair = v[i, first:last].take(column)
            as_negative[begin : begin + problem.tile_elements] = pair * (1.0 - beaten / (share * total[i]))
            add_wins(counts, received, position, pair * unit / total[first:last].take(column), ties)
    if v is not None:
        as_positive = sum_wins(counts, received).reshape(width, len(mine)).sum(axis=0)
    return lost, as_positive, as_negative
