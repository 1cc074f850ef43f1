"""Compute multiclass AUC of scores in files that are larger than memory, in several passes over the files.

The numbers equal those of scores in memory. They include all that a report shows: the moments of every pair of classes,
and sorted batches of every column, from which histograms and curves are counted.

1. One pass over all columns keeps each row's score in the column of its own class: N numbers of N·C.
2. One pass over a column counts, for each of its positives, the rows of every class below it.
3. One more pass over all columns adds, for each row, its losses as a positive and as a negative.

Columns are processed in groups, and long ones in slices, so that the counts stay within a memory budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.auc import auc_of_losses
from mauc._kernels.threads import thread_count
from mauc._typing import Floats, Ints
from mauc.metrics.partial_counts import Column, argsort, find
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
    for first, read in rows.scan(columns, max(1, batch // len(columns))) if columns else ():
        codes = rows.codes[first : first + len(read[0])]

        def visit(k: int, codes: NDArray[Any] = codes, read: list[Column] = read) -> None:
            order = argsort(read[k])
            seen(columns[k], codes[order], read[k][order])

        _in_threads(visit, range(len(columns)))


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
        self.own: list[Column] = []
        """``C`` arrays: the scores of each class in its own column, ascending."""
        self._hashes = [hashlib.blake2b(digest_size=16) for _ in range(n_classes)]
        self._collect()
        left = budget - BASE - rows.codes.nbytes - sum(x.nbytes for x in self.own)
        self.wide = 8.0 * len(rows.codes) < 0.35 * left
        if compared:
            left -= (8.0 if self.wide else 4.0) * len(rows.codes)
        self.room = 0.5 * max(left, LEAST) if room is None else room

    def _collect(self) -> None:
        """Collect own-class scores, ranges and right predictions in one pass."""
        n_classes = len(self.rows.counts)
        filled = np.zeros(n_classes, dtype=np.int64)
        for first, columns in self.rows.scan(range(n_classes), self._batch_rows(n_classes)):
            if not self.own:
                self.own = [np.empty(n, x.dtype) for n, x in zip(self.rows.counts, columns, strict=True)]
            codes = self.rows.codes[first : first + len(columns[0])]
            highest, best = np.zeros(len(codes), dtype=codes.dtype), columns[0]
            for k, x in enumerate(columns):
                self.low[k], self.high[k] = min(self.low[k], x.min()), max(self.high[k], x.max())
                higher = x > best
                highest[higher] = k
                best = np.where(higher, x, best)
                if self.compared:
                    self._hashes[k].update((x + x.dtype.type(0)).data)
            self.right += np.bincount(codes[highest == codes], minlength=n_classes)
            for k, members in _by_class(codes, n_classes):
                self.own[k][filled[k] : filled[k] + len(members)] = columns[k][members]
                filled[k] += len(members)
        _in_threads(lambda x: x.sort(), self.own)

    def _batch_rows(self, n_columns: int) -> int:
        return max(1, self.batch // n_columns)

    def summary(self, weights: Mapping[str, Floats], seen: Seen | None = None) -> ScoreSummary:
        """Run the second and the third pass, with ``(C, C)`` pair weights by name; ``seen`` as in :func:`read_columns`.

        O(N·C log N) time; memory for N own-class scores, N class codes, a few batches, and the counts.
        """
        counts, n_classes = self.rows.counts, len(self.rows.counts)
        lost = _ClassMoments(n_classes, len(weights))
        in_pairs = _ClassMoments(n_classes, n_classes)
        precision: type[np.floating[Any]] = np.float64 if self.wide else np.float32
        influence = np.zeros(len(self.rows.codes) if self.compared else 0, precision)
        beaten = np.zeros((n_classes, n_classes), dtype=np.int64)  # twice the pairs: ties count one
        for tables in _table_groups(self.own, counts, self.room):
            by_column = {i: [table for table in tables if table.i == i] for i in dict.fromkeys(t.i for t in tables)}
            # A column in slices is in several groups; ``seen`` is called for the first.
            shown = {table.i for table in tables if table.first == 0}

            def visit(i: int, codes: NDArray[Any], x: Column, by_column: Any = by_column, shown: Any = shown) -> None:
                for table in by_column[i]:
                    table.count(codes, x)
                if seen is not None and i in shown:
                    seen(i, codes, x)

            read_columns(self.rows, list(by_column), visit, self.batch)
            for table in tables:
                beaten[table.i] += table.close()
            self._add_losses(tables, list(weights.values()), lost, in_pairs, influence)
            for table in tables:
                del table.doubled
        pairs = counts.astype(np.float64)[:, None] * counts
        matrix = auc_of_losses(pairs - beaten / 2.0, counts.astype(np.float64), counts > 0)

        def pair(i: int, j: int) -> Spread:
            here, there = [j, i], [i, j]
            return _spread(counts[here], in_pairs.mean[here, there], in_pairs.squares[here, there], EACH_OTHER)

        def difference(other: NDArray[np.floating]) -> Moments:
            squares = difference_squares(self.rows.codes, counts, influence, other)
            return Moments(np.zeros(n_classes), squares)

        return ScoreSummary(
            matrix=matrix,
            right=self.right.astype(np.float64),
            spread={
                name: _spread(counts, lost.mean[:, k], lost.squares[:, k], v)
                for k, (name, v) in enumerate(weights.items())
            },
            pair=pair,
            influence=influence,
            difference=difference,
            hits=np.empty(0),
            fingerprint=b"".join(each.digest() for each in self._hashes) if self.compared else b"",
        )

    def _add_losses(
        self,
        tables: Sequence[_Table],
        weights: Sequence[Floats],
        lost: _ClassMoments,
        in_pairs: _ClassMoments,
        influence: NDArray[np.floating],
    ) -> None:
        """Run the third pass: add the rows of the tables to the moments."""
        half = 0.5 / self.rows.counts[:, None]
        for index, codes, columns in self._rows_of([t.i for t in tables]):
            members = dict(_by_class(codes, len(half)))
            chosen = [(t, *t.find(members[t.i], columns[t.i], self.own[t.i])) for t in tables if t.i in members]
            chosen = [each for each in chosen if len(each[1])]
            if not chosen:
                continue
            here = np.concatenate([rows_here for _, rows_here, _ in chosen])
            classes = np.repeat([table.i for table, _, _ in chosen], [len(slots) for _, _, slots in chosen])
            as_negative = self._beaten(columns, here, classes) * half
            end = 0
            for table, rows_here, slots in chosen:
                i, begin, end = table.i, end, end + len(slots)
                as_positive = 1.0 - np.array(table.doubled[slots].T, dtype=np.float64, order="C") * half
                as_positive[i] = 0.0
                negative = as_negative[:, begin:end]
                sums = np.stack([v[i] @ as_positive + v[:, i] @ negative for v in weights])
                lost.add(i, sums)
                if len(influence):
                    influence[index[rows_here]] = -sums[0]
                as_positive += negative
                as_positive *= 0.5
                in_pairs.add(i, as_positive)

    def _rows_of(self, classes: Sequence[int]) -> Iterator[tuple[Ints, NDArray[Any], list[Column]]]:
        """Yield the rows of these classes with their codes and all scores.

        Rows of rare classes are collected into full batches: searches of many scores at a time are faster.
        """
        n_classes = len(self.rows.counts)
        wanted = np.isin(np.arange(n_classes), classes)
        size = self._batch_rows(n_classes)
        collected: list[tuple[Ints, NDArray[Any], list[Column]]] = []
        for first, columns in self.rows.scan(range(n_classes), size):
            codes = self.rows.codes[first : first + len(columns[0])]
            here = np.flatnonzero(wanted[codes])
            collected.append((first + here, codes[here], [x[here] for x in columns]))
            if sum(len(each[0]) for each in collected) >= size // 2:
                yield _joined(collected)
                collected = []
        if collected:
            yield _joined(collected)

    def _beaten(self, columns: Sequence[Column], here: Ints, classes: Ints) -> Floats:
        """Return twice the number of positives of each column that some rows beat, ``(C, M)``; 0 in their own column.

        Columns come first because NumPy is fast along long rows only.
        """
        found = np.zeros((len(self.own), len(here)))

        def visit(k: int) -> None:
            others = np.flatnonzero(classes != k)
            x = columns[k][here[others]]
            order = argsort(x)
            left, right = find(self.own[k], x[order])
            found[k, others[order]] = left + right

        _in_threads(visit, range(len(self.own)))
        return found


@dataclass(eq=False)
class _Table:
    """Counts of the rows of each class that the positives ``first`` to ``last`` of class ``i``, sorted, beat."""

    i: int
    first: int
    last: int
    values: Column
    """These positives."""
    doubled: NDArray[Any]
    """``(M + 1, C)`` twice the rows that fall on each positive, and above all; after :meth:`close`, those below it."""

    def count(self, codes: NDArray[Any], x: Column) -> None:
        """Count ascending scores of rows of these classes, without class ``i``; half of a tie falls above."""
        flat, one = self.doubled.reshape(-1), self.doubled.dtype.type(1)
        others = np.flatnonzero(codes != self.i)
        for at in find(self.values, x[others]):
            at *= self.doubled.shape[1]
            at += codes[others]
            np.add.at(flat, at, one)  # with a Python number it takes twenty times as long

    def close(self) -> Ints:
        """Turn the counts into prefix sums, and return their ``(C,)`` sums over the positives."""
        for column in self.doubled.T:
            np.cumsum(column, dtype=self.doubled.dtype, out=column)
        return np.asarray(self.doubled[:-1].sum(axis=0, dtype=np.int64))

    def find(self, members: Ints, column: Column, own: Column) -> tuple[Ints, Ints]:
        """Return the members of class ``i`` whose score is in the table, by rising score, and its position.

        It may be the position of any positive that ties with the row: they beat the same rows.
        """
        x = column[members]
        order = argsort(x)
        slots, _ = find(own, x[order])
        begin, end = np.searchsorted(slots, [self.first, self.last])
        return members[order[begin:end]], slots[begin:end] - self.first


def _table_groups(own: Sequence[Column], counts: Ints, room: float) -> Iterator[list[_Table]]:
    """Yield groups of tables of all positives; each group fits the room."""
    n_classes = len(counts)
    dtype = np.uint32 if counts.sum() < 2**31 else np.uint64
    longest = max(1, int(room / (4.0 * n_classes)))
    group: list[_Table] = []
    used = 0
    for i, values in enumerate(own):
        for first in range(0, len(values), longest):
            last = min(first + longest, len(values))
            if group and used + last - first > longest:
                yield group
                group, used = [], 0
            counts_of_table = np.zeros((last - first + 1, n_classes), dtype)
            group.append(_Table(i, first, last, values[first:last], counts_of_table))
            used += last - first
    yield group


def _spread(counts: Ints, lost: Floats, squares: Floats, v: Floats) -> Spread:
    """Return the moments of the influences: the weight of the pairs of a class minus what is lost by the row."""
    moments = Moments(v.sum(axis=0) + v.sum(axis=1) - lost, squares / counts.astype(np.float64) ** 2)
    return Spread(Sizes.of_counts(counts, v), moments)


def _by_class(codes: NDArray[Any], n_classes: int) -> Iterator[tuple[int, Ints]]:
    """Yield each class that has rows, with its rows."""
    order = np.argsort(codes, kind="stable")  # of 8 or 16 bits: a radix sort
    ends = np.cumsum(np.bincount(codes, minlength=n_classes))
    for k in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        yield k, order[ends[k - 1] if k else 0 : ends[k]]


def _joined(
    batches: Sequence[tuple[Ints, NDArray[Any], list[Column]]],
) -> tuple[Ints, NDArray[Any], list[Column]]:
    index, codes, columns = zip(*batches, strict=True)
    return np.concatenate(index), np.concatenate(codes), [np.concatenate(x) for x in zip(*columns, strict=True)]


def _in_threads(work: Callable[[Any], Any], items: Sequence[Any] | range) -> None:
    """Run the work in threads: NumPy releases the interpreter lock while it sorts and searches."""
    with ThreadPoolExecutor(thread_count()) as pool:
        list(pool.map(work, items))
