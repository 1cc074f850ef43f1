"""When kernels run, how the work is cut for the device, and memory for the vectors of a call."""

import os
from contextlib import nullcontext
from functools import lru_cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._loss.batch import Batch, Loss, weigh

__all__ = [
    "ACTIVATIONS",
    "PAIRS",
    "Cut",
    "aligned",
    "has_triton",
    "held",
    "ignored_class",
    "in_rows",
    "normalised_pairs",
    "on_device",
    "optional",
    "placed",
    "processors_of",
    "runs_kernels",
    "vectors",
    "views",
]

ACTIVATIONS = {"softmax": 0, "sigmoid": 1, "identity": 2}
PAIRS = {"ovo": 0, "ova": 1, "matrix": 2}
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@lru_cache(maxsize=4)
def has_triton(device: str) -> bool:
    """On the host too where Triton interprets the kernels, for tests."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return (device == "cuda" or (device == "cpu" and interpreted)) and find_spec("triton") is not None


def runs_kernels(logits: Tensor) -> bool:
    """Whether kernels take these logits.

    None do under ``torch.use_deterministic_algorithms``: most add their sums atomically, and the last bits depend on
    the order.
    """
    if not has_triton(logits.device.type) or torch.are_deterministic_algorithms_enabled():
        return False
    return logits.dtype in DTYPES and logits.shape[0] > 0 and logits.shape[1] > 1


def on_device(x: Tensor) -> Any:
    """A context in which kernels are launched on the device of a tensor."""
    if x.device.type != "cuda" or x.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(x.device)


@lru_cache(maxsize=64)
def processors_of(device: torch.device) -> int:
    """How many multiprocessors the work is cut for."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def held(processors: int, warps: int, registers: int) -> int:
    """Programs that the device holds at once: a multiprocessor has 65536 registers."""
    return processors * min(32, 65536 // (32 * warps * registers))


class Cut(NamedTuple):
    """How the scores are cut: a program takes some columns, and tile after tile of rows.

    There are as many programs as the device holds at once: a few more would wait for all others to end.
    """

    rows: int
    columns: int
    warps: int
    registers: int
    """Of a thread at most, which is what decides how many programs a multiprocessor holds."""

    @property
    def options(self) -> dict[str, int]:
        """The compile-time arguments of a launch."""
        return {
            "COLUMNS": self.columns,
            "ROWS": self.rows,
            "num_warps": self.warps,
            "maxnreg": self.registers,
        }

    def grid(self, n: int, c: int, processors: int) -> tuple[int, int]:
        across, down = -(-c // self.columns), -(-n // self.rows)
        return across, max(1, min(down, held(processors, self.warps, self.registers) // across))


def aligned(logits: Tensor) -> bool:
    """Whether every row of float32 logits begins at 16 bytes."""
    return logits.dtype == torch.float32 and logits.stride(0) % 4 == 0


def in_rows(logits: Tensor) -> Tensor:
    """The logits with neighbouring columns side by side."""
    return logits if logits.stride(1) == 1 else logits.contiguous()


def optional(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Weight, sizes and ratios: what is not there a kernel is compiled not to read, but it wants some pointer."""
    some, ratios = batch.logits, batch.ratios
    if ratios is not None and ratios.dtype != torch.float32:
        ratios = ratios.to(torch.float32)
    weight = some if batch.weight is None else batch.weight.detach().contiguous()
    sizes = some if batch.sizes is None else batch.sizes.contiguous()
    return weight, sizes, some if ratios is None else ratios.contiguous()


def normalised_pairs(batch: Batch, loss: Loss) -> Tensor:
    """``(C, C)`` pair weights of the classes present, ``[j, i]`` for column i; anything where there is no matrix."""
    if batch.matrix is None:
        return batch.logits
    target, n_classes = batch.target, batch.logits.shape[1]
    valid = (target != loss.ignore_index) & (target >= 0) & (target < n_classes)
    weights = weigh(target, n_classes, weight=batch.weight, valid=valid, pairs=batch.matrix, class_counts=None)
    assert weights.matrix is not None
    return weights.matrix.to(torch.float32)


def ignored_class(loss: Loss) -> int:
    """The target of ignored samples; one that does not occur where none are."""
    return -100 if loss.ignore_index is None else loss.ignore_index


@lru_cache(maxsize=64)
def placed(numbers: Any, device: torch.device) -> Tensor:
    """The float64 numbers of a form on a device, where they stay: a copy would wait for the device."""
    return torch.tensor(numbers, dtype=torch.float64).to(device)


def vectors(device: torch.device, zeros: bool, **parts: tuple[int, torch.dtype]) -> tuple[Tensor, SimpleNamespace]:
    """One piece of memory, and the vectors of some lengths and dtypes in it by their names, each at 16 bytes."""
    sizes = {name: -(-count * dtype.itemsize // 16) * 16 for name, (count, dtype) in parts.items()}
    memory = (torch.zeros if zeros else torch.empty)(sum(sizes.values()), dtype=torch.uint8, device=device)
    return memory, views(memory, **parts)


def views(memory: Tensor, **parts: tuple[int, torch.dtype]) -> SimpleNamespace:
    """The vectors in a piece of memory that :func:`vectors` made."""
    found, begin = {}, 0
    for name, (count, dtype) in parts.items():
        length = count * dtype.itemsize
        found[name] = memory[begin : begin + length].view(dtype)
        begin += -(-length // 16) * 16
    return SimpleNamespace(**found)
