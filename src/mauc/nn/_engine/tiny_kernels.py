# mypy: ignore-errors
# ruff: noqa: RUF005 — Triton compiles no * in tuples
"""The kernel of tiny batches; imported only where Triton is. See :mod:`mauc.nn._engine.fused_tiny`."""

import triton
import triton.language as tl

from mauc.nn._engine.fused_kernels import _rows
from mauc.nn._engine.positives_kernels import _downward
from mauc.nn._engine.survey_kernels import MATRIX, OVA, OVO, SIGMOID, SOFTMAX, score_of


@triton.jit
def _pair_weights(
    y, u, counts, rows, sizes, matrix,
    C: tl.constexpr, PAIRS: tl.constexpr, HAS_SIZES: tl.constexpr,
):  # fmt: skip
    """``[q, r]``: weight of the pair of sample q, as the negative, and sample r, as the positive; 0 where it is none.

    A class is spoken of by its samples: the first one of it stands for it where classes are counted.
    """
    same = (y[:, None] == y[None, :]) & counts[:, None] & counts[None, :]
    mass = tl.sum(tl.where(same, u[None, :], 0.0), axis=1)
    earlier = tl.sum((same & (rows[None, :] < rows[:, None])).to(tl.int32), axis=1)
    unit = tl.where(mass == 0.0, 0.0, u / mass)
    first = (mass != 0.0) & (earlier == 0)
    n_here = tl.sum(first.to(tl.float32), axis=0)
    positive = unit
    negative = unit
    if PAIRS == OVO:
        positive = unit / tl.maximum(n_here * (n_here - 1.0), 1.0)
    elif PAIRS == OVA:
        size = mass
        if HAS_SIZES:
            size = tl.load(sizes + y).to(tl.float32)
        of_first = tl.where(first, size, 0.0)
        others = tl.sum(tl.where(same, 0.0, of_first[None, :]), axis=1)
        positive = tl.where(others == 0.0, 0.0, unit / (n_here * others))
        negative = unit * size
    weights = tl.where(y[:, None] == y[None, :], 0.0, negative[:, None] * positive[None, :])
    if PAIRS == MATRIX:
        weights *= tl.load(matrix + y[:, None] * C + y[None, :])
    return weights


@triton.jit
def _numbers(at, COUNT: tl.constexpr):
    """Some numbers that lie together, each for all threads."""
    out = ()
    for i in tl.static_range(COUNT):
        out = out + (tl.load(at + i),)
    return out


@triton.jit
def _loss_and_slope(
    p, q, ends, coefficients, rate,
    CUT: tl.constexpr, EXPONENTIAL: tl.constexpr, PIECES: tl.constexpr, DEGREE: tl.constexpr,
):  # fmt: skip
    """``ℓ(p − q)`` and its slope in q, computed in the dtype of the coefficients; q is ``[q, r]``, p is ``[r]``.

    ``coefficients`` are, of each piece, its origin o and those of the powers of ``o − t``. A piece holds below its end,
    and there in place of the ones before it.
    """
    wide: tl.constexpr = coefficients[0].dtype
    apart = q.to(wide) - p.to(wide)[None, :]
    loss = tl.zeros(q.shape, wide)
    slope = tl.zeros(q.shape, wide)
    for piece in tl.static_range(PIECES):
        z = apart + coefficients[piece * (DEGREE + 2)]
        total = tl.zeros(q.shape, wide) + coefficients[piece * (DEGREE + 2) + 1 + DEGREE]
        steep = tl.zeros(q.shape, wide)
        if EXPONENTIAL:
            total *= tl.exp(rate * z)
            steep = rate * total
        for back in tl.static_range(1, DEGREE + 1):
            steep = steep * z + total
            total = total * z + coefficients[piece * (DEGREE + 2) + 1 + DEGREE - back]
        if CUT:
            # As the scores are, not as their difference is rounded; what is no number stays none.
            beyond = q <= _downward(p.to(tl.float64) - ends[piece])[None, :]
            total = tl.where(beyond, loss, total)
            steep = tl.where(beyond, slope, steep)
        loss = total
        slope = steep
    return loss.to(tl.float32), slope.to(tl.float32)


@triton.jit
def tiny(
    logits,
    target,
    weight,
    sizes,
    ratios,
    matrix,
    ends,
    coefficients,
    value,
    out,
    rate,
    log_loss,
    n,
    ignore_index,
    C: tl.constexpr,
    STRIDE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    LOG: tl.constexpr,
    PAIRS: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_SIZES: tl.constexpr,
    GRADIENT: tl.constexpr,
    CUT: tl.constexpr,
    EXPONENTIAL: tl.constexpr,
    PIECES: tl.constexpr,
    DEGREE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Value and gradient of a whole batch, in one program."""
    # Read before anything is summed: later loads would not be issued ahead of a barrier.
    table = _numbers(coefficients, PIECES * (DEGREE + 2))
    bounds = _numbers(ends, PIECES)
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    y, u, counts = _rows(target, weight, rows, n, ignore_index, C, HAS_WEIGHT)
    exists = (columns < C)[None, :]
    inside = counts[:, None] & exists
    start = logits + rows.to(tl.int64) * STRIDE
    x = tl.load(start[:, None] + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    own = tl.load(start + y, mask=counts, other=0.0).to(tl.float32)
    in_columns = tl.load(start[:, None] + y[None, :], mask=counts[:, None], other=0.0).to(tl.float32)
    # Of the classes alone, while the logits are on their way.
    weights = _pair_weights(y, u, counts, rows, sizes, matrix, C, PAIRS, HAS_SIZES)
    peak = tl.zeros((ROWS,), tl.float32)
    scale = tl.full((ROWS,), 1.0, tl.float32)
    e = x
    if ACTIVATION == SOFTMAX or LOG:
        e = tl.where(exists, x, float("-inf"))
        peak = tl.max(e, axis=1)
        e = tl.exp(e - peak[:, None])
        scale = 1.0 / tl.sum(e, axis=1)
    f = e * scale[:, None] if ACTIVATION == SOFTMAX else score_of(x, 0.0, 1.0, ACTIVATION)
    p = score_of(own, peak, scale, ACTIVATION)
    q = score_of(in_columns, peak[:, None], scale[:, None], ACTIVATION)
    loss, slope = _loss_and_slope(p, q, bounds, table, rate, CUT, EXPONENTIAL, PIECES, DEGREE)
    # What weighs nothing is no term, even where its loss is beyond the floats; but no number stays none.
    risk = tl.sum(tl.where(weights == 0.0, 0.0, weights * loss), axis=1)
    lost = tl.sum(tl.where(inside & (f != f), f, 0.0), axis=1) + tl.where(u == u, 0.0, u)
    share = 0.0
    if LOG:
        r = tl.load(ratios + columns, mask=columns < C, other=0.0)[None, :]
        shifted = tl.sum(e * r, axis=1)
        mass = tl.sum(u, axis=0)
        share = tl.where(mass == 0.0, 0.0, log_loss / mass)
        surprise = tl.log(shifted) - tl.log(tl.load(ratios + y)) - (own - peak)
        lost += tl.where(u == 0.0, 0.0, share * u * surprise)
    tl.store(value, tl.sum(risk + lost, axis=0).to(value.dtype.element_ty))
    if GRADIENT:
        slope = tl.where(weights == 0.0, 0.0, weights * slope)
        # Of a negative in each column: the sum over the positives of that class.
        is_own = y[:, None] == columns[None, :]
        g = tl.dot(slope, is_own.to(tl.float32), input_precision="ieee")
        g = tl.where(is_own, -tl.sum(slope, axis=0)[:, None], g)
        if ACTIVATION == SOFTMAX:
            # Counted from that of the likeliest class: where this is nearly certain nothing cancels.
            g -= tl.max(tl.where(e == 1.0, g, float("-inf")), axis=1)[:, None]
            g = f * (g - tl.sum(f * g, axis=1)[:, None])
        elif ACTIVATION == SIGMOID:
            g = f * (1.0 - f) * g
        if LOG:
            of_row = tl.where(u == 0.0, 0.0, share * u)
            g += of_row[:, None] * (e * r * (1.0 / shifted)[:, None] - is_own.to(tl.float32))
        at = out + rows[:, None] * C + columns[None, :]
        tl.store(at, g.to(out.dtype.element_ty), mask=(rows < n)[:, None] & exists)
