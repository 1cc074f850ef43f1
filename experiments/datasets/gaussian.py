"""Gaussian classes that differ in their means: the shape of deep features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import helmert

from experiments.datasets.known import KnownClasses, chunks
from mauc._typing import Floats, Ints
from mauc._validation import is_sparse

__all__ = ["GaussianClasses", "separated_means"]


@dataclass(frozen=True, eq=False)
class GaussianClasses(KnownClasses):
    """Features of class i are normal with the mean :math:`\\mu_i` and the identity as covariance."""

    means: Floats
    """``(C, d)``"""

    @property
    def n_features(self) -> int:
        return self.means.shape[1]

    def log_densities(self, X: Any) -> Floats:
        """Return ``x·μ_i − |μ_i|²/2``; the rest of the exponent does not depend on the class."""
        dense = X.toarray() if is_sparse(X) else X
        return dense.astype(np.float64, copy=False) @ self.means.T - 0.5 * np.sum(self.means**2, axis=1)

    def draw(self, y: Ints, rng: np.random.Generator, dtype: np.dtype[Any]) -> Any:
        X = np.empty((len(y), self.n_features), dtype=dtype)
        means = self.means.astype(dtype, copy=False)
        for rows in chunks(*X.shape, self.chunk_elements):
            rng.standard_normal(out=X[rows], dtype=dtype)
            X[rows] += means[y[rows]]
        return X


def separated_means(n_classes: int, n_features: int, separation: float, rng: np.random.Generator) -> Floats:
    """Return ``(C, d)`` means around 0 whose distances are ``separation``.

    Exactly so for every pair where there is room, ``C ≤ d + 1``: the corners of a regular simplex, turned at random.
    Otherwise at random directions, and ``separation`` is the root of the mean squared distance.
    """
    if n_classes <= n_features + 1:
        # The unit vectors are √2 apart; their differences from the centre span one dimension less. Helmert's basis is
        # a formula: an SVD of equal singular values comes out turned by another build of LAPACK.
        corners = helmert(n_classes).T
        turned = np.linalg.qr(rng.standard_normal((n_features, n_classes - 1)))[0]
        return separation / np.sqrt(2.0) * corners @ turned.T
    means = rng.standard_normal((n_classes, n_features))
    means -= means.mean(axis=0)
    mean_square = 2.0 * np.sum(means**2) / (n_classes - 1)  # over the pairs of different classes, as Σ μ = 0
    return means * (separation / np.sqrt(mean_square))
