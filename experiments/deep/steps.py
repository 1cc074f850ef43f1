"""Steps of an optimiser; on a GPU recorded once for each batch size, and replayed.

A step of a small network has some sixty launches of a few microseconds each, and the host needs a millisecond to issue
them; a recorded graph is issued once.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Steps"]

WARM = 3
"""Steps of a size that are taken without a recording: the first ones choose algorithms and make the optimiser's
state."""


@dataclass(frozen=True)
class _Recording:
    graph: Any
    x: Tensor
    y: Tensor


class Steps:
    """The steps of one network, loss and optimiser.

    Parameters
    ----------
    network, loss : Module
    optimizer : Optimizer
        Its numbers that change (rates, counts) are tensors on the device where steps are replayed, or
        :meth:`forget` is called when one has changed.
    place : torch.device
    replay : bool
        Only on a GPU, on a stream that is not the default one.
    """

    def __init__(
        self,
        network: nn.Module,
        loss: nn.Module,
        optimizer: torch.optim.Optimizer,
        place: torch.device,
        *,
        replay: bool,
    ) -> None:
        self.network, self.loss, self.optimizer, self.replay = network, loss, optimizer, replay
        self._total = torch.zeros((), device=place)
        self._seen: Counter[torch.Size] = Counter()
        self._recorded: dict[torch.Size, _Recording] = {}

    def epoch(self, batches: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
        """Take one step for each batch; return the mean of their losses."""
        self._total.zero_()
        n_steps = 0
        for x, y in batches:
            self._step(x, y)
            n_steps += 1
        return self._total / n_steps

    def forget(self) -> None:
        """Record anew: a number that is not on the device has changed."""
        self._recorded.clear()

    def _step(self, x: Tensor, y: Tensor) -> None:
        size = x.shape
        if size in self._recorded:
            known = self._recorded[size]
            known.x.copy_(x)
            known.y.copy_(y)
            known.graph.replay()
            return
        self._seen[size] += 1
        if not self.replay or self._seen[size] <= WARM:
            self._take(x, y)
            return
        known = self._recorded[size] = _Recording(torch.cuda.CUDAGraph(), x.clone(), y.clone())
        # On the stream that is current, the one of the first steps: gradients are summed where they were made.
        with torch.cuda.graph(known.graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
            self._take(known.x, known.y)
        known.graph.replay()  # a recording computes nothing

    def _take(self, x: Tensor, y: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        value = self.loss(self.network(x), y)
        value.backward()
        self.optimizer.step()
        self._total += value.detach()
