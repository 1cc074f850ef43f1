# mypy: ignore-errors
"""The functions of bilinear forms, and sums of them over the positives; imported only where Triton is."""

import triton
import triton.language as tl

EXPONENTIAL = tl.constexpr(0)
POWERS = tl.constexpr(1)
CHEBYSHEV = tl.constexpr(2)


@triton.jit
def origin_of(origin, places, mask, KIND: tl.constexpr, FIXED: tl.constexpr):
    """What the functions count from in some columns: ``FIXED`` for scores in [0, 1] and no steep exponential."""
    if FIXED:
        return tl.full(places.shape, 1.0 if KIND == POWERS else 0.0, tl.float32)
    else:
        return tl.load(origin + places, mask=mask, other=0.0)


@triton.jit
def of_negative(f, origin, alpha, KIND: tl.constexpr):
    """What the basis functions take: the exponential itself, or the argument of the polynomials."""
    if KIND == EXPONENTIAL:
        return tl.exp(alpha * (f - origin))
    elif KIND == POWERS:
        return (f - origin) + alpha
    else:
        return 2.0 * f - 1.0


@triton.jit
def of_positive(p, origin, alpha, KIND: tl.constexpr):
    if KIND == EXPONENTIAL:
        return tl.exp(alpha * (origin - p))
    elif KIND == POWERS:
        return origin - p
    else:
        return 2.0 * p - 1.0


@triton.jit
def following(term, before, x, k: tl.constexpr, KIND: tl.constexpr):
    """The basis function after ``term``, the k-th, and ``before``, the one before it, or any multiple of both."""
    if KIND == CHEBYSHEV and k > 0:
        return 2.0 * x * term - before
    else:
        return x * term


@triton.jit
def slope_of(q, slopes, places, mask, C, KIND: tl.constexpr, LENGTH: tl.constexpr):
    """``Σ_k slopes[k] φ_k``: by Clenshaw's or Horner's rule."""
    current = tl.load(slopes + (LENGTH - 1) * C + places, mask=mask, other=0.0) + tl.zeros_like(q)
    if KIND == EXPONENTIAL:
        current *= q
    later = tl.zeros_like(q)
    for back in tl.static_range(1, LENGTH):
        constant = tl.load(slopes + (LENGTH - 1 - back) * C + places, mask=mask, other=0.0)
        if KIND == CHEBYSHEV:
            if back < LENGTH - 1:  # noqa: SIM108 — a compile-time choice
                now = 2.0 * q * current + (constant - later)
            else:
                now = q * current + (constant - later)
            later = current
            current = now
        else:
            current = q * current + constant
    return current


@triton.jit
def add_positives(
    of_positives, y, u, own, origin, alpha, counts, C: tl.constexpr, KIND: tl.constexpr, SIZE: tl.constexpr
):
    """Adds the basis functions of some own scores to the sums of their classes, ``(SIZE, C)``."""
    p = of_positive(own, origin, alpha, KIND)
    p = tl.where((u == 0.0) & (own == own), 0.0, p)
    term = u
    if KIND == EXPONENTIAL:
        term = u * p
    before = term
    for k in tl.static_range(SIZE):
        tl.atomic_add(of_positives + k * C + y, term, mask=counts, sem="relaxed")
        more = following(term, before, p, k, KIND)
        before = term
        term = more
