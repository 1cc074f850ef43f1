"""Piecewise polynomial surrogates: ``O(N·C)`` after sorting the positives of each class.

For one negative ``q`` the positives whose difference ``p − q`` falls into one piece of ℓ are a contiguous run of the
sorted positives, and sums over the positives, made beforehand, give the piece's part. Exact pieces: :mod:`.ends`.

Approximated pieces are ``ℓ(p − q) = Σ_kl A_kl φ_k(p) φ_l(q)``: differences of prefix sums of ``Σ_k A_kl φ_k(p)`` over
the run are the coefficients of a polynomial in ``q``, and the same holds for its derivative. The gradients of the
positives come the other way round: each negative adds its ``φ_l(q)`` to a run of positives, which a difference array
collects. These differences cancel, to the rounding that the choice of the polynomial allowed for.
"""

from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import DTypeLike, NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.crowd import Apart, Crowd, Interval
from mauc.kernels.crowd_pieces import MOST_APART, Stand, Stands, find_crowd, sides_of
from mauc.kernels.ends import ExactRun, Run, exact_run, running_sum
from mauc.kernels.search import SortedColumns, sort_columns, sort_few
from mauc.kernels.threads import one_by_one
from mauc.kernels.tiles import Negatives, Problem, Scattered, chebyshev_terms, column_centre, tiles

__all__ = ["Piece", "RankedSums", "ranked_risk"]


class Piece(NamedTuple):
    """ℓ on ``low <= p − q < high``.

    Exact where ``half_width`` is ``None``: ``Σ_k matrix[k, 0] s^k`` with ``s`` the distance of ``p − q`` from ``high``,
    from ``low`` where ``high`` is infinite. Else ``Σ_kl matrix[k, l] T_k(x_p) T_l(x_q)`` with Chebyshev polynomials of
    ``x = (score − centre) / half_width``.
    """

    low: float
    high: float
    matrix: Floats
    half_width: float | None


FEW_POSITIVES = 1 << 13
"""Up to which they are sorted without bins, to see whether there is a crowd."""
FEW_SEARCHED = 1 << 12
"""Scores up to which halves find them sooner than bins are made."""


def ranked_risk(
    problem: Problem, pieces: list[Piece], *, gradient: bool, dtype: DTypeLike = np.float64
) -> tuple[float, NDArray[Any] | None]:
    """Value and gradient, of that ``dtype``, of the risk of a piecewise polynomial that is 0 outside ``pieces``."""
    classes, order = problem.classes, problem.classes.order
    own, approximated = problem.own[order], _are_approximated(pieces)
    found = None if approximated else find_crowd(problem, own, classes.offsets, _breaks(pieces))
    few = found is not None and len(order) <= FEW_POSITIVES
    table = (sort_few if few else sort_columns)(own, classes.offsets, classes.unit[order])
    sums = RankedSums(table, pieces, column_centre(problem) if approximated else None)
    slope = np.empty(problem.scores.shape, dtype) if gradient else None
    crowd = None if found is None else sums.crowd_at(*found)

    parts = one_by_one(problem.scores.shape, lambda first, last: sums.visit(problem, slope, crowd, first, last))
    value, landed = next(parts)
    with np.errstate(over="ignore", invalid="ignore"):
        for more, landed_there in parts:
            value += more
            for total, there in zip(landed, landed_there, strict=True):
                total += there
    if slope is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            of_own = classes.unit[order] * sums.collect(landed)[table.slot]
        slope[order, classes.y[order]] = np.where(np.isnan(of_own), 0.0, of_own)
    return value, slope


class RankedSums:
    """The sorted positives with their sums for each piece: what the negatives of any part of a sample are held against.

    ``centre`` is a ``(C,)`` middle of each column's range, for approximated pieces.
    """

    def __init__(self, table: SortedColumns, pieces: list[Piece], centre: Floats | None) -> None:
        self.table, self.pieces = table, pieces
        self.breaks = _breaks(pieces)
        # Distances and their powers may be beyond the floats: then so is the risk.
        with np.errstate(over="ignore", invalid="ignore"):
            self.runs = [_run(table, piece, centre) for piece in pieces]

    def crowd(self, problem: Problem) -> Crowd[Stands] | None:
        """Where most scores of some rows stand; None where they stand apart, or are too few to tell."""
        if _are_approximated(self.pieces):
            return None
        found = find_crowd(problem, self.table.values, self.table.start, self.breaks)
        return None if found is None else self.crowd_at(*found)

    @np.errstate(over="ignore", invalid="ignore")
    def crowd_at(self, typical: Scattered, interval: Interval) -> Crowd[Stands] | None:
        """The scores of an interval, which stand where the ``typical`` ones do; None where their sums are beyond the
        floats.
        """
        position = {b: _first_from(self.table, typical, b) for b in self.breaks}
        stands = []
        for k, (begin, end) in enumerate(self._ends(position, self.table.start[1:] - 1)):
            stands += [Stand(k, *part) for part in cast(ExactRun, self.runs[k]).parts(begin, end)]
        sides = sides_of(interval, stands)
        return None if sides is None else Crowd(interval, sides, MOST_APART)

    def _ends(self, position: dict[float, Ints], last: Ints) -> list[tuple[Ints | None, Ints]]:
        """Where the run of each piece begins and ends."""
        return [(position.get(piece.low), position.get(piece.high, last)) for piece in self.pieces]

    @np.errstate(over="ignore", invalid="ignore")
    def visit(
        self,
        problem: Problem,
        slope: NDArray[Any] | None,
        crowd: Crowd[Stands] | None,
        first: int = 0,
        last: int | None = None,
    ) -> tuple[float, list[Floats]]:
        """The value of some rows, and what they hand to the positives; their own slopes go into ``slope``."""
        last = len(problem.scores) if last is None else last
        landed = [run.landing() for run in self.runs]
        if crowd is None:
            return self._search_tiles(problem, first, last, landed, slope), landed
        value, sums, apart = 0.0, crowd.sums(), Apart()
        for rows in crowd.blocks(problem, first, last):
            exceptions = crowd.visit(problem, rows, sums, slope)
            if exceptions is None:
                value += self._search_tiles(problem, rows.start, rows.stop, landed, slope)
            elif apart.add(exceptions):
                value += self._search_apart(apart.take(), landed, slope)
        if apart:
            value += self._search_apart(apart.take(), landed, slope)
        value += sum(side.settle(moments, landed) for side, moments in zip(crowd.sides, sums, strict=True))
        return value, landed

    @cached_property
    def _binned(self) -> SortedColumns:
        return self.table.binned()

    def _search_tiles(
        self, problem: Problem, first: int, last: int, landed: list[Floats], slope: NDArray[Any] | None
    ) -> float:
        found = (self._search(self._binned, tile, landed, slope) for tile in tiles(problem, first, last))
        return sum(found, 0.0)

    def _search_apart(self, scores: Scattered, landed: list[Floats], slope: NDArray[Any] | None) -> float:
        return self._search(self.table if len(scores.x) <= FEW_SEARCHED else self._binned, scores, landed, slope)

    def _search(
        self, table: SortedColumns, negatives: Negatives, landed: list[Floats], slope: NDArray[Any] | None
    ) -> float:
        position = {b: _first_from(table, negatives, b) for b in self.breaks}
        value, steepness = 0.0, np.zeros(1)
        for k, (begin, end) in enumerate(self._ends(position, negatives.along(self.table.start[1:] - 1))):
            of_run, steeper = self.runs[k].visit(negatives, begin, end, None if slope is None else landed[k])
            total = float(np.vdot(negatives.weight, of_run))
            if not np.isfinite(total):
                of_run, steeper = _defined(of_run, negatives.weight), _defined(steeper, negatives.weight)
                total = float(np.vdot(negatives.weight, of_run))
            value += total
            steepness = steepness + steeper if k else steeper
        if slope is not None:
            negatives.store(steepness, slope)
        return value

    def collect(self, landed: list[Floats]) -> Floats:
        """``(M + C,)`` slope in the value at each position, per unit of its weight, from what all parts handed over."""
        return np.asarray(sum(run.collect(total) for run, total in zip(self.runs, landed, strict=True)))


def _breaks(pieces: list[Piece]) -> list[float]:
    return sorted({b for piece in pieces for b in (piece.low, piece.high) if np.isfinite(b)})


def _are_approximated(pieces: list[Piece]) -> bool:
    return any(piece.half_width is not None for piece in pieces)


def _defined(x: Floats, weight: Floats) -> Floats:
    """0 where no weight, or no positive, meets a number beyond the floats."""
    return np.where((weight == 0.0) | np.isnan(x), 0.0, x)


# Scores so many times the break point may swallow digits of it when it is added to them.
LARGE = 64.0


def _first_from(table: SortedColumns, negatives: Negatives, b: float) -> Ints:
    """Position of the first positive with ``p − q >= b`` for each negative ``q``."""
    x = negatives.x
    position = negatives.locate(table, x + b)
    if max(x.max(initial=-np.inf), -x.min(initial=np.inf)) > LARGE * abs(b):
        # q + b is rounded to a neighbour, p − q is not: the search may be off by one value.
        start = negatives.along(table.start[:-1])
        before = table.values.take(np.maximum(position - 1, 0))
        position -= (position > start) & (before - x >= b)
        position += table.values.take(position) - x < b
    return position


def _run(table: SortedColumns, piece: Piece, centre: Floats | None) -> Run:
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
        return chebyshev_terms(centred / self.half_width, size - 1)

    def landing(self) -> Floats:
        return np.zeros_like(self.slope_of_p)

    def visit(
        self, negatives: Negatives, begin: Ints | None, end: Ints, landed: Floats | None
    ) -> tuple[Floats, Floats]:
        terms = self._terms(negatives.x - negatives.along(self.centre), len(self.of_q))
        value = _polynomial(self.of_q, begin, end, terms)
        if landed is None:
            return value, np.zeros(1)
        # Each negative's ω φ_l(q) is added at the end of its run and taken away at its start.
        for row, term in zip(landed, terms, strict=False):
            weighted = negatives.weight * term
            if end.shape == weighted.shape:
                np.add.at(row, end.ravel(), weighted.ravel())
            else:
                row[self.last] += weighted.sum(axis=end.ndim - 1)  # one end per column, in a shape that broadcasts
            if begin is not None:
                np.subtract.at(row, begin.ravel(), weighted.ravel())
        return value, _polynomial(self.slope_of_q, begin, end, terms)

    def collect(self, landed: Floats) -> Floats:
        """``∂ℓ/∂p = −∂ℓ/∂q``, over the negatives whose run ends above the value and starts at or below it: what has
        landed at later positions of the column.
        """
        through = running_sum(landed[:, ::-1], len(self.slope_of_p[0]) - self.start[::-1])[:, ::-1]
        later = np.zeros_like(landed)
        later[:, :-1] = through[:, 1:]
        later[:, self.last] = 0.0
        return np.asarray(-np.einsum("lm,lm->m", self.slope_of_p, later))


def _polynomial(prefix: Floats, begin: Ints | None, end: Ints, terms: list[Floats]) -> Floats:
    """``Σ_l φ_l(q) · (sum of the l-th coefficient over q's run)`` for a tile; no ``begin``: from the column's start."""
    total = np.zeros(1)
    for power, sums in enumerate(prefix):
        inner = sums.take(end)
        if begin is not None:
            inner = inner - sums.take(begin)
        total = total + inner * terms[power] if power else inner
    return np.broadcast_to(total, terms[0].shape)
