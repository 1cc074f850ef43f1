"""Triton kernels ready to launch: compiled once, and past Triton's look at every argument afterwards."""

import os
from functools import lru_cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

import torch
from torch import Tensor

__all__ = ["Kernel", "kind_of", "processors_of", "runs_kernels"]

_LOOKING = Lock()


@lru_cache(maxsize=4)
def runs_kernels(device: str) -> bool:
    """Whether kernels run on that kind of device; on the host where Triton interprets them, for tests."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return (device == "cuda" or (device == "cpu" and interpreted)) and find_spec("triton") is not None


class Kernel:
    """A kernel with its compile-time arguments, compiled at the first call.

    Later calls go past Triton's look at every argument, which at small shapes is most of the time; what the code
    depends on besides (whole numbers, dtypes, alignment) must be the same at every call. They may have addresses in
    place of tensors, the first has tensors. A profiler that hooks into Triton sees these kernels only if it is at work
    when they are first called.
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
        self.compiled: Any = None
        self.launch: Any = None
        self.before: tuple[Any, ...] = ()
        self.device = 0

    def __call__(self, *inputs: Any) -> None:
        if self.compiled is None:
            compiled = self.kernel[self.grid](*inputs, **self.constants, **self.options)  # and launched
            if compiled is not None:  # as it is where Triton interprets
                self.device = inputs[0].get_device()
                self.compiled = compiled  # last: another thread may wait for it
            return
        addresses = [x.data_ptr() if isinstance(x, Tensor) else x for x in inputs]
        stream = torch._C._cuda_getCurrentRawStream(self.device)
        if self.launch is None:
            with _LOOKING:
                self._look_on(stream, (*addresses, *self.positional))
        else:
            self.launch(*self.grid, stream, *self.before, *addresses, *self.positional)

    def _look_on(self, stream: int, arguments: tuple[Any, ...]) -> None:
        """Launches, and sees what Triton at last gives to its launcher, which is C, to do so itself at later calls.

        Triton's own way there, which asks for hooks that are not there, takes 14 µs of a host that takes 122 for all of
        cross-entropy's forward and backward pass.
        """
        launcher, seen = self.compiled.run, []
        launch = getattr(launcher, "launch", None)

        def spy(*all_arguments: Any) -> None:
            seen.append(all_arguments)
            launch(*all_arguments)  # type: ignore[misc]

        if launch is not None:
            launcher.launch = spy
        try:
            # What a compiled kernel gives for a grid launches at once; it wants the constants too, by their places.
            self.compiled[self.grid](*arguments, stream=stream)
        finally:
            if launch is not None:
                launcher.launch = launch
        if len(seen) > 1:  # another thread was seen too: look on at the next call
            return
        before = _lasting(launcher, seen, (*self.grid, stream), arguments)
        self.before = before or ()
        self.launch = self._ask_triton if before is None else launch

    def _ask_triton(self, x: int, y: int, z: int, stream: int, *arguments: Any) -> None:
        self.compiled[x, y, z](*arguments, stream=stream)


def _lasting(launcher: Any, seen: list[Any], begin: tuple[Any, ...], end: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What a launcher was given between the grid with the stream and the arguments; None if not the same always.

    Hooks, of which there are none but while a profiler of Triton's is at work, and what is told to them, become None,
    as which they are not called.
    """
    if not seen or seen[0][: len(begin)] != begin or seen[0][-len(end) :] != end:
        return None
    if any(getattr(launcher, memory, 0) for memory in ("global_scratch_size", "profile_scratch_size")):
        return None
    before = []
    for x in seen[0][len(begin) : -len(end)]:
        is_plain = x is None or isinstance(x, (int, bytes, tuple))
        is_of_hooks = type(x).__name__ in ("HookChain", "LazyDict") and not getattr(x, "calls", ())
        if not is_plain and not is_of_hooks:
            return None
        before.append(x if is_plain else None)
    return tuple(before)


def kind_of(x: Tensor | None) -> Any:
    """What compiled code depends on."""
    return None if x is None else (x.dtype, x.data_ptr() % 16)


def processors_of(device: torch.device) -> int:
    """How many multiprocessors the work is cut for."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2
