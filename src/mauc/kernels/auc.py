"""The metric and the influence of each sample on it: pair counts with ties at ½, ``O(N·C)`` after a sort per class."""

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.search import locate, sort_columns
from mauc.kernels.standing import Standing, standing_in
from mauc.kernels.threads import LARGE, Crew, row_parts, thread_count
from mauc.kernels.tiles import COLUMNS_FIRST_BELOW, TILE_ELEMENTS, Problem

__all__ = ["BLOCK_POSITIVES", "auc_influence", "auc_matrix", "auc_matrix_and_influence", "auc_of_losses"]


# Positives whose bins stay in the caches while all rows pass by; columns are taken in blocks of about as many.
BLOCK_POSITIVES = 1 << 16


def auc_matrix(problem: Problem, share: float = 1.0) -> Floats:
    """``(C, C)`` matrix of ``AUC_{i|j}``; NaN on the diagonal and where a class has no sample.

    ``unit`` may be any sample weights: with ones, the sums are whole and half numbers and the result is exact. With a
    ``share`` below 1, of the lowest share of the positives of each column: :mod:`mauc.kernels.standing`.
    """
    return _matrix(problem, share, None)


def auc_influence(problem: Problem) -> Floats:
    """``(N,)`` share of each sample in ``Σ_ij v_ij AUC_{i|j}``: as a positive in its own column, as a negative
    elsewhere.

    ``h_n = Σ_j v_ij mean_j ψ(F_ni, ·) + Σ_k v_ki mean_k ψ(·, F_nk)`` for ``n`` in class ``i``, ψ counting a tie as ½.
    """
    return auc_matrix_and_influence(problem)[1]


def auc_matrix_and_influence(problem: Problem, share: float = 1.0) -> tuple[Floats, Floats]:
    """:func:`auc_matrix` and :func:`auc_influence` by one sort and one search."""
    influence = np.zeros(len(problem.classes.y))
    return _matrix(problem, share, influence), influence


def _matrix(problem: Problem, share: float, influence: Floats | None) -> Floats:
    """The matrix; the influences are added to ``influence`` if it is there."""
    classes, n_classes = problem.classes, problem.classes.n_classes
    total = np.bincount(classes.y, None if classes.counted else classes.unit, n_classes).astype(np.float64, copy=False)
    lost = np.zeros((n_classes, n_classes))
    # Indices into the flat scores: NumPy takes from one axis several times faster than from two.
    flat = problem.scores.ravel()
    blocks = [_Block(problem, flat, first, last) for first, last in _column_blocks(classes.offsets)]
    shares = None if influence is None else _Shares(problem, total, share, influence)
    with Crew(thread_count() if problem.scores.size >= LARGE else 1) as crew:
        tables = crew.each(partial(block.sort, share) for block in blocks)
        for block in blocks:  # no name for the table: it would outlive the next sort
            lost[:, block.first : block.last] = block.search(crew, next(tables), shares)
    return auc_of_losses(lost.T, total, np.diff(classes.offsets) > 0, share)


def auc_of_losses(lost: Floats, total: Floats, present: NDArray[np.bool_], share: float = 1.0) -> Floats:
    """``(C, C)`` AUCs from the weight of the pairs that class i loses to class j and the ``(C,)`` weight of classes.

    ``share`` is that of class i which could be lost.
    """
    pairs = share * total[:, None] * total
    auc = np.full(pairs.shape, np.nan)
    np.divide(pairs - lost, pairs, out=auc, where=present[:, None] & present)
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


class _Block:
    """Some neighbouring columns: their positives are sorted, and all samples are searched among them."""

    def __init__(self, problem: Problem, flat: NDArray[np.floating], first: int, last: int) -> None:
        self.problem, self.flat, self.first, self.last = problem, flat, first, last
        classes = problem.classes
        self.begin, self.end = int(classes.offsets[first]), int(classes.offsets[last])
        self.mine = classes.order[self.begin : self.end]  # the positives of these columns
        # A single column has no pair with its own class: its samples, often the most, are passed over.
        self.skipped = self.end - self.begin if last - first == 1 else 0
        self.columns_first = last - first < COLUMNS_FIRST_BELOW

    def sort(self, share: float) -> Standing:
        """The sorted positives, of which the lowest share counts."""
        classes, scores = self.problem.classes, self.problem.scores
        own = self.flat.take(self.mine * scores.shape[1] + classes.y[self.mine])
        weight = None if classes.counted else classes.unit[self.mine]
        table = sort_columns(own, classes.offsets[self.first : self.last + 1] - self.begin, weight)
        return standing_in(table, counted=classes.counted, share=share)

    def rows(self, start: int, stop: int) -> Ints:
        """Some of the samples, grouped by class, without those that are passed over."""
        order, skipped = self.problem.classes.order, self.skipped
        if stop <= self.begin or not skipped:
            return order[start:stop]
        if start >= self.begin:
            return order[start + skipped : stop + skipped]
        return np.concatenate([order[start : self.begin], order[self.end : stop + skipped]])

    def search(self, crew: Crew, standing: Standing, shares: "_Shares | None") -> Floats:
        """``(C, last − first)`` weight of the pairs that class j wins against column i, ties at ½."""
        table = standing.table
        n_rows, n_columns = self.problem.scores.shape
        flat, width = self.flat, self.last - self.first
        columns = np.arange(self.first, self.last)
        start = table.start[:-1, None] if self.columns_first else table.start[:-1]
        step = max(1, TILE_ELEMENTS // width)

        def visit(begin: int, end: int) -> tuple[Floats, Floats]:
            lost = np.zeros((n_columns, width))
            landed = np.zeros(0 if shares is None else len(table.values))
            for k in range(begin, end, step):
                some = self.rows(k, min(k + step, end))
                if width == n_columns:
                    x = self.problem.scores.take(some, axis=0)
                    x = np.ascontiguousarray(x.T) if self.columns_first else x
                elif self.columns_first:
                    x = flat.take(columns[:, None] + some * n_columns)
                else:
                    x = flat.take(columns + (some * n_columns)[:, None])
                position, tied = locate(table, x, columns_first=self.columns_first)
                ties = np.flatnonzero(tied)
                beaten = standing.beaten(position, ties, start)
                _add_by_class(lost, self.problem, some, beaten.T if self.columns_first else beaten)
                if shares is not None:
                    standing.land(landed, position.ravel(), shares.of_negatives(self, some, beaten).ravel(), ties)
            return lost, landed

        parts = crew.each(partial(visit, *part) for part in row_parts(n_rows - self.skipped, width))
        lost, landed = next(parts)
        for more, landed_there in parts:
            lost += more
            landed += landed_there
        if shares is not None:
            shares.influence[self.mine] += standing.won(landed)
        return lost


class _Shares:
    """Where the influences are added up, and what each sample counts for in them."""

    def __init__(self, problem: Problem, total: Floats, share: float, influence: Floats) -> None:
        self.classes, self.share, self.influence = problem.classes, share, influence
        self.per_weight = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)

    def of_negatives(self, block: _Block, some: Ints, beaten: Floats) -> Floats:
        """Add what these samples are worth as negatives, ``v_ij (1 − beaten share)``; what each of them is worth to a
        positive that beats it is returned, in the shape of ``beaten``.
        """
        classes, columns = self.classes, slice(block.first, block.last)
        y, axis = classes.y[some], 0 if block.columns_first else 1
        if y[0] == y[-1]:
            y = y[:1]
        v = (
            classes.v[columns].take(y, axis=1)
            if block.columns_first
            else classes.of_negative[:, columns].take(y, axis=0)
        )
        of_column = self.per_weight[columns] / self.share
        share = beaten * (of_column[:, None] if block.columns_first else of_column)
        np.subtract(1.0, share, out=share)
        share *= v
        self.influence[some] += share.sum(axis=axis)
        unit = self.per_weight[y] if classes.counted else self.per_weight[y] * classes.unit[some]
        np.multiply(v, unit if block.columns_first else unit[:, None], out=share)
        return share


def _add_by_class(lost: Floats, problem: Problem, some: Ints, beaten: Floats) -> None:
    """Add the rows of ``beaten``, weighted, to those of their classes in ``lost``."""
    classes = problem.classes
    y = classes.y[some]
    low, high = y[0], y[-1]
    if low == high:
        lost[low] += beaten.sum(axis=0) if classes.counted else np.einsum("n,nc->c", classes.unit[some], beaten)
    else:
        # Rows are grouped by class, so a small indicator matrix sums them; np.add.reduceat took twice as long.
        present = np.arange(low, high + 1)
        lost[present] += np.where(present[:, None] == y, classes.unit[some], 0.0) @ beaten
