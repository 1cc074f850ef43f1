"""The tensors of a call, their checks, and the weights of their pairs."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc._validation import invalid
from mauc.nn._loss.device import can_read, exact_dtype

EVERY = slice(None)


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
    whole: bool = False
    """Whether it is known that no sample is ignored."""


WHOLE_NUMBERS = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}


def check_input(
    logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None, unseen: tuple[int, ...] = ()
) -> bool:
    """Check the rows of a loss, and return whether it is known that no sample is ignored."""
    check_tensors("logits", logits, target, weight)
    if not can_read(target):
        return False
    if weight is not None:
        check_weight(weight)
    whole = check_classes(target, logits.shape[1], ignore_index)
    for each in unseen:
        if bool((target == each).any()):
            advice = "count the classes of all training samples"
            raise invalid("class_counts", "must be positive for every class that occurs", f"0 at {each}", advice)
    return whole


def by_row(logits: Tensor, target: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return ``(N, C, …)`` logits as ``(N', C)``, and target and weight as ``(N',)``, after checks of their shapes."""
    check_tensors("logits", logits, target, weight, 0)
    logits = logits.movedim(1, -1).reshape(-1, logits.shape[1])
    return logits, target.reshape(-1), None if weight is None else weight.reshape(-1)


def check_tensors(
    name: str, scores: Tensor, target: Tensor, weight: Tensor | None, n_classes: int | None = None
) -> None:
    """Check types, shapes and devices of ``(N, C)`` scores, or of ``(N, n_classes, …)`` if that is given; 0 is any."""
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        raise invalid(name, "must be a floating-point tensor", _kind(scores), "pass the output of the network")
    shape = scores.shape
    if name == "logits" and (len(shape) == 1 or shape[1] == 1):
        came, advice = f"shape {tuple(shape)}", "give the network two outputs"
        raise invalid(name, "must have two columns or more, one per class", came, advice)
    if len(shape) != 2 if n_classes is None else len(shape) < 2 or n_classes not in (0, shape[1]):
        requirement = "(N, C)" if n_classes is None else f"(N, {n_classes}) or (N, {n_classes}, …)"
        advice = "pass one row per sample and one column per class"
        raise invalid(name, f"must have the shape {requirement}", f"shape {tuple(shape)}", advice)
    if isinstance(target, Tensor) and target.is_floating_point() and target.shape == shape:
        advice = "for mixup, mix two losses: share * loss(logits, a) + (1 - share) * loss(logits, b)"
        raise invalid("target", "must be classes, because pairs are samples of two classes", "probabilities", advice)
    if not isinstance(target, Tensor) or target.dtype not in WHOLE_NUMBERS:
        advice = "pass class indices, for instance torch.tensor(LabelEncoder().fit_transform(names))"
        if isinstance(target, Tensor):
            advice = "pass class indices, for instance target.long()"
        raise invalid("target", "must be a tensor of whole numbers", _kind(target), advice)
    of_samples = shape[:1] if len(shape) == 2 else shape[:1] + shape[2:]
    if target.shape != of_samples:
        came = f"shape {tuple(target.shape)}"
        raise invalid("target", f"must have the shape {tuple(of_samples)}", came, "pass one class per sample")
    if target.device != scores.device:
        raise invalid("target", f"must be on the device of {name}, {scores.device}", target.device, "move it there")
    if weight is None:
        return
    if not isinstance(weight, Tensor) or weight.shape != of_samples:
        came = f"shape {tuple(weight.shape)}" if isinstance(weight, Tensor) else type(weight).__name__
        raise invalid("weight", f"must be a tensor of shape {tuple(of_samples)}", came, "pass one weight per sample")
    if weight.is_complex() or weight.device != scores.device:
        came = f"{weight.dtype} on {weight.device}"
        raise invalid("weight", f"must be real numbers on {scores.device}", came, "convert or move it")


def _kind(x: Any) -> object:
    return x.dtype if isinstance(x, Tensor) else type(x).__name__


def check_classes(target: Tensor, n_classes: int, ignore_index: int | None = None) -> bool:
    """Check the range of the classes, and return whether it is known that no sample is ignored."""
    if target.numel() == 0:
        return False
    low, high = (int(x) for x in target.aminmax())
    if low >= 0 and high < n_classes:
        return ignore_index is None or not 0 <= ignore_index < n_classes
    outside = (target < 0) | (target >= n_classes)
    wrong = target[outside if ignore_index is None else outside & (target != ignore_index)]
    if len(wrong):
        allowed = "" if ignore_index is None else f" or ignore_index={ignore_index}"
        advice = "number the classes from 0, one for each column"
        raise invalid("target", f"must be from 0 to {n_classes - 1}{allowed}", int(wrong[0]), advice)
    return False


def check_finite(name: str, scores: Tensor) -> None:
    """Check that scores are finite."""
    if not bool(scores.isfinite().all()):
        advice = "find where the model diverged; infinity can be clipped"
        raise invalid(name, "must be finite", "NaN or infinity", advice)


def check_weight(weight: Tensor) -> None:
    """Check the values of sample weights."""
    wrong = weight[~((weight >= 0) & (weight < torch.inf))]
    if len(wrong):
        raise invalid("weight", "must be finite and not negative", f"{wrong[0].item():g}", "pass weights >= 0")


def chunks(scores: Tensor, size: int = 1 << 18) -> list[slice]:
    """Return the rows to take at a time: all, or on the CPU as many as stay in a second-level cache.

    2**16 scores at a time were slower: too many calls.
    """
    if scores.numel() <= size or not can_read(scores):
        return [EVERY]
    step = max(1, size // scores.shape[1])
    return [slice(begin, begin + step) for begin in range(0, len(scores), step)]


def take(x: Tensor, rows: slice) -> Tensor:
    """Return ``x[rows]``, at no cost for all rows."""
    return x if rows is EVERY else x[rows]


def class_sum(y: Tensor, values: Tensor, n_classes: int) -> Tensor:
    """Return ``(C,)`` sums over the samples of each class."""
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
    mass: Tensor | float
    """``(N,)`` sample weight, 0 for ignored samples; 1.0 if every sample counts once."""
    size: Tensor
    """``(C,)`` summed weight of each class."""

    @property
    def counted(self) -> Any:
        """Return the summed weight of all samples."""
        return float(len(self.y)) if isinstance(self.mass, float) else self.size.sum()

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
    each = torch.ones(y.shape, dtype=exact, device=y.device) if weight is None else weight.to(exact)
    each = each if valid is None else torch.where(valid, each, 0.0)
    summed = class_sum(y, each, n_classes)
    u: Tensor | float = each
    if weight is None and valid is None:
        u, unit = 1.0, summed.reciprocal().index_select(0, y)
    else:
        unit = each * torch.where(summed > 0, 1.0 / summed, 0.0)[y]
    here = summed.sign()
    if not isinstance(pairs, str):
        return _of_matrix(y, unit, pairs.to(exact), here, u, summed)
    # A Python number on the CPU: six operations less.
    count: Any = float(here.sum()) if can_read(y) else here.sum()
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


def _of_matrix(y: Tensor, unit: Tensor, pairs: Tensor, here: Tensor, mass: Tensor | float, size: Tensor) -> Weights:
    v = pairs * torch.outer(here, here)
    v = v - torch.diag(torch.diagonal(v))
    whole = v.sum()
    v = v * torch.where(whole > 0, 1.0 / whole, 0.0)
    return Weights(y, unit, unit, torch.ones_like(here), v.T.contiguous(), v.sum(1), mass, size)
