"""The pairwise definition in tiles of pairs: ``O(N²)`` time, bounded memory, any surrogate."""

from collections.abc import Callable

import numpy as np

from mauc._kernels.tiles import Problem
from mauc._typing import Floats

__all__ = ["blocked_risk"]

Function = Callable[[Floats], Floats]


def blocked_risk(
    problem: Problem, loss: Function, derivative: Function, *, gradient: bool, few: int = 256, block: int = 512
) -> tuple[float, Floats | None]:
    """Compute value, and gradient if wanted, column by column and tile by tile; up to ``few`` samples at once.

    A tile has ``block`` positives and as many negatives: 2 MiB per temporary array.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if len(problem.classes.y) <= few:
            return _all_at_once(problem, loss, derivative, gradient=gradient)
        return _by_tiles(problem, loss, derivative, gradient=gradient, block=block)


def _by_tiles(
    problem: Problem, loss: Function, derivative: Function, *, gradient: bool, block: int
) -> tuple[float, Floats | None]:
    classes = problem.classes
    value = 0.0
    slope = np.zeros(problem.scores.shape) if gradient else None
    for i in range(classes.n_classes):
        group = classes.order[classes.offsets[i] : classes.offsets[i + 1]]
        group = group[classes.unit[group] > 0]
        negative_weight = classes.unit * classes.v[i, classes.y]
        others = np.flatnonzero(negative_weight)
        column = problem.scores[:, i].astype(np.float64)
        for some in _chunks(group, block):
            for rest in _chunks(others, block):
                t = column[some][:, None] - column[rest]
                a, w = classes.unit[some], negative_weight[rest]
                value += float(a @ loss(t) @ w)
                if slope is not None:
                    d = derivative(t)
                    slope[some, i] += a * (d @ w)
                    slope[rest, i] -= w * (a @ d)
    return value, slope


def _all_at_once(
    problem: Problem, loss: Function, derivative: Function, *, gradient: bool
) -> tuple[float, Floats | None]:
    """Use one ``(N, N)`` array of differences: with few samples the overhead decides."""
    scores, y, grid = problem.scores.astype(np.float64, copy=False), problem.classes.y, problem.classes.grid
    t = problem.own[:, None] - scores[:, y].T
    t[grid == 0.0] = 0.0  # pairs without weight may overflow
    value = float(np.vdot(grid, loss(t)))
    if not gradient:
        return value, None
    d = grid * derivative(t)
    if np.isfinite(d).all():
        slope = -(d.T @ problem.classes.membership)
    else:  # inf · 0 of the matrix product would be NaN
        slope = np.zeros(scores.shape)
        for i in np.unique(y):
            slope[:, i] = -d[y == i].sum(axis=0)
    slope[np.arange(len(y)), y] += d.sum(axis=1)
    return value, slope


def _chunks(index: np.ndarray, block: int) -> list[np.ndarray]:
    return [index[k : k + block] for k in range(0, len(index), block)]
