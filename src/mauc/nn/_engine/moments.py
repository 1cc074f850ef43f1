"""Surrogates whose pair sum splits into sums over each side: ``O(N·C)`` time, a few ``(N, C)`` arrays.

Every function takes scores ``F`` of shape ``(N, C)`` and returns the risk, of the exact dtype, and its gradient with
respect to the scores, or None if that was not asked for. Nothing synchronises with the host.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mauc._typing import Floats
from mauc.kernels.piecewise import Piece
from mauc.nn._engine.batch import Batch, chunks, class_sum, exact_dtype, is_traced, take
from mauc.nn._engine.processes import Communicator

__all__ = [
    "Result",
    "Slope",
    "basis",
    "chebyshev_derivative",
    "exponential",
    "log1p_risk",
    "own_scores",
    "polynomial",
    "squared",
]


class Slope(NamedTuple):
    """The gradient with respect to the scores: ``array · column``, and ``own`` in the columns of the samples' classes.

    The factors are applied chunk by chunk on the way through the activation.
    """

    array: Tensor
    """``(N, C)``"""
    column: Tensor | None
    """``(C,)``"""
    own: Tensor | None
    """``(N, 1)``"""


Result = tuple[Tensor, Slope | None]

FLAT_ALPHA = 30.0
"""Up to here ``exp(α F)`` of scores in [0, 1] needs no shift, float32 included."""
MOST_COPIES = 64
_COPIES: dict[tuple[int, torch.dtype, torch.device], tuple[Floats, Tensor]] = {}


def own_scores(scores: Tensor, batch: Batch) -> Tensor:
    """``(N,)`` score of each sample in the column of its class, of the exact dtype."""
    return scores.gather(1, batch.y[:, None])[:, 0].to(exact_dtype(scores.device))


def squared(scores: Tensor, batch: Batch, alpha: float, world: Communicator, *, gradient: bool) -> Result:
    """``Σ_mn a_m ω_n (α − P_m + Q_n)² = V Var P + Σ_n ω_n D_n²`` with ``D_n = Q_n + α − mean P``, column by column.

    Centred at the mean of the positives nothing cancels, and one walk over the negatives is enough.
    """
    n_classes, y, dtype = scores.shape[1], batch.y, scores.dtype
    own = own_scores(scores, batch)
    mean = world.sum(class_sum(y, batch.unit * own, n_classes))
    own_centred = own - mean[y]
    spread = class_sum(y, batch.unit * own_centred.square(), n_classes)

    origin, row, column = (mean - alpha).to(dtype), batch.row.to(dtype)[:, None], batch.column.to(dtype)
    weighted = torch.empty_like(scores) if gradient else None
    first, second = torch.zeros_like(spread), spread.new_zeros(1)
    for rows in chunks(scores):
        distance = take(scores, rows) - origin
        factor = take(row, rows) if batch.matrix is None else batch.negative(dtype, rows)
        part = torch.mul(distance, factor, out=None if weighted is None else take(weighted, rows))
        part.scatter_(1, take(y, rows)[:, None], 0.0)
        first += part.sum(0)
        second += (distance.mul_(part) @ column).sum(dtype=second.dtype)
    spread, first, second = world.sums(spread, first.mul_(batch.column), second)
    value = torch.dot(batch.total, spread) + second[0]
    if weighted is None:
        return value, None
    at_own = (batch.total[y] * own_centred).sub_(first[y]).mul_(batch.unit).mul_(2.0)
    return value, Slope(weighted, 2.0 * column, at_own.to(dtype)[:, None])


def exponential(
    scores: Tensor,
    batch: Batch,
    alpha: float,
    world: Communicator,
    *,
    bounded: bool,
    gradient: bool,
    log1p: bool = False,
) -> Result:
    """``R = Σ_i (Σ_m a_m exp(−α P_m)) (Σ_n ω_n exp(α Q_n))``; in log space, unless the scores need no such care.

    With ``log1p`` the risk of each class goes through :func:`log1p_risk`.
    """
    if not bounded or alpha > FLAT_ALPHA:
        return _exponential_of_any(scores, batch, alpha, world, gradient=gradient, log1p=log1p)
    n_classes, y, dtype = scores.shape[1], batch.y, scores.dtype
    of_p = torch.exp(own_scores(scores, batch).mul_(-alpha)).mul_(batch.unit)
    # The weight of the row goes in as a summand of the exponent: one pass over the scores less.
    log_row = torch.log(batch.row).to(dtype)[:, None]
    matrix = None if batch.matrix is None else batch.matrix.to(dtype)
    kept = torch.empty_like(scores) if gradient else None
    sum_q = torch.zeros_like(batch.column)
    for rows in chunks(scores):
        out = None if kept is None else take(kept, rows)
        terms = torch.add(take(log_row, rows), take(scores, rows), alpha=alpha, out=out).exp_()
        if matrix is not None:
            terms *= matrix[take(y, rows)]
        terms.scatter_(1, take(y, rows)[:, None], 0.0)
        sum_q += terms.sum(0)
    sum_p, sum_q = world.sums(class_sum(y, of_p, n_classes), sum_q.mul_(batch.column))
    value, slope = log1p_risk(sum_p * sum_q, batch.total) if log1p else (torch.dot(sum_p, sum_q), None)
    if kept is None:
        return value, None
    if slope is not None:
        sum_p, sum_q = sum_p * slope, sum_q * slope
    at_own = of_p.mul_(sum_q[y]).mul_(-alpha)
    scale = sum_p.mul_(batch.column).mul_(alpha)
    return value, Slope(kept, scale.to(dtype), at_own.to(dtype)[:, None])


def log1p_risk(risks: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """``Σ_i w_i log(1 + r_i / w_i)`` of the risks r of the classes, weights w included, and its slope in each r."""
    means = risks / torch.where(weights > 0, weights, 1.0)
    return torch.dot(weights, torch.log1p(means)), 1.0 / (1.0 + means)


def _exponential_of_any(
    scores: Tensor, batch: Batch, alpha: float, world: Communicator, *, gradient: bool, log1p: bool
) -> Result:
    """The terms of each side shifted by their largest: nothing overflows before the result itself does."""
    n_classes, y, dtype = scores.shape[1], batch.y, scores.dtype
    log_of_p = torch.log(batch.unit) - alpha * own_scores(scores, batch)
    log_row = torch.log(batch.row).to(dtype)[:, None]
    log_column = torch.log(batch.column)
    log_terms = torch.add(log_row, scores, alpha=alpha)
    if batch.matrix is not None:
        log_terms += torch.log(batch.matrix).to(dtype)[y]
    log_terms.scatter_(1, y[:, None], -torch.inf)

    none = torch.full_like(log_column, -torch.inf)
    peaks = torch.cat([none.scatter_reduce(0, y, log_of_p, "amax"), log_terms.amax(0) if len(y) else none])
    peaks = world.largest(peaks)
    peaks = torch.where(peaks == -torch.inf, 0.0, peaks)
    peak_p, peak_q = peaks[:n_classes], peaks[n_classes:]
    terms = log_terms.sub_(peak_q.to(dtype)).exp_()
    sum_p = class_sum(y, torch.exp(log_of_p - peak_p[y]), n_classes)
    sum_p, sum_q = world.sums(sum_p, terms.sum(0).to(sum_p.dtype))
    log_p = torch.log(sum_p) + peak_p
    log_q = torch.log(sum_q) + peak_q + log_column
    value = torch.exp(log_p + log_q).sum()
    if log1p:
        # log(1 + r / w) and its slope r / (w + r), of log r: a risk beyond the floats still has both.
        log_mean = log_p + log_q - torch.log(batch.total)
        each = torch.where(batch.total > 0, torch.nn.functional.softplus(log_mean), 0.0)
        value, log_p, log_q = torch.dot(batch.total, each), log_p - each, log_q - each
    if not gradient:
        return value, None
    scale = alpha * torch.exp(log_p + peak_q + log_column)
    at_own = -alpha * torch.exp(log_of_p + log_q[y])
    return value, Slope(terms, scale.to(dtype), at_own.to(dtype)[:, None])


def polynomial(
    scores: Tensor, batch: Batch, segment: Piece, centre: Tensor, world: Communicator, *, gradient: bool
) -> Result:
    """``ℓ(p − q) = Σ_kl A_kl T_k(x_p) T_l(x_q)`` with Chebyshev polynomials of ``x = (score − centre)/half_width``.

    ``centre`` is ``(C,)``. The weighted polynomials ``ω T_k`` obey the same recurrence as the ``T_k``: no further
    array is needed to sum them. ``O(K·N·C)`` time.
    """
    n_classes, y, half = scores.shape[1], batch.y, segment.half_width
    assert half is not None
    own = (own_scores(scores, batch) - centre[y]) / half
    exact = own.dtype
    matrix = _there(segment.matrix, exact, scores.device)
    degree = len(matrix) - 1
    own_terms = torch.stack(basis(own, degree + 1, chebyshev=True), dim=1)
    moment_p = class_sum(y, batch.unit[:, None] * own_terms, n_classes)

    middle = centre.to(scores.dtype)
    moment_q = torch.zeros((n_classes, degree + 1), dtype=exact, device=scores.device)
    for rows in chunks(scores):
        moment_q += _moments((take(scores, rows) - middle).div_(half), batch.negative(scores.dtype, rows), degree)
    moment_p, moment_q = world.sums(moment_p, moment_q)
    of_p, of_q = moment_q @ matrix.T, moment_p @ matrix
    value = (moment_p * of_p).sum()
    if not gradient:
        return value, None
    slope, of_q = torch.empty_like(scores), chebyshev_derivative(of_q) / half
    for rows in chunks(scores):
        x, weight = (take(scores, rows) - middle).div_(half), batch.negative(scores.dtype, rows)
        torch.mul(weight, _clenshaw(x, of_q), out=take(slope, rows))
    at_own = batch.unit * (chebyshev_derivative(of_p)[y] / half * own_terms[:, :degree]).sum(1)
    return value, Slope(slope, None, at_own.to(scores.dtype)[:, None])


def _there(matrix: Floats, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Coefficients on the device. They are copied once: a copy waits for the device, and cannot be recorded."""
    if is_traced() or device.type == "cpu":
        return torch.as_tensor(matrix, dtype=dtype, device=device)
    key = (id(matrix), dtype, device)
    if key not in _COPIES:
        while len(_COPIES) >= MOST_COPIES:
            del _COPIES[next(iter(_COPIES))]
        # With the array, so that no other one gets its number.
        _COPIES[key] = matrix, torch.as_tensor(matrix, dtype=dtype, device=device)
    return _COPIES[key][1]


def _moments(x: Tensor, weight: Tensor, degree: int) -> Tensor:
    """``(C, K + 1)`` column sums of ``w T_0(x) … w T_K(x)``; two of them are held at a time."""
    before, term = weight, weight * x
    sums = [before.sum(0), term.sum(0)]
    for _ in range(degree - 1):
        before, term = term, torch.addcmul(-before, x, term, value=2.0)
        sums.append(term.sum(0))
    return torch.stack(sums, dim=1)


def basis(x: Tensor, size: int, *, chebyshev: bool) -> list[Tensor]:
    """``φ_0(x) … φ_(size−1)(x)``: powers, or Chebyshev polynomials."""
    terms = [torch.ones_like(x), x]
    for _ in range(size - 2):
        terms.append(2.0 * x * terms[-1] - terms[-2] if chebyshev else terms[-1] * x)
    return terms[:size]


def chebyshev_derivative(coefficients: Tensor) -> Tensor:
    """``(C, K)`` coefficients of the derivative of Chebyshev series ``(C, K + 1)``."""
    degree = coefficients.shape[1] - 1
    k = torch.arange(degree, device=coefficients.device)
    source = torch.arange(degree + 1, device=coefficients.device)
    # d_k = 2 Σ_{j>k, j−k odd} j c_j, halved for k = 0.
    odd = (source > k[:, None]) & ((source - k[:, None]) % 2 == 1)
    matrix = 2.0 * odd * source
    matrix[0] /= 2.0
    return coefficients @ matrix.T.to(coefficients.dtype)


def _clenshaw(x: Tensor, coefficients: Tensor) -> Tensor:
    """``Σ_k coefficients[:, k] T_k(x)`` column by column."""
    series = coefficients.to(x.dtype).unbind(1)
    later, current = torch.zeros_like(x), series[-1].expand_as(x)
    for constant in reversed(series[1:-1]):
        later, current = current, torch.addcmul(constant - later, x, current, value=2.0)
    if len(series) == 1:
        return current
    return torch.addcmul(series[0] - later, x, current)
