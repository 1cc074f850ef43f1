"""Exact polynomial pieces without cancellation: sums of powers of the distance from a run's own end.

On ``[low, high)`` ℓ is ``Σ_k c_k s^k`` of the distance ``s = high − t >= 0``. The positives ``u`` of a negative ``x``
in that piece are a run of the sorted ones; with its last one ``e`` and ``d = high − (e − x) >= 0``,

    Σ_u a_u s^k = Σ_u a_u (d + (e − u))^k = Σ_j C(k, j) d^(k−j) S_j,    S_j = Σ_u a_u (e − u)^j.

Every term is non-negative, so each sum keeps its digits whatever the spread of the scores; sums of powers about a fixed
centre cancel. Going on to the next value, a gap ``g`` further, is ``S_k ← Σ_j C(k, j) g^(k−j) S_j``, non-negative
again, and as ``S_k`` enters with the factor 1 it is a running sum of the lower ones. Gradients of the positives are the
same sums over the negatives, which land at the end of their runs and are carried down.

A piece from ``−∞`` has runs from the lowest positive on, a piece to ``+∞`` (with ``s = t − low``) runs to the highest.
Runs of a piece between two bounds begin anywhere, and a difference of running sums would cancel. So the positives are
cut into cells narrower than the piece: each run is the rest of one cell and the beginning of a later one.
"""

from math import comb
from typing import NamedTuple, Protocol

import numpy as np

from mauc._typing import Floats, Ints
from mauc.kernels.search import SortedColumns, locate_each
from mauc.kernels.tiles import Negatives, power_terms

__all__ = ["Ends", "ExactRun", "Run", "exact_run"]


class Run(Protocol):
    """One piece of ℓ with its sums over the positives."""

    def landing(self) -> Floats:
        """Zeros to collect what the negatives hand to the positives."""

    def visit(
        self, negatives: Negatives, begin: Ints | None, end: Ints, landed: Floats | None
    ) -> tuple[Floats, Floats]:
        """``Σ_u a_u ℓ`` over the positives from ``begin`` to ``end``, and its slope in the negative; lands if asked."""

    def collect(self, landed: Floats) -> Floats:
        """``(M + C,)`` slope in the value at each position, per unit of its weight."""


class ExactRun(Run, Protocol):
    """One that is a sum of polynomials of distances from ends."""

    def parts(self, begin: Ints | None, end: Ints) -> "list[tuple[Ends, Ints, slice]]":
        """The ends that a run from ``begin`` to ``end`` is made of, the places in them, and their rows of a landing."""


def exact_run(table: SortedColumns, low: float, high: float, coefficients: Floats) -> ExactRun:
    """The run of ``ℓ = Σ_k coefficients[k] s^k`` on ``[low, high)``, with ``s`` the distance from its finite end, from
    ``high`` where both are.
    """
    if high == np.inf:
        return _Upper(table, low, coefficients)
    if low == -np.inf:
        return _Lower(table, high, coefficients)
    return _Between(table, low, high, coefficients)


PADDED = 8
"""Largest size, of what is summed, of a grid with one row per running sum."""


def running_sum(x: Floats, edges: Ints) -> Floats:
    """Running sums along the last axis that begin anew at each of ``edges``, the last of which is the length."""
    length = edges[1:] - edges[:-1]
    if 16 * len(length) < x.shape[-1] or len(length) < 64:
        out = np.empty_like(x)
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            np.add.accumulate(x[..., begin:end], axis=-1, out=out[..., begin:end])
        return out
    # Many short ones. A sum over all, less that at the edge, would cancel.
    place = np.arange(x.shape[-1]) - np.repeat(edges[:-1], length)
    longest = int(length.max(initial=0))
    if len(length) * longest <= PADDED * x.shape[-1]:
        grid = np.zeros((*x.shape[:-1], len(length) * longest))
        place += np.repeat(np.arange(0, len(length) * longest, longest), length)
        grid[..., place] = x
        square = grid.reshape(*x.shape[:-1], len(length), longest)
        np.add.accumulate(square, axis=-1, out=square)
        return grid[..., place]
    # Sums of 1, 2, 4 … neighbours.
    out = x.copy()
    step = 1
    while step < longest:
        out[..., step:] += np.where(place[step:] >= step, out[..., :-step], 0.0)
        step *= 2
    return out


def carried(source: Floats, gap: Floats, edges: Ints, *, backward: bool = False) -> Floats:
    """``(K, P)`` sums ``S_k(p) = Σ_j C(k, j) gap(p)^(k−j) S_j(p−1) + source_k(p)``, from 0 at each of ``edges``.

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
        step[np.isnan(step)] = 0.0  # none, times a gap beyond the floats
        step += source[k]
        sums[k] = running_sum(step, edges)
        before[k, 1:] = sums[k, :-1]
        before[k, first] = 0.0
    return sums


def recentred(sums: Floats, coefficients: Floats) -> Floats:
    """``(K + 1, P)`` coefficients ``Σ_k c_k C(k, i) S_(k−i)`` of ``d^i``."""
    out = np.zeros_like(sums)
    for k in np.flatnonzero(coefficients).tolist():
        for i in range(k + 1):
            out[i] += (coefficients[k] * comb(k, i)) * sums[k - i]
    return out


def slope_of(sums: Floats, coefficients: Floats) -> Floats:
    """``Σ_k k c_k S_(k−1)``."""
    out = np.zeros(sums.shape[1])
    for k in np.flatnonzero(coefficients[1:]).tolist():
        out += ((k + 1) * coefficients[k + 1]) * sums[k]
    return out


class Ends(NamedTuple):
    """Runs by the place where they end: ``Σ_i powers[i] d^i`` with ``d`` the distance from there."""

    anchor: Floats
    """``(P,)`` score at the end; that of a neighbour where the run is empty."""
    powers: Floats
    """``(K + 1, P)``; 0 where the run is empty."""
    bound: float
    """``d`` is the distance of ``anchor − x`` from here."""
    upper: bool
    """Whether the bound is the upper one, from which ``d`` counts down."""

    def visit(self, place: Ints, x: Floats, weight: Floats, landed: Floats | None) -> tuple[Floats, Floats]:
        """The polynomial at the scores ``x``, and its slope in them; adds ``ω d^k`` at each one's place if asked."""
        distance = self.anchor.take(place)
        distance -= x
        if self.upper:
            np.subtract(self.bound, distance, out=distance)
        else:
            distance -= self.bound
        if landed is not None:
            _land(landed, place, distance, weight)
        value, slope = self._evaluate(place, distance)
        return value, slope if self.upper else -slope

    def _evaluate(self, place: Ints, distance: Floats) -> tuple[Floats, Floats]:
        """The polynomial at ``distance`` and its derivative."""
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


def _land(landed: Floats, place: Ints, distance: Floats, weight: Floats) -> None:
    flat = place.ravel()
    term = weight
    for k, row in enumerate(landed):
        term = term * distance if k else term
        np.add.at(row, flat, term.ravel())  # np.bincount would go over all of the row for every tile


def _after(table: SortedColumns) -> tuple[Floats, Floats]:
    """Score and weight of the value before each position; at a column's first there is none, of weight 0."""
    anchor, mass = np.zeros(len(table.values)), np.zeros(len(table.values))
    anchor[1:], mass[1:] = table.values[:-1], table.mass[:-1]
    first = table.start[:-1]
    anchor[first] = table.values[first]
    anchor[np.isinf(anchor)] = 0.0
    return anchor, mass


def _gaps(anchor: Floats, edges: Ints) -> Floats:
    """Distance of each place from the one before; 0 at the edges."""
    gap = np.zeros_like(anchor)
    np.subtract(anchor[1:], anchor[:-1], out=gap[1:])
    gap[edges[:-1]] = 0.0
    return gap


def _of_mass(mass: Floats, degree: int) -> Floats:
    source = np.zeros((degree + 1, len(mass)))
    source[0] = mass
    return source


class _Lower:
    """``(−∞, high)``: a run that ends before position ``p`` is at place ``p``, and empty at the column's first."""

    def __init__(self, table: SortedColumns, high: float, coefficients: Floats) -> None:
        self.coefficients, self.edges = coefficients, table.start
        anchor, mass = _after(table)
        self.gap = _gaps(anchor, self.edges)
        sums = carried(_of_mass(mass, len(coefficients) - 1), self.gap, self.edges)
        self.ends = Ends(anchor, recentred(sums, coefficients), high, upper=True)

    def landing(self) -> Floats:
        return np.zeros((len(self.coefficients) - 1, len(self.gap)))

    def visit(
        self, negatives: Negatives, begin: Ints | None, end: Ints, landed: Floats | None
    ) -> tuple[Floats, Floats]:
        return self.ends.visit(end, negatives.x, negatives.weight, landed)

    def parts(self, begin: Ints | None, end: Ints) -> list[tuple[Ends, Ints, slice]]:
        return [(self.ends, end, slice(None))]

    def collect(self, landed: Floats) -> Floats:
        below = slope_of(carried(landed, self.gap, self.edges, backward=True), self.coefficients)
        return np.append(-below[1:], 0.0)


class _Upper:
    """``[low, ∞)``: a run from position ``p`` on is at place ``p``, and empty at the column's closing one."""

    def __init__(self, table: SortedColumns, low: float, coefficients: Floats) -> None:
        self.coefficients, self.edges = coefficients, table.start
        anchor = table.values.astype(np.float64)
        anchor[table.start[1:] - 1] = 0.0
        self.gap = _gaps(anchor, self.edges)
        self.gap[table.start[1:] - 1] = 0.0
        sums = carried(_of_mass(table.mass, len(coefficients) - 1), self.gap, self.edges, backward=True)
        self.ends = Ends(anchor, recentred(sums, coefficients), low, upper=False)

    def landing(self) -> Floats:
        return np.zeros((len(self.coefficients) - 1, len(self.gap)))

    def visit(
        self, negatives: Negatives, begin: Ints | None, end: Ints, landed: Floats | None
    ) -> tuple[Floats, Floats]:
        assert begin is not None
        return self.ends.visit(begin, negatives.x, negatives.weight, landed)

    def parts(self, begin: Ints | None, end: Ints) -> list[tuple[Ends, Ints, slice]]:
        assert begin is not None
        return [(self.ends, begin, slice(None))]

    def collect(self, landed: Floats) -> Floats:
        return slope_of(carried(landed, self.gap, self.edges), self.coefficients)


class _Between:
    """``[low, high)``: the rest of a cell, by its first position, and the beginning of one, by the position after it.

    A cell begins at the first value that is a piece's width above the beginning of the cell before. No run begins
    inside a cell and ends inside it, and rounding alone lets one reach over a whole cell.
    """

    def __init__(self, table: SortedColumns, low: float, high: float, coefficients: Floats) -> None:
        self.coefficients = coefficients
        degree = len(coefficients) - 1
        rounding = 256.0 * float(np.finfo(np.float64).eps) * (abs(low) + abs(high))
        first = cells(table, high - low - rounding)
        self.edges = np.append(first, len(table.values))
        length = np.diff(self.edges)
        self.cell_end = np.repeat(self.edges[1:], length)
        self.begun = np.append(-1, np.repeat(first, length)[:-1])
        """First position of the cell that has the one before; −1 at a column's first."""
        self.begun[table.start[:-1]] = -1
        closing = np.isinf(table.values[first])
        from_before = table.values[first[2:]] - table.values[first[1:-1] - 1]
        from_before = from_before[~(closing[:-2] | closing[1:-1] | closing[2:])]
        self.reaches_over = bool(np.any(from_before <= high - low + rounding))

        anchor, mass = _after(table)
        self.edges_after = np.append(0, first + 1)
        self.gap = _gaps(anchor, self.edges_after)
        sums = carried(_of_mass(mass, degree), self.gap, self.edges_after)
        self.beginning = Ends(anchor, recentred(sums, coefficients), high, upper=True)

        last = table.values[self.cell_end - 1]
        last[table.start[1:] - 1] = 0.0
        self.to_last = last - table.values
        self.to_last[table.start[1:] - 1] = 0.0
        terms = np.stack(power_terms(self.to_last, degree)) * table.mass
        flipped = len(self.to_last) - self.edges[::-1]
        sums = running_sum(terms[:, ::-1], flipped)[:, ::-1]
        self.rest = Ends(last, recentred(sums, coefficients), high, upper=True)

    def landing(self) -> Floats:
        return np.zeros((2 * (len(self.coefficients) - 1), len(self.gap)))

    def visit(
        self, negatives: Negatives, begin: Ints | None, end: Ints, landed: Floats | None
    ) -> tuple[Floats, Floats]:
        (value, slope), *more = (
            ends.visit(place, negatives.x, negatives.weight, None if landed is None else landed[rows])
            for ends, place, rows in self.parts(begin, end)
        )
        for value_of_part, slope_of_part in more:
            value += value_of_part
            slope = slope + slope_of_part
        return value, slope

    def parts(self, begin: Ints | None, end: Ints) -> list[tuple[Ends, Ints, slice]]:
        assert begin is not None
        degree = len(self.coefficients) - 1
        of_beginning, of_rest = slice(degree), slice(degree, None)
        begun = self.begun.take(end)
        # Place 0 has no beginning, and the last one no rest.
        found = [
            (self.beginning, end * (begun >= begin), of_beginning),
            (self.rest, np.where((begun != begin) & (begin < end), begin, len(self.gap) - 1), of_rest),
        ]
        if self.reaches_over:
            between = self.cell_end.take(begin)
            over = (between < begun) & (begin < end)
            while over.any():
                between = np.where(over, self.cell_end.take(between * over), between)
                found.append((self.beginning, between * over, of_beginning))
                over &= between < begun
        return found

    def collect(self, landed: Floats) -> Floats:
        degree = len(self.coefficients) - 1
        through = carried(landed[:degree], self.gap, self.edges_after, backward=True)
        slope = np.append(-slope_of(through, self.coefficients)[1:], 0.0)
        from_rest = running_sum(landed[degree:], self.edges)
        at_value = np.zeros_like(from_rest)
        for k in range(degree):
            for j in range(k + 1):
                at_value[k] += comb(k, j) * self.to_last ** (k - j) * from_rest[j]
        return slope - slope_of(at_value, self.coefficients)


def cells(table: SortedColumns, width: float) -> Ints:
    """First positions of cells narrower than ``width``; each column's closing position is one by itself."""
    start, last = table.start[:-1], table.start[1:] - 1
    following = np.arange(1, len(table.values) + 1)
    column = np.arange(len(start)).repeat(table.start[1:] - table.start[:-1])
    held = np.flatnonzero(np.isfinite(table.values))
    further, _ = locate_each(table, table.values[held] + width, column[held])
    following[held] = np.maximum(held + 1, further)
    following[last] = last
    is_first = np.zeros(len(following), dtype=bool)
    is_first[start] = True
    first = np.flatnonzero(is_first)
    # After r rounds all cells up to the 2^r-th of each column are known, and a jump goes over 2^r of them.
    while True:
        is_first[following[first]] = True
        more = np.flatnonzero(is_first)
        if len(more) == len(first):
            return first
        first, following = more, following[following]
