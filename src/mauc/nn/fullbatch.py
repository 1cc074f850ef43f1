"""The exact loss of a whole data set, and its gradient in the parameters, in the memory of a chunk."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

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
        Maps rows to rows of logits.
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
    if len(X) != len(target) or len(X) == 0:
        came = f"{len(X)} rows for {len(target)} targets"
        raise invalid("X", "must have one row per target, and at least one", came, "pass the data of the same samples")
    place = next((p.device for p in model.parameters()), X.device)
    chunks = torch.split(X, chunk_size)
    with torch.no_grad(), torch.random.fork_rng([place] if place.type == "cuda" else []):
        before = [buffer.clone() for buffer in model.buffers()]
        logits = torch.cat([model(chunk.to(place)) for chunk in chunks])
        for buffer, value in zip(model.buffers(), before, strict=True):
            buffer.copy_(value)
    logits.requires_grad_()
    target = target.to(place)
    with torch.enable_grad():
        loss = loss_fn(logits, target) if weight is None else loss_fn(logits, target, weight.to(place))
        (gradient,) = torch.autograd.grad(loss, logits)
        for chunk, part in zip(chunks, torch.split(gradient, chunk_size), strict=True):
            torch.autograd.backward(model(chunk.to(place)), part)
    return loss.detach()
