# mypy: ignore-errors
# ruff: noqa: RUF005, RUF059 — Triton compiles neither * in tuples nor names that change their kind
"""The kernels of piecewise polynomials; imported only where Triton is. See :mod:`mauc.nn._engine.fused_ranked`."""

import triton
import triton.language as tl

from mauc.nn._engine.survey_kernels import SIGMOID, SOFTMAX, score_of, share_of, tile_of


@triton.jit
def _binomial(n: tl.constexpr, k: tl.constexpr):
    value: tl.constexpr = 1 if k == 0 or k == n else n if k == 1 or k == n - 1 else n * (n - 1) // 2 if k == 2 else 10
    return value


@triton.jit
def rank(keys, order, n, BLOCK: tl.constexpr, ALL: tl.constexpr):
    """The samples in the order of their keys, by comparing each with all."""
    here = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.load(keys + here, mask=here < n, other=0)
    before = tl.zeros((BLOCK,), tl.int32)
    for begin in range(0, n, ALL):
        there = begin + tl.arange(0, ALL)
        theirs = tl.load(keys + there, mask=there < n, other=0x7FFFFFFFFFFFFFFF)
        earlier = (theirs[None, :] == mine[:, None]) & (there[None, :] < here[:, None])
        before += tl.sum(((theirs[None, :] < mine[:, None]) | earlier).to(tl.int32), axis=1)
    tl.store(order + before, here.to(tl.int64), mask=here < n)


@triton.jit
def tabulate(
    order,
    weight,
    rows_out,
    class_counts,
    start,
    centre,
    value,
    prefix,
    form,
    n,
    C: tl.constexpr,
    DEGREE: tl.constexpr,
    POWERS: tl.constexpr,
    ANCHORED: tl.constexpr,
    WIDTH: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The positives of one class in their order, and what their sums are at each place; a class has one place more.

    ``ANCHORED``: the last positive before the place, and the coefficients of the sum over it and those before in
    powers of the distance of ``q + b`` from it. All are positive where the loss's are: nothing cancels in float32.
    Else the sums ``Σ u (p − centre)^j``, in float64, since a small sum is a difference of such sums.
    """
    c = tl.program_id(0)
    count = tl.load(class_counts + c)
    begin = tl.load(start + c)
    middle = 0.0
    if count > 0:
        middle = tl.load(rows_out + 3 * n + tl.load(order + begin + count // 2))
    tl.store(centre + c, middle)
    size: tl.constexpr = DEGREE + 1
    first = prefix + (begin + c).to(tl.int64) * WIDTH
    so_far = ()
    for _ in tl.static_range(size):
        so_far = so_far + (tl.zeros((), tl.float64),)
    for j in tl.static_range(WIDTH):
        tl.store(first + j, 0.0)
    for some in range(0, count, BLOCK):
        rank = some + tl.arange(0, BLOCK)
        inside = rank < count
        sample = tl.load(order + begin + rank, mask=inside, other=0)
        p = tl.load(rows_out + 3 * n + sample, mask=inside, other=0.0)
        tl.store(value + begin + rank, p, mask=inside)
        term = inside.to(tl.float64)
        if HAS_WEIGHT:
            term = tl.load(weight + sample, mask=inside, other=0.0).to(tl.float64)
        distance = p.to(tl.float64) - middle
        sums = ()
        running = ()
        for j in tl.static_range(size):
            running = running + (so_far[j] + tl.cumsum(term, axis=0),)
            sums = sums + (so_far[j] + tl.sum(term, axis=0),)
            term *= distance
        at = first + (rank + 1) * WIDTH
        if ANCHORED:
            tl.store(at, p, mask=inside)
            for i in tl.static_range(size):
                power = tl.zeros((BLOCK,), tl.float64)
                for k in tl.static_range(i, size):
                    if (POWERS >> k) % 2 == 1:
                        power += tl.load(form + 1 + k) * _binomial(k, i) * _power_sum(running, distance, k - i)
                tl.store(at + 1 + i, power.to(tl.float32), mask=inside)
        else:
            for j in tl.static_range(size):
                tl.store(at + j, running[j], mask=inside)
        so_far = sums


@triton.jit
def _widest_step(most):
    """The largest power of two up to ``most``; 0 if there is none."""
    step = 1
    while step * 2 <= most:
        step *= 2
    return tl.where(most > 0, step, 0)


@triton.jit
def _find(value, begin, count, step, threshold):
    """How many of ``count`` ascending values from ``begin`` on are below the threshold."""
    found = tl.zeros(threshold.shape, tl.int32)
    while step > 0:
        next = found + step
        inside = next <= count
        at = tl.load(value + begin + next - 1, mask=inside, other=float("inf"))
        found = tl.where(inside & (at < threshold), next, found)
        step = step // 2
    return found


@triton.jit
def _upward(f, end, rest):
    """The smallest float32 not below ``f + end + rest``: a float32 is below the one number if and only if it is below
    the other. What the sum loses in rounding is exact.
    """
    near = f + end
    back = near - f
    lost = (f - (near - back)) + (end - back) + rest
    bits = near.to(tl.int32, bitcast=True)
    bits += tl.where(lost > 0.0, tl.where(near >= 0.0, 1, -1), 0)
    return tl.where(near == 0.0, tl.where(lost > 0.0, lost, near), bits.to(tl.float32, bitcast=True))


@triton.jit
def _power_sum(sums, z, K: tl.constexpr):
    """``Σ_u a_u (z − w_u)^K`` of the sums ``Σ a w^j``."""
    out = sums[0]
    for j in tl.static_range(1, K + 1):
        out = out * z + (1 - 2 * (j % 2)) * _binomial(K, j) * sums[j]
    return out


@triton.jit
def _visit(
    f, value, prefix, form, piece, begin, count, step, centre, before,
    DEGREE: tl.constexpr, POWERS: tl.constexpr, ANCHORED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Sum and slope, in the negative, of one piece over the positives of each negative's run; where the run ends, and
    the distance of the negative, with the piece's end added to it, from the anchor or the centre.
    """
    size: tl.constexpr = DEGREE + 1
    exact = tl.load(form + piece * (size + 1))
    end = exact.to(tl.float32)
    found = _find(value, begin, count, step, _upward(f, end, (exact - end.to(tl.float64)).to(tl.float32)))
    place = begin + before + found
    at = prefix + place.to(tl.int64) * WIDTH
    if ANCHORED:
        z = (f - tl.load(at)) + end
        total = tl.load(at + size)
        slope = tl.zeros_like(total)
        for back in tl.static_range(1, size):
            slope = slope * z + total
            total = total * z + tl.load(at + size - back)
        return total, slope, place, z
    else:
        z = f.to(tl.float64) + (exact - centre.to(tl.float64))
        sums = ()
        for j in tl.static_range(size):
            sums = sums + (tl.load(at + j),)
        total = tl.zeros(f.shape, tl.float64)
        slope = tl.zeros(f.shape, tl.float64)
        for k in tl.static_range(size):
            if (POWERS >> k) % 2 == 1:
                c = tl.load(form + piece * (size + 1) + 1 + k)
                total += c * _power_sum(sums, z, k)
                if k > 0:
                    slope += (k * c) * _power_sum(sums, z, k - 1)
        return total, slope, place, z


@triton.jit
def columns_of(
    logits,
    target,
    weight,
    matrix,
    rows_out,
    class_counts,
    start,
    of_class,
    centre,
    value,
    prefix,
    form,
    landed,
    row_sums,
    totals,
    ticket,
    out,
    log_loss,
    n,
    stride,
    ignore_index,
    C: tl.constexpr,
    ACTIVATION: tl.constexpr,
    LOG: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_MATRIX: tl.constexpr,
    GRADIENT: tl.constexpr,
    PIECES: tl.constexpr,
    DEGREE: tl.constexpr,
    POWERS: tl.constexpr,
    ANCHORED: tl.constexpr,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The second read: the value; what the negatives hand to the positives; each row's sum of score times slope.

    Neighbouring lanes take neighbouring rows of one column: their searches touch the same few cache lines.
    """
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    begin = tl.load(start + columns, mask=exists, other=0)[None, :]
    count = tl.load(class_counts + columns, mask=exists, other=0)[None, :]
    before = tl.where(exists, columns, 0)[None, :]  # one place more for each class before
    middle = tl.load(centre + columns, mask=exists, other=0.0)[None, :]
    of_column = tl.load(of_class + columns, mask=exists, other=0.0)
    unit = of_column * tl.load(of_class + 2 * C + columns, mask=exists, other=0.0)
    step = _widest_step(tl.max(count))
    shape: tl.constexpr = (ROWS, COLUMNS)
    # Where a sum is of positive terms float32 will do.
    wide: tl.constexpr = tl.float32 if ANCHORED else tl.float64
    gather: tl.constexpr = tl.float32 if ANCHORED and DEGREE == 1 else tl.float64
    risk = tl.zeros(shape, tl.float32)
    # Most negatives of a column end at one place: what they hand over is summed here, what the others do is added
    # where they end. It is the place of score 0, which is near the most of softmax scores, or of the first row's score.
    some_score = tl.zeros((1, COLUMNS), tl.float32)
    if ACTIVATION != SOFTMAX:
        some_row = logits + (tl.program_id(1) * ROWS).to(tl.int64) * stride
        some_score = tl.load(some_row + columns, mask=exists, other=0.0).to(tl.float32)[None, :]
        some_score = score_of(some_score, 0.0, 1.0, ACTIVATION)
    usual = ()
    gathered = ()
    for piece in tl.static_range(PIECES):
        end = tl.load(form + piece * (DEGREE + 2)).to(tl.float32)
        usual = usual + (begin + before + _find(value, begin, count, step, some_score + end),)
        for _ in tl.static_range(DEGREE):
            gathered = gathered + (tl.zeros(shape, gather),)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, inside, y, u, counts = tile_of(
            logits, target, weight, matrix, rows_out, of_class, rows, columns, n, stride, ignore_index,
            C, ACTIVATION, HAS_WEIGHT, HAS_MATRIX,
        )  # fmt: skip
        steepness = tl.zeros(shape, wide)
        loss = tl.zeros(shape, wide)
        now_gathered = ()
        for piece in tl.static_range(PIECES):
            total, slope, place, z = _visit(
                f, value, prefix, form, piece, begin, count, step, middle, before,
                DEGREE, POWERS, ANCHORED, WIDTH,
            )  # fmt: skip
            loss += total
            steepness += slope
            if GRADIENT:
                term = weights.to(gather)
                here = landed + (piece * (n + C) + place.to(tl.int64)) * DEGREE
                common = place == usual[piece]
                for j in tl.static_range(DEGREE):
                    now_gathered = now_gathered + (gathered[piece * DEGREE + j] + tl.where(common, term, 0.0),)
                    tl.atomic_add(here + j, term.to(tl.float64), mask=(weights != 0.0) & ~common, sem="relaxed")
                    if j < DEGREE - 1:
                        term *= z.to(gather)
        if GRADIENT:
            gathered = now_gathered
        risk += tl.where((weights == 0.0) & (f == f), 0.0, weights * loss.to(tl.float32))
        risk += tl.where(inside & (f != f), f, 0.0)
        if GRADIENT and ACTIVATION == SOFTMAX:
            pull = tl.where(weights == 0.0, 0.0, f * weights * unit[None, :] * steepness.to(tl.float32))
            tl.atomic_add(row_sums + rows, tl.sum(pull, axis=1), mask=counts, sem="relaxed")
    if GRADIENT:
        for piece in tl.static_range(PIECES):
            at = landed + (piece * (n + C) + usual[piece].to(tl.int64)) * DEGREE
            for j in tl.static_range(DEGREE):
                sum_here = tl.sum(gathered[piece * DEGREE + j].to(tl.float64), axis=0)[None, :]
                tl.atomic_add(at + j, sum_here, mask=exists[None, :], sem="relaxed")
    risk = tl.sum(risk.to(tl.float64), axis=0)
    tl.atomic_add(totals, tl.sum(risk * unit, axis=0), sem="relaxed")
    tl.debug_barrier()
    programs = tl.num_programs(0) * tl.num_programs(1)
    if tl.atomic_add(ticket, 1, sem="acq_rel", scope="gpu") == programs - 1:
        whole = tl.load(totals, cache_modifier=".cg")
        if LOG:
            whole += share_of(totals, log_loss) * tl.load(totals + 1, cache_modifier=".cg")
        tl.store(out, whole.to(out.dtype.element_ty))


@triton.jit
def collect(
    order,
    weight,
    rows_out,
    class_counts,
    start,
    of_class,
    centre,
    form,
    landed,
    row_sums,
    at_own,
    n,
    C: tl.constexpr,
    ACTIVATION: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    PIECES: tl.constexpr,
    DEGREE: tl.constexpr,
    POWERS: tl.constexpr,
    ANCHORED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The slope in each positive of one class: of all that has landed at later places."""
    c = tl.program_id(0)
    count = tl.load(class_counts + c)
    begin = tl.load(start + c)
    middle = tl.load(centre + c).to(tl.float64)
    inverse = tl.load(of_class + 2 * C + c)
    of_column = tl.load(of_class + c)
    size: tl.constexpr = DEGREE + 2
    so_far = ()
    for _ in tl.static_range(PIECES * DEGREE):
        so_far = so_far + (tl.zeros((), tl.float64),)
    blocks = tl.cdiv(count, BLOCK)
    for back in range(0, blocks):
        rank = (blocks - 1 - back) * BLOCK + tl.arange(0, BLOCK)
        inside = rank < count
        sample = tl.load(order + begin + rank, mask=inside, other=0)
        p = tl.load(rows_out + 3 * n + sample, mask=inside, other=0.0)
        w = p.to(tl.float64) - middle
        slope = tl.zeros((BLOCK,), tl.float64)
        now = ()
        for piece in tl.static_range(PIECES):
            later = ()
            at = landed + (piece * (n + C) + begin + c + 1 + rank.to(tl.int64)) * DEGREE
            arrived = ()
            for j in tl.static_range(DEGREE):
                arrived = arrived + (tl.load(at + j, mask=inside, other=0.0),)
            for j in tl.static_range(DEGREE):
                came = arrived[j]
                if ANCHORED:
                    # From powers of the distance from the anchor, which is this positive, to those from the centre.
                    came = arrived[0]
                    for i in tl.static_range(1, j + 1):
                        came = came * w + _binomial(j, i) * arrived[i]
                later = later + (so_far[piece * DEGREE + j] + tl.cumsum(came, axis=0, reverse=True),)
                now = now + (so_far[piece * DEGREE + j] + tl.sum(came, axis=0),)
            for k in tl.static_range(1, DEGREE + 1):
                if (POWERS >> k) % 2 == 1:
                    # Σ_n ω (z − w)^(k−1), by Horner's rule in −w.
                    power = later[0]
                    for j in tl.static_range(1, k):
                        power = later[j] * _binomial(k - 1, j) - w * power
                    slope -= k * tl.load(form + piece * size + 1 + k) * power
        so_far = now
        unit = inverse * of_column
        if HAS_WEIGHT:
            unit *= tl.load(weight + sample, mask=inside, other=0.0).to(tl.float32)
        own = unit * slope.to(tl.float32)
        tl.store(at_own + sample, own, mask=inside)
        if ACTIVATION == SOFTMAX:
            before = tl.load(row_sums + sample, mask=inside, other=0.0)
            tl.store(row_sums + sample, before + p * own, mask=inside)


@triton.jit
def gradient_of(
    logits,
    target,
    weight,
    matrix,
    ratios,
    rows_out,
    class_counts,
    start,
    of_class,
    centre,
    value,
    prefix,
    form,
    row_sums,
    at_own,
    totals,
    upstream,
    out,
    log_loss,
    n,
    stride,
    ignore_index,
    C: tl.constexpr,
    ACTIVATION: tl.constexpr,
    LOG: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_MATRIX: tl.constexpr,
    PIECES: tl.constexpr,
    DEGREE: tl.constexpr,
    POWERS: tl.constexpr,
    ANCHORED: tl.constexpr,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The third read, and the write of the gradient."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    begin = tl.load(start + columns, mask=exists, other=0)[None, :]
    count = tl.load(class_counts + columns, mask=exists, other=0)[None, :]
    before = tl.where(exists, columns, 0)[None, :]  # one place more for each class before
    middle = tl.load(centre + columns, mask=exists, other=0.0)[None, :]
    unit = tl.load(of_class + columns, mask=exists, other=0.0)
    unit *= tl.load(of_class + 2 * C + columns, mask=exists, other=0.0)
    step = _widest_step(tl.max(count))
    factor = tl.load(upstream).to(tl.float32)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, inside, y, u, counts = tile_of(
            logits, target, weight, matrix, rows_out, of_class, rows, columns, n, stride, ignore_index,
            C, ACTIVATION, HAS_WEIGHT, HAS_MATRIX,
        )  # fmt: skip
        steepness = tl.zeros((ROWS, COLUMNS), tl.float32 if ANCHORED else tl.float64)
        for piece in tl.static_range(PIECES):
            total, slope, place, z = _visit(
                f, value, prefix, form, piece, begin, count, step, middle, before,
                DEGREE, POWERS, ANCHORED, WIDTH,
            )  # fmt: skip
            steepness += slope
        g = tl.where(weights == 0.0, 0.0, weights * unit[None, :] * steepness.to(tl.float32))
        is_own = inside & (columns[None, :] == y[:, None])
        g = tl.where(is_own, tl.load(at_own + rows, mask=counts, other=0.0)[:, None], g)
        if ACTIVATION == SOFTMAX:
            g = f * (g - tl.load(row_sums + rows, mask=counts, other=0.0)[:, None])
        elif ACTIVATION == SIGMOID:
            g = f * (1.0 - f) * g
        if LOG:
            peak = tl.load(rows_out + rows, mask=counts, other=0.0)
            inverse = tl.load(rows_out + 2 * n + rows, mask=counts, other=0.0)
            r = tl.load(ratios + columns, mask=exists, other=0.0)
            share = u * share_of(totals, log_loss).to(tl.float32)
            shifted = tl.exp(x - peak[:, None]) * r[None, :] * inverse[:, None]
            g += tl.where(share == 0.0, 0.0, share)[:, None] * (shifted - is_own.to(tl.float32))
        at = out + rows.to(tl.int64)[:, None] * C + columns[None, :]
        tl.store(at, (factor * g).to(out.dtype.element_ty), mask=(rows < n)[:, None] & exists[None, :])
