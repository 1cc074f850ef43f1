"""One evaluator, ``evaluate(batch, loss) -> (value, slope)``, with one autograd function and one operator around it.

A recipe has ``forward``, which computes the value and what the gradient needs, and ``gradient``, which computes the
gradient of the logits. Closed forms on CUDA are Triton kernels (:mod:`mauc.nn._triton`), everything else plain
operations (:mod:`mauc.nn._loss.plain`).
"""

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from mauc.nn._loss.batch import Batch, by_row, check_input
from mauc.nn._loss.device import is_autocast, is_transformed, without_autocast
from mauc.nn._loss.plain import Plain, differentiable
from mauc.nn._loss.processes import gather, process_group_for
from mauc.nn._loss.settings import Loss, class_ratios, fitting_counts, pair_matrix
from mauc.nn._triton.launch import runs_kernels
from mauc.surrogates import SURROGATES, Surrogate


class Recipe(Protocol):
    """A way to compute a loss."""

    def forward(self, batch: Batch, loss: Loss, *, wants_gradient: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the value, in float32 or float64, and the tensors that :meth:`gradient` needs."""

    def gradient(self, batch: Batch, loss: Loss, saved: tuple[Tensor, ...], upstream: Tensor) -> Tensor:
        """Return the gradient with respect to the logits, times ``upstream``, in their dtype."""


def recipe_for(batch: Batch, loss: Loss, group: Any = None) -> Recipe:
    """Return the recipe of a loss: the kernels if they compute it, or plain operations."""
    if group is not None:
        return Gathered(group)
    if runs_kernels(batch.logits):
        from mauc.nn._triton import closed  # imports Triton

        kernels: Recipe | None = closed.recipe_for(batch, loss)
        if kernels is not None:
            return kernels
    return Plain()


def evaluate(batch: Batch, loss: Loss, *, gradient: bool = True) -> tuple[Tensor, Tensor | None]:
    """Return the loss, in float32 or float64, and its gradient with respect to the logits, without a graph."""
    with torch.no_grad():
        recipe = recipe_for(batch, loss)
        value, saved = recipe.forward(batch, loss, wants_gradient=gradient)
        return value, recipe.gradient(batch, loss, saved, torch.ones_like(value)) if gradient else None


OVER_RANKS = (
    "are not available with sync=True: gather the logits and the targets of all ranks, with "
    "torch.distributed.nn.functional.all_gather, and pass them with sync=False"
)


class Gathered(NamedTuple):
    """The recipe for several processes: a rank evaluates the batches of all, and takes the gradient of its own rows."""

    group: Any

    def forward(self, batch: Batch, loss: Loss, *, wants_gradient: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the value of the whole batch, and the gradient of this rank's rows."""
        whole, rows = gather(batch, self.group)
        if whole.logits.itemsize == 2:  # the gradient is rounded to half precision after the factors, not before
            whole = whole._replace(logits=whole.logits.float())
        value, slope = evaluate(whole, loss, gradient=wants_gradient)
        # DistributedDataParallel divides by the number of ranks.
        return value, () if slope is None else (slope[rows] * dist.get_world_size(self.group),)

    def gradient(self, batch: Batch, loss: Loss, saved: tuple[Tensor, ...], upstream: Tensor) -> Tensor:
        """Return the gradient with respect to the logits, times ``upstream``."""
        return (saved[0] * upstream.to(saved[0].dtype)).to(batch.logits.dtype)


def loss_of(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    loss: Loss,
    pairs: Any,
    counts: Tensor | None,
    sync: bool,
    process_group: Any,
    ratios: Tensor | None = None,
) -> Tensor:
    """Return the loss of a batch; ``ratios`` are the r of the log-loss if they are known before the batch."""
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        logits, target, weight = by_row(logits, target, weight)
    n_classes, device = logits.shape[1], logits.device
    if counts is not None and n_classes > 1:
        fitting_counts(counts, n_classes)
    whole = check_input(logits, target, weight, loss.ignore_index, loss.unseen) and not sync
    matrix = pair_matrix(pairs, n_classes).to(device) if loss.pairs == "matrix" else None
    sizes = None
    if counts is not None and (ratios is None or loss.pairs == "ova"):
        sizes = counts.to(device)
    if loss.log_loss and ratios is None:
        assert sizes is not None  # read_settings has checked it
        ratios = class_ratios(loss.pairs if matrix is None else matrix, sizes)
    ratios = ratios if ratios is None or ratios.device == device else ratios.to(device)
    batch = Batch(logits, target, weight, sizes if loss.pairs == "ova" else None, ratios, matrix, whole)
    return attach(batch, loss, process_group_for(process_group) if sync else None)


def attach(batch: Batch, loss: Loss, group: Any = None) -> Tensor:
    """Return the loss with its gradient attached, in the dtype that users see."""
    dtype, device = batch.logits.dtype, batch.logits.device
    if not torch.compiler.is_compiling():
        value = _eager(batch, loss, group)
    elif group is None and SURROGATES.get(loss.surrogate.name) is type(loss.surrogate):
        value = _operator(batch, loss)
    else:  # the operator takes surrogates by name: another object breaks the graph here
        value = _outside_the_graph(batch, loss, group)
    return value if value.dtype == dtype or is_autocast(device) else value.to(dtype)


def _eager(batch: Batch, loss: Loss, group: Any) -> Tensor:
    if any(is_transformed(x) for x in batch[:3] if x is not None):
        if group is not None:
            raise NotImplementedError(f"transforms of torch.func {OVER_RANKS}")
        return differentiable(batch, loss)
    recipe = recipe_for(batch, loss, group)
    if batch.logits.requires_grad and torch.is_grad_enabled():
        value: Tensor = _Loss.apply(batch.logits, batch, loss, recipe)  # type: ignore[no-untyped-call]
        return value
    return recipe.forward(batch, loss, wants_gradient=False)[0]


_outside_the_graph: Any = torch.compiler.disable(_eager)  # type: ignore[no-untyped-call]


class _Loss(torch.autograd.Function):
    """The autograd function of a recipe."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, batch: Batch, loss: Loss, recipe: Recipe) -> Tensor:
        value, saved = recipe.forward(batch, loss, wants_gradient=True)
        ctx.recipe, ctx.loss, ctx.whole = recipe, loss, batch.whole
        ctx.save_for_backward(*batch[:6], *saved)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        logits, target, weight, sizes, ratios, matrix, *saved = ctx.saved_tensors
        batch = Batch(logits, target, weight, sizes, ratios, matrix, ctx.whole)
        if torch.is_grad_enabled():  # create_graph=True
            return _differentiable_slope(ctx.recipe, batch, ctx.loss, tuple(saved), upstream), None, None, None
        return ctx.recipe.gradient(batch, ctx.loss, saved, upstream), None, None, None


def _differentiable_slope(
    recipe: Recipe, batch: Batch, loss: Loss, saved: tuple[Tensor, ...], upstream: Tensor
) -> Tensor:
    """Return the gradient as a differentiable function of the logits; or one that refuses to be differentiated."""
    if not isinstance(recipe, Gathered):
        with without_autocast(batch.logits.device):
            (slope,) = torch.autograd.grad(differentiable(batch, loss), batch.logits, create_graph=True)
        return slope * upstream.to(slope.dtype)
    message = f"second derivatives of the loss {OVER_RANKS}"
    constant: Tensor = _refuse_derivative(recipe.gradient(batch, loss, saved, upstream), batch.logits, message)
    return constant


# The operator that torch.compile sees, around the same call.


@lru_cache(maxsize=64)
def _surrogate(name: str, parameters: tuple[float, ...]) -> Surrogate:
    return SURROGATES[name](*parameters)


@torch.library.custom_op("mauc::loss", mutates_args=())
def _operation(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    sizes: Tensor | None,
    ratios: Tensor | None,
    matrix: Tensor | None,
    surrogate: str,
    parameters: Sequence[float],
    activation: str,
    pairs: str,
    ignore_index: int,
    log_loss: float,
    log1p: bool,
    limit: float | None,
    gradient: bool,
) -> tuple[Tensor, Tensor]:
    loss = Loss(_surrogate(surrogate, tuple(parameters)), activation, pairs, ignore_index, log_loss, log1p, limit)
    value, slope = evaluate(Batch(logits, target, weight, sizes, ratios, matrix), loss, gradient=gradient)
    return value, logits.new_empty(0) if slope is None else slope


@_operation.register_fake
def _(logits: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    gradient = others[-1]
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    return logits.new_empty((), dtype=wide), logits.new_empty(logits.shape if gradient else (0,))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[1])


def _backward(ctx: Any, upstream: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    logits, gradient = ctx.saved_tensors
    message = "second derivatives of the loss are not available inside torch.compile: compile the rest without the loss"
    return gradient * _refuse_derivative(upstream, logits, message).to(gradient.dtype), *(None,) * 14


_operation.register_autograd(_backward, setup_context=_keep)


@torch.library.custom_op("mauc::refuse_derivative", mutates_args=())
def _refuse_derivative(x: Tensor, logits: Tensor, message: str) -> Tensor:
    """Return x unchanged, as a function of the logits that cannot be differentiated.

    If the gradient were a constant in the graph, second derivatives would be wrong without notice. They raise instead.
    """
    return x.clone()


@_refuse_derivative.register_fake
def _(x: Tensor, logits: Tensor, message: str) -> Tensor:
    return torch.empty_like(x)


def _raise(ctx: Any, upstream: Tensor) -> None:
    raise NotImplementedError(ctx.message)


def _keep_message(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.message = inputs[2]


_refuse_derivative.register_autograd(_raise, setup_context=_keep_message)


def _operator(batch: Batch, loss: Loss) -> Tensor:
    surrogate, ignored = loss.surrogate, loss.ignore_index
    parameters = [float(getattr(surrogate, field.name)) for field in fields(surrogate)]  # type: ignore[arg-type]
    settings = (surrogate.name, parameters, loss.activation, loss.pairs, -100 if ignored is None else ignored)
    value: Tensor = _operation(
        *batch[:6], *settings, loss.log_loss, loss.log1p, loss.limit, batch.logits.requires_grad
    )[0]
    return value
