r"""Tiny batches in one kernel: every pair, value and gradient at once.

A sample is a positive in one column only, so a batch has ``N²`` pairs at most, however many classes there are: of
sample r, as the positive, and sample q, as the negative, in column ``y_r``. One program holds them all,

.. math:: \sum_{q r} \omega_{q r} \, \ell(p_r - F_{q, y_r}) ,

and sums the slopes of the negatives into their columns by a product with ``1[y_r = i]``, ``N² C`` terms. There is no
scratch, no order of sums that depends on chance, and no second launch: where a launch takes longer than the work, as
with 32 samples of 12 classes, that is what counts. In the backward pass the gradient is multiplied by what comes from
above.

A pair's loss is taken as it is, a function of the difference: polynomial pieces, each in powers of the distance from
its end; the exponential; or the polynomial of :mod:`mauc.nn._engine.fused_bilinear`, in powers of the difference. Where
powers cancel they are evaluated in float64.
"""

from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.polynomial import chebyshev as cheb
from numpy.polynomial.polynomial import polyval
from torch import Tensor

from mauc._typing import Floats
from mauc.nn._engine.fused_bilinear import expanded
from mauc.nn._engine.launch import Kernel
from mauc.nn._engine.tiles import ACTIVATIONS, PAIRS, Data, Settings, kept_or_made
from mauc.nn._engine.truncated import MOST_DEGREE, MOST_PIECES
from mauc.surrogates import Piece, Surrogate

__all__ = ["Pairwise", "is_tiny", "pairwise", "recipe_of", "tiny_loss"]

MOST_SAMPLES = 64
"""So many make 4096 pairs, 16 to a thread: with more their numbers fill the registers."""
MOST_PRODUCTS = 1 << 17
"""Of the sums into columns: samples squared times classes, each up to a power of two."""
WARPS = 8
"""Half as many for 16 samples: what is done once per sample every warp does again."""
MOST_CANCELLED = 16.0
"""Sum of a polynomial's terms over its least value, and of its slope's, from which on float32 has too few digits."""


class Pairwise(NamedTuple):
    """``ℓ(t) = Σ_k c_bk (o_b − t)^k`` with the least end b above t, 0 where none is; or ``c exp(rate (o − t))``."""

    ends: tuple[float, ...]
    """Descending."""
    origins: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    """One row per end, all of the same length."""
    rate: float = 0.0
    exact: bool = False
    """Whether it takes float64."""

    @property
    def degree(self) -> int:
        """Largest power."""
        return len(self.coefficients[0]) - 1


def is_tiny(logits: Tensor) -> bool:
    """Whether one program is enough."""
    rows, columns = _block(logits)
    return rows <= MOST_SAMPLES and rows * rows * columns <= MOST_PRODUCTS


def _block(logits: Tensor) -> tuple[int, int]:
    rows, columns = (max(16, 1 << (size - 1).bit_length()) for size in logits.shape)
    return rows, columns


def pairwise(surrogate: Surrogate, *, bounded: bool) -> Pairwise | None:
    """The loss of a pair, ``bounded`` for scores in [0, 1]; None where the kernel has none."""
    try:
        return _pairwise(surrogate, bounded)
    except TypeError:  # cannot be hashed
        return None


@lru_cache(maxsize=256)
def _pairwise(surrogate: Surrogate, bounded: bool) -> Pairwise | None:
    closed = surrogate.closed_form
    if closed is not None:
        kind, alpha = closed
        if kind == "exponential":
            return Pairwise((inf,), (0.0,), ((1.0,),), alpha)
        return Pairwise((inf,), (alpha,), ((0.0, 0.0, 1.0),))
    *pieces, last = surrogate.pieces
    if last.coefficients == (0.0,) and 0 < len(pieces) <= MOST_PIECES and all(map(_is_polynomial, pieces)):
        return _of_pieces(pieces[::-1])
    form = expanded(surrogate) if bounded else None
    return None if form is None else _of_one_polynomial(np.array(form.matrices[0]))


def _is_polynomial(piece: Piece) -> bool:
    return piece.coefficients is not None and len(piece.coefficients) <= MOST_DEGREE + 1


def _of_pieces(pieces: list[Piece]) -> Pairwise:
    """Of polynomials, each in powers of the distance from its end, which is not below 0."""
    ends, rows = tuple(piece.high for piece in pieces), [piece.from_end for piece in pieces]
    length = max(map(len, rows))
    padded = tuple((*row, *(0.0,) * (length - len(row))) for row in rows)
    return Pairwise(ends, ends, padded, exact=min(map(min, rows)) < 0.0)


def _of_one_polynomial(matrix: Floats) -> Pairwise:
    """Of a bilinear form in Chebyshev polynomials of both scores."""
    degree = len(matrix) - 1
    # Scores with p + q = 1 have every difference.
    nodes = cheb.chebpts1(degree + 1)
    series = cheb.chebfit(nodes, cheb.chebval2d(nodes, -nodes, matrix), degree)
    powers = cheb.cheb2poly(series) * (-1.0) ** np.arange(degree + 1)  # of −t
    slopes = powers[1:] * np.arange(1.0, degree + 1.0)
    exact = _cancels(powers, nodes) or _cancels(slopes, nodes)
    return Pairwise((inf,), (0.0,), (tuple(powers.tolist()),), exact=exact)


def _cancels(powers: Floats, nodes: Floats) -> bool:
    return bool(np.abs(powers).sum() > MOST_CANCELLED * np.abs(polyval(nodes, powers)).min())


_RECIPES: dict[tuple[Any, ...], Kernel] = {}


def _recipe(data: Data, settings: Settings, dtype: torch.dtype | None) -> Kernel:
    from mauc.nn._engine.tiny_kernels import tiny

    form, (rows, columns) = settings.form, _block(data.logits)
    constants = {
        "C": data.logits.shape[1],
        "STRIDE": data.logits.stride(0),
        "ACTIVATION": ACTIVATIONS[settings.activation],
        "LOG": settings.log_loss > 0,
        "PAIRS": PAIRS[settings.pairs],
        "HAS_WEIGHT": data.weight is not None,
        "HAS_SIZES": data.sizes is not None,
        "GRADIENT": dtype is not None,
        "CUT": form.ends[0] < inf,
        "EXPONENTIAL": form.rate > 0.0,
        "PIECES": len(form.ends),
        "DEGREE": form.degree,
        "ROWS": rows,
        "COLUMNS": columns,
    }
    return Kernel(tiny, (1,), WARPS if rows * max(rows, columns) > 512 else WARPS // 2, constants)


@lru_cache(maxsize=64)
def form_on(form: Pairwise, device: torch.device) -> tuple[Tensor, Tensor]:
    """The numbers of a form on a device, where they stay."""
    table = [[origin, *row] for origin, row in zip(form.origins, form.coefficients, strict=True)]
    ends = torch.tensor(form.ends, dtype=torch.float64)
    numbers = torch.tensor(table, dtype=torch.float64 if form.exact else torch.float32)
    return ends.to(device), numbers.to(device)


def recipe_of(data: Data, settings: Settings, dtype: torch.dtype | None) -> Kernel:
    """The kernel for such a call; ``dtype`` is that of the gradient, if it is wanted."""
    recipe: Kernel = kept_or_made(_RECIPES, _recipe, data, settings, dtype)
    return recipe


def tiny_loss(recipe: Kernel, data: Data, settings: Settings, value: Tensor, out: Tensor | None) -> None:
    """Fills in the value, and the gradient if wanted, ``(N, C)`` of any floating dtype."""
    logits, target = data[:2]
    n, form = logits.shape[0], settings.form
    weight, sizes, ratios, matrix = data.or_any()
    ends, coefficients = form_on(form, logits.device)
    recipe(
        logits, target, weight, sizes, ratios, matrix, ends, coefficients, value, logits if out is None else out,
        form.rate, settings.log_loss, n, settings.ignore_index,
    )  # fmt: skip
