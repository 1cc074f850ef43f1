"""The sets: images and tables as tensors, training rows and test rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments import datasets
from experiments.datasets.folder import data_folder

__all__ = ["IMAGES", "SETS", "Data", "load"]

IMAGES = ("cifar100-lt", "cifar10-lt")
FEATURES = ("ham10000-part", "cifar100-imb", "cifar100-imb-32px", "caltech101", "flowers102")
SETS = (*IMAGES, *FEATURES, "kddcup99", "letter-imb", "digits-imb")
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


@dataclass(frozen=True, eq=False)
class Data:
    """Standardised rows on a device."""

    name: str
    X: Tensor
    """``(N, d)``, or ``(N, 3, 32, 32)`` images."""
    y: Tensor
    X_test: Tensor
    y_test: Tensor

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def counts(self) -> Tensor:
        """Return the training rows of each class."""
        return self.y.bincount(minlength=self.n_classes)

    def to(self, device: torch.device) -> "Data":
        return Data(self.name, *(t.to(device) for t in (self.X, self.y, self.X_test, self.y_test)))


def load(name: str, data_home: str | None, *, part: str, seed: int) -> Data:
    """Return the training rows and the rows to test on.

    Parameters
    ----------
    name : str
        One of :data:`SETS`.
    data_home : str, optional
        The folder that holds ``longtail/``, ``features/``, ``kddcup99/`` and ``letter.npz``.
    part : {"validation", "test"}
        Rows to test on. Validation rows are a fifth of each class's training rows, drawn by ``seed``; for the test
        part the networks train on all training rows.
    seed : int
        Of the split. The CIFAR sets have a fixed test part.
    """
    if name in IMAGES:
        X, y, X_test, y_test = _cifar(data_folder(data_home) / "longtail" / f"{name}.npz")
        group = np.arange(len(y))
    else:
        X, y, X_test, y_test, group = _table(name, data_home)
    if part == "validation":
        held = _held_out(y, group, 0.2, [seed, 20])
        X, y, X_test, y_test = X[~held], y[~held], X[held], y[held]
    if name not in IMAGES:
        mean, scale = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
        scale[scale <= 1e-7 * (1.0 + np.abs(mean))] = 1.0
        X, X_test = (np.clip((part - mean) / scale, -10.0, 10.0).astype(np.float32) for part in (X, X_test))
    return Data(name, *(torch.from_numpy(np.ascontiguousarray(a)) for a in (X, y, X_test, y_test)))


def _cifar(path: Path) -> tuple[np.ndarray, ...]:
    """Return normalised images. The file holds differences along the rows, modulo 256."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in ("tr", "te", "ytr", "yte")}
    mean, std = (np.array(v, dtype=np.float32).reshape(1, 3, 1, 1) for v in (MEAN, STD))
    X, X_test = (
        (np.cumsum(arrays[key], axis=-1, dtype=np.uint8).astype(np.float32) / 255 - mean) / std for key in ("tr", "te")
    )
    return X, arrays["ytr"].astype(np.int64), X_test, arrays["yte"].astype(np.int64)


def _table(name: str, data_home: str | None) -> tuple[np.ndarray, ...]:
    """Return training and test rows of a table, and the group of each training row.

    A quarter of each class is tested; rows of one lesion stay together. Letters and CIFAR-100-Imb are tested on rows
    that are left over.
    """
    group = extra = None
    if name == "letter-imb":
        with np.load(data_folder(data_home) / "letter.npz") as file:
            X, y = file["X"], file["y"].astype(np.int64)
        rows = _thinned(y)
        left = np.setdiff1d(np.arange(len(y)), rows)
        return X[rows], y[rows], X[left], y[left], rows
    bunch = datasets.load(name, data_home, dtype=np.float32)
    X, y, group, extra = bunch.X, bunch.y.astype(np.int64), bunch.get("group"), bunch.get("extra")
    if name == "kddcup99":
        common = np.flatnonzero(np.bincount(y) >= 10)
        rows = np.isin(y, common)
        X, y = X[rows], np.searchsorted(common, y[rows])
    group = np.arange(len(y)) if group is None else group
    if extra is not None:
        return X[~extra], y[~extra], X[extra], y[extra], group[~extra]
    test = _held_out(y, group, 0.25, [0, 25])
    return X[~test], y[~test], X[test], y[test], group[~test]


def _thinned(y: np.ndarray, ratio: float = 100.0) -> np.ndarray:
    """Return rows whose class sizes fall from the first class to the last by ``ratio``, as in the CIFAR sets."""
    counts = np.bincount(y)
    last, order = len(counts) - 1, np.random.default_rng([7, 1]).permutation(len(y))
    return np.concatenate(
        [order[y[order] == k][: int(counts.min() * ratio ** (-k / last))] for k in range(len(counts))]
    )


def _held_out(y: np.ndarray, group: np.ndarray, share: float, seed: list[int]) -> np.ndarray:
    """Return ``(N,)`` bool: whole groups, about a share of each class and at least one row of it."""
    rng, held = np.random.default_rng(seed), np.zeros(len(y), dtype=bool)
    for k in np.unique(y):
        rows = np.flatnonzero(y == k)
        names = rng.permutation(np.unique(group[rows]))
        sizes = np.array([np.count_nonzero(group[rows] == name) for name in names]) if len(names) < len(rows) else 1
        before = np.cumsum(np.broadcast_to(sizes, names.shape)) - sizes
        held |= np.isin(group, names[before < max(1, round(share * len(rows)))]) & (y == k)
    return held
