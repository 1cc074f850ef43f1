"""Who is in which class of a batch, and what every score weighs."""

from typing import NamedTuple

import torch
from torch import Tensor

from mauc.nn._engine.processes import Communicator

__all__ = ["EVERY", "Batch", "chunks", "class_sum", "exact_dtype", "is_free", "is_traced", "prepare", "take"]

CHUNK = 1 << 18
"""Scores walked at a time on the host: near the size of a second-level cache; 2**16 costs too many calls."""


EVERY = slice(None)


def exact_dtype(device: torch.device) -> torch.dtype:
    """For the ``(C,)`` and ``(N,)`` sums, whose cost is nothing: float64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


class Batch(NamedTuple):
    """The weights of the pairs: positive ``m`` in column ``i = y[m]`` weighs ``unit[m]``, negative ``n``
    ``row[n] · column[i] · (matrix[y[n], i] if there is a matrix)`` in column ``i != y[n]``.

    That ``"ovo"`` and ``"ova"`` are products of a row's and a column's weight saves an ``(N, C)`` array of weights.
    """

    y: Tensor
    """``(N,)`` class codes; 0 for ignored samples, whose weights are 0."""
    unit: Tensor
    """``(N,)`` sample weight over the summed weight of its class."""
    row: Tensor
    """``(N,)``"""
    column: Tensor
    """``(C,)`` 0 for absent classes, and 0 everywhere if no pair is left."""
    matrix: Tensor | None
    """``(C, C)`` ``v_ij`` at ``[j, i]``, 0 on the diagonal."""
    total: Tensor
    """``(C,)`` summed weight of each column's negatives."""
    mass: Tensor
    """``(N,)`` sample weight, 0 for ignored samples."""
    size: Tensor
    """``(C,)`` summed weight of each class, over all ranks."""

    def negative(self, dtype: torch.dtype, rows: slice = EVERY) -> Tensor:
        """``(rows, C)`` weights of the scores as negatives, 0 in each sample's own column."""
        y, row = take(self.y, rows), take(self.row, rows).to(dtype)
        if self.matrix is not None:
            return self.matrix.to(dtype)[y] * row[:, None]
        return torch.outer(row, self.column.to(dtype)).scatter_(1, y[:, None], 0.0)


def is_traced() -> bool:
    """Whether tensors stand for values to come: in a graph of ``torch.compile``, or under ``torch.func``."""
    return bool(torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active())


def is_free(device: torch.device) -> bool:
    """Whether values may be looked at: on the host, where nothing is traced."""
    return device.type == "cpu" and not is_traced()


def chunks(scores: Tensor) -> list[slice]:
    """Rows to take at a time: on the host what stays in a second-level cache, elsewhere all."""
    if scores.numel() <= CHUNK or not is_free(scores.device):
        return [EVERY]
    step = max(1, CHUNK // scores.shape[1])
    return [slice(begin, begin + step) for begin in range(0, len(scores), step)]


def take(x: Tensor, rows: slice) -> Tensor:
    """``x[rows]``, at no cost for all of them."""
    return x if rows is EVERY else x[rows]


def class_sum(y: Tensor, values: Tensor, n_classes: int) -> Tensor:
    """``(C, …)`` sums over the samples of each class."""
    if values.ndim == 1 and len(y) and values.dtype == torch.float64 and is_free(y.device):
        return torch.bincount(y, values, n_classes)
    return values.new_zeros((n_classes, *values.shape[1:])).index_add_(0, y, values)


def prepare(
    target: Tensor,
    n_classes: int,
    *,
    weight: Tensor | None,
    valid: Tensor | None,
    pairs: str | Tensor,
    class_counts: Tensor | None,
    world: Communicator,
) -> Batch:
    """Weights from targets; ``valid`` marks the samples that are not ignored. No host synchronisation."""
    exact = exact_dtype(target.device)
    y = target if valid is None else torch.where(valid, target, 0)
    u = torch.ones(y.shape, dtype=exact, device=y.device) if weight is None else weight.to(exact)
    if valid is not None:
        u = torch.where(valid, u, 0.0)
    summed = world.sum(class_sum(y, u, n_classes))
    if weight is None and valid is None:
        unit = summed.reciprocal()[y]
    else:
        unit = u * torch.where(summed > 0, 1.0 / summed, 0.0)[y]
    here = summed.sign()
    if not isinstance(pairs, str):
        return _of_matrix(y, unit, pairs.to(exact), here, u, summed)
    count: Tensor | float = float(here.sum()) if is_free(y.device) else here.sum()
    if pairs == "ovo":
        # One class alone has no negatives, so its weight does not matter; its total is 0, as it must be.
        column = here / _at_least_one(count * (count - 1.0))
        return Batch(y, unit, unit, column, None, column * (count - 1.0), u, summed)
    share = here * (count > 1) / _at_least_one(count)
    size = here * (summed if class_counts is None else class_counts.to(exact))
    # Sums of the others from both ends: the whole less the class would cancel where one class is nearly all.
    before = torch.nn.functional.pad(size.cumsum(0)[:-1], (1, 0))
    after = torch.nn.functional.pad(size.flip(0).cumsum(0)[:-1], (1, 0)).flip(0)
    others = before + after
    column = share * torch.where(others > 0, 1.0 / others, 0.0)
    return Batch(y, unit, unit * size[y], column, None, share, u, summed)


def _at_least_one(x: Tensor | float) -> Tensor | float:
    return x.clamp(min=1.0) if isinstance(x, Tensor) else max(x, 1.0)


def _of_matrix(y: Tensor, unit: Tensor, pairs: Tensor, here: Tensor, mass: Tensor, size: Tensor) -> Batch:
    v = pairs * torch.outer(here, here)
    v = v - torch.diag(torch.diagonal(v))
    whole = v.sum()
    v = v * torch.where(whole > 0, 1.0 / whole, 0.0)
    return Batch(y, unit, unit, torch.ones_like(here), v.T.contiguous(), v.sum(1), mass, size)
