"""The multiclass AUC and its variance of scores that are read column by column, as often as needed, and never held.

Rows and columns are grouped so that what is held stays within a budget; the numbers are those of the scores in memory.

1. One reading of all columns keeps each row's score in the column of its own class, sorted by class: N numbers of N·C.
2. One reading of a column sorts its scores by class. Merged with the positives they tell, for each positive, how many
   rows of each other class it beats: the AUCs of the column, and the share of each row as a positive.
3. One more reading of all columns finds each score among the positives of its column, its share as a negative, and the
   row's own score among the positives of its class, for the first share. Of their sums only moments are kept.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.threads import thread_count

__all__ = ["BUDGET", "ClassMoments", "ScoredRows", "StreamedAUC", "sorted_columns", "stream_auc"]

BUDGET = 2.0 * 2**30
BASE = 0.35 * 2**30
"""What Python and the readers take."""
LEAST = 0.2 * 2**30
"""What there is for sorting, however small the budget."""
SHARE = 0.35
"""Of what is left of the budget, for a group of columns; and again for a group of tables."""
BATCH_ELEMENTS = 1 << 22
BLOCK = 1 << 12
"""Neighbouring scores that are looked up in one stretch of the sorted ones, which a cache holds."""

Column = NDArray[np.floating]
Seen = Callable[[int, list[Column]], None]


class ScoredRows(Protocol):
    """Rows with classes and scores that can be read again and again; nothing about them is checked here."""

    codes: NDArray[Any]
    """``(N,)`` class of each row, ``0..C-1``; every class has a row."""
    counts: Ints
    """``(C,)`` rows of each class."""

    def scan(self, columns: Sequence[int], n_rows: int) -> Iterator[tuple[int, list[Column]]]:
        """First row, and the scores of these columns, of batches of about so many rows, in order."""
        ...


class ClassMoments:
    """``(C, K)`` means and sums of squares about them, of K variables over the rows of each class."""

    def __init__(self, n_classes: int, n_variables: int) -> None:
        self.n = np.zeros(n_classes)
        self.mean = np.zeros((n_classes, n_variables))
        self.squares = np.zeros((n_classes, n_variables))

    def add(self, i: int, x: Floats) -> None:
        """``(K, M)`` values of M more rows of class ``i``, by the update of Chan, Golub and LeVeque."""
        n, mean = x.shape[1], x.mean(axis=1)
        centred = x - mean[:, None]
        step, total = mean - self.mean[i], self.n[i] + n
        self.squares[i] += np.einsum("kn,kn->k", centred, centred) + step**2 * (self.n[i] * n / total)
        self.mean[i] += step * (n / total)
        self.n[i] = total


@dataclass(eq=False)
class StreamedAUC:
    """What is known of the scores after the last reading."""

    matrix: Floats
    """``(C, C)`` ``AUC_{i|j}``, NaN on the diagonal."""
    right: Ints
    """``(C,)`` rows of each class whose highest score is that of the class, the first one where several are."""
    lost: ClassMoments
    """Of ``Σ_j v_ij (1 − AUC_ij(n)) + v_ji (1 − AUC_ji(n))``, what the row n of class i takes off the multiclass AUC,
    for each of the weights ``v``."""
    lost_in_pair: ClassMoments
    """The same for the pair of the class with each other one, both directions at ½."""
    losses: NDArray[np.floating] | None = None
    """``(N,)`` what each row takes off by the first weights, where asked for."""


def stream_auc(
    rows: ScoredRows,
    weights: Sequence[Floats],
    *,
    budget: float = BUDGET,
    seen: Seen | None = None,
    keep_losses: bool = False,
) -> StreamedAUC:
    """Matrix of AUCs, and moments of what each row takes off their weighted means.

    ``weights`` are ``(C, C)`` matrices ``v``; ``seen(i, by_class)`` is called with the scores of column i, sorted in
    each class. O(N·C log N) time; memory for N scores, for N class codes, for one column and for its table of
    ``n_i × C`` counts, the latter in slices that fit ``budget`` bytes.
    """
    counts, n_classes = rows.counts, len(rows.counts)
    own, right = _own_scores(rows)
    found = StreamedAUC(
        np.full((n_classes, n_classes), np.nan),
        right,
        ClassMoments(n_classes, len(weights)),
        ClassMoments(n_classes, n_classes),
    )
    left = budget - BASE - rows.codes.nbytes - sum(x.nbytes for x in own)
    if keep_losses:
        found.losses = np.zeros(len(rows.codes), np.float64 if 8 * len(rows.codes) < SHARE * left else np.float32)
        left -= found.losses.nbytes
    room = SHARE * max(left, LEAST)
    whole = counts.sum()
    widths = [float((whole - counts[i]) * own[i].itemsize) for i in range(n_classes)]
    won = np.zeros((n_classes, n_classes), dtype=np.int64)  # twice the pairs: ties count one
    for columns in _groups(widths, room):
        negatives = _sorted_by_class(rows, {i: range(n_classes) for i in columns}, own)
        if seen is not None:
            for i in columns:
                seen(i, negatives[i])
        for tables in _table_groups(columns, counts, room):
            for table in tables:
                won[table.i] += table.fill(own[table.i], negatives[table.i])
            _add_losses(rows, own, tables, weights, found)
        del negatives  # before the next ones are read
    pairs = counts.astype(np.float64)[:, None] * counts
    np.divide(won / 2.0, pairs, out=found.matrix, where=~np.eye(n_classes, dtype=bool))
    return found


def sorted_columns(
    rows: ScoredRows, wanted: Mapping[int, Sequence[int]], seen: Seen, *, budget: float = BUDGET
) -> None:
    """``seen(i, by_class)`` for columns ``i``, with the scores of classes ``wanted[i]`` sorted, the others empty."""
    room = SHARE * max(budget - BASE - rows.codes.nbytes, LEAST)
    columns = list(wanted)
    widths = [8.0 * sum(int(rows.counts[j]) for j in wanted[i]) for i in columns]
    for group in _groups(widths, room):
        found = _sorted_by_class(rows, {columns[k]: wanted[columns[k]] for k in group})
        for i, by_class in found.items():
            seen(i, by_class)


def _groups(sizes: Sequence[float], room: float) -> Iterator[list[int]]:
    """Consecutive indices whose sizes fit the room together, one at least."""
    group: list[int] = []
    for k, _ in enumerate(sizes):
        if group and sum(sizes[m] for m in group) + sizes[k] > room:
            yield group
            group = []
        group.append(k)
    if group:
        yield group


def _batch_rows(n_columns: int) -> int:
    return max(1 << 10, BATCH_ELEMENTS // n_columns)


def _own_scores(rows: ScoredRows) -> tuple[list[Column], Ints]:
    """Each class's scores in its own column, sorted; and how many of its rows have their highest score there."""
    n_classes = len(rows.counts)
    own: list[Column] = []
    filled, right = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes, dtype=np.int64)
    for first, columns in rows.scan(range(n_classes), _batch_rows(n_classes)):
        if not own:
            own = [np.empty(n, x.dtype) for n, x in zip(rows.counts, columns, strict=True)]
        codes = rows.codes[first : first + len(columns[0])]
        highest, best = np.zeros(len(codes), dtype=codes.dtype), columns[0]
        for k, x in enumerate(columns[1:], 1):
            higher = x > best
            highest[higher] = k
            best = np.where(higher, x, best)
        right += np.bincount(codes[highest == codes], minlength=n_classes)
        for k, members in _by_class(codes, n_classes):
            own[k][filled[k] : filled[k] + len(members)] = columns[k][members]
            filled[k] += len(members)
    _in_threads(lambda x: x.sort(), own)
    return own, right


def _by_class(codes: NDArray[Any], n_classes: int) -> Iterator[tuple[int, Ints]]:
    """Each class that has rows, with its rows."""
    order = np.argsort(codes, kind="stable")  # of 8 or 16 bits: a radix sort
    ends = np.cumsum(np.bincount(codes, minlength=n_classes))
    for k in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        yield k, order[ends[k - 1] if k else 0 : ends[k]]


def _sorted_by_class(
    rows: ScoredRows, wanted: Mapping[int, Sequence[int]], own: Sequence[Column] | None = None
) -> dict[int, list[Column]]:
    """Column → its scores of each wanted class, sorted; those of its own class are taken from ``own`` if given."""
    n_classes = len(rows.counts)
    needed = {i: np.isin(np.arange(n_classes), list(classes)) for i, classes in wanted.items()}
    for i in needed if own is not None else ():
        needed[i][i] = False
    found: dict[int, list[Column]] = {}
    filled = np.zeros((len(wanted), n_classes), dtype=np.int64)
    for first, columns in rows.scan(list(wanted), _batch_rows(len(wanted))):
        if not found:
            for i, x in zip(wanted, columns, strict=True):
                found[i] = [np.empty(n if needed[i][j] else 0, x.dtype) for j, n in enumerate(rows.counts)]
        for j, members in _by_class(rows.codes[first : first + len(columns[0])], n_classes):
            for k, (i, x) in enumerate(zip(wanted, columns, strict=True)):
                if needed[i][j]:
                    found[i][j][filled[k, j] : filled[k, j] + len(members)] = x[members]
                    filled[k, j] += len(members)
    _in_threads(lambda x: x.sort(), [x for by_class in found.values() for x in by_class])
    if own is not None:
        for i, by_class in found.items():
            by_class[i] = own[i]
    return found


def _doubled_ranks(reference: Column, x: Column) -> Iterator[tuple[int, Ints]]:
    """Twice the number of reference values below each ``x``, ties at one: both sorted; block by block of ``x``.

    Block by block the search stays within a few pages of the reference; a search among all of it took three times as
    long, and one for unsorted scores thirty times.
    """
    low = 0
    for begin in range(0, len(x), BLOCK):
        part = x[begin : begin + BLOCK]
        low += int(np.searchsorted(reference[low:], part[0]))
        high = low + int(np.searchsorted(reference[low:], part[-1], side="right"))
        piece = reference[low:high]
        doubled = 2 * np.searchsorted(piece, part)
        if len(piece):
            tied = np.flatnonzero(piece.take(doubled >> 1, mode="clip") == part)
            if len(tied):
                doubled[tied] = (doubled[tied] >> 1) + np.searchsorted(piece, part[tied], side="right")
        doubled += 2 * low
        yield begin, doubled


def _order(x: Column) -> Ints:
    """``np.argsort``. NumPy sorts numbers that hold a float32 and its place a third faster than it sorts places."""
    if x.dtype != np.float32:
        return np.argsort(x)
    bits = (x + np.float32(0)).view(np.int32)  # -0.0 becomes the 0.0 that it equals
    keys = (bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))).astype(np.int64)
    keys <<= 32
    keys |= np.arange(len(x))
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys


@dataclass(eq=False)
class _Table:
    """How many rows of each class some positives of class ``i`` beat: those ``first`` to ``last`` in sorted order."""

    i: int
    first: int
    last: int
    n_classes: int
    doubled: NDArray[Any] = field(init=False)
    """``(last - first, C)``"""

    def fill(self, own: Column, negatives: Sequence[Column]) -> Ints:
        """Count; ``(C,)`` sums over the positives come back."""
        longest = max(len(x) for x in negatives)
        self.doubled = np.zeros((self.last - self.first, self.n_classes), np.uint32 if longest < 2**31 else np.uint64)
        part = own[self.first : self.last]

        total = np.zeros(self.n_classes, dtype=np.int64)

        def fill_class(j: int) -> None:
            if j != self.i:
                for begin, doubled in _doubled_ranks(negatives[j], part):
                    self.doubled[begin : begin + len(doubled), j] = doubled
                    total[j] += doubled.sum()

        _in_threads(fill_class, range(self.n_classes))
        return total

    def find(self, members: Ints, columns: Sequence[Column], own: Sequence[Column]) -> tuple[Ints, Ints]:
        """Those of the members of class ``i`` whose score is in the table, by rising score, and where it is.

        A row stands anywhere among the positives that tie with it: they beat the same rows.
        """
        x = columns[self.i][members]
        order = _order(x)
        slots = np.empty(len(x), dtype=np.int64)
        for begin, doubled in _doubled_ranks(own[self.i], x[order]):
            np.right_shift(doubled, 1, out=slots[begin : begin + len(doubled)])
        begin, end = np.searchsorted(slots, [self.first, self.last])
        return members[order[begin:end]], slots[begin:end] - self.first


def _table_groups(columns: Sequence[int], counts: Ints, room: float) -> Iterator[list[_Table]]:
    """Tables of the positives of these columns, cut so that each fits the room, in groups that do."""
    n_classes = len(counts)
    longest = max(1, int(room / (4.0 * n_classes)))
    tables = [
        _Table(i, first, min(first + longest, int(counts[i])), n_classes)
        for i in columns
        for first in range(0, int(counts[i]), longest)
    ]
    for group in _groups([4.0 * n_classes * (t.last - t.first) for t in tables], room):
        yield [tables[k] for k in group]
        for k in group:
            del tables[k].doubled


def _add_losses(
    rows: ScoredRows, own: Sequence[Column], tables: Sequence[_Table], weights: Sequence[Floats], found: StreamedAUC
) -> None:
    """Add the rows that the tables are about to the moments."""
    n_classes = len(rows.counts)
    half = 0.5 / rows.counts[:, None]
    for index, codes, columns in _rows_of(rows, [t.i for t in tables]):
        members = dict(_by_class(codes, n_classes))
        chosen = [(t, *t.find(members[t.i], columns, own)) for t in tables if t.i in members]
        chosen = [each for each in chosen if len(each[1])]
        if not chosen:
            continue
        here = np.concatenate([rows_here for _, rows_here, _ in chosen])
        classes = np.repeat([table.i for table, _, _ in chosen], [len(slots) for _, _, slots in chosen])
        as_negative = _beaten(columns, here, classes, own) * half
        end = 0
        for table, rows_here, slots in chosen:
            i, begin, end = table.i, end, end + len(slots)
            as_positive = 1.0 - np.array(table.doubled[slots].T, dtype=np.float64, order="C") * half
            as_positive[i] = 0.0
            lost = as_negative[:, begin:end]
            sums = np.stack([v[i] @ as_positive + v[:, i] @ lost for v in weights])
            found.lost.add(i, sums)
            if found.losses is not None:
                found.losses[index[rows_here]] = sums[0]
            as_positive += lost
            as_positive *= 0.5
            found.lost_in_pair.add(i, as_positive)


def _rows_of(rows: ScoredRows, classes: Sequence[int]) -> Iterator[tuple[Ints, NDArray[Any], list[Column]]]:
    """The rows of these classes with their codes and all scores, in batches that are full where a class is rare: the
    more scores are looked up at a time, the nearer to one another they are found."""
    n_classes = len(rows.counts)
    wanted = np.isin(np.arange(n_classes), classes)
    size = _batch_rows(n_classes)
    held: list[tuple[Ints, NDArray[Any], list[Column]]] = []
    for first, columns in rows.scan(range(n_classes), size):
        codes = rows.codes[first : first + len(columns[0])]
        here = np.flatnonzero(wanted[codes])
        held.append((first + here, codes[here], [x[here] for x in columns]))
        if sum(len(each[0]) for each in held) >= size // 2:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(
    batches: Sequence[tuple[Ints, NDArray[Any], list[Column]]],
) -> tuple[Ints, NDArray[Any], list[Column]]:
    index, codes, columns = zip(*batches, strict=True)
    return np.concatenate(index), np.concatenate(codes), [np.concatenate(x) for x in zip(*columns, strict=True)]


def _beaten(columns: Sequence[Column], here: Ints, classes: Ints, own: Sequence[Column]) -> Floats:
    """``(C, M)`` twice the number of positives of each column that the scores of some rows beat; 0 in their own one.

    Columns come first because NumPy works fast along long rows only.
    """
    found = np.zeros((len(own), len(here)))

    def visit(k: int) -> None:
        others = np.flatnonzero(classes != k)
        x = columns[k][here[others]]
        order = _order(x)
        others = others[order]
        for begin, doubled in _doubled_ranks(own[k], x[order]):
            found[k, others[begin : begin + len(doubled)]] = doubled

    _in_threads(visit, range(len(own)))
    return found


def _in_threads(work: Callable[[Any], Any], items: Sequence[Any] | range) -> None:
    """NumPy lets go of the interpreter while it sorts and searches."""
    with ThreadPoolExecutor(thread_count()) as pool:
        list(pool.map(work, items))
