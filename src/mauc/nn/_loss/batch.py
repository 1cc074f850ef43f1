"""The settings and the tensors of a call, and the weights of their pairs."""

from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.activations import BOUNDED
from mauc.surrogates import Surrogate

EVERY = slice(None)


class Loss(NamedTuple):
    """The settings of a loss."""

    surrogate: Surrogate
    activation: str
    pairs: str
    """``"ovo"``, ``"ova"``, or ``"matrix"`` where the batch has one."""
    ignore_index: int | None
    """None if it is known that no sample is ignored."""
    log_loss: float
    """Weight of the log-loss."""
    log1p: bool
    """Whether the risk R_i of each class becomes log(1 + R_i)."""
    limit: float | None = None
    """Longest slope of the pair term, in slopes of the log-loss; None for the sum as it is."""

    def pair_weight(self, n_classes: int) -> float:
        """Return the weight of the pair term; with ``log1p`` it is min(1, (C − 2) / 8), less what absent classes have.

        With two classes adjusted cross-entropy ranks optimally alone, and the pair term adds noise: with C / 10 instead
        it costs up to 0.4 points × 100 on two classes that overlap.
        """
        return min(1.0, (n_classes - 2) / 8.0) if self.log1p else 1.0

    @property
    def pair_factor(self) -> float:
        """Return the factor of the pair risk in the value; that of the log-loss is this times ``log_loss``."""
        return 1.0 if self.limit is None else 1.0 / self.log_loss

    @property
    def bounded(self) -> bool:
        """Return whether scores lie in [0, 1]."""
        return self.activation in BOUNDED


class Batch(NamedTuple):
    """The tensors of a call; None for a tensor that is not needed."""

    logits: Tensor
    target: Tensor
    weight: Tensor | None
    sizes: Tensor | None
    """``(C,)`` class sizes of the training set, for "ova"."""
    ratios: Tensor | None
    """``(C,)`` r of the log-loss."""
    matrix: Tensor | None
    """``(C, C)`` pair weights, :math:`v_{ij}` at ``[i, j]``."""


def exact_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype of ``(C,)`` and ``(N,)`` sums: float64 if the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def can_read(device: torch.device) -> bool:
    """Return whether values can be read without waiting: on the CPU, outside ``torch.compile`` and ``torch.func``."""
    if device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return not torch._C._are_functorch_transforms_active()


def is_autocast(device: torch.device) -> bool:
    """Return whether autocast is enabled."""
    return device.type in ("cpu", "cuda") and torch.is_autocast_enabled(device.type)


def without_autocast(device: torch.device) -> Any:
    """Return a context without autocast, which would round the sums."""
    return torch.autocast(device.type, enabled=False) if is_autocast(device) else nullcontext()


def chunks(scores: Tensor, size: int = 1 << 18) -> list[slice]:
    """Return the rows to take at a time: all, or on the CPU as many as stay in a second-level cache.

    2**16 scores at a time were slower: too many calls.
    """
    if scores.numel() <= size or not can_read(scores.device):
        return [EVERY]
    step = max(1, size // scores.shape[1])
    return [slice(begin, begin + step) for begin in range(0, len(scores), step)]


def take(x: Tensor, rows: slice) -> Tensor:
    """Return ``x[rows]``, at no cost for all rows."""
    return x if rows is EVERY else x[rows]


def class_sum(y: Tensor, values: Tensor, n_classes: int) -> Tensor:
    """Return ``(C,)`` sums over the samples of each class."""
    if len(y) and values.dtype == torch.float64 and can_read(y.device):
        return torch.bincount(y, values, n_classes)
    return values.new_zeros(n_classes).index_add(0, y, values)


class Weights(NamedTuple):
    """The weights of the pairs.

    Positive ``m`` in column ``i = y[m]`` has the weight ``unit[m]``. Negative ``n`` in column ``i != y[n]`` has the
    weight ``row[n] · column[i]``, times ``matrix[y[n], i]`` if there is a matrix.
    """

    y: Tensor
    """``(N,)`` class codes; 0 for ignored samples, whose weights are 0."""
    unit: Tensor
    """``(N,)`` sample weight over the summed weight of its class."""
    row: Tensor
    """``(N,)`` factor of each row."""
    column: Tensor
    """``(C,)`` factor of each column; 0 for absent classes, and 0 everywhere if no pair is left."""
    matrix: Tensor | None
    """``(C, C)`` ``v_ij`` at ``[j, i]``, 0 on the diagonal."""
    total: Tensor
    """``(C,)`` summed weight of each column's negatives."""
    mass: Tensor
    """``(N,)`` sample weight, 0 for ignored samples."""
    size: Tensor
    """``(C,)`` summed weight of each class."""

    def scaled(self, factor: Any) -> "Weights":
        """Return the weights of all pairs times a factor."""
        if self.matrix is not None:
            return self._replace(matrix=factor * self.matrix, total=factor * self.total)
        return self._replace(column=factor * self.column, total=factor * self.total)

    def negative(self, dtype: torch.dtype, rows: slice = EVERY) -> Tensor:
        """Return ``(rows, C)`` weights of the scores as negatives, 0 in each sample's own column."""
        y, row = self.y[rows], self.row[rows].to(dtype)
        if self.matrix is not None:
            return self.matrix.to(dtype)[y] * row[:, None]
        return torch.outer(row, self.column.to(dtype)).scatter(1, y[:, None], 0.0)


def weigh(
    target: Tensor,
    n_classes: int,
    pairs: str | Tensor,
    weight: Tensor | None = None,
    valid: Tensor | None = None,
    class_counts: Tensor | None = None,
) -> Weights:
    """Compute the weights without waiting for the device; ``valid`` marks the samples that are not ignored."""
    exact = exact_dtype(target.device)
    y = target.long() if valid is None else torch.where(valid, target, 0).long()
    u = torch.ones(y.shape, dtype=exact, device=y.device) if weight is None else weight.to(exact)
    u = u if valid is None else torch.where(valid, u, 0.0)
    summed = class_sum(y, u, n_classes)
    if weight is None and valid is None:
        unit = summed.reciprocal().index_select(0, y)
    else:
        unit = u * torch.where(summed > 0, 1.0 / summed, 0.0)[y]
    here = summed.sign()
    if not isinstance(pairs, str):
        return _of_matrix(y, unit, pairs.to(exact), here, u, summed)
    # A Python number on the CPU: six operations less.
    count: Any = float(here.sum()) if can_read(y.device) else here.sum()
    if pairs == "ovo":
        column = here / _at_least_one(count * (count - 1.0))
        return Weights(y, unit, unit, column, None, column * (count - 1.0), u, summed)
    share = here * (count > 1) / _at_least_one(count)
    size = here * (summed if class_counts is None else class_counts.to(exact))
    # Sum the other classes from both ends: the total less the class cancels if one class is nearly all.
    before = torch.nn.functional.pad(size.cumsum(0)[:-1], (1, 0))
    after = torch.nn.functional.pad(size.flip(0).cumsum(0)[:-1], (1, 0)).flip(0)
    others = before + after
    column = share * torch.where(others > 0, 1.0 / others, 0.0)
    return Weights(y, unit, unit * size[y], column, None, share, u, summed)


def _at_least_one(x: Any) -> Any:
    return x.clamp(min=1.0) if isinstance(x, Tensor) else max(x, 1.0)


def _of_matrix(y: Tensor, unit: Tensor, pairs: Tensor, here: Tensor, mass: Tensor, size: Tensor) -> Weights:
    v = pairs * torch.outer(here, here)
    v = v - torch.diag(torch.diagonal(v))
    whole = v.sum()
    v = v * torch.where(whole > 0, 1.0 / whole, 0.0)
    return Weights(y, unit, unit, torch.ones_like(here), v.T.contiguous(), v.sum(1), mass, size)
