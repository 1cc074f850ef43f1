"""A kind of call in fused kernels: what is decided for it once, its evaluation, and how the gradient is attached.

At small batches the host's part is the time. All that depends on settings, shapes and dtypes is decided at the first
call of a kind, in a :class:`Plan`; others of its kind follow it.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from mauc.nn._engine import fused_bilinear, fused_moments, fused_ranked, fused_tiny
from mauc.nn._engine.fused_bilinear import Bilinear
from mauc.nn._engine.fused_moments import Form
from mauc.nn._engine.fused_tiny import Pairwise
from mauc.nn._engine.second_order import Again, differentiable_again
from mauc.nn._engine.tiles import Data, Settings
from mauc.nn._engine.truncated import Truncated

__all__ = ["AgainOf", "Plan", "evaluate", "number_on"]

AgainOf = Callable[[Tensor, Tensor | None, Tensor], Tensor]
"""Of classes, weights and logits: the same loss in plain operations, for second derivatives."""


class Plan(NamedTuple):
    """What holds for all calls of a kind."""

    settings: Settings
    recipe: Any
    """The kernels."""
    strides: tuple[int, ...]
    """Of the logits, which the kernels are compiled for."""
    sizes: Tensor | None
    ratios: Tensor | None
    scale: float
    """Of the loss over what the kernels compute."""
    gradient: bool
    again_of: AgainOf

    @classmethod
    def of(cls, data: Data, settings: Settings, again_of: AgainOf, *, gradient: bool) -> Self:
        """The plan for such a call."""
        recipe = _recipe_of(data, settings, torch.float32 if gradient else None)
        return cls(
            settings, recipe, data.logits.stride(), data.sizes, data.ratios, _scale(settings), gradient, again_of
        )

    def follow(self, logits: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        """The loss of another batch of the kind."""
        return self.loss(Data(logits, target, weight, self.sizes, self.ratios, None))

    def loss(self, data: Data) -> Tensor:
        """The loss, with its gradient attached."""
        logits = data.logits
        if _is_current(logits.device):
            value: Tensor = _apply(logits, data, self)
        else:
            with torch.cuda.device(logits.device):
                value = _apply(logits, data, self)
        return value if self.scale == 1.0 else self.scale * value


def evaluate(data: Data, settings: Settings, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """The loss and its gradient, without a graph; no memory of the call is kept, for a CUDA graph may record it."""
    logits, scale = data.logits, _scale(settings)
    value = torch.empty((), dtype=settings.dtype, device=logits.device)
    out = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device) if gradient else None
    recipe = _recipe_of(data, settings, logits.dtype if gradient else None)
    with nullcontext() if _is_current(logits.device) else torch.cuda.device(logits.device):
        if isinstance(settings.form, Pairwise):
            fused_tiny.tiny_loss(recipe, data, settings, value, out)
        else:
            saved = _forward(recipe, data, settings, value, gradient=gradient, keeps_scratch=False)
            if out is not None:
                _gradient(recipe, data, settings, saved, number_on(scale, logits.device), out)
        return value if scale == 1.0 else scale * value, out


@lru_cache(maxsize=64)
def number_on(number: float, device: torch.device) -> Tensor:
    """A number on a device, where it stays; copied there by the host, which waits: any stream may read it."""
    return torch.tensor(number, dtype=torch.float32).to(device)


def _is_current(device: torch.device) -> bool:
    return device.type == "cpu" or device.index == torch.cuda.current_device()


def _scale(settings: Settings) -> float:
    return settings.form.scale if isinstance(settings.form, Form) else 1.0


def _recipe_of(data: Data, settings: Settings, dtype: torch.dtype | None) -> Any:
    """The kernels; ``dtype``: of the gradient that is computed with the value, if it is wanted."""
    form = settings.form
    if isinstance(form, Pairwise):
        return fused_tiny.recipe_of(data, settings, dtype)
    if isinstance(form, Truncated):
        return fused_ranked.recipe_of(data, settings, dtype is not None)
    if isinstance(form, Bilinear):
        return fused_bilinear.recipe_of(data, settings, dtype is not None)
    return fused_moments.recipe_of(data, settings)


def _forward(
    recipe: Any, data: Data, settings: Settings, value: Tensor, *, gradient: bool, keeps_scratch: bool = True
) -> tuple[Tensor, ...]:
    """Fills in the value over the scale; what the gradient goes on with.

    ``keeps_scratch``: memory may be kept from call to call; else the gradient is computed next.
    """
    form = settings.form
    if isinstance(form, Pairwise):
        slope = torch.empty(data.logits.shape, device=data.logits.device) if gradient else None
        fused_tiny.tiny_loss(recipe, data, settings, value, slope)
        return () if slope is None else (slope,)
    if isinstance(form, Truncated):
        return fused_ranked.ranked_forward(recipe, data, settings, value, gradient=gradient)
    if isinstance(form, Bilinear):
        return fused_bilinear.bilinear_forward(recipe, data, settings, value, gradient=gradient)
    return (fused_moments.moments_forward(recipe, data, settings, value, keeps_scratch=keeps_scratch),)


def _gradient(
    recipe: Any, data: Data, settings: Settings, saved: tuple[Tensor, ...], upstream: Tensor, out: Tensor
) -> None:
    """Fills in the gradient of that, times ``upstream``."""
    if isinstance(settings.form, Pairwise):
        torch.mul(saved[0], upstream, out=out)
        return
    if upstream.data_ptr() % 16:
        upstream = upstream.clone()
    if isinstance(settings.form, Truncated):
        fused_ranked.ranked_gradient(recipe, data, settings, fused_ranked.Saved(*saved), upstream, out)
    elif isinstance(settings.form, Bilinear):
        fused_bilinear.bilinear_gradient(recipe, data, settings, fused_bilinear.Saved(*saved), upstream, out)
    else:
        fused_moments.moments_gradient(recipe, data, settings, saved[0], upstream, out)


class _Fused(torch.autograd.Function):
    """Value, and gradient in the backward pass.

    The gradient computed in the forward pass and attached by a dot product, whose backward pass has no Python but a
    hook for second derivatives, took the host 13 % longer at (32, 12).
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, data: Data, plan: Plan) -> Tensor:
        settings = plan.settings
        value = torch.empty((), dtype=settings.dtype, device=logits.device)
        saved = _forward(plan.recipe, data, settings, value, gradient=plan.gradient)
        ctx.plan = plan
        ctx.save_for_backward(*data, *saved)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        tensors, plan = ctx.saved_tensors, ctx.plan
        data, saved = Data(*tensors[:6]), tensors[6:]
        logits = data.logits
        if logits.stride() != plan.strides:  # of a copy, made by a hook for saved tensors
            restored = torch.empty_strided(logits.shape, plan.strides, dtype=logits.dtype, device=logits.device)
            logits = restored.copy_(logits)
            data = data._replace(logits=logits)
        out = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
        if not torch.is_grad_enabled():
            _gradient(plan.recipe, data, plan.settings, saved, upstream, out)
            return out, None, None
        # create_graph=True
        with torch.no_grad():
            _gradient(plan.recipe, data, plan.settings, saved, torch.ones_like(upstream), out)
        again = partial(plan.again_of, data.target, data.weight)
        gradient = differentiable_again(logits, out, partial(_unscaled, again, plan.scale))
        return gradient * upstream.to(gradient.dtype), None, None


# Function.apply looks for functorch transforms, which never come here, in every argument; its base does not.
_apply: Any = super(torch.autograd.Function, _Fused).apply


def _unscaled(again: Again, scale: float, logits: Tensor) -> Tensor:
    return again(logits) / scale
