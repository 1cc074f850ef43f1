"""AUC of each class pair, and the influence of each sample: ties count ½, ``O(N·C)`` after a sort per class."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.rank_counts import RankCounts, add_wins, rank_counts, sum_wins, weight_beaten
from mauc._kernels.search import locate, sort_columns
from mauc._kernels.threads import LARGE, ThreadPool, row_parts, thread_count
from mauc._kernels.tiles import Problem
from mauc._typing import Floats, Ints

__all__ = ["auc_influence", "auc_matrix", "auc_of_losses"]


def auc_influence(problem: Problem) -> Floats:
    """Return the ``(N,)`` share of each sample in ``Σ_ij v_ij AUC_{i|j}``, as a positive and as a negative.

    ``h_n = Σ_j v_ij mean_j ψ(F_ni, ·) + Σ_k v_ki mean_k ψ(·, F_nk)`` for ``n`` in class ``i``, ψ counting a tie as ½.
    """
    influence = np.zeros(len(problem.classes.y))
    auc_matrix(problem, influence=influence)
    return influence


def auc_matrix(problem: Problem, share: float = 1.0, influence: Floats | None = None) -> Floats:
    """Return the ``(C, C)`` matrix of ``AUC_{i|j}``; NaN on the diagonal and where a class has no sample.

    ``unit`` may be any sample weights: with ones, the sums are multiples of ½ and the result is exact. With a ``share``
    below 1, only the lowest share of the positives of each column counts: :mod:`mauc._kernels.rank_counts`. The
    influence of each sample is added to ``influence`` if it is given.
    """
    classes, n_classes = problem.classes, problem.classes.n_classes
    total = np.bincount(classes.y, None if classes.counted else classes.unit, n_classes).astype(np.float64, copy=False)
    lost = np.zeros((n_classes, n_classes))
    problem = replace(problem, scores=np.ascontiguousarray(problem.scores))
    blocks = _column_blocks(classes.offsets, problem.block_positives)
    with ThreadPool(thread_count() if problem.scores.size >= LARGE else 1) as pool:
        tables = pool.each(partial(_sorted_positives, problem, *block, share) for block in blocks)
        for first, last in blocks:  # without a name, which would keep the table during the next sort
            lost[:, first:last] = _search_block(problem, first, last, next(tables), pool, total, influence)
    return auc_of_losses(lost.T, total, np.diff(classes.offsets) > 0, share)


def auc_of_losses(lost: Floats, total: Floats, present: NDArray[np.bool_], share: float = 1.0) -> Floats:
    """Return ``(C, C)`` AUCs from the weight of the pairs that class i loses to class j and the ``(C,)`` class weights.

    ``share`` is the share of class i that counts.
    """
    pairs = share * total[:, None] * total
    auc = np.full(pairs.shape, np.nan)
    np.divide(pairs - lost, pairs, out=auc, where=present[:, None] & present)
    np.clip(auc, 0.0, 1.0, out=auc)  # weights round
    np.fill_diagonal(auc, np.nan)
    return auc


def _column_blocks(offsets: Ints, block_positives: int) -> list[tuple[int, int]]:
    """Return ranges of columns with about ``block_positives`` positives, at least one column each."""
    edges, n_columns = [0], len(offsets) - 1
    while edges[-1] < n_columns:
        reach = int(np.searchsorted(offsets, offsets[edges[-1]] + block_positives, side="right")) - 1
        edges.append(min(max(reach, edges[-1] + 1), n_columns))
    return list(pairwise(edges))


def _sorted_positives(problem: Problem, first: int, last: int, share: float) -> RankCounts:
    """Sort the positives of some neighbouring columns; the lowest share of them counts."""
    classes = problem.classes
    begin, end = int(classes.offsets[first]), int(classes.offsets[last])
    mine = classes.order[begin:end]
    # Indices into the flat scores: NumPy takes from one axis several times faster than from two.
    own = problem.scores.ravel().take(mine * problem.scores.shape[1] + classes.y[mine])
    weight = None if classes.counted else classes.unit[mine]
    table = sort_columns(own, classes.offsets[first : last + 1] - begin, weight)
    return rank_counts(table, counted=classes.counted, share=share)


def _search_block(
    problem: Problem,
    first: int,
    last: int,
    counts: RankCounts,
    pool: ThreadPool,
    total: Floats,
    influence: Floats | None,
) -> Floats:
    """Return the ``(C, last − first)`` weight of the pairs that class j wins against column i, ties at ½."""
    table, classes = counts.table, problem.classes
    n_columns, width = problem.scores.shape[1], last - first
    mine = slice(int(classes.offsets[first]), int(classes.offsets[last]))
    # A single column has no pair with its own class: its samples, often most of all, are skipped.
    skipped = mine.stop - mine.start if width == 1 else 0
    columns_first = width < problem.columns_first_below
    start = table.start[:-1, None] if columns_first else table.start[:-1]
    step = max(1, problem.tile_elements // width)

    def visit(begin: int, end: int) -> tuple[Floats, Floats]:
        lost = np.zeros((n_columns, width))
        received = np.zeros(0 if influence is None else len(table.values))
        for k in range(begin, end, step):
            some = _rows_without(classes.order, mine.start, skipped, k, min(k + step, end))
            x = _take(problem.scores, some, first, last, columns_first=columns_first)
            position, tied = locate(table, x, columns_first=columns_first)
            ties = np.flatnonzero(tied)
            beaten = weight_beaten(counts, position, ties, start)
            _add_by_class(lost, problem, some, beaten.T if columns_first else beaten)
            if influence is not None:
                beaten = beaten.T if columns_first else beaten
                weight = _add_as_negatives(influence, problem, some, slice(first, last), beaten, total, counts.share)
                weight = np.ascontiguousarray(weight.T) if columns_first else weight
                add_wins(counts, received, position.ravel(), weight.ravel(), ties)
        return lost, received

    parts = pool.each(partial(visit, *part) for part in row_parts(len(classes.y) - skipped, width))
    lost, received = next(parts)
    for more, more_received in parts:
        lost += more
        received += more_received
    if influence is not None:
        influence[classes.order[mine]] += sum_wins(counts, received)
    return lost


def _rows_without(order: Ints, first: int, skipped: int, start: int, stop: int) -> Ints:
    """Return ``order[start:stop]`` as if its ``skipped`` entries from ``first`` on were deleted."""
    if stop <= first or not skipped:
        return order[start:stop]
    if start >= first:
        return order[start + skipped : stop + skipped]
    return np.concatenate([order[start:first], order[first + skipped : stop + skipped]])


def _take(
    scores: NDArray[np.floating], rows: Ints, first: int, last: int, *, columns_first: bool
) -> NDArray[np.floating]:
    """Return some rows of some columns, contiguous, as ``(columns, rows)`` if ``columns_first``."""
    n_columns = scores.shape[1]
    if last - first == n_columns:
        x = scores.take(rows, axis=0)
        return np.ascontiguousarray(x.T) if columns_first else x
    columns, flat = np.arange(first, last), scores.ravel()
    if columns_first:
        return flat.take(columns[:, None] + rows * n_columns)
    return flat.take(columns + (rows * n_columns)[:, None])


def _add_as_negatives(
    influence: Floats, problem: Problem, some: Ints, columns: slice, beaten: Floats, total: Floats, share: float
) -> Floats:
    """Add the influence of these samples as negatives, ``v_ij (1 − beaten share)``.

    Returns the ``(rows, columns)`` weight of each of them for a positive that beats it.
    """
    classes = problem.classes
    per_weight = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)
    y = classes.y[some]
    y = y[:1] if y[0] == y[-1] else y
    v = classes.of_negative[:, columns].take(y, axis=0)
    worth = beaten * (per_weight[columns] / share)
    np.subtract(1.0, worth, out=worth)
    worth *= v
    influence[some] += worth.sum(axis=1)
    unit = per_weight[y] if classes.counted else per_weight[y] * classes.unit[some]
    np.multiply(v, unit[:, None], out=worth)
    return worth


def _add_by_class(lost: Floats, problem: Problem, some: Ints, beaten: Floats) -> None:
    """Add the rows of ``beaten``, weighted, to the rows of their classes in ``lost``."""
    classes = problem.classes
    y = classes.y[some]
    low, high = y[0], y[-1]
    if low == high:
        lost[low] += beaten.sum(axis=0) if classes.counted else np.einsum("n,nc->c", classes.unit[some], beaten)
    else:
        # Rows are grouped by class, so a small indicator matrix sums them; np.add.reduceat took twice as long.
        present = np.arange(low, high + 1)
        lost[present] += np.where(present[:, None] == y, classes.unit[some], 0.0) @ beaten
