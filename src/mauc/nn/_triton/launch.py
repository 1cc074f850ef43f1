"""When kernels run, and what they are called with."""

import os
from contextlib import nullcontext
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from mauc.nn._loss.batch import Batch
from mauc.nn._loss.settings import Loss

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@lru_cache(maxsize=4)
def has_triton(device: str) -> bool:
    """Return whether Triton compiles for a device, or interprets kernels on the CPU, for tests."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return (device == "cuda" or (device == "cpu" and interpreted)) and find_spec("triton") is not None


def runs_kernels(logits: Tensor) -> bool:
    """Return whether kernels can compute the loss of these logits.

    They cannot under ``torch.use_deterministic_algorithms``: most add their sums atomically, so that the last bits
    depend on the order.
    """
    if not has_triton(logits.device.type) or torch.are_deterministic_algorithms_enabled():
        return False
    return logits.dtype in DTYPES and logits.shape[0] > 0 and logits.shape[1] > 1


def on_device(x: Tensor) -> Any:
    """Return a context in which kernels are launched on the device of a tensor."""
    if x.device.type != "cuda" or x.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(x.device)


@lru_cache(maxsize=64)
def processors_of(device: torch.device) -> int:
    """Return the number of multiprocessors."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def row_contiguous(logits: Tensor) -> Tensor:
    """Return the logits with neighbouring columns side by side."""
    return logits if logits.stride(1) == 1 else logits.contiguous()


def optional_tensors(batch: Batch) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return weight, sizes and ratios as kernels read them; Triton compiles another kernel for None."""
    weight, sizes, ratios = batch.weight, batch.sizes, batch.ratios
    if weight is not None:
        weight = weight.detach().contiguous()
    if sizes is not None:
        sizes = sizes.contiguous()
    if ratios is not None:
        ratios = ratios.to(torch.float32).contiguous()
    return weight, sizes, ratios


def ignored_class(loss: Loss) -> int:
    """Return the target of ignored samples; if there are none, a value that does not occur."""
    return -100 if loss.ignore_index is None else loss.ignore_index
