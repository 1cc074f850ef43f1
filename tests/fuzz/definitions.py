"""The definitions, pair by pair, in extended precision: short, slow, and written without the library."""

from typing import Any

import numpy as np

Wide = np.longdouble


def unit_weights(y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the ``(N,)`` weight of each sample divided by that of its class."""
    wide = np.ones(len(y), dtype=Wide) if weight is None else weight.astype(Wide)
    total = np.zeros(int(y.max()) + 1, dtype=Wide)
    np.add.at(total, y, wide)
    return wide / total[y]


def pair_matrix(y: np.ndarray, n_classes: int, weight: np.ndarray | None, pairs: Any) -> np.ndarray:
    """Return ``(C, C)`` weights ``v_ij`` of the ordered pairs of present classes; they sum to 1."""
    present = np.bincount(y, minlength=n_classes) > 0
    if isinstance(pairs, str):
        wide = np.ones(len(y), dtype=Wide) if weight is None else weight.astype(Wide)
        size = np.zeros(n_classes, dtype=Wide)
        np.add.at(size, y, wide)
        v = np.ones((n_classes, n_classes), dtype=Wide)
        if pairs == "ova":
            for i in np.flatnonzero(present):
                v[i] = size / sum(size[j] for j in range(n_classes) if j != i)
    else:
        v = np.asarray(pairs).astype(Wide)
    v = v * present[:, None] * present * (1 - np.eye(n_classes))
    return v / v.sum()


def auc_matrix(y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the ``(C, C)`` matrix ``AUC_{i|j}``, NaN on the diagonal and where a class is absent."""
    unit, member = unit_weights(y, weight), np.eye(scores.shape[1], dtype=Wide)[y]
    p, q = scores[np.arange(len(y)), y][:, None], scores[:, y].T
    credit = ((p > q) + (p == q) / Wide(2)) * unit[:, None] * unit
    auc = member.T @ credit @ member
    absent = np.bincount(y, minlength=scores.shape[1]) == 0
    auc[np.eye(len(auc), dtype=bool) | absent | absent[:, None]] = np.nan
    return auc


def mauc(y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, pairs: Any) -> Wide:
    v = pair_matrix(y, scores.shape[1], weight, pairs)
    used = v > 0
    return (v[used] * auc_matrix(y, scores, weight)[used]).sum()


def risk(
    y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, pairs: Any, loss: Any, slope: Any
) -> tuple[Wide, np.ndarray, np.ndarray]:
    """Return the surrogate risk, its gradient, and the summed magnitudes of the terms of each gradient entry."""
    unit, v = unit_weights(y, weight), pair_matrix(y, scores.shape[1], weight, pairs)
    wide, rows, member = scores.astype(Wide), np.arange(len(y)), np.eye(scores.shape[1], dtype=Wide)[y]
    share = v[y][:, y] * unit[:, None] * unit
    # Pairs that do not count may overflow.
    t = np.where(share > 0, wide[rows, y][:, None] - wide[:, y].T, 0)
    of_pair = share * slope(t)
    gradient, magnitude = -(of_pair.T @ member), abs(of_pair).T @ member
    gradient[rows, y] += of_pair.sum(axis=1)
    magnitude[rows, y] += abs(of_pair).sum(axis=1)
    return (share * loss(t)).sum(), gradient, magnitude
