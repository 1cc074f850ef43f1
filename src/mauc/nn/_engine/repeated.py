"""Calls of a module that are like one before: what was checked and decided at the first of a kind holds for all."""

from operator import is_not
from typing import Any

import torch
from torch import Tensor

from mauc.nn._engine.launch import runs_kernels
from mauc.nn._engine.plans import Plan

__all__ = ["Repeated"]


class Repeated:
    """The plans of one module's calls in fused kernels, by their kind; those of other settings are forgotten."""

    def __init__(self) -> None:
        self.settings: tuple[Any, ...] = ()
        self.plans: dict[Any, Plan] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without the plans, whose kernels belong to a device."""
        return {"settings": (), "plans": {}}

    def key_of(self, settings: tuple[Any, ...], logits: Any, target: Any, weight: Any) -> Any:
        """What a plan depends on besides the module's settings; None where none is kept."""
        if not self.settings or any(map(is_not, self.settings, settings)):
            self.settings, self.plans = settings, {}
        # Plain tensors alone: others stand for something else, or come with functions of their own.
        if logits.__class__ is not Tensor or target.__class__ is not Tensor or settings[4].__class__ is not str:
            return None
        device = logits.device
        if not runs_kernels(device.type) or not target.is_contiguous():
            return None
        of_weight = None
        if weight is not None:
            if weight.__class__ is not Tensor or weight.requires_grad or not weight.is_contiguous():
                return None
            of_weight = (weight.shape, weight.dtype, weight.device, weight.data_ptr() % 16)
        stride = logits.stride()
        if len(stride) != 2 or stride[1] != 1:
            return None
        return (
            logits.shape,
            stride[0],
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
        )
