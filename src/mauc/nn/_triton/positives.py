# mypy: ignore-errors
# ruff: noqa: RUF005 — Triton compiles neither * in tuples nor names that change their kind
"""Ranked losses: the kernels that go over the positives of each class and compute their order, table and slopes.

See :mod:`mauc.nn._triton.ranked`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from mauc.nn._loss.batch import Batch, Loss
from mauc.nn._loss.forms import Truncated
from mauc.nn._triton.first_pass import SOFTMAX
from mauc.nn._triton.launch import ACTIVATIONS

__all__ = ["binomial", "make_table", "slopes_of_positives", "sort_positives"]


def sort_positives(batch: Batch, at, many: int = 1 << 16) -> Tensor:
    """Return the ``(N,)`` samples in the order of their keys, by class and then by own score.

    Up to ``many`` samples each is compared with those of its class. With more, where one class may have all, a sort
    is faster.
    """
    n, c = batch.logits.shape
    if n > many:
        return torch.sort(at.keys).indices
    group[(-(-n // 128),)](at.keys, at.start, at.taken, at.grouped, at.samples, n, C=c, BLOCK=128, num_warps=4)
    rank_in_class[(-(-n // 16),)](
        at.grouped, at.samples, at.class_counts, at.start, at.order, C=c, BLOCK=16, ALL=256, num_warps=4
    )
    return at.order


def _block(n: int, c: int) -> dict[str, int]:
    """Return how many positives of a class a program takes at a time."""
    block = min(1024, max(32, 1 << (2 * n // c).bit_length()))
    return {"BLOCK": block, "num_warps": max(1, block // 256)}


def make_table(batch: Batch, loss: Loss, form: Truncated, order: Tensor, weight: Tensor, numbers: Tensor, at) -> None:
    """Make the bounds that negatives are searched in, and the table of loss and slope at each place."""
    n, c = batch.logits.shape
    tabulate[(c,)](
        order, weight, at.rows, at.class_counts, at.start, at.class_weights, at.centre, at.bounds, at.table, numbers, n,
        C=c, PIECES=len(form.ends), DEGREE=form.degree, POWERS=form.powers, ANCHORED=form.anchored, LINEAR=form.linear,
        BOUNDED=loss.bounded, WIDTH=form.width, HAS_WEIGHT=batch.weight is not None, **_block(n, c),
    )  # fmt: skip


def slopes_of_positives(
    batch: Batch, loss: Loss, form: Truncated, order: Tensor, weight: Tensor, numbers: Tensor, at
) -> None:
    """Compute the slope in each own score from what it received from the negatives."""
    n, c = batch.logits.shape
    collect[(c,)](
        order, weight, at.rows, at.class_counts, at.start, at.class_weights, at.centre, numbers, at.received,
        at.row_sums, at.own_slope, n,
        C=c, ACTIVATION=ACTIVATIONS[loss.activation], HAS_WEIGHT=batch.weight is not None, PIECES=len(form.ends),
        DEGREE=form.degree, POWERS=form.powers, ANCHORED=form.anchored, **_block(n, c),
    )  # fmt: skip


@triton.jit
def binomial(n: tl.constexpr, k: tl.constexpr):
    value: tl.constexpr = 1 if k == 0 or k == n else n if k == 1 or k == n - 1 else n * (n - 1) // 2 if k == 2 else 10
    return value


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
def _power_sum(sums, z, K: tl.constexpr):
    """Return ``Σ_u a_u (z − w_u)^K`` from the sums ``Σ a w^j``."""
    out = sums[0]
    for j in tl.static_range(1, K + 1):
        out = out * z + (1 - 2 * (j % 2)) * binomial(K, j) * sums[j]
    return out


@triton.jit
def _downward(exact):
    """Round a float64 down to float32: a float32 is above the one if and only if it is above the other."""
    near = exact.to(tl.float32)
    bits = near.to(tl.int32, bitcast=True)
    lower = tl.where(near > 0.0, bits - 1, tl.where(near < 0.0, bits + 1, -2147483647))
    return tl.where(near.to(tl.float64) > exact, lower.to(tl.float32, bitcast=True), near)


@triton.jit
def tabulate(
    order, weight, row_stats, class_counts, start, class_weights, centre, bounds, table, form, n,
    C: tl.constexpr, PIECES: tl.constexpr, DEGREE: tl.constexpr, POWERS: tl.constexpr, ANCHORED: tl.constexpr,
    LINEAR: tl.constexpr, BOUNDED: tl.constexpr, WIDTH: tl.constexpr, HAS_WEIGHT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Make the bounds and the table of one class.

    A class has one place more than positives, the first one for negatives that meet none.
    ``bounds``, ``(PIECES, N + C)``: the largest score that does not meet the positive in this piece, ascending.
    ``table``, ``(PIECES, N + C, WIDTH)``: coefficients of the sum over the run in powers of the negative's distance,
    times the column's weight. ``ANCHORED``: the distance from the run's last positive, whose score comes first; all
    terms have one sign then, and nothing cancels in float32. ``LINEAR``: slope and root of a sum of lines. Else the
    distance from the middle of the class, in float64.
    """
    c = tl.program_id(0)
    count = tl.load(class_counts + c)
    begin = tl.load(start + c)
    unit = tl.load(class_weights + c).to(tl.float64) * tl.load(class_weights + 2 * C + c).to(tl.float64)
    middle = 0.0
    if count > 0:
        middle = tl.load(row_stats + 3 * n + tl.load(order + begin + count // 2))
    tl.store(centre + c, middle)
    origin = middle.to(tl.float64)
    if BOUNDED:
        origin = tl.zeros((), tl.float64)
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
        if HAS_WEIGHT:
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
            if LINEAR:
                steep = tl.load(numbers + 2)
                mean = tl.where(running[0] == 0.0, 0.0, running[1] / running[0])
                root = mean + (middle.to(tl.float64) - origin) - end - tl.load(numbers + 1) / steep
                tl.store(at, (steep * running[0]).to(tl.float32), mask=inside)
                tl.store(at + 1, root.to(tl.float32), mask=inside)
            else:
                # Distances from the anchor, or from the middle, which are those of q + end.
                z = distance
                if not ANCHORED:
                    z = tl.zeros((BLOCK,), tl.float64)
                else:
                    tl.store(at, p, mask=inside)
                for i in tl.static_range(size):
                    power = tl.zeros((BLOCK,), tl.float64)
                    for k in tl.static_range(i, size):
                        if (POWERS >> k) % 2 == 1:
                            power += tl.load(numbers + 1 + k) * binomial(k, i) * _power_sum(running, z, k - i)
                    if ANCHORED:
                        tl.store(at + 1 + i, power.to(tl.float32), mask=inside)
                    else:
                        tl.store(at + i, power, mask=inside)
        so_far = sums


@triton.jit
def collect(
    order, weight, row_stats, class_counts, start, class_weights, centre, form, received, row_sums, own_slope, n,
    C: tl.constexpr, ACTIVATION: tl.constexpr, HAS_WEIGHT: tl.constexpr, PIECES: tl.constexpr, DEGREE: tl.constexpr,
    POWERS: tl.constexpr, ANCHORED: tl.constexpr, BLOCK: tl.constexpr,
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
                came = arrived[j]
                if ANCHORED:
                    # From powers of the distance from the anchor, which is this positive, to those from the centre.
                    came = arrived[0]
                    for i in tl.static_range(1, j + 1):
                        came = came * w + binomial(j, i) * arrived[i]
                later = later + (so_far[piece * DEGREE + j] + tl.cumsum(came, axis=0, reverse=True),)
                now = now + (so_far[piece * DEGREE + j] + tl.sum(came, axis=0),)
            for k in tl.static_range(1, DEGREE + 1):
                if (POWERS >> k) % 2 == 1:
                    # Σ_n ω (z − w)^(k−1), by Horner's rule in −w.
                    power = later[0]
                    for j in tl.static_range(1, k):
                        power = later[j] * binomial(k - 1, j) - w * power
                    slope -= k * tl.load(form + piece * size + 1 + k) * power
        so_far = now
        unit = inverse * of_column
        if HAS_WEIGHT:
            unit *= tl.load(weight + sample, mask=inside, other=0.0).to(tl.float32)
        own = unit * slope.to(tl.float32)
        tl.store(own_slope + sample, own, mask=inside)
        if ACTIVATION == SOFTMAX:
            before = tl.load(row_sums + sample, mask=inside, other=0.0)
            tl.store(row_sums + sample, before + p * own, mask=inside)
