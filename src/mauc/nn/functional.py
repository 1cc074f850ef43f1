"""The multiclass AUC risk of logits as a loss, and the multiclass AUC itself."""

import warnings
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mauc._validation import PAIRS, check_choice
from mauc.activations import ACTIVATIONS
from mauc.nn._engine import fused, moments, ranked
from mauc.nn._engine.batch import EVERY, Batch, chunks, exact_dtype, is_free, prepare, take
from mauc.nn._engine.checks import check_input, count_vector, pair_matrix
from mauc.nn._engine.log_term import LogTerm, log_term, log_term_and_gradient, of_partners, read_log_loss
from mauc.nn._engine.moments import Result, Slope
from mauc.nn._engine.processes import Communicator, communicator
from mauc.nn._engine.score import score_of
from mauc.nn._engine.second_order import (
    Again,
    curved_risk,
    differentiable_again,
    has_plain_form,
    mark_compiled,
    plain_risk,
)
from mauc.plan import TOLERANCES, needs_range, plan, radius_for
from mauc.surrogates import Surrogate, get_surrogate

__all__ = ["mauc_loss", "mauc_score"]


def mauc_loss(
    logits: Tensor,
    target: Tensor,
    *,
    surrogate: Any = "exponential",
    alpha: float | None = None,
    log_loss: float | str = 0.0,
    activation: str = "softmax",
    pairs: Any = "ovo",
    weight: Tensor | None = None,
    class_counts: Any = None,
    ignore_index: int = -100,
    sync: bool = False,
    process_group: Any = None,
    **options: float,
) -> Tensor:
    r"""The surrogate risk of the multiclass AUC, differentiable with respect to the logits.

    .. math:: R = \sum_i \sum_{j \ne i} v_{ij} \,
        \operatorname{mean}_{m \in N_i,\, n \in N_j} \ell(F_{mi} - F_{ni}), \qquad F = \text{activation}(\text{logits})

    With ``log_loss`` = λ > 0 the cross-entropy of logits Z that are shifted by the class frequencies is added,

    .. math:: L = R + \lambda \, \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(Z + \log p)_{y_n}\right] .

    The risk is equal to :class:`mauc.SurrogateRisk` on those scores. Use it where you would use
    :func:`torch.nn.functional.cross_entropy`.

    Parameters
    ----------
    logits : (N, C) floating tensor
        float16 and bfloat16 are computed in float32. The loss has their dtype (float32 under autocast) and device.
    target : (N,) integer tensor
        Classes ``0..C-1``, or ``ignore_index``. Checked on the CPU; on other devices a class out of range is the
        device's own assertion, as with cross-entropy, because a check would wait for the device.
    surrogate, alpha, **options
        As in :class:`mauc.SurrogateRisk`; an object with NumPy functions ``loss(t)`` and ``derivative(t)`` is taken
        for a name. What is smooth but no polynomial (logistic, 1/t, own ones) is approximated to the rounding of the
        logits; where that fails, all pairs are taken in blocks on the host, with a warning.
    log_loss : float >= 0 or "only"
        Weight λ of the log-loss; ``"only"``: the log-loss alone. It is consistent for the multiclass AUC by itself
        (:class:`LogitAdjustedLoss`); the risk spends the network's capacity on order. p are the shares of
        ``class_counts``, or of the batch where these are not given. With ``pairs="ova"`` nothing is shifted; with a
        matrix of the form :math:`a_i b_j` the shift is :math:`\log (p_j / b_j)`; another matrix is refused.
    activation : {"softmax", "sigmoid", "identity"}
        What makes scores of logits.
    pairs : {"ovo", "ova"} or (C, C) array
        Weights of the class pairs, :math:`v_{ij}` at ``[i, j]``.
    weight : (N,) tensor, optional
        Weights of the samples, >= 0; no gradient flows into them. A class whose weights sum to 0 counts as absent.
    class_counts : (C,) tensor or sequence, optional
        Size of each class in the training set (with sample weights: their sum), for ``pairs="ova"``, see Notes, and for
        ``log_loss``.
    ignore_index : int
        Samples of this target count nowhere and get gradient 0.
    sync : bool
        Take the batches of all ranks of ``process_group`` as one, exactly: see Notes.

    Returns
    -------
    Tensor
        A scalar. Pairs of classes that the batch lacks drop out and the other weights are renormalised; with fewer
        than two classes the loss is 0 and so is its gradient. A logit that is not a number makes the loss so.

    Notes
    -----
    *Which weights are unbiased?* A batch in which the samples of each class are drawn evenly from that class, however
    many of each, has class means whose expectation is that of the training set, so the loss is an unbiased estimate
    as soon as :math:`v_{ij}` are the training set's. With ``"ovo"`` they do not depend on class sizes: nothing is
    needed under any class-aware sampling. With ``"ova"``, :math:`v_{ij} \propto p_j`: a sampler that evens out the
    classes evens out the batch's own :math:`p_j` too, and only ``class_counts`` brings the training set's back. Two
    more things are needed: every class in every batch (renormalising over the classes present is a ratio estimate,
    unbiased for ``"ovo"`` if all pairs are equally likely to be present, else only as the number of classes grows),
    and no further reweighting of samples inside a class than the one you want to learn from.

    Moments surrogates (squared, exponential, and every one that is a single polynomial on the range of the scores,
    such as logistic or a hinge with ``alpha >= 1`` on softmax scores) cost O(N·C) and never wait for the device. The
    others search the sorted positives and read the class sizes on the host, and so does the range of identity scores
    where an approximation needs it. On CUDA the frequent cases run in fused kernels: squared, exponential with
    ``alpha <= 30`` and lines on [−1, 1] such as the hinge with ``alpha >= 1``, of softmax and sigmoid scores in
    float32 or half precision, with ``"ovo"`` or ``"ova"``. They read the logits twice and write the gradient once.

    *Several processes.* With ``sync=True`` the sums that define the risk are those of all ranks; the ``(N, C)`` scores
    never leave theirs. Every rank returns the value of the whole, and its gradient times the number of ranks, because
    ``DistributedDataParallel`` averages over ranks; without it, sum the gradients and divide by that number.

    *Second derivatives* (``create_graph=True``) are exact, and cost nothing until they are taken: O(N·C) for squared
    and exponential, which have derivatives of every order and serve :mod:`torch.func` too; O(N²) time, pair by pair on
    the host, for the others; an own object needs ``second_derivative(t)`` for them. At a kink they are those on its
    right. With ``sync=True`` and under :func:`torch.compile` they are refused.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn.functional import mauc_loss
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]], requires_grad=True)
    >>> loss = mauc_loss(logits, torch.tensor([0, 0, 1, 2]), surrogate="squared")
    >>> loss.backward()
    >>> round(loss.item(), 4), tuple(logits.grad.shape)
    (0.3041, (4, 3))
    """
    return loss_of(
        logits,
        target,
        get_surrogate(surrogate, alpha=alpha, **options),
        log_loss=log_loss,
        ratios=None,
        activation=activation,
        pairs=pairs,
        weight=weight,
        class_counts=class_counts,
        ignore_index=ignore_index,
        sync=sync,
        process_group=process_group,
    )


def loss_of(
    logits: Tensor,
    target: Tensor,
    chosen: Surrogate,
    *,
    log_loss: float | str,
    ratios: Tensor | None,
    activation: str,
    pairs: Any,
    weight: Tensor | None,
    class_counts: Any,
    ignore_index: int,
    sync: bool,
    process_group: Any,
) -> Tensor:
    """:func:`mauc_loss` of a surrogate; ``ratios`` are those of the log-loss, where they are known already."""
    if activation not in ACTIVATIONS:
        check_choice("activation", activation, ACTIVATIONS)
    share, ranks = (0.0, True) if log_loss == 0 else read_log_loss(log_loss)
    complete = check_input(logits, target, weight, ignore_index)
    world = communicator(sync, process_group)
    n_classes = logits.shape[1]
    place = logits.device
    if not isinstance(pairs, str):
        pairs = pair_matrix(pairs, n_classes).to(place)
    else:
        check_choice("pairs", pairs, PAIRS)
    counts = None if class_counts is None else count_vector(class_counts, n_classes).to(place)
    term = LogTerm(share, ranks, ratios, of_partners(pairs) if share and ratios is None else None)

    mixed = place.type in ("cpu", "cuda") and torch.is_autocast_enabled(place.type)
    dtype = torch.float32 if mixed and logits.dtype != torch.float64 else logits.dtype
    wants_gradient = logits.requires_grad and torch.is_grad_enabled()
    ignored = None if complete else ignore_index
    again = partial(_again, target, chosen, activation, pairs, weight, counts, ignored, world, term)
    if _transformed() and (wants_gradient or has_plain_form(chosen)):
        return again(logits).to(dtype)
    form = None if sync or not ranks else fused.fuses(logits, chosen, activation, pairs)
    if form is not None:
        return fused.fused_loss(
            logits,
            target,
            form,
            again,
            term,
            activation=activation,
            pairs=pairs,
            weight=weight,
            class_counts=counts,
            ignore_index=ignore_index,
            dtype=dtype,
        )
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


def mauc_score(target: Tensor, scores: Tensor, *, pairs: Any = "ovo", weight: Tensor | None = None) -> Tensor:
    r"""The exact multiclass AUC on the device of the scores: :func:`mauc.mauc_score` with ``absent="ignore"``.

    .. math:: \mathrm{MAUC} = \sum_{i \ne j} v_{ij} \, \mathrm{AUC}_{i|j}, \qquad
        \mathrm{AUC}_{i|j} = \operatorname{mean}_{m \in N_i,\, n \in N_j}
        [F_{mi} > F_{ni}] + \tfrac12 [F_{mi} = F_{ni}]

    Parameters
    ----------
    target : (N,) integer tensor
        Classes ``0..C-1``; a class without samples, or whose weights are all 0, drops out.
    scores : (N, C) floating tensor
        Used as they come: nothing applies a softmax.
    pairs : {"ovo", "ova"} or (C, C) array
        Weights of the class pairs, :math:`v_{ij}` at ``[i, j]``.
    weight : (N,) tensor, optional
        Weights of the samples, >= 0.

    Returns
    -------
    Tensor
        A float64 scalar on that device, without gradient; NaN where no pair of classes has samples. On the CPU a score
        that is not finite is an error; elsewhere, where looking at it would wait for the device, the result is NaN.

    Notes
    -----
    Each sample's score of its own class is sorted among its class's, once, and all scores of a column are searched
    among them: :math:`O(N C \log n)` for the largest class of n samples, and less than a gigabyte beside the scores,
    in blocks of columns. What comes to the host is n alone.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn.functional import mauc_score
    >>> scores = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    >>> mauc_score(torch.tensor([0, 0, 1, 2]), scores).item()
    0.875
    """
    return score_of(target, scores, pairs, weight)


class _Attach(torch.autograd.Function):
    """A value whose gradient is known already: it was computed together with the value, in one walk."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, value: Tensor, gradient: Tensor, again: Again) -> Tensor:
        ctx.save_for_backward(logits, gradient)
        ctx.again = again
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None]:
        logits, gradient = ctx.saved_tensors
        if torch.compiler.is_compiling():
            with torch.enable_grad():
                return gradient * mark_compiled(grad_output, logits).to(gradient.dtype), None, None, None
        if torch.is_grad_enabled():  # create_graph=True
            gradient = differentiable_again(logits, gradient, ctx.again)
        elif is_free(grad_output.device) and grad_output.item() == 1.0:
            return gradient, None, None, None
        return gradient * grad_output.to(gradient.dtype), None, None, None


def _valid(target: Tensor, ignored: int | None) -> Tensor | None:
    """Which samples count, where some may not."""
    return None if ignored is None else target != ignored


def _transformed() -> bool:
    """Whether a transform of :mod:`torch.func` is at work: it differentiates plain operations alone."""
    active: bool = torch._C._are_functorch_transforms_active()
    return active


def _again(
    target: Tensor,
    surrogate: Surrogate,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ignored: int | None,
    world: Communicator,
    term: LogTerm,
    logits: Tensor,
) -> Tensor:
    """The loss once more, in a form that can be differentiated twice; see :mod:`mauc.nn._engine.second_order`."""
    if world.size > 1:
        raise NotImplementedError(
            "second derivatives of the loss are not available with sync=True: gather the logits and the targets of all "
            "ranks, with torch.distributed.nn.functional.all_gather, and pass them with sync=False"
        )
    if term.ranks and _transformed() and not has_plain_form(surrogate):
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
    if term.share:
        of_logs = term.share * log_term(clean, batch.y, batch.mass, term.of(batch, pairs, class_counts))
    if not term.ranks:
        return of_logs
    scores = _activate(clean, activation, torch.float64 if logits.dtype == torch.float64 else torch.float32)
    if has_plain_form(surrogate):
        return plain_risk(scores, batch, surrogate) + of_logs
    with torch.no_grad():
        value, slope = _risk(scores.detach(), batch, surrogate, activation != "identity", world, gradient=True)
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
        known = term.of(batch, pairs, class_counts)
        lost, of_logs = log_term_and_gradient(clean, batch.y, batch.mass, known, world)
        of_logs *= term.share
    if not term.ranks:
        value, gradient_of_logits = lost, of_logs
    else:
        scores = _activate(clean, activation, wide)
        value, slope = _risk(scores, batch, surrogate, activation != "identity", world, gradient=gradient)
        value = value if of_logs is None else value + term.share * lost
        if slope is None:
            return value, None
        gradient_of_logits = _through(slope, scores, batch.y, activation)
        gradient_of_logits = gradient_of_logits if of_logs is None else gradient_of_logits.add_(of_logs)
    assert gradient_of_logits is not None
    if world.size > 1:
        gradient_of_logits *= world.size
    return value, gradient_of_logits.to(logits.dtype)


def _risk(
    scores: Tensor, batch: Batch, surrogate: Surrogate, bounded: bool, world: Communicator, *, gradient: bool
) -> Result:
    form = surrogate.closed_form
    if form is None:
        return _piecewise(scores, batch, surrogate, bounded, world, gradient=gradient)
    if form.kind == "squared":
        return moments.squared(scores, batch, form.alpha, world, gradient=gradient)
    return moments.exponential(scores, batch, form.alpha, world, bounded=bounded, gradient=gradient)


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
        if activation == "softmax":
            part = torch.ops.aten._softmax_backward_data.default(part, score, 1, score.dtype)
        elif activation == "sigmoid":
            part = torch.ops.aten.sigmoid_backward.default(part, score)
        if rows is EVERY:
            return part
        whole[rows] = part
    return whole
