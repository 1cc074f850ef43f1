"""One warning where batches of a single class teach a loss nothing."""

import warnings
from typing import Any

import torch
from torch import Tensor

__all__ = ["OneClassWatch"]

MESSAGE = (
    "a batch held samples of one class only: no pair of classes meets in it, its loss is 0 and it teaches nothing. "
    "Shuffle the data, or pass DataLoader(batch_sampler=mauc.nn.ClassCoverageBatchSampler(labels, batch_size))"
)
FIRST = 8
EVERY = 64
"""On a device the first batches are looked at, and then one in so many: a look is some small kernels and a copy."""


class OneClassWatch:
    """Looks at batches until it has warned once.

    On the host each batch is looked at, where its loss is 0. On CUDA some are, and nothing waits for the device: the
    answer is copied to the host in the background, and read at a later look, when it has arrived. A batch of one sample
    counts only after another such: the last batch of an epoch may be so small. Nothing is looked at while a graph is
    traced or captured.
    """

    def __init__(self) -> None:
        self.warned = False
        self.calls = 0
        self.lone = False
        self.answer: Tensor | None = None
        self.arrived: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the answer under way, which belongs to a stream."""
        return self.__dict__ | {"answer": None, "arrived": None}

    def look(self, loss: Tensor, target: Tensor, ignore_index: int) -> None:
        """Warn if this batch, or one looked at before, was of one class."""
        size = target.shape[0]
        self.lone, after_lone = size == 1, self.lone
        if size == 0 or (self.lone and not after_lone):
            return
        if loss.is_cuda:
            self.calls += 1
            if self.calls <= FIRST or self.calls % EVERY == 0:
                self._look_later(loss, target, ignore_index)
        elif loss.is_cpu and loss.item() == 0.0 and bool(_one_class(loss, target, ignore_index)):
            self._warn()

    def _look_later(self, loss: Tensor, target: Tensor, ignore_index: int) -> None:
        if torch.cuda.is_current_stream_capturing():
            return
        if self.answer is None:
            self.answer = torch.empty((), dtype=torch.bool, pin_memory=True)
        elif not self.arrived.query():
            return
        elif bool(self.answer):
            self._warn()
            return
        self.answer.copy_(_one_class(loss, target, ignore_index), non_blocking=True)
        self.arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self.arrived.record(torch.cuda.current_stream(loss.device))

    def _warn(self) -> None:
        self.warned = True
        warnings.warn(MESSAGE, stacklevel=7)


def _one_class(loss: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """Whether the samples that count are of one class; the loss then is 0, but a loss of 0 may also be a good one."""
    counts = target != ignore_index
    top = torch.iinfo(target.dtype)
    low, high = torch.where(counts, target, top.max).amin(), torch.where(counts, target, top.min).amax()
    return (loss.detach() == 0.0) & (low == high)
