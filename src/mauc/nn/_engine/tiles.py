"""What the kernels of :mod:`mauc.nn._engine.fused_ranked` and :mod:`mauc.nn._engine.fused_bilinear` share."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mauc.nn._engine.launch import Kernel

__all__ = ["ACTIVATIONS", "PAIRS", "Cut", "Data", "Settings", "survey_kernel", "zeroed"]

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
        return tuple(self.logits if x is None else x for x in self[2:])


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


def zeroed(device: torch.device, *parts: tuple[int, torch.dtype]) -> list[Tensor]:
    """Vectors of zeros, of such lengths and kinds, of one allocation and one launch; each begins at 16 bytes."""
    lengths = [-(-count * dtype.itemsize // 16) * 16 for count, dtype in parts]
    whole = torch.zeros(sum(lengths), dtype=torch.uint8, device=device)
    out, begin = [], 0
    for (count, dtype), length in zip(parts, lengths, strict=True):
        out.append(whole[begin : begin + count * dtype.itemsize].view(dtype))
        begin += length
    return out
