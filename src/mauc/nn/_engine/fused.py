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

from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._engine import fused_bilinear, fused_ranked
from mauc.nn._engine.batch import prepare
from mauc.nn._engine.fused_bilinear import Bilinear, closed_bilinear, expanded
from mauc.nn._engine.fused_ranked import Truncated, truncated_powers
from mauc.nn._engine.launch import Kernel, kind_of, processors_of, runs_kernels
from mauc.nn._engine.log_term import LogTerm, class_ratios, class_sizes
from mauc.nn._engine.moments import FLAT_ALPHA
from mauc.nn._engine.processes import communicator
from mauc.nn._engine.second_order import Again, differentiable_again
from mauc.nn._engine.tiles import Data, Settings
from mauc.surrogates import Surrogate

__all__ = ["Form", "form_of", "fused_loss", "fuses"]

KINDS = {"exponential": 0, "squared": 1, "line": 2}
MOST_CLASSES = 16384
FEW = 4096
"""Up to so many samples each tile counts its classes itself, which saves a launch."""
SMALL = 1 << 17
"""Logits up to which the host's time counts, not the device's."""
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


class Form(NamedTuple):
    """What the kernels compute: ``ℓ(t) = scale · kind_α(t)``."""

    kind: str
    alpha: float
    scale: float


AnyForm = Form | Truncated | Bilinear


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


def fuses(logits: Tensor, surrogate: Surrogate, activation: str, pairs: Any) -> AnyForm | None:
    """The kernels' form of this loss, or None if they do not compute it."""
    if not runs_kernels(logits.device.type) or torch.are_deterministic_algorithms_enabled():
        return None
    if logits.dtype not in DTYPES or logits.shape[0] == 0 or logits.shape[1] < 2:
        return None
    if activation == "identity":
        closed = surrogate.closed_form
        return truncated_powers(surrogate) if closed is None else closed_bilinear(*closed)
    form = form_of(surrogate)
    if form is not None and isinstance(pairs, str) and logits.shape[1] <= MOST_CLASSES:
        return form
    if form is not None:
        return closed_bilinear(form.kind, form.alpha, form.scale)
    closed = surrogate.closed_form
    if closed is not None:
        return closed_bilinear(*closed)
    return expanded(surrogate) or truncated_powers(surrogate)


def fused_loss(
    logits: Tensor,
    target: Tensor,
    form: AnyForm,
    again: Again,
    term: LogTerm,
    *,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ignore_index: int,
    dtype: torch.dtype,
) -> Tensor:
    """The loss, of ``dtype``; ``again`` is the same loss in plain operations, for second derivatives."""
    call = _prepare(logits, target, form, term, activation, pairs, weight, class_counts, ignore_index, dtype)
    gradient = logits.requires_grad and torch.is_grad_enabled()
    with _on(logits.device):
        if gradient and call.scale == 1.0 and _is_small(logits, dtype):
            return _attached(call, again)
        # Function.apply looks for functorch transforms, which never come here, in every argument; its base does not.
        apply = super(torch.autograd.Function, _Fused).apply
        value: Tensor = apply(call.data[0], call, gradient, again)  # type: ignore[no-untyped-call]
    return value if call.scale == 1.0 else call.scale * value


def _is_small(logits: Tensor, dtype: torch.dtype) -> bool:
    """Whether the host's time counts. A replayed graph has no host; half precision needs the factor from above before
    it rounds, and autocast may take the dot product for its own.
    """
    place = logits.device.type
    if dtype != torch.float32 or logits.dtype != dtype or logits.numel() > SMALL or torch.is_autocast_enabled(place):
        return False
    return place == "cpu" or not torch.cuda.is_current_stream_capturing()


def _attached(call: "_Call", again: Again) -> Tensor:
    """The loss of a small batch, where the host's time counts: no Python but one hook in the backward pass.

    Value and gradient are computed now. A dot product of logits and gradient, whose value is overwritten, has the
    backward pass that is wanted, in C++.
    """
    logits = call.data.logits
    slope = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    value = torch.dot(logits.reshape(-1), slope.view(-1))
    with torch.no_grad():
        saved = call.forward(value, True)
        call.gradient(saved, _one(logits.device), slope)

    def bend(inputs: tuple[Tensor | None, ...], upstream: tuple[Tensor, ...]) -> tuple[Tensor | None, ...] | None:
        if not torch.is_grad_enabled():
            return None
        # create_graph=True
        gradient = differentiable_again(logits, slope, again) * upstream[0]
        return gradient.reshape(-1), *inputs[1:]

    assert value.grad_fn is not None
    value.grad_fn.register_hook(bend)
    return value


@lru_cache(maxsize=16)
def _one(device: torch.device) -> Tensor:
    return torch.ones((), device=device)


def value_and_gradient(
    logits: Tensor,
    target: Tensor,
    form: AnyForm,
    term: LogTerm,
    *,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ignore_index: int,
    dtype: torch.dtype,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """The loss and its gradient, without a graph."""
    call = _prepare(logits, target, form, term, activation, pairs, weight, class_counts, ignore_index, dtype)
    call.keeps_scratch = False
    value = torch.empty((), dtype=dtype, device=logits.device)
    with _on(logits.device):
        saved = call.forward(value, gradient)
        if not gradient:
            return call.scale * value, None
        out = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
        call.gradient(saved, torch.full((), call.scale, device=logits.device), out)
        return call.scale * value, out


def _on(device: torch.device) -> Any:
    here = device.type == "cpu" or device.index == torch.cuda.current_device()
    return nullcontext() if here else torch.cuda.device(device)


def _prepare(
    logits: Tensor,
    target: Tensor,
    form: AnyForm,
    term: LogTerm,
    activation: str,
    pairs: str | Tensor,
    weight: Tensor | None,
    class_counts: Tensor | None,
    ignore_index: int,
    dtype: torch.dtype,
) -> "_Call":
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    named = isinstance(pairs, str)
    sizes = class_counts if named and pairs == "ova" else None
    ratios = None
    if term.share:
        ratios = term.ratios
        if ratios is None:
            counted = class_sizes(target, weight, class_counts, ignore_index, logits.shape[1])
            ratios = class_ratios(pairs, term.partners, counted)
        ratios = ratios.to(torch.float32)
    matrix = None if isinstance(pairs, str) else _normalised(logits, target, weight, pairs, ignore_index)
    data = Data(logits, target.contiguous(), _flat(weight), _flat(sizes), _flat(ratios), matrix)
    kind = pairs if isinstance(pairs, str) else "matrix"
    return _Call(data, Settings(form, activation, kind, ignore_index, dtype, term.share))


def _normalised(logits: Tensor, target: Tensor, weight: Tensor | None, pairs: Tensor, ignore_index: int) -> Tensor:
    """``(C, C)`` pair weights of the classes present, ``[j, i]`` for column i."""
    valid = (target != ignore_index) & (target >= 0) & (target < logits.shape[1])
    batch = prepare(
        target.long(),
        logits.shape[1],
        weight=weight,
        valid=valid,
        pairs=pairs,
        class_counts=None,
        world=communicator(False),
    )
    assert batch.matrix is not None
    return batch.matrix.to(torch.float32)


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


class _Recipe:
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
        common = {"C": c, "KIND": KINDS[kind], "SOFTMAX": softmax, "LOG": settings.log_loss > 0}
        self.tiles, self.gradient_tiles = first.tiles, second.tiles
        self.count = Kernel(kernels.count, (-(-n // 512),), 4, weighted | {"BLOCK": 512}) if counted else None
        self.statistics = Kernel(
            kernels.statistics,
            (first.programs,),
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
            registers,
        )
        cut = {"HAS_WEIGHT": weight is not None, "ROWS": second.rows, "BLOCK": block}
        self.gradient = Kernel(kernels.gradient, (second.programs,), second.warps, common | cut, registers)


_RECIPES: dict[tuple[Any, ...], _Recipe] = {}
_SCRATCH: dict[tuple[int, int, int], Tensor] = {}


def _zeros(device: torch.device, n_classes: int) -> Tensor:
    return torch.zeros(5 * n_classes + 2, dtype=torch.float32, device=device)


def _scratch(device: torch.device, n_classes: int) -> Tensor:
    """Zeros for the sums, which the kernel leaves zero: one for each stream, whose kernels run one by one."""
    key = (device.index, torch._C._cuda_getCurrentRawStream(device.index), n_classes)
    kept = _SCRATCH.get(key)
    if kept is None:
        kept = _zeros(device, n_classes)
        # While a graph is captured nothing runs: these zeros belong to the graph.
        if not torch.cuda.is_current_stream_capturing():
            _SCRATCH[key] = kept
    return kept


class _Call:
    """One evaluation: its tensors and settings, and the kernels for them."""

    def __init__(self, data: Data, settings: Settings) -> None:
        self.data, self.settings = data, settings
        form = settings.form
        self.scale: float = form.scale if isinstance(form, Form) else 1.0
        self.keeps_scratch = True
        """Whether memory may be kept from call to call."""

    def forward(self, value: Tensor, gradient: bool) -> tuple[Tensor, ...]:
        """Fills in the value over the scale; what the gradient goes on with."""
        form = self.settings.form
        if isinstance(form, Truncated):
            return fused_ranked.ranked_forward(self.data, self.settings, value, gradient=gradient)
        if isinstance(form, Bilinear):
            return fused_bilinear.bilinear_forward(self.data, self.settings, value)
        return (_forward(self.data, self.settings, value, self.keeps_scratch),)

    def gradient(self, saved: tuple[Tensor, ...], upstream: Tensor, out: Tensor) -> None:
        """Fills in the gradient of that, times ``upstream``."""
        form = self.settings.form
        if upstream.data_ptr() % 16:
            upstream = upstream.clone()
        if isinstance(form, Truncated):
            fused_ranked.ranked_gradient(self.data, self.settings, fused_ranked.Saved(*saved), upstream, out)
        elif isinstance(form, Bilinear):
            fused_bilinear.bilinear_gradient(self.data, self.settings, fused_bilinear.Saved(*saved), upstream, out)
        else:
            _backward(self.data, self.settings, saved[0], upstream, out)


def _recipe(data: Data, settings: Settings) -> _Recipe:
    logits = data.logits
    key = (*logits.shape, logits.stride(0), logits.device.index, settings, *map(kind_of, data))
    recipe = _RECIPES.get(key)
    if recipe is None:
        recipe = _RECIPES[key] = _Recipe(data, settings)
    return recipe


def _forward(data: Data, settings: Settings, value: Tensor, keeps_scratch: bool) -> Tensor:
    logits, target = data[:2]
    n, c = logits.shape
    device, form = logits.device, settings.form
    recipe = _recipe(data, settings)
    scratch = _scratch(device, c) if keeps_scratch and device.type == "cuda" else _zeros(device, c)
    coefficients = torch.empty(6 * c + 1, dtype=torch.float32, device=device)
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
        logits.stride(0),
        settings.ignore_index,
        recipe.tiles,
    )
    return coefficients


def _backward(data: Data, settings: Settings, coefficients: Tensor, upstream: Tensor, out: Tensor) -> None:
    logits, target = data[:2]
    n, c = logits.shape
    recipe = _recipe(data, settings)
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
        logits.stride(0),
        c,
        settings.ignore_index,
        recipe.gradient_tiles,
    )


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, call: _Call, gradient: bool, again: Again) -> Tensor:
        value = torch.empty((), dtype=call.settings.dtype, device=logits.device)
        saved = call.forward(value, gradient)
        ctx.settings, ctx.again = call.settings, again
        ctx.save_for_backward(*call.data, *saved)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        logits, call, saved = tensors[0], _Call(Data(*tensors[:6]), ctx.settings), tensors[6:]
        out = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
        if not torch.is_grad_enabled():
            call.gradient(saved, upstream, out)
            return out, None, None, None
        # create_graph=True
        with torch.no_grad():
            call.gradient(saved, torch.ones_like(upstream), out)
        gradient = differentiable_again(logits, out, partial(_unscaled, ctx.again, call.scale))
        return gradient * upstream.to(gradient.dtype), None, None, None


def _unscaled(again: Again, scale: float, logits: Tensor) -> Tensor:
    return again(logits) / scale
