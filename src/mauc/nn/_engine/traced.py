"""The loss as one operation of torch: what ``torch.compile`` and ``torch.func`` see of it.

Neither can look into the kernels, or into a search whose steps depend on the data. To them the loss is an operation
with a value and a gradient, both computed at once; in the backward pass the gradient is multiplied by what comes from
above. A second derivative through it is refused.
"""

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from mauc.nn._engine.fused import place_numbers
from mauc.nn._engine.second_order import mark_compiled
from mauc.surrogates import SURROGATES, Surrogate

__all__ = ["can_be_traced", "traced_loss"]


def can_be_traced(surrogate: Surrogate) -> bool:
    """Whether the surrogate can be told by its name and numbers."""
    return SURROGATES.get(surrogate.name) is type(surrogate)


@lru_cache(maxsize=64)
def _surrogate(name: str, parameters: tuple[float, ...]) -> Surrogate:
    return SURROGATES[name](*parameters)


@torch.library.custom_op("mauc::loss", mutates_args=())
def _operation(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ratios: Tensor | None,
    matrix: Tensor | None,
    surrogate: str,
    parameters: Sequence[float],
    activation: str,
    pairs: str,
    ignore_index: int,
    log_loss: float,
    log1p: bool,
    gradient: bool,
) -> tuple[Tensor, Tensor]:
    from mauc.nn._engine.loss import value_and_gradient

    return value_and_gradient(
        logits,
        target,
        _surrogate(surrogate, tuple(parameters)),
        weight=weight,
        class_counts=class_counts,
        ratios=ratios,
        pairs=pairs if matrix is None else matrix,
        activation=activation,
        ignore_index=ignore_index,
        log_loss=log_loss,
        log1p=log1p,
        gradient=gradient,
    )


@_operation.register_fake
def _(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ratios: Tensor | None,
    matrix: Tensor | None,
    surrogate: str,
    parameters: Sequence[float],
    *others: Any,
) -> tuple[Tensor, Tensor]:
    with _disable_current_modes():  # these numbers are real, and outlive the graph that is being made
        place_numbers(_surrogate(surrogate, tuple(parameters)), logits.device)
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    return logits.new_empty((), dtype=wide), logits.new_empty(logits.shape if others[-1] else (0,))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(inputs[0], output[1])


def _backward(ctx: Any, upstream: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    logits, gradient = ctx.saved_tensors
    return gradient * mark_compiled(upstream, logits).to(gradient.dtype), *(None,) * 13


_operation.register_autograd(_backward, setup_context=_keep)


def traced_loss(
    logits: Tensor,
    target: Tensor,
    surrogate: Surrogate,
    *,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ratios: Tensor | None,
    ignore_index: int,
    log_loss: float,
    log1p: bool,
    gradient: bool,
) -> Tensor:
    """The loss as an operation, float32 or float64."""
    parameters = [float(getattr(surrogate, field.name)) for field in fields(surrogate)]  # type: ignore[arg-type]
    matrix = None if isinstance(pairs, str) else pairs
    kind = pairs if isinstance(pairs, str) else "matrix"
    settings = (surrogate.name, parameters, activation, kind, ignore_index, log_loss, log1p, gradient)
    inputs = (logits, target, weight, class_counts, ratios, matrix, *settings)
    if torch.compiler.is_compiling():
        value: Tensor = _operation(*inputs)[0]
        return value
    return _Traced.apply(*inputs)[0]  # type: ignore[no-untyped-call]


class _Traced(torch.autograd.Function):
    """The operation for :mod:`torch.func`, which wants its context set up apart."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        value, gradient = _operation(*inputs)
        return value, gradient

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _keep(ctx, inputs, output)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
        logits, gradient = ctx.saved_tensors
        tied: Tensor = _Tied.apply(upstream, logits)  # type: ignore[no-untyped-call]
        return gradient * tied.to(gradient.dtype), *(None,) * 13

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """One batch of samples after another: a search depends on the scores of its own batch."""
        given = list(zip(inputs, in_dims, strict=True))
        found = [
            _Traced.apply(*(x.select(d, k) if isinstance(d, int) else x for x, d in given))  # type: ignore[no-untyped-call]
            for k in range(info.batch_size)
        ]
        values, gradients = zip(*found, strict=True)
        return (torch.stack(values), torch.stack(gradients)), (0, 0)


class _Tied(torch.autograd.Function):
    """What :func:`mark_compiled` is for a graph: the gradient is a constant here, and a second derivative an error."""

    generate_vmap_rule = True

    @staticmethod
    def forward(upstream: Tensor, logits: Tensor) -> Tensor:
        return upstream.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> None:
        raise NotImplementedError(
            "second derivatives of the loss are not available by torch.func but for 'squared' and 'exponential': take "
            "torch.autograd.grad with create_graph=True"
        )
