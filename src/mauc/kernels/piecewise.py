"""Piecewise polynomial surrogates: ``O(N·C)`` after sorting the positives of each class.

For one negative ``q`` the positives whose difference ``p − q`` falls into one piece of ℓ are a contiguous run of the
sorted positives. With ``ℓ(p − q) = Σ_kl A_kl φ_k(p) φ_l(q)`` on that piece, differences of prefix sums of ``Σ_k A_kl
φ_k(p)`` over the run are the coefficients of a polynomial in ``q``, and the same holds for its derivative. The
gradients of the positives come the other way round: each negative adds its ``φ_l(q)`` to a run of positives, which a
difference array collects.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from mauc._typing import Floats, Ints
from mauc.kernels.search import SortedColumns, locate, sort_columns
from mauc.kernels.tiles import Problem, Tile, chebyshev_terms, column_centre, power_terms, walk

__all__ = ["Piece", "ranked_risk"]


class Piece(NamedTuple):
    """ℓ on ``low <= p − q < high`` as ``Σ_kl matrix[k, l] φ_k(p) φ_l(q)``.

    ``half_width`` is ``None`` for powers of the scores about the median positive (exact pieces: a far outlier must
    not cost the others their digits), else φ are Chebyshev polynomials of ``(score − centre) / half_width``.
    """

    low: float
    high: float
    matrix: Floats
    half_width: float | None


def ranked_risk(problem: Problem, pieces: list[Piece], *, gradient: bool) -> tuple[float, Floats | None]:
    """Value and gradient of the risk of a piecewise polynomial that is 0 outside ``pieces``."""
    classes, order = problem.classes, problem.classes.order
    table = sort_columns(problem.own[order], classes.offsets, classes.unit[order])
    runs = [_prepare(problem, table, piece) for piece in pieces]
    breaks = sorted({b for piece in pieces for b in (piece.low, piece.high) if np.isfinite(b)})
    slope = np.empty(problem.scores.shape) if gradient else None

    def visit(part: Iterable[Tile]) -> tuple[float, list[Floats]]:
        value, landed = 0.0, [np.zeros_like(run.slope_of_p) for run in runs]
        for tile in part:
            position = {b: _first_from(table, tile, b) for b in breaks}
            steepness = np.zeros(1)
            for run, into in zip(runs, landed, strict=True):
                begin = position.get(run.piece.low)
                end = position.get(run.piece.high, tile.along(run.last))
                terms = _terms(run.piece, tile.x - tile.along(run.centre), len(run.of_q))
                value += float(np.sum(tile.total(tile.weight, _polynomial(run.of_q, begin, end, terms))))
                if slope is not None:
                    steepness = steepness + _polynomial(run.slope_of_q, begin, end, terms)
                    _land(into, run.last, tile, begin, end, terms)
            if slope is not None:
                np.multiply(tile.weight, steepness, out=tile.of(slope))
        return value, landed

    values, landed = zip(*walk(problem, visit), strict=True)
    if slope is not None:
        on_values = sum(
            _collect(run, table, np.sum(of_parts, axis=0) if len(of_parts) > 1 else of_parts[0])
            for run, of_parts in zip(runs, zip(*landed, strict=True), strict=True)
        )
        slope[order, classes.y[order]] = classes.unit[order] * np.asarray(on_values)[table.slot]
    return sum(values), slope


# Scores so many times the break point may swallow it when it is added to them.
LARGE = 2.0**20


def _first_from(table: SortedColumns, tile: Tile, b: float) -> Ints:
    """Position of the first positive with ``p − q >= b`` for each negative ``q`` of a tile."""
    position, _ = locate(table, tile.x + b, columns_first=tile.columns_first)
    if max(tile.x.max(), -tile.x.min()) > LARGE * abs(b):
        # q + b is rounded to a neighbour, p − q is not: the search may be off by one value.
        start = tile.along(table.start[:-1])
        before = table.values.take(np.maximum(position - 1, 0))
        position -= (position > start) & (before - tile.x >= b)
        position += table.values.take(position) - tile.x < b
    return position


class _Run(NamedTuple):
    piece: Piece
    centre: Floats
    """``(C,)``"""
    last: Ints
    """``(C,)`` closing position of each column, where prefix sums hold the column's total."""
    of_q: Floats
    """``(K + 1, M + C)`` prefix sums of ``Σ_k A_kl φ_k(p)`` over the positives, exclusive, from 0 in each column."""
    slope_of_q: Floats
    """``(K, M + C)`` likewise for ``∂ℓ/∂q``."""
    slope_of_p: Floats
    """``(K, M + C)`` ``Σ_k`` of the same coefficients at each positive, not summed."""


def _prepare(problem: Problem, table: SortedColumns, piece: Piece) -> _Run:
    size = len(piece.matrix)
    start, last = table.start[:-1], table.start[1:] - 1
    if piece.half_width is None:
        median = table.values[start + (last - start) // 2]
        centre = np.where(np.isfinite(median), median, 0.0)
        derivative = piece.matrix[:, 1:] * np.arange(1, size)
    else:
        centre = column_centre(problem)
        derivative = np.asarray(chebyshev.chebder(piece.matrix, axis=1) / piece.half_width, dtype=np.float64)
    values = table.values.copy()
    values[last] = centre
    of_p = np.stack(_terms(piece, values - centre.repeat(np.diff(table.start)), size))
    slope_of_p = derivative.T @ of_p
    weighted = np.vstack([piece.matrix.T @ of_p, slope_of_p])
    weighted *= table.mass
    prefix = np.zeros_like(weighted)
    # Column by column: one running sum over all would carry the rounding of large columns into small ones.
    for begin, end in zip(start.tolist(), last.tolist(), strict=True):
        np.cumsum(weighted[:, begin:end], axis=1, out=prefix[:, begin + 1 : end + 1])
    return _Run(piece, centre, last, prefix[:size], prefix[size:], slope_of_p)


def _terms(piece: Piece, centred: Floats, size: int) -> list[Floats]:
    """Basis functions ``φ_0 … φ_(size−1)``; the first is 1."""
    if piece.half_width is None:
        return power_terms(centred, size - 1)
    return chebyshev_terms(centred / piece.half_width, size - 1)


def _polynomial(prefix: Floats, begin: Ints | None, end: Ints, terms: list[Floats]) -> Floats:
    """``Σ_l φ_l(q) · (sum of the l-th coefficient over q's run)`` for a tile; no ``begin``: from the column's start."""
    total = np.zeros(1)
    for power, sums in enumerate(prefix):
        inner = sums.take(end)
        if begin is not None:
            inner = inner - sums.take(begin)
        total = total + inner * terms[power] if power else inner
    return np.broadcast_to(total, terms[0].shape)


def _land(landed: Floats, last: Ints, tile: Tile, begin: Ints | None, end: Ints, terms: list[Floats]) -> None:
    """Add each negative's ``ω_n φ_l(q_n)`` at the end of its run, and take it away at its start."""
    size = landed.shape[1]
    for power, row in enumerate(landed):
        term = tile.weight * terms[power] if power else tile.weight
        if end.shape == term.shape:
            row += np.bincount(end.ravel(), term.ravel(), size)
        else:
            row[last] += tile.sum(term)
        if begin is not None:
            row -= np.bincount(begin.ravel(), term.ravel(), size)


def _collect(run: _Run, table: SortedColumns, landed: Floats) -> Floats:
    """``(M + C,)`` derivative with respect to a positive of each value, per unit of its weight.

    ``∂ℓ/∂p = −∂ℓ/∂q``, summed over the negatives whose run ends above the value and starts at or below it: what
    has landed at later positions of the column.
    """
    later = np.zeros_like(landed)
    for begin, end in zip(table.start[:-1].tolist(), run.last.tolist(), strict=True):
        later[:, begin:end] = np.cumsum(landed[:, end:begin:-1], axis=1)[:, ::-1]
    return np.asarray(-np.einsum("lm,lm->m", run.slope_of_p, later))
