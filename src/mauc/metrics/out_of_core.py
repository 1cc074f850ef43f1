"""Multiclass AUC of scores in files that are larger than memory, in two passes over the files.

1. The first pass keeps each row's score in the column of its own class, N numbers of N·C, and a sample of the rows.
2. The second pass counts the pairs of each column (:mod:`mauc.metrics.partial_counts`).

AUCs and accuracies count all rows and equal those of scores in memory. Standard errors, tests and pictures come from
the sample: all rows of a small class, and about equally many of each large class. Exact standard errors would need the
influence of every row, and a third pass: three times the time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.threads import thread_count
from mauc._typing import Floats, Ints
from mauc.metrics.partial_counts import Column, Positives, lost_pairs, pair_matrix
from mauc.metrics.predictions import highest_score, in_own_class

__all__ = ["PartScores", "ScoredRows", "class_shares", "read_all", "score_rows"]


class ScoredRows(Protocol):
    """Rows with classes and scores that can be read several times; their values are already checked."""

    codes: NDArray[Any]
    """``(N,)`` class of each row, ``0..C-1``; every class has a row."""
    counts: Ints
    """``(C,)`` rows of each class."""

    def scan(self, columns: Sequence[int], n_rows: int) -> Iterator[tuple[int, list[Column]]]:
        """Yield the first row and the scores of these columns, for batches of about ``n_rows`` rows, in order.

        A column has the same data type in all batches.
        """
        ...


class PartScores(NamedTuple):
    """Numbers of all rows, and a sample of the rows."""

    matrix: Floats
    """``(C, C)`` ``AUC_{i|j}``, NaN on the diagonal."""
    right: Floats
    """``(C,)`` rows of each class whose highest score is that of their class; ties count in equal parts."""
    codes: NDArray[Any]
    """``(M,)`` classes of the sample."""
    scores: NDArray[np.floating]
    """``(M, C)`` scores of the sample."""


def read_all(rows: ScoredRows) -> NDArray[np.floating]:
    """Return all ``(N, C)`` scores."""
    return np.concatenate([np.column_stack(columns) for _, columns in rows.scan(range(len(rows.counts)), 1 << 18)])


def score_rows(rows: ScoredRows, n_sample: int, *, batch: int = 1 << 24, n_scans: int = 16) -> PartScores:
    """Return the scores of all rows and a sample of about ``n_sample``, the same for all models of the same rows.

    The second pass reads some columns at a time, in at most ``n_scans`` scans: the more rows are in a batch of
    ``batch`` scores, the faster is the search. O(N·C log N) time; memory for N own-class scores, N class codes, the
    sample and batches.
    """
    counts = rows.counts
    n_classes, n_threads = len(counts), thread_count()
    # Not seed 0: rows that were drawn with it would be sampled by the numbers that drew their classes.
    share, rng = class_shares(counts, n_sample), np.random.default_rng(0x6D617563)
    right = np.zeros(n_classes)
    own: list[Column] = []
    filled = np.zeros(n_classes, dtype=np.int64)
    some: list[tuple[NDArray[Any], NDArray[np.floating]]] = []
    for first, columns in rows.scan(range(n_classes), max(1, batch // (4 * n_classes))):
        codes = rows.codes[first : first + len(columns[0])]
        # One array per class from the start: lists of small arrays would fragment the heap.
        own = own or [np.empty(n, x.dtype) for n, x in zip(counts, columns, strict=True)]
        for k, x in enumerate(columns):
            mine = x[codes == k]
            own[k][filled[k] : filled[k] + len(mine)] = mine
            filled[k] += len(mine)
        right += np.bincount(codes, in_own_class(highest_score(columns), codes), n_classes)
        here = np.flatnonzero(rng.random(len(codes)) < share[codes])
        some.append((codes[here], np.column_stack([x[here] for x in columns])))
    for x in own:
        x.sort()

    lost = np.zeros((n_classes, n_classes))

    def count(some_columns: Sequence[int]) -> None:
        for first, columns in rows.scan(some_columns, max(1, batch // (2 * n_threads * len(some_columns)))):
            codes = rows.codes[first : first + len(columns[0])]
            for k, x in zip(some_columns, columns, strict=True):
                lost[:, k] += lost_pairs(k, Positives(own[k], None), n_classes, codes, x)

    with ThreadPoolExecutor(n_threads) as pool:  # NumPy releases the interpreter lock while it sorts and searches
        list(pool.map(count, (each.tolist() for each in np.array_split(range(n_classes), min(n_classes, n_scans)))))
    matrix = pair_matrix(lost, counts.astype(np.float64))
    return PartScores(matrix, right, *(np.concatenate(each) for each in zip(*some, strict=True)))


def class_shares(counts: Ints, n_sample: int, *, least: int = 30) -> Floats:
    """Return the share of each class in a sample of about ``n_sample`` rows, with equally many of each large class."""
    most = bisect_right(range(int(counts.max()) + 1), n_sample, key=lambda most: np.minimum(counts, most).sum()) - 1
    return np.minimum(1.0, max(most, least) / np.maximum(counts, 1))
