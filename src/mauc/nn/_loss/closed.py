r"""Closed forms in torch operations, on every device: the exponential, squared and linear losses.

The sum over the pairs of column i splits into sums over its positives P and its negatives Q,

.. math:: \sum_{mn} a_m \omega_n \, e^{-\alpha (P_m - Q_n)}
    = \Big(\sum_m a_m e^{-\alpha P_m}\Big) \Big(\sum_n \omega_n e^{\alpha Q_n}\Big),

and in the same way for the others: ``O(N·C)`` time, a few ``(N, C)`` arrays. Nothing waits for the device. On the host
rows are taken in chunks that stay in a second-level cache.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from mauc.nn._loss.batch import Weights, chunks, class_sum, exact_dtype, take
from mauc.nn._loss.forms import Closed

__all__ = ["FLAT_ALPHA", "Slope", "closed_risk", "differentiable_risk", "own_scores", "row_sums"]

LOG2_E = 1.0 / math.log(2.0)
"""``exp(x) = 2 ** (LOG2_E · x)``, which torch has in a third of the time on the host."""
FLAT_ALPHA = 30.0
"""Up to here ``exp(α F)`` of scores in [0, 1] needs no shift, float32 included."""


class Slope(NamedTuple):
    """The gradient with respect to the scores: ``array · column``, and ``own`` in the columns of the samples' classes.

    The factors are applied chunk by chunk on the way back through the activation.
    """

    array: Tensor
    """``(N, C)``"""
    column: Tensor | None
    """``(C,)``"""
    own: Tensor | None
    """``(N, 1)``"""


def closed_risk(
    scores: Tensor, weights: Weights, form: Closed, *, bounded: bool, log1p: bool, gradient: bool
) -> tuple[Tensor, Slope | None]:
    """The risk, and its slope if asked for; ``log1p`` takes the risk R_i of each class to log(1 + R_i)."""
    if form.kind == "exponential":
        flat = bounded and form.alpha <= FLAT_ALPHA
        return _exponential(scores, weights, form.alpha, flat=flat, log1p=log1p, gradient=gradient)
    risk = _squared if form.kind == "squared" else _line
    return risk(scores, weights, form, gradient=gradient)


def own_scores(scores: Tensor, weights: Weights) -> Tensor:
    """``(N,)`` score of each sample in the column of its class, of the exact dtype."""
    return scores.gather(1, weights.y[:, None])[:, 0].to(exact_dtype(scores.device))


def row_sums(x: Tensor, column: Tensor) -> Tensor:
    """``(N,)`` ``x @ column``; on devices without cuBLAS, which refuses to run deterministically."""
    return x @ column if x.is_cpu else (x * column).sum(1)


def _exponential(
    scores: Tensor, weights: Weights, alpha: float, *, flat: bool, log1p: bool, gradient: bool
) -> tuple[Tensor, Slope | None]:
    """``R_i = (Σ_m a_m exp(−α P_m)) (Σ_n ω_n exp(α Q_n))``: as it stands where no term can overflow, else in log space.

    With ``log1p`` the risk is ``Σ_i w_i log(1 + R_i / w_i)``, w the summed weights of the columns.
    """
    if not flat:
        return _steep_exponential(scores, weights, alpha, log1p=log1p, gradient=gradient)
    y, total = weights.y, weights.total
    of_p = own_scores(scores, weights).mul_(-alpha).exp_().mul_(weights.unit)
    terms, sum_q = _terms(scores, weights, alpha)
    sum_p, sum_q = class_sum(y, of_p, scores.shape[1]), sum_q.mul_(weights.column)
    if not log1p:
        value = torch.dot(sum_p, sum_q)
    else:
        means = (sum_p * sum_q).div_(total.clamp(min=torch.finfo(torch.float32).tiny))
        value, slope = torch.dot(total, means.log1p()), means.add_(1.0).reciprocal_()
        sum_p, sum_q = sum_p * slope, sum_q * slope
    if not gradient:
        return value, None
    at_own = of_p.mul_(sum_q[y]).mul_(-alpha)
    scale = (sum_p * weights.column).mul_(alpha)
    return value, Slope(terms, scale.to(scores.dtype), at_own.to(scores.dtype)[:, None])


def _steep_exponential(
    scores: Tensor, weights: Weights, alpha: float, *, log1p: bool, gradient: bool
) -> tuple[Tensor, Slope | None]:
    """The terms of each side are taken over their largest: nothing overflows before the risk itself does."""
    y, dtype, column = weights.y, scores.dtype, torch.log(weights.column)
    log_p = torch.log(weights.unit) - alpha * own_scores(scores, weights)
    peak_p, peak_q = _peaks(scores, weights, alpha, log_p)
    terms, sum_q = _terms(scores, weights, alpha, peak_q)
    sum_p = class_sum(y, torch.exp(log_p - peak_p[y]), scores.shape[1])
    log_p_sum = torch.log(sum_p) + peak_p
    log_q_sum = torch.log(sum_q) + peak_q + column
    if log1p:
        # log(1 + r / w) and its slope r / (w + r), of log r: a risk beyond the floats still has both.
        log_mean = log_p_sum + log_q_sum - torch.log(weights.total)
        each = torch.where(weights.total > 0, torch.nn.functional.softplus(log_mean), 0.0 * sum_q)
        value, log_p_sum, log_q_sum = torch.dot(weights.total, each), log_p_sum - each, log_q_sum - each
    else:
        value = torch.exp(log_p_sum + log_q_sum).sum()
    if not gradient:
        return value, None
    scale = alpha * torch.exp(log_p_sum + peak_q + column)
    at_own = -alpha * torch.exp(log_p + log_q_sum[y])
    return value, Slope(terms, scale.to(dtype), at_own.to(dtype)[:, None])


def _terms(scores: Tensor, weights: Weights, alpha: float, peak: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """``(N, C)`` ``row · exp(α Q − peak)`` of the negatives, 0 in the own columns, and the sum of each column.

    The weight of the row and the peak go in as summands of the exponent: no further pass over the scores.
    """
    y, dtype = weights.y, scores.dtype
    log_row = torch.log2(weights.row).to(dtype)[:, None]
    shift = None if peak is None else (LOG2_E * peak).to(dtype)
    matrix = None if weights.matrix is None else weights.matrix.to(dtype)
    kept, sums = torch.empty_like(scores), []
    for rows in chunks(scores):
        terms = torch.add(take(log_row, rows), take(scores, rows), alpha=LOG2_E * alpha, out=take(kept, rows))
        terms = (terms if shift is None else terms.sub_(shift)).exp2_()
        if matrix is not None:
            terms *= matrix[take(y, rows)]
        terms.scatter_(1, take(y, rows)[:, None], 0.0)
        sums.append(terms.sum(0))
    return kept, sums[0].to(weights.column) if len(sums) == 1 else torch.stack(sums).to(weights.column).sum(0)


def _peaks(scores: Tensor, weights: Weights, alpha: float, log_p: Tensor) -> tuple[Tensor, Tensor]:
    """``(C,)`` largest exponents of the positives and of the negatives of each column; 0 where there is none."""
    y = weights.y
    log_q = torch.add(torch.log(weights.row).to(scores.dtype)[:, None], scores, alpha=alpha)
    log_q.scatter_(1, y[:, None], -torch.inf)
    none = torch.full_like(weights.column, -torch.inf)
    of_p = none.scatter_reduce(0, y, log_p, "amax")
    of_q = log_q.amax(0).to(none.dtype) if len(y) else none
    return torch.where(of_p == -torch.inf, 0.0, of_p), torch.where(of_q == -torch.inf, 0.0, of_q)


def _squared(scores: Tensor, weights: Weights, form: Closed, *, gradient: bool) -> tuple[Tensor, Slope | None]:
    """``Σ_mn a_m ω_n (α − P_m + Q_n)² = V Var P + Σ_n ω_n D_n²`` with ``D_n = Q_n + α − mean P``, column by column.

    Centred at the mean of the positives nothing cancels, and one walk over the negatives is enough.
    """
    n_classes, y, dtype = scores.shape[1], weights.y, scores.dtype
    own = own_scores(scores, weights)
    mean = _class_means(own, weights)
    own_centred = own - mean[y]
    spread = class_sum(y, weights.unit * own_centred.square(), n_classes)

    centre, row, column = mean.to(dtype), weights.row.to(dtype)[:, None], weights.column.to(dtype)
    weighted = torch.empty_like(scores)
    first, second = torch.zeros_like(spread), spread.new_zeros(1)
    for rows in chunks(scores):
        distance = (take(scores, rows) - centre).add_(form.alpha)
        factor = take(row, rows) if weights.matrix is None else weights.negative(dtype, rows)
        part = torch.mul(distance, factor, out=take(weighted, rows))
        part.scatter_(1, take(y, rows)[:, None], 0.0)
        first += part.sum(0)
        second += row_sums(distance.mul_(part), column).sum(dtype=second.dtype)
    first.mul_(weights.column)
    value = torch.dot(weights.total, spread) + second[0]
    if not gradient:
        return value, None
    at_own = 2.0 * weights.unit * (weights.total[y] * own_centred - first[y])
    return value, Slope(weighted, 2.0 * column, at_own.to(dtype)[:, None])


def _class_means(own: Tensor, weights: Weights) -> Tensor:
    """``(C,)`` means of the own-class scores, counted from the largest: the mean of equal scores is then exact."""
    none = torch.full_like(weights.column, -torch.inf)
    counted = torch.where(weights.unit > 0, own.detach(), -torch.inf)
    top = none.scatter_reduce(0, weights.y, counted, "amax")
    top = torch.where(top == -torch.inf, 0.0, top)
    return top + _class_sum(weights, weights.unit * (own - top[weights.y]))


def _line(scores: Tensor, weights: Weights, form: Closed, *, gradient: bool) -> tuple[Tensor, Slope | None]:
    """``Σ_mn a_m ω_n (α − P_m + Q_n)``: the slope does not depend on the scores."""
    y, dtype = weights.y, scores.dtype
    array = torch.empty_like(scores)
    of_q = torch.zeros_like(weights.column)
    for rows in chunks(scores):
        if weights.matrix is None:
            part = take(array, rows).copy_(take(weights.row, rows)[:, None])
            part.scatter_(1, take(y, rows)[:, None], 0.0)
        else:
            part = take(array, rows).copy_(weights.negative(dtype, rows))
        of_q += (part * take(scores, rows)).sum(0)
    of_p = class_sum(y, weights.unit * (form.alpha - own_scores(scores, weights)), scores.shape[1])
    value = form.scale * (torch.dot(weights.total, of_p) + torch.dot(weights.column, of_q))
    if not gradient:
        return value, None
    at_own = -form.scale * weights.total[y] * weights.unit
    return value, Slope(array, (form.scale * weights.column).to(dtype), at_own.to(dtype)[:, None])


def differentiable_risk(scores: Tensor, weights: Weights, form: Closed, *, log1p: bool) -> Tensor:
    """The risk in operations that torch can differentiate any number of times, for one process."""
    exact = exact_dtype(scores.device)
    own, weight, wide = own_scores(scores, weights), weights.negative(exact), scores.to(exact)
    if form.kind == "squared":
        mean = _class_means(own, weights)
        spread = _class_sum(weights, weights.unit * (own - mean[weights.y]).square())
        return torch.dot(weights.total, spread) + (weight * ((wide - mean) + form.alpha).square()).sum()
    if form.kind == "line":
        of_p = torch.dot(weights.total, _class_sum(weights, weights.unit * (form.alpha - own)))
        return form.scale * (of_p + (weight * wide).sum())
    # The terms of each side over their largest, which is a constant to the derivative. What weighs nothing is no term.
    log_p, log_q = -form.alpha * own, form.alpha * wide
    p_counts, q_counts = weights.unit > 0, weight > 0
    none = torch.full_like(weights.column, -torch.inf)
    peak_p = none.scatter_reduce(0, weights.y, torch.where(p_counts, log_p.detach(), -torch.inf), "amax")
    peak_q = torch.where(q_counts, log_q.detach(), -torch.inf).amax(0) if len(wide) else none
    peak_p, peak_q = (torch.where(peak == -torch.inf, 0.0, peak) for peak in (peak_p, peak_q))
    p = torch.where(p_counts, log_p - peak_p[weights.y], 0.0).exp() * weights.unit
    q = torch.where(q_counts, log_q - peak_q, 0.0).exp() * weight
    risks = torch.exp(peak_p + peak_q) * _class_sum(weights, p) * q.sum(0)
    if not log1p:
        return risks.sum()
    return torch.dot(weights.total, torch.log1p(risks / torch.where(weights.total > 0, weights.total, 1.0)))


def _class_sum(weights: Weights, values: Tensor) -> Tensor:
    return torch.zeros_like(weights.column).index_add(0, weights.y, values)
