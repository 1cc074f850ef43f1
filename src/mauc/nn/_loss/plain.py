r"""The loss on every device: the pair risk, and the log-loss added to it.

Closed forms run in torch operations. All other losses go through the NumPy kernels of :mod:`mauc._kernels`: the scores
are copied to the host, and the gradient back.

.. math:: \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(z_n + \log r)_{y_n}\right], \quad r_j = p_j / b_j

is the log-loss, as in :mod:`mauc.log_loss`; a common factor of all r does not matter.

With a limit ρ the value is the log-loss plus 1/λ times the pair risk. In the gradient, the slope of the pair term is
shortened to ρ times that of the log-loss at most, and the sum is divided by 1 + q, with q the length of the one over
that of the other: no step is longer than one of the log-loss alone (:func:`limits`).
"""

import math
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mauc._kernels.blocked import blocked_risk
from mauc._kernels.piecewise import KernelPiece
from mauc._kernels.tiles import Classes
from mauc.log_loss import partner_weights
from mauc.nn._loss.batch import (
    Batch,
    Loss,
    Weights,
    can_read,
    chunks,
    exact_dtype,
    take,
    weigh,
    without_autocast,
)
from mauc.nn._loss.closed import Slope, closed_risk, differentiable_risk, own_scores, row_sums
from mauc.nn._loss.forms import closed_form, truncated_powers
from mauc.plan import TOLERANCES, needs_range, plan, radius_for
from mauc.risk import planned_risk
from mauc.surrogates import Surrogate

FAINT = 1e-30
"""Smaller scores have lost digits in single precision."""


def class_ratios(pairs: str | Tensor, class_counts: Tensor) -> Tensor:
    """Return the ``(C,)`` r from the class sizes, the largest of them 1."""
    ratios = class_counts.to(exact_dtype(class_counts.device))
    if isinstance(pairs, str):
        ratios = ratios if pairs == "ovo" else ratios.sign()
    else:
        ratios = ratios / torch.as_tensor(partner_weights(pairs.detach().cpu().numpy())).to(ratios)
    return ratios / ratios.max()


class Plain:
    """The recipe of every loss on every device."""

    def forward(self, batch: Batch, loss: Loss, *, wants_gradient: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the loss and its gradient with respect to the logits, which are computed together."""
        bounded = loss.bounded
        with without_autocast(batch.logits.device):
            weights, logits = _prepare(batch, loss)
            odds = log_odds(logits) if loss.activation == "log_odds" else None
            scores = activate(logits, loss.activation) if odds is None else odds.scores
            form = closed_form(loss.surrogate, bounded=bounded)
            if form is None:
                value, slope = _numpy_risk(scores, weights, loss.surrogate, bounded=bounded, gradient=wants_gradient)
            else:
                value, slope = closed_risk(
                    scores, weights, form, bounded=bounded, log1p=loss.log1p, gradient=wants_gradient
                )
            logs = None
            if batch.ratios is not None:
                powers = scores if odds is None else odds.powers
                powers = torch.softmax(logits, 1) if loss.activation in ("sigmoid", "identity") else powers
                logs = _log_term(logits, powers, weights, batch.ratios, loss)
                value = loss.pair_factor * (value + logs.value)
            value = value.to(logits.dtype)
            if slope is None:
                return value, ()
            gradient = _pull_back(slope, odds, scores, weights.y, loss.activation)
            if logs is not None:
                _join(gradient, logs, weights, loss)
            return value, (gradient.to(batch.logits.dtype),)

    def gradient(self, batch: Batch, loss: Loss, saved: tuple[Tensor, ...], upstream: Tensor) -> Tensor:
        """Return the gradient with respect to the logits, times ``upstream``."""
        if can_read(upstream.device) and upstream.item() == 1.0:
            return saved[0]
        return saved[0] * upstream.to(saved[0].dtype)


def differentiable(batch: Batch, loss: Loss) -> Tensor:
    """Compute a loss with a closed form in operations that torch can differentiate any number of times."""
    weights, logits = _prepare(batch, loss)
    form = closed_form(loss.surrogate, bounded=loss.bounded)
    assert form is not None  # the caller has checked it

    def pair_risk(z: Tensor) -> Tensor:
        return differentiable_risk(activate(z, loss.activation), weights, form, log1p=loss.log1p)

    def log_term(z: Tensor) -> Tensor:
        assert batch.ratios is not None
        log_p, total = torch.log_softmax(z + batch.ratios.log().to(z.dtype), 1), weights.mass.sum()
        lost = -(weights.mass * own_scores(log_p, weights)).sum()
        return loss.log_loss * lost / torch.where(total > 0, total, 1.0)

    if batch.ratios is None:
        return pair_risk(logits).to(logits.dtype)
    if loss.limit is None:
        return (pair_risk(logits) + log_term(logits)).to(logits.dtype)
    fixed = logits.detach()
    slopes = (torch.func.grad(term)(fixed) for term in (pair_risk, log_term))
    of_pair, of_log = limits(*(slope.norm(dim=1) for slope in slopes), weights.mass, loss)
    total = of_pair * pair_risk(logits) + of_log * log_term(logits)
    value = loss.pair_factor * (pair_risk(fixed) + log_term(fixed))
    return (value + total - total.detach()).to(logits.dtype)


def limits(pair: Tensor, log: Tensor, mass: Tensor, loss: Loss) -> tuple[Tensor, Tensor]:
    r"""Return the factors of the two slopes in the gradient: of the pair risk, and of λ times the log-loss.

    .. math:: \frac{f}{\lambda (1 + q)}, \quad \frac{1}{\lambda (1 + q)}, \qquad
        f = \min\Big(1, \rho \frac{|h|}{|g|}\Big), \quad q = f \frac{|g|}{|h|},

    with the slopes g of the pair risk and h of λ times the log-loss. A row of weight two counts as two equal rows:
    :math:`|g|^2 = \sum_n |g_n|^2 / u_n` with the weights u of the rows.

    Parameters
    ----------
    pair, log : (N,) tensors
        Lengths :math:`|g_n|` and :math:`|h_n|`.
    mass : (N,) tensor
        Sample weights u.
    """
    assert loss.limit is not None
    per_unit = torch.where(mass > 0, 1.0 / mass, 0.0)
    g, h = (torch.sqrt(torch.dot(each.to(mass).square(), per_unit)) for each in (pair, log))
    kept = (loss.limit * h / _positive(g)).clamp(max=1.0)
    both = h / (loss.log_loss * _positive(h + kept * g))
    return kept * both, both


def _positive(x: Tensor) -> Tensor:
    """Return x, and a number above 0 where it is 0."""
    return x.clamp(min=torch.finfo(x.dtype).tiny)


def _prepare(batch: Batch, loss: Loss) -> tuple[Weights, Tensor]:
    """Return the weights of the pairs, and wide logits with 0 in ignored rows, which may hold anything."""
    valid = None if loss.ignore_index is None else batch.target != loss.ignore_index
    pairs = loss.pairs if batch.matrix is None else batch.matrix
    with torch.no_grad():
        weights = weigh(batch.target, batch.logits.shape[1], pairs, batch.weight, valid, batch.sizes)
        if loss.log1p:
            # Classes that the batch lacks keep their share: one row of each of a few classes must not weigh like all.
            n_classes = batch.logits.shape[1]
            weights = weights.scaled(loss.pair_weight(n_classes) * weights.size.sign().sum() / n_classes)
    wide = batch.logits.to(torch.float64 if batch.logits.dtype == torch.float64 else torch.float32)
    return weights, wide if valid is None else torch.where(valid[:, None], wide, 0.0)


def activate(logits: Tensor, activation: str) -> Tensor:
    """Return the scores of logits."""
    if activation == "softmax":
        return torch.softmax(logits, 1)
    if activation == "sigmoid":
        return torch.sigmoid(logits)
    return log_odds(logits).scores if activation == "log_odds" else logits


class LogOdds(NamedTuple):
    """The log-odds of the softmax p of logits, and what their gradient needs."""

    scores: Tensor
    """``(N, C)`` log-odds."""
    powers: Tensor
    """``(N, C)`` p."""
    top: Tensor
    """``(N, 1)`` column of the largest logit."""
    others: Tensor
    """``(N, C)`` softmax without the largest logit, 0 in its column."""

    def pull_back(self, part: Tensor, rows: slice) -> None:
        r"""Turn a gradient with respect to the scores of some rows into that with respect to the logits, in place.

        From the gradient s and :math:`h_k = s_k / (1 - p_k)` it is :math:`h_k - p_k \sum_i h_i`. The terms with the
        largest p are written without the factor :math:`1 - p`, which may be 0 there.
        """
        top = take(self.top, rows)
        score, slope = take(self.scores, rows).gather(1, top), part.gather(1, top)
        part.div_(1.0 - take(self.powers, rows)).scatter_(1, top, 0.0)
        total = part.sum(1, keepdim=True)
        part.addcmul_(take(self.others, rows), torch.sigmoid(-score) * total + slope, value=-1.0)
        part.scatter_(1, top, slope - torch.sigmoid(score) * total)


def log_odds(logits: Tensor) -> LogOdds:
    r"""Compute :math:`z_i - \log \sum_{j \ne i} e^{z_j}`, stable for probabilities near 0 or 1.

    In the column of the largest logit the other exponentials are summed directly: a difference would cancel.
    """
    peak, top = logits.max(1, keepdim=True)
    logits = logits - peak.detach()  # an offset that all logits share must not cost digits
    without = logits.scatter(1, top, -torch.inf)
    others = torch.softmax(without, 1)
    of_others = without.amax(1, keepdim=True) - torch.log(others.amax(1, keepdim=True))  # log Σ exp
    at_top = logits.gather(1, top) - of_others
    powers = others * torch.sigmoid(-at_top)
    scores = (logits - (of_others + torch.nn.functional.softplus(at_top))).sub_(torch.log1p(-powers))
    return LogOdds(scores.scatter_(1, top, at_top), powers.scatter_(1, top, torch.sigmoid(at_top)), top, others)


class _Logs(NamedTuple):
    """The log-loss and its gradient ``of_row · of_column · powers − share · e_y``, with ``powers`` the softmax."""

    value: Tensor
    of_row: Tensor
    """``(N, 1)``"""
    of_column: Tensor
    """``(C,)`` r."""
    share: Tensor
    """``(N, 1)`` weight of each sample's log-loss."""
    powers: Tensor
    """``(N, C)`` softmax of the logits."""

    def gradient(self, y: Tensor, rows: slice) -> Tensor:
        """Return the gradient of some rows, in place of their powers."""
        slope = take(self.powers, rows).mul_(take(self.of_row, rows)).mul_(self.of_column)
        return slope.scatter_add_(1, take(y, rows)[:, None], -take(self.share, rows))


def _log_term(logits: Tensor, powers: Tensor, weights: Weights, ratios: Tensor, loss: Loss) -> _Logs:
    """Compute the log-loss from the softmax F: ``softmax(z + log r) = F r / ΣF r`` takes no more exponentials."""
    column, y = ratios.to(logits.dtype), weights.y[:, None]
    mixed = row_sums(powers, column)
    own = powers.gather(1, y)[:, 0]
    if can_read(own.device) and len(own) and float(own.min()) > FAINT:
        nll = torch.log(mixed / (own * column.index_select(0, weights.y)))
    else:  # log F of the own class from its distance to the largest, because F itself may be 0
        distance = logits.gather(1, y)[:, 0] - logits.amax(1)
        nll = torch.log(mixed / (powers.amax(1) * column[weights.y])) - distance
    total = weights.size.sum()
    share = loss.log_loss * (weights.mass / total.clamp(min=torch.finfo(total.dtype).tiny))
    of_row = (share / mixed).to(logits.dtype)
    return _Logs(torch.dot(share, nll.to(share)), of_row[:, None], column, share.to(logits.dtype)[:, None], powers)


def _join(pair: Tensor, logs: _Logs, weights: Weights, loss: Loss) -> None:
    """Add the gradient of the log-loss to that of the pair risk, in place, within the limit of the loss."""
    parts = chunks(pair)
    if loss.limit is None:
        for rows in parts:
            take(pair, rows).add_(logs.gradient(weights.y, rows))
        return
    lengths = [(take(pair, rows).norm(dim=1), logs.gradient(weights.y, rows).norm(dim=1)) for rows in parts]
    of_pair, of_log = limits(*(torch.cat(each) for each in zip(*lengths, strict=True)), weights.mass, loss)
    of_pair, of_log = of_pair.to(pair.dtype), of_log.to(pair.dtype)
    for rows in parts:
        take(pair, rows).mul_(of_pair).addcmul_(take(logs.powers, rows), of_log)


def _pull_back(slope: Slope, odds: LogOdds | None, scores: Tensor, y: Tensor, activation: str) -> Tensor:
    """Return the gradient with respect to the logits, from that with respect to the scores."""
    whole = slope.array
    for rows in chunks(scores):
        part, score = take(whole, rows), take(scores, rows)
        if slope.column is not None:
            part *= slope.column
        if slope.own is not None:
            part.scatter_(1, take(y, rows)[:, None], take(slope.own, rows))
        if activation == "softmax":
            torch.ops.aten._softmax_backward_data.out(part, score, 1, score.dtype, grad_input=part)
        elif activation == "sigmoid":
            torch.ops.aten.sigmoid_backward.grad_input(part, score, grad_input=part)
        elif odds is not None:
            odds.pull_back(part, rows)
    return whole


def _numpy_risk(
    scores: Tensor, weights: Weights, surrogate: Surrogate, *, bounded: bool, gradient: bool
) -> tuple[Tensor, Slope | None]:
    """Return the risk of any surrogate and, on request, its gradient in the scores' dtype."""
    if len(scores) == 0:
        return scores.sum(), Slope(scores, None, None) if gradient else None
    low, high = scores.amin(0).double(), scores.amax(0).double()  # torch's aminmax takes ten times as long
    if not bool((high.isfinite() & low.isfinite()).all()):
        return scores.sum() * torch.nan, Slope(scores * torch.nan, None, None) if gradient else None
    span = float((high - low).max())
    radius = 1.0 if bounded else radius_for(span) if needs_range(surrogate) else math.inf
    tolerances = TOLERANCES["float64" if scores.dtype == torch.float64 else "float32"]
    # If a difference overflows, the loss of that pair is infinite. Computed pair by pair, all others stay right.
    overflows = math.isinf(span)
    found = None if overflows else plan(surrogate, radius, tolerances=tolerances, saturated=bounded)
    problem = _classes(weights, factored=found is not None).with_scores(scores.cpu().numpy())
    with np.errstate(over="ignore", invalid="ignore"):
        if found is None:
            if not overflows:
                name = surrogate.name
                what = f"no polynomial of the {name} surrogate on differences up to {radius:g} is close enough"
                warnings.warn(f"{what}: taking all pairs in blocks, O(N²) time", stacklevel=8)
            value, slope = blocked_risk(problem, surrogate.loss, surrogate.derivative, gradient=gradient)
        else:
            powers = truncated_powers(surrogate) if bounded and found.scheme == "ranked" else None
            if powers is not None:  # pieces from −∞ on with the same sum take half the searches
                pieces = (KernelPiece(-math.inf, end, np.array(row)[:, None], None) for end, *row in powers.numbers)
                found = replace(found, pieces=tuple(pieces))
            value, slope = planned_risk(problem, found, gradient=gradient, dtype=problem.scores.dtype)
    of_value = torch.tensor(value, dtype=torch.float64).to(weights.unit)
    return of_value, None if slope is None else Slope(torch.from_numpy(slope).to(scores), None, None)


def _classes(weights: Weights, *, factored: bool) -> Classes:
    """Return the class partition; ``factored`` saves the ``(C, C)`` weights, which only blocks of pairs need."""
    y, unit, row, column = (x.cpu().numpy() for x in (weights.y, weights.unit, weights.row, weights.column))
    n_classes = len(column)
    if weights.matrix is not None:
        return Classes(y, unit, n_classes, weights.matrix.T.cpu().numpy())
    if factored:
        return Classes(y, unit, n_classes, None, (row, column))
    v = np.outer(column, np.bincount(y, row, n_classes))
    np.fill_diagonal(v, 0.0)
    return Classes(y, unit, n_classes, v)
