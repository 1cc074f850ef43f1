"""The loss in fused kernels, on CUDA: which kernels compute it, and what they are given.

Four families: :mod:`mauc.nn._engine.fused_moments` reads the logits twice, for the frequent cases;
:mod:`mauc.nn._engine.fused_bilinear` and :mod:`mauc.nn._engine.fused_ranked` read them three times;
:mod:`mauc.nn._engine.fused_tiny` takes their place for tiny batches, with one launch. None are used under
``torch.use_deterministic_algorithms``: most add their sums atomically, and the last bits depend on the order.
"""

from typing import Any

import torch
from torch import Tensor

from mauc.nn._engine import batch, fused_bilinear, fused_ranked, fused_tiny
from mauc.nn._engine.fused_bilinear import Bilinear, closed_bilinear, expanded
from mauc.nn._engine.fused_moments import MOST_CLASSES, Form, form_of
from mauc.nn._engine.fused_tiny import Pairwise, is_tiny, pairwise
from mauc.nn._engine.launch import runs_kernels
from mauc.nn._engine.log_term import LogTerm
from mauc.nn._engine.plans import number_on
from mauc.nn._engine.processes import communicator
from mauc.nn._engine.tiles import Data, Settings
from mauc.nn._engine.truncated import Truncated, truncated_powers
from mauc.surrogates import Surrogate

__all__ = ["Form", "form_of", "fuses", "place_numbers", "prepare"]

WIDEST_OF_BOTH = 8192
"""Classes up to which the two kernels of moments take the log-loss too: 0.88x of cross-entropy at (8196, 5089), where
three reads of narrow tiles have 0.97x. Beyond, the numbers of a row fill the registers."""
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


AnyForm = Form | Truncated | Bilinear | Pairwise


def fuses(logits: Tensor, surrogate: Surrogate, activation: str, pairs: Any, term: LogTerm) -> AnyForm | None:
    """The kernels' form of this loss, or None if they do not compute it."""
    if not runs_kernels(logits.device.type) or torch.are_deterministic_algorithms_enabled():
        return None
    if logits.dtype not in DTYPES or logits.shape[0] == 0 or logits.shape[1] < 2:
        return None
    bounded = activation != "identity"
    form = form_of(surrogate) if bounded else None
    if (
        form is not None
        and isinstance(pairs, str)
        and logits.shape[1] <= (WIDEST_OF_BOTH if term.share else MOST_CLASSES)
    ):
        return form
    if term.log1p:
        return None
    of_pairs = pairwise(surrogate, bounded=bounded) if is_tiny(logits) else None
    if of_pairs is not None:
        return of_pairs
    return _of_any_size(surrogate, bounded)


def _of_any_size(surrogate: Surrogate, bounded: bool) -> Bilinear | Truncated | None:
    form = form_of(surrogate) if bounded else None
    if form is not None:
        return closed_bilinear(form.kind, form.alpha, form.scale)
    closed = surrogate.closed_form
    if closed is not None:
        return closed_bilinear(*closed)
    return (expanded(surrogate) if bounded else None) or truncated_powers(surrogate, bounded=bounded)


def place_numbers(surrogate: Surrogate, device: torch.device) -> None:
    """Puts what the kernels read of a surrogate on the device, to stay there.

    For those who will call them inside a graph: memory that is taken there belongs to the graph.
    """
    if not runs_kernels(device.type):
        return
    moments = form_of(surrogate)
    for scale in (1.0, 1.0 if moments is None else moments.scale):
        number_on(scale, device)
    for bounded in (True, False):
        form = _of_any_size(surrogate, bounded)
        if isinstance(form, Truncated):
            fused_ranked.form_on(form, device)
        elif form is not None:
            fused_bilinear.form_on(form, device)
        of_pairs = pairwise(surrogate, bounded=bounded)
        if of_pairs is not None:
            fused_tiny.form_on(of_pairs, device)


def prepare(
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
) -> tuple[Data, Settings]:
    """What the kernels are given for a loss of ``dtype``."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    named = isinstance(pairs, str)
    sizes = class_counts if named and pairs == "ova" else None
    ratios = term.ratios.to(torch.float32) if term.ratios is not None else None
    matrix = None if isinstance(pairs, str) else _normalised(logits, target, weight, pairs, ignore_index)
    data = Data(logits, target.contiguous(), _flat(weight), _flat(sizes), _flat(ratios), matrix)
    kind = pairs if isinstance(pairs, str) else "matrix"
    return data, Settings(form, activation, kind, ignore_index, dtype, term.share, term.log1p)


def _normalised(logits: Tensor, target: Tensor, weight: Tensor | None, pairs: Tensor, ignore_index: int) -> Tensor:
    """``(C, C)`` pair weights of the classes present, ``[j, i]`` for column i."""
    valid = (target != ignore_index) & (target >= 0) & (target < logits.shape[1])
    weights = batch.prepare(
        target.long(),
        logits.shape[1],
        weight=weight,
        valid=valid,
        pairs=pairs,
        class_counts=None,
        world=communicator(False),
    )
    assert weights.matrix is not None
    return weights.matrix.to(torch.float32)


def _flat(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.detach().contiguous()
