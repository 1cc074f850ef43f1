"""Calls of a module that are like one before: what was checked and decided at the first of a kind holds for all."""

from operator import is_not
from typing import Any

import torch
from torch import Tensor

from mauc.nn._engine.launch import runs_kernels
from mauc.nn._engine.plans import Plan

__all__ = ["Repeated", "is_of", "kind_of_call"]


MOST_KINDS = 256
"""Kinds of calls that are remembered: with more, as of batches of ever new sizes, all are forgotten."""


class Repeated:
    """The plans of one module's calls in fused kernels, by their kind."""

    def __init__(self) -> None:
        self.kept: tuple[tuple[Any, ...], dict[Any, Plan]] = ((), {})
        """Settings of the module, and the plans made with them: replaced whole, for threads that come in between."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the plans, whose kernels belong to a device."""
        return {"kept": ((), {})}

    def plans(self, settings: tuple[Any, ...]) -> dict[Any, Plan]:
        """Those made with such settings; if these are not the last ones, all are forgotten."""
        before, plans = self.kept
        if not before or any(map(is_not, before, settings)) or len(plans) > MOST_KINDS:
            plans = {}
            self.kept = (settings, plans)
        return plans


def kind_of_call(logits: Any, target: Any, weight: Any, ratios: Tensor | None, class_counts: Tensor | None) -> Any:
    """What a plan depends on besides the settings, of whose tensors it has the addresses; None where none is made."""
    # Plain tensors alone: others stand for something else, or come with functions of their own.
    if logits.__class__ is not Tensor or target.__class__ is not Tensor:
        return None
    device = logits.device
    if not runs_kernels(device.type) or not target.is_contiguous():
        return None
    of_weight = None
    if weight is not None:
        if weight.__class__ is not Tensor or weight.requires_grad or not weight.is_contiguous():
            return None
        of_weight = (weight.shape, weight.dtype, weight.device, weight.data_ptr() % 16)
    strides = logits.stride()
    if len(strides) != 2 or strides[1] != 1:
        return None
    return (
        logits.shape,
        strides,
        logits.dtype,
        device,
        logits.data_ptr() % 16,
        logits.requires_grad and torch.is_grad_enabled(),
        target.shape,
        target.dtype,
        target.device,
        target.data_ptr() % 16,
        of_weight,
        torch.is_autocast_enabled(device.type),
        torch.are_deterministic_algorithms_enabled(),
        None if ratios is None else ratios.data_ptr(),
        None if class_counts is None else class_counts.data_ptr(),
    )


def is_of(plan: Plan, ratios: Tensor | None, class_counts: Tensor | None) -> bool:
    """Whether the plan has these very tensors, not copies, which would not change as they do."""
    pairs = ((plan.ratios, ratios), (plan.sizes, class_counts))
    return all(mine is None or (x is not None and mine.data_ptr() == x.data_ptr()) for mine, x in pairs)
