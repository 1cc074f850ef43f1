"""The pairwise definition in tiles of pairs: ``O(N²)`` time, bounded memory, any surrogate."""

from collections.abc import Callable

import numpy as np

from mauc._kernels.tiles import Problem
from mauc._typing import Floats

__all__ = ["blocked_risk"]

Function = Callable[[Floats], Floats]


@np.errstate(over="ignore", invalid="ignore")
def blocked_risk(
    problem: Problem, loss: Function, derivative: Function, *, gradient: bool, block: int = 512
) -> tuple[float, Floats | None]:
    """Compute value, and gradient if wanted, column by column and tile by tile.

    A tile has ``block`` positives and as many negatives: 2 MiB per temporary array.
    """
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


def _chunks(index: np.ndarray, block: int) -> list[np.ndarray]:
    return [index[k : k + block] for k in range(0, len(index), block)]
