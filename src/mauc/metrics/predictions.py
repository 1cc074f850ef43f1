"""Predicted classes as shares of rows: a row whose highest score is shared by k classes counts 1/k for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mauc._typing import Floats, Ints

__all__ = ["highest_score", "in_own_class", "predicted_as"]


def highest_score(columns: Any) -> sparse.csr_array:
    """Return the ``(N, C)`` shares of rows in the class of their highest score, from the scores of each class.

    Ties are split in equal parts: the first of several highest scores would favour the first class, so the accuracy of
    tied scores would depend on the order of the classes.

    >>> highest_score([[0.2, 0.5, 0.3], [0.8, 0.5, 0.3], [0.0, 0.0, 0.3]]).toarray().round(2).tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.33, 0.33, 0.33]]
    """
    scores = np.column_stack(columns)
    highest = scores == scores.max(axis=1, keepdims=True)
    times = highest.sum(axis=1)
    rows, classes = np.nonzero(highest)
    return sparse.csr_array((1.0 / times[rows], classes, np.r_[0, np.cumsum(times)]), shape=scores.shape)


def predicted_as(predicted: Ints, n_classes: int) -> sparse.csr_array:
    """Return the ``(N, C)`` shares of rows with one predicted class each, -1 for a class without a column."""
    known = predicted >= 0
    shape = (len(predicted), n_classes)
    return sparse.csr_array((np.ones(known.sum()), predicted[known], np.r_[0, np.cumsum(known)]), shape=shape)


def in_own_class(shares: sparse.csr_array, codes: NDArray[np.integer]) -> Floats:
    """Return the ``(N,)`` share of each row that is predicted as its class; their mean is the accuracy."""
    rows = np.repeat(np.arange(len(codes)), np.diff(shares.indptr))
    right = shares.indices == codes[rows]
    return np.bincount(rows[right], shares.data[right], len(codes)).astype(np.float64)
