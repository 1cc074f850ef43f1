"""Piecewise polynomial surrogates: ``O(N·C)`` after sorting the positives of each class.

For one negative ``q`` the positives whose difference ``p − q`` falls into one piece of ℓ are a contiguous run of the
sorted positives, and prefix sums over the positives give the piece's part. Exact pieces are in :mod:`.prefix_sums`.

Approximated pieces are ``ℓ(p − q) = Σ_kl A_kl φ_k(p) φ_l(q)``: differences of prefix sums of ``Σ_k A_kl φ_k(p)`` over
the run are the coefficients of a polynomial in ``q``, and the same holds for its derivative. The gradients of the
positives go the other way: each negative adds its ``φ_l(q)`` to a run of positives, through a difference array. These
differences cancel; the planner allowed for that rounding.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import DTypeLike, NDArray

from mauc._kernels.prefix_sums import Run, exact_run, running_sum
from mauc._kernels.search import SortedColumns, locate, sort_columns
from mauc._kernels.threads import one_by_one
from mauc._kernels.tiles import Problem, Tile, chebyshev_terms, column_centre, tiles
from mauc._typing import Floats, Ints

__all__ = ["KernelPiece", "ranked_risk"]


class KernelPiece(NamedTuple):
    """ℓ on ``low <= p − q < high``.

    Exact where ``half_width`` is ``None``: ``Σ_k matrix[k, 0] s^k`` with ``s`` the distance of ``p − q`` from ``high``,
    which is finite. Else ``Σ_kl matrix[k, l] T_k(x_p) T_l(x_q)`` with Chebyshev polynomials of
    ``x = (score − centre) / half_width``.
    """

    low: float
    high: float
    matrix: Floats
    half_width: float | None


def ranked_risk(
    problem: Problem, pieces: list[KernelPiece], *, gradient: bool, dtype: DTypeLike = np.float64
) -> tuple[float, NDArray[Any] | None]:
    """Compute value and gradient, of that ``dtype``, of a piecewise polynomial that is 0 outside ``pieces``."""
    classes = problem.classes
    table = sort_columns(problem.own[classes.order], classes.offsets, classes.unit[classes.order])
    approximated = any(piece.half_width is not None for piece in pieces)
    largest = max(problem.scores.max(), -problem.scores.min())
    sums = _RankedSums(table, pieces, largest, column_centre(problem) if approximated else None)
    slope = np.empty(problem.scores.shape, dtype) if gradient else None

    def visit(first: int, last: int) -> tuple[float, list[Floats]]:
        return sums.visit(tiles(problem, first, last), slope)

    value, received = 0.0, list[Floats]()
    with np.errstate(over="ignore", invalid="ignore"):
        for more, more_received in one_by_one(problem.scores.shape, visit):
            value += more
            received = [a + b for a, b in zip(received, more_received, strict=True)] if received else more_received
        if slope is not None:
            own = np.zeros(len(classes.y))
            own[classes.order] = classes.unit[classes.order] * sums.collect(received)[table.slot]
            slope[np.arange(len(own)), classes.y] = np.where(np.isnan(own), 0.0, own)
    return value, slope


class _RankedSums:
    """The sorted positives with their prefix sums for each piece, for the negatives of any part of a sample.

    ``largest`` is the size of the largest score; ``centre`` is a ``(C,)`` middle of each column's range, for
    approximated pieces.
    """

    def __init__(self, table: SortedColumns, pieces: list[KernelPiece], largest: float, centre: Floats | None) -> None:
        self.table, self.pieces, self.largest = table, pieces, largest
        self.breaks = sorted({b for piece in pieces for b in (piece.low, piece.high) if np.isfinite(b)})
        # Distances and their powers may overflow: then so does the risk.
        with np.errstate(over="ignore", invalid="ignore"):
            self.runs = [_run(table, piece, centre) for piece in pieces]

    @np.errstate(over="ignore", invalid="ignore")
    def visit(self, part: Iterable[Tile], slope: NDArray[Any] | None) -> tuple[float, list[Floats]]:
        """Return the value of some tiles and what the positives receive; write the tiles' slopes into ``slope``."""
        value, received = 0.0, [run.new_buffer() for run in self.runs]
        for tile in part:
            position = {b: _first_from(self.table, tile, b, self.largest) for b in self.breaks}
            last = tile.along(self.table.start[1:] - 1)
            steepness = np.zeros(1)
            for k, (piece, run) in enumerate(zip(self.pieces, self.runs, strict=True)):
                begin, end = position.get(piece.low), position.get(piece.high, last)
                of_tile, steeper = run.visit(tile, begin, end, None if slope is None else received[k])
                total = float(np.vdot(tile.weight, of_tile))
                if not np.isfinite(total):
                    of_tile, steeper = _defined(of_tile, tile.weight), _defined(steeper, tile.weight)
                    total = float(np.vdot(tile.weight, of_tile))
                value += total
                steepness = steepness + steeper if k else steeper
            if slope is not None:
                np.multiply(tile.weight, steepness, out=tile.of(slope), casting="same_kind")
        return value, received

    def collect(self, received: list[Floats]) -> Floats:
        """Return the ``(M + C,)`` slope in the value at each position, per unit of its weight, from all parts."""
        slopes = (run.collect(total) for run, total in zip(self.runs, received, strict=True))
        return sum(slopes, start=np.zeros(len(self.table.values)))


def _defined(x: Floats, weight: Floats) -> Floats:
    """Zero the entries without weight, and those where 0 met an infinite number."""
    return np.where((weight == 0.0) | np.isnan(x), 0.0, x)


# Scores larger than this multiple of the break point may lose its digits in the sum.
LARGE = 64.0


def _first_from(table: SortedColumns, tile: Tile, b: float, largest: float) -> Ints:
    """Return the position of the first positive with ``p − q >= b`` for each negative ``q`` of a tile."""
    position = locate(table, tile.x + b, columns_first=tile.columns_first)[0]
    if largest > LARGE * abs(b):
        # q + b is rounded to a neighbour, p − q is not: the search may be off by one value.
        start = tile.along(table.start[:-1])
        before = table.values.take(np.maximum(position - 1, 0))
        position -= (position > start) & (before - tile.x >= b)
        position += table.values.take(position) - tile.x < b
    return position


def _run(table: SortedColumns, piece: KernelPiece, centre: Floats | None) -> Run:
    if piece.half_width is None:
        return exact_run(table, piece.low, piece.high, piece.matrix[:, 0])
    assert centre is not None
    return _Approximated(table, piece.matrix, piece.half_width, centre)


class _Approximated:
    def __init__(self, table: SortedColumns, matrix: Floats, half_width: float, centre: Floats) -> None:
        size = len(matrix)
        self.half_width, self.start, self.last = half_width, table.start, table.start[1:] - 1
        self.centre = centre
        derivative = np.asarray(chebyshev.chebder(matrix, axis=1) / half_width, dtype=np.float64)
        values = table.values.copy()
        values[self.last] = self.centre
        of_p = np.stack(self._terms(values - self.centre.repeat(np.diff(table.start)), size))
        self.slope_of_p = derivative.T @ of_p
        """``(K, M + C)`` coefficients of ``∂ℓ/∂q`` at each positive."""
        weighted = np.vstack([matrix.T @ of_p, self.slope_of_p])
        weighted *= table.mass
        prefix = np.zeros_like(weighted)
        prefix[:, 1:] = running_sum(weighted, table.start)[:, :-1]
        prefix[:, table.start[:-1]] = 0.0
        self.of_q, self.slope_of_q = prefix[:size], prefix[size:]
        """``(K + 1, M + C)`` and ``(K, M + C)`` sums of the coefficients over the positives before."""

    def _terms(self, centred: Floats, size: int) -> list[Floats]:
        return list(chebyshev_terms(centred / self.half_width, size - 1))

    def new_buffer(self) -> Floats:
        return np.zeros_like(self.slope_of_p)

    def visit(self, tile: Tile, begin: Ints | None, end: Ints, received: Floats | None) -> tuple[Floats, Floats]:
        terms = self._terms(tile.x - tile.along(self.centre), len(self.of_q))
        value = _polynomial(self.of_q, begin, end, terms)
        if received is None:
            return value, np.zeros(1)
        # Each negative's ω φ_l(q) is added at the end of its run and taken away at its start.
        for row, term in zip(received, terms, strict=False):
            weighted = tile.weight * term
            if end.shape == weighted.shape:
                np.add.at(row, end.ravel(), weighted.ravel())
            else:
                row[self.last] += weighted.sum(axis=end.ndim - 1)  # one end per column, in a shape that broadcasts
            if begin is not None:
                np.subtract.at(row, begin.ravel(), weighted.ravel())
        return value, _polynomial(self.slope_of_q, begin, end, terms)

    def collect(self, received: Floats) -> Floats:
        """Sum ``∂ℓ/∂p = −∂ℓ/∂q`` over the negatives whose run contains the value.

        It is the sum of what later positions of the column have received.
        """
        through = running_sum(received[:, ::-1], len(self.slope_of_p[0]) - self.start[::-1])[:, ::-1]
        later = np.zeros_like(received)
        later[:, :-1] = through[:, 1:]
        later[:, self.last] = 0.0
        return np.asarray(-np.einsum("lm,lm->m", self.slope_of_p, later))


def _polynomial(prefix: Floats, begin: Ints | None, end: Ints, terms: list[Floats]) -> Floats:
    """Return ``Σ_l φ_l(q) · (sum of coefficient l over q's run)`` for a tile; no ``begin``: from the column's start."""
    total = np.zeros(1)
    for power, sums in enumerate(prefix):
        inner = sums.take(end)
        if begin is not None:
            inner = inner - sums.take(begin)
        total = total + inner * terms[power] if power else inner
    return np.broadcast_to(total, terms[0].shape)
