# mypy: ignore-errors
# ruff: noqa: RUF005, RUF059 — Triton compiles neither * in tuples nor names that change their kind
r"""Polynomials of scores in [0, 1] as bilinear forms: three reads and one write of the logits.

.. math:: \ell(p - q) = \sum_{kl} A_{kl} \, T_k(2p - 1) \, T_l(2q - 1)

for the logistic loss and every other surrogate that :mod:`mauc.plan` takes as one polynomial of bounded scores.

- ``first_pass`` reads the logits: each row's peak and sums, its own score, the class weights, and the sums of the
  functions over the positives of each class, which decide the slopes in all negatives (``slopes_of_negatives``);
- ``sums_of`` reads them again: the sums of the functions over the negatives of each column, and each row's sum of score
  times slope, which the softmax needs;
- ``slopes_of_positives`` computes the value from both kinds of sums, ``own_slopes`` the slopes in the N own scores;
- ``gradient_of`` reads the logits a third time, and writes.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from mauc.nn._loss.batch import Batch, Loss
from mauc.nn._loss.forms import Bilinear, bilinear_form, closed_form
from mauc.nn._triton.closed import rows_of
from mauc.nn._triton.first_pass import first_read, first_vectors, following, store_value, tile_of, write
from mauc.nn._triton.launch import (
    Parts,
    Tiling,
    aligned,
    allocate,
    ignored_class,
    normalised_pairs,
    numbers_on_device,
    on_device,
    optional_tensors,
    processors_of,
    row_contiguous,
    views,
)


def recipe_for(batch: Batch, loss: Loss) -> "BilinearKernels | None":
    """Return these kernels if they compute the loss; a closed form has other kernels, or is more exact in torch."""
    if not loss.bounded or closed_form(loss.surrogate, bounded=True) is not None:
        return None
    form = bilinear_form(loss.surrogate)
    return None if form is None else BilinearKernels(form)


def _tilings(logits: Tensor, size: int) -> tuple[Tiling, Tiling]:
    """Return the tilings of the sums and of the gradient: one warp, whose threads have all rows of their columns.

    A tile is as wide as the registers can hold its sums. If rows begin at multiples of 16 bytes, a thread has four
    neighbouring columns. Chosen by measurement at 1000 and 5089 classes.
    """
    c, whole = logits.shape[1], aligned(logits)
    if c <= 32 or size > 16:
        return Tiling(8, 32, 1, 128), Tiling(8, 32, 1, 80)
    if c <= 64:
        return Tiling(8, 64, 1, 128), Tiling(8, 64, 1, 128)
    narrow = Tiling(2, 128, 1, 128) if whole else Tiling(4, 64, 1, 128)
    return Tiling(4, 128, 1, 80) if size <= 4 else narrow, Tiling(4, 128, 1, 128) if whole else Tiling(4, 64, 1, 64)


class BilinearKernels(NamedTuple):
    """The recipe of polynomials."""

    form: Bilinear

    def forward(self, batch: Batch, loss: Loss, *, wants_gradient: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the value, and two pieces of memory for the gradient."""
        batch = batch._replace(logits=row_contiguous(batch.logits))
        logits, target, size = batch.logits, batch.target.contiguous(), self.form.size
        (n, c), device = logits.shape, logits.device
        numbers, weight = numbers_on_device(self.form.numbers, device), optional_tensors(batch)[0]
        memory, at = allocate(device, *self._parts(n, c))
        value = torch.empty((), dtype=torch.float32, device=device)
        by_column, by_row = (-(-c // 64), size), (-(-n // 128),)
        tiling = _tilings(logits, size)[0]
        with on_device(logits):
            first_read(batch, loss, at, at.of_positives, size)
            slopes_of_negatives[by_column](
                numbers, at.class_weights, at.of_positives, at.slopes, C=c, SIZE=size, BLOCK=64, num_warps=2
            )
            sums_of[tiling.grid(n, c, processors_of(device))](
                logits, at.codes, weight, normalised_pairs(batch, loss), at.rows, at.class_weights, at.slopes,
                at.of_negatives, at.row_sums, n, C=c, STRIDE=logits.stride(0), ACTIVATION=loss.activation,
                GRADIENT=wants_gradient, SIZE=size, **tiling.options,
            )  # fmt: skip
            slopes_of_positives[by_column](
                numbers, at.class_weights, at.of_negatives, at.of_positives, at.positive_slopes, at.totals,
                at.second_finished, value, loss.log_loss, C=c, SIZE=size, BLOCK=64, num_warps=2,
            )  # fmt: skip
            if wants_gradient:
                own_slopes[by_row](
                    target, weight, at.rows, at.positive_slopes, at.row_sums, at.own_slope, n, ignored_class(loss),
                    C=c, ACTIVATION=loss.activation, SIZE=size, BLOCK=128, num_warps=4,
                )  # fmt: skip
        return value, memory

    def gradient(self, batch: Batch, loss: Loss, saved: tuple[Tensor, ...], upstream: Tensor) -> Tensor:
        """Return the gradient with respect to the logits, times ``upstream``."""
        logits = row_contiguous(batch.logits)
        n, c = logits.shape
        weight, _, ratios = optional_tensors(batch)
        at = views(saved, *self._parts(n, c))
        out = torch.empty((n, c), dtype=logits.dtype, device=logits.device)
        tiling = _tilings(logits, self.form.size)[1]
        with on_device(logits):
            gradient_of[tiling.grid(n, c, processors_of(logits.device))](
                logits, at.codes, weight, normalised_pairs(batch, loss), ratios, at.rows, at.class_weights, at.slopes,
                at.row_sums, at.own_slope, at.totals, upstream, out, loss.log_loss, n,
                C=c, STRIDE=logits.stride(0), ACTIVATION=loss.activation, SIZE=self.form.size, **tiling.options,
            )  # fmt: skip
        return out

    def _parts(self, n: int, c: int) -> tuple[Parts, Parts]:
        zeros, others = first_vectors(n, c)
        per_class = (self.form.size * c, torch.float32)
        return (
            zeros | {"of_negatives": per_class, "of_positives": per_class},
            others | {"slopes": per_class, "positive_slopes": per_class},
        )


@triton.jit
def slopes_of_negatives(
    form, class_weights, of_positives, slopes, C: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute the ``(SIZE, C)`` coefficients of the slopes in negatives in the basis functions.

    ``form`` is ``(3, SIZE, SIZE)``: of the loss, of its slope in the negative and of that in the positive.
    """
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < C
    factor = tl.load(class_weights + columns, mask=inside, other=0.0)
    factor *= tl.load(class_weights + 2 * C + columns, mask=inside, other=0.0)
    here = tl.program_id(1)
    slope = tl.zeros((BLOCK,), tl.float64)
    for k in range(SIZE):
        p = tl.load(of_positives + k * C + columns, mask=inside, other=0.0).to(tl.float64)
        slope += tl.load(form + (SIZE + k) * SIZE + here) * p
    tl.store(slopes + here * C + columns, (factor.to(tl.float64) * slope).to(tl.float32), mask=inside)


@triton.jit
def _slope_at(x, slopes, places, mask, C, LENGTH: tl.constexpr):
    """Return ``Σ_k slopes[k] T_k(x)`` by Clenshaw's rule."""
    current = tl.load(slopes + (LENGTH - 1) * C + places, mask=mask, other=0.0) + tl.zeros_like(x)
    later = tl.zeros_like(x)
    for back in tl.static_range(1, LENGTH):
        constant = tl.load(slopes + (LENGTH - 1 - back) * C + places, mask=mask, other=0.0)
        if back < LENGTH - 1:  # noqa: SIM108 — a compile-time choice
            now = 2.0 * x * current + (constant - later)
        else:
            now = x * current + (constant - later)
        later = current
        current = now
    return current


@triton.jit
def sums_of(
    logits, codes, weight, matrix, row_stats, class_weights, slopes, of_negatives, row_sums, n,
    C: tl.constexpr, STRIDE: tl.constexpr, ACTIVATION: tl.constexpr, GRADIENT: tl.constexpr, SIZE: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Compute the ``(SIZE, C)`` sums over each column's negatives, and each row's sum of score times slope.

    A thread has all rows of its columns, so it sums over them alone. The slopes are those of the negatives, which
    depend on the positives only.
    """
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    sums = ()
    for _ in tl.static_range(SIZE):
        sums = sums + (tl.zeros((COLUMNS,), tl.float32),)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, y, u, counts = tile_of(
            logits, codes, weight, matrix, row_stats, class_weights, rows, columns, n, STRIDE, C, ACTIVATION
        )
        q = 2.0 * f - 1.0
        term = weights
        before = term
        more = ()
        pull = tl.zeros((ROWS, COLUMNS), tl.float32)
        for k in tl.static_range(SIZE):
            more = more + (sums[k] + tl.sum(term, axis=0),)
            if GRADIENT and ACTIVATION == "softmax" and k < SIZE - 1:
                pull += tl.load(slopes + k * C + columns, mask=exists, other=0.0)[None, :] * term
            now = following(term, before, q, k)
            before = term
            term = now
        sums = more
        if GRADIENT and ACTIVATION == "softmax":
            tl.atomic_add(row_sums + rows, tl.sum(f * pull, axis=1), mask=counts, sem="relaxed")
    for k in tl.static_range(SIZE):
        tl.atomic_add(of_negatives + k * C + columns, sums[k], mask=exists, sem="relaxed")


@triton.jit
def slopes_of_positives(
    form, class_weights, of_negatives, of_positives, slopes, totals, finished, out, log_loss,
    C: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the value, and the ``(SIZE, C)`` coefficients of the slopes in positives."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < C
    of_column = tl.load(class_weights + columns, mask=inside, other=0.0)
    factor = (of_column * tl.load(class_weights + 2 * C + columns, mask=inside, other=0.0)).to(tl.float64)
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
    if tl.atomic_add(finished, 1, sem="acq_rel", scope="gpu") == programs - 1:
        store_value(out, totals, log_loss)


@triton.jit
def own_slopes(
    target, weight, row_stats, slopes, row_sums, own_slope, n, ignore_index,
    C: tl.constexpr, ACTIVATION: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the slope in each sample's own score, and add it to the sum of its row."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y, u, counts = rows_of(target, weight, rows, n, ignore_index, C)
    own = tl.load(row_stats + 3 * n + rows, mask=counts, other=0.0)
    slope = tl.where(u == 0.0, 0.0, u * _slope_at(2.0 * own - 1.0, slopes, y, counts, C, SIZE - 1))
    tl.store(own_slope + rows, slope, mask=rows < n)
    if ACTIVATION == "softmax":
        before = tl.load(row_sums + rows, mask=rows < n, other=0.0)
        tl.store(row_sums + rows, before + own * slope, mask=rows < n)


@triton.jit
def gradient_of(
    logits, codes, weight, matrix, ratios, row_stats, class_weights, slopes, row_sums, own_slope, totals, upstream, out,
    log_loss, n,
    C: tl.constexpr, STRIDE: tl.constexpr, ACTIVATION: tl.constexpr, SIZE: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """Read the logits a third time, and write the gradient."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    factor = tl.load(upstream).to(tl.float32)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, y, u, counts = tile_of(
            logits, codes, weight, matrix, row_stats, class_weights, rows, columns, n, STRIDE, C, ACTIVATION
        )
        g = weights * _slope_at(2.0 * f - 1.0, slopes, columns[None, :], exists[None, :], C, SIZE - 1)
        write(
            out, ratios, row_stats, row_sums, own_slope, totals, g, x, f, rows, columns, y, u, counts, factor,
            log_loss, n, C, ACTIVATION,
        )  # fmt: skip
