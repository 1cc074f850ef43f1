# mypy: ignore-errors
"""The kernel that reads the logits first for polynomials and ranked losses, and the functions that later ones share."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mauc.nn._loss.batch import Batch, Loss
from mauc.nn._triton.closed import rows_of
from mauc.nn._triton.launch import Parts, ignored_class, optional_tensors, processors_of, programs_at_once


def first_vectors(n: int, c: int) -> tuple[Parts, Parts]:
    """Return the vectors that the first read fills in: those that begin as 0, and the others."""
    whole, real = torch.int32, torch.float32
    zeros = {
        "totals": (3, torch.float64),  # risk, log-loss, weight of all samples
        "class_sums": (c, real),
        "row_sums": (n, real),  # of score times slope
        "class_counts": (c, whole),
        "first_finished": (1, whole),
        "second_finished": (1, whole),
    }
    others = {
        "keys": (n, torch.int64),
        "rows": (4 * n, real),  # peak, inverse of the sum, inverse of the shifted sum, own score
        "codes": (n, whole),  # classes, −1 for samples that do not count
        "start": (c, whole),
        "class_weights": (3 * c, real),  # weight of a column, of a row, of a positive
        "own_slope": (n, real),  # slope in the own score
    }
    return zeros, others


def first_read(batch: Batch, loss: Loss, at, of_positives: Tensor, size: int = 0) -> None:
    """Fill in the vectors ``at``; with ``size``, also that many sums of Chebyshev polynomials over the positives."""
    logits = batch.logits
    n, c = logits.shape
    chunk = min(2048, max(16, 1 << (c - 1).bit_length()))
    rows, warps, registers = max(1, min(16, 2048 // chunk)), 4, 64
    tiles = -(-n // rows)
    weight, sizes, ratios = optional_tensors(batch)
    first_pass[(min(tiles, programs_at_once(processors_of(logits.device), warps, registers)),)](
        logits, batch.target.contiguous(), weight, ratios, sizes, at.rows, at.codes, at.keys, at.class_sums,
        at.class_counts, at.start, at.class_weights, of_positives, at.totals, at.first_finished, n,
        ignored_class(loss),
        C=c, STRIDE=logits.stride(0), ACTIVATION=loss.activation, PAIRS=loss.pairs, SIZE=size, ROWS=rows, CHUNK=chunk,
        num_warps=warps, maxnreg=registers,
    )  # fmt: skip


@triton.jit
def score_of(x, peak, scale, ACTIVATION: tl.constexpr):
    if ACTIVATION == "softmax":
        return tl.exp(x - peak) * scale
    elif ACTIVATION == "sigmoid":
        return 1.0 / (1.0 + tl.exp(-x))
    else:
        return x


@triton.jit
def first_pass(
    logits, target, weight, ratios, sizes, row_stats, codes, keys, class_sums, class_counts, start, class_weights,
    of_positives, totals, finished, n, ignore_index,
    C: tl.constexpr, STRIDE: tl.constexpr, ACTIVATION: tl.constexpr, PAIRS: tl.constexpr, SIZE: tl.constexpr,
    ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Compute the peak of each row, the inverse of its sums and its own score; and the weight of each class.

    ``row_stats`` is ``(4, N)``. ``codes`` are the classes, −1 for samples that do not count and −2 for classes that do
    not exist. ``keys`` are ordered first by class, then by own score; ignored samples come last.
    With ``SIZE``, that many Chebyshev polynomials of the own scores are added to the sums of the positives.
    The last program computes the pair weights ``class_weights``, ``(3, C)``: of a column, of a row and of a positive.
    """
    nll_sum = tl.zeros((ROWS,), tl.float64)
    for tile in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        y, u, counts = rows_of(target, weight, rows, n, ignore_index, C)
        place = logits + rows.to(tl.int64) * STRIDE
        own = tl.load(place + y, mask=counts, other=0.0).to(tl.float32)
        peak = tl.full((ROWS,), 0.0, tl.float32)
        scale = tl.full((ROWS,), 1.0, tl.float32)
        if ACTIVATION == "softmax" or ratios is not None:
            peak = tl.full((ROWS,), float("-inf"), tl.float32)
            total = tl.zeros((ROWS,), tl.float32)
            shifted = tl.zeros((ROWS,), tl.float32)
            for begin in range(0, C, CHUNK):
                columns = begin + tl.arange(0, CHUNK)
                inside = counts[:, None] & (columns < C)[None, :]
                x = tl.load(place[:, None] + columns[None, :], mask=inside, other=float("-inf")).to(tl.float32)
                higher = tl.maximum(peak, tl.max(x, axis=1))
                # If all logits so far are -inf there is nothing to shift, and -inf minus itself would be NaN.
                by = tl.where(higher == float("-inf"), 0.0, higher)
                e = tl.exp(x - by[:, None])
                shrink = tl.exp(peak - by)
                total = total * shrink + tl.sum(e, axis=1)
                if ratios is not None:
                    r = tl.load(ratios + columns, mask=columns < C, other=0.0)
                    shifted = shifted * shrink + tl.sum(e * r[None, :], axis=1)
                peak = higher
            scale = 1.0 / total
            if ratios is not None:
                nll = tl.log(shifted) - tl.log(tl.load(ratios + y)) - (own - peak)
                lost = tl.where(u == 0.0, 0.0, u * nll)
                nll_sum += lost.to(tl.float64)
                tl.store(row_stats + 2 * n + rows, 1.0 / shifted, mask=rows < n)
        p = tl.where(counts, score_of(own, peak, scale, ACTIVATION), 0.0)
        tl.store(row_stats + rows, peak, mask=rows < n)
        tl.store(row_stats + n + rows, scale, mask=rows < n)
        tl.store(row_stats + 3 * n + rows, p, mask=rows < n)
        if SIZE > 0:
            _add_positives(of_positives, y, u, p, counts, C, SIZE)
        bits = p.to(tl.int32, bitcast=True)
        # As integers, the bits of floats have the order of the floats; for negative floats it is reversed.
        bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        group = tl.where(counts, y, C).to(tl.int64)
        code = tl.where(counts, tl.where(u == u, y, -2), -1)
        tl.store(codes + rows, code, mask=rows < n)
        tl.store(keys + rows, (group << 32) + bits.to(tl.int64), mask=rows < n)
        tl.atomic_add(class_sums + y, u, mask=counts, sem="relaxed")
        tl.atomic_add(class_counts + y, tl.full((ROWS,), 1, tl.int32), mask=counts, sem="relaxed")
    if ratios is not None:
        tl.atomic_add(totals + 1, tl.sum(nll_sum, axis=0), sem="relaxed")
    tl.debug_barrier()
    if tl.atomic_add(finished, 1, sem="acq_rel", scope="gpu") == tl.num_programs(0) - 1:
        few: tl.constexpr = CHUNK if CHUNK < 512 else 512
        _weigh(class_sums, class_counts, sizes, start, class_weights, totals, C, PAIRS, few)


@triton.jit
def following(term, before, x, k: tl.constexpr):
    """Return the Chebyshev polynomial after ``term``, the k-th, and ``before``, the one before it, or any multiple."""
    if k > 0:
        return 2.0 * x * term - before
    else:
        return x * term


@triton.jit
def _add_positives(of_positives, y, u, own, counts, C: tl.constexpr, SIZE: tl.constexpr):
    """Add the Chebyshev polynomials of some own scores to the sums of their classes, ``(SIZE, C)``."""
    p = tl.where((u == 0.0) & (own == own), 0.0, 2.0 * own - 1.0)
    term = u
    before = term
    for k in tl.static_range(SIZE):
        tl.atomic_add(of_positives + k * C + y, term, mask=counts, sem="relaxed")
        more = following(term, before, p, k)
        before = term
        term = more


@triton.jit
def _weigh(
    class_sums, class_counts, sizes, start, class_weights, totals,
    C: tl.constexpr, PAIRS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Compute the first place of each class, and the pair weights."""
    n_here = 0.0
    whole = tl.zeros((), tl.float64)
    mass = tl.zeros((), tl.float64)
    before = tl.zeros((), tl.int32)
    for begin in range(0, C, CHUNK):
        columns = begin + tl.arange(0, CHUNK)
        inside = columns < C
        # Bypass the first-level cache: other multiprocessors have written these sums.
        u = tl.load(class_sums + columns, mask=inside, other=0.0, cache_modifier=".cg")
        count = tl.load(class_counts + columns, mask=inside, other=0, cache_modifier=".cg")
        tl.store(start + columns, before + tl.cumsum(count, axis=0) - count, mask=inside)
        before += tl.sum(count, axis=0)
        n_here += tl.sum((u != 0.0).to(tl.float32), axis=0)
        mass += tl.sum(u.to(tl.float64), axis=0)
        size = u
        if sizes is not None:
            size = tl.where(u != 0.0, tl.load(sizes + columns, mask=inside, other=0.0).to(tl.float32), 0.0)
        whole += tl.sum(size.to(tl.float64), axis=0)
    tl.store(totals + 2, mass)
    for begin in range(0, C, CHUNK):
        columns = begin + tl.arange(0, CHUNK)
        inside = columns < C
        u = tl.load(class_sums + columns, mask=inside, other=0.0, cache_modifier=".cg")
        present = (u != 0.0).to(tl.float32)
        inverse = tl.where(u != 0.0, 1.0 / u, 0.0)
        column = present
        of_row = inverse
        if PAIRS == "ovo":
            column = present / tl.maximum(n_here * (n_here - 1.0), 1.0)
        elif PAIRS == "ova":
            size = u
            if sizes is not None:
                size = tl.load(sizes + columns, mask=inside, other=0.0).to(tl.float32) * present
            others = (whole - size.to(tl.float64)).to(tl.float32)
            total = tl.where(n_here > 1.0, present / tl.maximum(n_here, 1.0), 0.0)
            column = tl.where(others != 0.0, total / others, 0.0)
            of_row = size * inverse
        tl.store(class_weights + columns, column, mask=inside)
        tl.store(class_weights + C + columns, of_row, mask=inside)
        tl.store(class_weights + 2 * C + columns, inverse, mask=inside)


@triton.jit
def tile_of(
    logits, codes, weight, matrix, row_stats, class_weights, rows, columns, n, stride,
    C: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """Return scores of some rows and columns, and their weights as negatives without the column's factor."""
    code = tl.load(codes + rows, mask=rows < n, other=-1)
    counts = code != -1
    y = tl.maximum(code, 0)
    u = tl.where(counts, 1.0, 0.0)
    if weight is not None:
        u = tl.load(weight + rows, mask=counts, other=0.0).to(tl.float32)
    u = tl.where(code == -2, float("nan"), u)
    row = u * tl.load(class_weights + C + y)
    if weight is not None:
        row = tl.where(u == 0.0, 0.0, row)
    inside = counts[:, None] & (columns < C)[None, :]
    x = tl.load(logits + rows.to(tl.int64)[:, None] * stride + columns[None, :], mask=inside, other=0.0)
    peak = tl.load(row_stats + rows, mask=counts, other=0.0)
    scale = tl.load(row_stats + n + rows, mask=counts, other=0.0)
    x = x.to(tl.float32)
    f = score_of(x, peak[:, None], scale[:, None], ACTIVATION)
    negative = inside & (columns[None, :] != y[:, None])
    weights = tl.where(negative, row[:, None], 0.0)
    if matrix is not None:
        weights *= tl.load(matrix + y.to(tl.int64)[:, None] * C + columns[None, :], mask=inside, other=0.0)
    return x, f, weights, y, u, counts


@triton.jit
def share_of(totals, log_loss):
    """Return the weight of one sample's log-loss; NaN weights, of classes that do not exist, must reach the loss."""
    mass = tl.load(totals + 2, cache_modifier=".cg")
    return tl.where(mass == 0.0, 0.0, log_loss / mass)


@triton.jit
def store_value(out, totals, log_loss):
    """Store the risk plus the log-loss."""
    risk = tl.load(totals, cache_modifier=".cg")
    lost = tl.load(totals + 1, cache_modifier=".cg")
    tl.store(out, (risk + share_of(totals, log_loss) * lost).to(tl.float32))


@triton.jit
def write(
    out, ratios, row_stats, row_sums, own_slope, totals, g, x, f, rows, columns, y, u, counts, factor,
    log_loss, n, C: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """Write the gradient in the logits of some rows and columns; ``g`` are the slopes in their scores as negatives."""
    is_own = columns[None, :] == y[:, None]
    g = tl.where(is_own, tl.load(own_slope + rows, mask=counts, other=0.0)[:, None], g)
    if ACTIVATION == "softmax":
        g = f * (g - tl.load(row_sums + rows, mask=counts, other=0.0)[:, None])
    elif ACTIVATION == "sigmoid":
        g = f * (1.0 - f) * g
    if ratios is not None:
        inverse = tl.load(row_stats + 2 * n + rows, mask=counts, other=0.0)
        share = u * share_of(totals, log_loss).to(tl.float32)
        share = tl.where(share == 0.0, 0.0, share)
        r = tl.load(ratios + columns, mask=columns < C, other=0.0)
        if ACTIVATION == "softmax":
            scale = tl.load(row_stats + n + rows, mask=counts, other=1.0)
            shifted = f * (share * inverse / scale)[:, None]
        else:
            peak = tl.load(row_stats + rows, mask=counts, other=0.0)
            shifted = tl.exp(x - peak[:, None]) * (share * inverse)[:, None]
        g += shifted * r[None, :] - tl.where(is_own, share[:, None], 0.0)
    at = out + rows.to(tl.int64)[:, None] * C + columns[None, :]
    tl.store(at, (factor * g).to(out.dtype.element_ty), mask=(rows < n)[:, None] & (columns < C)[None, :])
