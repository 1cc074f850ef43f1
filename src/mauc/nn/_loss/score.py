"""Sums for the exact multiclass AUC on the device of the scores: every score is searched among the sorted positives."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from mauc._validation import check_pair_name
from mauc.nn._loss.batch import Weights, check_classes, check_finite, check_tensors, check_weight, weigh
from mauc.nn._loss.device import can_read
from mauc.nn._loss.settings import pair_matrix


def read_scores(scores: Tensor, target: Tensor, pairs: Any, weight: Tensor | None) -> tuple[Tensor, Weights | None]:
    """Return scores that can be sorted, and the weights of the pairs; None if there is no row."""
    check_tensors("scores", scores, target, weight)
    n_classes = scores.shape[1]
    if can_read(scores):
        check_finite("scores", scores)
        check_classes(target, n_classes)
        if weight is not None:
            check_weight(weight)
    v = check_pair_name(pairs) if isinstance(pairs, str) else pair_matrix(pairs, n_classes).to(scores.device)
    scores = scores.detach()
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    if len(scores) == 0:
        return scores, None
    return scores, weigh(target, n_classes, v, None if weight is None else weight.detach())


def beaten_by(
    scores: Tensor, batch: Weights, *, weighted: bool, block: int | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    r"""Yield some columns at a time, and the ``(columns, N)`` share of positives that each of their scores beats,
    :math:`\sum_{m \in i} u_m ([F_{mi} < F_{ni}] + \frac12 [F_{mi} = F_{ni}])`.

    ``block`` scores and padded positives are searched at a time. Default: 2²⁰ on the CPU, where caches are small, and
    2²⁴ elsewhere, which takes less than a gigabyte.
    """
    n_rows, n_classes = scores.shape
    y, exact = batch.y, batch.unit.dtype
    size = torch.bincount(y, minlength=n_classes)
    first = size.cumsum(0) - size
    longest = int(size.max())  # the one number that is read from the device: the width of the padding
    own = scores.gather(1, y[:, None])[:, 0]
    order = own.argsort()
    order = order[y[order].argsort(stable=True)]  # by class, then by score
    own, unit, code = own[order], batch.unit[order], y[order]
    place = torch.arange(n_rows, device=y.device) - first[code]
    block = block or (1 << 20 if can_read(y) else 1 << 24)
    step = max(1, min(n_classes, block // (n_rows + longest)))
    for begin in range(0, n_classes, step):
        columns = torch.arange(begin, min(begin + step, n_classes), device=y.device)
        here = torch.where((code >= begin) & (code < begin + step), code - begin, len(columns))
        # One row more than columns: a placeholder for the positives of the other columns.
        table = scores.new_full((len(columns) + 1, longest), torch.inf)
        table[here, place] = own
        table = table[:-1]
        x = scores[:, begin : begin + step].T.contiguous()
        lower = torch.searchsorted(table, x, out_int32=True)
        upper = torch.searchsorted(table, x, out_int32=True, right=True)
        if weighted:
            mass = unit.new_zeros((len(columns) + 1, longest + 1))
            mass[here, place + 1] = unit
            below = mass[:-1].cumsum(1)
            yield columns, 0.5 * (below.gather(1, lower.long()) + below.gather(1, upper.long()))
        else:
            yield columns, (lower + upper).to(exact) / (2.0 * size[columns, None].clamp(min=1))
