"""Exact polynomial pieces without cancellation: prefix sums of powers of the distance from a run's end.

On ``[low, high)`` ℓ is ``Σ_k c_k s^k`` of the distance ``s = high − t >= 0``. The positives ``u`` of a negative ``x``
in that piece are a run of the sorted ones; with its last one ``e`` and ``d = high − (e − x) >= 0``,

    Σ_u a_u s^k = Σ_u a_u (d + (e − u))^k = Σ_j C(k, j) d^(k−j) S_j,    S_j = Σ_u a_u (e − u)^j.

Every term is non-negative, so each sum keeps its digits whatever the spread of the scores; sums of powers about a fixed
centre cancel. The step to the next value, a gap ``g`` further, is ``S_k ← Σ_j C(k, j) g^(k−j) S_j``, non-negative
again, and as ``S_k`` enters with the factor 1 it is a prefix sum of the lower ones. Gradients of the positives are the
same sums over the negatives, which are added at the end of their runs and carried down.

A piece from ``−∞`` has runs from the lowest positive on. Runs of a piece between two bounds begin anywhere, and a
difference of prefix sums would cancel. So the positives are cut into cells narrower than the piece: each run is the
rest of one cell and the beginning of a later one.
"""

from math import comb
from typing import NamedTuple

import numpy as np

from mauc._kernels.search import SortedColumns
from mauc._kernels.tiles import Tile
from mauc._typing import Floats, Ints

__all__ = ["Between", "Lower", "running_sum"]


def running_sum(x: Floats, edges: Ints) -> Floats:
    """Return prefix sums along the last axis that restart at each of ``edges``, the last of which is the length."""
    length = np.diff(edges)
    if 16 * len(length) < x.shape[-1] or len(length) < 64:
        out = np.empty_like(x)
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            np.add.accumulate(x[..., begin:end], axis=-1, out=out[..., begin:end])
        return out
    # Many short segments: sums of 1, 2, 4 … neighbours. Differences of one long prefix sum would cancel.
    out = x.copy()
    place = np.arange(x.shape[-1]) - np.repeat(edges[:-1], length)
    step = 1
    while step < length.max(initial=0):
        out[..., step:] += np.where(place[step:] >= step, out[..., :-step], 0.0)
        step *= 2
    return out


def carried(source: Floats, gap: Floats, edges: Ints, *, backward: bool = False) -> Floats:
    """Return ``(K, P)`` sums ``S_k(p) = Σ_j C(k, j) gap(p)^(k−j) S_j(p−1) + source_k(p)``, from 0 at each of ``edges``.

    ``gap`` is the distance of each place from the one before it; ``backward`` carries from each place to that one.
    """
    if backward:
        return carried(source[:, ::-1], np.append(0.0, gap[:0:-1]), len(gap) - edges[::-1])[:, ::-1]
    sums = np.empty_like(source)
    before = np.zeros_like(source)
    first = edges[:-1]
    for k in range(len(source)):
        step = np.zeros(source.shape[1])
        for j in range(k):
            step *= gap
            step += comb(k, j) * before[j]
        step *= gap
        step[np.isnan(step)] = 0.0  # 0 times an infinite gap
        step += source[k]
        sums[k] = running_sum(step, edges)
        before[k, 1:] = sums[k, :-1]
        before[k, first] = 0.0
    return sums


def recentred(sums: Floats, coefficients: Floats) -> Floats:
    """Return ``(K + 1, P)`` coefficients ``Σ_k c_k C(k, i) S_(k−i)`` of ``d^i``."""
    out = np.zeros_like(sums)
    for k in np.flatnonzero(coefficients).tolist():
        for i in range(k + 1):
            out[i] += (coefficients[k] * comb(k, i)) * sums[k - i]
    return out


def slope_of(sums: Floats, coefficients: Floats) -> Floats:
    """Return ``Σ_k k c_k S_(k−1)``."""
    out = np.zeros(sums.shape[1])
    for k in np.flatnonzero(coefficients[1:]).tolist():
        out += ((k + 1) * coefficients[k + 1]) * sums[k]
    return out


class _Ends(NamedTuple):
    """Polynomials of the runs by the place where they end: ``Σ_i powers[i] d^i``, ``d`` the distance from there."""

    high: float
    """End of the piece of ℓ."""
    anchor: Floats
    """``(P,)`` score at the end; that of a neighbour where the run is empty."""
    powers: Floats
    """``(K + 1, P)``"""

    def visit(self, place: Ints, x: Floats, weight: Floats, received: Floats | None) -> tuple[Floats, Floats]:
        """Return the polynomial at each negative ``x``, and its slope; add ``ω d^k`` at its place of ``received``."""
        distance = self.anchor.take(place)
        distance -= x
        np.subtract(self.high, distance, out=distance)
        for k, row in enumerate(() if received is None else received):
            weight = weight * distance if k else weight
            np.add.at(row, place.ravel(), weight.ravel())  # np.bincount would go over all of the row for every tile
        degree = len(self.powers) - 1
        value, slope = self.powers[degree].take(place), np.zeros(1)
        for k in range(degree - 1, -1, -1):
            if k == degree - 1:
                slope = value
            else:
                slope *= distance
                slope += value
            value = value * distance
            value += self.powers[k].take(place)
        return value, slope


def _runs_after(table: SortedColumns, edges: Ints, high: float, coefficients: Floats) -> tuple[_Ends, Floats]:
    """Return the runs from the last edge up to the value before each position, and the distances of these values.

    At a column's first position the run is empty.
    """
    anchor, mass = np.append(0.0, table.values[:-1]), np.append(0.0, table.mass[:-1])
    anchor[table.start[:-1]] = table.values[table.start[:-1]]
    anchor = np.where(np.isinf(anchor), 0.0, anchor)
    gap = np.diff(anchor, prepend=anchor[0])
    gap[edges[:-1]] = 0.0
    source = np.zeros((len(coefficients), len(mass)))
    source[0] = mass
    return _Ends(high, anchor, recentred(carried(source, gap, edges), coefficients)), gap


class Lower:
    """The piece ``(−∞, high)``: a run that ends before position ``p`` is at place ``p``, empty at a column's first.

    ℓ is ``Σ_k coefficients[k] s^k`` of the distance ``s`` from ``high``.
    """

    def __init__(self, table: SortedColumns, high: float, coefficients: Floats) -> None:
        self.coefficients, self.edges = coefficients, table.start
        self.ends, self.gap = _runs_after(table, self.edges, high, coefficients)

    def new_buffer(self) -> Floats:
        """Return zeros, to which the negatives add what the positives receive."""
        return np.zeros((len(self.coefficients) - 1, len(self.gap)))

    def visit(self, tile: Tile, begin: Ints | None, end: Ints, received: Floats | None) -> tuple[Floats, Floats]:
        """Return ``Σ_u a_u ℓ`` over the positives from ``begin`` to ``end``, and its slope in the negative."""
        return self.ends.visit(end, tile.x, tile.weight, received)

    def collect(self, received: Floats) -> Floats:
        """Return the ``(M + C,)`` slope in the value at each position, per unit of its weight."""
        below = slope_of(carried(received, self.gap, self.edges, backward=True), self.coefficients)
        return np.append(-below[1:], 0.0)


class Between:
    """The piece ``[low, high)``, as :class:`Lower`: a run is the rest of one cell and the beginning of a later one.

    The rest is found by its first position, the beginning by the position after it. A cell begins at the first value
    that is a piece's width above the beginning of the cell before. No run begins and ends inside one cell, and only
    rounding lets a run cover a whole cell.
    """

    def __init__(self, table: SortedColumns, low: float, high: float, coefficients: Floats) -> None:
        self.coefficients = coefficients
        rounding = 256.0 * float(np.finfo(np.float64).eps) * (abs(low) + abs(high))
        first = cells(table, high - low - rounding)
        self.edges = np.append(first, len(table.values))
        length = np.diff(self.edges)
        self.cell_end = np.repeat(self.edges[1:], length)
        self.begun = np.append(-1, np.repeat(first, length)[:-1])
        """First position of the cell that contains the position before; −1 at a column's first."""
        self.begun[table.start[:-1]] = -1
        closing = np.isinf(table.values[first])
        from_before = table.values[first[2:]] - table.values[first[1:-1] - 1]
        from_before = from_before[~(closing[:-2] | closing[1:-1] | closing[2:])]
        self.reaches_over = bool(np.any(from_before <= high - low + rounding))

        self.edges_after = np.append(0, first + 1)
        self.beginning, self.gap = _runs_after(table, self.edges_after, high, coefficients)

        last = table.values[self.cell_end - 1]
        last[table.start[1:] - 1] = 0.0
        self.to_last = last - table.values
        self.to_last[table.start[1:] - 1] = 0.0
        powers = np.ascontiguousarray(np.vander(self.to_last, len(coefficients), increasing=True).T)
        powers *= table.mass
        sums = running_sum(powers[:, ::-1], len(self.to_last) - self.edges[::-1])[:, ::-1]
        self.rest = _Ends(high, last, recentred(sums, coefficients))

    def new_buffer(self) -> Floats:
        return np.zeros((2 * (len(self.coefficients) - 1), len(self.gap)))

    def visit(self, tile: Tile, begin: Ints | None, end: Ints, received: Floats | None) -> tuple[Floats, Floats]:
        assert begin is not None
        degree = len(self.coefficients) - 1
        to_beginning, to_rest = (None, None) if received is None else (received[:degree], received[degree:])
        begun = self.begun.take(end)
        # Place 0 has no beginning, and the last one no rest.
        of_beginning = end * (begun >= begin)
        of_rest = np.where((begun != begin) & (begin < end), begin, len(self.gap) - 1)
        value, slope = self.beginning.visit(of_beginning, tile.x, tile.weight, to_beginning)
        value_of_rest, slope_of_rest = self.rest.visit(of_rest, tile.x, tile.weight, to_rest)
        value += value_of_rest
        slope = slope + slope_of_rest
        if not self.reaches_over:
            return value, slope
        between = self.cell_end.take(begin)
        over = np.flatnonzero((between < begun) & (begin < end))
        while len(over):
            place = self.cell_end.take(between.ravel()[over])
            x, weight = tile.x.ravel()[over], tile.weight.ravel()[over]
            more, steeper = self.beginning.visit(place, x, weight, to_beginning)
            value.ravel()[over] += more
            slope.ravel()[over] += steeper
            between.ravel()[over] = place
            over = over[place < begun.ravel()[over]]
        return value, slope

    def collect(self, received: Floats) -> Floats:
        degree = len(self.coefficients) - 1
        through = carried(received[:degree], self.gap, self.edges_after, backward=True)
        slope = np.append(-slope_of(through, self.coefficients)[1:], 0.0)
        from_rest = running_sum(received[degree:], self.edges)
        at_value = np.zeros_like(from_rest)
        for k in range(degree):
            for j in range(k + 1):
                at_value[k] += comb(k, j) * self.to_last ** (k - j) * from_rest[j]
        return slope - slope_of(at_value, self.coefficients)


def cells(table: SortedColumns, width: float) -> Ints:
    """Return the first positions of cells narrower than ``width``; each column's closing position is its own cell."""
    start, last = table.start[:-1], table.start[1:] - 1
    following = np.arange(1, len(table.values) + 1)
    for begin, end in zip(start.tolist(), last.tolist(), strict=True):
        values = table.values[begin:end]
        further = begin + np.searchsorted(values, values + width)
        np.maximum(following[begin:end], further, out=following[begin:end])
    following[last] = last
    is_first = np.zeros(len(following), dtype=bool)
    is_first[start] = True
    first = np.flatnonzero(is_first)
    # After r rounds the first 2^r cells of each column are known, and a jump passes 2^r of them.
    while True:
        is_first[following[first]] = True
        more = np.flatnonzero(is_first)
        if len(more) == len(first):
            return first
        first, following = more, following[following]
