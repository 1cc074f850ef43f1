"""Checks of what users pass to the loss; values are looked at only where that does not wait for a device."""

from typing import Any

import torch
from torch import Tensor

from mauc._validation import check_pairs, invalid
from mauc.nn._loss.batch import is_free

__all__ = ["check_input", "check_scored", "check_values", "count_vector", "pair_matrix"]


def check_input(logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> bool:
    """Shapes and kinds; values too where looking at them is free. Whether it is known that no sample is ignored."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise invalid("logits", "must be a tensor of floating numbers", kind, "pass the raw output of the network")
    shape = logits.shape
    if len(shape) != 2:
        advice = "pass one row per sample and one column per class; flatten further dimensions into the samples"
        raise invalid("logits", "must have the shape (N, C)", f"shape {tuple(shape)}", advice)
    if (
        not isinstance(target, Tensor)
        or target.is_floating_point()
        or target.is_complex()
        or target.dtype == torch.bool
    ):
        kind = target.dtype if isinstance(target, Tensor) else type(target).__name__
        raise invalid("target", "must be a tensor of whole numbers", kind, "pass class indices, e.g. target.long()")
    if target.shape != shape[:1]:
        came = f"shape {tuple(target.shape)}"
        raise invalid("target", f"must have the shape ({shape[0]},)", came, "pass one class per row of the logits")
    if target.device != logits.device:
        advice = "move one to the other"
        raise invalid("target", f"must be on the device of the logits, {logits.device}", target.device, advice)
    if weight is not None:
        _check_weight(weight, logits)
    if not is_free(target.device) or not len(target):
        return False
    n_classes = shape[1]
    low, high = (int(x) for x in target.aminmax())
    if low >= 0 and high < n_classes:
        return not 0 <= ignore_index < n_classes
    wrong = ((target < 0) | (target >= n_classes)) & (target != ignore_index)
    if bool(wrong.any()):
        where = int(wrong.nonzero()[0])
        requirement = f"must be a class from 0 to {n_classes - 1} or ignore_index={ignore_index}"
        advice = "encode the classes as columns of the logits"
        raise invalid("target", requirement, f"{int(target[where])} at {where}", advice)
    return False


def _check_weight(weight: Tensor, logits: Tensor) -> None:
    if not isinstance(weight, Tensor) or weight.shape != logits.shape[:1]:
        came = f"shape {tuple(weight.shape)}" if isinstance(weight, Tensor) else type(weight).__name__
        advice = "pass one weight per sample; the classes are weighed by pairs="
        raise invalid("weight", f"must be a tensor of shape ({len(logits)},)", came, advice)
    if weight.is_complex() or weight.device != logits.device:
        came = f"{weight.dtype} on {weight.device}"
        raise invalid("weight", f"must be real numbers on {logits.device}", came, "convert or move it")
    if is_free(weight.device):
        wrong = ~((weight >= 0) & (weight < torch.inf))
        if bool(wrong.any()):
            where = int(wrong.nonzero()[0])
            raise invalid(
                "weight", "must be finite and >= 0", f"{float(weight[where])} at {where}", "pass such weights"
            )


def pair_matrix(pairs: Any, n_classes: int) -> Tensor:
    """A ``(C, C)`` matrix of pair weights; its values are checked where looking at them is free."""
    if isinstance(pairs, Tensor):
        if pairs.shape != (n_classes, n_classes):
            requirement = f"must be 'ovo', 'ova' or a ({n_classes}, {n_classes}) matrix of weights"
            advice = "pass [i, j] = weight of the pair (column i, class j)"
            raise invalid("pairs", requirement, f"shape {tuple(pairs.shape)}", advice)
        if is_free(pairs.device):
            check_pairs(pairs.detach().numpy(), n_classes)
        return pairs.detach()
    return torch.as_tensor(check_pairs(pairs, n_classes))


def count_vector(class_counts: Any, n_classes: int | None) -> Tensor:
    """A ``(C,)`` vector of class sizes; of any two classes or more where their number is not known."""
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
    if is_free(counts.device):
        wrong = ~((counts > 0) & (counts < torch.inf))
        if bool(wrong.any()):
            where = int(wrong.nonzero()[0])
            raise invalid("class_counts", requirement, f"{counts[where].item():g} at {where}", advice)
    return counts


def check_scored(
    name: str, scores: Tensor, target: Tensor, weight: Tensor | None, n_classes: int | None = None
) -> None:
    """Kinds and shapes of ``(N, C, …)`` scores, with one class and perhaps one weight for each."""
    for what, value in ((name, scores), ("target", target), ("weight", weight)):
        if not isinstance(value, Tensor) and not (what == "weight" and value is None):
            raise invalid(what, "must be a tensor", type(value).__name__, f"pass torch.as_tensor({what})")
        if value is not None and value.device != scores.device:
            advice = f"move it, as {what}.to({name}.device)"
            raise invalid(what, f"must be on the device of {name}, {scores.device}", value.device, advice)
    if scores.ndim < 2 or (n_classes is not None and scores.shape[1] != n_classes):
        advice = "pass one row per sample and one column per class"
        requirement = f"must have the shape (N, {n_classes}) or (N, {n_classes}, …)"
        raise invalid(name, requirement, f"shape {tuple(scores.shape)}", advice)
    if not scores.is_floating_point():
        raise invalid(name, "must be floating-point scores", scores.dtype, "pass probabilities or other scores")
    of_samples = (len(scores), *scores.shape[2:])
    if target.shape != of_samples:
        advice = "pass one class number per sample"
        raise invalid("target", f"must have the shape {of_samples}", f"shape {tuple(target.shape)}", advice)
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise invalid("target", "must be class numbers", target.dtype, "pass integers, such as target.long()")
    if weight is not None and weight.shape != target.shape:
        advice = "pass one weight per sample"
        raise invalid("weight", f"must have the shape {of_samples}", f"shape {tuple(weight.shape)}", advice)
    if weight is not None and weight.is_complex():
        raise invalid("weight", "must be real numbers", weight.dtype, "pass weights >= 0")


def check_values(name: str, scores: Tensor, target: Tensor, weight: Tensor | None, n_classes: int) -> None:
    """Values of ``(N, C)`` scores, of classes and of weights."""
    if len(scores) == 0:
        return
    if not bool(scores.isfinite().all()):
        advice = "find where the model diverged; infinity can be clipped"
        raise invalid(name, "must be finite", "NaN or infinity", advice)
    low, high = (int(x) for x in target.aminmax())
    if low < 0 or high >= n_classes:
        advice = "encode the classes, or pass ignore_index" if name == "preds" else "encode the classes"
        raise invalid("target", f"must be from 0 to {n_classes - 1}", f"{low} to {high}", advice)
    if weight is not None and not bool((weight.isfinite() & (weight >= 0)).all()):
        raise invalid("weight", "must be finite and not negative", f"{weight.min().item():g}", "pass weights >= 0")
