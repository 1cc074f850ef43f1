r"""Closed forms in torch operations, on every device: the exponential, squared and linear losses.

The sum over the pairs of column i splits into sums over its positives P and its negatives Q,

.. math:: \sum_{mn} a_m \omega_n \, e^{-\alpha (P_m - Q_n)}
    = \Big(\sum_m a_m e^{-\alpha P_m}\Big) \Big(\sum_n \omega_n e^{\alpha Q_n}\Big),

and in the same way for the others: ``O(N·C)`` time, a few ``(N, C)`` arrays. Nothing waits for the device. On the CPU
rows are processed in chunks that stay in a second-level cache.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._loss.batch import Weights, chunks, class_sum, take
from mauc.nn._loss.device import exact_dtype
from mauc.surrogates import Surrogate

LOG2_E = 1.0 / math.log(2.0)
"""``exp(x) = 2 ** (LOG2_E · x)``, which takes torch a third of the time on the CPU."""
FLAT_ALPHA = 30.0
"""Up to this α, ``exp(α F)`` of scores in [0, 1] needs no shift, even in float32."""


class Closed(NamedTuple):
    """``ℓ(t) = scale · kind_α(t)``: ``exp(−α t)``, ``(α − t)²`` or the line ``α − t``."""

    kind: str
    """``"exponential"``, ``"squared"`` or ``"line"``."""
    alpha: float
    scale: float = 1.0


@lru_cache(maxsize=256)
def closed_form(surrogate: Surrogate, *, bounded: bool = True) -> Closed | None:
    """Return the closed form, or None. A loss that is linear on [−1, 1] has one for ``bounded`` scores, in [0, 1]."""
    known = surrogate.closed_form
    if known is not None:
        return Closed(*known)
    for piece in surrogate.pieces if bounded else ():
        if piece.low <= -1.0 and piece.high >= 1.0 and piece.coefficients is not None and len(piece.coefficients) == 2:
            constant, slope = piece.coefficients
            return Closed("line", -constant / slope, -slope) if slope < 0 else None
    return None


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
    """Return the risk, and its slope on request; with ``log1p`` the risk R_i of each class becomes log(1 + R_i)."""
    if form.kind == "exponential":
        risk = _flat_exponential if bounded and form.alpha <= FLAT_ALPHA else _exponential
        return risk(scores, weights, form.alpha, log1p=log1p, gradient=gradient)
    if form.kind == "squared":
        return _squared(scores, weights, form, gradient=gradient)
    return _line(scores, weights, form, gradient=gradient)


def own_scores(scores: Tensor, weights: Weights) -> Tensor:
    """Return the ``(N,)`` score of each sample in the column of its class, in the exact dtype."""
    return scores.gather(1, weights.y[:, None])[:, 0].to(exact_dtype(scores.device))


def row_sums(x: Tensor, column: Tensor) -> Tensor:
    """Return the ``(N,)`` ``x @ column``; not by cuBLAS, which raises in torch's deterministic mode."""
    return x @ column if x.is_cpu else (x * column).sum(1)


def _flat_exponential(
    scores: Tensor, weights: Weights, alpha: float, *, log1p: bool, gradient: bool
) -> tuple[Tensor, Slope | None]:
    """Compute the same as :func:`_exponential` of scores in [0, 1] and a small α: nothing needs a logarithm."""
    y, dtype = weights.y, scores.dtype
    of_each = weights.unit * torch.exp(-alpha * own_scores(scores, weights))
    of_p = class_sum(y, of_each, scores.shape[1])
    terms, sum_q, _ = _terms(scores, weights, alpha, flat=True)
    sum_q = weights.column * sum_q
    risks = of_p * sum_q
    if log1p:
        mean = risks / weights.total.clamp(min=torch.finfo(risks.dtype).tiny)
        value, steepness = torch.dot(weights.total, torch.log1p(mean)), alpha / (1.0 + mean)
        sum_q, of_p = steepness * sum_q, steepness * of_p
    else:
        value, sum_q, of_p = risks.sum(), alpha * sum_q, alpha * of_p
    if not gradient:
        return value, None
    own_slope = -of_each * sum_q.index_select(0, y)
    return value, Slope(terms, (of_p * weights.column).to(dtype), own_slope.to(dtype)[:, None])


def _exponential(
    scores: Tensor, weights: Weights, alpha: float, *, log1p: bool, gradient: bool
) -> tuple[Tensor, Slope | None]:
    """Compute ``R_i = (Σ_m a_m exp(−α P_m)) (Σ_n ω_n exp(α Q_n))`` in log space.

    The terms of each side are divided by their largest: nothing overflows before the risk itself does. With ``log1p``
    the risk is ``Σ_i w_i log(1 + R_i / w_i)``, w the summed weights of the columns.
    """
    y, n_classes, dtype = weights.y, scores.shape[1], scores.dtype
    own, log_unit = own_scores(scores, weights), torch.log(weights.unit)
    # Added to scores far from 0, the logarithms of the weights would round away. So the lowest positive and the highest
    # negative are subtracted first.
    least, largest = _extremes(scores, weights, own, log_unit)
    scores, own, base = scores - largest.to(dtype), own - least[y], alpha * (largest - least)
    log_p = log_unit - alpha * own
    terms, sum_q, peak_q = _terms(scores, weights, alpha, flat=False)
    peak_p = _finite(torch.full_like(base, -torch.inf).scatter_reduce(0, y, log_p, "amax"))
    log_p_sum = torch.log(class_sum(y, torch.exp(log_p - peak_p[y]), n_classes)) + peak_p
    log_risk = base + (log_p_sum + (torch.log(sum_q) + peak_q + torch.log(weights.column)))
    if log1p:
        # log(1 + r / w) and its slope r / (w + r), from log r: even a risk that overflows has both.
        log_mean = log_risk - torch.log(weights.total)
        each = torch.where(weights.total > 0, torch.nn.functional.softplus(log_mean, threshold=40.0), 0.0 * sum_q)
        value = torch.dot(weights.total, each)
        share = torch.where(weights.total > 0, torch.nn.functional.logsigmoid(log_mean), 0.0)
        log_risk = share + torch.log(weights.total)
    else:
        value = torch.exp(log_risk).sum()
    if not gradient:
        return value, None
    scale = torch.where(sum_q > 0, alpha * torch.exp(log_risk - torch.log(sum_q)), 0.0)
    # A weight of 0 leaves nothing to differentiate; its share in a class without weight would be 0 / 0.
    own_slope = torch.where(log_p == -torch.inf, 0.0, -alpha * torch.exp(log_p - log_p_sum[y] + log_risk[y]))
    return value, Slope(terms, scale.to(dtype), own_slope.to(dtype)[:, None])


def _extremes(scores: Tensor, weights: Weights, own: Tensor, log_unit: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ``(C,)`` lowest positive and highest negative score with a weight in each column; 0 without any."""
    y, none = weights.y, torch.full_like(weights.column, torch.inf)
    least = none.scatter_reduce(0, y, torch.where(log_unit > -torch.inf, own, torch.inf), "amin")
    # Adding −∞ to the rows without weight takes a fifth of the time of torch.where.
    negatives = scores + torch.where(weights.row > 0, 0.0, -torch.inf).to(scores.dtype)[:, None]
    negatives.scatter_(1, y[:, None], -torch.inf)
    largest = negatives.amax(0).to(none) if len(y) else -none
    return _finite(least), _finite(largest)


def _finite(x: Tensor) -> Tensor:
    """Return x with 0 instead of infinities, the placeholders of columns without samples."""
    return torch.where(x.isinf(), 0.0, x)


def _terms(scores: Tensor, weights: Weights, alpha: float, *, flat: bool) -> tuple[Tensor, Tensor, Any]:
    """Return the ``(N, C)`` ``row · exp(α Q − peak)`` of the negatives, the sum of each column, and the peaks.

    The weight of the row and the peak are added in the exponent, which saves a pass over the scores.
    """
    y, dtype = weights.y, scores.dtype
    log_row = torch.log2(weights.row).to(dtype)[:, None]
    peak_q: Any = 0.0
    if not flat and len(y):
        log_q = torch.add(torch.log(weights.row).to(dtype)[:, None], scores, alpha=alpha)
        peak_q = _finite(log_q.scatter_(1, y[:, None], -torch.inf).amax(0).to(weights.column))
    matrix = None if weights.matrix is None else weights.matrix.to(dtype)
    whole, sums = torch.empty_like(scores), []
    for rows in chunks(scores):
        terms = torch.add(take(log_row, rows), take(scores, rows), alpha=LOG2_E * alpha, out=take(whole, rows))
        if not flat:
            terms.sub_((LOG2_E * torch.as_tensor(peak_q)).to(dtype))
        terms.exp2_()
        if matrix is not None:
            terms *= matrix[take(y, rows)]
        terms.scatter_(1, take(y, rows)[:, None], 0.0)
        sums.append(terms.sum(0))
    total = sums[0].to(weights.column) if len(sums) == 1 else torch.stack(sums).to(weights.column).sum(0)
    return whole, total, peak_q


def _squared(scores: Tensor, weights: Weights, form: Closed, *, gradient: bool) -> tuple[Tensor, Slope | None]:
    """Compute ``Σ_mn a_m ω_n (α − P_m + Q_n)² = V Var P + Σ_n ω_n D_n²`` with ``D_n = Q_n + α − mean P`` by column.

    Centred at the mean of the positives nothing cancels, and one pass over the negatives is enough.
    """
    n_classes, y, dtype = scores.shape[1], weights.y, scores.dtype
    own = own_scores(scores, weights)
    mean = _class_means(own, weights)
    own_centred = own - mean[y]
    spread = class_sum(y, weights.unit * own_centred.square(), n_classes)

    centre, row, column = mean.to(dtype), weights.row.to(dtype)[:, None], weights.column.to(dtype)
    margin = (form.alpha - (mean - centre)).to(dtype)  # with what the centre loses by rounding
    weighted = torch.empty_like(scores)
    first, second = torch.zeros_like(spread), spread.new_zeros(1)
    for rows in chunks(scores):
        distance = (take(scores, rows) - centre).add_(margin)
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
    """Return the ``(C,)`` means of the own scores, counted from the largest: the mean of equal scores is exact."""
    none = torch.full_like(weights.column, -torch.inf)
    counted = torch.where(weights.unit > 0, own.detach(), -torch.inf)
    top = none.scatter_reduce(0, weights.y, counted, "amax")
    top = torch.where(top == -torch.inf, 0.0, top)
    return top + _class_sum(weights, weights.unit * (own - top[weights.y]))


def _line(scores: Tensor, weights: Weights, form: Closed, *, gradient: bool) -> tuple[Tensor, Slope | None]:
    """Compute ``Σ_mn a_m ω_n (α − P_m + Q_n)``; its slope does not depend on the scores."""
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
    """Return the risk in operations that torch can differentiate any number of times."""
    exact = exact_dtype(scores.device)
    own, weight, wide = own_scores(scores, weights), weights.negative(exact), scores.to(exact)
    if form.kind == "squared":
        mean = _class_means(own, weights)
        spread = _class_sum(weights, weights.unit * (own - mean[weights.y]).square())
        return torch.dot(weights.total, spread) + (weight * ((wide - mean) + form.alpha).square()).sum()
    if form.kind == "line":
        of_p = torch.dot(weights.total, _class_sum(weights, weights.unit * (form.alpha - own)))
        return form.scale * (of_p + (weight * wide).sum())
    # Divide the terms of each side by their largest, a constant to the derivative. A term of weight 0 is left out.
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
