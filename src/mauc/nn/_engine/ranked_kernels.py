# mypy: ignore-errors
# ruff: noqa: RUF005, RUF059 — Triton compiles neither * in tuples nor names that change their kind
"""The kernels of piecewise polynomials that go over all scores; imported only where Triton is.

See :mod:`mauc.nn._engine.fused_ranked`.
"""

import triton
import triton.language as tl

from mauc.nn._engine.positives_kernels import binomial
from mauc.nn._engine.survey_kernels import IDENTITY, SOFTMAX, score_of, share_of, tile_of, write


@triton.jit
def _widest_step(most):
    """The largest power of two up to ``most``; 0 if there is none."""
    step = 1
    while step * 2 <= most:
        step *= 2
    return tl.where(most > 0, step, 0)


@triton.jit
def _find(bounds, begin, end, step, score):
    """The last place whose bound is below the score, of those after ``begin`` to ``end``, which ascend; or ``begin``.

    Beyond the end the last bound stands for all: either it is too large, or every step is taken and the end is it.
    """
    place = begin + tl.zeros(score.shape, tl.int32)
    while step > 0:
        at = tl.minimum(place + step, end)
        place += tl.where(tl.load(bounds + at) < score, step, 0)
        step = step // 2
    return tl.minimum(place, end)


@triton.jit
def _bound_after(bounds, place, end, by: tl.constexpr):
    """The bound so many places on, infinite where there is none."""
    at = place + by
    return tl.where(at > end, float("inf"), tl.load(bounds + tl.minimum(at, end)))


@triton.jit
def _crowd_of(bounds, begin, end, score, CROWDED: tl.constexpr):
    """Where most negatives of a column end: the place of ``score``, and what :func:`_place_of` asks about it."""
    place = _find(bounds, begin, end, _widest_step(tl.max(end - begin)), score)
    low = begin
    if CROWDED:
        low = place
    step = _widest_step(tl.max(end - low))
    return place, low, _bound_after(bounds, place, end, 2), _bound_after(bounds, place, end, 4), step


@triton.jit
def _place_of(bounds, crowd, end, score, weights, CROWDED: tl.constexpr):
    """As :func:`_find`; with ``CROWDED``, where no score is below the crowd's, in as few steps as do for the tile."""
    _, low, second, fourth, step = crowd
    sought = score
    if CROWDED:
        sought = tl.where(weights == 0.0, 0.0, score)  # the own scores, which are large, are no negatives
        crossed = (sought > second).to(tl.int32) + (sought > fourth).to(tl.int32)
        furthest = tl.max(tl.max(crossed, axis=1), axis=0)
        step = tl.where(furthest == 2, step, tl.minimum(step, 1 + furthest))
    return _find(bounds, low, end, step, sought)


@triton.jit
def _both(at):
    """Two float32 numbers that lie together, in one load."""
    both = tl.load(at.to(tl.pointer_type(tl.int64)))
    return both.to(tl.int32).to(tl.float32, bitcast=True), (both >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _numbers(at, COUNT: tl.constexpr, ANCHORED: tl.constexpr):
    """The first numbers at a place of the table."""
    numbers = ()
    if ANCHORED:
        for pair in tl.static_range((COUNT + 1) // 2):
            numbers = numbers + _both(at + 2 * pair)
    else:
        for k in tl.static_range(COUNT):
            numbers = numbers + (tl.load(at + k),)
    return numbers


@triton.jit
def _distance(f, anchor, form, piece: tl.constexpr, middle, DEGREE: tl.constexpr, ANCHORED: tl.constexpr):
    """Of a negative, with the piece's end added to it, from the run's last positive or from the class's middle."""
    end = tl.load(form + piece * (DEGREE + 2))
    if ANCHORED:
        return (f - anchor) + end.to(tl.float32)
    else:
        return f.to(tl.float64) + (end - middle.to(tl.float64))


@triton.jit
def _loss_and_slope(
    f, near, at, form, piece: tl.constexpr, middle,
    DEGREE: tl.constexpr, ANCHORED: tl.constexpr, MEANS: tl.constexpr,
):  # fmt: skip
    """Sum and slope, in the negative, of one piece over the positives of its run; and its distance."""
    if MEANS:
        steep, root = _both(at)
        return steep * (near - root), steep, near
    else:
        first: tl.constexpr = 1 if ANCHORED else 0
        numbers = _numbers(at, first + DEGREE + 1, ANCHORED)
        z = _distance(f, numbers[0], form, piece, middle, DEGREE, ANCHORED)
        total = numbers[first + DEGREE]
        slope = tl.zeros_like(total)
        for back in tl.static_range(1, DEGREE + 1):
            slope = slope * z + total
            total = total * z + numbers[first + DEGREE - back]
        return total, slope, z


@triton.jit
def _slope(
    f, at, form, piece: tl.constexpr, middle,
    DEGREE: tl.constexpr, ANCHORED: tl.constexpr, MEANS: tl.constexpr,
):  # fmt: skip
    if MEANS:
        return tl.load(at)
    else:
        first: tl.constexpr = 1 if ANCHORED else 0
        numbers = _numbers(at, first + DEGREE + 1, ANCHORED)
        slope = DEGREE * numbers[first + DEGREE]
        if DEGREE > 1:
            z = _distance(f, numbers[0], form, piece, middle, DEGREE, ANCHORED)
            for back in tl.static_range(1, DEGREE):
                slope = slope * z + (DEGREE - back) * numbers[first + DEGREE - back]
        return slope


@triton.jit
def columns_of(
    logits,
    codes,
    weight,
    matrix,
    rows_out,
    class_counts,
    start,
    of_class,
    centre,
    bounds,
    table,
    form,
    landed,
    row_sums,
    totals,
    ticket,
    out,
    log_loss,
    n,
    C: tl.constexpr,
    STRIDE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    LOG: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_MATRIX: tl.constexpr,
    GRADIENT: tl.constexpr,
    PIECES: tl.constexpr,
    DEGREE: tl.constexpr,
    ANCHORED: tl.constexpr,
    MEANS: tl.constexpr,
    WIDTH: tl.constexpr,
    CROWDED: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The second read: the value; what the negatives hand to the positives; each row's sum of score times slope.

    Neighbouring lanes take neighbouring rows of one column: their searches touch the same few cache lines.
    """
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    begin = tl.load(start + columns, mask=exists, other=0)[None, :]
    begin += tl.where(exists, columns, 0)[None, :]  # one place more for each class before
    end = begin + tl.load(class_counts + columns, mask=exists, other=0)[None, :]
    middle = tl.load(centre + columns, mask=exists, other=0.0)[None, :]
    shape: tl.constexpr = (ROWS, COLUMNS)
    risk = tl.zeros((ROWS,), tl.float32)
    # Most negatives of a column end at one place: what they hand over is summed here, what the others do is added
    # where they end. It is the place of score 0, which is near the most of softmax scores, or of the first row's score.
    some_score = tl.zeros((1, COLUMNS), tl.float32)
    if ACTIVATION != SOFTMAX:
        some_row = logits + (tl.program_id(1) * ROWS).to(tl.int64) * STRIDE
        some_score = tl.load(some_row + columns, mask=exists, other=0.0).to(tl.float32)[None, :]
        some_score = score_of(some_score, 0.0, 1.0, ACTIVATION)
    crowds = ()
    gathered = ()
    for piece in tl.static_range(PIECES):
        crowds = crowds + (_crowd_of(bounds + piece * (n + C), begin, end, some_score, CROWDED),)
        for _ in tl.static_range(DEGREE):
            gathered = gathered + (tl.zeros(shape, tl.float32),)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, inside, y, u, counts = tile_of(
            logits, codes, weight, matrix, rows_out, of_class, rows, columns, n, STRIDE,
            C, ACTIVATION, HAS_WEIGHT, HAS_MATRIX,
        )  # fmt: skip
        near = f
        if ACTIVATION == IDENTITY:
            near = f - middle
        now_gathered = ()
        loss = 0.0
        steepness = 0.0
        for piece in tl.static_range(PIECES):
            place = _place_of(bounds + piece * (n + C), crowds[piece], end, f, weights, CROWDED)
            at = table + (piece * (n + C) + place) * WIDTH
            total, slope, z = _loss_and_slope(f, near, at, form, piece, middle, DEGREE, ANCHORED, MEANS)
            loss = total if piece == 0 else loss + total
            steepness = slope if piece == 0 else steepness + slope
            if GRADIENT:
                common = place == crowds[piece][0]
                term = tl.where(common, weights, 0.0)
                known = near
                if ACTIVATION == IDENTITY:
                    known = tl.where(weights == 0.0, 0.0, near)
                for j in tl.static_range(DEGREE):
                    now_gathered = now_gathered + (gathered[piece * DEGREE + j] + term,)
                    if j < DEGREE - 1:
                        term *= known
                alone = (weights != 0.0) & ~common
                if tl.max(tl.max(alone.to(tl.int32), axis=1), axis=0) > 0:
                    handed = weights.to(tl.float64)
                    here = landed + (piece * (n + C) + place).to(tl.int64) * DEGREE
                    for j in tl.static_range(DEGREE):
                        tl.atomic_add(here + j, handed, mask=alone, sem="relaxed")
                        if j < DEGREE - 1:
                            handed *= z.to(tl.float64)
        if GRADIENT:
            gathered = now_gathered
        lost = weights * loss.to(tl.float32)
        if ACTIVATION == IDENTITY:
            # What weighs nothing is no term, even where its loss is beyond the floats; but no number stays none.
            lost = tl.where((weights == 0.0) & (f == f), 0.0, lost)
        risk += tl.sum(lost, axis=1)
        if GRADIENT and ACTIVATION == SOFTMAX:
            pull = f * (weights * steepness.to(tl.float32))
            tl.atomic_add(row_sums + rows, tl.sum(pull, axis=1), mask=counts, sem="relaxed")
    if GRADIENT:
        for piece in tl.static_range(PIECES):
            place = crowds[piece][0]
            here = landed + (piece * (n + C) + place).to(tl.int64) * DEGREE
            # From powers of the score to powers of the distance.
            shift = tl.load(form + piece * (DEGREE + 2)) + tl.zeros((1, COLUMNS), tl.float64)
            if ANCHORED and DEGREE > 1:
                shift -= tl.load(table + place.to(tl.int64) * WIDTH).to(tl.float64)
            else:
                shift -= middle.to(tl.float64)
            if ACTIVATION == IDENTITY:
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
    if tl.atomic_add(ticket, 1, sem="acq_rel", scope="gpu") == programs - 1:
        whole = tl.load(totals, cache_modifier=".cg")
        if LOG:
            whole += share_of(totals, log_loss) * tl.load(totals + 1, cache_modifier=".cg")
        tl.store(out, whole.to(tl.float32).to(out.dtype.element_ty))


@triton.jit
def gradient_of(
    logits,
    codes,
    weight,
    matrix,
    ratios,
    rows_out,
    class_counts,
    start,
    of_class,
    centre,
    bounds,
    table,
    form,
    row_sums,
    at_own,
    totals,
    upstream,
    out,
    log_loss,
    n,
    C: tl.constexpr,
    STRIDE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    LOG: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_MATRIX: tl.constexpr,
    PIECES: tl.constexpr,
    DEGREE: tl.constexpr,
    ANCHORED: tl.constexpr,
    MEANS: tl.constexpr,
    WIDTH: tl.constexpr,
    CROWDED: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The third read, and the write of the gradient."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = columns < C
    begin = tl.load(start + columns, mask=exists, other=0)[None, :]
    begin += tl.where(exists, columns, 0)[None, :]  # one place more for each class before
    end = begin + tl.load(class_counts + columns, mask=exists, other=0)[None, :]
    middle = tl.load(centre + columns, mask=exists, other=0.0)[None, :]
    crowds = ()
    for piece in tl.static_range(PIECES):
        nothing = tl.zeros((1, COLUMNS), tl.float32)
        crowds = crowds + (_crowd_of(bounds + piece * (n + C), begin, end, nothing, CROWDED),)
    factor = tl.load(upstream).to(tl.float32)
    for tile in range(tl.program_id(1), tl.cdiv(n, ROWS), tl.num_programs(1)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        x, f, weights, inside, y, u, counts = tile_of(
            logits, codes, weight, matrix, rows_out, of_class, rows, columns, n, STRIDE,
            C, ACTIVATION, HAS_WEIGHT, HAS_MATRIX,
        )  # fmt: skip
        steepness = 0.0
        for piece in tl.static_range(PIECES):
            place = _place_of(bounds + piece * (n + C), crowds[piece], end, f, weights, CROWDED)
            at = table + (piece * (n + C) + place) * WIDTH
            slope = _slope(f, at, form, piece, middle, DEGREE, ANCHORED, MEANS)
            steepness = slope if piece == 0 else steepness + slope
        g = weights * steepness.to(tl.float32)
        if ACTIVATION == IDENTITY:
            g = tl.where(weights == 0.0, 0.0, g)
        write(
            out, ratios, rows_out, row_sums, at_own, totals, g, x, f, rows, columns, y, u, counts, factor,
            log_loss, n, C, ACTIVATION, LOG,
        )  # fmt: skip
