"""One evaluation of the loss: checks, then the fused kernels or plain operations, and a gradient attached to it.

:mod:`mauc.nn.functional` has the definition.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mauc._typing import Floats
from mauc._validation import PAIRS, check_choice
from mauc.activations import ACTIVATIONS
from mauc.nn._engine import fused, host, moments, ranked
from mauc.nn._engine.batch import EVERY, Batch, chunks, exact_dtype, is_traced, prepare, take
from mauc.nn._engine.checks import check_input, count_vector, pair_matrix
from mauc.nn._engine.launch import runs_kernels
from mauc.nn._engine.log_odds import loss_on_log_odds
from mauc.nn._engine.log_term import (
    LogTerm,
    class_ratios,
    log_term,
    log_term_and_gradient,
)
from mauc.nn._engine.moments import Result, Slope
from mauc.nn._engine.plans import Plan, evaluate
from mauc.nn._engine.processes import Communicator, communicator
from mauc.nn._engine.repeated import Repeated, is_of, kind_of_call
from mauc.nn._engine.second_order import (
    Again,
    curved_risk,
    differentiable_again,
    has_plain_form,
    mark_compiled,
    plain_risk,
)
from mauc.nn._engine.traced import can_be_traced, traced_loss
from mauc.plan import TOLERANCES, needs_range, plan, radius_for
from mauc.surrogates import Surrogate

__all__ = ["loss_of"]


def loss_of(
    logits: Tensor,
    target: Tensor,
    chosen: Surrogate,
    *,
    log_loss: float,
    log1p: bool,
    ratios: Tensor | None,
    activation: str,
    pairs: Any,
    weight: Tensor | None,
    class_counts: Any,
    ignore_index: int,
    sync: bool,
    process_group: Any,
    repeated: Repeated | None = None,
) -> Tensor:
    """The loss of a surrogate; ``ratios`` are those of the log-loss, where they are known before the batch.

    ``repeated``: what was decided at calls before, of one module, whose class counts were looked at when it was made.
    """
    plans: dict[Any, Plan] = {}
    kind = None
    if repeated is not None and not is_traced() and not sync and isinstance(pairs, str):
        kind = kind_of_call(logits, target, weight, ratios, class_counts)
    if repeated is not None and kind is not None:
        plans = repeated.plans((chosen, log_loss, log1p, ratios, activation, pairs, class_counts, ignore_index))
        if kind in plans:
            return plans[kind].follow(logits, target, weight)
    if activation not in ACTIVATIONS:
        check_choice("activation", activation, ACTIVATIONS)
    if activation == "log_odds":
        check_input(logits, target, weight, ignore_index)
        if log_loss and ratios is None:
            counts = count_vector(class_counts, logits.shape[1]).to(logits.device)
            ratios = class_ratios(pairs if isinstance(pairs, str) else pair_matrix(pairs, logits.shape[1]), counts)
        given: dict[str, Any] = {
            "chosen": chosen, "log_loss": log_loss, "log1p": log1p, "ratios": ratios, "activation": activation,
            "pairs": pairs, "weight": weight, "class_counts": class_counts, "ignore_index": ignore_index,
            "sync": sync, "process_group": process_group,
        }  # fmt: skip
        return loss_on_log_odds(logits, target, loss_of, **given)
    classes = check_input(logits, target, weight, ignore_index)
    world = communicator(sync, process_group)
    n_classes = logits.shape[1]
    place = logits.device
    if not isinstance(pairs, str):
        pairs = pair_matrix(pairs, n_classes).to(place)
    elif pairs not in PAIRS:
        check_choice("pairs", pairs, PAIRS)
    looked_at = repeated is not None and class_counts is not None and class_counts.shape[0] == n_classes
    if class_counts is None or (looked_at and class_counts.device == place):
        counts = class_counts
    else:
        counts = count_vector(class_counts, n_classes).to(place)
    if log_loss and ratios is None:
        ratios = class_ratios(pairs, counts)
    term = LogTerm(log_loss, log1p, None if ratios is None else ratios.to(place))

    mixed = place.type in ("cpu", "cuda") and torch.is_autocast_enabled(place.type)
    dtype = torch.float32 if mixed and logits.dtype != torch.float64 else logits.dtype
    wants_gradient = logits.requires_grad and torch.is_grad_enabled()
    ignored = ignore_index if classes is None else None
    again_of = partial(_again, chosen, activation, pairs, counts, world, term)
    again = partial(again_of, ignored, target, weight)
    if classes is not None and weight is None and not sync and not runs_kernels(place.type):
        found = host.evaluate(logits.detach(), *classes, chosen, activation, pairs, counts, term)
        if found is not None:
            number = np.array(found[0], np.float64 if dtype == torch.float64 else np.float32)
            # Function.apply looks in every argument for functorch transforms, which never come here; its base does not.
            return _attach(logits, number, found[1], again) if wants_gradient else torch.from_numpy(number)
    if _transformed() and (has_plain_form(chosen) or sync or not can_be_traced(chosen)):
        return again(logits).to(dtype)
    traced = is_traced()
    if traced and not sync and can_be_traced(chosen) and (logits.is_cuda or not has_plain_form(chosen)):
        value = traced_loss(
            logits,
            target,
            chosen,
            activation=activation,
            pairs=pairs,
            weight=weight,
            class_counts=counts,
            ratios=term.ratios,
            ignore_index=ignore_index,
            log_loss=log_loss,
            log1p=log1p,
            gradient=logits.requires_grad,
        )
        return value.to(dtype)
    form = None if sync or traced else fused.fuses(logits, chosen, activation, pairs, term)
    if form is not None:
        data, settings = fused.prepare(
            logits,
            target,
            form,
            term,
            activation=activation,
            pairs=pairs,
            weight=weight,
            class_counts=counts,
            ignore_index=ignore_index,
            dtype=dtype,
        )
        made = Plan.of(data, settings, partial(again_of, ignore_index), gradient=wants_gradient)
        if kind is not None and is_of(made, ratios, class_counts):
            plans[kind] = made
        return made.loss(data)
    with torch.no_grad(), torch.autocast(place.type, enabled=False) if mixed else nullcontext():
        value, gradient = _evaluate(
            logits.detach(),
            target.long(),
            chosen,
            activation,
            pairs,
            weight,
            counts,
            _valid(target, ignored),
            world,
            term,
            gradient=wants_gradient,
        )
        value = value.to(dtype)
    if gradient is None:
        return value
    attached: Tensor = _Attach.apply(logits, value, gradient, again)  # type: ignore[no-untyped-call]
    return attached


def value_and_gradient(
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
) -> tuple[Tensor, Tensor]:
    """The loss, in float64 for such logits and float32 else, and its gradient, or none of it; no graph is made."""
    term = LogTerm(log_loss, log1p, ratios)
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    form = fused.fuses(logits, surrogate, activation, pairs, term)
    with torch.no_grad():
        if form is not None:
            data, settings = fused.prepare(
                logits.detach(),
                target,
                form,
                term,
                activation=activation,
                pairs=pairs,
                weight=weight,
                class_counts=class_counts,
                ignore_index=ignore_index,
                dtype=dtype,
            )
            value, slope = evaluate(data, settings, gradient=gradient)
        else:
            value, slope = _evaluate(
                logits.detach(),
                target.long(),
                surrogate,
                activation,
                pairs,
                weight,
                class_counts,
                _valid(target, ignore_index),
                communicator(False),
                term,
                gradient=gradient,
            )
    return value.to(dtype), logits.new_empty(0) if slope is None or not gradient else slope


class _Attach(torch.autograd.Function):
    """A value whose gradient is known already: it was computed together with the value, in one walk."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, value: Tensor | Floats, gradient: Tensor, again: Again) -> Tensor:
        ctx.save_for_backward(logits, gradient)
        ctx.again = again
        return value.clone() if isinstance(value, Tensor) else torch.from_numpy(value)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        logits, gradient = ctx.saved_tensors
        if torch.compiler.is_compiling():
            with torch.enable_grad():
                return gradient * mark_compiled(grad_output, logits).to(gradient.dtype), None, None, None
        if torch.is_grad_enabled():  # create_graph=True
            gradient = differentiable_again(logits, gradient, ctx.again)
        elif grad_output.is_cpu and not _transformed() and grad_output.item() == 1.0:
            return gradient, None, None, None
        return gradient * grad_output.to(gradient.dtype), None, None, None


_attach: Callable[..., Tensor] = super(torch.autograd.Function, _Attach).apply


def _valid(target: Tensor, ignored: int | None) -> Tensor | None:
    """Which samples count, where some may not."""
    return None if ignored is None else target != ignored


def _transformed() -> bool:
    """Whether a transform of :mod:`torch.func` is at work: it differentiates plain operations alone."""
    active: bool = torch._C._are_functorch_transforms_active()
    return active


def _again(
    surrogate: Surrogate,
    activation: str,
    pairs: str | Tensor,
    class_counts: Tensor | None,
    world: Communicator,
    term: LogTerm,
    ignored: int | None,
    target: Tensor,
    weight: Tensor | None,
    logits: Tensor,
) -> Tensor:
    """The loss once more, in a form that can be differentiated twice; see :mod:`mauc.nn._engine.second_order`."""
    if world.size > 1:
        raise NotImplementedError(
            "second derivatives of the loss are not available with sync=True: gather the logits and the targets of all "
            "ranks, with torch.distributed.nn.functional.all_gather, and pass them with sync=False"
        )
    if _transformed() and not has_plain_form(surrogate):
        raise NotImplementedError(
            f"torch.func transforms of the loss with the {surrogate.name} surrogate are not available: take 'squared' "
            "or 'exponential', or torch.autograd in place of torch.func"
        )
    valid = _valid(target, ignored)
    with torch.no_grad():
        batch = prepare(
            target.long(),
            logits.shape[1],
            weight=weight,
            valid=valid,
            pairs=pairs,
            class_counts=class_counts,
            world=world,
        )
    clean = logits if valid is None else torch.where(valid[:, None], logits, 0.0)
    of_logs = logits.new_zeros(())
    if term.ratios is not None:
        of_logs = term.share * log_term(clean, batch.y, batch.mass, term.ratios)
    scores = _activate(clean, activation, torch.float64 if logits.dtype == torch.float64 else torch.float32)
    if has_plain_form(surrogate):
        return plain_risk(scores, batch, surrogate, log1p=term.log1p) + of_logs
    with torch.no_grad():
        value, slope = _risk(scores.detach(), batch, surrogate, activation != "identity", world, term, gradient=True)
        assert slope is not None
        dense = _through(slope, scores, batch.y, "identity")
    return curved_risk(scores, value, dense, batch, surrogate) + of_logs


def _evaluate(
    logits: Tensor,
    target: Tensor,
    surrogate: Surrogate,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    valid: Tensor | None,
    world: Communicator,
    term: LogTerm,
    *,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """The loss, and its gradient with respect to the logits."""
    batch = prepare(
        target,
        logits.shape[1],
        weight=weight,
        valid=valid,
        pairs=pairs,
        class_counts=class_counts,
        world=world,
    )
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    clean = logits if valid is None else torch.where(valid[:, None], logits, 0.0)
    of_logs: Tensor | None = None
    if term.share:
        assert term.ratios is not None
        lost, of_logs = log_term_and_gradient(clean, batch.y, batch.mass, term.ratios, world)
        of_logs *= term.share
    scores = _activate(clean, activation, wide)
    value, slope = _risk(scores, batch, surrogate, activation != "identity", world, term, gradient=gradient)
    value = value if of_logs is None else value + term.share * lost
    if slope is None:
        return value, None
    gradient_of_logits = _through(slope, scores, batch.y, activation)
    gradient_of_logits = gradient_of_logits if of_logs is None else gradient_of_logits.add_(of_logs)
    if world.size > 1:
        gradient_of_logits *= world.size
    return value, gradient_of_logits.to(logits.dtype)


def _risk(
    scores: Tensor,
    batch: Batch,
    surrogate: Surrogate,
    bounded: bool,
    world: Communicator,
    term: LogTerm,
    *,
    gradient: bool,
) -> Result:
    form = surrogate.closed_form
    if form is None:
        return _piecewise(scores, batch, surrogate, bounded, world, gradient=gradient)
    if form.kind == "squared":
        return moments.squared(scores, batch, form.alpha, world, gradient=gradient)
    return moments.exponential(scores, batch, form.alpha, world, bounded=bounded, gradient=gradient, log1p=term.log1p)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _piecewise(
    scores: Tensor, batch: Batch, surrogate: Surrogate, bounded: bool, world: Communicator, *, gradient: bool
) -> Result:
    """Not compiled: its polynomials are made by NumPy, and searching depends on the class sizes."""
    precision = "float64" if scores.dtype == torch.float64 else "float32"
    exact = exact_dtype(scores.device)
    if bounded or not needs_range(surrogate):
        radius = 1.0 if bounded else float("inf")
        centre = torch.full((scores.shape[1],), 0.5 if bounded else 0.0, dtype=exact, device=scores.device)
    else:
        radius, centre = _range(scores, world)
    if radius != radius:
        return _not_a_number(scores, gradient)
    found = plan(surrogate, radius, tolerances=TOLERANCES[precision], saturated=bounded)
    if found is not None and found.scheme == "moments":
        return moments.polynomial(scores, batch, found.pieces[0], centre, world, gradient=gradient)
    if found is not None and bounded and world.size == 1 and host.searches(scores, batch):
        return host.ranked(scores, batch, found.pieces, gradient=gradient)
    if found is not None:
        return ranked.ranked(scores, batch, found.pieces, centre, world, gradient=gradient)
    if world.sum((0.0 * scores).sum()).isnan():
        return _not_a_number(scores, gradient)
    what = f"no polynomial of the {surrogate.name} surrogate on differences up to {radius:g} is close enough"
    warnings.warn(f"{what}: taking all pairs in blocks, O(N²) time", stacklevel=6)
    return ranked.blocked(scores, batch, surrogate, world, gradient=gradient)


def _not_a_number(scores: Tensor, gradient: bool) -> Result:
    return scores.sum() * torch.nan, Slope(scores * torch.nan, None, None) if gradient else None


def _range(scores: Tensor, world: Communicator) -> tuple[float, Tensor]:
    """The radius for the widest column, NaN where a score is none, and the columns' middles; waits for the device."""
    n_classes = scores.shape[1]
    wide = scores.to(exact_dtype(scores.device))
    ends = wide.new_full((2 * n_classes,), -torch.inf)
    if len(scores):
        ends = torch.cat([wide.amax(0), -wide.amin(0)])
    ends = world.largest(ends)
    high, low = ends[:n_classes], -ends[n_classes:]
    span = float((high - low).max())
    return (radius_for(span) if span < torch.inf else float("nan")), low + 0.5 * (high - low)


def _activate(logits: Tensor, activation: str, dtype: torch.dtype) -> Tensor:
    if activation == "softmax":
        return torch.softmax(logits, 1, dtype=dtype)
    return torch.sigmoid(logits.to(dtype)) if activation == "sigmoid" else logits.to(dtype)


def _through(slope: Slope, scores: Tensor, y: Tensor, activation: str) -> Tensor:
    """The gradient with respect to the logits: ``F ⊙ (G − Σ_i F G)`` row by row for the softmax."""
    whole = slope.array
    for rows in chunks(scores):
        part, score = take(whole, rows), take(scores, rows)
        if slope.column is not None:
            part = part.mul_(slope.column)
        if slope.own is not None:
            part = part.scatter_(1, take(y, rows)[:, None], take(slope.own, rows))
        if activation == "softmax" and rows is not EVERY:
            torch.ops.aten._softmax_backward_data.out(part, score, 1, score.dtype, grad_input=part)
            continue
        if activation == "softmax":
            part = torch.ops.aten._softmax_backward_data.default(part, score, 1, score.dtype)
        elif activation == "sigmoid":
            part = torch.ops.aten.sigmoid_backward.default(part, score)
        if rows is EVERY:
            return part
        whole[rows] = part
    return whole
