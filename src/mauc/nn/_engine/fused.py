"""The loss in fused kernels, on CUDA: which kernels compute it, and how their gradient is attached to it.

Four families: :mod:`mauc.nn._engine.fused_moments` reads the logits twice, for the frequent cases;
:mod:`mauc.nn._engine.fused_bilinear` and :mod:`mauc.nn._engine.fused_ranked` read them three times;
:mod:`mauc.nn._engine.fused_tiny` takes their place for tiny batches, with one launch. None are used under
``torch.use_deterministic_algorithms``: most add their sums atomically, and the last bits depend on the order.
"""

from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mauc.nn._engine import fused_bilinear, fused_moments, fused_ranked, fused_tiny
from mauc.nn._engine.batch import prepare
from mauc.nn._engine.fused_bilinear import Bilinear, closed_bilinear, expanded
from mauc.nn._engine.fused_moments import MOST_CLASSES, Form, form_of, moments_forward, moments_gradient
from mauc.nn._engine.fused_tiny import Pairwise, is_tiny, pairwise, tiny_loss
from mauc.nn._engine.launch import runs_kernels
from mauc.nn._engine.log_term import LogTerm, class_ratios, class_sizes
from mauc.nn._engine.processes import communicator
from mauc.nn._engine.second_order import Again, differentiable_again
from mauc.nn._engine.tiles import Data, Settings
from mauc.nn._engine.truncated import Truncated, truncated_powers
from mauc.surrogates import Surrogate

__all__ = ["Form", "form_of", "fused_loss", "fuses", "place_numbers"]

WIDEST_OF_BOTH = 8192
"""Classes up to which the two kernels of moments take the log-loss too: 0.88x of cross-entropy at (8196, 5089), where
three reads of narrow tiles have 0.97x. Beyond, the numbers of a row fill the registers."""
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


AnyForm = Form | Truncated | Bilinear | Pairwise


def fuses(logits: Tensor, surrogate: Surrogate, activation: str, pairs: Any, log_loss: float = 0.0) -> AnyForm | None:
    """The kernels' form of this loss, or None if they do not compute it."""
    if not runs_kernels(logits.device.type) or torch.are_deterministic_algorithms_enabled():
        return None
    if logits.dtype not in DTYPES or logits.shape[0] == 0 or logits.shape[1] < 2:
        return None
    bounded = activation != "identity"
    form = form_of(surrogate) if bounded else None
    if (
        form is not None
        and isinstance(pairs, str)
        and logits.shape[1] <= (WIDEST_OF_BOTH if log_loss else MOST_CLASSES)
    ):
        return form
    of_pairs = pairwise(surrogate, bounded=bounded) if is_tiny(logits) else None
    if of_pairs is not None:
        return of_pairs
    return _of_any_size(surrogate, bounded)


def _of_any_size(surrogate: Surrogate, bounded: bool) -> Bilinear | Truncated | None:
    form = form_of(surrogate) if bounded else None
    if form is not None:
        return closed_bilinear(form.kind, form.alpha, form.scale)
    closed = surrogate.closed_form
    if closed is not None:
        return closed_bilinear(*closed)
    return (expanded(surrogate) if bounded else None) or truncated_powers(surrogate, bounded=bounded)


def place_numbers(surrogate: Surrogate, device: torch.device) -> None:
    """Puts what the kernels read of a surrogate on the device, to stay there.

    For those who will call them inside a graph: memory that is taken there belongs to the graph.
    """
    if not runs_kernels(device.type):
        return
    for bounded in (True, False):
        form = _of_any_size(surrogate, bounded)
        if isinstance(form, Truncated):
            fused_ranked.form_on(form, device)
        elif form is not None:
            fused_bilinear.form_on(form, device)
        of_pairs = pairwise(surrogate, bounded=bounded)
        if of_pairs is not None:
            fused_tiny.form_on(of_pairs, device)


def fused_loss(
    logits: Tensor,
    target: Tensor,
    form: AnyForm,
    again: Again,
    term: LogTerm,
    *,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ignore_index: int,
    dtype: torch.dtype,
) -> Tensor:
    """The loss, of ``dtype``; ``again`` is the same loss in plain operations, for second derivatives."""
    call = _prepare(logits, target, form, term, activation, pairs, weight, class_counts, ignore_index, dtype)
    gradient = logits.requires_grad and torch.is_grad_enabled()
    with _on(logits.device):
        # Function.apply looks for functorch transforms, which never come here, in every argument; its base does not.
        apply = super(torch.autograd.Function, _Fused).apply
        value: Tensor = apply(call.data[0], call, gradient, again)  # type: ignore[no-untyped-call]
    return value if call.scale == 1.0 else call.scale * value


def value_and_gradient(
    logits: Tensor,
    target: Tensor,
    form: AnyForm,
    term: LogTerm,
    *,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ignore_index: int,
    dtype: torch.dtype,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """The loss and its gradient, without a graph."""
    call = _prepare(logits, target, form, term, activation, pairs, weight, class_counts, ignore_index, dtype)
    call.keeps_scratch = False
    value = torch.empty((), dtype=dtype, device=logits.device)
    out = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device) if gradient else None
    with _on(logits.device):
        if out is None:
            call.forward(value, False)
        else:
            call.both(value, out)
        return value if call.scale == 1.0 else call.scale * value, out


def _on(device: torch.device) -> Any:
    here = device.type == "cpu" or device.index == torch.cuda.current_device()
    return nullcontext() if here else torch.cuda.device(device)


def _prepare(
    logits: Tensor,
    target: Tensor,
    form: AnyForm,
    term: LogTerm,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ignore_index: int,
    dtype: torch.dtype,
) -> "_Call":
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    named = isinstance(pairs, str)
    sizes = class_counts if named and pairs == "ova" else None
    ratios = None
    if term.share:
        ratios = term.ratios
        if ratios is None:
            counted = class_sizes(target, weight, class_counts, ignore_index, logits.shape[1])
            ratios = class_ratios(pairs, term.partners, counted)
        ratios = ratios.to(torch.float32)
    matrix = None if isinstance(pairs, str) else _normalised(logits, target, weight, pairs, ignore_index)
    data = Data(logits, target.contiguous(), _flat(weight), _flat(sizes), _flat(ratios), matrix)
    kind = pairs if isinstance(pairs, str) else "matrix"
    return _Call(data, Settings(form, activation, kind, ignore_index, dtype, term.share))


def _normalised(logits: Tensor, target: Tensor, weight: Tensor | None, pairs: Tensor, ignore_index: int) -> Tensor:
    """``(C, C)`` pair weights of the classes present, ``[j, i]`` for column i."""
    valid = (target != ignore_index) & (target >= 0) & (target < logits.shape[1])
    batch = prepare(
        target.long(),
        logits.shape[1],
        weight=weight,
        valid=valid,
        pairs=pairs,
        class_counts=None,
        world=communicator(False),
    )
    assert batch.matrix is not None
    return batch.matrix.to(torch.float32)


def _flat(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.detach().contiguous()


class _Call:
    """One evaluation: its tensors and settings, and the kernels for them."""

    def __init__(self, data: Data, settings: Settings, recipe: Any = None) -> None:
        self.data, self.settings, self.recipe = data, settings, recipe
        form = settings.form
        self.scale: float = form.scale if isinstance(form, Form) else 1.0
        self.keeps_scratch = True
        """Whether memory may be kept from call to call."""
        self.at_once = False
        """Whether the gradient is computed right after the value."""

    def forward(self, value: Tensor, gradient: bool) -> tuple[Tensor, ...]:
        """Fills in the value over the scale; what the gradient goes on with."""
        data, settings = self.data, self.settings
        if isinstance(settings.form, Pairwise):
            slope = torch.empty(data.logits.shape, device=data.logits.device) if gradient else None
            tiny_loss(data, settings, value, slope)
            return () if slope is None else (slope,)
        if isinstance(settings.form, Truncated):
            self.recipe = fused_ranked.recipe_of(data, settings, gradient)
            return fused_ranked.ranked_forward(self.recipe, data, settings, value, gradient=gradient)
        if isinstance(settings.form, Bilinear):
            self.recipe = fused_bilinear.recipe_of(data, settings, gradient)
            return fused_bilinear.bilinear_forward(self.recipe, data, settings, value, gradient=gradient)
        self.recipe = fused_moments.recipe_of(data, settings)
        keeps, at_once = self.keeps_scratch, self.at_once
        return (moments_forward(self.recipe, data, settings, value, keeps_scratch=keeps, at_once=at_once),)

    def gradient(self, saved: tuple[Tensor, ...], upstream: Tensor, out: Tensor) -> None:
        """Fills in the gradient of that, times ``upstream``."""
        recipe, data, settings = self.recipe, self.data, self.settings
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
            moments_gradient(recipe, data, settings, saved[0], upstream, out)

    def both(self, value: Tensor, out: Tensor) -> None:
        """Fills in the value over the scale, and its gradient times the scale, right one after the other."""
        if isinstance(self.settings.form, Pairwise):
            tiny_loss(self.data, self.settings, value, out)
            return
        self.at_once = True
        saved = self.forward(value, True)
        self.gradient(saved, torch.full((), self.scale, device=out.device), out)


class _Fused(torch.autograd.Function):
    """Value, and gradient in the backward pass.

    At (32, 12) the host takes 1.56 times as long as for cross-entropy. The gradient computed in the forward pass and
    attached by a dot product, whose backward pass has no Python but a hook for second derivatives, took 1.76.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, call: _Call, gradient: bool, again: Again) -> Tensor:
        value = torch.empty((), dtype=call.settings.dtype, device=logits.device)
        saved = call.forward(value, gradient)
        ctx.settings, ctx.recipe, ctx.again = call.settings, call.recipe, again
        ctx.save_for_backward(*call.data, *saved)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        logits, call, saved = tensors[0], _Call(Data(*tensors[:6]), ctx.settings, ctx.recipe), tensors[6:]
        out = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
        if not torch.is_grad_enabled():
            call.gradient(saved, upstream, out)
            return out, None, None, None
        # create_graph=True
        with torch.no_grad():
            call.gradient(saved, torch.ones_like(upstream), out)
        gradient = differentiable_again(logits, out, partial(_unscaled, ctx.again, call.scale))
        return gradient * upstream.to(gradient.dtype), None, None, None


def _unscaled(again: Again, scale: float, logits: Tensor) -> Tensor:
    return again(logits) / scale
