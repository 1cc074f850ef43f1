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
classes. All else runs in plain torch operations, and so does everything under ``torch.compile``, which fuses them by
itself, and under ``torch.use_deterministic_algorithms``.
"""

from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._engine.log_term import LogTerm, class_ratios
from mauc.nn._engine.moments import FLAT_ALPHA
from mauc.nn._engine.second_order import Again, differentiable_again
from mauc.surrogates import Surrogate

__all__ = ["Form", "form_of", "fused_loss", "fuses"]

KINDS = {"exponential": 0, "squared": 1, "line": 2}
MOST_CLASSES = 16384
FEW = 4096
"""Up to so many samples each tile counts its classes itself, which saves a launch."""
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


class Form(NamedTuple):
    """What the kernels compute: ``ℓ(t) = scale · kind_α(t)``."""

    kind: str
    alpha: float
    scale: float


@lru_cache(maxsize=1)
def _installed() -> bool:
    return find_spec("triton") is not None


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


def fuses(logits: Tensor, surrogate: Surrogate, activation: str, pairs: Any) -> Form | None:
    """The kernels' form of this loss, or None if they do not compute it."""
    if not logits.is_cuda or activation == "identity" or not isinstance(pairs, str):
        return None
    if logits.dtype not in DTYPES or not 2 <= logits.shape[1] <= MOST_CLASSES or logits.shape[0] == 0:
        return None
    if torch.compiler.is_compiling() or torch.are_deterministic_algorithms_enabled() or not _installed():
        return None
    return form_of(surrogate)


def fused_loss(
    logits: Tensor,
    target: Tensor,
    form: Form,
    again: Again,
    term: LogTerm,
    *,
    activation: str,
    pairs: str,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ignore_index: int,
    dtype: torch.dtype,
) -> Tensor:
    """The loss, of ``dtype``; ``again`` is the same loss in plain operations, for second derivatives."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    log_loss = term.share / form.scale
    settings = (form.kind, form.alpha, activation == "softmax", pairs == "ovo", ignore_index, dtype, log_loss)
    sizes = class_counts if pairs == "ova" else None
    ratios = None
    if term.share:
        ratios = term.ratios
        if ratios is None:
            ratios = class_ratios(pairs, None, _sizes(logits, target, weight, ignore_index, class_counts))
        ratios = ratios.to(torch.float32)
    inputs = (logits, target.contiguous(), _flat(weight), _flat(sizes), _flat(ratios), settings, again, form.scale)
    # Function.apply looks for functorch transforms, which never come here, in every argument; its base does not.
    apply = super(torch.autograd.Function, _Fused).apply
    if logits.device.index == torch.cuda.current_device():
        value: Tensor = apply(*inputs)  # type: ignore[no-untyped-call]
    else:
        with torch.cuda.device(logits.device):
            value = apply(*inputs)  # type: ignore[no-untyped-call]
    return value if form.scale == 1.0 else form.scale * value


def _sizes(
    logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, class_counts: Tensor | None
) -> Tensor:
    """``(C,)`` sizes of the classes, of the batch where those of the training set are not known."""
    if class_counts is not None:
        return class_counts
    counted = (target != ignore_index) & (target >= 0) & (target < logits.shape[1])
    mass = counted.to(torch.float32) if weight is None else torch.where(counted, weight.to(torch.float32), 0.0)
    y = torch.where(counted, target, 0).long()
    return mass.new_zeros(logits.shape[1]).index_add_(0, y, mass)


def _flat(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.detach().contiguous()


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


class _Kernel:
    """A kernel with its compile-time arguments, compiled at the first call.

    Later calls go past Triton's look at every argument, which at small shapes is most of the time; what the code
    depends on besides (whole numbers, dtypes, alignment) must be the same at every call.
    """

    def __init__(self, kernel: Any, programs: int, warps: int, constants: dict[str, Any]) -> None:
        self.kernel, self.grid, self.warps, self.constants = kernel, (programs, 1, 1), warps, constants
        self.positional = tuple(constants.values())
        self.launch: Any = None

    def __call__(self, *inputs: Any) -> None:
        if self.launch is None:
            compiled = self.kernel[self.grid](*inputs, **self.constants, num_warps=self.warps)  # and launched
            # What a compiled kernel gives for a grid launches at once; it wants the constants too, by their places.
            self.launch = compiled[self.grid]
        else:
            self.launch(*inputs, *self.positional)


class _Recipe:
    """The kernels of one kind of call, ready to launch."""

    def __init__(self, logits: Tensor, weight: Tensor | None, sizes: Tensor | None, settings: Any) -> None:
        from mauc.nn._engine import fused_kernels as kernels

        kind, _, softmax, ovo, _, _, log_loss = settings
        n, c = logits.shape
        processors = torch.cuda.get_device_properties(logits.device).multi_processor_count
        block = max(16, 1 << (c - 1).bit_length())
        first, second = _cut_statistics(n, block, kind, processors), _cut_gradient(n, block, processors)
        counted = n > FEW and (ovo or sizes is not None)
        weighted = {"C": c, "HAS_WEIGHT": weight is not None}
        common = {"C": c, "KIND": KINDS[kind], "SOFTMAX": softmax, "LOG": log_loss > 0}
        self.tiles, self.gradient_tiles = first.tiles, second.tiles
        self.count = _Kernel(kernels.count, -(-n // 512), 4, weighted | {"BLOCK": 512}) if counted else None
        self.statistics = _Kernel(
            kernels.statistics,
            first.programs,
            first.warps,
            common
            | {
                "OVO": ovo,
                "HAS_WEIGHT": weight is not None,
                "HAS_SIZES": sizes is not None,
                "COUNTED": counted,
                "ROWS": first.rows,
                "BLOCK": block,
                "ALL": min(1024, max(16, 1 << (n - 1).bit_length())),
            },
        )
        cut = {"HAS_WEIGHT": weight is not None, "ROWS": second.rows, "BLOCK": block}
        self.gradient = _Kernel(kernels.gradient, second.programs, second.warps, common | cut)


_RECIPES: dict[tuple[Any, ...], _Recipe] = {}
_SCRATCH: dict[tuple[int, int, int], Tensor] = {}


def _scratch(device: torch.device, n_classes: int) -> Tensor:
    """Zeros for the sums, which the kernel leaves zero: one for each stream, whose kernels run one by one."""
    key = (device.index, torch._C._cuda_getCurrentRawStream(device.index), n_classes)
    kept = _SCRATCH.get(key)
    if kept is None:
        kept = torch.zeros(5 * n_classes + 2, dtype=torch.float32, device=device)
        # While a graph is captured nothing runs: these zeros belong to the graph.
        if not torch.cuda.is_current_stream_capturing():
            _SCRATCH[key] = kept
    return kept


def _kind(x: Tensor | None) -> Any:
    """What compiled code depends on."""
    return None if x is None else (x.dtype, x.data_ptr() % 16)


def _forward(
    ctx: Any,
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    sizes: Tensor | None,
    ratios: Tensor | None,
    settings: Any,
) -> Tensor:
    _, alpha, _, _, ignore_index, dtype, log_loss = settings
    n, c = logits.shape
    stride, device = logits.stride(0), logits.device
    key = (n, c, stride, device.index, settings, *map(_kind, (logits, target, weight, sizes, ratios)))
    recipe = _RECIPES.get(key)
    if recipe is None:
        recipe = _RECIPES[key] = _Recipe(logits, weight, sizes, settings)
    scratch = _scratch(device, c)
    coefficients = torch.empty(6 * c + 1, dtype=torch.float32, device=device)
    value = torch.empty((), dtype=dtype, device=device)
    # Where there is no weight or size a kernel is compiled not to read it, but wants some pointer in its place.
    weight_or_any, sizes_or_any, ratios_or_any = (logits if x is None else x for x in (weight, sizes, ratios))
    if recipe.count is not None:
        recipe.count(target, weight_or_any, scratch, n, ignore_index)
    recipe.statistics(
        logits,
        target,
        weight_or_any,
        sizes_or_any,
        ratios_or_any,
        scratch,
        coefficients,
        value,
        alpha,
        log_loss,
        n,
        stride,
        ignore_index,
        recipe.tiles,
    )
    ctx.save_for_backward(logits, target, weight, ratios, coefficients)
    ctx.call = recipe, alpha, n, c, stride, ignore_index
    return value


def _backward(ctx: Any, upstream: Tensor) -> Tensor:
    logits, target, weight, ratios, coefficients = ctx.saved_tensors
    recipe, alpha, n, c, stride, ignore_index = ctx.call
    out = torch.empty((n, c), dtype=logits.dtype, device=logits.device)
    recipe.gradient(
        logits,
        target,
        logits if weight is None else weight,
        logits if ratios is None else ratios,
        coefficients,
        upstream if upstream.data_ptr() % 16 == 0 else upstream.clone(),
        out,
        alpha,
        n,
        stride,
        c,
        ignore_index,
        recipe.gradient_tiles,
    )
    return out


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, *inputs: Any) -> Tensor:
        *data, ctx.again, ctx.scale = inputs
        return _forward(ctx, logits, *data)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if not torch.is_grad_enabled():
            return _backward(ctx, upstream), *NO_GRADIENT
        # create_graph=True
        with torch.no_grad():
            gradient = _backward(ctx, torch.ones_like(upstream))
        gradient = differentiable_again(ctx.saved_tensors[0], gradient, partial(_unscaled, ctx.again, ctx.scale))
        return gradient * upstream.to(gradient.dtype), *NO_GRADIENT


NO_GRADIENT = (None,) * 7
"""For what goes into the loss besides the logits."""


def _unscaled(again: Again, scale: float, logits: Tensor) -> Tensor:
    return again(logits) / scale
