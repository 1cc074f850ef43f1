"""Triton kernels ready to launch: compiled once, and past Triton's look at every argument afterwards."""

import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

__all__ = ["Kernel", "kind_of", "processors_of", "runs_kernels"]

NUMBERS = frozenset({int, float})


@lru_cache(maxsize=4)
def runs_kernels(device: str) -> bool:
    """Whether kernels run on that kind of device; on the host where Triton interprets them, for tests."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return (device == "cuda" or (device == "cpu" and interpreted)) and find_spec("triton") is not None


class Kernel:
    """A kernel with its compile-time arguments, compiled at the first call.

    Later calls go past Triton's look at every argument, which at small shapes is most of the time; what the code
    depends on besides (whole numbers, dtypes, alignment) must be the same at every call. They may have addresses in
    place of tensors, the first has tensors.
    """

    def __init__(
        self, kernel: Any, grid: tuple[int, ...], warps: int, constants: dict[str, Any], registers: int | None = None
    ) -> None:
        names = tuple(kernel.arg_names[-len(constants) :])
        assert names == tuple(constants), f"constants go by their places: {names}"
        self.kernel, self.constants = kernel, constants
        self.options = {"num_warps": warps} if registers is None else {"num_warps": warps, "maxnreg": registers}
        self.grid = (*grid, 1, 1)[:3]
        self.positional = tuple(constants.values())
        self.launch: Any = None
        self.device = 0

    def __call__(self, *inputs: Any) -> None:
        if self.launch is not None:
            # Triton would ask for device and stream in several calls, and the driver about each tensor.
            addresses = [x if x.__class__ in NUMBERS else x.data_ptr() for x in inputs]
            self.launch(*addresses, *self.positional, stream=torch._C._cuda_getCurrentRawStream(self.device))
            return
        compiled = self.kernel[self.grid](*inputs, **self.constants, **self.options)  # and launched
        if compiled is not None:  # as it is where Triton interprets
            # What a compiled kernel gives for a grid launches at once; it wants the constants too, by their places.
            self.launch = compiled[self.grid]
            self.device = inputs[0].get_device()


def kind_of(x: Tensor | None) -> Any:
    """What compiled code depends on."""
    return None if x is None else (x.dtype, x.data_ptr() % 16)


def processors_of(device: torch.device) -> int:
    """How many multiprocessors the work is cut for."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2
