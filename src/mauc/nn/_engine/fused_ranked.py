r"""Piecewise polynomials in fused kernels: the hinge family, on the device from end to end.

Of a loss that is a sum of truncated powers (:mod:`mauc.nn._engine.truncated`) a negative q meets, for each end b, the
positives below ``q + b``: the first ones of its column's sorted positives. Its loss and slope are a polynomial in q,
whose coefficients are sums over those, one row of a table for each place in the order. Nothing waits for the device:

- ``survey`` reads the logits: each row's peak and sums, its own score, the class weights;
- the N own scores are sorted within their classes (``rank``, ``group`` and ``rank_in_class``, or a sort), and
  ``tabulate`` makes the table, and of each positive the largest score that does not meet it, so that the scores are
  searched as they are;
- ``columns_of`` reads the logits again: each score as a negative is found among the positives of its column, which
  gives the value, and what it hands to the positives is added up at the place where its run ends;
- ``collect`` makes the positives' slopes of these, by sums over later places;
- ``gradient_of`` reads the logits a third time, searches again, which is cheaper than storing, and writes.

The table is float64 where a small sum is a difference of large ones. Where it counts from the run's last positive all
terms of a run have one sign, and the work on all scores is float32. For the hinge itself a sum of lines is a line, of
which slope and root say all.
"""

from functools import lru_cache
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
from mauc.nn._engine.truncated import Truncated

__all__ = ["Recipe", "Saved", "ranked_forward", "ranked_gradient", "recipe_of"]

FEW = 4096
"""Up to so many samples each is compared with all others, in one launch, which is faster than a sort."""
MANY = 1 << 16
"""Up to so many each is compared with those of its class; beyond, with one class of all, a sort would be faster."""
CROWD = 8
"""Positives of a class, on average, from which searches are cut short: softmax scores, mostly near 0, end near one
place. At (65536, 1000) the hinge has 1.05 times the time of cross-entropy instead of 1.48, the generalised hinge
1.53 instead of 2.60; where a search has two steps anyway, the look ahead costs more than it saves."""


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
    recipe.compiled = recipe.survey.compiled is not None
    return saved


def ranked_gradient(
    recipe: Recipe, data: Data, settings: Settings, saved: Saved, upstream: Tensor, out: Tensor
) -> None:
    """Fills in the gradient times ``upstream``."""
    logits = data.logits
    numbers = form_on(settings.form, logits.device)
    at = recipe.layout.tensors(*saved) if recipe.gradient.compiled is None else recipe.layout.addresses(*saved)
    weight, _, ratios, matrix = data.or_any()
    recipe.gradient(
        logits, at.codes, weight, matrix, ratios, at.rows, at.class_counts, at.start, at.of_class, at.centre, at.bounds,
        at.table, numbers, at.row_sums, at.at_own, at.totals, upstream, out, settings.log_loss, len(logits),
    )  # fmt: skip
