"""Splits of any labelled data into training, validation and test parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from experiments.datasets.folder import Splits
from mauc._typing import Floats, Ints

__all__ = ["stratified_splits"]


def stratified_splits(
    y: ArrayLike,
    n_splits: int = 15,
    sizes: tuple[float, float, float] = (0.8, 0.1, 0.1),
    seed: int = 0,
    groups: ArrayLike | None = None,
) -> Splits:
    """Return random splits into training, validation and test parts that keep the shares of the classes, however rare.

    No sample is in two parts of a split, and each is in one. A class of three samples or more is in every part; one of
    two is in training and test; a single sample is in training. Apart from that, the parts of each class differ from
    their exact shares by at most one sample, and what rounding takes from a part in one class it gives back in
    others, so that the parts as a whole have their sizes as well.

    Parameters
    ----------
    y : (N,) array of classes
    n_splits : int, default=15
    sizes : three numbers above 0 that sum to 1, default=(0.8, 0.1, 0.1)
        Shares of training, validation and test.
    seed : int, default=0
        The same seed gives the same splits.
    groups : (N,) array, optional
        Rows of one group, all of one class, stay in one part: all that is said above then holds of groups.

    Returns
    -------
    list of (train, validation, test)
        Sorted row numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments import datasets
    >>> y = np.repeat(["a", "b", "c"], [30, 10, 3])
    >>> train, validation, test = datasets.stratified_splits(y, n_splits=1)[0]
    >>> [np.unique(y[part], return_counts=True)[1].tolist() for part in (train, validation, test)]
    [[24, 8, 1], [3, 1, 1], [3, 1, 1]]
    """
    labels = np.asarray(y)
    if groups is not None:
        _, first, of_row = np.unique(groups, return_index=True, return_inverse=True)
        by_group = stratified_splits(labels[first], n_splits, sizes, seed)
        return [tuple(np.flatnonzero(np.isin(of_row, part)) for part in split) for split in by_group]  # type: ignore[misc]
    rng = np.random.default_rng(seed)
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    parts = _part_sizes(counts, np.array(sizes))
    first = np.cumsum(counts) - counts
    # Of a class's samples in random order, the first are training, the next validation, the rest test.
    ends = np.cumsum(parts, axis=1)
    place = np.arange(len(codes)) - np.repeat(first, counts)
    part = (place[:, None] >= np.repeat(ends[:, :2], counts, axis=0)).sum(axis=1)
    splits = []
    for _ in range(n_splits):
        shuffled = rng.permutation(len(codes))
        by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
        train, validation, test = (np.sort(by_class[part == k]) for k in range(3))
        splits.append((train, validation, test))
    return splits


def _part_sizes(counts: Ints, shares: Floats) -> Ints:
    """Return the ``(C, 3)`` samples of each class in each part."""
    parts = np.empty((len(counts), 3), dtype=np.int64)
    owed = np.zeros(3)  # what rounding has taken from each part so far
    for code, count in enumerate(counts.tolist()):
        if count < 3:
            parts[code] = (1, 0, count - 1)
        else:
            exact = count * shares
            parts[code] = np.floor(exact + 1e-9)  # 0.7 · 10 is a little less than 7
            left = count - int(parts[code].sum())
            parts[code, np.argsort(parts[code] - exact - owed, kind="stable")[:left]] += 1
            for empty in np.flatnonzero(parts[code] == 0):
                parts[code, parts[code].argmax()] -= 1
                parts[code, empty] = 1
        owed += count * shares - parts[code]
    return parts
