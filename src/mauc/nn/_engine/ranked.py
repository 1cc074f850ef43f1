"""Piecewise polynomial surrogates: a search among the sorted positives of each class, and prefix sums.

For one negative the positives whose difference falls into one piece are a contiguous run of the sorted positives
(spec §5). The positives of all classes lie in one array, each class closed by one more place that holds its total:
``N + C`` places, of which class ``c`` has those from ``start[c]`` on. Only the positives are sorted. Columns are taken
in blocks, which bounds the memory.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mauc.kernels.piecewise import Piece
from mauc.nn._engine.batch import Batch, exact_dtype
from mauc.nn._engine.moments import Result, Slope, basis, chebyshev_derivative, own_scores
from mauc.nn._engine.processes import Communicator
from mauc.surrogates import Surrogate

__all__ = ["blocked", "ranked"]

BLOCK = 1 << 22
"""Scores in a block of columns."""
PAIRS = 512
"""Positives and negatives in a block of pairs."""


class _Positives(NamedTuple):
    """The positives of all ranks, sorted within their classes."""

    value: Tensor
    """``(M,)``"""
    y: Tensor
    """``(M,)``"""
    mass: Tensor
    """``(M,)``"""
    place: Tensor
    """``(M,)`` place of each."""
    start: Tensor
    """``(C,)`` first place of each class."""
    counts: list[int]
    mine: Tensor
    """``(N,)`` place of each sample of this rank."""


def _sort(scores: Tensor, batch: Batch, world: Communicator) -> _Positives:
    n_classes = scores.shape[1]
    own = own_scores(scores, batch)
    everyone, begin = world.gather(torch.stack([own, batch.y.to(own.dtype), batch.unit]))
    value, y, mass = everyone[0], everyone[1].long(), everyone[2]
    order = torch.argsort(value)
    order = order[torch.argsort(y[order], stable=True)]
    value, y, mass = value[order], y[order], mass[order]
    size = torch.zeros(n_classes, dtype=torch.long, device=y.device).index_add_(0, y, torch.ones_like(y))
    before = size.cumsum(0) - size
    place = torch.arange(len(y), device=y.device) + y
    of_sample = torch.empty_like(place)
    of_sample[order] = place
    start = before + torch.arange(n_classes, device=y.device)
    return _Positives(value, y, mass, place, start, size.tolist(), of_sample[begin : begin + len(own)])


class _Run(NamedTuple):
    """A piece with its prefix sums over the places."""

    segment: Piece
    centre: Tensor
    of_q: Tensor
    """``(K + 1, M + C)`` sums of ``Σ_k A_kl φ_k(p)`` over the positives before the place."""
    slope_of_q: Tensor
    """``(K, M + C)`` likewise for ``∂ℓ/∂q``."""
    slope_of_p: Tensor
    """``(K, M)`` the same coefficients of each positive."""
    landed: Tensor
    """``(K, M + C)`` collects ``ω φ_l(q)`` at the end of each negative's run, minus the same at its start."""


def _prepare(positives: _Positives, segment: Piece, centre: Tensor) -> _Run:
    value, y = positives.value, positives.y
    places, n_classes = len(value) + len(centre), len(centre)
    matrix = torch.as_tensor(segment.matrix, dtype=value.dtype, device=value.device)
    size = len(matrix)
    if segment.half_width is None:
        # About the median positive: a far outlier must not cost the others their digits.
        counts = torch.tensor(positives.counts, device=value.device)
        middle = (positives.start - torch.arange(n_classes, device=y.device)) + counts // 2
        median = torch.nn.functional.pad(value, (0, 1))[middle.clamp(max=len(value))]
        centre = torch.where((counts > 0) & median.isfinite(), median, 0.0)
        derivative = matrix[:, 1:] * torch.arange(1, size, device=value.device)
    else:
        derivative = chebyshev_derivative(matrix) / segment.half_width
    of_p = torch.stack(_basis(segment, value - centre[y], size))
    slope_of_p = derivative.T @ of_p
    weighted = torch.cat([matrix.T @ of_p, slope_of_p]) * positives.mass
    spread = value.new_zeros((len(weighted), places + 1))
    spread[:, 1 + positives.place] = weighted
    prefix = spread.cumsum(1)[:, :-1]
    # A running sum over all classes, less what it was at the class's start: classes weigh 1 each, so little is lost.
    of_class = torch.repeat_interleave(
        torch.arange(n_classes, device=y.device),
        torch.tensor(positives.counts, device=y.device) + 1,
        output_size=places,
    )
    prefix = prefix - prefix[:, positives.start[of_class]]
    return _Run(segment, centre, prefix[:size], prefix[size:], slope_of_p, torch.zeros_like(prefix[size:]))


def _basis(segment: Piece, centred: Tensor, size: int) -> list[Tensor]:
    if segment.half_width is None:
        return basis(centred, size, chebyshev=False)
    return basis(centred / segment.half_width, size, chebyshev=True)


def ranked(
    scores: Tensor,
    batch: Batch,
    segments: tuple[Piece, ...],
    centre: Tensor,
    world: Communicator,
    *,
    gradient: bool,
) -> Result:
    """Value and gradient of a piecewise polynomial that is 0 outside its pieces.

    ``O(Σ_i N log n_i)`` time. The class sizes are read by the host: this path synchronises.
    """
    n, n_classes = scores.shape
    positives = _sort(scores, batch, world)
    runs = [_prepare(positives, segment, centre) for segment in segments]
    breaks = sorted({b for s in segments for b in (s.low, s.high) if abs(b) != float("inf")})
    slope = torch.empty_like(scores) if gradient else None
    value = positives.value.new_zeros(())
    # An approximated run is a small difference of large terms: it needs the digits.
    approximated = any(segment.half_width is not None for segment in segments)
    dtype = exact_dtype(scores.device) if approximated else scores.dtype
    step = max(1, BLOCK // max(1, n))
    for begin in range(0, n_classes, step):
        columns = slice(begin, min(begin + step, n_classes))
        x = scores[:, columns].T.to(dtype).contiguous()
        weight = _weights(batch, columns, x.dtype)
        position = _locate(positives, columns, x, breaks)
        start = positives.start[columns, None]
        last = start + torch.tensor(positives.counts[columns], device=x.device)[:, None]
        steepness = torch.zeros_like(x)
        for run in runs:
            first = position.get(run.segment.low)
            end = position.get(run.segment.high, last)
            terms = _basis(run.segment, x - run.centre[columns, None].to(x.dtype), len(run.of_q))
            value = value + (weight * _polynomial(run.of_q, first, end, terms)).sum(1).sum(dtype=value.dtype)
            if gradient:
                steepness += _polynomial(run.slope_of_q, first, end, terms)
                _land(run, weight, first, end, terms)
        if slope is not None:
            slope[:, columns] = steepness.mul_(weight).T
    # A positive that is not a number would be lost in comparisons: it makes the value what it is.
    value = world.sum(value) + 0.0 * positives.value.sum()
    if slope is None:
        return value, None
    on_value = value.new_zeros(len(positives.value) + n_classes)
    for run in runs:
        landed = world.sum(run.landed)
        through = landed.flip(1).cumsum(1).flip(1)
        # What has landed at later places of the class: all later places, less those of later classes.
        beyond = torch.nn.functional.pad(through, (0, 1))
        ends = positives.start + torch.tensor(positives.counts, device=scores.device) + 1
        later = beyond[:, 1 + positives.place] - beyond[:, ends[positives.y]]
        on_value[positives.place] -= (run.slope_of_p * later).sum(0)
    at_own = (batch.unit * on_value[positives.mine] + 0.0 * value).to(scores.dtype)
    return value, Slope(slope, None, at_own[:, None])


def _weights(batch: Batch, columns: slice, dtype: torch.dtype) -> Tensor:
    """``(columns, N)`` weights of the scores as negatives."""
    row = batch.row.to(dtype)
    if batch.matrix is not None:
        return batch.matrix.T[columns].to(dtype)[:, batch.y] * row
    weight = torch.outer(batch.column[columns].to(dtype), row)
    index = torch.arange(columns.start, columns.stop, device=row.device)[:, None]
    return weight.masked_fill_(index == batch.y, 0.0)


def _locate(positives: _Positives, columns: slice, x: Tensor, breaks: list[float]) -> dict[float, Tensor]:
    """For each break ``b`` the ``(columns, N)`` places of the first positive ``>= x + b``."""
    counts = positives.counts[columns]
    offset = sum(positives.counts[: columns.start])
    inside = slice(offset, offset + sum(counts))
    start = positives.start[columns, None]
    table = x.new_full((len(counts), max(1, *counts)), torch.inf)
    y = positives.y[inside]
    table[y - columns.start, positives.place[inside] - positives.start[y]] = positives.value[inside].to(x.dtype)
    size = torch.tensor(counts, device=x.device)[:, None]
    return {b: torch.minimum(torch.searchsorted(table, x + b), size).add_(start) for b in breaks}


def _polynomial(prefix: Tensor, first: Tensor | None, end: Tensor, terms: list[Tensor]) -> Tensor:
    """``Σ_l φ_l(q) · (sum of the l-th coefficient over q's run)``; no ``first``: from the class's start."""
    total = torch.zeros_like(terms[0])
    for sums, term in zip(prefix.to(terms[0].dtype), terms, strict=False):
        inner = sums[end] if first is None else sums[end] - sums[first]
        total = torch.addcmul(total, inner.expand_as(term), term)
    return total


def _land(run: _Run, weight: Tensor, first: Tensor | None, end: Tensor, terms: list[Tensor]) -> None:
    for landed, term in zip(run.landed, terms, strict=False):
        add = (weight * term).to(landed.dtype)
        if end.shape == add.shape:
            landed.index_add_(0, end.flatten(), add.flatten())
        else:
            landed.index_add_(0, end.flatten(), add.sum(1))
        if first is not None:
            landed.index_add_(0, first.flatten(), add.flatten(), alpha=-1)


def blocked(scores: Tensor, batch: Batch, surrogate: Surrogate, world: Communicator, *, gradient: bool) -> Result:
    """The pairwise definition in blocks, with the surrogate's own NumPy functions: ``O(N²)`` time, on the host."""
    n, n_classes = scores.shape
    positives = _sort(scores, batch, world)
    exact = exact_dtype(scores.device)
    slope = torch.zeros_like(scores, dtype=exact)
    on_value = torch.zeros(len(positives.value) + n_classes, dtype=exact, device=scores.device)
    value = on_value.new_zeros(())
    offset = 0
    for i, count in enumerate(positives.counts):
        p, place = positives.value[offset : offset + count], positives.place[offset : offset + count]
        mass = positives.mass[offset : offset + count]
        offset += count
        weight = _weights(batch, slice(i, i + 1), exact)[0]
        q = scores[:, i].to(exact)
        for a in range(0, count, PAIRS):
            for b in range(0, n, PAIRS):
                some, rest = slice(a, a + PAIRS), slice(b, b + PAIRS)
                t = (p[some, None] - q[rest]).cpu().numpy()
                loss = torch.as_tensor(surrogate.loss(t)).to(p)
                value = value + mass[some] @ loss @ weight[rest]
                if gradient:
                    d = torch.as_tensor(surrogate.derivative(t)).to(p)
                    on_value[place[some]] += d @ weight[rest]
                    slope[rest, i] -= weight[rest] * (mass[some] @ d)
    value = world.sum(value)
    if not gradient:
        return value, None
    on_value = world.sum(on_value)
    at_own = (batch.unit * on_value[positives.mine]).to(scores.dtype)
    return value, Slope(slope.to(scores.dtype), None, at_own[:, None])
