"""Classes of sparse counts: the shape of User-Imb, where a row counts what a user did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from experiments.datasets.known import KnownClasses
from mauc._typing import Floats, Ints
from mauc._validation import invalid

__all__ = ["PoissonClasses", "separated_rates"]

MEAN_COUNT = 75.0
"""Expected sum of a row; fewer where that would be more than a quarter of the features."""
CHUNK_ROWS = 1 << 13


@dataclass(frozen=True, eq=False)
class PoissonClasses(KnownClasses):
    """Features of class i are independent Poisson counts with the rates :math:`\\lambda_i`."""

    rates: Floats
    """``(C, d)``, above 0."""

    @property
    def n_features(self) -> int:
        return self.rates.shape[1]

    def log_densities(self, X: Any) -> Floats:
        """Return ``Σ_f x_f log λ_if − Σ_f λ_if``; the factorials do not depend on the class."""
        return np.asarray(X @ np.log(self.rates).T, dtype=np.float64) - self.rates.sum(axis=1)

    def draw(self, y: Ints, rng: np.random.Generator, dtype: np.dtype[Any]) -> Any:
        """Draw a CSR matrix. The sum of a row is Poisson, and the feature of each count is an independent choice."""
        parts = [self._draw_rows(y[begin : begin + CHUNK_ROWS], rng, dtype) for begin in range(0, len(y), CHUNK_ROWS)]
        return sparse.vstack(parts, format="csr") if parts else sparse.csr_matrix((0, self.n_features), dtype=dtype)

    def _draw_rows(self, y: Ints, rng: np.random.Generator, dtype: np.dtype[Any]) -> Any:
        totals = rng.poisson(self.rates.sum(axis=1)[y])
        row = np.repeat(np.arange(len(y)), totals)
        of_class = y[row]
        by_class = np.argsort(of_class, kind="stable")
        chance = rng.random(len(row))
        feature = np.empty(len(row), dtype=np.int64)
        ends = np.cumsum(np.bincount(of_class, minlength=self.n_classes))
        for code in np.unique(of_class):
            here = by_class[ends[code - 1] if code else 0 : ends[code]]
            reached = np.cumsum(self.rates[code])
            feature[here] = np.searchsorted(reached, chance[here] * reached[-1], side="right")
        np.minimum(feature, self.n_features - 1, out=feature)  # a chance just below 1 may round up to the end
        counts = np.ones(len(row), dtype=dtype)
        return sparse.coo_matrix((counts, (row, feature)), shape=(len(y), self.n_features)).tocsr()


def separated_rates(n_classes: int, n_features: int, separation: float, rng: np.random.Generator) -> Floats:
    """Return ``(C, d)`` rates: popularities after Zipf, multiplied by log-normal factors of each class.

    Square roots of Poisson counts have the variance 1/4, so the distance of two classes in units of the noise is
    ``2 |√λ_i − √λ_j|``. With factors of log-variance τ² and mean 1 its expected square is ``8 B (1 − exp(−τ²/4))`` for
    rows that sum to B; τ is chosen to make that ``separation²``.
    """
    total = min(MEAN_COUNT, n_features / 4)
    share = separation**2 / (8.0 * total)
    if share >= 1.0:
        requirement = f"must be below {np.sqrt(8.0 * total):.3g} for sparse counts of {n_features} features"
        raise invalid("separation", requirement, f"{separation:g}", "pass less, or more features")
    popularity = 1.0 / (np.arange(n_features) + 0.005 * n_features + 1.0)
    base = rng.permutation(popularity) * (total / popularity.sum())
    spread = np.sqrt(-4.0 * np.log1p(-share))
    return base * np.exp(spread * rng.standard_normal((n_classes, n_features)) - spread**2 / 2)
