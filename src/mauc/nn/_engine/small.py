"""The loss of a small batch on the CPU: the formulas of :mod:`mauc.nn._engine.host` with the fewest calls, all at once.

Mostly in NumPy, whose calls cost a third of torch's and whose exponential half; torch has the faster loops over rows.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from mauc._typing import Floats, Ints
from mauc.nn._engine.forms import FAINT, Array, Form, Line, Weights, log1p_risk, ones
from mauc.surrogates import Surrogate

__all__ = ["MOST", "MOST_PAIRED", "evaluate"]

MOST = 1 << 17
"""Scores up to which NumPy's one thread is not behind the several that torch may have."""
MOST_PAIRED = 128
"""Samples up to which all pairs take no longer than the search, or the sums, of a loss without a closed form."""
TINY = 1 << 12
"""Scores up to which double precision costs no more than single."""
FEW = 1 << 15
"""Scores up to which NumPy's cheaper calls are worth more than torch's faster loops."""
FEW_ROWS = 256
"""Rows up to which single precision may be added up one after the other, as BLAS does."""
WIDE = 16
"""Classes from which torch's gradient of the softmax uses the width of the processor: seven times as fast a row."""
PLAIN_SUMS = (1e-6, 1e30)
"""Between these a row's ``Σ exp z`` leaves every score above :data:`FAINT` all its digits."""

Terms = tuple[float, Array, Floats]
"""The risk; its slope ``(N, C)`` in the scores, but for those of the samples' own classes; ``(N,)`` its slope there."""


@np.errstate(all="ignore")
def evaluate(
    logits: Tensor,
    y: Ints,
    form: Form | Surrogate,
    weights: Weights,
    share: float,
    ratios: Floats | None,
    *,
    log1p: bool,
) -> tuple[float, Tensor] | None:
    """The loss and its gradient, as :func:`mauc.nn._engine.host.evaluate`; of a surrogate itself by all pairs."""
    z: Array = logits.numpy(force=True)  # of an imaginary part too, which may be stored with its sign turned
    f = _softmax(z)
    at = _starts(*f.shape) + y
    if isinstance(form, Line):
        if not form.all_scores and not np.max(f.max(0) - f.min(0)) < form.reach:
            return None
        value, g, at_own = _line(f, at, y, weights, form)
    elif isinstance(form, Surrogate):
        value, g, at_own = _pairs(f, at, y, weights, form)
        if not math.isfinite(value):
            return None
    elif form.kind == "squared":
        value, g, at_own = _squared(f, at, y, weights, form.alpha)
    else:
        value, g, at_own = _exponential(f, at, y, weights, form.alpha, log1p=log1p)
    if ratios is not None:
        of_own, own, share = ratios.take(y), f.take(at), share / len(y)
        ratios = ratios.astype(f.dtype, copy=False)
        mixed = f.dot(ratios)
        if not (np.minimum.reduce(mixed) > FAINT and np.minimum.reduce(own) > FAINT):
            return None
        # s (q − e_y) with q = F r / ΣF r, the gradient of the log-loss, is that of G = s (r / ΣF r − e_y / F_y).
        odds = of_own / mixed
        value -= share * float(np.add.reduce(np.log(odds * own), dtype=np.float64))
        at_own += share * (odds - 1.0 / own)
        _add_product(g, (share / mixed)[:, None], ratios)
    g.put(at, at_own)
    return value, _through_softmax(g, f, z.dtype)


def _squared(f: Array, at: Ints, y: Ints, weights: Weights, alpha: float) -> Terms:
    """See :func:`mauc.nn._engine.moments.squared`."""
    unit, row, column, total = weights
    own = f.take(at)
    mean = np.bincount(y, own, len(unit)) * unit
    centred, origin = own - mean.take(y), alpha - mean
    g = _plus(f, origin.astype(f.dtype, copy=False), np.empty_like(f))
    _times(g, (2.0 * row).astype(f.dtype, copy=False).take(y)[:, None], g)
    _times(g, column.astype(f.dtype, copy=False), g)
    g.put(at, 0.0)
    at_own = (2.0 * total * unit).take(y) * centred
    sums = _column_sums(g)
    value = at_own.dot(centred) + sums.dot(origin) + np.add.reduce(np.vecdot(f, g), dtype=np.float64)
    return 0.5 * float(value), g, at_own - (unit * sums).take(y)


def _pairs(f: Array, at: Ints, y: Ints, weights: Weights, surrogate: Surrogate) -> Terms:
    """The definition: each sample as a positive, in rows, with all others in the column of its class."""
    unit, row, column, _ = weights
    t = f.take(at)[:, None] - f.T.take(y, 0)
    weight = (unit * column).take(y)[:, None] * row.take(y)
    weight[y[:, None] == y] = 0.0
    value = float(np.vdot(weight, surrogate.loss(t)))
    weight *= surrogate.derivative(t)
    of_class = (y[:, None] == np.arange(len(unit))).astype(np.float64)
    return value, np.dot(-weight.T, of_class), weight.sum(1)


def _line(f: Array, at: Ints, y: Ints, weights: Weights, line: Line) -> Terms:
    """See :func:`mauc.kernels.moments.line_risk`: the slope does not depend on the scores."""
    unit, row, column, total = weights
    of_row, of_column = row.astype(f.dtype, copy=False).take(y)[:, None], -line.slope * column
    g = _times(of_row, of_column.astype(f.dtype, copy=False), np.empty_like(f))
    g.put(at, 0.0)
    at_own = (line.slope * total * unit).take(y)
    negatives = np.add.reduce(np.vecdot(f, g), dtype=np.float64)
    return float(line.at_zero * (total > 0) + at_own.dot(f.take(at)) + negatives), g, at_own


def _exponential(f: Array, at: Ints, y: Ints, weights: Weights, alpha: float, *, log1p: bool) -> Terms:
    """See :func:`mauc.nn._engine.moments.exponential`."""
    unit, row, column, total = weights
    if alpha == 1.0:
        g = np.exp(f)
    else:
        g = alpha * f
        np.exp(g, out=g)
    of_p = unit.take(y) / g.take(at)
    sum_p: Floats = np.bincount(y, of_p, len(unit))  # type: ignore[assignment]
    _times(g, row.astype(f.dtype, copy=False).take(y)[:, None], g)
    g.put(at, 0.0)
    sum_q = column * _column_sums(g)
    value = float(sum_p.dot(sum_q))
    if log1p:
        value, slope = log1p_risk(sum_p * sum_q, total)
        sum_p, sum_q = sum_p * slope, sum_q * slope
    _times(g, (alpha * column * sum_p).astype(f.dtype, copy=False), g)
    return value, g, of_p * (-alpha * sum_q).take(y)


def _softmax(z: Array) -> Array:
    """Without the largest of each row taken off, unless that loses digits."""
    f = np.exp(z.astype(np.float64) if z.size <= TINY else z, order="C")
    sums = f.dot(ones(f.shape[1], f.dtype.char))
    if not (np.minimum.reduce(sums) > PLAIN_SUMS[0] and np.maximum.reduce(sums) < PLAIN_SUMS[1]):
        f = np.subtract(z, z.max(1, keepdims=True), dtype=f.dtype, order="C")
        sums = np.exp(f, out=f).sum(1)
    return _times(f, (1.0 / sums)[:, None], f)


def _times(x: Array, by: Array, out: Array) -> Array:
    """``x · by``, of rows or columns."""
    if out.size <= FEW:
        return np.multiply(x, by, out)
    if x is out:
        torch.from_numpy(x).mul_(torch.from_numpy(by))
    else:
        torch.mul(torch.from_numpy(x), torch.from_numpy(by), out=torch.from_numpy(out))
    return out


def _plus(x: Array, by: Array, out: Array) -> Array:
    """``x + by``, of rows or columns."""
    if out.size <= FEW:
        return np.add(x, by, out)
    torch.add(torch.from_numpy(x), torch.from_numpy(by), out=torch.from_numpy(out))
    return out


def _add_product(x: Array, of_row: Array, of_column: Array) -> None:
    if x.size <= FEW:
        x += of_row * of_column
    else:
        torch.from_numpy(x).addcmul_(torch.from_numpy(of_row), torch.from_numpy(of_column))


def _through_softmax(g: Array, f: Array, dtype: np.dtype[np.floating]) -> Tensor:
    """``F ⊙ (G − Σ_i F G)``; G is lost."""
    if g.size <= FEW or g.shape[1] < WIDE:
        g -= np.vecdot(f, g)[:, None]
        g *= f
        return torch.from_numpy(g.astype(dtype, copy=False))
    slope, scores = torch.from_numpy(g), torch.from_numpy(f)
    return torch._softmax_backward_data(slope, scores, 1, scores.dtype, grad_input=slope)


def _column_sums(x: Array) -> Array:
    """In two steps where there are many rows."""
    n, n_classes, kind = *x.shape, x.dtype.char
    if n <= FEW_ROWS:
        return ones(n, kind).dot(x)
    # The errors of the first step, the longer one, even out in the second; a power of 2 divides most batches.
    some = 1 << (n.bit_length() // 2 - 2)
    rest = n % some
    parts = ones(n // some, kind).dot(x[rest:].reshape(-1, some * n_classes)).reshape(some, n_classes)
    sums = ones(some, kind).dot(parts)
    return sums + ones(rest, kind).dot(x[:rest]) if rest else sums


@lru_cache(maxsize=8)
def _starts(n: int, n_classes: int) -> Ints:
    """Where each row begins."""
    return np.arange(0, n * n_classes, n_classes)
