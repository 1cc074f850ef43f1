# mypy: ignore-errors
# ruff: noqa: B007, RUF005, RUF059 — Triton compiles neither * in tuples nor names that change their kind
"""The kernels of bilinear forms; imported only where Triton is. See :mod:`mauc.nn._engine.fused_bilinear`."""

import triton
import triton.language as tl

from mauc.nn._engine.fused_kernels import _rows
from mauc.nn._engine.survey_kernels import SIGMOID, SOFTMAX, score_of, share_of, tile_of

EXPONENTIAL = tl.constexpr(0)
POWERS = tl.constexpr(1)
CHEBYSHEV = tl.constexpr(2)


@triton.jit
def _of_negative(f, origin, alpha, KIND: tl.constexpr):
    """What the basis functions take: the exponential itself, or the argument of the polynomials."""
    if KIND == EXPONENTIAL:
        return tl.exp(alpha * (f - origin))
    elif KIND == POWERS:
        return (f - origin) + alpha
    else:
        return 2.0 * f - 1.0


@triton.jit
def _of_positive(p, origin, alpha, KIND: tl.constexpr):
    if KIND == EXPONENTIAL:
        return tl.exp(alpha * (origin - p))
    elif KIND == POWERS:
        return origin - p
    else:
        return 2.0 * p - 1.0


@triton.jit
def _next(term, before, x, k: tl.constexpr, KIND: tl.constexpr):
    """The basis function after ``term``, the k-th, and ``before``, the one before it, or any multiple of both."""
    if KIND == CHEBYSHEV and k > 0:
        return 2.0 * x * term - before
    else:
        return x * term


@triton.jit
def sums_of(
    logits,
    target,
    weight,
    matrix,
    rows_out,
    of_class,
    origin,
    of_negatives,
    of_positives,
    alpha,
    n,
    stride,
    ignore_index,
    C: tl.constexpr,
    ACTIVATION: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_MATRIX: tl.constexpr,
    KIND: tl.constexpr,
    SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The second read: ``(SIZE, C)`` sums of the basis functions over each column's negatives and positives.

    A program is one warp: a thread has all rows of its columns, and sums over them by itself.
    """
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    middle = tl.load(origin + columns, mask=exists, other=0.0)[None, :]
    sums = ()
    for k in tl.static_range(SIZE):
        sums = sums + (tl.zeros((COLUMNS,), tl.float32),)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, inside, y, u, counts = tile_of(
            logits, target, weight, matrix, rows_out, of_class, rows, columns, n, stride, ignore_index,
            C, ACTIVATION, HAS_WEIGHT, HAS_MATRIX,
        )  # fmt: skip
        q = _of_negative(f, middle, alpha, KIND)
        # What weighs nothing is no term, even where its function is beyond the floats; but no number stays none.
        q = tl.where((weights == 0.0) & (f == f), 0.0, q)
        term = weights
        if KIND == EXPONENTIAL:
            term = weights * q
        before = term
        more = ()
        for k in tl.static_range(SIZE):
            more = more + (sums[k] + tl.sum(term, axis=0),)
            following = _next(term, before, q, k, KIND)
            before = term
            term = following
        sums = more
        if tile % tl.num_programs(0) == tl.program_id(0):
            own = tl.load(rows_out + 3 * n + rows, mask=counts, other=0.0)
            p = _of_positive(own, tl.load(origin + y), alpha, KIND)
            p = tl.where((u == 0.0) & (own == own), 0.0, p)
            part = u
            if KIND == EXPONENTIAL:
                part = u * p
            previous = part
            for k in tl.static_range(SIZE):
                tl.atomic_add(of_positives + k * C + y, part, mask=counts, sem="relaxed")
                further = _next(part, previous, p, k, KIND)
                previous = part
                part = further
    for k in tl.static_range(SIZE):
        tl.atomic_add(of_negatives + k * C + columns, sums[k], mask=exists, sem="relaxed")


@triton.jit
def mix(
    form,
    of_class,
    of_negatives,
    of_positives,
    slopes,
    totals,
    ticket,
    out,
    log_loss,
    C: tl.constexpr,
    LOG: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The value, and the slopes' coefficients in the basis functions: ``(2, SIZE, C)``, in negatives and positives.

    ``form`` is ``(3, SIZE, SIZE)``: of the loss, of its slope in the negative and of that in the positive.
    """
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < C
    of_column = tl.load(of_class + columns, mask=inside, other=0.0)
    factor = (of_column * tl.load(of_class + 2 * C + columns, mask=inside, other=0.0)).to(tl.float64)
    size: tl.constexpr = SIZE
    here = tl.program_id(1)
    loss = tl.zeros((BLOCK,), tl.float64)
    in_negative = tl.zeros((BLOCK,), tl.float64)
    in_positive = tl.zeros((BLOCK,), tl.float64)
    for k in range(size):
        p = tl.load(of_positives + k * C + columns, mask=inside, other=0.0).to(tl.float64)
        q = tl.load(of_negatives + k * C + columns, mask=inside, other=0.0).to(tl.float64)
        loss += tl.load(form + k * size + here) * p
        in_negative += tl.load(form + (size + k) * size + here) * p
        in_positive += tl.load(form + (2 * size + here) * size + k) * q
    loss *= tl.load(of_negatives + here * C + columns, mask=inside, other=0.0).to(tl.float64)
    tl.store(slopes + here * C + columns, (factor * in_negative).to(tl.float32), mask=inside)
    tl.store(slopes + (size + here) * C + columns, (factor * in_positive).to(tl.float32), mask=inside)
    tl.atomic_add(totals, tl.sum(factor * loss, axis=0), sem="relaxed")
    tl.debug_barrier()
    programs = tl.num_programs(0) * tl.num_programs(1)
    if tl.atomic_add(ticket, 1, sem="acq_rel", scope="gpu") == programs - 1:
        whole = tl.load(totals, cache_modifier=".cg")
        if LOG:
            whole += share_of(totals, log_loss) * tl.load(totals + 1, cache_modifier=".cg")
        tl.store(out, whole.to(out.dtype.element_ty))


@triton.jit
def _slope(q, slopes, places, mask, C, KIND: tl.constexpr, LENGTH: tl.constexpr):
    """``Σ_k slopes[k] φ_k``: by Clenshaw's or Horner's rule."""
    current = tl.load(slopes + (LENGTH - 1) * C + places, mask=mask, other=0.0) + tl.zeros_like(q)
    if KIND == EXPONENTIAL:
        current *= q
    later = tl.zeros_like(q)
    for back in tl.static_range(1, LENGTH):
        constant = tl.load(slopes + (LENGTH - 1 - back) * C + places, mask=mask, other=0.0)
        if KIND == CHEBYSHEV:
            if back < LENGTH - 1:
                following = 2.0 * q * current + (constant - later)
            else:
                following = q * current + (constant - later)
            later = current
            current = following
        else:
            current = q * current + constant
    return current


@triton.jit
def _part(
    logits, matrix, slopes, origin, start, columns, y, row, at_own, peak, scale, counts, alpha,
    C: tl.constexpr, ACTIVATION: tl.constexpr, HAS_MATRIX: tl.constexpr, KIND: tl.constexpr, LENGTH: tl.constexpr,
):  # fmt: skip
    """Logits, scores and slopes of some rows in some columns."""
    exists = (columns < C)[None, :]
    inside = counts[:, None] & exists
    x = tl.load(start[:, None] + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    f = score_of(x, peak[:, None], scale[:, None], ACTIVATION)
    f = tl.where(inside, f, 0.0)
    middle = tl.load(origin + columns, mask=columns < C, other=0.0)
    q = _of_negative(f, middle[None, :], alpha, KIND)
    g = row[:, None] * _slope(q, slopes, columns[None, :], exists, C, KIND, LENGTH)
    if HAS_MATRIX:
        g *= tl.load(matrix + y.to(tl.int64)[:, None] * C + columns[None, :], mask=inside, other=0.0)
    g = tl.where(row[:, None] == 0.0, 0.0, g)
    is_own = columns[None, :] == y[:, None]
    return x, f, tl.where(is_own, at_own[:, None], g), is_own


@triton.jit
def gradient_rows(
    logits,
    target,
    weight,
    matrix,
    ratios,
    rows_out,
    of_class,
    origin,
    slopes,
    totals,
    upstream,
    out,
    alpha,
    log_loss,
    n,
    stride,
    ignore_index,
    n_tiles,
    C: tl.constexpr,
    ACTIVATION: tl.constexpr,
    LOG: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_MATRIX: tl.constexpr,
    KIND: tl.constexpr,
    SIZE: tl.constexpr,
    LENGTH: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
    STAGED: tl.constexpr,
):
    """The third read and the write of the gradient. Rows longer than a chunk are read again, from the cache.

    ``STAGED``: score times slope is kept in the output until its sum over the row is known; half precision would lose
    digits there, and computes it twice.
    """
    factor = tl.load(upstream).to(tl.float32)
    share = tl.zeros((), tl.float32)
    if LOG:
        share = share_of(totals, log_loss).to(tl.float32)
    for tile in range(tl.program_id(0), n_tiles, tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        y, u, counts = _rows(target, weight, rows, n, ignore_index, C, HAS_WEIGHT)
        row = tl.where(u == 0.0, 0.0, u * tl.load(of_class + C + y))
        peak = tl.load(rows_out + rows, mask=counts, other=0.0)
        scale = tl.load(rows_out + n + rows, mask=counts, other=0.0)
        own = tl.load(rows_out + 3 * n + rows, mask=counts, other=0.0)
        p = _of_positive(own, tl.load(origin + y), alpha, KIND)
        at_own = u * _slope(p, slopes + SIZE * C, y, counts, C, KIND, LENGTH)
        at_own = tl.where(u == 0.0, 0.0, at_own)
        start = logits + rows.to(tl.int64) * stride
        pull = tl.zeros((ROWS,), tl.float32)
        if ACTIVATION == SOFTMAX and C > CHUNK:
            for begin in range(0, C, CHUNK):
                x, f, g, is_own = _part(
                    logits, matrix, slopes, origin, start, begin + tl.arange(0, CHUNK), y, row, at_own, peak, scale,
                    counts, alpha, C, ACTIVATION, HAS_MATRIX, KIND, LENGTH,
                )  # fmt: skip
                g *= f
                pull += tl.sum(g, axis=1)
                if STAGED:
                    at = out + rows.to(tl.int64)[:, None] * C + (begin + tl.arange(0, CHUNK))[None, :]
                    tl.store(at, g, mask=counts[:, None] & (begin + tl.arange(0, CHUNK) < C)[None, :])
        if STAGED:
            tl.debug_barrier()  # what is read back may have been written by another thread
        inverse = tl.zeros((ROWS,), tl.float32)
        per_row = u * share
        if LOG:
            inverse = tl.load(rows_out + 2 * n + rows, mask=counts, other=0.0)
            per_row = tl.where(per_row == 0.0, 0.0, per_row)
        for begin in range(0, C, CHUNK):
            columns = begin + tl.arange(0, CHUNK)
            at = out + rows.to(tl.int64)[:, None] * C + columns[None, :]
            if STAGED:
                inside = counts[:, None] & (columns < C)[None, :]
                x = tl.load(start[:, None] + columns[None, :], mask=inside, other=0.0).to(tl.float32)
                f = score_of(x, peak[:, None], scale[:, None], ACTIVATION)
                g = tl.load(at, mask=inside, other=0.0) - f * pull[:, None]
                is_own = columns[None, :] == y[:, None]
            else:
                x, f, g, is_own = _part(
                    logits, matrix, slopes, origin, start, columns, y, row, at_own, peak, scale,
                    counts, alpha, C, ACTIVATION, HAS_MATRIX, KIND, LENGTH,
                )  # fmt: skip
            if ACTIVATION == SOFTMAX and not STAGED:
                if C <= CHUNK:
                    pull = tl.sum(f * g, axis=1)
                g = f * (g - pull[:, None])
            elif ACTIVATION == SIGMOID:
                g = f * (1.0 - f) * g
            if LOG:
                shifted = tl.exp(x - peak[:, None]) * inverse[:, None]
                if ACTIVATION == SOFTMAX:
                    shifted = f * (inverse / scale)[:, None]
                r = tl.load(ratios + columns, mask=columns < C, other=0.0)
                g += per_row[:, None] * (shifted * r[None, :] - is_own.to(tl.float32))
            g = tl.where(counts[:, None], factor * g, 0.0)
            tl.store(at, g.to(out.dtype.element_ty), mask=(rows < n)[:, None] & (columns < C)[None, :])
