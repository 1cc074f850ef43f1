# mypy: ignore-errors
"""Closed forms in two kernels: two reads and one write of the logits in all; three reads with a limit.

``statistics`` reads the logits once. A program turns some rows at a time into scores. It adds these to sums over the
negatives of each column, which stay in registers over all its rows, and to sums over the positives of each class. The
last program to finish computes the value from these ``5 C`` sums. ``gradient_of`` reads the logits again in the
backward pass and writes their gradient, multiplied by the upstream gradient. Nothing of size ``(N, C)`` but the
gradient is allocated. With more than some thousand samples ``count`` counts the classes first.

With a limit (:func:`mauc.nn._loss.plain.limits`) ``statistics`` also measures the slope of the log-loss. Another run of
``gradient_of``, which writes nothing, then measures the slope of the pair risk.

The sums are those of :mod:`mauc.nn._loss.closed`. Squared and linear losses count the positives from 1, the largest
score: near a perfect ranking nothing cancels. The exponential of scores without a bound could overflow: ``extremes``
reads the logits first and finds the highest negative of each column and the lowest positive of each class, which are
then subtracted. All sums are added atomically, so the last bits depend on the order.

The kernels compute the exponential of all scores, and the squared and linear losses of softmax and sigmoid scores; with
``"ovo"`` and ``"ova"`` pairs.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from mauc.activations import BOUNDED
from mauc.nn._loss.batch import Batch
from mauc.nn._loss.closed import FLAT_ALPHA, Closed, closed_form
from mauc.nn._loss.settings import Loss
from mauc.nn._triton.launch import ignored_class, on_device, optional_tensors, processors_of, row_contiguous


def recipe_for(batch: Batch, loss: Loss, widest: int = 16384, widest_of_both: int = 8192) -> "ClosedKernels | None":
    """Return these kernels if they compute the loss.

    With more than ``widest_of_both`` classes a row does not fit in the registers if it has both terms or log-odds.
    """
    form = None if loss.pairs == "matrix" else closed_form(loss.surrogate, bounded=loss.bounded)
    if form is None or (form.kind != "exponential" and not loss.bounded):
        return None
    n, c = batch.logits.shape
    both = loss.log_loss > 0
    if c > (widest_of_both if both or loss.activation == "log_odds" else widest):
        return None
    return _kernels_for(form, loss.activation, both, n, c, processors_of(batch.logits.device))


class ClosedKernels(NamedTuple):
    """The recipe of closed forms for batches of one shape: programs and compile-time arguments of each kernel."""

    form: Closed
    shifted: bool
    """Whether the exponential of a score could overflow."""
    sums_grid: tuple[int]
    sums: dict[str, Any]
    slopes_grid: tuple[int]
    slopes: dict[str, Any]

    def forward(
        self, batch: Batch, loss: Loss, *, wants_gradient: bool, few: int = 4096
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the value, and memory with the coefficients of the gradient.

        Up to ``few`` samples each tile counts its classes itself, which saves a launch.
        """
        logits, target = row_contiguous(batch.logits), batch.target.contiguous()
        n, c = logits.shape
        weight, sizes, ratios = optional_tensors(batch)
        ignored, ovo = ignored_class(loss), loss.pairs == "ovo"
        counted = self.shifted or (n > few and (ovo or sizes is not None))
        memory = torch.zeros((13 if self.shifted else 11) * c + 6, dtype=torch.float32, device=logits.device)
        value = torch.empty((), dtype=torch.float32, device=logits.device)
        scale = self.form.scale * loss.pair_weight(c)
        with on_device(logits):
            if self.shifted:
                extremes[self.sums_grid](
                    logits, target, weight, memory, n, ignored, C=c, STRIDE=logits.stride(0),
                    ACTIVATION=loss.activation, ROWS=self.sums["ROWS"], BLOCK=self.sums["BLOCK"],
                    num_warps=self.sums["num_warps"],
                )  # fmt: skip
            elif counted:
                count[(-(-n // 512),)](target, weight, memory, n, ignored, c, BLOCK=512)
            statistics[self.sums_grid](
                logits, target, weight, sizes, ratios, memory, value, self.form.alpha, scale, loss.log_loss,
                loss.pair_factor, n, ignored, STRIDE=logits.stride(0), LOG1P=loss.log1p, OVO=ovo, COUNTED=counted,
                LIMITED=loss.limit is not None, **self.sums,
            )  # fmt: skip
            if wants_gradient and loss.limit is not None:
                self._slopes(batch, loss, memory, None, None)
        return value, (memory,)

    def _slopes(self, batch: Batch, loss: Loss, memory: Tensor, upstream: Tensor | None, out: Tensor | None) -> None:
        """Write the gradient into ``out``; without it, measure the slope of the pair risk."""
        logits, target = row_contiguous(batch.logits), batch.target.contiguous()
        weight, _, ratios = optional_tensors(batch)
        with on_device(logits):
            gradient_of[self.slopes_grid](
                logits, target, weight, ratios, memory, upstream, out, self.form.alpha, loss.log_loss, loss.limit,
                logits.shape[0], ignored_class(loss), STRIDE=logits.stride(0), **self.slopes,
            )  # fmt: skip

    def gradient(self, batch: Batch, loss: Loss, saved: tuple[Tensor, ...], upstream: Tensor) -> Tensor:
        """Return the gradient with respect to the logits, times ``upstream``."""
        out = torch.empty(batch.logits.shape, dtype=batch.logits.dtype, device=batch.logits.device)
        self._slopes(batch, loss, saved[0], upstream, out)
        return out


@lru_cache(maxsize=256)
def _kernels_for(form: Closed, activation: str, both: bool, n: int, c: int, processors: int) -> ClosedKernels:
    """Choose tiles of all columns, and how many programs go through them; measured on an H200.

    The statistics take few programs, since each adds its C sums to the total. Two accumulators of the squared loss
    leave room for half the rows, and so do log-odds. The gradient takes narrow programs: a warp that has its row to
    itself never waits for another.
    """
    shifted = form.kind == "exponential" and (activation not in BOUNDED or form.alpha > FLAT_ALPHA)
    block = max(16, 1 << (c - 1).bit_length())
    width = 2 * block if activation == "log_odds" else block
    common = {"C": c, "KIND": form.kind, "ACTIVATION": activation, "SHIFTED": shifted, "BLOCK": block}
    if both and 2048 < block <= 8192:
        # So many registers that two programs of eight warps share a multiprocessor: one works, the other waits.
        common["maxnreg"] = 128
    rows = max(1, min((1024 if form.kind == "squared" else 2048) // width, 8))
    warps = 4 if width <= 2048 else 8 if width <= 8192 else 16
    tiles = -(-n // rows)
    per_processor = 2 if warps > 4 else 8 if tiles > 32 * processors else 4
    sums = common | {"ALL": min(1024, max(16, 1 << (n - 1).bit_length())), "ROWS": rows, "num_warps": warps}
    if shifted:
        sums["maxnreg"] = 128  # its end, in float64, would take more than its loop
    sums_grid = (min(tiles, processors * per_processor),)
    rows, warps = max(1, min(512 // width, 8)), max(1, width // 1024)
    slopes = common | {"ROWS": rows, "num_warps": warps}
    slopes_grid = (min(-(-n // rows), processors * max(1, 16 // warps)),)
    return ClosedKernels(form, shifted, sums_grid, sums, slopes_grid, slopes)


@triton.jit
def rows_of(target, weight, rows, n, ignore_index, C: tl.constexpr):
    """Return class and weight of some samples: weight 0 if ignored, NaN if the class does not exist."""
    inside = rows < n
    y = tl.load(target + rows, mask=inside, other=0)
    u = tl.full(rows.shape, 1.0, tl.float32)
    if weight is not None:
        u = tl.load(weight + rows, mask=inside, other=0.0).to(tl.float32)
    counts = inside & (y != ignore_index)
    exists = (y >= 0) & (y < C)
    u = tl.where(counts, tl.where(exists, u, float("nan")), 0.0)
    return tl.where(counts & exists, y, 0).to(tl.int32), u, counts


@triton.jit
def _scores(logits, ratios, rows, y, counts, stride, columns, C: tl.constexpr, ACTIVATION: tl.constexpr):
    """Return scores of some rows, those in the samples' own columns, and what the gradient of log-odds needs.

    With ratios r also e with ``softmax(z + log r) = e r``, and ``−log`` of its entry in the own column.
    """
    start = logits + rows.to(tl.int64) * stride
    inside = (columns < C)[None, :]
    x = tl.load(start[:, None] + columns[None, :], mask=counts[:, None] & inside, other=0.0).to(tl.float32)
    own = tl.load(start + y, mask=counts, other=0.0).to(tl.float32)
    f = x
    p = own
    shifted = x
    nll = own
    of_odds = ()
    if ACTIVATION == "sigmoid":
        f = tl.where(inside, 1.0 / (1.0 + tl.exp(-x)), 0.0)
        p = 1.0 / (1.0 + tl.exp(-own))
    if ACTIVATION == "log_odds":
        f, of_odds = _log_odds(x, columns, inside)
        p = tl.sum(tl.where(columns[None, :] == y[:, None], f, 0.0), axis=1)
    if ACTIVATION == "softmax" or ratios is not None:
        beyond = tl.where(inside, x, float("-inf"))
        peak = tl.max(beyond, axis=1)
        e = tl.exp(beyond - peak[:, None])
        if ratios is not None:
            total = tl.sum(e * tl.load(ratios + columns, mask=columns < C, other=0.0)[None, :], axis=1)
            shifted = e * (1.0 / total)[:, None]
            nll = tl.log(total) - tl.log(tl.load(ratios + y)) - (own - peak)
        if ACTIVATION == "softmax":
            scale = 1.0 / tl.sum(e, axis=1)
            f = e * scale[:, None]
            p = tl.exp(own - peak) * scale
            if ratios is not None:
                # From the scores, which are needed anyway: one array less in registers.
                shifted = f * (tl.sum(e, axis=1) / total)[:, None]
    return f, p, shifted, nll, of_odds


@triton.jit
def _log_odds(x, columns, inside):
    """Return ``z_i − log Σ_{j≠i} exp(z_j)``, and what its gradient needs.

    Exponentials are divided by that of the second largest logit, and the largest one is left out: ``e``, and their sum
    ``rest``. ``gap`` is the second largest exponential over the largest. So the sum over all but the largest is exact.
    """
    beyond = tl.where(inside, x, float("-inf"))
    is_top = columns[None, :] == tl.argmax(beyond, axis=1)[:, None]
    peak = tl.sum(tl.where(is_top, x, 0.0), axis=1)  # not the maximum, which would lose NaN
    second = tl.max(tl.where(is_top, float("-inf"), beyond), axis=1)
    second = tl.where(second == float("-inf"), 0.0, second)
    e = tl.where(is_top, 0.0, tl.exp(beyond - second[:, None]))
    rest = tl.sum(e, axis=1)
    gap = tl.exp(second - peak)
    others = 1.0 + (rest[:, None] - e) * gap[:, None]
    of_top = (peak - second) - tl.log(rest)
    f = tl.where(is_top, of_top[:, None], (x - peak[:, None]) - tl.log(others))
    return tl.where(inside, f, 0.0), (e, is_top, rest, gap)


@triton.jit
def _through_log_odds(g, e, is_top, rest, gap):
    """Return the gradient in the logits: ``g_k − exp(z_k) Σ_{i≠k} g_i / Σ_{j≠i} exp(z_j)``."""
    share = g / (1.0 + (rest[:, None] - e) * gap[:, None])
    pull = tl.sum(tl.where(is_top, 0.0, share), axis=1)[:, None]
    of_top = (tl.sum(tl.where(is_top, g, 0.0), axis=1) / rest)[:, None]
    return g - tl.where(is_top, pull, e * (gap[:, None] * (pull - share) + of_top))


@triton.jit
def _key(x):
    """Return unsigned integers, all above 0, in the order of the floats."""
    bits = x.to(tl.int32, bitcast=True)
    return (bits ^ ((bits >> 31) | -2147483648)).to(tl.uint32, bitcast=True)


@triton.jit
def _from_key(key):
    """Return the float of a key; 0 if it is not finite, or if there was none."""
    bits = key.to(tl.int32, bitcast=True)
    x = (bits ^ (~(bits >> 31) | -2147483648)).to(tl.float32, bitcast=True)
    return tl.where(tl.abs(x) < float("inf"), x, 0.0)


@triton.jit
def _sums(memory, C: tl.constexpr):
    """Return where the sums are: after the coefficients of the gradient, ``(6, C)``, and the share of a sample.

    The rows of coefficients are, in the names of :func:`_finish`: of_negative, shift, of_own, total (with ``SHIFTED``
    the lowest positive), of_row, inverse. Four places align the sums for atomic additions of vectors: the share, one
    without use, and the squared slopes of the pair risk and of the log-loss.
    """
    return memory + 6 * C + 4


@triton.jit
def _largest_and_least(memory, C: tl.constexpr):
    """Return where the keys of the highest negative of each column are, and those of minus the lowest positive."""
    keys = (_sums(memory, C) + 5 * C + 2).to(tl.pointer_type(tl.uint32))
    return keys, keys + C


@triton.jit
def extremes(
    logits, target, weight, memory, n, ignore_index,
    C: tl.constexpr, STRIDE: tl.constexpr, ACTIVATION: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Find the highest negative of each column and the lowest positive of each class; sum the weights of the classes.

    Samples of weight 0 do not count.
    """
    columns = tl.arange(0, BLOCK)
    largest, least = _largest_and_least(memory, C)
    scratch = _sums(memory, C)
    highest = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        y, u, counts = rows_of(target, weight, rows, n, ignore_index, C)
        f, p, _, _, _ = _scores(logits, None, rows, y, counts, STRIDE, columns, C, ACTIVATION)
        weighted = counts & (u != 0.0)
        negative = weighted[:, None] & (columns[None, :] != y[:, None])
        highest = tl.maximum(highest, tl.where(negative, f, float("-inf")))
        tl.atomic_max(least + y, _key(-p), mask=weighted, sem="relaxed")
        tl.atomic_add(scratch + y, u, mask=counts, sem="relaxed")
    tl.atomic_max(largest + columns, _key(tl.max(highest, axis=0)), mask=columns < C, sem="relaxed")


@triton.jit
def count(target, weight, memory, n, ignore_index, C: tl.constexpr, BLOCK: tl.constexpr):
    """Sum the weights of each class."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y, u, counts = rows_of(target, weight, rows, n, ignore_index, C)
    tl.atomic_add(_sums(memory, C) + y, u, mask=counts, sem="relaxed")


@triton.jit
def _class_weight(target, weight, y, n, ignore_index, C: tl.constexpr, ALL: tl.constexpr):
    """Sum the weights of the classes ``y`` by going through all targets: for few samples, this saves a launch."""
    total = tl.zeros(y.shape, tl.float32)
    for begin in range(0, n, ALL):
        others, u, _ = rows_of(target, weight, begin + tl.arange(0, ALL), n, ignore_index, C)
        total += tl.sum(tl.where(others[None, :] == y[:, None], u[None, :], 0.0), axis=1)
    return total


@triton.jit
def statistics(
    logits, target, weight, sizes, ratios, memory, value, alpha, scale, log_loss, factor, n, ignore_index,
    C: tl.constexpr, STRIDE: tl.constexpr, KIND: tl.constexpr, ACTIVATION: tl.constexpr, LOG1P: tl.constexpr,
    LIMITED: tl.constexpr, OVO: tl.constexpr, COUNTED: tl.constexpr, SHIFTED: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr, ALL: tl.constexpr,
):  # fmt: skip
    """Read the logits once: sum over the negatives of each column and over the positives of each class.

    ``memory`` holds the coefficients of the gradient, then five rows of C sums (class weight, two of positives, two of
    negatives), a counter, the sum of the log-loss, and with ``SHIFTED`` the keys of the extremes; all 0 at first. The
    last program to add its sums computes the value and the coefficients from them.
    """
    columns = tl.arange(0, BLOCK)
    inside = columns < C
    scratch = _sums(memory, C)
    if SHIFTED:
        at_largest, at_least = _largest_and_least(memory, C)
        largest = _from_key(tl.load(at_largest + columns, mask=inside, other=0))
    first = tl.zeros((ROWS, BLOCK), tl.float32)
    second = tl.zeros((ROWS, BLOCK), tl.float32)
    nll_sum = tl.zeros((ROWS,), tl.float32)
    steepness = tl.zeros((ROWS,), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        y, u, counts = rows_of(target, weight, rows, n, ignore_index, C)
        f, p, shifted, nll, _ = _scores(logits, ratios, rows, y, counts, STRIDE, columns, C, ACTIVATION)
        if ratios is not None:
            nll_sum += tl.where(u == 0.0, 0.0, u * nll)
            if LIMITED:
                slope = shifted * tl.load(ratios + columns, mask=inside, other=0.0)[None, :]
                slope -= (columns[None, :] == y[:, None]).to(tl.float32)
                steepness += tl.where(u == 0.0, 0.0, u * tl.sum(slope * slope, axis=1))
        if not COUNTED:
            tl.atomic_add(scratch + y, u, mask=counts, sem="relaxed")
        s = u
        if OVO or sizes is not None:
            if COUNTED:
                s = tl.where(counts, u / tl.load(scratch + y, mask=counts, other=1.0), 0.0)
            else:
                s = tl.where(counts, u / _class_weight(target, weight, y, n, ignore_index, C, ALL), 0.0)
            s = tl.where(u == 0.0, 0.0, s)
        if sizes is not None:
            s *= tl.load(sizes + y).to(tl.float32)
        negative = tl.where(columns[None, :] == y[:, None], 0.0, s[:, None])
        if KIND == "exponential":
            if SHIFTED:
                f -= largest[None, :]
                p += _from_key(tl.load(at_least + y))
            of_negative = negative * tl.exp(alpha * f)
            of_positive = u * tl.exp(-alpha * p)
            if SHIFTED:
                # A score of weight 0 may lie beyond the extremes and overflow. It adds 0, but NaN stays NaN.
                of_negative = tl.where((negative == 0.0) & (f == f), 0.0, of_negative)
                of_positive = tl.where((u == 0.0) & (p == p), 0.0, of_positive)
            first += of_negative
            tl.atomic_add(scratch + C + y, of_positive, mask=counts, sem="relaxed")
        else:
            first += negative * f
            tl.atomic_add(scratch + C + y, u * (1.0 - p), mask=counts, sem="relaxed")
        if KIND == "squared":
            second += negative * f * f
            tl.atomic_add(scratch + 2 * C + y, u * (1.0 - p) * (1.0 - p), mask=counts, sem="relaxed")
    tl.atomic_add(scratch + 3 * C + columns, tl.sum(first, axis=0), mask=inside, sem="relaxed")
    if KIND == "squared":
        tl.atomic_add(scratch + 4 * C + columns, tl.sum(second, axis=0), mask=inside, sem="relaxed")
    if ratios is not None:
        tl.atomic_add(scratch + 5 * C + 1, tl.sum(nll_sum, axis=0), sem="relaxed")
        if LIMITED:
            tl.atomic_add(memory + 6 * C + 3, tl.sum(steepness, axis=0), sem="relaxed")
    tl.debug_barrier()
    counter = (scratch + 5 * C).to(tl.pointer_type(tl.int32))
    if tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu") == tl.num_programs(0) - 1:
        _finish(
            memory, sizes, ratios, value, alpha, scale, log_loss, factor, columns, inside, C, KIND, LOG1P, LIMITED,
            OVO, SHIFTED,
        )  # fmt: skip


@triton.jit
def _finish(
    memory, sizes, ratios, value, alpha, scale, log_loss, factor, columns, inside,
    C: tl.constexpr, KIND: tl.constexpr, LOG1P: tl.constexpr, LIMITED: tl.constexpr, OVO: tl.constexpr,
    SHIFTED: tl.constexpr,
):  # fmt: skip
    """Compute the value, and the coefficients of the gradient, from the sums."""
    scratch = _sums(memory, C)
    # Bypass the first-level cache: other multiprocessors have written these sums.
    u = tl.load(scratch + columns, mask=inside, other=0.0, cache_modifier=".cg")
    p1 = tl.load(scratch + C + columns, mask=inside, other=0.0, cache_modifier=".cg")
    s1 = tl.load(scratch + 3 * C + columns, mask=inside, other=0.0, cache_modifier=".cg")
    here = u != 0.0
    inverse = tl.where(here, 1.0 / u, 0.0)
    p1 *= inverse
    n_here = tl.sum(here.to(tl.float32), axis=0)
    present = here.to(tl.float32)
    if OVO:
        column = present / tl.maximum(n_here * (n_here - 1.0), 1.0)
        total = column * (n_here - 1.0)
        of_row = inverse
    else:
        size = u
        if sizes is not None:
            size = tl.load(sizes + columns, mask=inside, other=0.0).to(tl.float32) * present
        wide = size.to(tl.float64)
        others = (tl.sum(wide, axis=0) - wide).to(tl.float32)
        total = tl.where(n_here > 1.0, present / tl.maximum(n_here, 1.0), 0.0)
        column = tl.where(others != 0.0, total / others, 0.0)
        of_row = size * inverse
    if LOG1P:
        scale *= n_here / C
    column, total = scale * column, scale * total
    if SHIFTED:
        at_largest, at_least = _largest_and_least(memory, C)
        shift = _from_key(tl.load(at_largest + columns, mask=inside, other=0))
        least = -_from_key(tl.load(at_least + columns, mask=inside, other=0))
        # In logarithms: nothing overflows before the risk itself does, and with LOG1P not even then.
        log_risk = alpha * (shift.to(tl.float64) - least) + tl.log(column.to(tl.float64) * p1 * s1)
        part = tl.exp(log_risk)
        slope = part
        if LOG1P:
            log_mean = log_risk - tl.log(total.to(tl.float64))
            part = tl.maximum(log_mean, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(log_mean)))
            part = tl.where(total > 0.0, total * part, 0.0 * s1)
            slope = tl.where(total > 0.0, total / (1.0 + tl.exp(-log_mean)), 0.0)
        part, slope = part.to(tl.float32), alpha * slope.to(tl.float32)
        of_negative = tl.where(s1 == 0.0, 0.0, slope / s1)
        of_own = tl.where(p1 == 0.0, 0.0, -slope / p1)
        total = least  # the gradient of a shifted loss needs this in its place
    elif KIND == "exponential":
        part = column * p1 * s1
        of_negative, shift, of_own = alpha * column * p1, p1, -alpha * column * s1
        if LOG1P:
            mean = tl.where(total > 0.0, part / total, 0.0)
            slope = 1.0 / (1.0 + mean)
            part = total * tl.where(mean < 1e-3, mean * (1.0 - mean * (0.5 - mean / 3.0)), tl.log(1.0 + mean))
            of_negative, of_own = of_negative * slope, of_own * slope
    else:
        delta = alpha - 1.0
        if KIND == "squared":
            p2 = tl.load(scratch + 2 * C + columns, mask=inside, other=0.0, cache_modifier=".cg") * inverse
            s2 = tl.load(scratch + 4 * C + columns, mask=inside, other=0.0, cache_modifier=".cg")
            part = total * (delta * delta + 2.0 * delta * p1 + p2) + column * (2.0 * (delta + p1) * s1 + s2)
            of_negative, shift, of_own = 2.0 * column, delta + p1, -2.0 * column * s1
        else:
            part = total * (delta + p1) + column * s1
            of_negative, shift, of_own = column, p1, -total
    risk = tl.sum(part, axis=0)
    if ratios is not None:
        counted = tl.sum(u, axis=0)
        share = tl.where(counted > 0.0, log_loss / counted, 0.0)
        # NaN weights, of classes that do not exist, must reach the loss.
        share = tl.where(counted == counted, share, counted)
        risk += share * tl.load(scratch + 5 * C + 1, cache_modifier=".cg")
        tl.store(memory + 6 * C, share)
        if LIMITED:
            tl.store(memory + 6 * C + 3, share * share * tl.load(memory + 6 * C + 3, cache_modifier=".cg"))
    tl.store(value, (factor * risk).to(value.dtype.element_ty))
    tl.store(memory + columns, of_negative, mask=inside)
    tl.store(memory + C + columns, shift, mask=inside)
    tl.store(memory + 2 * C + columns, of_own, mask=inside)
    tl.store(memory + 3 * C + columns, total, mask=inside)
    tl.store(memory + 4 * C + columns, of_row, mask=inside)
    tl.store(memory + 5 * C + columns, inverse, mask=inside)


@triton.jit
def gradient_of(
    logits, target, weight, ratios, memory, upstream, out, alpha, log_loss, limit, n, ignore_index,
    C: tl.constexpr, STRIDE: tl.constexpr, KIND: tl.constexpr, ACTIVATION: tl.constexpr, SHIFTED: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Read the logits again, and write their gradient; without ``out``, measure the slope of the pair risk."""
    columns = tl.arange(0, BLOCK)
    inside = columns < C
    of_negative = tl.load(memory + columns, mask=inside, other=0.0)
    if KIND == "squared" or SHIFTED:
        shift = tl.load(memory + C + columns, mask=inside, other=0.0)
    kept = 1.0
    if out is None:
        squares = tl.zeros((ROWS,), tl.float32)
    else:
        factor = tl.load(upstream).to(tl.float32)
        if limit is not None:
            of_pair = tl.sqrt(tl.load(memory + 6 * C + 2))
            of_log = tl.sqrt(tl.load(memory + 6 * C + 3))
            kept = tl.where(of_pair <= limit * of_log, 1.0, limit * of_log / of_pair)
            whole = of_log + kept * of_pair
            factor *= tl.where(whole == 0.0, 1.0, of_log / (log_loss * whole))
    for tile in range(tl.program_id(0), tl.cdiv(n, ROWS), tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        y, u, counts = rows_of(target, weight, rows, n, ignore_index, C)
        f, p, shifted, _, of_odds = _scores(logits, ratios, rows, y, counts, STRIDE, columns, C, ACTIVATION)
        s = u * tl.load(memory + 4 * C + y)
        unit = u * tl.load(memory + 5 * C + y)
        own_slope = tl.load(memory + 2 * C + y)
        if SHIFTED:
            g = of_negative[None, :] * tl.exp(alpha * (f - shift[None, :]))
            own_slope = unit * own_slope * tl.exp(-alpha * (p - tl.load(memory + 3 * C + y)))
        elif KIND == "exponential":
            g = of_negative[None, :] * tl.exp(alpha * f)
            own_slope = unit * own_slope * tl.exp(-alpha * p)
        elif KIND == "squared":
            g = of_negative[None, :] * (f + shift[None, :])
            own_slope = unit * (own_slope - 2.0 * tl.load(memory + 3 * C + y) * (alpha - p))
        else:
            g = tl.broadcast_to(of_negative[None, :], (ROWS, BLOCK))
            own_slope = unit * own_slope
        g = s[:, None] * g
        if SHIFTED:  # scores of weight 0 may overflow
            g = tl.where((s == 0.0)[:, None], 0.0, g)
            own_slope = tl.where(unit == 0.0, 0.0, own_slope)
        g = tl.where(columns[None, :] == y[:, None], own_slope[:, None], g)
        if ACTIVATION == "softmax":
            g = f * (g - tl.sum(f * g, axis=1)[:, None])
        elif ACTIVATION == "sigmoid":
            g = f * (1.0 - f) * g
        elif ACTIVATION == "log_odds":
            e, is_top, rest, gap = of_odds
            g = _through_log_odds(g, e, is_top, rest, gap)
        if out is None:
            squares += tl.where(u > 0.0, tl.sum(g * g, axis=1) / u, 0.0)
        else:
            g *= kept
            if ratios is not None:
                share = u * tl.load(memory + 6 * C)
                own = (columns[None, :] == y[:, None]).to(tl.float32)
                r = tl.load(ratios + columns, mask=inside, other=0.0)
                g += tl.where(share == 0.0, 0.0, share)[:, None] * (shifted * r[None, :] - own)
            place = out + rows.to(tl.int64)[:, None] * C + columns[None, :]
            tl.store(place, (factor * g).to(out.dtype.element_ty), mask=(rows < n)[:, None] & inside[None, :])
    if out is None:
        tl.atomic_add(memory + 6 * C + 2, tl.sum(squares, axis=0), sem="relaxed")
