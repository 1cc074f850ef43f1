"""When kernels run, how the work is split into programs, and the memory of a call."""

import os
from contextlib import nullcontext
from functools import lru_cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._loss.batch import Batch, Loss, weigh

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
Parts = dict[str, tuple[int, torch.dtype]]
"""Vectors by name: length and dtype of each."""


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


def programs_at_once(processors: int, warps: int, registers: int) -> int:
    """Return how many programs run at once: a multiprocessor has 65536 registers."""
    return processors * min(32, 65536 // (32 * warps * registers))


class Tiling(NamedTuple):
    """A program takes some columns, and tile after tile of rows.

    There are as many programs as run at once: a few more would wait for all others to end.
    """

    rows: int
    columns: int
    warps: int
    registers: int
    """Limit per thread; it decides how many programs a multiprocessor runs."""

    @property
    def options(self) -> dict[str, int]:
        """Return the compile-time arguments of a launch."""
        return {"COLUMNS": self.columns, "ROWS": self.rows, "num_warps": self.warps, "maxnreg": self.registers}

    def grid(self, n: int, c: int, processors: int) -> tuple[int, int]:
        across, down = -(-c // self.columns), -(-n // self.rows)
        return across, max(1, min(down, programs_at_once(processors, self.warps, self.registers) // across))


def aligned(logits: Tensor) -> bool:
    """Return whether every row of float32 logits begins at a multiple of 16 bytes."""
    return logits.dtype == torch.float32 and logits.stride(0) % 4 == 0


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


def normalised_pairs(batch: Batch, loss: Loss) -> Tensor | None:
    """Return the ``(C, C)`` pair weights of present classes, ``[j, i]`` for column i."""
    if batch.matrix is None:
        return None
    target, n_classes = batch.target, batch.logits.shape[1]
    valid = (target != loss.ignore_index) & (target >= 0) & (target < n_classes)
    weights = weigh(target, n_classes, batch.matrix, batch.weight, valid)
    assert weights.matrix is not None
    return weights.matrix.to(torch.float32)


def ignored_class(loss: Loss) -> int:
    """Return the target of ignored samples; if there are none, a value that does not occur."""
    return -100 if loss.ignore_index is None else loss.ignore_index


@lru_cache(maxsize=64)
def numbers_on_device(numbers: Any, device: torch.device) -> Tensor:
    """Return the float64 numbers of a form on a device; cached, because a copy would wait for the device."""
    return torch.tensor(numbers, dtype=torch.float64).to(device)


def allocate(device: torch.device, zeros: Parts, others: Parts) -> tuple[tuple[Tensor, Tensor], SimpleNamespace]:
    """Allocate the vectors of a call in two pieces of memory, of which the first is 0; return both and the vectors."""
    n_zeros, n_others = (sum(_padded(*part) for part in parts.values()) for parts in (zeros, others))
    kind: dict[str, Any] = {"dtype": torch.uint8, "device": device}
    memory = torch.zeros(n_zeros, **kind), torch.empty(n_others, **kind)
    return memory, views(memory, zeros, others)


def views(memory: tuple[Tensor, ...], *parts: Parts) -> SimpleNamespace:
    """Return the vectors in pieces of memory that :func:`allocate` made, by their names."""
    found = {}
    for piece, named in zip(memory, parts, strict=True):
        begin = 0
        for name, (count, dtype) in named.items():
            found[name] = piece[begin : begin + count * dtype.itemsize].view(dtype)
            begin += _padded(count, dtype)
    return SimpleNamespace(**found)


def _padded(count: int, dtype: torch.dtype) -> int:
    """Return the bytes of a vector: each begins at a multiple of 16."""
    return -(-count * dtype.itemsize // 16) * 16
