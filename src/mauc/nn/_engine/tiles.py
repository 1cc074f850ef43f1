"""What the kernels of :mod:`mauc.nn._engine.fused_ranked` and :mod:`mauc.nn._engine.fused_bilinear` share."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._engine.launch import Kernel, kind_of

__all__ = [
    "ACTIVATIONS",
    "PAIRS",
    "Cut",
    "Data",
    "Layout",
    "Settings",
    "begins_at_16_bytes",
    "kept_or_made",
    "survey_kernel",
]

ACTIVATIONS = {"softmax": 0, "sigmoid": 1, "identity": 2}
REGISTERS = 65536
"""Of a multiprocessor."""
PAIRS = {"ovo": 0, "ova": 1, "matrix": 2}


class Cut(NamedTuple):
    """How the scores are cut: a program takes some columns, and tile after tile of rows.

    There are as many programs as the device holds at once: a few more would wait for all others to end.
    """

    rows: int
    columns: int
    warps: int
    registers: int
    """Of a thread at most, which is what decides how many programs a multiprocessor holds."""

    @property
    def shape(self) -> dict[str, int]:
        return {"COLUMNS": self.columns, "ROWS": self.rows}

    def grid(self, n: int, c: int, processors: int) -> tuple[int, int]:
        across, down = -(-c // self.columns), -(-n // self.rows)
        return across, max(1, min(down, _held(processors, self.warps, self.registers) // across))


class Settings(NamedTuple):
    """What one kind of call is made of, besides its tensors."""

    form: Any
    """Of the surrogate: hashable."""
    activation: str
    pairs: str
    ignore_index: int
    dtype: torch.dtype
    """Of the value."""
    log_loss: float
    log1p: bool


class Data(NamedTuple):
    """The tensors of a call; None where something is not needed."""

    logits: Tensor
    target: Tensor
    weight: Tensor | None
    sizes: Tensor | None
    """``(C,)`` of the classes, for "ova"."""
    ratios: Tensor | None
    """``(C,)`` of the log-loss."""
    matrix: Tensor | None
    """``(C, C)`` normalised pair weights, that of ``[j, i]`` for column i."""

    def or_any(self) -> "tuple[Tensor, ...]":
        """Weight, sizes, ratios and matrix: what is not there a kernel is compiled not to read, but it wants some
        pointer in its place.
        """
        logits, _, weight, sizes, ratios, matrix = self
        return (
            logits if weight is None else weight,
            logits if sizes is None else sizes,
            logits if ratios is None else ratios,
            logits if matrix is None else matrix,
        )


def kept_or_made(kept: dict[Any, Any], make: Callable[..., Any], data: Data, settings: Settings, *more: Any) -> Any:
    """What is made of such a call, ``make(data, settings, *more)``: once for all that are alike to compiled code."""
    logits = data.logits
    key = (*logits.shape, logits.stride(0), logits.device, settings, *more, *map(kind_of, data))
    found = kept.get(key)
    if found is None:
        found = kept[key] = make(data, settings, *more)
    return found


def begins_at_16_bytes(logits: Tensor) -> bool:
    """Whether every row of float32 logits does."""
    return logits.dtype == torch.float32 and logits.stride(0) % 4 == 0


def survey_cut(n_classes: int) -> tuple[int, int, int, int]:
    """Rows and columns of a tile of the first read, the warps of a program, and the registers of a thread."""
    chunk = min(2048, max(16, 1 << (n_classes - 1).bit_length()))
    return max(1, min(16, 2048 // chunk)), chunk, 4, 64


def _held(processors: int, warps: int, registers: int) -> int:
    """Programs that the device holds at once."""
    return processors * min(32, REGISTERS // (32 * warps * registers))


def survey_kernel(
    data: Data, settings: Settings, processors: int, basis: dict[str, int] | None = None
) -> tuple[Kernel, int]:
    """The kernel that reads the logits first, and into how many tiles it cuts them.

    ``basis``: kind and number of the functions that it sums over the positives.
    """
    from mauc.nn._engine import survey_kernels as kernels

    n, c = data.logits.shape
    rows, chunk, warps, registers = survey_cut(c)
    tiles = -(-n // rows)
    constants = {
        "C": c,
        "STRIDE": data.logits.stride(0),
        "ACTIVATION": ACTIVATIONS[settings.activation],
        "LOG": settings.log_loss > 0,
        "PAIRS": PAIRS[settings.pairs],
        "HAS_WEIGHT": data.weight is not None,
        "HAS_SIZES": data.sizes is not None,
        **(basis or {"KIND": 0, "SIZE": 0}),
        "ROWS": rows,
        "CHUNK": chunk,
    }
    programs = min(tiles, _held(processors, warps, registers))
    return Kernel(kernels.survey, (programs,), warps, constants, registers), tiles


Parts = dict[str, tuple[int, torch.dtype]]
"""Names, lengths and kinds of vectors."""


class Layout:
    """Where the vectors of a call lie in two pieces of memory, one of zeros: each begins at 16 bytes.

    At small shapes an allocation, a view or Triton's look at a tensor takes longer than a kernel: once a kernel is
    compiled it gets addresses.
    """

    def __init__(self, zeros: Parts, others: Parts) -> None:
        self.zeros, self.n_zeros = _offsets(zeros)
        self.others, self.n_others = _offsets(others)

    def allocate(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Memory for one call."""
        zeros = torch.zeros(self.n_zeros, dtype=torch.uint8, device=device)
        return zeros, torch.empty(self.n_others, dtype=torch.uint8, device=device)

    def tensors(self, zeros: Tensor, others: Tensor) -> SimpleNamespace:
        """The vectors."""
        pairs = ((zeros, self.zeros), (others, self.others))
        return SimpleNamespace(**{name: _view(whole, *part) for whole, parts in pairs for name, part in parts.items()})

    def addresses(self, zeros: Tensor, others: Tensor) -> SimpleNamespace:
        """Their addresses."""
        pairs = ((zeros.data_ptr(), self.zeros), (others.data_ptr(), self.others))
        return SimpleNamespace(**{name: base + part[0] for base, parts in pairs for name, part in parts.items()})


def _offsets(parts: Parts) -> tuple[dict[str, tuple[int, int, torch.dtype]], int]:
    out, begin = {}, 0
    for name, (count, dtype) in parts.items():
        length = count * dtype.itemsize
        out[name] = (begin, length, dtype)
        begin += -(-length // 16) * 16
    return out, begin


def _view(whole: Tensor, begin: int, length: int, dtype: torch.dtype) -> Tensor:
    return whole[begin : begin + length].view(dtype)
