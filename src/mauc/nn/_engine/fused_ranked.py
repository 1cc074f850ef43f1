r"""Piecewise polynomials in fused kernels: the hinge family, on the device from end to end.

A piecewise polynomial that is 0 in the end is a sum of truncated powers,

.. math:: \ell(t) = \sum_b \sum_k c_{bk} \, (b - t)_+^k ,

so a negative q meets, for each b, the positives below ``q + b``: the first ones of its column's sorted positives. Its
loss and slope are a polynomial in q, whose coefficients are sums over those, one row of a table for each place in the
order. Nothing waits for the device:

- ``survey`` reads the logits: each row's peak and sums, its own score, the class weights;
- the N own scores are sorted within their classes (``rank``, ``group`` and ``rank_in_class``, or a sort), and
  ``tabulate`` makes the table, and of each positive the largest score that does not meet it, so that the scores are
  searched as they are;
- ``columns_of`` reads the logits again: each score as a negative is found among the positives of its column, which
  gives the value, and what it hands to the positives is added up at the place where its run ends;
- ``collect`` makes the positives' slopes of these, by sums over later places;
- ``gradient_of`` reads the logits a third time, searches again, which is cheaper than storing, and writes.

The table is float64 where a small sum is a difference of large ones. Their loss of digits for narrow pieces and high
degrees is foreseen by :func:`truncated_powers`, which then declines. Where the c of each b have one sign, as with the
hinge family, it counts from the run's last positive: all terms of a run have one sign then, and the work on all scores
is float32, unless the runs of different b cancel. For the hinge itself a sum of lines is a line, of which slope and
root say all.
"""

from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._engine.launch import Kernel, processors_of
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
from mauc.surrogates import Piece, Surrogate

__all__ = ["Recipe", "Saved", "Truncated", "ranked_forward", "ranked_gradient", "recipe_of", "truncated_powers"]

MOST_DEGREE = 5
MOST_PIECES = 3
FEW = 4096
"""Up to so many samples each is compared with all others, in one launch, which is faster than a sort."""
MANY = 1 << 16
"""Up to so many each is compared with those of its class; beyond, with one class of all, a sort would be faster."""
CROWD = 8
"""Positives of a class, on average, from which searches are cut short: softmax scores, mostly near 0, end near one
place. At (65536, 1000) the hinge has 1.1 times the time of cross-entropy instead of 1.5, the generalised hinge 1.6
instead of 2.6; where a search has two steps anyway, the look ahead costs more than it saves."""
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


class Saved(NamedTuple):
    """What the gradient needs besides the input."""

    zeros: Tensor
    others: Tensor


def _layout(n: int, c: int, form: Truncated, gradient: bool) -> Layout:
    places, pieces = n + c, len(form.ends)
    whole, real, exact = torch.int32, torch.float32, torch.float64
    return Layout(
        {
            "landed": (pieces * places * form.degree if gradient else 2, exact),
            "totals": (3, exact),  # risk, log-loss, weight of all samples
            "class_sums": (c, real),
            "row_sums": (n, real),  # of score times slope
            "class_counts": (c, whole),
            "taken": (c, whole),
            "first_ticket": (1, whole),
            "second_ticket": (1, whole),
        },
        {
            "table": (pieces * places * form.width, real if form.anchored else exact),
            "keys": (n, torch.int64),
            "grouped": (n, torch.int64),
            "order": (n, torch.int64),
            "rows": (4 * n, real),  # peak, inverse of the sum, inverse of the shifted sum, own score
            "codes": (n, whole),  # classes, −1 for samples that do not count
            "samples": (n, whole),
            "start": (c, whole),
            "of_class": (3 * c, real),  # weight of a column, of a row, of a positive
            "centre": (c, real),
            "bounds": (pieces * places, real),
            "at_own": (n, real),  # slope in the own score
        },
    )


def _cuts(form: Truncated, logits: Tensor, crowded: bool) -> tuple[Cut, Cut]:
    """Of the second read and of the third: tiles of one warp, as wide as its registers hold; chosen by measurement."""
    aligned = begins_at_16_bytes(logits)
    if form.means:
        return Cut(32, 8 if crowded else 16, 1, 128) if aligned else Cut(32, 8, 1, 96), Cut(32, 16, 1, 128)
    if form.anchored and len(form.ends) == 1:
        return Cut(32, 8, 1, 128), Cut(32, 16, 1, 128)
    if form.anchored:
        first = Cut(32, 4 if crowded else 8, 1, 128) if aligned else Cut(32, 4, 1, 96)
        return first, Cut(32, 16, 1, 168 if crowded else 128)
    return (Cut(32, 4, 1, 128), Cut(32, 16, 1, 128)) if aligned else (Cut(32, 8, 1, 168), Cut(32, 8, 1, 96))


class Recipe:
    """The kernels of one kind of call."""

    def __init__(self, data: Data, settings: Settings, gradient: bool) -> None:
        from mauc.nn._engine import positives_kernels as of_positives
        from mauc.nn._engine import ranked_kernels as of_scores

        n, c = data.logits.shape
        form, processors = settings.form, processors_of(data.logits.device)
        self.layout, self.compiled = _layout(n, c, form, gradient), False
        self.survey, self.tiles = survey_kernel(data, settings, processors)
        common = {"C": c, "STRIDE": data.logits.stride(0), "ACTIVATION": ACTIVATIONS[settings.activation]}
        weighted = {"HAS_WEIGHT": data.weight is not None}
        logs = {"LOG": settings.log_loss > 0} | weighted | {"HAS_MATRIX": settings.pairs == "matrix"}
        size = {"PIECES": len(form.ends), "DEGREE": form.degree}
        powers = {"POWERS": form.powers, "ANCHORED": form.anchored}
        kind = {"ANCHORED": form.anchored, "MEANS": form.means}
        bounded, width = {"BOUNDED": settings.activation != "identity"}, {"WIDTH": form.width}
        crowded = settings.activation == "softmax" and n >= CROWD * c
        some, compared = (-(-n // 16),), {"BLOCK": 16, "ALL": 256}
        self.rank = Kernel(of_positives.rank, some, 4, compared) if n <= FEW else None
        self.in_classes = (
            Kernel(of_positives.group, (-(-n // 128),), 4, {"C": c, "BLOCK": 128}),
            Kernel(of_positives.rank_in_class, some, 4, {"C": c} | compared),
        )
        block = {"BLOCK": min(1024, max(32, 1 << (2 * n // c).bit_length()))}
        warps = max(1, block["BLOCK"] // 256)
        of_class = {"C": c} | size | powers
        rest = {"MEANS": form.means} | bounded | width | weighted | block
        self.tabulate = Kernel(of_positives.tabulate, (c,), warps, of_class | rest)
        first, second = _cuts(form, data.logits, crowded)
        self.columns = Kernel(
            of_scores.columns_of,
            first.grid(n, c, processors),
            first.warps,
            common | logs | {"GRADIENT": gradient} | size | kind | width | {"CROWDED": crowded} | first.shape,
            first.registers,
        )
        activation = {"C": c, "ACTIVATION": ACTIVATIONS[settings.activation]}
        self.collect = Kernel(of_positives.collect, (c,), warps, activation | weighted | size | powers | block)
        self.gradient = Kernel(
            of_scores.gradient_of,
            second.grid(n, c, processors),
            second.warps,
            common | logs | size | kind | width | {"CROWDED": crowded} | second.shape,
            second.registers,
        )


_RECIPES: dict[tuple[Any, ...], Recipe] = {}


def recipe_of(data: Data, settings: Settings, gradient: bool) -> Recipe:
    """The kernels for such a call."""
    recipe: Recipe = kept_or_made(_RECIPES, Recipe, data, settings, gradient)
    return recipe


@lru_cache(maxsize=64)
def form_on(form: Truncated, device: torch.device) -> Tensor:
    """The numbers of a form on a device, where they stay."""
    table = [[end, *row] for end, row in zip(form.ends, form.coefficients, strict=True)]
    return torch.tensor(table, dtype=torch.float64).to(device)


def ranked_forward(recipe: Recipe, data: Data, settings: Settings, value: Tensor, *, gradient: bool) -> Saved:
    """Fills in the value; what :func:`ranked_gradient` goes on with."""
    logits, target = data[:2]
    n, device = len(logits), logits.device
    numbers = form_on(settings.form, device)
    saved = Saved(*recipe.layout.allocate(device))
    at = recipe.layout.addresses(*saved) if recipe.compiled else recipe.layout.tensors(*saved)
    weight, sizes, ratios, matrix = data.or_any()
    recipe.survey(
        logits, target, weight, ratios, sizes, at.rows, at.codes, at.keys, at.class_sums, at.class_counts, at.start,
        at.of_class, at.class_sums, at.totals, at.first_ticket, 0.0, n, settings.ignore_index, recipe.tiles,
    )  # fmt: skip
    order = at.order
    if n > MANY:
        order = torch.sort(recipe.layout.tensors(*saved).keys).indices
    elif recipe.rank is not None:
        recipe.rank(at.keys, order, n)
    else:
        group, rank_in_class = recipe.in_classes
        group(at.keys, at.start, at.taken, at.grouped, at.samples, n)
        rank_in_class(at.grouped, at.samples, at.class_counts, at.start, order)
    recipe.tabulate(
        order, weight, at.rows, at.class_counts, at.start, at.of_class, at.centre, at.bounds, at.table, numbers, n
    )
    recipe.columns(
        logits, at.codes, weight, matrix, at.rows, at.class_counts, at.start, at.of_class, at.centre, at.bounds,
        at.table, numbers, at.landed, at.row_sums, at.totals, at.second_ticket, value, settings.log_loss, n,
    )  # fmt: skip
    if gradient:
        recipe.collect(
            order, weight, at.rows, at.class_counts, at.start, at.of_class, at.centre, numbers, at.landed, at.row_sums,
            at.at_own, n,
        )  # fmt: skip
    recipe.compiled = recipe.survey.launch is not None
    return saved


def ranked_gradient(
    recipe: Recipe, data: Data, settings: Settings, saved: Saved, upstream: Tensor, out: Tensor
) -> None:
    """Fills in the gradient times ``upstream``."""
    logits = data.logits
    numbers = form_on(settings.form, logits.device)
    at = recipe.layout.tensors(*saved) if recipe.gradient.launch is None else recipe.layout.addresses(*saved)
    weight, _, ratios, matrix = data.or_any()
    recipe.gradient(
        logits, at.codes, weight, matrix, ratios, at.rows, at.class_counts, at.start, at.of_class, at.centre, at.bounds,
        at.table, numbers, at.row_sums, at.at_own, at.totals, upstream, out, settings.log_loss, len(logits),
    )  # fmt: skip
