"""The loss in fused CUDA kernels: two reads and one write of the logits in all.

``statistics`` reads the logits once: a program takes some rows at a time, makes scores of them in registers, and adds
them into sums over the negatives of each column, which it holds in registers over all its rows, and into sums over
the positives of each class. The last program to finish makes the value of these ``5 C`` sums. ``gradient`` reads the
logits again in the backward pass and writes their gradient, already multiplied by what comes from above. Nothing of
size ``(N, C)`` but the gradient is allocated. Launches: two kernels up to 4096 samples, one more (which counts
the classes) beyond; cross-entropy has six.

The sums are those of :mod:`mauc.nn._engine.moments`, with the positives counted from 1, the largest score: near a
perfect ranking nothing cancels. They are added atomically, so the last bits depend on the order.

Softmax and sigmoid scores; ``"ovo"`` and ``"ova"``; squared, exponential with ``alpha <= 30``, and surrogates that
are a line on [−1, 1] such as the hinge with ``alpha >= 1``; float16, bfloat16 and float32 logits; up to 16384
classes. What goes beyond that has the kernels of :mod:`mauc.nn._engine.fused_bilinear` or
:mod:`mauc.nn._engine.fused_ranked`, or none; and none are used under ``torch.use_deterministic_algorithms``.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._engine.launch import Kernel, processors_of
from mauc.nn._engine.moments import FLAT_ALPHA
from mauc.nn._engine.tiles import Data, Settings, kept_or_made
from mauc.surrogates import Surrogate

__all__ = ["MOST_CLASSES", "Form", "Recipe", "form_of", "moments_forward", "moments_gradient", "recipe_of"]

KINDS = {"exponential": 0, "squared": 1, "line": 2}
MOST_CLASSES = 16384
FEW = 4096
"""Up to so many samples each tile counts its classes itself, which saves a launch."""


class Form(NamedTuple):
    """What the kernels compute: ``ℓ(t) = scale · kind_α(t)``."""

    kind: str
    alpha: float
    scale: float


@lru_cache(maxsize=256)
def _form(surrogate: Surrogate) -> Form | None:
    closed = surrogate.closed_form
    if closed is not None:
        return None if closed.kind == "exponential" and closed.alpha > FLAT_ALPHA else Form(*closed, 1.0)
    for piece in surrogate.pieces:
        if piece.low <= -1.0 and piece.high >= 1.0 and piece.coefficients is not None and len(piece.coefficients) == 2:
            constant, slope = piece.coefficients
            return Form("line", -constant / slope, -slope) if slope < 0 else None
    return None


def form_of(surrogate: Surrogate) -> Form | None:
    """The kernels' form of a surrogate on scores in [0, 1], or None."""
    try:
        return _form(surrogate)
    except TypeError:  # cannot be hashed
        return None


class _Cut(NamedTuple):
    """How the work of a kernel is cut: a program takes tile after tile."""

    rows: int
    """Of a tile."""
    block: int
    """Columns of a tile: C, up to a power of two."""
    warps: int
    """Of a program."""
    tiles: int
    programs: int


def _cut_statistics(n: int, block: int, kind: str, processors: int) -> _Cut:
    """Few programs, since each adds its C sums to the total; two accumulators leave room for half the rows."""
    rows = max(1, min((1024 if kind == "squared" else 2048) // block, 8))
    warps = 4 if block <= 2048 else 8 if block <= 8192 else 16
    tiles = -(-n // rows)
    per_processor = 2 if warps > 4 else 8 if tiles > 32 * processors else 4
    return _Cut(rows, block, warps, tiles, min(tiles, processors * per_processor))


def _cut_gradient(n: int, block: int, processors: int) -> _Cut:
    """Narrow programs: a warp that has its row to itself never waits for another."""
    rows = max(1, min(512 // block, 8))
    warps = max(1, block // 1024)
    tiles = -(-n // rows)
    return _Cut(rows, block, warps, tiles, min(tiles, processors * max(1, 16 // warps)))


class Recipe:
    """The kernels of one kind of call, ready to launch."""

    def __init__(self, data: Data, settings: Settings) -> None:
        from mauc.nn._engine import fused_kernels as kernels

        kind, weight, sizes = settings.form.kind, data.weight, data.sizes
        softmax, ovo = settings.activation == "softmax", settings.pairs == "ovo"
        n, c = data.logits.shape
        processors = processors_of(data.logits.device)
        block = max(16, 1 << (c - 1).bit_length())
        first, second = _cut_statistics(n, block, kind, processors), _cut_gradient(n, block, processors)
        counted = n > FEW and (ovo or sizes is not None)
        # With both terms so many that two programs of eight warps share a multiprocessor: one works, the other waits.
        registers = 128 if settings.log_loss > 0 and first.warps == 8 else None
        weighted = {"C": c, "HAS_WEIGHT": weight is not None}
        common = {
            "C": c,
            "STRIDE": data.logits.stride(0),
            "KIND": KINDS[kind],
            "SOFTMAX": softmax,
            "LOG": settings.log_loss > 0,
        }
        self.tiles, self.gradient_tiles = first.tiles, second.tiles
        self.count = Kernel(kernels.count, (-(-n // 512),), 4, weighted | {"BLOCK": 512}) if counted else None
        self.statistics = Kernel(
            kernels.statistics,
            (first.programs,),
            first.warps,
            common
            | {
                "LOG1P": settings.log1p,
                "OVO": ovo,
                "HAS_WEIGHT": weight is not None,
                "HAS_SIZES": sizes is not None,
                "COUNTED": counted,
                "ROWS": first.rows,
                "BLOCK": block,
                "ALL": min(1024, max(16, 1 << (n - 1).bit_length())),
            },
            registers,
        )
        cut = {"HAS_WEIGHT": weight is not None, "ROWS": second.rows, "BLOCK": block}
        self.gradient = Kernel(kernels.gradient, (second.programs,), second.warps, common | cut, registers)


_RECIPES: dict[tuple[Any, ...], Recipe] = {}
_SCRATCH: dict[tuple[int, int, int], Tensor] = {}


def _zeros(device: torch.device, n_classes: int) -> Tensor:
    """For the sums; the kernel leaves zeros."""
    return torch.zeros(5 * n_classes + 2, dtype=torch.float32, device=device)


def _scratch(device: torch.device, n_classes: int) -> Tensor:
    """Such zeros for each stream, whose kernels run one by one."""
    key = (device.index, torch._C._cuda_getCurrentRawStream(device.index), n_classes)
    kept = _SCRATCH.get(key)
    if kept is None:
        kept = _zeros(device, n_classes)
        # While a graph is captured nothing runs: these zeros belong to the graph.
        if not torch.cuda.is_current_stream_capturing():
            _SCRATCH[key] = kept
    return kept


def recipe_of(data: Data, settings: Settings) -> Recipe:
    """The kernels for such a call."""
    recipe: Recipe = kept_or_made(_RECIPES, Recipe, data, settings)
    return recipe


def moments_forward(recipe: Recipe, data: Data, settings: Settings, value: Tensor, *, keeps_scratch: bool) -> Tensor:
    """Fills in the value; the coefficients that :func:`moments_gradient` goes on with."""
    logits, target = data[:2]
    n, c = logits.shape
    device, form = logits.device, settings.form
    coefficients = torch.empty(6 * c + 1, dtype=torch.float32, device=device)
    scratch = _scratch(device, c) if keeps_scratch and device.type == "cuda" else _zeros(device, c)
    weight, sizes, ratios, _ = data.or_any()
    if recipe.count is not None:
        recipe.count(target, weight, scratch, n, settings.ignore_index)
    recipe.statistics(
        logits,
        target,
        weight,
        sizes,
        ratios,
        scratch,
        coefficients,
        value,
        form.alpha,
        settings.log_loss / form.scale,
        n,
        settings.ignore_index,
        recipe.tiles,
    )
    return coefficients


def moments_gradient(
    recipe: Recipe, data: Data, settings: Settings, coefficients: Tensor, upstream: Tensor, out: Tensor
) -> None:
    """Fills in the gradient times ``upstream``."""
    logits, target = data[:2]
    n = len(logits)
    weight, _, ratios, _ = data.or_any()
    recipe.gradient(
        logits,
        target,
        weight,
        ratios,
        coefficients,
        upstream,
        out,
        settings.form.alpha,
        n,
        settings.ignore_index,
        recipe.gradient_tiles,
    )
