"""Piecewise polynomial surrogates: a search among the sorted positives of each class, and sums over runs of them.

For one negative the positives whose difference falls into one piece are a contiguous run of the sorted positives
(spec §5). Exact pieces: :mod:`mauc.nn._engine.ends`; approximated ones take differences of prefix sums. The positives
of all classes lie in one array, each class closed by one more place: ``N + C`` places, of which class ``c`` has those
from ``start[c]`` on. Only the positives are sorted. Columns are taken in blocks, which bounds the memory.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mauc.kernels.piecewise import Piece
from mauc.nn._engine.batch import Batch, exact_dtype
from mauc.nn._engine.ends import Run, Sorted, exact_run, lay_out
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


class _Approximated:
    """An approximated piece: differences of prefix sums over the places."""

    def __init__(self, positives: _Positives, segment: Piece, centre: Tensor) -> None:
        value, y, n_classes = positives.value, positives.y, len(centre)
        assert segment.half_width is not None
        self.positives, self.centre, self.half_width = positives, centre, segment.half_width
        places = len(value) + n_classes
        matrix = torch.as_tensor(segment.matrix, dtype=value.dtype, device=value.device)
        size = len(matrix)
        of_p = torch.stack(self._basis(value - centre[y], size))
        self.slope_of_p = (chebyshev_derivative(matrix) / self.half_width).T @ of_p
        """``(K, M)`` coefficients of ``∂ℓ/∂q`` at each positive."""
        spread = value.new_zeros((2 * size - 1, places + 1))
        spread[:, 1 + positives.place] = torch.cat([matrix.T @ of_p, self.slope_of_p]) * positives.mass
        prefix = spread.cumsum(1)[:, :-1]
        # A running sum over all classes, less what it was at the class's start: classes weigh 1 each, so little is
        # lost.
        prefix = prefix - prefix[:, _repeated(positives.start, positives.counts)]
        self.of_q, self.slope_of_q = prefix[:size], prefix[size:]
        """``(K + 1, M + C)`` and ``(K, M + C)`` sums of the coefficients over the positives before the place."""
        self.landed = torch.zeros_like(self.slope_of_q)
        """``(K, M + C)`` collects ``ω φ_l(q)`` at the end of each negative's run, minus the same at its start."""

    def _basis(self, centred: Tensor, size: int) -> list[Tensor]:
        return basis(centred / self.half_width, size, chebyshev=True)

    def visit(
        self, x: Tensor, weight: Tensor, columns: slice, begin: Tensor | None, end: Tensor, *, gradient: bool
    ) -> tuple[Tensor, Tensor]:
        terms = self._basis(x - self.centre[columns, None].to(x.dtype), len(self.of_q))
        if gradient:
            for landed, term in zip(self.landed, terms, strict=False):
                add = (weight * term).to(landed.dtype)
                if end.shape == add.shape:
                    landed.index_add_(0, end.flatten(), add.flatten())
                else:
                    landed.index_add_(0, end.flatten(), add.sum(1))
                if begin is not None:
                    landed.index_add_(0, begin.flatten(), add.flatten(), alpha=-1)
        return _polynomial(self.of_q, begin, end, terms), _polynomial(self.slope_of_q, begin, end, terms)

    def collect(self, landed: Tensor) -> Tensor:
        """What has landed at later places of the class: all later places, less those of later classes."""
        positives = self.positives
        beyond = torch.nn.functional.pad(landed.flip(1).cumsum(1).flip(1), (0, 1))
        ends = positives.start + torch.tensor(positives.counts, device=landed.device) + 1
        later = beyond[:, 1 + positives.place] - beyond[:, ends[positives.y]]
        on_value = landed.new_zeros(landed.shape[1])
        on_value[positives.place] = -(self.slope_of_p * later).sum(0)
        return on_value


def _repeated(of_class: Tensor, counts: list[int]) -> Tensor:
    """``(M + C,)`` what belongs to the class of each place."""
    length = torch.tensor(counts, device=of_class.device) + 1
    return torch.repeat_interleave(of_class, length, output_size=sum(counts) + len(counts))


def _laid_out(positives: _Positives) -> Sorted:
    counts = positives.counts
    value = positives.value.new_full((len(positives.value) + len(counts),), torch.inf)
    value[positives.place] = positives.value
    mass = torch.zeros_like(value)
    mass[positives.place] = positives.mass
    return lay_out(value, mass)


def _run(positives: _Positives, table: Sorted, segment: Piece, centre: Tensor) -> Run:
    if segment.half_width is not None:
        return _Approximated(positives, segment, centre)
    coefficients = segment.matrix[:, 0].tolist()
    return exact_run(table, segment.low, segment.high, coefficients, lambda width: _further(positives, width))


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

    ``O(Σ_i N log n_i)`` time. The class sizes and the largest score are read by the host: this path synchronises.
    """
    n, n_classes = scores.shape
    positives = _sort(scores, batch, world)
    table = _laid_out(positives)
    runs = [_run(positives, table, segment, centre) for segment in segments]
    breaks = sorted({b for s in segments for b in (s.low, s.high) if abs(b) != float("inf")})
    slope = torch.empty_like(scores) if gradient else None
    largest = float(scores.abs().max()) if n else 0.0
    value = positives.value.new_tensor([0.0, 0.0 * largest])  # not a number makes all of it so
    dtype, extreme = _arithmetic(scores, segments, largest)
    step = max(1, BLOCK // max(1, n))
    for first in range(0, n_classes, step):
        columns = slice(first, min(first + step, n_classes))
        x = scores[:, columns].T.to(dtype).contiguous()
        weight = _weights(batch, columns, x.dtype)
        position = _locate(positives, table, columns, x, breaks, largest)
        last = positives.start[columns, None] + torch.tensor(positives.counts[columns], device=x.device)[:, None]
        steepness = torch.zeros_like(x)
        for segment, run in zip(segments, runs, strict=True):
            begin, end = position.get(segment.low), position.get(segment.high, last)
            of_x, steeper = run.visit(x, weight, columns, begin, end, gradient=gradient)
            if extreme:
                # No weight, or no positive, meets a number beyond the floats.
                of_x, steeper = (torch.where((weight == 0.0) | a.isnan(), 0.0, a) for a in (of_x, steeper))
            value[0] += (weight * of_x).sum(1).sum(dtype=value.dtype)
            steepness += steeper
        if slope is not None:
            slope[:, columns] = steepness.mul_(weight).T
    value, undefined = world.sum(value).unbind(0)
    value = value + undefined
    if slope is None:
        return value, None
    on_value = sum((run.collect(world.sum(run.landed)) for run in runs), torch.zeros_like(table.value))
    at_own = batch.unit * on_value[positives.mine]
    if extreme:
        at_own = torch.where(at_own.isnan(), 0.0, at_own)
    return value, Slope(slope, None, (at_own + undefined).to(scores.dtype)[:, None])


def _arithmetic(scores: Tensor, segments: tuple[Piece, ...], largest: float) -> tuple[torch.dtype, bool]:
    """The dtype of the work on all scores, and whether its numbers may overflow.

    An approximated run is a small difference of large terms, and a raw score may swallow digits of a break point:
    both need the digits.
    """
    exact = exact_dtype(scores.device)
    approximated = any(segment.half_width is not None for segment in segments)
    degree = max((len(segment.matrix) - 1 for segment in segments if segment.half_width is None), default=0)
    furthest = max((abs(b) for s in segments for b in (s.low, s.high) if abs(b) != float("inf")), default=1.0)

    def fits(dtype: torch.dtype) -> bool:
        return (2.0 * largest + furthest + 1.0) < torch.finfo(dtype).max ** (0.7 / max(1, degree))

    if largest <= 2.0 and not approximated and fits(scores.dtype):
        return scores.dtype, False
    return exact, not fits(exact)


def _weights(batch: Batch, columns: slice, dtype: torch.dtype) -> Tensor:
    """``(columns, N)`` weights of the scores as negatives."""
    row = batch.row.to(dtype)
    if batch.matrix is not None:
        return batch.matrix.T[columns].to(dtype)[:, batch.y] * row
    weight = torch.outer(batch.column[columns].to(dtype), row)
    index = torch.arange(columns.start, columns.stop, device=row.device)[:, None]
    return weight.masked_fill_(index == batch.y, 0.0)


LARGE = 64.0
"""Scores so many times the break point may swallow digits of it when it is added to them."""


def _rows(positives: _Positives, columns: slice, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """``(columns, longest)`` sorted positives of some classes, infinite beyond their numbers, and these."""
    counts = positives.counts[columns]
    offset = sum(positives.counts[: columns.start])
    inside = slice(offset, offset + sum(counts))
    rows = positives.value.new_full((len(counts), max(1, *counts)), torch.inf, dtype=dtype)
    y = positives.y[inside]
    rows[y - columns.start, positives.place[inside] - positives.start[y]] = positives.value[inside].to(dtype)
    return rows, torch.tensor(counts, device=rows.device)[:, None]


def _locate(
    positives: _Positives, table: Sorted, columns: slice, x: Tensor, breaks: list[float], largest: float
) -> dict[float, Tensor]:
    """For each break ``b`` the ``(columns, N)`` places of the first positive with ``p − x >= b``."""
    rows, size = _rows(positives, columns, x.dtype)
    start = positives.start[columns, None]
    found = {b: torch.minimum(torch.searchsorted(rows, x + b), size).add_(start) for b in breaks}
    for b, place in found.items():
        if not largest <= LARGE * abs(b):
            # x + b is rounded to a neighbour, p − x is not: the search may be off by one value and those that tie.
            value = table.value.to(x.dtype)
            before = value[(place - 1).clamp(min=0)]
            lower = torch.where((place > start) & (before - x >= b), before, x + b)
            at = value[place]
            upper = torch.where(at - x < b, at, -torch.inf)
            place = torch.where(lower < x + b, torch.searchsorted(rows, lower) + start, place)
            found[b] = torch.where(upper > -torch.inf, torch.searchsorted(rows, upper, right=True) + start, place)
    return found


def _further(positives: _Positives, width: float) -> Tensor:
    """``(P,)`` place of the first value of the class that is larger by ``width``, of a larger one in any case."""
    n_classes, longest = len(positives.counts), max(1, *positives.counts)
    out = torch.arange(len(positives.value) + n_classes, device=positives.value.device)
    step = max(1, BLOCK // longest)
    offset = 0
    for first in range(0, n_classes, step):
        columns = slice(first, min(first + step, n_classes))
        rows, size = _rows(positives, columns, positives.value.dtype)
        wanted = torch.maximum(rows + width, torch.nextafter(rows, torch.full_like(rows, torch.inf)))
        found = torch.minimum(torch.searchsorted(rows, wanted), size).add_(positives.start[columns, None])
        count = sum(positives.counts[columns])
        inside = slice(offset, offset + count)
        offset += count
        y, place = positives.y[inside], positives.place[inside]
        out[place] = found[y - first, place - positives.start[y]]
    return out


def _polynomial(prefix: Tensor, first: Tensor | None, end: Tensor, terms: list[Tensor]) -> Tensor:
    """``Σ_l φ_l(q) · (sum of the l-th coefficient over q's run)``; no ``first``: from the class's start."""
    total = torch.zeros_like(terms[0])
    for sums, term in zip(prefix.to(terms[0].dtype), terms, strict=False):
        inner = sums[end] if first is None else sums[end] - sums[first]
        total = torch.addcmul(total, inner.expand_as(term), term)
    return total


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
