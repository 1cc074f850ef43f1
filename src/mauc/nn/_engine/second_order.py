r"""Second derivatives of the loss, computed only where somebody asks for them.

The first derivative is made together with the value, in one walk, and no graph of it is kept. Under
``create_graph=True`` it is handed out with a way to differentiate it: :func:`differentiable_again` runs the loss once
more in a form that torch can differentiate twice. In the scores that form is

- squared and exponential: plain torch operations, ``O(N·C)``, of any order;
- all others: the known gradient, whose derivative in the direction ``V`` is, pair by pair,
  ``a_m ω_n ℓ″(P_m − Q_n) (V_m − V_n)`` for the positive and its opposite for the negative. Each sample is a positive in
  one column only: ``O(N²)`` time in all, in blocks on the host, and nothing where ℓ is made of lines. At a kink ℓ″ is
  that on its right. There is no third derivative.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mauc.nn._engine.batch import Batch, exact_dtype
from mauc.nn._engine.moments import log1p_risk, own_scores
from mauc.surrogates import Surrogate

__all__ = ["Again", "curved_risk", "differentiable_again", "has_plain_form", "mark_compiled", "plain_risk"]

Again = Callable[[Tensor], Tensor]
"""The loss of logits in a form that can be differentiated twice."""
PAIRS = 512
"""Positives and negatives in a block of pairs."""


def differentiable_again(logits: Tensor, gradient: Tensor, again: Again) -> Tensor:
    """The known gradient of ``again`` at the logits, as a function of the logits."""
    attached: Tensor = _Gradient.apply(logits, gradient, again)  # type: ignore[no-untyped-call]
    return attached


class _Gradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, gradient: Tensor, again: Again) -> Tensor:
        ctx.save_for_backward(logits)
        ctx.again = again
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, direction: Tensor) -> tuple[Tensor, None, None]:
        (logits,) = ctx.saved_tensors
        third = torch.is_grad_enabled()
        with torch.enable_grad(), torch.autocast(logits.device.type, enabled=False):
            (gradient,) = torch.autograd.grad(ctx.again(logits), logits, create_graph=True)
            if not gradient.requires_grad:  # no pair, or scores that do not bend: the gradient is constant
                return torch.zeros_like(logits), None, None
            (change,) = torch.autograd.grad(gradient, logits, direction, create_graph=third, materialize_grads=True)
        return change, None, None


def has_plain_form(surrogate: Surrogate) -> bool:
    """Whether :func:`plain_risk` knows the surrogate."""
    return surrogate.closed_form is not None


def plain_risk(scores: Tensor, batch: Batch, surrogate: Surrogate, *, log1p: bool = False) -> Tensor:
    """The risk in torch operations that can be differentiated any number of times."""
    form = surrogate.closed_form
    assert form is not None  # the caller looked
    exact = exact_dtype(scores.device)
    own, weight, wide = own_scores(scores, batch), batch.negative(exact), scores.to(exact)
    if form.kind == "squared":
        mean = _class_sum(batch, batch.unit * own)
        spread = _class_sum(batch, batch.unit * (own - mean[batch.y]).square())
        return torch.dot(batch.total, spread) + (weight * (wide - mean + form.alpha).square()).sum()
    # The terms of each side over their largest, which is a constant to the derivative. What weighs nothing is no term.
    log_p, log_q = -form.alpha * own, form.alpha * wide
    p_counts, q_counts = batch.unit > 0, weight > 0
    peak_p, peak_q = _peak_by_class(log_p, p_counts, batch), _peak(log_q, q_counts)
    p = torch.where(p_counts, log_p - peak_p[batch.y], 0.0).exp() * batch.unit
    q = torch.where(q_counts, log_q - peak_q, 0.0).exp() * weight
    scale = torch.exp(peak_p + peak_q)
    risks = scale * _class_sum(batch, p) * q.sum(0)
    return log1p_risk(risks, batch.total)[0] if log1p else risks.sum()


def _class_sum(batch: Batch, values: Tensor) -> Tensor:
    return torch.zeros_like(batch.column).index_add(0, batch.y, values)


def _peak(logs: Tensor, counts: Tensor) -> Tensor:
    """``(C,)`` largest of each column among those that count, 0 where none does."""
    if len(logs) == 0:
        return logs.new_zeros(logs.shape[1])
    peak = torch.where(counts, logs.detach(), -torch.inf).amax(0)
    return torch.where(peak == -torch.inf, 0.0, peak)


def _peak_by_class(logs: Tensor, counts: Tensor, batch: Batch) -> Tensor:
    none = torch.full_like(batch.column, -torch.inf)
    peak = none.scatter_reduce(0, batch.y, torch.where(counts, logs.detach(), -torch.inf), "amax")
    return torch.where(peak == -torch.inf, 0.0, peak)


def curved_risk(scores: Tensor, value: Tensor, slope: Tensor, batch: Batch, surrogate: Surrogate) -> Tensor:
    """The known value of the risk, with its known slope ``(N, C)`` and the second derivative by pairs."""
    attached: Tensor = _Curved.apply(scores, value, slope, batch, surrogate)  # type: ignore[no-untyped-call]
    return attached


class _Curved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, value: Tensor, slope: Tensor, batch: Batch, surrogate: Surrogate) -> Tensor:
        ctx.save_for_backward(scores, slope)
        ctx.pairs = batch, surrogate
        return value.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        scores, slope = ctx.saved_tensors
        attached: Tensor = _Slope.apply(scores, slope, *ctx.pairs)  # type: ignore[no-untyped-call]
        return attached * upstream.to(slope.dtype), None, None, None, None


class _Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, slope: Tensor, batch: Batch, surrogate: Surrogate) -> Tensor:
        ctx.save_for_backward(scores)
        ctx.pairs = batch, surrogate
        return slope.clone()

    @staticmethod
    def backward(ctx: Any, direction: Tensor) -> tuple[Tensor, None, None, None]:
        (scores,) = ctx.saved_tensors
        if _is_made_of_lines(ctx.pairs[1]):
            return torch.zeros_like(scores), None, None, None
        change: Tensor = _Curvature.apply(scores, direction, *ctx.pairs)  # type: ignore[no-untyped-call]
        return change, None, None, None


class _Curvature(torch.autograd.Function):
    """The Hessian of the risk in the scores, times a direction."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, direction: Tensor, batch: Batch, surrogate: Surrogate) -> Tensor:
        ctx.save_for_backward(scores)
        ctx.pairs = batch, surrogate
        return _times_curvature(scores, direction, batch, surrogate)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[None, Tensor, None, None]:
        (scores,) = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            name = ctx.pairs[1].name
            raise NotImplementedError(
                f"third derivatives of the loss with the {name} surrogate are not known: take 'squared' or "
                "'exponential', which have derivatives of every order"
            )
        change: Tensor = _Curvature.apply(scores, upstream, *ctx.pairs)  # type: ignore[no-untyped-call]
        return None, change, None, None


def _times_curvature(scores: Tensor, direction: Tensor, batch: Batch, surrogate: Surrogate) -> Tensor:
    exact = exact_dtype(scores.device)
    weight, wide, turned = batch.negative(exact), scores.to(exact), direction.to(exact)
    out = torch.zeros_like(wide)
    for i in range(scores.shape[1]):
        positives = (batch.y == i).nonzero()[:, 0]
        for some in torch.split(positives, PAIRS):
            p, p_turned, mass = wide[some, i], turned[some, i], batch.unit[some]
            for begin in range(0, len(wide), PAIRS):
                rest = slice(begin, begin + PAIRS)
                bend = second_derivative(surrogate, p[:, None] - wide[rest, i])
                pull = bend * (p_turned[:, None] - turned[rest, i])
                out[some, i] += mass * (pull @ weight[rest, i])
                out[rest, i] -= weight[rest, i] * (mass @ pull)
    return out.to(scores.dtype)


def second_derivative(surrogate: Surrogate, t: Tensor) -> Tensor:
    """ℓ″ by the surrogate's own NumPy function."""
    bend = surrogate.second_derivative(t.detach().cpu().numpy())
    if bend is None:
        raise NotImplementedError(
            f"second derivatives of the loss need ℓ″ of the {surrogate.name} surrogate: give the object a method "
            "second_derivative(t), or take a named surrogate"
        )
    return torch.as_tensor(bend).to(t)


def _is_made_of_lines(surrogate: Surrogate) -> bool:
    return all(piece.coefficients is not None and len(piece.coefficients) <= 2 for piece in surrogate.pieces)


@torch.library.custom_op("mauc::compiled_upstream", mutates_args=())
def mark_compiled(upstream: Tensor, logits: Tensor) -> Tensor:
    """The gradient from above, unchanged, in a graph of ``torch.compile``.

    Such a graph keeps the loss's gradient as a constant, and a second derivative would miss it in silence. This
    operation ties it to the logits, and cannot be differentiated: the second derivative is then an error.
    """
    return upstream.clone()


@mark_compiled.register_fake
def _(upstream: Tensor, logits: Tensor) -> Tensor:
    return torch.empty_like(upstream)


def _refuse_second_order(ctx: Any, upstream: Tensor) -> None:
    raise NotImplementedError(
        "second derivatives of the loss are not available inside torch.compile: leave the loss out of the compiled part"
    )


mark_compiled.register_autograd(_refuse_second_order)
