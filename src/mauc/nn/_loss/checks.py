"""Checks of the tensors that users pass; values are read only where that does not wait for a device."""

from typing import Any

import torch
from torch import Tensor

from mauc._validation import check_pairs, in_class_order, invalid, listing
from mauc.nn._loss.batch import can_read

WHOLE_NUMBERS = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}


def check_input(logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None) -> bool:
    """Check the batch of a loss, and return whether it is known that no sample is ignored."""
    check_tensors("logits", logits, target, weight)
    if not can_read(target.device):
        return False
    if weight is not None:
        check_weight(weight)
    return check_classes(target, logits.shape[1], ignore_index)


def check_tensors(
    name: str, scores: Tensor, target: Tensor, weight: Tensor | None, n_classes: int | None = None
) -> None:
    """Check types, shapes and devices of ``(N, C)`` scores, or of ``(N, n_classes, …)`` if that is given."""
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        raise invalid(name, "must be a floating-point tensor", _kind(scores), "pass the output of the network")
    shape = scores.shape
    if len(shape) != 2 if n_classes is None else len(shape) < 2 or shape[1] != n_classes:
        requirement = "(N, C)" if n_classes is None else f"(N, {n_classes}) or (N, {n_classes}, …)"
        advice = "pass one row per sample and one column per class"
        if n_classes is None and len(shape) > 2:
            advice += f"; for pixels, {name}.movedim(1, -1).flatten(0, -2) and target.flatten()"
        raise invalid(name, f"must have the shape {requirement}", f"shape {tuple(shape)}", advice)
    if not isinstance(target, Tensor) or target.dtype not in WHOLE_NUMBERS:
        advice = "pass class indices, for instance torch.tensor(LabelEncoder().fit_transform(names))"
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


def pair_matrix(pairs: Any, n_classes: int) -> Tensor:
    """Return a ``(C, C)`` matrix of pair weights as a tensor."""
    if isinstance(pairs, Tensor) and not can_read(pairs.device):
        if pairs.shape != (n_classes, n_classes):
            requirement = f"must be 'ovo', 'ova' or a ({n_classes}, {n_classes}) matrix of weights"
            raise invalid("pairs", requirement, f"shape {tuple(pairs.shape)}", "pass v_ij at [i, j]")
        return pairs.detach()
    values = pairs.detach().numpy() if isinstance(pairs, Tensor) else pairs
    return torch.as_tensor(check_pairs(values, n_classes))


def count_vector(class_counts: Any, n_classes: int | None = None) -> Tensor:
    """Return the ``(C,)`` class sizes as a tensor, of two classes or more where C is not known."""
    advice = "pass the size of each class in the training set, e.g. torch.bincount(labels, minlength=C)"
    requirement = f"must be {n_classes or 'two or more'} positive numbers"
    try:
        is_tensor = isinstance(class_counts, Tensor)
        counts = torch.as_tensor(class_counts, dtype=None if is_tensor else torch.float64).detach()
    except (TypeError, ValueError, RuntimeError):
        raise invalid("class_counts", requirement, repr(class_counts), advice) from None
    fits = counts.ndim == 1 and (len(counts) == n_classes if n_classes else len(counts) > 1)
    if not fits or counts.is_complex():
        raise invalid("class_counts", requirement, f"shape {tuple(counts.shape)}", advice)
    if not is_tensor:  # a series of pandas' value_counts() begins with the largest class
        counts = torch.as_tensor(in_class_order(class_counts, counts.numpy(), range(len(counts)), "class_counts"))
    if can_read(counts.device):
        wrong = (~((counts > 0) & (counts < torch.inf))).nonzero()
        if len(wrong):
            where = int(wrong[0])
            raise invalid("class_counts", requirement, f"{counts[where].item():g} at {where}", advice)
        if counts.is_floating_point() and counts.max() < 1.0 and not 0.95 < float(counts.sum()) < 1.05:
            came = f"{listing([f'{x:g}' for x in counts.tolist()])}, which are below 1 and do not sum to 1"
            raise invalid("class_counts", "must be sizes or shares of the classes, not weights", came, advice)
    return counts
