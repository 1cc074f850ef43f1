"""The exact loss of a whole data set, and its gradient in the parameters, in the memory of a chunk."""

from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mauc._validation import check_whole, invalid

__all__ = ["full_batch_backward"]


def full_batch_backward(
    model: nn.Module,
    loss_fn: Callable[..., Tensor],
    X: Tensor,
    target: Tensor,
    *,
    chunk_size: int,
    weight: Tensor | None = None,
) -> Tensor:
    """Compute ``loss_fn(model(X), target).backward()`` with the graph of one chunk in memory at a time.

    A loss over pairs of samples is not a sum over samples, so the gradients of chunks do not add up to its gradient.
    This function computes the logits of all chunks without a graph, then the gradient of the loss with respect to the
    logits, and then sends the part of each chunk back through the model.

    Parameters
    ----------
    model : Module
        Maps rows to rows of logits; may be in a ``DistributedDataParallel``.
    loss_fn : callable
        ``loss_fn(logits, target)``, or ``loss_fn(logits, target, weight)`` where ``weight`` is given, such as
        :class:`mauc.nn.MAUCLoss`.
    X : (N, ...) tensor
        May be on another device than the model; chunks are moved.
    target : (N,) classes
    chunk_size : int
        Number of rows that pass through the model at a time.
    weight : (N,) tensor, optional

    Returns
    -------
    scalar tensor
        The loss, detached. Gradients are added to ``.grad`` of the parameters, as by ``backward()``.

    Notes
    -----
    It takes two forward passes, one backward pass, and memory for the ``(N, C)`` logits, their gradient and one chunk.

    Dropout draws the same masks in both passes. *Batch normalisation* in training mode normalises each chunk
    separately, so the logits differ from those of one pass over all rows: put these layers in ``eval()`` mode for
    equality. Buffers, such as running means, change in the second pass only.

    *Several processes.* With ``DistributedDataParallel``, the gradients are averaged over the ranks once, in the last
    chunk, so the ranks may have different numbers of rows and of chunks, and a rank may have no rows. With
    ``MAUCLoss(sync=True)`` the result is that of one process on all rows. Models that shard their parameters
    communicate in every chunk and are refused.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn import MAUCLoss, full_batch_backward
    >>> X, y = torch.eye(6), torch.tensor([0, 1, 2, 0, 1, 2])
    >>> model = torch.nn.Linear(6, 3)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    >>> for _ in range(10):
    ...     optimizer.zero_grad()
    ...     loss = full_batch_backward(model, MAUCLoss(surrogate="squared", log_loss=0.0), X, y, chunk_size=2)
    ...     optimizer.step()
    """
    check_whole("chunk_size", chunk_size, least=1)
    replica = _replica(model)
    if len(X) != len(target) or (len(X) == 0 and replica is None):
        came = f"{len(X)} rows for {len(target)} targets"
        raise invalid("X", "must have one row per target, and at least one", came, "pass the data of the same samples")
    place = next((p.device for p in model.parameters()), X.device)
    # Ranks may differ in their chunks, so only two calls communicate: the first copies the buffers of rank 0, the last
    # averages the gradients.
    alone = model if replica is None else replica.module
    chunks = torch.split(X, chunk_size)
    before: list[Tensor] = []
    hook = alone.register_forward_pre_hook(lambda *_: before.extend(buffer.clone() for buffer in alone.buffers()))
    with torch.no_grad(), torch.random.fork_rng([place] if place.type == "cuda" else []):
        with nullcontext() if replica is None else replica.no_sync():
            first = model(chunks[0].to(place))
        hook.remove()
        logits = torch.cat([first, *(alone(chunk.to(place)) for chunk in chunks[1:])])
        for buffer, value in zip(alone.buffers(), before, strict=True):
            buffer.copy_(value)
    logits.requires_grad_()
    target = target.to(place)
    with torch.enable_grad():
        loss = loss_fn(logits, target) if weight is None else loss_fn(logits, target, weight.to(place))
        (gradient,) = torch.autograd.grad(loss, logits)
        *others, last = zip(chunks, torch.split(gradient, chunk_size), strict=True)
        for chunk, part in others:
            torch.autograd.backward(alone(chunk.to(place)), part)
        torch.autograd.backward(model(last[0].to(place)), last[1])
    return loss.detach()


def _replica(model: nn.Module) -> DistributedDataParallel | None:
    """Return the model if its gradients are averaged over ranks; refuse models that communicate in every chunk."""
    if isinstance(model, DistributedDataParallel):
        return model
    if dist.is_available() and dist.is_initialized():
        from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel

        for part in model.modules():
            if isinstance(part, DistributedDataParallel | FSDPModule | FullyShardedDataParallel):
                requirement = "must be a DistributedDataParallel, or have no part that communicates with other ranks"
                came = f"{type(part).__name__} in {type(model).__name__}"
                advice = "the ranks may have different numbers of chunks: pass DistributedDataParallel(model)"
                raise invalid("model", requirement, came, advice)
    return None
