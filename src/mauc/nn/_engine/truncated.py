r"""A piecewise polynomial that is 0 in the end as a sum of truncated powers,

.. math:: \ell(t) = \sum_b \sum_k c_{bk} \, (b - t)_+^k ,

one b for each place where a piece ends. Sums of its runs lose digits where pieces are narrow or degrees high: that is
foreseen here, and such a form declined. Where the c of each b have one sign, as in the hinge family, all terms of a run
that is counted from its last positive have one, and float32 holds their sums, unless the runs of different b cancel.
"""

from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import NamedTuple

import torch

from mauc.surrogates import Piece, Surrogate

__all__ = ["Truncated", "truncated_powers"]

MOST_DEGREE = 5
MOST_PIECES = 3
DIGITS = 1e-9
"""Rounding of the float64 sums over ``ℓ(0)`` up to which a form is taken."""
CANCELLING = 32.0
"""Sizes of the slopes of all b over the slope of the loss up to which float32 holds them: errors of some 1e-6."""


class Truncated(NamedTuple):
    """``ℓ(t) = Σ_b Σ_k c_bk (b − t)₊^k``."""

    ends: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    """One row per end, all of the same length."""
    anchored: bool
    """Whether float32 holds the sums over a run, counted from its last positive."""

    @property
    def degree(self) -> int:
        """Largest power."""
        return len(self.coefficients[0]) - 1

    @property
    def means(self) -> bool:
        """Whether slope and root of the sum of a run's lines say all of it."""
        return self.anchored and len(self.ends) == 1 and self.degree == 1 and self.coefficients[0][1] > 0.0

    @property
    def width(self) -> int:
        """Numbers at each place of the table, a power of two where they are float32."""
        if self.means:
            return 2
        return 1 << (self.degree + 1).bit_length() if self.anchored else self.degree + 1

    @property
    def powers(self) -> int:
        """Bit k: whether the k-th power occurs."""
        return sum(1 << k for k in range(self.degree + 1) if any(row[k] for row in self.coefficients))


def truncated_powers(surrogate: Surrogate, *, bounded: bool = True) -> Truncated | None:
    """A surrogate as a sum of truncated powers, or None if it is none, or none that float64 can add up.

    ``bounded``: whether scores are between 0 and 1.
    """
    try:
        return _truncated_powers(surrogate, bounded)
    except TypeError:  # cannot be hashed
        return None


@lru_cache(maxsize=256)
def _truncated_powers(surrogate: Surrogate, bounded: bool) -> Truncated | None:
    pieces = surrogate.pieces
    if len(pieces) < 2 or len(pieces) > MOST_PIECES + 1 or pieces[-1].coefficients != (0.0,):
        return None
    if any(piece.coefficients is None for piece in pieces):
        return None
    ends = tuple(piece.high for piece in pieces[:-1])
    jumps = [_jump(left, right) for left, right in pairwise(pieces)]
    degree = max(1, *(len(jump) - 1 for jump in jumps))
    if degree > MOST_DEGREE:
        return None
    rows = tuple((*jump, *(0.0,) * (degree + 1 - len(jump))) for jump in jumps)
    at_zero = sum(c * max(b, 0.0) ** k for b, row in zip(ends, rows, strict=True) for k, c in enumerate(row) if c)
    terms = sum(
        abs(c) * (2.0 * (1.0 + abs(b))) ** k for b, row in zip(ends, rows, strict=True) for k, c in enumerate(row)
    )
    if terms * torch.finfo(torch.float64).eps > DIGITS * abs(at_zero):
        return None
    alone = len(ends) == 1 or (bounded and _cancellation(ends, rows) <= CANCELLING)
    return Truncated(ends, rows, alone and _of_one_sign(rows))


def _of_one_sign(rows: tuple[tuple[float, ...], ...]) -> bool:
    return all(min(row) >= 0.0 or max(row) <= 0.0 for row in rows)


def _cancellation(ends: tuple[float, ...], rows: tuple[tuple[float, ...], ...]) -> float:
    """Largest size of the slopes of all ends, over the largest of their sum, at scores between 0 and 1."""
    largest = sizes = 0.0
    for t in (k / 32.0 for k in range(-32, 33)):
        slopes = [
            sum(k * c * (b - t) ** (k - 1) for k, c in enumerate(row) if k)
            for b, row in zip(ends, rows, strict=True)
            if b > t
        ]
        largest, sizes = max(largest, abs(sum(slopes))), max(sizes, sum(map(abs, slopes)))
    return sizes / largest if largest else float("inf")


def _jump(left: Piece, right: Piece) -> tuple[float, ...]:
    """What the left piece has more than the right one, in powers of the distance from the left one's end."""
    mine, theirs = left.from_end, right.from_end
    further = 0.0 if right.high == float("inf") else right.high - left.high
    length = max(len(mine), len(theirs))
    out = []
    for k in range(length):
        here = mine[k] if k < len(mine) else 0.0
        there = [theirs[i] * comb(i, k) * further ** (i - k) for i in range(k, len(theirs))]
        value = here - sum(there)
        rounding = 16.0 * torch.finfo(torch.float64).eps * (abs(here) + sum(map(abs, there)))
        out.append(value if abs(value) > rounding else 0.0)
    while len(out) > 1 and out[-1] == 0.0:
        out.pop()
    return tuple(out)
