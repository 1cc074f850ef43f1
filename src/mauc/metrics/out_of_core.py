"""Compute multiclass AUC of scores in files that are larger than memory, in several passes over the files.

The numbers equal those of scores in memory. They include all that a report shows: the moments of every pair of classes,
and sorted batches of every column, from which histograms and curves are counted.

1. One pass over all columns keeps each row's score in the column of its own class: N numbers of N·C.
2. One pass over a column counts, for each of its positives, the rows of every class below it.
3. One more pass over all columns adds, for each row, its losses as a positive and as a negative.

These are the phases of :mod:`mauc.metrics.partial_counts`. The second and the third pass take as many positives at a
time as the memory budget has room for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.threads import thread_count
from mauc._typing import Floats, Ints
from mauc.metrics.partial_counts import (
    ClassCounts,
    Column,
    Rows,
    argsort,
    own_scores,
    pair_matrix,
    rank,
    sort_positives,
)
from mauc.metrics.summary import EACH_OTHER, ScoreSummary, Spread, difference_squares
from mauc.metrics.uncertainty import Moments, Sizes

__all__ = ["ScoredRows", "StreamedScores", "read_columns"]

GIB = 2.0**30
BASE = 0.35 * GIB
"""Memory of Python and the readers."""
LEAST = 0.2 * GIB
"""Memory for the counts, however small the budget."""

Seen = Callable[[int, NDArray[Any], Column], None]


class ScoredRows(Protocol):
    """Rows with classes and scores that can be read several times; their values are already checked."""

    codes: NDArray[Any]
    """``(N,)`` class of each row, ``0..C-1``; every class has a row."""
    counts: Ints
    """``(C,)`` rows of each class."""

    def scan(self, columns: Sequence[int], n_rows: int) -> Iterator[tuple[int, list[Column]]]:
        """Yield the first row and the scores of these columns, for batches of about ``n_rows`` rows, in order."""
        ...


def read_columns(rows: ScoredRows, columns: Sequence[int], seen: Seen, batch: int = 1 << 22) -> None:
    """Call ``seen(i, codes, x)`` for every batch of each column i, with its scores ascending and their classes."""
    for _, part in _parts(rows, columns, batch):

        def visit(k: int, part: Rows = part) -> None:
            order = argsort(part.columns[k])
            seen(columns[k], part.codes[order], part.columns[k][order])

        _in_threads(visit, range(len(columns)))


def _parts(rows: ScoredRows, columns: Sequence[int], batch: int) -> Iterator[tuple[int, Rows]]:
    """Yield the first row and the rows of parts of about ``batch`` scores."""
    for first, read in rows.scan(columns, max(1, batch // len(columns))) if columns else ():
        yield first, Rows(rows.codes[first : first + len(read[0])], read)


class _ClassMoments:
    """Means and sums of squares about them, ``(C, K)``, of K variables over the rows of each class."""

    def __init__(self, n_classes: int, n_variables: int) -> None:
        self.n = np.zeros(n_classes)
        self.mean = np.zeros((n_classes, n_variables))
        self.squares = np.zeros((n_classes, n_variables))

    def add(self, i: int, x: Floats) -> None:
        """Add the ``(K, M)`` values of M rows of class ``i``, by the update of Chan, Golub and LeVeque."""
        n, mean = x.shape[1], x.mean(axis=1)
        centred = x - mean[:, None]
        step, total = mean - self.mean[i], self.n[i] + n
        self.squares[i] += np.einsum("kn,kn->k", centred, centred) + step**2 * (self.n[i] * n / total)
        self.mean[i] += step * (n / total)
        self.n[i] = total


class StreamedScores:
    """The scores of one model, read in passes; the first pass runs at construction.

    Parameters
    ----------
    rows
        The source of the scores.
    budget
        Memory budget in bytes.
    room
        Bytes of the budget for the counts of the second pass. Default: half of the budget that the rows leave free.
    compared
        Keep the influences and the fingerprint, for comparisons with other models.
    batch
        Scores in a batch.
    """

    def __init__(
        self,
        rows: ScoredRows,
        *,
        budget: float = 2.0 * GIB,
        room: float | None = None,
        compared: bool = False,
        batch: int = 1 << 22,
    ) -> None:
        self.rows, self.compared, self.batch = rows, compared, batch
        n_classes = len(rows.counts)
        self.low, self.high = np.full(n_classes, np.inf), np.full(n_classes, -np.inf)
        """``(C,)`` range of each column."""
        self.right = np.zeros(n_classes, dtype=np.int64)
        self._hashes = [hashlib.blake2b(digest_size=16) for _ in range(n_classes)]
        self.positives = sort_positives([self._own_scores()])
        left = budget - BASE - rows.codes.nbytes - sum(x.nbytes for x in self.own)
        precision: type[np.floating[Any]] = np.float64 if 8.0 * len(rows.codes) < 0.35 * left else np.float32
        self.influence = np.zeros(len(rows.codes) if compared else 0, precision)
        self.room = 0.5 * max(left - self.influence.nbytes, LEAST) if room is None else room

    @property
    def own(self) -> list[Column]:
        """``C`` arrays: the scores of each class in its own column, ascending."""
        return [positive.values for positive in self.positives]

    def _own_scores(self) -> list[tuple[Column, Floats | None]]:
        """Run the first pass. Lists of small arrays would fragment the heap: 0.14 GiB more for 10⁸ rows."""
        counts = self.rows.counts
        filled = np.zeros(len(counts), dtype=np.int64)
        own: list[Column] = []
        for _, part in _parts(self.rows, range(len(counts)), self.batch):
            self._describe(part)
            own = own or [np.empty(n, x.dtype) for n, x in zip(counts, part.columns, strict=True)]
            for k, (x, _) in enumerate(own_scores(part)):
                own[k][filled[k] : filled[k] + len(x)] = x
                filled[k] += len(x)
        return [(x, None) for x in own]

    def _describe(self, part: Rows) -> None:
        """Add a part to the ranges, the right predictions and the hashes."""
        codes, best = part.codes, part.columns[0]
        highest = np.zeros(len(codes), dtype=codes.dtype)
        for k, x in enumerate(part.columns):
            self.low[k], self.high[k] = min(self.low[k], x.min()), max(self.high[k], x.max())
            higher = x > best
            highest[higher] = k
            best = np.where(higher, x, best)
            if self.compared:
                self._hashes[k].update((x + x.dtype.type(0)).data)
        self.right += np.bincount(codes[highest == codes], minlength=len(self.right))

    def summary(self, weights: Mapping[str, Floats], seen: Seen | None = None) -> ScoreSummary:
        """Run the second and the third pass, with ``(C, C)`` pair weights by name; ``seen`` as in :func:`read_columns`.

        O(N·C log N) time; memory for N own-class scores, N class codes, a few batches, and the counts.
        """
        counts, n_classes = self.rows.counts, len(self.rows.counts)
        moments = _ClassMoments(n_classes, len(weights) + n_classes)  # by weights, then of the pairs with each class
        beaten = np.zeros((n_classes, n_classes), dtype=np.int64)  # twice the pairs: ties count one
        for cuts in self._cuts():
            beaten += self._add_positives(cuts, list(weights.values()), moments, seen)
        totals = counts.astype(np.float64)

        def pair(i: int, j: int) -> Spread:
            here, there = [j, i], [len(weights) + i, len(weights) + j]
            return _spread(counts[here], moments.mean[here, there], moments.squares[here, there], EACH_OTHER)

        def difference(other: NDArray[np.floating]) -> Moments:
            squares = difference_squares(self.rows.codes, counts, self.influence, other)
            return Moments(np.zeros(n_classes), squares)

        return ScoreSummary(
            matrix=pair_matrix((totals[:, None] * totals - beaten / 2.0).T, totals),
            right=self.right.astype(np.float64),
            constant=self.low == self.high,
            spread={
                name: _spread(counts, moments.mean[:, k], moments.squares[:, k], v)
                for k, (name, v) in enumerate(weights.items())
            },
            pair=pair,
            influence=self.influence,
            difference=difference,
            hits=np.empty(0),
            fingerprint=b"".join(each.digest() for each in self._hashes) if self.compared else b"",
        )

    def _cuts(self) -> Iterator[list[tuple[int, int, int]]]:
        """Yield some classes with their first and last positive, as many positives as there is room for.

        A class is cut only if it has no room alone: each cut is one more sort and search of its column. With groups
        filled to the last positive, 10⁸ rows took 161 s of processor time instead of 148 s, in one run each.
        """
        longest = max(1, int(self.room / (4.0 * len(self.own))))
        cuts: list[tuple[int, int, int]] = []
        used = 0
        for i, n in enumerate(self.rows.counts.tolist()):
            for first in range(0, n, longest):
                last = min(first + longest, n)
                if used + last - first > longest:
                    yield cuts
                    cuts, used = [], 0
                cuts.append((i, first, last))
                used += last - first
        yield cuts

    def _add_positives(
        self,
        cuts: Sequence[tuple[int, int, int]],
        weights: Sequence[Floats],
        moments: _ClassMoments,
        seen: Seen | None,
    ) -> Ints:
        """Run the second and the third pass for some positives; return twice the pairs that they win, ``(C, C)``.

        Many rows at a time are searched faster: the third pass for 8 % of 10⁸ rows took two thirds of the time with
        batches four times as large.
        """
        tables = {i: ClassCounts(i, first, last, self.own[i], self.rows.counts) for i, first, last in cuts}

        def visit(i: int, codes: NDArray[Any], x: Column) -> None:
            tables[i].add(codes, x)
            # A long column is read several times, and shown the first time.
            if seen is not None and tables[i].first == 0:
                seen(i, codes, x)

        read_columns(self.rows, list(tables), visit, self.batch)
        won = np.zeros((len(self.own), len(self.own)), dtype=np.int64)
        for i, table in tables.items():
            won[i] = table.close()
        share = sum(len(table.values) for table in tables.values()) / len(self.rows.codes)
        for begin, part in _parts(self.rows, range(len(won)), int(self.batch * min(4.0, 1.0 / share))):
            self._add_losses(begin, part, list(tables.values()), weights, moments)
        return won

    def _add_losses(
        self,
        first: int,
        part: Rows,
        tables: Sequence[ClassCounts],
        weights: Sequence[Floats],
        moments: _ClassMoments,
    ) -> None:
        """Add the rows of a part that are in the tables to the moments; ``first`` is its first row."""
        counts, members = self.rows.counts[:, None], part.by_class()
        found = [table.beaten(part.columns[table.i], members[table.i]) for table in tables]
        here = np.concatenate([rows for rows, _ in found])
        as_negative = self._lost_as_negative(Rows(part.codes[here], [x[here] for x in part.columns]))
        end = 0
        for table, (rows, beaten) in zip(tables, found, strict=True):
            i, begin, end = table.i, end, end + len(rows)
            if begin == end:
                continue
            as_positive = 1.0 - beaten / counts
            as_positive[i] = 0.0
            negative = as_negative[:, begin:end]
            sums = np.stack([v[i] @ as_positive + v[:, i] @ negative for v in weights])
            moments.add(i, np.concatenate([sums, 0.5 * (as_positive + negative)]))
            if self.compared:
                self.influence[first + rows] = -sums[0]

    def _lost_as_negative(self, part: Rows) -> Floats:
        """Return the share of the positives of each column that the rows beat, ``(C, n)``; 0 in their own column.

        Columns come first because NumPy is fast along long rows only.
        """
        found = np.zeros((len(part.columns), len(part.codes)))

        def visit(k: int) -> None:
            rows, left, right = rank(self.own[k], part.columns[k], np.flatnonzero(part.codes != k))
            found[k, rows] = self.positives[k].beaten(left, right) / self.rows.counts[k]

        _in_threads(visit, range(len(found)))
        return found


def _spread(counts: Ints, lost: Floats, squares: Floats, v: Floats) -> Spread:
    """Return the moments of the influences: the weight of the pairs of a class minus what is lost by the row."""
    moments = Moments(v.sum(axis=0) + v.sum(axis=1) - lost, squares / counts.astype(np.float64) ** 2)
    return Spread(Sizes.of_counts(counts, v), moments)


def _in_threads(work: Callable[[int], None], items: range) -> None:
    """Do the work in threads: NumPy releases the interpreter lock while it sorts and searches."""
    with ThreadPoolExecutor(thread_count()) as pool:
        list(pool.map(work, items))
