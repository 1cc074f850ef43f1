"""The definition, pair by pair: slow and short. Every other kernel is tested against it."""

from collections.abc import Callable

import numpy as np

from mauc._kernels.tiles import Problem
from mauc._typing import Floats

__all__ = ["pairwise_risk"]

Function = Callable[[Floats], Floats]


@np.errstate(over="ignore", invalid="ignore")
def pairwise_risk(problem: Problem, loss: Function, derivative: Function) -> tuple[float, Floats]:
    """Compute ``R = Σ_i Σ_{j≠i} v_ij Σ_{m∈N_i, n∈N_j} a_m a_n ℓ(F_mi − F_ni)`` and ``∂R/∂F``.

    ``O(N²)`` time, and memory for one class pair at a time.
    """
    value, gradient = 0.0, np.zeros(problem.scores.shape)
    classes, scores = problem.classes, problem.scores.astype(np.float64)
    for i in range(classes.n_classes):
        for j in range(classes.n_classes):
            positive, negative = (np.flatnonzero((classes.y == k) & (classes.unit > 0)) for k in (i, j))
            if i == j or not len(positive) or not len(negative):
                continue
            t = scores[positive, i][:, None] - scores[negative, i]
            weight = classes.v[i, j] * classes.unit[positive][:, None] * classes.unit[negative]
            t = np.where(weight > 0, t, 0.0)  # pairs without weight must not overflow
            slope = weight * derivative(t)
            value += float((weight * loss(t)).sum())
            gradient[positive, i] += slope.sum(axis=1)
            gradient[negative, i] -= slope.sum(axis=0)
    return value, gradient
