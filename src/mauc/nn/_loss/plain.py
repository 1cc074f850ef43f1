r"""The loss on every device: the pair risk, and the log-loss added to it.

Closed forms are in :mod:`mauc.nn._loss.closed`, all other losses in :mod:`mauc.nn._loss.pieces`.

.. math:: \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(z_n + \log r)_{y_n}\right], \quad r_j = p_j / b_j

is the log-loss, as in :mod:`mauc.log_loss`; a common factor of all r does not matter.

With a limit ρ the value is the log-loss plus 1/λ times the pair risk. In the gradient, the slope of the pair term is
shortened to ρ times that of the log-loss at most, and the sum is divided by 1 + q, with q the length of the one over
that of the other: no step is longer than one of the log-loss alone (:func:`limits`).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._loss.batch import Batch, Weights, chunks, take, weigh
from mauc.nn._loss.closed import Slope, closed_form, closed_risk, differentiable_risk, own_scores, row_sums
from mauc.nn._loss.device import can_read, without_autocast
from mauc.nn._loss.pieces import differentiable_piecewise_risk, piecewise_risk
from mauc.nn._loss.settings import Loss

FAINT = 1e-30
"""Smaller scores have lost digits in single precision."""


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
                value, array = piecewise_risk(scores, weights, loss.surrogate, bounded=bounded, gradient=wants_gradient)
                slope = None if array is None else Slope(array, None, None)
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
            return value, (gradient,)

    def gradient(self, batch: Batch, loss: Loss, saved: tuple[Tensor, ...], upstream: Tensor) -> Tensor:
        """Return the gradient with respect to the logits, times ``upstream``."""
        if can_read(upstream) and upstream.item() == 1.0:
            return saved[0].to(batch.logits.dtype)
        return (saved[0] * upstream.to(saved[0].dtype)).to(batch.logits.dtype)


def differentiable(batch: Batch, loss: Loss) -> Tensor:
    """Compute the loss in operations that torch can differentiate any number of times."""
    weights, logits = _prepare(batch, loss)
    form = closed_form(loss.surrogate, bounded=loss.bounded)

    def pair_risk(z: Tensor) -> Tensor:
        scores = activate(z, loss.activation)
        if form is None:
            return differentiable_piecewise_risk(scores, weights, loss.surrogate, bounded=loss.bounded)
        return differentiable_risk(scores, weights, form, log1p=loss.log1p)

    def log_term(z: Tensor) -> Tensor:
        assert batch.ratios is not None
        log_p = torch.log_softmax(z + batch.ratios.log().to(z.dtype), 1)
        lost = -(weights.mass * own_scores(log_p, weights)).sum()
        return loss.log_loss * lost / _positive(weights.counted)

    if batch.ratios is None:
        return pair_risk(logits).to(logits.dtype)
    if loss.limit is None:
        return (pair_risk(logits) + log_term(logits)).to(logits.dtype)
    fixed = logits.detach()
    of_pair, of_log = (torch.func.grad(term)(fixed).norm(dim=1) for term in (pair_risk, log_term))
    of_pair, of_log = limits(of_pair, of_log, weights, loss)
    total = of_pair * pair_risk(logits) + of_log * log_term(logits)
    value = loss.pair_factor * (pair_risk(fixed) + log_term(fixed))
    return (value + total - total.detach()).to(logits.dtype)


def limits(pair: Tensor, log: Tensor, weights: Weights, loss: Loss) -> tuple[Any, Any]:
    r"""Return the factors of the two slopes in the gradient: of the pair risk, and of λ times the log-loss.

    .. math:: \frac{f}{\lambda (1 + q)}, \quad \frac{1}{\lambda (1 + q)}, \qquad
        f = \min\Big(1, \rho \frac{|h|}{|g|}\Big), \quad q = f \frac{|g|}{|h|},

    with the slopes g of the pair risk and h of λ times the log-loss. A row of weight two counts as two equal rows:
    :math:`|g|^2 = \sum_n |g_n|^2 / u_n` with the weights u of the rows.

    Parameters
    ----------
    pair, log : (N,) tensors
        Lengths :math:`|g_n|` and :math:`|h_n|`.
    """
    assert loss.limit is not None
    if not isinstance(weights.mass, float):
        root = torch.where(weights.mass > 0, weights.mass.rsqrt(), 0.0)
        pair, log = root * pair.to(root), root * log.to(root)
    g, h = _length(pair), _length(log)
    most = loss.limit * h / _positive(g)
    kept = most.clamp(max=1.0) if isinstance(most, Tensor) else min(most, 1.0)
    both = h / (loss.log_loss * _positive(h + kept * g))
    return kept * both, both


def _length(x: Tensor) -> Any:
    """Return the length of a vector, as a Python number where that does not wait: it saves operations."""
    length = torch.linalg.vector_norm(x)
    return float(length) if can_read(length) else length


def _positive(x: Any) -> Any:
    """Return x, and a number above 0 where it is 0."""
    return x.clamp(min=torch.finfo(x.dtype).tiny) if isinstance(x, Tensor) else max(x, 1e-300)


def _prepare(batch: Batch, loss: Loss) -> tuple[Weights, Tensor]:
    """Return the weights of the pairs, and wide logits with 0 in ignored rows, which may hold anything."""
    valid: Tensor | None = None
    if loss.ignore_index is not None and not batch.whole:
        valid = torch.ne(batch.target, loss.ignore_index)
    pairs = loss.pairs if batch.matrix is None else batch.matrix
    with torch.no_grad():
        weights = weigh(batch.target, batch.logits.shape[1], pairs, batch.weight, valid, batch.sizes)
        n_classes = batch.logits.shape[1]
        if loss.log1p:
            # Classes that the batch lacks keep their share: a few classes of one row each must not weigh like all.
            present = weights.size.sign().sum()
            here: Any = float(present) if can_read(present) else present
            weights = weights.scaled(loss.pair_weight(n_classes) / n_classes * here)
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
    """The log-loss and its gradient ``of_row · of_column · powers + of_own · e_y``, with ``powers`` the softmax."""

    value: Tensor
    of_row: Tensor
    """``(N, 1)``"""
    of_column: Tensor
    """``(C,)`` r."""
    of_own: Tensor
    """``(N, 1)`` minus the weight of each sample's log-loss."""
    powers: Tensor
    """``(N, C)`` softmax of the logits."""

    def gradient(self, y: Tensor, rows: slice) -> Tensor:
        """Return the gradient of some rows, in place of their powers."""
        slope = take(self.powers, rows).mul_(take(self.of_row, rows)).mul_(self.of_column)
        return slope.scatter_add_(1, take(y, rows)[:, None], take(self.of_own, rows))


def _log_term(logits: Tensor, powers: Tensor, weights: Weights, ratios: Tensor, loss: Loss) -> _Logs:
    """Compute the log-loss from the softmax F: ``softmax(z + log r) = F r / ΣF r`` takes no more exponentials."""
    column, y = ratios.to(logits.dtype), weights.y[:, None]
    mixed = row_sums(powers, column)
    own = powers.gather(1, y)[:, 0]
    if can_read(own) and len(own) and float(own.min()) > FAINT:
        nll = torch.log(mixed / (own * column.index_select(0, weights.y)))
    else:  # log F of the own class from its distance to the largest, because F itself may be 0
        distance = logits.gather(1, y)[:, 0] - logits.amax(1)
        nll = torch.log(mixed / (powers.amax(1) * column[weights.y])) - distance
    share = loss.log_loss * weights.mass / _positive(weights.counted)
    if isinstance(share, float):
        value, of_own = share * nll.sum(dtype=weights.unit.dtype), torch.full_like(nll, -share)
    else:
        value, of_own = torch.dot(share, nll.to(share)), -share.to(nll)
    return _Logs(value, (of_own / -mixed)[:, None], column, of_own[:, None], powers)


def _join(pair: Tensor, logs: _Logs, weights: Weights, loss: Loss) -> None:
    """Add the gradient of the log-loss to that of the pair risk, in place, within the limit of the loss."""
    parts = chunks(pair)
    if loss.limit is None:
        for rows in parts:
            take(pair, rows).add_(logs.gradient(weights.y, rows))
        return
    lengths = [
        torch.linalg.vector_norm(x, dim=1) for rows in parts for x in (take(pair, rows), logs.gradient(weights.y, rows))
    ]
    of_pair, of_log = (x[0] if len(parts) == 1 else torch.cat(x) for x in (lengths[::2], lengths[1::2]))
    of_pair, of_log = limits(of_pair, of_log, weights, loss)
    for rows in parts:
        part, of_logs = take(pair, rows), take(logs.powers, rows)
        if isinstance(of_log, Tensor):
            part.mul_(of_pair.to(part.dtype)).addcmul_(of_logs, of_log.to(part.dtype))
        else:
            part.mul_(of_pair).add_(of_logs, alpha=of_log)


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
