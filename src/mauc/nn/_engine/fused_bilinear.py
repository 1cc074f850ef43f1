r"""Surrogates that are bilinear forms, in fused kernels: three reads and one write of the logits.

.. math:: \ell(p - q) = \sum_{kl} A_{kl} \, \varphi_k(p) \, \psi_l(q)

with Chebyshev polynomials for the logistic and every other surrogate that :mod:`mauc.plan` takes as one polynomial of
bounded scores; with powers of ``o − p`` and ``q − o + α`` for ``(α − t)²``, o near the class's scores, so that nothing
cancels; with one exponential for ``exp(−α t)``, o the class's smallest score, so that nothing overflows before the
risk does.

- ``survey`` reads the logits: each row's peak and sums, its own score, the class weights, and the sums of the functions
  over the positives of each class, which decide the slopes in all negatives (``slopes_of_negatives``);
- ``sums_of`` reads them again: the functions' sums over the negatives of each column, and each row's sum of score times
  slope, which the softmax asks for;
- ``slopes_of_positives`` makes the value of both kinds of sums, ``own_slopes`` the slopes in the N own scores;
- ``gradient_of`` reads the logits a third time, and writes.

Tiles of a few rows share the columns' coefficients, which with many classes are more than the first-level cache holds.

The two kernels of :mod:`mauc.nn._engine.fused` read the logits twice only; they are for few classes, "ovo" and "ova",
and bounded scores.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.polynomial import chebyshev as cheb
from torch import Tensor

from mauc._typing import Floats
from mauc.nn._engine.launch import Kernel, processors_of
from mauc.nn._engine.moments import FLAT_ALPHA
from mauc.nn._engine.tiles import (
    ACTIVATIONS,
    Cut,
    Data,
    Layout,
    Settings,
    begins_at_16_bytes,
    kept_or_made,
    survey_kernel,
)
from mauc.plan import TOLERANCES, plan
from mauc.surrogates import Surrogate

__all__ = [
    "Bilinear",
    "Recipe",
    "Saved",
    "bilinear_forward",
    "bilinear_gradient",
    "closed_bilinear",
    "expanded",
    "recipe_of",
]

KINDS = {"exponential": 0, "powers": 1, "chebyshev": 2}
MOST_DEGREE = 32
"""So many sums are held in registers."""


def _cuts(logits: Tensor, size: int) -> tuple[Cut, Cut]:
    """Of the sums, and of the gradient: tiles of one warp, whose threads have all rows of their columns.

    As wide as registers hold the sums; where rows begin at 16 bytes a thread has four neighbouring columns. Chosen by
    measurement at 1000 and 5089 classes.
    """
    c = logits.shape[1]
    if c <= 32 or size > 16:
        return Cut(8, 32, 1, 128), Cut(8, 32, 1, 80)
    if c <= 64:
        return Cut(8, 64, 1, 128), Cut(8, 64, 1, 128)
    if size == 1:
        return Cut(8, 64, 1, 128), Cut(2, 128, 1, 80)
    aligned = begins_at_16_bytes(logits)
    narrow = Cut(2, 128, 1, 128) if aligned else Cut(4, 64, 1, 128)
    return Cut(4, 128, 1, 80) if size <= 4 else narrow, Cut(4, 128, 1, 128) if aligned else Cut(4, 64, 1, 64)


class Bilinear(NamedTuple):
    """``ℓ = Σ A_kl φ_k(p) ψ_l(q)``, and its slopes in the same functions."""

    kind: str
    alpha: float
    matrices: tuple[tuple[tuple[float, ...], ...], ...]
    """Three of the same size: A, that of ``∂ℓ/∂q``, that of ``∂ℓ/∂p``."""

    @property
    def size(self) -> int:
        """How many functions."""
        return len(self.matrices[0])

    @property
    def length(self) -> int:
        """How many of them the slopes have."""
        return self.size if self.kind == "exponential" else self.size - 1


@lru_cache(maxsize=256)
def closed_bilinear(kind: str, alpha: float, scale: float = 1.0) -> Bilinear:
    """``scale`` times the loss of one of the kinds of :class:`mauc.nn._engine.fused.Form`."""
    if kind == "exponential":
        return Bilinear(kind, alpha, (((scale,),), ((scale * alpha,),), ((-scale * alpha,),)))
    # With π = o − p and κ = q − o + α: (π + κ)², or π + κ.
    if kind == "squared":
        loss, slope = [[0.0, 0.0, 1.0], [0.0, 2.0, 0.0], [1.0, 0.0, 0.0]], [[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0] * 3]
    else:
        loss, slope = [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]
    return Bilinear(
        "powers", alpha, tuple(_scaled(m, by) for m, by in ((loss, scale), (slope, scale), (slope, -scale)))
    )


def _scaled(matrix: list[list[float]], scale: float) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(scale * a for a in row) for row in matrix)


def expanded(surrogate: Surrogate) -> Bilinear | None:
    """A surrogate that is one polynomial of scores in [0, 1], to float32, or None."""
    try:
        return _expanded(surrogate)
    except TypeError:  # cannot be hashed
        return None


@lru_cache(maxsize=256)
def _expanded(surrogate: Surrogate) -> Bilinear | None:
    found = plan(surrogate, 1.0, tolerances=TOLERANCES["float32"], saturated=True)
    if found is None or found.scheme != "moments" or found.degree > MOST_DEGREE:
        return None
    tolerance = TOLERANCES["float32"][0]
    # The planner goes in strides; here each degree is a sum per score.
    shorter = (plan(surrogate, 1.0, degree=degree, saturated=True) for degree in range(2, found.degree))
    forms = (_of_matrix(fewer.pieces[0].matrix) for fewer in shorter if fewer is not None and fewer.error <= tolerance)
    near = (form for form in forms if _slope_error(form, surrogate) <= tolerance)
    return next(near, None) or _of_matrix(found.pieces[0].matrix)


def _of_matrix(matrix: Floats) -> Bilinear:
    in_q, in_p = np.zeros_like(matrix), np.zeros_like(matrix)
    # The functions take 2 F − 1.
    in_q[:, :-1] = 2.0 * cheb.chebder(matrix, axis=1)
    in_p[:-1] = 2.0 * cheb.chebder(matrix, axis=0)
    return Bilinear("chebyshev", 1.0, tuple(tuple(map(tuple, m.tolist())) for m in (matrix, in_q, in_p)))


def _slope_error(form: Bilinear, surrogate: Surrogate) -> float:
    """Of ``ℓ′`` over ``|ℓ′(0)|``, at pairs all over the square of scores."""
    t, shift = np.cos(np.linspace(0.0, np.pi, 129)), np.array([[-1.0], [0.0], [1.0]])
    p = 0.5 + 0.5 * t + 0.5 * shift * (1.0 - np.abs(t))
    slope = cheb.chebval2d(2.0 * p - 1.0, 2.0 * (p - t) - 1.0, np.array(form.matrices[2]))
    size = abs(float(surrogate.derivative(np.zeros(1))[0])) or 1.0
    return float(np.abs(slope - surrogate.derivative(t)).max()) / size


class Saved(NamedTuple):
    """What the gradient needs besides the input."""

    zeros: Tensor
    others: Tensor
    origin: Tensor
    """``(C,)``, or anything where it is fixed."""


def _layout(n: int, c: int, size: int) -> Layout:
    whole, real = torch.int32, torch.float32
    return Layout(
        {
            "totals": (3, torch.float64),  # risk, log-loss, weight of all samples
            "of_negatives": (size * c, real),
            "of_positives": (size * c, real),
            "class_sums": (c, real),
            "row_sums": (n, real),  # of score times slope
            "class_counts": (c, whole),
            "first_ticket": (1, whole),
            "second_ticket": (1, whole),
        },
        {
            "keys": (n, torch.int64),
            "rows": (4 * n, real),  # peak, inverse of the sum, inverse of the shifted sum, own score
            "codes": (n, whole),  # classes, −1 for samples that do not count
            "start": (c, whole),
            "of_class": (3 * c, real),  # weight of a column, of a row, of a positive
            "slopes": (size * c, real),  # in negatives
            "own_slopes": (size * c, real),  # in positives
            "at_own": (n, real),  # slope in the own score
        },
    )


class Recipe:
    """The kernels of one kind of call."""

    def __init__(self, data: Data, settings: Settings, gradient: bool) -> None:
        from mauc.nn._engine import bilinear_kernels as kernels

        n, c = data.logits.shape
        form, processors = settings.form, processors_of(data.logits.device)
        activation = {"ACTIVATION": ACTIVATIONS[settings.activation]}
        whole = {"C": c, "STRIDE": data.logits.stride(0)} | activation
        weighted = {"HAS_WEIGHT": data.weight is not None}
        logs = {"LOG": settings.log_loss > 0}
        matrix = {"HAS_MATRIX": settings.pairs == "matrix"}
        kind, size, length = {"KIND": KINDS[form.kind]}, {"SIZE": form.size}, {"LENGTH": form.length}
        self.layout, self.compiled = _layout(n, c, form.size), False
        self.fixed = settings.activation != "identity" and not (form.kind == "exponential" and form.alpha > FLAT_ALPHA)
        basis = kind | {"FIXED": self.fixed}
        self.survey, self.tiles = survey_kernel(data, settings, processors, kind | size if self.fixed else None)
        row_blocks, block = (-(-n // 128),), {"BLOCK": 128}
        self.positives = Kernel(kernels.positives_of, row_blocks, 4, {"C": c} | weighted | kind | size | block)
        by_column, few = (-(-c // 64), form.size), {"BLOCK": 64}
        self.of_negatives = Kernel(kernels.slopes_of_negatives, by_column, 2, {"C": c} | size | few)
        self.of_positives = Kernel(kernels.slopes_of_positives, by_column, 2, {"C": c} | logs | size | few)
        own = {"C": c} | activation | weighted | basis | length | block
        self.own = Kernel(kernels.own_slopes, row_blocks, 4, own)
        first, second = _cuts(data.logits, form.size)
        self.sums = Kernel(
            kernels.sums_of,
            first.grid(n, c, processors),
            first.warps,
            whole | weighted | matrix | {"GRADIENT": gradient} | basis | size | length | first.shape,
            first.registers,
        )
        self.gradient = Kernel(
            kernels.gradient_of,
            second.grid(n, c, processors),
            second.warps,
            whole | logs | weighted | matrix | basis | length | second.shape,
            second.registers,
        )


_RECIPES: dict[tuple[Any, ...], Recipe] = {}


def recipe_of(data: Data, settings: Settings, gradient: bool) -> Recipe:
    """The kernels for such a call."""
    recipe: Recipe = kept_or_made(_RECIPES, Recipe, data, settings, gradient)
    return recipe


@lru_cache(maxsize=64)
def form_on(form: Bilinear, device: torch.device) -> Tensor:
    """The numbers of a form on a device, where they stay."""
    return torch.tensor(form.matrices, dtype=torch.float64).to(device)


def bilinear_forward(recipe: Recipe, data: Data, settings: Settings, value: Tensor, *, gradient: bool) -> Saved:
    """Fills in the value; what :func:`bilinear_gradient` goes on with."""
    logits, target = data[:2]
    n, c = logits.shape
    form, device, ignored = settings.form, logits.device, settings.ignore_index
    numbers = form_on(form, device)
    memory = recipe.layout.allocate(device)
    at = recipe.layout.addresses(*memory) if recipe.compiled else recipe.layout.tensors(*memory)
    weights, sizes, ratios, pairs = data.or_any()
    recipe.survey(
        logits, target, weights, ratios, sizes, at.rows, at.codes, at.keys, at.class_sums, at.class_counts, at.start,
        at.of_class, at.of_positives, at.totals, at.first_ticket, form.alpha, n, ignored, recipe.tiles,
    )  # fmt: skip
    origin, kept = at.of_class, memory[1]  # which are not read
    if not recipe.fixed:
        known = recipe.layout.tensors(*memory)
        origin = kept = _origin(known.rows[3 * n :], target, data.weight, known.of_class[2 * c :], settings)
        recipe.positives(target, weights, at.rows, origin, at.of_positives, form.alpha, n, ignored)
    recipe.of_negatives(numbers, at.of_class, at.of_positives, at.slopes)
    recipe.sums(
        logits, at.codes, weights, pairs, at.rows, at.of_class, origin, at.slopes, at.of_negatives, at.row_sums,
        form.alpha, n,
    )  # fmt: skip
    recipe.of_positives(
        numbers, at.of_class, at.of_negatives, at.of_positives, at.own_slopes, at.totals, at.second_ticket, value,
        settings.log_loss,
    )  # fmt: skip
    if gradient:
        recipe.own(target, weights, at.rows, origin, at.own_slopes, at.row_sums, at.at_own, form.alpha, n, ignored)
    recipe.compiled = recipe.survey.compiled is not None
    return Saved(*memory, kept)


def _origin(own: Tensor, target: Tensor, weight: Tensor | None, inverse: Tensor, settings: Settings) -> Tensor:
    """``(C,)`` scores that the functions count from: the class's mean or smallest."""
    c, kind = len(inverse), settings.form.kind
    counted = (target != settings.ignore_index) & (target >= 0) & (target < c)
    y = torch.where(counted, target, 0).long()
    if kind == "powers":
        mass = counted.to(torch.float64) if weight is None else torch.where(counted, weight, 0.0).to(torch.float64)
        total = torch.zeros(c, dtype=torch.float64, device=own.device).index_add_(0, y, mass * own)
        return (total * inverse).to(torch.float32)
    counted = counted if weight is None else counted & (weight > 0)
    least = torch.full((c,), torch.inf, device=own.device)
    least = least.scatter_reduce(0, y, torch.where(counted, own, torch.inf), "amin")
    return torch.where(least == torch.inf, 0.0, least)


def bilinear_gradient(
    recipe: Recipe, data: Data, settings: Settings, saved: Saved, upstream: Tensor, out: Tensor
) -> None:
    """Fills in the gradient times ``upstream``."""
    logits, memory = data.logits, saved[:2]
    at = recipe.layout.tensors(*memory) if recipe.gradient.compiled is None else recipe.layout.addresses(*memory)
    origin = at.of_class if recipe.fixed else saved.origin
    weights, _, ratios, pairs = data.or_any()
    recipe.gradient(
        logits, at.codes, weights, pairs, ratios, at.rows, at.of_class, origin, at.slopes, at.row_sums, at.at_own,
        at.totals, upstream, out, settings.form.alpha, settings.log_loss, len(logits),
    )  # fmt: skip
