"""The class partition: the class and weight of each sample, and the weight of each pair of classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.tiles import Classes, Problem
from mauc._typing import Floats, Ints


@dataclass(frozen=True)
class ClassPartition:
    """Clean class codes with sample weights.

    ``U_i`` is the summed weight of class ``i`` (its size, when unweighted) and ``p_i = U_i / Σ U`` its prior.
    """

    codes: Ints
    """``(N,)`` class of each sample, ``0..n_classes-1``."""
    n_classes: int
    sample_weight: Floats | None = None
    """``(N,)`` or None for weights of 1."""

    @cached_property
    def counts(self) -> Ints:
        """``(C,)`` number of samples of each class."""
        return np.bincount(self.codes, minlength=self.n_classes)

    @cached_property
    def weights(self) -> Floats:
        """``(C,)`` summed weight ``U_i`` of each class."""
        if self.sample_weight is None:
            return self.counts.astype(np.float64)
        return np.bincount(self.codes, self.sample_weight, self.n_classes).astype(np.float64, copy=False)

    @property
    def sizes(self) -> Floats | Ints:
        """``(C,)`` size of each class to show: its number of samples, or their summed weight."""
        return self.counts if self.sample_weight is None else self.weights

    @cached_property
    def shares(self) -> Floats:
        """``(N,)`` share of each sample in the weight of its class."""
        if self.sample_weight is None:
            return 1.0 / self.weights[self.codes]
        unit = _scaled(self.sample_weight, self.weights[self.codes])
        return np.asarray(unit / np.bincount(self.codes, unit, self.n_classes)[self.codes])

    @property
    def priors(self) -> Floats:
        """``(C,)`` share ``p_i`` of each class."""
        return self.weights / self.weights.sum()

    @property
    def present(self) -> NDArray[np.bool_]:
        """``(C,)`` True for classes that have a sample."""
        return self.counts > 0

    @classmethod
    def of_sizes(cls, sizes: Floats | Ints) -> ClassPartition:
        """Return one row per class with the weight of the class: enough for pair weights."""
        there = np.flatnonzero(sizes)
        return cls(there, len(sizes), sizes[there].astype(np.float64))

    def pair_weights(self, pairs: str | Floats) -> Floats:
        """Return ``(C, C)`` weights ``v_ij`` of the ordered pairs of present classes; they sum to 1.

        - ``"ovo"``: ``1 / (C (C − 1))``
        - ``"ova"``: ``p_j / (C (1 − p_i))``
        - a matrix: itself, off the diagonal, normalised

        All are 0 where no pair is present.
        """
        here = self.present
        n_here = int(np.count_nonzero(here))
        if n_here < 2:
            return np.zeros((self.n_classes, self.n_classes))
        if not isinstance(pairs, str):
            v = np.array(pairs, dtype=np.float64)
        elif pairs == "ova":
            v = np.tile(self.weights, (self.n_classes, 1))
            np.fill_diagonal(v, 0.0)
            v = _scaled(v, v.max(axis=1, keepdims=True))
            v /= n_here * v.sum(axis=1, keepdims=True)  # 1 − p_i would cancel
        else:
            v = np.full((self.n_classes, self.n_classes), 1.0 / (n_here * (n_here - 1)))
        if n_here < self.n_classes:
            v[~here] = 0.0
            v[:, ~here] = 0.0
        np.fill_diagonal(v, 0.0)
        if isinstance(pairs, str) or not v.any():
            return v
        v = _scaled(v, v.max())
        return np.asarray(v / v.sum())

    def between(self, i: int, j: int) -> tuple[Ints, ClassPartition]:
        """Return the rows of two classes, and their partition, in which the classes have the codes 0 and 1."""
        rows = np.flatnonzero((self.codes == i) | (self.codes == j))
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return rows, ClassPartition((self.codes[rows] == j).astype(np.int64), 2, weight)

    def classes(self, v: Floats | None = None, *, normalised: bool = True) -> Classes:
        """Return the arrays that the kernels take, without the scores.

        Sample weights are divided by their class sums, or, if ``normalised`` is False, by powers of two, which keeps
        sums of equal weights exact.
        """
        if normalised:
            unit = self.shares
        elif self.sample_weight is None:
            unit = np.broadcast_to(1.0, self.codes.shape)
        else:
            unit = _scaled(self.sample_weight, self.weights[self.codes])
        return Classes(self.codes, unit, self.n_classes, v)

    def problem(self, scores: NDArray[np.floating], v: Floats | None = None, *, normalised: bool = True) -> Problem:
        """Return :meth:`classes` with scores."""
        return self.classes(v, normalised=normalised).with_scores(scores)


def _scaled(x: Floats, size: Floats) -> Floats:
    """Divide ``x`` by the power of two above ``size``: exact, and sums and products of the result do not overflow."""
    return np.asarray(np.ldexp(x, -np.frexp(size)[1]))
