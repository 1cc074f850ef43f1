"""What a device has: float64, values that can be read, autocast."""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor


def exact_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype of ``(C,)`` and ``(N,)`` sums: float64 if the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def can_read(x: Tensor) -> bool:
    """Return whether values can be read without waiting: on the CPU, outside ``torch.compile`` and ``torch.func``."""
    return x.is_cpu and not torch.compiler.is_compiling() and not is_transformed(x)


def is_transformed(x: Tensor) -> bool:
    """Return whether a tensor stands for others in a transform of :mod:`torch.func`."""
    return torch.func.debug_unwrap(x, recurse=False) is not x


def is_autocast(device: torch.device) -> bool:
    """Return whether autocast is enabled."""
    return device.type in ("cpu", "cuda") and torch.is_autocast_enabled(device.type)


def without_autocast(device: torch.device) -> Any:
    """Return a context without autocast, which would round the sums."""
    return torch.autocast(device.type, enabled=False) if is_autocast(device) else nullcontext()
