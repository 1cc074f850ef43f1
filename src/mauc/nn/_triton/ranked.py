# mypy: ignore-errors
# ruff: noqa: RUF005, RUF059 — Triton compiles neither * in tuples nor names that change their kind
r"""Pieces of polynomials, the hinge family: three reads of the logits, without waiting for the device.

The loss is a sum of truncated powers (:class:`mauc.nn._loss.forms.Truncated`). For each end b, a negative q meets the
positives below ``q + b``: a run at the start of its column's sorted positives. Its loss and slope are polynomials in
the distance from the run's last positive. All terms of a run then have one sign, so that float32 is enough. The
coefficients are sums over the run: one row of a table for each place in the order.

- ``first_pass`` reads the logits: each row's peak and sums, its own score, the class weights;
- ``tabulate`` makes the table of the sorted own scores, and the bound of each positive, the largest score that does not
  meet it;
- ``columns_of`` reads the logits again: it searches each score, as a negative, among the bounds of its column, which
  gives the value, and adds its contribution to the slopes of the positives at the position where its run ends;
- ``collect`` computes the slopes of the positives from these, as sums over later places;
- ``gradient_of`` reads the logits a third time, searches again, which is cheaper than storing, and writes.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from mauc.nn._loss.batch import Batch, Loss
from mauc.nn._loss.forms import Truncated, closed_form, truncated_powers
from mauc.nn._triton.first_pass import first_read, first_vectors, score_of, store_value, tile_of, write
from mauc.nn._triton.launch import (
    Parts,
    Tiling,
    aligned,
    allocate,
    normalised_pairs,
    numbers_on_device,
    on_device,
    optional_tensors,
    processors_of,
    row_contiguous,
    views,
)


def recipe_for(batch: Batch, loss: Loss) -> "RankedKernels | None":
    """Return these kernels if they compute the loss; a closed form has other kernels, or is more exact in torch."""
    if loss.activation == "log_odds" or closed_form(loss.surrogate, bounded=loss.bounded) is not None:
        return None
    form = truncated_powers(loss.surrogate, bounded=loss.bounded)
    return None if form is None else RankedKernels(form)


def _tilings(form: Truncated, logits: Tensor, short_search: bool) -> tuple[Tiling, Tiling]:
    """Return the tilings of the second and third read: one warp, as wide as its registers hold; measured."""
    if len(form.ends) == 1:
        return Tiling(32, 8, 1, 128), Tiling(32, 16, 1, 128)
    first = Tiling(32, 4 if short_search else 8, 1, 128) if aligned(logits) else Tiling(32, 4, 1, 96)
    return first, Tiling(32, 16, 1, 168 if short_search else 128)


def _short_search(logits: Tensor, loss: Loss, positives: int = 8) -> bool:
    """Return whether searches begin at a hint: most softmax scores are near 0, and end near one place.

    At (65536, 1000) the hinge takes 1.05 times the time of cross-entropy instead of 1.48. With fewer ``positives`` per
    class on average a search has two steps anyway, and the hint costs more than it saves.
    """
    return loss.activation == "softmax" and len(logits) >= positives * logits.shape[1]


def _block(n: int, c: int) -> dict[str, int]:
    """Return how many positives of a class a program takes at a time."""
    block = min(1024, max(32, 1 << (2 * n // c).bit_length()))
    return {"BLOCK": block, "num_warps": max(1, block // 256)}


def _sort(at, n: int, c: int, many: int = 1 << 16) -> Tensor:
    """Return the ``(N,)`` samples by class, then by own score.

    Up to ``many`` samples each is compared with those of its class: with ``torch.sort`` the hinge takes 1.38 times as
    long as cross-entropy at (8196, 5089) instead of 1.08, and 2.48 instead of 1.18 at (1000, 100).
    """
    if n > many:
        return torch.sort(at.keys).indices
    group[(-(-n // 128),)](at.keys, at.start, at.taken, at.grouped, at.samples, n, C=c, BLOCK=128, num_warps=4)
    rank_in_class[(-(-n // 16),)](
        at.grouped, at.samples, at.class_counts, at.start, at.order, C=c, BLOCK=16, ALL=256, num_warps=4
    )
    return at.order


class RankedKernels(NamedTuple):
    """The recipe of pieces of polynomials."""

    form: Truncated

    def forward(self, batch: Batch, loss: Loss, *, wants_gradient: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the value, and two pieces of memory for the gradient."""
        batch = batch._replace(logits=row_contiguous(batch.logits))
        logits, form = batch.logits, self.form
        (n, c), device = logits.shape, logits.device
        numbers, weight = numbers_on_device(form.numbers, device), optional_tensors(batch)[0]
        memory, at = allocate(device, *self._parts(n, c))
        value = torch.empty((), dtype=torch.float32, device=device)
        tiling = _tilings(form, logits, _short_search(logits, loss))[0]
        with on_device(logits):
            first_read(batch, loss, at, at.class_sums)
            order = _sort(at, n, c)
            tabulate[(c,)](
                order, weight, at.rows, at.class_counts, at.start, at.class_weights, at.centre, at.bounds, at.table,
                numbers, n, C=c, PIECES=len(form.ends), DEGREE=form.degree, WIDTH=form.width, **_block(n, c),
            )  # fmt: skip
            columns_of[tiling.grid(n, c, processors_of(device))](
                logits, at.codes, weight, normalised_pairs(batch, loss), at.rows, at.class_counts, at.start,
                at.class_weights, at.centre, at.bounds, at.table, numbers, at.received, at.row_sums, at.totals,
                at.second_finished, value, loss.log_loss, n, GRADIENT=wants_gradient,
                **self._constants(batch, loss), **tiling.options,
            )  # fmt: skip
            if wants_gradient:
                collect[(c,)](
                    order, weight, at.rows, at.class_counts, at.start, at.class_weights, at.centre, numbers,
                    at.received, at.row_sums, at.own_slope, n, C=c, ACTIVATION=loss.activation,
                    PIECES=len(form.ends), DEGREE=form.degree, **_block(n, c),
                )  # fmt: skip
        return value, memory

    def gradient(self, batch: Batch, loss: Loss, saved: tuple[Tensor, ...], upstream: Tensor) -> Tensor:
        """Return the gradient with respect to the logits, times ``upstream``."""
        batch = batch._replace(logits=row_contiguous(batch.logits))
        logits = batch.logits
        (n, c), device = logits.shape, logits.device
        numbers, (weight, _, ratios) = numbers_on_device(self.form.numbers, device), optional_tensors(batch)
        at = views(saved, *self._parts(n, c))
        out = torch.empty((n, c), dtype=logits.dtype, device=device)
        tiling = _tilings(self.form, logits, _short_search(logits, loss))[1]
        with on_device(logits):
            gradient_of[tiling.grid(n, c, processors_of(device))](
                logits, at.codes, weight, normalised_pairs(batch, loss), ratios, at.rows, at.class_counts, at.start,
                at.class_weights, at.bounds, at.table, numbers, at.row_sums, at.own_slope, at.totals,
                upstream, out, loss.log_loss, n, **self._constants(batch, loss), **tiling.options,
            )  # fmt: skip
        return out

    def _constants(self, batch: Batch, loss: Loss) -> dict[str, int]:
        form = self.form
        return {
            "C": batch.logits.shape[1],
            "STRIDE": batch.logits.stride(0),
            "ACTIVATION": loss.activation,
            "PIECES": len(form.ends),
            "DEGREE": form.degree,
            "WIDTH": form.width,
            "SHORT_SEARCH": _short_search(batch.logits, loss),
        }

    def _parts(self, n: int, c: int) -> tuple[Parts, Parts]:
        form, places = self.form, len(self.form.ends) * (n + c)
        zeros, others = first_vectors(n, c)
        zeros |= {"received": (places * form.degree, torch.float64), "taken": (c, torch.int32)}
        others |= {"table": (places * form.width, torch.float32), "bounds": (places, torch.float32)}
        others |= {"centre": (c, torch.float32), "samples": (n, torch.int32)}
        others |= dict.fromkeys(("grouped", "order"), (n, torch.int64))
        return zeros, others


@triton.jit
def _class_of(key):
    """Return the class from a key, above the 32 signed bits of the score."""
    return ((key + 0x80000000) >> 32).to(tl.int32)


@triton.jit
def group(keys, start, taken, grouped, samples, n, C: tl.constexpr, BLOCK: tl.constexpr):
    """Store keys and numbers of the samples class by class, in any order within a class; leave out ignored samples."""
    here = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys + here, mask=here < n, other=0)
    y = _class_of(key)
    counts = (here < n) & (y < C)
    place = tl.load(start + y, mask=counts, other=0)
    place += tl.atomic_add(taken + y, tl.full((BLOCK,), 1, tl.int32), mask=counts, sem="relaxed")
    tl.store(grouped + place, key, mask=counts)
    tl.store(samples + place, here, mask=counts)


@triton.jit
def rank_in_class(
    grouped, samples, class_counts, start, order, C: tl.constexpr, BLOCK: tl.constexpr, ALL: tl.constexpr
):
    """Order the samples by their keys, comparing each with those of the classes in its block."""
    here = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = here < tl.load(start + C - 1) + tl.load(class_counts + C - 1)
    mine = tl.load(grouped + here, mask=inside, other=0)
    y = _class_of(mine)
    last = tl.max(y, axis=0)
    first = tl.min(tl.where(inside, y, last), axis=0)
    begin = tl.load(start + first)
    end = tl.load(start + last) + tl.load(class_counts + last)
    before = tl.zeros((BLOCK,), tl.int32)
    for some in range(begin, end, ALL):
        there = some + tl.arange(0, ALL)
        theirs = tl.load(grouped + there, mask=there < end, other=0x7FFFFFFFFFFFFFFF)
        earlier = (theirs[None, :] == mine[:, None]) & (there[None, :] < here[:, None])
        before += tl.sum(((theirs[None, :] < mine[:, None]) | earlier).to(tl.int32), axis=1)
    sample = tl.load(samples + here, mask=inside, other=0)
    tl.store(order + begin + before, sample.to(tl.int64), mask=inside)


@triton.jit
def binomial(n: tl.constexpr, k: tl.constexpr):
    value: tl.constexpr = 1 if k == 0 or k == n else n if k == 1 or k == n - 1 else n * (n - 1) // 2 if k == 2 else 10
    return value


@triton.jit
def _power_sum(sums, z, K: tl.constexpr):
    """Return ``Σ_u a_u (z − w_u)^K`` from the sums ``Σ a w^j``."""
    out = sums[0]
    for j in tl.static_range(1, K + 1):
        out = out * z + (1 - 2 * (j % 2)) * binomial(K, j) * sums[j]
    return out


@triton.jit
def _downward(exact):
    """Round a float64 down to float32: a float32 is above the result if and only if it is above the float64."""
    near = exact.to(tl.float32)
    bits = near.to(tl.int32, bitcast=True)
    lower = tl.where(near > 0.0, bits - 1, tl.where(near < 0.0, bits + 1, -2147483647))
    return tl.where(near.to(tl.float64) > exact, lower.to(tl.float32, bitcast=True), near)


@triton.jit
def tabulate(
    order, weight, row_stats, class_counts, start, class_weights, centre, bounds, table, form, n,
    C: tl.constexpr, PIECES: tl.constexpr, DEGREE: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Make the bounds and the table of one class.

    A class has one place more than positives, the first one for negatives that meet none.
    ``bounds``, ``(PIECES, N + C)``: the largest score that does not meet the positive in this piece, ascending.
    ``table``, ``(PIECES, N + C, WIDTH)``: coefficients of the sum over the run in powers of the negative's distance,
    times the column's weight. The distance is that from the run's last positive, whose score comes first.
    """
    c = tl.program_id(0)
    count = tl.load(class_counts + c)
    begin = tl.load(start + c)
    unit = tl.load(class_weights + c).to(tl.float64) * tl.load(class_weights + 2 * C + c).to(tl.float64)
    middle = 0.0
    if count > 0:
        middle = tl.load(row_stats + 3 * n + tl.load(order + begin + count // 2))
    tl.store(centre + c, middle)
    size: tl.constexpr = DEGREE + 1
    so_far = ()
    for _ in tl.static_range(size):
        so_far = so_far + (tl.zeros((), tl.float64),)
    for piece in tl.static_range(PIECES):
        tl.store(bounds + piece * (n + C) + begin + c, float("-inf"))
        for j in tl.static_range(WIDTH):
            tl.store(table + (piece * (n + C) + begin + c).to(tl.int64) * WIDTH + j, 0.0)
    for some in range(0, count, BLOCK):
        rank = some + tl.arange(0, BLOCK)
        inside = rank < count
        sample = tl.load(order + begin + rank, mask=inside, other=0)
        p = tl.load(row_stats + 3 * n + sample, mask=inside, other=0.0)
        term = inside.to(tl.float64)
        if weight is not None:
            term = tl.load(weight + sample, mask=inside, other=0.0).to(tl.float64)
        term *= unit
        distance = p.to(tl.float64) - middle
        sums = ()
        running = ()
        for j in tl.static_range(size):
            running = running + (so_far[j] + tl.cumsum(term, axis=0),)
            sums = sums + (so_far[j] + tl.sum(term, axis=0),)
            term *= distance
        for piece in tl.static_range(PIECES):
            numbers = form + piece * (size + 1)
            end = tl.load(numbers)
            place = piece * (n + C) + begin + c + 1 + rank
            tl.store(bounds + place, _downward(p.to(tl.float64) - end), mask=inside)
            at = table + place.to(tl.int64) * WIDTH
            tl.store(at, p, mask=inside)
            for i in tl.static_range(size):
                power = tl.zeros((BLOCK,), tl.float64)
                for k in tl.static_range(i, size):
                    power += tl.load(numbers + 1 + k) * binomial(k, i) * _power_sum(running, distance, k - i)
                tl.store(at + 1 + i, power.to(tl.float32), mask=inside)
        so_far = sums


@triton.jit
def collect(
    order, weight, row_stats, class_counts, start, class_weights, centre, form, received, row_sums, own_slope, n,
    C: tl.constexpr, ACTIVATION: tl.constexpr, PIECES: tl.constexpr, DEGREE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the slope in each positive of one class from all that was received at later places."""
    c = tl.program_id(0)
    count = tl.load(class_counts + c)
    begin = tl.load(start + c)
    middle = tl.load(centre + c).to(tl.float64)
    inverse = tl.load(class_weights + 2 * C + c)
    of_column = tl.load(class_weights + c)
    size: tl.constexpr = DEGREE + 2
    so_far = ()
    for _ in tl.static_range(PIECES * DEGREE):
        so_far = so_far + (tl.zeros((), tl.float64),)
    blocks = tl.cdiv(count, BLOCK)
    for back in range(0, blocks):
        rank = (blocks - 1 - back) * BLOCK + tl.arange(0, BLOCK)
        inside = rank < count
        sample = tl.load(order + begin + rank, mask=inside, other=0)
        p = tl.load(row_stats + 3 * n + sample, mask=inside, other=0.0)
        w = p.to(tl.float64) - middle
        slope = tl.zeros((BLOCK,), tl.float64)
        now = ()
        for piece in tl.static_range(PIECES):
            later = ()
            at = received + (piece * (n + C) + begin + c + 1 + rank.to(tl.int64)) * DEGREE
            arrived = ()
            for j in tl.static_range(DEGREE):
                arrived = arrived + (tl.load(at + j, mask=inside, other=0.0),)
            for j in tl.static_range(DEGREE):
                # From powers of the distance from the anchor, which is this positive, to those from the centre.
                came = arrived[0]
                for i in tl.static_range(1, j + 1):
                    came = came * w + binomial(j, i) * arrived[i]
                later = later + (so_far[piece * DEGREE + j] + tl.cumsum(came, axis=0, reverse=True),)
                now = now + (so_far[piece * DEGREE + j] + tl.sum(came, axis=0),)
            for k in tl.static_range(1, DEGREE + 1):
                # Σ_n ω (z − w)^(k−1), by Horner's rule in −w.
                power = later[0]
                for j in tl.static_range(1, k):
                    power = later[j] * binomial(k - 1, j) - w * power
                slope -= k * tl.load(form + piece * size + 1 + k) * power
        so_far = now
        unit = inverse * of_column
        if weight is not None:
            unit *= tl.load(weight + sample, mask=inside, other=0.0).to(tl.float32)
        own = unit * slope.to(tl.float32)
        tl.store(own_slope + sample, own, mask=inside)
        if ACTIVATION == "softmax":
            before = tl.load(row_sums + sample, mask=inside, other=0.0)
            tl.store(row_sums + sample, before + p * own, mask=inside)


@triton.jit
def _widest_step(most):
    """Return the largest power of two up to ``most``; 0 if there is none."""
    step = 1
    while step * 2 <= most:
        step *= 2
    return tl.where(most > 0, step, 0)


@triton.jit
def _find(bounds, begin, end, step, score):
    """Return the last place after ``begin``, up to ``end``, whose bound is below the score; or ``begin``.

    The bounds ascend. A step beyond the end looks at the last bound: it is too large, or the result is the end.
    """
    place = begin + tl.zeros(score.shape, tl.int32)
    while step > 0:
        at = tl.minimum(place + step, end)
        place += tl.where(tl.load(bounds + at) < score, step, 0)
        step = step // 2
    return tl.minimum(place, end)


@triton.jit
def _bound_after(bounds, place, end, by: tl.constexpr):
    """Return the bound a given number of positions on; infinity if there is none."""
    at = place + by
    return tl.where(at > end, float("inf"), tl.load(bounds + tl.minimum(at, end)))


@triton.jit
def _hint_for(bounds, begin, end, score, SHORT_SEARCH: tl.constexpr):
    """Return the place of ``score``, where most negatives of a column end, and what :func:`_place_of` needs of it."""
    place = _find(bounds, begin, end, _widest_step(tl.max(end - begin)), score)
    low = begin
    if SHORT_SEARCH:
        low = place
    step = _widest_step(tl.max(end - low))
    return place, low, _bound_after(bounds, place, end, 2), _bound_after(bounds, place, end, 4), step


@triton.jit
def _place_of(bounds, hint, end, score, weights, SHORT_SEARCH: tl.constexpr):
    """Search as :func:`_find`; with ``SHORT_SEARCH`` from the hint on, in as few steps as the tile needs."""
    _, low, second, fourth, step = hint
    sought = score
    if SHORT_SEARCH:
        sought = tl.where(weights == 0.0, 0.0, score)  # own scores, which are large, are not negatives
        crossed = (sought > second).to(tl.int32) + (sought > fourth).to(tl.int32)
        furthest = tl.max(tl.max(crossed, axis=1), axis=0)
        step = tl.where(furthest == 2, step, tl.minimum(step, 1 + furthest))
    return _find(bounds, low, end, step, sought)


@triton.jit
def _both(at):
    """Load two neighbouring float32 numbers at once."""
    both = tl.load(at.to(tl.pointer_type(tl.int64)))
    return both.to(tl.int32).to(tl.float32, bitcast=True), (both >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _loss_and_slope(f, at, form, piece: tl.constexpr, DEGREE: tl.constexpr):
    """Return sum and slope, in the negative, of one piece over the positives of its run; and its distance."""
    numbers = ()
    for pair in tl.static_range((DEGREE + 3) // 2):
        numbers = numbers + _both(at + 2 * pair)
    z = (f - numbers[0]) + tl.load(form + piece * (DEGREE + 2)).to(tl.float32)
    total = numbers[DEGREE + 1]
    slope = tl.zeros_like(total)
    for back in tl.static_range(1, DEGREE + 1):
        slope = slope * z + total
        total = total * z + numbers[DEGREE + 1 - back]
    return total, slope, z


@triton.jit
def columns_of(
    logits, codes, weight, matrix, row_stats, class_counts, start, class_weights, centre, bounds, table, form, received,
    row_sums, totals, finished, out, log_loss, n,
    C: tl.constexpr, STRIDE: tl.constexpr, ACTIVATION: tl.constexpr, GRADIENT: tl.constexpr, PIECES: tl.constexpr,
    DEGREE: tl.constexpr, WIDTH: tl.constexpr, SHORT_SEARCH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Compute the value, what the positives receive from the negatives, and each row's sum of score times slope.

    Neighbouring lanes take neighbouring rows of one column: their searches touch the same few cache lines.
    """
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    begin = tl.load(start + columns, mask=exists, other=0)[None, :]
    begin += tl.where(exists, columns, 0)[None, :]  # one place more for each class before
    end = begin + tl.load(class_counts + columns, mask=exists, other=0)[None, :]
    middle = tl.load(centre + columns, mask=exists, other=0.0)[None, :]
    risk = tl.zeros((ROWS,), tl.float32)
    # Most negatives of a column end at one place: their contributions are summed in registers, those of the others are
    # added where they end. The place is that of score 0, near most softmax scores, or of the first row's score.
    some_score = tl.zeros((1, COLUMNS), tl.float32)
    if ACTIVATION != "softmax":
        some_row = logits + (tl.program_id(1) * ROWS).to(tl.int64) * STRIDE
        some_score = tl.load(some_row + columns, mask=exists, other=0.0).to(tl.float32)[None, :]
        some_score = score_of(some_score, 0.0, 1.0, ACTIVATION)
    hints = ()
    gathered = ()
    for piece in tl.static_range(PIECES):
        hints = hints + (_hint_for(bounds + piece * (n + C), begin, end, some_score, SHORT_SEARCH),)
        for _ in tl.static_range(DEGREE):
            gathered = gathered + (tl.zeros((ROWS, COLUMNS), tl.float32),)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, y, u, counts = tile_of(
            logits, codes, weight, matrix, row_stats, class_weights, rows, columns, n, STRIDE, C, ACTIVATION
        )
        near = f
        if ACTIVATION == "identity":
            near = f - middle
        now_gathered = ()
        loss = 0.0
        steepness = 0.0
        for piece in tl.static_range(PIECES):
            place = _place_of(bounds + piece * (n + C), hints[piece], end, f, weights, SHORT_SEARCH)
            at = table + (piece * (n + C) + place) * WIDTH
            total, slope, z = _loss_and_slope(f, at, form, piece, DEGREE)
            loss = total if piece == 0 else loss + total
            steepness = slope if piece == 0 else steepness + slope
            if GRADIENT:
                common = place == hints[piece][0]
                term = tl.where(common, weights, 0.0)
                known = near
                if ACTIVATION == "identity":
                    known = tl.where(weights == 0.0, 0.0, near)
                for j in tl.static_range(DEGREE):
                    now_gathered = now_gathered + (gathered[piece * DEGREE + j] + term,)
                    if j < DEGREE - 1:
                        term *= known
                alone = (weights != 0.0) & ~common
                if tl.max(tl.max(alone.to(tl.int32), axis=1), axis=0) > 0:
                    handed = weights.to(tl.float64)
                    here = received + (piece * (n + C) + place).to(tl.int64) * DEGREE
                    for j in tl.static_range(DEGREE):
                        tl.atomic_add(here + j, handed, mask=alone, sem="relaxed")
                        if j < DEGREE - 1:
                            handed *= z.to(tl.float64)
        if GRADIENT:
            gathered = now_gathered
        lost = weights * loss
        if ACTIVATION == "identity":
            # A score of weight 0 adds 0, even if its loss overflows; but NaN stays NaN.
            lost = tl.where((weights == 0.0) & (f == f), 0.0, lost)
        risk += tl.sum(lost, axis=1)
        if GRADIENT and ACTIVATION == "softmax":
            pull = f * (weights * steepness)
            tl.atomic_add(row_sums + rows, tl.sum(pull, axis=1), mask=counts, sem="relaxed")
    if GRADIENT:
        for piece in tl.static_range(PIECES):
            place = hints[piece][0]
            here = received + (piece * (n + C) + place).to(tl.int64) * DEGREE
            # From powers of the score to powers of the distance.
            shift = tl.load(form + piece * (DEGREE + 2)) + tl.zeros((1, COLUMNS), tl.float64)
            shift -= tl.load(table + place.to(tl.int64) * WIDTH).to(tl.float64)
            if ACTIVATION == "identity":
                shift += middle.to(tl.float64)
            powers = ()
            for j in tl.static_range(DEGREE):
                powers = powers + (tl.sum(gathered[piece * DEGREE + j].to(tl.float64), axis=0)[None, :],)
                sum_here = powers[0]
                for i in tl.static_range(1, j + 1):
                    sum_here = sum_here * shift + binomial(j, i) * powers[i]
                tl.atomic_add(here + j, sum_here, mask=exists[None, :], sem="relaxed")
    tl.atomic_add(totals, tl.sum(risk.to(tl.float64), axis=0), sem="relaxed")
    tl.debug_barrier()
    programs = tl.num_programs(0) * tl.num_programs(1)
    if tl.atomic_add(finished, 1, sem="acq_rel", scope="gpu") == programs - 1:
        store_value(out, totals, log_loss)


@triton.jit
def gradient_of(
    logits, codes, weight, matrix, ratios, row_stats, class_counts, start, class_weights, bounds, table, form,
    row_sums, own_slope, totals, upstream, out, log_loss, n,
    C: tl.constexpr, STRIDE: tl.constexpr, ACTIVATION: tl.constexpr, PIECES: tl.constexpr, DEGREE: tl.constexpr,
    WIDTH: tl.constexpr, SHORT_SEARCH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Read the logits a third time, and write the gradient."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    begin = tl.load(start + columns, mask=exists, other=0)[None, :]
    begin += tl.where(exists, columns, 0)[None, :]  # one place more for each class before
    end = begin + tl.load(class_counts + columns, mask=exists, other=0)[None, :]
    hints = ()
    for piece in tl.static_range(PIECES):
        nothing = tl.zeros((1, COLUMNS), tl.float32)
        hints = hints + (_hint_for(bounds + piece * (n + C), begin, end, nothing, SHORT_SEARCH),)
    factor = tl.load(upstream).to(tl.float32)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, y, u, counts = tile_of(
            logits, codes, weight, matrix, row_stats, class_weights, rows, columns, n, STRIDE, C, ACTIVATION
        )
        steepness = 0.0
        for piece in tl.static_range(PIECES):
            place = _place_of(bounds + piece * (n + C), hints[piece], end, f, weights, SHORT_SEARCH)
            at = table + (piece * (n + C) + place) * WIDTH
            _, slope, _ = _loss_and_slope(f, at, form, piece, DEGREE)
            steepness = slope if piece == 0 else steepness + slope
        g = weights * steepness
        if ACTIVATION == "identity":
            g = tl.where(weights == 0.0, 0.0, g)
        write(
            out, ratios, row_stats, row_sums, own_slope, totals, g, x, f, rows, columns, y, u, counts, factor,
            log_loss, n, C, ACTIVATION,
        )  # fmt: skip
