"""The AUC by its definition, the risk in extended precision, and samples with outliers: for tests and campaigns."""

from typing import Any

import numpy as np
from fuzz import definitions

from mauc._kernels.tiles import Problem
from mauc.surrogates import Surrogate


def pairwise_auc(problem: Problem) -> np.ndarray:
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


def extended_risk(surrogate: Surrogate, y: Any, scores: Any) -> tuple[np.longdouble, np.ndarray]:
    """Return the ovo risk over the classes present and its gradient, pair by pair in extended precision."""
    y, scores = np.asarray(y), np.asarray(scores)
    return definitions.risk(y, scores, None, "ovo", surrogate.loss, surrogate.derivative)[:2]


def draw_outlier(rng: np.random.Generator, largest: float = 12.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw two or three classes of one to three samples, with one score of 10 to ``10**largest``, of either sign."""
    sizes = rng.integers(1, 4, rng.integers(2, 4))
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    scores = rng.normal(size=(len(y), len(sizes)))
    scores[tuple(rng.integers(0, scores.shape))] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(1.0, largest)
    return y, scores


def errors(got: tuple[float, np.ndarray], expected: tuple[np.longdouble, np.ndarray]) -> tuple[float, float]:
    """Return the error of the value, relative to it, and that of the gradient, relative to its largest entry."""
    value, gradient = expected
    off, largest = np.abs(got[1] - gradient).max(), np.abs(gradient).max()
    return (
        float(abs(got[0] - value) / (abs(value) or 1.0)),
        float(off / (largest or 1.0)),
    )
