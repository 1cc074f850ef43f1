"""Scores of fitted forests and boosted trees, all trees at once: arrays in, arrays out, nothing is checked.

Of the time that scikit-learn takes for 600 samples of three or ten classes, a forest of 300 grown-out trees takes 40 to
60 % and boosting 4 to 8 %; for 20,000 samples 50 to 70 % and 6 to 13 %. What lost against the walk of a forest as it is
here, on tables of 27 to 594 samples: sets of samples as bits, handed down from node to node, 0.5 to 1.5 times as fast,
slower on most forests above 500 samples; blocks of samples, slower. What takes the time is the wrong guesses of the
processor.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mauc._typing import Floats, Ints

__all__ = ["BoostingScores", "ForestScores"]

MOST_LEAVES = 8
"""Of a boosted tree: one bit of a byte for each."""
MOST_STATES = 256
"""Rows of a table of bits; columns with few cuts share one."""
MOST_BYTES = 2**26
"""Of all such tables of a model."""
MOST_ROWS = 2**13
"""Samples whose ranks are held at a time."""
PAIRS = 2**18
"""Of a sample and a tree, worked on at a time: what they need stays near the processor."""

# A power of two below 256 times this number differs from all others in the upper three bits of its byte (de Bruijn).
SPREAD = 23
SLOTS = (SPREAD << np.arange(MOST_LEAVES) & 255) >> 5
"""Where the value of each leaf of a tree stands."""


class ForestScores:
    """Mean of the leaves of all trees, which scikit-learn's compiled walk finds.

    Values stay where the trees have them: deep trees on many samples have gigabytes of them.
    """

    def __init__(self, trees: Sequence[Any]) -> None:
        self.trees = [(tree, tree.value[:, 0, :]) for tree in trees]

    def __call__(self, X: NDArray[np.float32]) -> Floats:
        """``(N, C)``"""
        # Neighbours in one tree share most of their ways in the others, so that the processor guesses better where a
        # walk goes on: a tenth faster.
        order = np.argsort(self.trees[0][0].apply(X))
        X = X[order]
        total = np.zeros((len(X), self.trees[0][1].shape[1]))
        found = np.empty_like(total)
        for tree, values in self.trees:
            values.take(tree.apply(X), axis=0, out=found, mode="clip")
            total += found
        found[order] = total
        return found / len(self.trees)


class BoostingScores:
    r"""Sums of the leaves of boosted trees of at most eight leaves each.

    A tree starts with the set of all its leaves as the bits of a byte. A node whose condition fails takes the leaves on
    its left away, one whose condition holds takes away nothing: the lowest bit that is left, leaves being numbered from
    left to right, is the leaf of the sample. What all nodes on one column take away depends on where the value lies
    among their cuts, so that a table of ``(cuts + 1, trees)`` bytes holds it, with one more row for a missing value.
    The leaves of a sample are then one ``&`` of rows for each column, over all trees, or for each group of columns with
    few cuts, such as those of categories, that share the table of all their combinations.

    Parameters
    ----------
    rounds : list of lists
        Fitted trees of each iteration, one per column of the scores, without categorical splits.
    baseline : (1, K) array

    Notes
    -----
    O(N · trees · groups) bytes are read. :attr:`fits` tells whether trees and tables are small enough.
    """

    def __init__(self, rounds: Sequence[Sequence[Any]], baseline: Floats) -> None:
        self.n_rounds, self.n_outputs, self.baseline = len(rounds), len(rounds[0]), baseline
        # All iterations of a class side by side, to be summed.
        trees = [each[k].nodes for k in range(self.n_outputs) for each in rounds]
        self.fits = max(map(len, trees)) < 2 * MOST_LEAVES
        if self.fits:
            self._read(trees)

    def _read(self, trees: Sequence[NDArray[Any]]) -> None:
        sizes = np.array([len(nodes) for nodes in trees])
        # Without its type NumPy works it out anew for every tree, and takes twice as long as all the rest.
        nodes = np.concatenate(trees, dtype=trees[0].dtype)
        tree = np.repeat(np.arange(len(trees)), sizes)
        is_leaf = nodes["is_leaf"].astype(bool)
        leaf, kept = _leaves(nodes, np.repeat(np.cumsum(sizes) - sizes, sizes))
        self.values = np.zeros((len(trees), MOST_LEAVES))
        self.values[tree[is_leaf], SLOTS[leaf[is_leaf]]] = nodes["value"][is_leaf]
        self.first = MOST_LEAVES * np.arange(len(trees), dtype=np.int32)
        column = np.where(is_leaf, -1, nodes["feature_idx"])
        own = [np.flatnonzero(column == each) for each in np.unique(column[~is_leaf])]
        cuts = [np.unique(nodes["num_threshold"][on]) for on in own]
        # Those of one cut first.
        order = np.argsort([len(each) for each in cuts], kind="stable")
        self.cuts = [cuts[k] for k in order]
        self.columns = np.array([column[own[k][0]] for k in order], dtype=np.intp)
        groups = _groups([len(each) + 2 for each in self.cuts])
        self.starts = [group[0] for group in groups]
        self.strides = np.ones((len(order), 1), dtype=np.intp)
        self.tables: list[NDArray[np.uint8]] = []
        for group in groups:
            joined = np.full((1, len(trees)), 255, dtype=np.uint8)
            for k in group:
                on = own[order[k]]
                table = _table(nodes[on], tree[on], kept[on], self.cuts[k], len(trees))
                self.strides[k] = len(joined)
                joined = (table[:, None] & joined).reshape(-1, len(trees))
            self.tables.append(joined)
            if sum(each.nbytes for each in self.tables) > MOST_BYTES:
                self.fits = False
                return

    def __call__(self, X: Floats) -> Floats:
        """``(N, K)``"""
        if len(X) > MOST_ROWS:
            return np.concatenate([self(X[start : start + MOST_ROWS]) for start in range(0, len(X), MOST_ROWS)])
        states = self._states(X)
        n_trees = len(self.first)
        parts = []
        for rows in _parts(len(X), n_trees):
            left = np.full((rows.stop - rows.start, n_trees), 255, dtype=np.uint8)
            taken = np.empty_like(left)
            for table, state in zip(self.tables, states, strict=True):
                np.take(table, state[rows], axis=0, out=taken, mode="clip")
                left &= taken
            np.negative(left, out=taken)
            left &= taken
            left *= SPREAD
            left >>= 5
            parts.append(_sums(left + self.first, self.n_rounds, self.values.ravel()).reshape(-1, self.n_outputs))
        return np.concatenate(parts) + self.baseline

    def _states(self, X: Floats) -> Ints:
        """``(groups, N)``: row of each table for each sample."""
        used = np.ascontiguousarray(X[:, self.columns].T)
        ranks = np.empty(used.shape, dtype=np.intp)
        alone = sum(len(cuts) == 1 for cuts in self.cuts)
        if alone:
            np.greater(used[:alone], self.cuts[:alone], out=ranks[:alone])
        for k in range(alone, len(used)):
            ranks[k] = np.searchsorted(self.cuts[k], used[k])
        missing = np.isnan(used)
        if missing.any():
            last = np.array([[len(cuts) + 1] for cuts in self.cuts])
            np.copyto(ranks, last, where=missing)
        ranks *= self.strides
        return np.add.reduceat(ranks, self.starts, axis=0) if self.starts else ranks


def _groups(sizes: Sequence[int]) -> list[list[int]]:
    """Neighbours whose product of sizes is small."""
    groups: list[list[int]] = []
    states = MOST_STATES
    for k, size in enumerate(sizes):
        if states * size <= MOST_STATES:
            groups[-1].append(k)
            states *= size
        else:
            groups.append([k])
            states = size
    return groups


def _leaves(nodes: NDArray[Any], root: Ints) -> tuple[Ints, NDArray[np.uint8]]:
    """The first leaf below each node, numbered from left to right in its tree, and the leaves that are not on the left
    of the node, as bits.
    """
    inner = ~nodes["is_leaf"].astype(bool)
    left, right = np.where(inner, root + nodes["left"], 0), np.where(inner, root + nodes["right"], 0)
    levels = [np.flatnonzero(inner & (nodes["depth"] == depth)) for depth in range(nodes["depth"].max())]
    count, first = np.ones((2, len(nodes)), dtype=np.int64)
    for at in reversed(levels):
        count[at] = count[left[at]] + count[right[at]]
    first[root] = 0
    for at in levels:
        first[left[at]] = first[at]
        first[right[at]] = first[at] + count[left[at]]
    on_left = ((1 << count[left]) - 1) << first
    return first, (255 & ~on_left).astype(np.uint8)


def _table(nodes: NDArray[Any], tree: Ints, kept: NDArray[np.uint8], cuts: Floats, n_trees: int) -> NDArray[np.uint8]:
    """What the nodes on a column keep: ``(cuts + 2, trees)`` bytes, for a value by the number of cuts below it, and
    last for a missing one.
    """
    table = np.full((len(cuts) + 2, n_trees), 255, dtype=np.uint8)
    np.bitwise_and.at(table, (np.searchsorted(cuts, nodes["num_threshold"]) + 1, tree), kept)
    np.bitwise_and.accumulate(table[:-1], axis=0, out=table[:-1])
    to_right = nodes["missing_go_to_left"] == 0
    np.bitwise_and.at(table[-1], tree[to_right], kept[to_right])
    return table


def _parts(n_samples: int, n_trees: int) -> list[slice]:
    """Samples that are worked on at a time; one part at least."""
    size = max(64, PAIRS // n_trees)
    return [slice(start, min(start + size, n_samples)) for start in range(0, max(n_samples, 1), size)]


def _sums(leaves: NDArray[np.int32], n_summed: int, values: Floats) -> Floats:
    """Of the values that so many leaves one after the other point to: a sparse product sums what it gathers, in less
    than half the time of ``take`` and ``sum``.
    """
    ends = np.arange(0, leaves.size + 1, n_summed, dtype=np.int32)
    return np.asarray(
        csr_array((_ones(leaves.size), leaves.ravel(), ends), shape=(len(ends) - 1, len(values))) @ values
    )


@lru_cache(maxsize=4)
def _ones(size: int) -> Floats:
    """Kept for the next fold: new memory takes as long as the sums."""
    return np.ones(size)
