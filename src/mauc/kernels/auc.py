"""The metric and the influence of each sample on it: pair counts with ties at ½, ``O(N·C)`` after a sort per class."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from mauc._typing import Floats, Ints
from mauc.kernels.search import SortedColumns, locate, sort_columns
from mauc.kernels.threads import over_rows
from mauc.kernels.tiles import COLUMNS_FIRST_BELOW, TILE_ELEMENTS, Problem, Tile, walk

__all__ = ["auc_influence", "auc_matrix"]


# Positives whose bins stay in the caches while all rows pass by; columns are taken in blocks of about as many.
BLOCK_POSITIVES = 1 << 16

SMALLEST_SHARE = 1e-250


def auc_matrix(problem: Problem) -> Floats:
    """``(C, C)`` matrix of ``AUC_{i|j}``; NaN on the diagonal and where a class has no sample.

    ``unit`` may be any sample weights: with ones, the sums are whole and half numbers and the result is exact.
    """
    n_classes = problem.classes.n_classes
    lost = np.zeros((n_classes, n_classes))
    for first, last in _column_blocks(problem.classes.offsets):
        lost[:, first:last] = _lost(problem, first, last)
    total = np.bincount(problem.classes.y, problem.classes.unit, n_classes)
    pairs = total[:, None] * total
    present = np.diff(problem.classes.offsets) > 0
    auc = np.full((n_classes, n_classes), np.nan)
    np.divide(pairs - lost.T, pairs, out=auc, where=present[:, None] & present)
    np.clip(auc, 0.0, 1.0, out=auc)  # weights round
    np.fill_diagonal(auc, np.nan)
    return auc


def _column_blocks(offsets: Ints) -> list[tuple[int, int]]:
    """Ranges of columns with about :data:`BLOCK_POSITIVES` positives, one column at least."""
    edges, n_columns = [0], len(offsets) - 1
    while edges[-1] < n_columns:
        reach = int(np.searchsorted(offsets, offsets[edges[-1]] + BLOCK_POSITIVES, side="right")) - 1
        edges.append(min(max(reach, edges[-1] + 1), n_columns))
    return list(pairwise(edges))


def _lost(problem: Problem, first: int, last: int) -> Floats:
    """``(C, last − first)`` weight of the pairs that class j wins against column i, ties at ½."""
    order, offsets = problem.classes.order, problem.classes.offsets
    n_columns = problem.scores.shape[1]
    begin, end = int(offsets[first]), int(offsets[last])
    mine = order[begin:end]
    # Indices into the flat scores: NumPy takes from one axis several times faster than from two.
    flat = problem.scores.ravel()
    own = flat.take(mine * n_columns + problem.classes.y[mine]).astype(np.float64, copy=False)
    table = sort_columns(own, offsets[first : last + 1] - begin, problem.classes.unit[mine])
    below = _weight_below(table)
    columns = np.arange(first, last)
    columns_first = len(columns) < COLUMNS_FIRST_BELOW
    # A single column has no pair with its own class: its samples, often the most, are passed over.
    rows = order if last - first > 1 else np.concatenate([order[:begin], order[end:]])
    step = max(1, TILE_ELEMENTS // (last - first))

    def visit(start: int, stop: int) -> Floats:
        lost = np.zeros((n_columns, last - first))
        for k in range(start, stop, step):
            some = rows[k : min(k + step, stop)]
            if columns_first:
                x = flat.take(columns[:, None] + some * n_columns)
            elif len(columns) == n_columns:
                x = problem.scores.take(some, axis=0)
            else:
                x = flat.take(columns + (some * n_columns)[:, None])
            position, tied = locate(table, x.astype(np.float64, copy=False), columns_first=columns_first)
            beaten = _beaten(table, below, position, np.flatnonzero(tied))
            unit, by_row = problem.classes.unit[some], beaten.T if columns_first else beaten
            low, high = problem.classes.y[some[0]], problem.classes.y[some[-1]]
            if low == high:
                lost[low] += np.einsum("n,nc->c", unit, by_row)
            else:
                # Rows are grouped by class, so a small indicator matrix sums them; np.add.reduceat took twice as long.
                classes = np.arange(low, high + 1)
                lost[classes] += np.where(classes[:, None] == problem.classes.y[some], unit, 0.0) @ by_row
        return lost

    return np.asarray(sum(over_rows((len(rows), last - first), visit)))


def auc_influence(problem: Problem) -> Floats:
    """``(N,)`` share of each sample in ``Σ_ij v_ij AUC_{i|j}``: as a positive in its own column, as a negative
    elsewhere.

    ``h_n = Σ_j v_ij mean_j ψ(F_ni, ·) + Σ_k v_ki mean_k ψ(·, F_nk)`` for ``n`` in class ``i``, ψ counting a tie as ½.
    """
    y, unit = problem.classes.y, problem.classes.unit
    order = problem.classes.order
    table = sort_columns(problem.own[order], problem.classes.offsets, unit[order])
    below = _weight_below(table)
    size = len(table.values)
    influence = np.empty(len(y))

    def visit(part: Iterable[Tile]) -> tuple[Floats, Floats]:
        landed, tied_at = np.zeros(size), np.zeros(size)
        for tile in part:
            position, tied = locate(table, tile.x, columns_first=tile.columns_first)
            landed += np.bincount(position.ravel(), tile.weight.ravel(), size)
            ties = np.flatnonzero(tied)
            tied_at += np.bincount(position.ravel()[ties], tile.weight.ravel()[ties], size)
            beaten = _beaten(table, below, position, ties)
            as_negative = tile.weight * (1.0 - beaten)
            influence[tile.rows] = as_negative.sum(axis=0 if tile.columns_first else 1)
        return landed, tied_at

    landed, tied_at = np.sum(walk(problem, visit), axis=0)
    # A share this small counts for nothing, and its products have left the floats.
    np.divide(influence, unit, out=influence, where=unit > SMALLEST_SHARE)
    won = -0.5 * tied_at
    for begin, end in zip(table.start[:-1], table.start[1:], strict=True):
        won[begin:end] += np.cumsum(landed[begin:end])
    influence[order] += won[table.slot]
    return influence


def _weight_below(table: SortedColumns) -> Floats:
    """``(M + C,)`` weight of the positives below each position of its column."""
    below = np.zeros(len(table.values))
    for begin, end in zip(table.start[:-1], table.start[1:], strict=True):
        np.cumsum(table.mass[begin : end - 1], out=below[begin + 1 : end])
    return below


def _beaten(table: SortedColumns, below: Floats, position: Ints, ties: Ints) -> Floats:
    """Weight of the positives that each score of a tile beats, ties at ½."""
    beaten = below.take(position)
    beaten.ravel()[ties] += 0.5 * table.mass[position.ravel()[ties]]
    return beaten
