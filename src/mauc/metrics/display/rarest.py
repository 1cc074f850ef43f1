"""Which pairs of classes are the rarest, and how sure their AUC is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from mauc._typing import Floats
from mauc._validation import ScoredClasses, invalid
from mauc.metrics.inference import mauc_interval
from mauc.metrics.uncertainty import Interval

__all__ = ["DIRECTIONS", "check_class_counts", "pair_intervals", "rarest_pairs"]

DIRECTIONS = ("both", "each")


def check_class_counts(class_counts: ArrayLike, n_classes: int) -> Floats:
    """``(C,)`` sizes of the classes of the whole set."""
    counts = np.asarray(class_counts)
    numbers = counts.dtype.kind in "iuf" and counts.shape == (n_classes,)
    if not numbers or not np.isfinite(counts).all() or counts.min() < 0:
        requirement = f"must hold {n_classes} numbers of at least 0, one per column of the scores"
        raise invalid("class_counts", requirement, repr(class_counts), "pass the size of each class in the whole set")
    return counts.astype(np.float64)


def rarest_pairs(sizes: NDArray[Any], present: NDArray[np.bool_], k: int, direction: str) -> NDArray[np.intp]:
    """Classes i and j of the ``k`` pairs with the smallest ``n_i n_j``, of classes that have samples.

    ``(k, 2)`` with i < j, or ``(2k, 2)`` with the pair (j, i) after (i, j) where each direction is a row of its own.
    """
    there = np.flatnonzero(present)
    i, j = (there[side] for side in np.triu_indices(len(there), 1))
    rarest = np.argsort(sizes[i].astype(np.float64) * sizes[j], kind="stable")[:k]
    pairs = np.column_stack([i[rarest], j[rarest]])
    return pairs if direction == "both" else np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)


def pair_intervals(scored: ScoredClasses, pairs: NDArray[np.intp], direction: str, level: float) -> list[Interval]:
    """Interval of the AUC of each pair, from the samples of its two classes."""
    weights = [[0.0, 0.5], [0.5, 0.0]] if direction == "both" else [[0.0, 1.0], [0.0, 0.0]]
    found = []
    for pair in pairs:
        rows = np.isin(scored.codes, pair)
        some = None if scored.sample_weight is None else scored.sample_weight[rows]
        is_second = (scored.codes[rows] == pair[1]).astype(np.int64)
        with warnings.catch_warnings():
            # Of a single sample: the picture shows the sizes, and an interval as wide as that deserves.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            found.append(
                mauc_interval(is_second, scored.scores[rows][:, pair], level=level, pairs=weights, sample_weight=some)
            )
    return found
