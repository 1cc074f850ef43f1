"""The exact global batch: what the processes of a group tell each other so that a batch is the union of theirs.

The pair risk is not a mean over samples, so averaging the risks of the ranks is another, biased risk: pairs across
ranks are lost, and a class that one rank lacks drops out there. With ``sync=True`` the sums that define the risk are
those of all ranks.

What is sent is what the schemes sum, for ``C`` classes and ``N`` samples over all ranks: a few numbers a class for
closed forms, ``(2 K + 2) C`` Chebyshev moments for a polynomial of degree K; for ranked losses each sample's own-class
score, class and weight, gathered, and ``K (N + C)`` numbers for each piece of degree K. Only where no polynomial
follows the loss, and all pairs are taken one by one, the scores themselves are gathered.

Every rank returns the global value, and its gradient times the number of ranks: ``DistributedDataParallel`` averages
over ranks, so its parameter gradients are those of one process on the whole batch. Without it, sum the gradients over
ranks and divide by their number, as it does.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mauc._validation import invalid

__all__ = ["ALONE", "Communicator", "World", "communicator"]


class Communicator:
    """One process alone: every exchange is the identity."""

    size = 1

    def sum(self, x: Tensor) -> Tensor:
        """The sum over ranks."""
        return x

    def sums(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """The sums over ranks of several tensors, in one exchange."""
        return parts

    def largest(self, x: Tensor) -> Tensor:
        """The elementwise maximum over ranks."""
        return x

    def gather(self, x: Tensor) -> tuple[Tensor, int]:
        """``(k, N)`` columns of all ranks side by side, and where those of this rank begin."""
        return x, 0


class World(Communicator):
    """The ranks of a process group."""

    def __init__(self, group: Any = None) -> None:
        self.group = group
        self.size = dist.get_world_size(group)
        self.rank = dist.get_rank(group)

    def sum(self, x: Tensor) -> Tensor:
        x = x.contiguous()
        dist.all_reduce(x, dist.ReduceOp.SUM, group=self.group)
        return x

    def sums(self, *parts: Tensor) -> tuple[Tensor, ...]:
        whole = self.sum(torch.cat([part.reshape(-1) for part in parts]))
        flat = torch.split(whole, [part.numel() for part in parts])
        return tuple(x.reshape(part.shape) for x, part in zip(flat, parts, strict=True))

    def largest(self, x: Tensor) -> Tensor:
        # NaN is not ordered, and back ends differ in what they make of it: send it as a flag of its own.
        lost = x.isnan()
        both = torch.stack([torch.where(lost, -torch.inf, x), lost.to(x.dtype)])
        dist.all_reduce(both, dist.ReduceOp.MAX, group=self.group)
        return torch.where(both[1] > 0, torch.nan, both[0])

    def gather(self, x: Tensor) -> tuple[Tensor, int]:
        here = torch.tensor([x.shape[1]], device=x.device)
        sizes = [torch.empty_like(here) for _ in range(self.size)]
        dist.all_gather(sizes, here, group=self.group)
        lengths = [int(size) for size in sizes]
        # Ranks may have uneven batches, all_gather wants even ones: pad to the largest.
        padded = x.new_zeros((x.shape[0], max(lengths)))
        padded[:, : x.shape[1]] = x
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded, group=self.group)
        everyone = torch.cat([part[:, :length] for part, length in zip(parts, lengths, strict=True)], dim=1)
        return everyone, sum(lengths[: self.rank])


ALONE = Communicator()


def communicator(sync: bool, group: Any = None) -> Communicator:
    """The ranks of ``group`` if ``sync``, else this process alone."""
    if not sync:
        return ALONE
    if not (dist.is_available() and dist.is_initialized()):
        raise invalid(
            "sync",
            "needs a process group",
            "sync=True without one",
            "call torch.distributed.init_process_group, start with torchrun, or pass sync=False",
        )
    return World(group)
