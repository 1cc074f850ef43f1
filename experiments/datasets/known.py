"""Classes whose densities are known, so that posteriors and the best possible scores are known too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special
from sklearn.utils import check_array

from mauc._typing import Floats, Ints
from mauc._validation import invalid
from mauc.activations import activate
from mauc.metrics.inference import mauc_interval

__all__ = ["KnownClasses", "chunks", "generator"]

# The same seed must not give the same draws for two purposes: a "fresh" sample would be the training set.
MODEL, DATA, FRESH, CEILING = range(4)
# Largest number of scores that bayes_mauc draws: 64 MB as float64.
ENOUGH_SCORES = 1 << 23


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Return the random numbers for one purpose."""
    return np.random.default_rng([seed, purpose])


class BayesMAUC(NamedTuple):
    """The highest multiclass AUC that any scores reach, estimated on fresh samples, and its standard error."""

    value: float
    stderr: float


def chunks(n_rows: int, n_columns: int, elements: int) -> Iterator[slice]:
    """Return rows in chunks of about so many numbers."""
    step = max(1, elements // max(1, n_columns))
    return (slice(begin, min(begin + step, n_rows)) for begin in range(0, n_rows, step))


@dataclass(frozen=True, eq=False)
class KnownClasses(ABC):
    """A mixture of classes with known densities.

    With the density :math:`g_i` of class i and its prior :math:`p_i`, the posterior is
    :math:`\\eta_i(x) \\propto p_i g_i(x)`.
    """

    priors: Floats
    """``(C,)``"""
    dtype: np.dtype[Any]
    """Type of the features drawn."""

    chunk_elements = 1 << 22
    """Numbers in a chunk of rows, 32 MB as float64; the same for all objects of a class."""

    @property
    def n_classes(self) -> int:
        return len(self.priors)

    @property
    @abstractmethod
    def n_features(self) -> int: ...

    @abstractmethod
    def log_densities(self, X: Any) -> Floats:
        """Return the ``(n, C)`` logarithm of each class's density, up to a term that a row's classes share."""

    @abstractmethod
    def draw(self, y: Ints, rng: np.random.Generator, dtype: np.dtype[Any]) -> Any:
        """Return ``(n, d)``, one sample of each class in ``y``."""

    def posterior(self, X: Any) -> Floats:
        """Return the ``(n, C)`` exact probability of each class given the features, under the priors."""
        return special.softmax(self._checked(X) + np.log(self.priors), axis=1)

    def bayes_scores(self, X: Any) -> Floats:
        """Return ``(n, C)`` scores of the highest multiclass AUC, finite, as logarithms.

        Theorem 2: with :math:`s_i = \\eta_i / p_i`, the best score of class i is
        :math:`s_i / \\sum_{j \\ne i} s_j`. It does not depend on the priors.
        """
        return activate(self._checked(X), "log_odds")

    def sample(self, size: int | ArrayLike, seed: int = 0) -> tuple[Any, Ints]:
        """Return fresh features and classes, never those of the data set itself.

        ``size`` is a number of samples, whose classes are drawn after the priors, or the ``(C,)`` number of samples of
        each class.
        """
        rng = generator(seed, FRESH)
        if np.ndim(size) == 0:
            y = rng.choice(self.n_classes, size, p=self.priors)
        else:
            y = rng.permutation(np.repeat(np.arange(self.n_classes), size))
        return self.draw(y, rng, self.dtype), y

    def bayes_mauc(self, n_per_class: int | None = None, seed: int = 0) -> BayesMAUC:
        """Return the ceiling: multiclass AUC (ovo) of the Bayes scores, by simulation, with its standard error.

        Every pair of classes counts the same whatever their sizes, so equal numbers of each class are drawn:
        ``n_per_class``, or as many as give some millions of scores (at least 2, at most 5000).
        """
        if n_per_class is None:
            n_per_class = min(5000, max(2, ENOUGH_SCORES // self.n_classes**2))
        rng = generator(seed, CEILING)
        y = np.repeat(np.arange(self.n_classes), n_per_class)
        scores = np.empty((len(y), self.n_classes))
        for rows in chunks(len(y), self.n_features, self.chunk_elements):
            scores[rows] = self.bayes_scores(self.draw(y[rows], rng, np.dtype(np.float64)))
        interval = mauc_interval(y, scores)
        return BayesMAUC(interval.score, interval.stderr)

    def _checked(self, X: Any) -> Floats:
        X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32), input_name="X")
        if X.shape[1] != self.n_features:
            requirement = f"must have the {self.n_features} features of the data set"
            raise invalid("X", requirement, f"{X.shape[1]}", "pass rows of X, or of sample()")
        logs = np.empty((X.shape[0], self.n_classes))
        # Sparse rows are short; dense ones are widened to float64 chunk by chunk.
        for rows in chunks(X.shape[0], 128 if sparse.issparse(X) else X.shape[1], self.chunk_elements):
            logs[rows] = self.log_densities(X[rows])
        return logs
