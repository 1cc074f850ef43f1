"""Rows of a data set, dense or sparse, as tensors; and which of them to hold out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from mauc._typing import Floats, Ints
from mauc._validation import invalid

__all__ = ["Rows", "dense", "hold_out", "rows_at_a_time"]

# Classes with fewer samples stay in the training part as a whole.
LEAST_TO_SPLIT = 4


@dataclass(frozen=True)
class Rows(Dataset[Any]):
    """Some rows of the data, dense or CSR, fetched a batch at a time: a sparse matrix is never made dense as a
    whole.
    """

    X: Any
    codes: Ints
    weight: Floats | None
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def __getitems__(self, batch: list[int]) -> tuple[Tensor, Tensor, Tensor | None]:
        rows = self.rows[batch]
        weight = None if self.weight is None else torch.from_numpy(self.weight[rows].astype(np.float32))
        return dense(self.X[rows]), torch.from_numpy(self.codes[rows]), weight


def dense(rows: Any) -> Tensor:
    """Rows of a dense or sparse matrix as a float32 tensor."""
    array = rows.toarray() if hasattr(rows, "toarray") else rows
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def rows_at_a_time(n_features: int) -> int:
    """As many rows as make 64 MB when dense, 4096 at most."""
    return max(1, min(4096, (1 << 24) // max(1, n_features)))


def hold_out(codes: Ints, rows: Ints, fraction: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Training and validation part of the rows, stratified; every class stays in training."""
    counts = np.bincount(codes[rows])
    take = np.maximum(np.rint(fraction * counts).astype(np.int64), 1)
    take = np.where(counts < LEAST_TO_SPLIT, 0, np.minimum(take, counts - 1))
    if np.count_nonzero(take) < 2:
        came = f"class sizes {counts[:8].tolist()}"
        advice = "pass X_val and y_val, or early_stopping=False"
        requirement = f"must have two classes of {LEAST_TO_SPLIT} samples or more for the hold-out of early_stopping"
        raise invalid("y", requirement, came, advice)
    shuffled = rng.permutation(rows)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    held = place < np.repeat(take, counts)
    return np.sort(by_class[~held]), np.sort(by_class[held])
