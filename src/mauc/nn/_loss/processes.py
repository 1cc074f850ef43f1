"""One batch over all processes: every rank gathers the batches of all and computes the loss of the whole.

The pair risk is not a mean over samples. Averaging the risks of the ranks loses the pairs across ranks, and a class
that one rank lacks drops out there. Every rank therefore returns the value of the whole batch, and the gradient of its
own rows times the number of ranks: ``DistributedDataParallel`` averages over ranks, so its parameter gradients are
those of one process on the whole batch.

Every rank must therefore compute the loss equally often: a rank with more batches waits for the others.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mauc._validation import invalid
from mauc.nn._loss.batch import Batch


def process_group_for(group: Any) -> Any:
    """Return the process group to gather over, or None for this process alone."""
    if not (dist.is_available() and dist.is_initialized()):
        advice = "call torch.distributed.init_process_group, start with torchrun, or pass sync=False"
        raise invalid("sync", "needs a process group", "sync=True without one", advice)
    group = dist.group.WORLD if group is None else group
    return group if dist.get_world_size(group) > 1 else None


def gather(batch: Batch, group: Any) -> tuple[Batch, slice]:
    """Return the batch of all ranks, and the rows of this rank in it."""
    try:
        return _gather(batch, group)
    except RuntimeError as error:
        raise RuntimeError(
            "sync=True must compute the loss equally often on every rank, got no batch from another rank: it failed, "
            "or has fewer batches; use ClassCoverageBatchSampler, which deals out equal numbers, or pass empty batches "
            "there (model.join() does not help, because the loss communicates too)"
        ) from error


def _gather(batch: Batch, group: Any) -> tuple[Batch, slice]:
    here = torch.tensor([len(batch.target)], device=batch.target.device)
    sizes = [torch.empty_like(here) for _ in range(dist.get_world_size(group))]
    dist.all_gather(sizes, here, group=group)
    lengths, rank = [int(size) for size in sizes], dist.get_rank(group)
    whole = batch._replace(
        logits=_gather_rows(batch.logits.detach(), lengths, group),
        target=_gather_rows(batch.target, lengths, group),
        weight=None if batch.weight is None else _gather_rows(batch.weight.detach(), lengths, group),
    )
    begin = sum(lengths[:rank])
    return whole, slice(begin, begin + lengths[rank])


def _gather_rows(x: Tensor, lengths: list[int], group: Any) -> Tensor:
    """Concatenate the rows of all ranks, padded in between: ``all_gather`` needs parts of equal size."""
    padded = x.new_zeros((max(lengths), *x.shape[1:]))
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in lengths]
    dist.all_gather(parts, padded, group=group)
    return torch.cat([part[:length] for part, length in zip(parts, lengths, strict=True)])
