"""Problems most of whose scores stand at one place among the positives of their column."""

import numpy as np

from mauc.kernels.tiles import Classes
from mauc.partition import ClassPartition


def classes_of(y, n_classes, weight=None, factored=False):
    """One against one: with the pair weights as a matrix, or as products."""
    partition = ClassPartition(y, n_classes, weight)
    v = partition.pair_weights("ovo")
    whole = partition.classes(v)
    if not factored:
        return whole
    return Classes(y, whole.unit, n_classes, None, (whole.unit, partition.present * v.max()))


def trained(n_samples, n_classes, dtype=np.float64):
    """Each sample's own score anywhere, the others near 0 but for one in fifty."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    scores = rng.random((n_samples, n_classes))
    scores *= np.where(rng.random(scores.shape) < 0.02, 1.0, 0.003)
    scores[np.arange(n_samples), y] = rng.random(n_samples)
    return y, scores.astype(dtype)
