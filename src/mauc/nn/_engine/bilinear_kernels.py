# mypy: ignore-errors
# ruff: noqa: RUF005, RUF059 — Triton compiles neither * in tuples nor names that change their kind
"""The kernels of bilinear forms; imported only where Triton is. See :mod:`mauc.nn._engine.fused_bilinear`."""

import triton
import triton.language as tl

from mauc.nn._engine.basis_kernels import (
    EXPONENTIAL,
    add_positives,
    following,
    of_negative,
    of_positive,
    origin_of,
    slope_of,
)
from mauc.nn._engine.fused_kernels import _rows
from mauc.nn._engine.survey_kernels import IDENTITY, SOFTMAX, share_of, tile_of, write


@triton.jit
def positives_of(
    target,
    weight,
    rows_out,
    origin,
    of_positives,
    alpha,
    n,
    ignore_index,
    C: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    KIND: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """``(SIZE, C)`` sums over the positives, counted from an origin that is known only after the first read."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y, u, counts = _rows(target, weight, rows, n, ignore_index, C, HAS_WEIGHT)
    own = tl.load(rows_out + 3 * n + rows, mask=counts, other=0.0)
    add_positives(of_positives, y, u, own, tl.load(origin + y), alpha, counts, C, KIND, SIZE)


@triton.jit
def slopes_of_negatives(form, of_class, of_positives, slopes, C: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """Coefficients of the slopes in negatives in the basis functions, ``(SIZE, C)``.

    ``form`` is ``(3, SIZE, SIZE)``: of the loss, of its slope in the negative and of that in the positive.
    """
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < C
    factor = tl.load(of_class + columns, mask=inside, other=0.0)
    factor *= tl.load(of_class + 2 * C + columns, mask=inside, other=0.0)
    here = tl.program_id(1)
    slope = tl.zeros((BLOCK,), tl.float64)
    for k in range(SIZE):
        p = tl.load(of_positives + k * C + columns, mask=inside, other=0.0).to(tl.float64)
        slope += tl.load(form + (SIZE + k) * SIZE + here) * p
    tl.store(slopes + here * C + columns, (factor.to(tl.float64) * slope).to(tl.float32), mask=inside)


@triton.jit
def sums_of(
    logits,
    codes,
    weight,
    matrix,
    rows_out,
    of_class,
    origin,
    slopes,
    of_negatives,
    row_sums,
    alpha,
    n,
    C: tl.constexpr,
    STRIDE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_MATRIX: tl.constexpr,
    GRADIENT: tl.constexpr,
    KIND: tl.constexpr,
    FIXED: tl.constexpr,
    SIZE: tl.constexpr,
    LENGTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The second read: ``(SIZE, C)`` sums over each column's negatives, and each row's sum of score times slope.

    A thread has all rows of its columns, and sums over them by itself; the slopes are those of negatives, which the
    positives alone decide.
    """
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    middle = origin_of(origin, columns, exists, KIND, FIXED)[None, :]
    sums = ()
    for _ in tl.static_range(SIZE):
        sums = sums + (tl.zeros((COLUMNS,), tl.float32),)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, inside, y, u, counts = tile_of(
            logits, codes, weight, matrix, rows_out, of_class, rows, columns, n, STRIDE,
            C, ACTIVATION, HAS_WEIGHT, HAS_MATRIX,
        )  # fmt: skip
        q = of_negative(f, middle, alpha, KIND)
        if KIND == EXPONENTIAL or ACTIVATION == IDENTITY:
            # What weighs nothing is no term, even where its function is beyond the floats; but no number stays none.
            q = tl.where((weights == 0.0) & (f == f), 0.0, q)
        term = weights
        if KIND == EXPONENTIAL:
            term = weights * q
        before = term
        more = ()
        pull = tl.zeros((ROWS, COLUMNS), tl.float32)
        for k in tl.static_range(SIZE):
            more = more + (sums[k] + tl.sum(term, axis=0),)
            if GRADIENT and ACTIVATION == SOFTMAX and k < LENGTH:
                pull += tl.load(slopes + k * C + columns, mask=exists, other=0.0)[None, :] * term
            now = following(term, before, q, k, KIND)
            before = term
            term = now
        sums = more
        if GRADIENT and ACTIVATION == SOFTMAX:
            tl.atomic_add(row_sums + rows, tl.sum(f * pull, axis=1), mask=counts, sem="relaxed")
    for k in tl.static_range(SIZE):
        tl.atomic_add(of_negatives + k * C + columns, sums[k], mask=exists, sem="relaxed")


@triton.jit
def slopes_of_positives(
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
    """The value, and the coefficients of the slopes in positives, ``(SIZE, C)``."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < C
    of_column = tl.load(of_class + columns, mask=inside, other=0.0)
    factor = (of_column * tl.load(of_class + 2 * C + columns, mask=inside, other=0.0)).to(tl.float64)
    here = tl.program_id(1)
    loss = tl.zeros((BLOCK,), tl.float64)
    slope = tl.zeros((BLOCK,), tl.float64)
    for k in range(SIZE):
        p = tl.load(of_positives + k * C + columns, mask=inside, other=0.0).to(tl.float64)
        q = tl.load(of_negatives + k * C + columns, mask=inside, other=0.0).to(tl.float64)
        loss += tl.load(form + k * SIZE + here) * p
        slope += tl.load(form + (2 * SIZE + here) * SIZE + k) * q
    loss *= tl.load(of_negatives + here * C + columns, mask=inside, other=0.0).to(tl.float64)
    tl.store(slopes + here * C + columns, (factor * slope).to(tl.float32), mask=inside)
    tl.atomic_add(totals, tl.sum(factor * loss, axis=0), sem="relaxed")
    tl.debug_barrier()
    programs = tl.num_programs(0) * tl.num_programs(1)
    if tl.atomic_add(ticket, 1, sem="acq_rel", scope="gpu") == programs - 1:
        whole = tl.load(totals, cache_modifier=".cg")
        if LOG:
            whole += share_of(totals, log_loss) * tl.load(totals + 1, cache_modifier=".cg")
        tl.store(out, whole.to(tl.float32).to(out.dtype.element_ty))


@triton.jit
def own_slopes(
    target,
    weight,
    rows_out,
    origin,
    slopes,
    row_sums,
    at_own,
    alpha,
    n,
    ignore_index,
    C: tl.constexpr,
    ACTIVATION: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    KIND: tl.constexpr,
    FIXED: tl.constexpr,
    LENGTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The slope in each sample's own score, added to its row's sum too."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y, u, counts = _rows(target, weight, rows, n, ignore_index, C, HAS_WEIGHT)
    own = tl.load(rows_out + 3 * n + rows, mask=counts, other=0.0)
    p = of_positive(own, origin_of(origin, y, counts, KIND, FIXED), alpha, KIND)
    slope = tl.where(u == 0.0, 0.0, u * slope_of(p, slopes, y, counts, C, KIND, LENGTH))
    tl.store(at_own + rows, slope, mask=rows < n)
    if ACTIVATION == SOFTMAX:
        before = tl.load(row_sums + rows, mask=rows < n, other=0.0)
        tl.store(row_sums + rows, before + own * slope, mask=rows < n)


@triton.jit
def gradient_of(
    logits,
    codes,
    weight,
    matrix,
    ratios,
    rows_out,
    of_class,
    origin,
    slopes,
    row_sums,
    at_own,
    totals,
    upstream,
    out,
    alpha,
    log_loss,
    n,
    C: tl.constexpr,
    STRIDE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    LOG: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_MATRIX: tl.constexpr,
    KIND: tl.constexpr,
    FIXED: tl.constexpr,
    LENGTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The third read, and the write of the gradient."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    middle = origin_of(origin, columns, exists, KIND, FIXED)[None, :]
    factor = tl.load(upstream).to(tl.float32)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, inside, y, u, counts = tile_of(
            logits, codes, weight, matrix, rows_out, of_class, rows, columns, n, STRIDE,
            C, ACTIVATION, HAS_WEIGHT, HAS_MATRIX,
        )  # fmt: skip
        q = of_negative(f, middle, alpha, KIND)
        g = weights * slope_of(q, slopes, columns[None, :], exists[None, :], C, KIND, LENGTH)
        if KIND == EXPONENTIAL or ACTIVATION == IDENTITY:
            g = tl.where(weights == 0.0, 0.0, g)
        write(
            out, ratios, rows_out, row_sums, at_own, totals, g, x, f, rows, columns, y, u, counts, factor,
            log_loss, n, C, ACTIVATION, LOG,
        )  # fmt: skip
