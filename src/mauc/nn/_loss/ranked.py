"""Ranked and polynomial losses through the NumPy kernels of :mod:`mauc._kernels`, for scores on any device.

The scores go to the host and the slope comes back. Over several processes the same kernels are given the sums of all
ranks: Chebyshev moments of both sides for one polynomial; the positives, and what lands on them, for pieces.
"""

import math
import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mauc._kernels.blocked import blocked_risk
from mauc._kernels.moments import chebyshev_moments, polynomial_risk, polynomial_slope
from mauc._kernels.piecewise import KernelPiece, RankedSums, ranked_risk
from mauc._kernels.search import sort_columns
from mauc._kernels.tiles import Classes, Problem, tiles
from mauc._typing import Floats
from mauc.nn._loss.batch import Weights
from mauc.nn._loss.closed import Slope
from mauc.nn._loss.processes import Communicator
from mauc.plan import TOLERANCES, Plan, needs_range, plan, radius_for
from mauc.surrogates import Surrogate

__all__ = ["numpy_risk"]

Found = tuple[float, NDArray[np.floating] | None]


def numpy_risk(
    scores: Tensor, weights: Weights, surrogate: Surrogate, world: Communicator, *, bounded: bool, gradient: bool
) -> tuple[Tensor, Slope | None]:
    """The risk of any surrogate, and its slope if asked for, of the scores' dtype."""
    low, high = _range(scores, world)
    span = float((high - low).max())
    if span == -math.inf:  # no sample anywhere
        return scores.sum(), Slope(scores, None, None) if gradient else None
    if not bool(low.isfinite().all() and high.isfinite().all()):
        return scores.sum() * torch.nan, Slope(scores * torch.nan, None, None) if gradient else None
    radius = 1.0 if bounded else radius_for(span) if needs_range(surrogate) else math.inf
    tolerances = TOLERANCES["float64" if scores.dtype == torch.float64 else "float32"]
    found = plan(surrogate, radius, tolerances=tolerances, saturated=bounded)
    middle: Floats = np.full(len(low), 0.5) if bounded else (0.5 * low + 0.5 * high).cpu().numpy()
    problem, ranks = _problem(scores, weights), _Ranks(world, scores.device)
    with np.errstate(over="ignore", invalid="ignore"):
        if found is None:
            _warn(surrogate, radius)
            value, slope = _blocked(problem, surrogate, ranks, gradient=gradient)
        elif world.size == 1:
            value, slope = _alone(problem, found, gradient=gradient)
        elif found.scheme == "moments":
            value, slope = _moments(problem, found.pieces[0], middle, ranks, gradient=gradient)
        else:
            value, slope = _pieces(problem, list(found.pieces), middle, ranks, gradient=gradient)
    of_value = torch.tensor(value, dtype=torch.float64).to(weights.unit)
    if slope is None:
        return of_value, None
    return of_value, Slope(torch.from_numpy(slope).to(scores), None, None)


def _warn(surrogate: Surrogate, radius: float) -> None:
    what = f"no polynomial of the {surrogate.name} surrogate on differences up to {radius:g} is close enough"
    warnings.warn(f"{what}: taking all pairs in blocks, O(N²) time", stacklevel=8)


def _range(scores: Tensor, world: Communicator) -> tuple[Tensor, Tensor]:
    """``(C,)`` smallest and largest score of each column over all ranks, NaN where a score is none."""
    n_classes = scores.shape[1]
    ends = torch.full((2 * n_classes,), -torch.inf, dtype=scores.dtype, device=scores.device)
    if len(scores):
        ends = torch.cat([scores.amax(0), -scores.amin(0)])
    ends = world.largest(ends).double()
    return -ends[n_classes:], ends[:n_classes]


class _Ranks:
    """The ranks of a group, for arrays of the host."""

    def __init__(self, world: Communicator, device: torch.device) -> None:
        self.world, self.device = world, device

    def sums(self, *parts: Floats) -> list[Floats]:
        """Sums over ranks."""
        return [x.cpu().numpy() for x in self.world.sums(*(torch.from_numpy(part).to(self.device) for part in parts))]

    def gather(self, x: Floats) -> tuple[Floats, int]:
        """``(k, N)`` columns of all ranks side by side, and where those of this rank begin."""
        everyone, begin = self.world.gather(torch.from_numpy(x).to(self.device))
        return everyone.cpu().numpy(), begin


def _problem(scores: Tensor, weights: Weights) -> Problem:
    y, unit, row, column = (x.cpu().numpy() for x in (weights.y, weights.unit, weights.row, weights.column))
    if weights.matrix is None:
        classes = Classes(y, unit, scores.shape[1], None, (row, column))
    else:
        classes = Classes(y, unit, scores.shape[1], weights.matrix.T.cpu().numpy())
    return classes.with_scores(scores.cpu().numpy())


def _alone(problem: Problem, found: Plan, *, gradient: bool) -> Found:
    """In one process."""
    if found.scheme == "ranked":
        return ranked_risk(problem, list(found.pieces), gradient=gradient, dtype=problem.scores.dtype)
    (piece,) = found.pieces
    assert piece.half_width is not None
    return polynomial_risk(problem, piece.matrix, piece.half_width, gradient=gradient)


def _moments(problem: Problem, piece: KernelPiece, centre: Floats, ranks: _Ranks, *, gradient: bool) -> Found:
    """One polynomial, from the Chebyshev moments of all ranks."""
    assert piece.half_width is not None
    mine = chebyshev_moments(problem, centre, piece.half_width, len(piece.matrix) - 1)
    (sums,) = ranks.sums(mine)
    value = float(np.sum(sums[0] * (piece.matrix @ sums[1])))
    return value, polynomial_slope(problem, centre, piece.half_width, piece.matrix, sums) if gradient else None


def _pieces(problem: Problem, pieces: list[KernelPiece], centre: Floats, ranks: _Ranks, *, gradient: bool) -> Found:
    """Pieces: every rank searches its negatives among the positives of all, and what has landed on them is summed."""
    classes = problem.classes
    (own, unit, y), begin = ranks.gather(np.stack([problem.own, classes.unit, classes.y.astype(np.float64)]))
    order = np.argsort(y, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(y.astype(np.int64), minlength=classes.n_classes))])
    table = RankedSums(sort_columns(own[order], offsets, unit[order]), pieces, centre)
    slope = np.zeros(problem.scores.shape)
    value, landed = table.visit(tiles(problem), slope if gradient else None)
    total, *landed = ranks.sums(np.array(value), *landed)
    if not gradient:
        return float(total), None
    of_all = np.empty(len(y))
    of_all[order] = unit[order] * table.collect(landed)[table.table.slot]
    mine = of_all[begin : begin + len(classes.y)]
    slope[np.arange(len(mine)), classes.y] = np.where(np.isnan(mine), 0.0, mine)
    return float(total), slope


def _blocked(problem: Problem, surrogate: Surrogate, ranks: _Ranks, *, gradient: bool) -> Found:
    """All pairs, one by one; over processes each rank takes those of all."""
    classes, n = problem.classes, len(problem.scores)
    of_row, of_column = classes.factors or (classes.unit, np.ones(classes.n_classes))
    parts = [problem.scores.T, classes.unit[None], of_row[None], classes.y[None]]
    (*scores, unit, row, codes), begin = ranks.gather(np.concatenate(parts, dtype=np.float64))
    y, v = codes.astype(np.int64), classes.pair_weights
    if v is None:
        v = np.outer(of_column, np.bincount(y, row, classes.n_classes))
        np.fill_diagonal(v, 0.0)
    whole = Classes(y, unit, classes.n_classes, v).with_scores(np.stack(scores, axis=1))
    value, slope = blocked_risk(whole, surrogate.loss, surrogate.derivative, gradient=gradient)
    return value, None if slope is None else slope[begin : begin + n]
