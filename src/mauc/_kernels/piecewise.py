"""Piecewise polynomial surrogates: ``O(N·C)`` after sorting the positives of each class.

For one negative ``q`` the positives whose difference ``p − q`` falls into one piece of ℓ are a contiguous run of the
sorted positives, and prefix sums over the positives give the piece's part. Exact pieces are in :mod:`.prefix_sums`.

Approximated pieces are ``ℓ(p − q) = Σ_kl A_kl φ_k(p) φ_l(q)``: differences of prefix sums of ``Σ_k A_kl φ_k(p)`` over
the run are the coefficients of a polynomial in ``q``, and the same holds for its derivative. The gradients of the
positives go the other way: each negative adds its ``φ_l(q)`` to a run of positives, through a difference array. These
differences cancel; the planner allowed for that rounding.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from mauc._kernels.prefix_sums import Between, Lower, running_sum
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


def ranked_risk(problem: Problem, pieces: Sequence[KernelPiece], *, gradient: bool) -> tuple[float, Floats | None]:
    """Compute value and gradient of a piecewise polynomial that is 0 outside ``pieces``."""
    classes = problem.classes
    table = sort_columns(problem.own[classes.order], classes.offsets, classes.unit[classes.order])
    breaks = {b for piece in pieces for b in (piece.low, piece.high) if np.isfinite(b)}
    largest = max(problem.scores.max(), -problem.scores.min())
    is_exact = all(piece.half_width is None for piece in pieces)
    centre = np.zeros(0) if is_exact else column_centre(problem)
    slope = np.empty(problem.scores.shape) if gradient else None
    # Distances and their powers may overflow: then so does the risk.
    with np.errstate(over="ignore", invalid="ignore"):
        runs = [_run(table, piece, centre) for piece in pieces]

    @np.errstate(over="ignore", invalid="ignore")
    def visit(first: int, last: int) -> tuple[float, list[Floats]]:
        """Return the value of some rows, and what the positives receive from them."""
        value, received = 0.0, [run.new_buffer() for run in runs]
        for tile in tiles(problem, first, last):
            position = {b: _first_from(table, tile, b, largest) for b in breaks}
            closing = tile.along(table.start[1:] - 1)
            steepness = np.zeros(1)
            for k, (piece, run) in enumerate(zip(pieces, runs, strict=True)):
                begin, end = position.get(piece.low), position.get(piece.high, closing)
                of_tile, steeper = run.visit(tile, begin, end, None if slope is None else received[k])
                total = float(np.vdot(tile.weight, of_tile))
                if not np.isfinite(total):
                    of_tile, steeper = _defined(of_tile, tile.weight), _defined(steeper, tile.weight)
                    total = float(np.vdot(tile.weight, of_tile))
                value += total
                steepness = steepness + steeper if k else steeper
            if slope is not None:
                np.multiply(tile.weight, steepness, out=tile.of(slope))
        return value, received

    value, received = 0.0, list[Floats]()
    with np.errstate(over="ignore", invalid="ignore"):
        for more, more_received in one_by_one(problem.scores.shape, visit):
            value += more
            received = [a + b for a, b in zip(received, more_received, strict=True)] if received else more_received
        if slope is not None:
            slopes = (run.collect(of_run) for run, of_run in zip(runs, received, strict=True))
            at_position = sum(slopes, start=np.zeros(len(table.values)))
            own = np.zeros(len(classes.y))
            own[classes.order] = classes.unit[classes.order] * at_position[table.slot]
            slope[np.arange(len(own)), classes.y] = np.where(np.isnan(own), 0.0, own)
    return value, slope


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


def _run(table: SortedColumns, piece: KernelPiece, centre: Floats) -> "Lower | Between | _Approximated":
    """Return a piece of ℓ with its prefix sums over the positives; ``centre`` is the middle of each column's range."""
    if piece.half_width is not None:
        return _Approximated(table, piece.matrix, piece.half_width, centre)
    if piece.low == -np.inf:
        return Lower(table, piece.high, piece.matrix[:, 0])
    return Between(table, piece.low, piece.high, piece.matrix[:, 0])


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
