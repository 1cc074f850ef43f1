"""The definitions, pair by pair, in extended precision, and samples that are hard on them: for tests and campaigns."""

from typing import Any

import numpy as np

from mauc.surrogates import Surrogate


def extended_risk(surrogate: Surrogate, y: Any, scores: Any) -> tuple[np.longdouble, np.ndarray]:
    """``R = mean_{i ≠ j} mean_{m ∈ N_i, n ∈ N_j} ℓ(F_mi − F_ni)`` over the classes present, and ``∂R/∂F``."""
    y, wide = np.asarray(y), np.asarray(scores).astype(np.longdouble)
    present = np.unique(y)
    value, gradient = np.longdouble(0.0), np.zeros(wide.shape, dtype=np.longdouble)
    for i in present:
        for j in present[present != i]:
            positive, negative = np.flatnonzero(y == i), np.flatnonzero(y == j)
            weight = np.longdouble(1.0) / (len(present) * (len(present) - 1) * len(positive) * len(negative))
            t = wide[positive, i][:, None] - wide[negative, i]
            slope = weight * surrogate.derivative(t)
            value += weight * surrogate.loss(t).sum()
            gradient[positive, i] += slope.sum(axis=1)
            gradient[negative, i] -= slope.sum(axis=0)
    return value, gradient


def draw_outlier(rng: np.random.Generator, largest: float = 12.0) -> tuple[np.ndarray, np.ndarray]:
    """Two or three classes of one to three samples, and one score of 10 to ``10**largest``, of either sign."""
    sizes = rng.integers(1, 4, rng.integers(2, 4))
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    scores = rng.normal(size=(len(y), len(sizes)))
    scores[tuple(rng.integers(0, scores.shape))] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(1.0, largest)
    return y, scores


def errors(got: tuple[float, np.ndarray], expected: tuple[np.longdouble, np.ndarray]) -> tuple[float, float]:
    """Of the value relative to it, of the gradient relative to its largest entry; 0 where both are 0."""
    value, gradient = expected
    off, largest = np.abs(got[1] - gradient).max(), np.abs(gradient).max()
    return (
        float(abs(got[0] - value) / (abs(value) or 1.0)),
        float(off / (largest or 1.0)),
    )
