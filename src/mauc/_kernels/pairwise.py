"""The definition, pair by pair: slow and short. Every other kernel is tested against it."""

from collections.abc import Callable

import numpy as np

from mauc._kernels.tiles import Problem
from mauc._typing import Floats

__all__ = ["pairwise_auc", "pairwise_risk"]

Function = Callable[[Floats], Floats]


def pairwise_auc(problem: Problem) -> Floats:
    """Compute ``AUC_{i|j} = Σ_{m∈N_i, n∈N_j} a_m a_n ([F_mi > F_ni] + ½ [F_mi = F_ni])``, a ``(C, C)`` matrix."""
    classes, n_classes = problem.classes, problem.classes.n_classes
    auc = np.full((n_classes, n_classes), np.nan)
    for i in range(n_classes):
        for j in range(n_classes):
            positive, negative = classes.y == i, classes.y == j
            if i != j and positive.any() and negative.any():
                p, q = problem.scores[positive, i], problem.scores[negative, i]
                credit = 0.5 * (p[:, None] > q) + 0.5 * (p[:, None] >= q)
                auc[i, j] = classes.unit[positive] @ credit @ classes.unit[negative]
    return auc


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
