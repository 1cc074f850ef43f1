"""Settings of a module that follow it to its device, exactly."""

from collections.abc import Callable
from typing import Self

from torch import Tensor, nn

__all__ = ["ExactBuffers"]


class ExactBuffers(nn.Module):
    """A module whose buffers keep their dtype: ``.half()`` would make class sizes above 65504 infinite."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, exact in before.items():
            moved = getattr(self, name)
            if moved.dtype != exact.dtype:
                setattr(self, name, exact.to(moved.device))
        return self
