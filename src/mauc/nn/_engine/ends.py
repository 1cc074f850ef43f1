"""Exact polynomial pieces without cancellation, in torch operations: the forms of :mod:`mauc.kernels.ends`.

The positives of all classes lie in one array of ``M + C`` places, each class closed by an infinite value.
"""

from collections.abc import Callable
from math import comb
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from mauc.nn._engine.moments import basis

__all__ = ["Run", "Sorted", "exact_run", "lay_out"]


class _Stretches(NamedTuple):
    """Consecutive places over which sums run."""

    rank: Tensor
    """``(P,)`` how many places of the stretch are before."""
    left: Tensor
    """``(P,)`` how many are after."""
    number: int
    longest: int
    cell: Tensor | None
    """``(P,)`` place in a ``(number, longest)`` array of the stretches; None where that were much larger than ``P``."""


def _stretches(is_first: Tensor) -> _Stretches:
    """Stretches that begin where it says so; waits for the device."""
    places = len(is_first)
    here = torch.arange(places, device=is_first.device)
    rank = here - torch.where(is_first, here, 0).cummax(0).values
    following = torch.where(is_first, here, places).flip(0).cummin(0).values.flip(0)
    end = torch.cat([following[1:], following.new_full((1,), places)])
    number = is_first.cumsum(0)
    count, longest = torch.stack([number[-1], rank.max() + 1]).tolist()
    cell = (number - 1) * longest + rank if count * longest <= 8 * places else None
    return _Stretches(rank, end - 1 - here, count, longest, cell)


class Sorted(NamedTuple):
    """The positives of all classes in their places."""

    value: Tensor
    """``(P,)`` ascending in each class, infinite at its closing place."""
    mass: Tensor
    """``(P,)`` weights, 0 at the closing places."""
    classes: _Stretches

    @property
    def rank(self) -> Tensor:
        """``(P,)`` how many places of the class are before."""
        return self.classes.rank


def lay_out(value: Tensor, mass: Tensor) -> Sorted:
    """The positives in their places; a class begins after each infinite value."""
    is_first = value.isinf().roll(1)
    return Sorted(value, mass, _stretches(is_first))


Further = Callable[[float], Tensor]
"""``(P,)`` place of the first value of the class that is so much larger, of a larger one in any case."""


class Run(Protocol):
    """One piece of ℓ with its sums over the positives; ``landed`` collects what the negatives hand to them."""

    landed: Tensor

    def visit(
        self, x: Tensor, weight: Tensor, columns: slice, begin: Tensor | None, end: Tensor, *, gradient: bool
    ) -> tuple[Tensor, Tensor]:
        """``Σ_u a_u ℓ`` over the positives from ``begin`` to ``end``, and its slope in the negative,
        ``(columns, N)`` both.
        """

    def collect(self, landed: Tensor) -> Tensor:
        """``(P,)`` slope in the value at each place, per unit of its weight."""


def exact_run(table: Sorted, low: float, high: float, coefficients: list[float], further: Further) -> Run:
    """The run of ``ℓ = Σ_k coefficients[k] s^k`` on ``[low, high)``, with ``s`` the distance from its finite end, from
    ``high`` where both are.
    """
    if high == float("inf"):
        return _Upper(table, low, coefficients)
    if low == -float("inf"):
        return _Lower(table, high, coefficients)
    return _Between(table, low, high, coefficients, further)


def running_sum(x: Tensor, stretches: _Stretches, *, backward: bool = False) -> Tensor:
    """Running sums along the last axis over each stretch; a sum over all places, less that at its start, cancels."""
    if stretches.cell is not None:
        spread = x.new_zeros((*x.shape[:-1], stretches.number * stretches.longest))
        spread[..., stretches.cell] = x
        rows = spread.reshape(*x.shape[:-1], stretches.number, stretches.longest)
        sums = rows.flip(-1).cumsum(-1).flip(-1) if backward else rows.cumsum(-1)
        return sums.flatten(-2)[..., stretches.cell]
    rank = stretches.left.flip(0) if backward else stretches.rank
    x = x.flip(-1) if backward else x
    step = 1
    while step < stretches.longest:
        before = torch.where(rank[step:] >= step, x[..., :-step], 0.0)
        x = torch.cat([x[..., :step], x[..., step:] + before], dim=-1)
        step *= 2
    return x.flip(-1) if backward else x


def carried(source: Tensor, gap: Tensor, stretches: _Stretches, *, backward: bool = False) -> Tensor:
    """``(K, P)`` sums ``S_k(p) = Σ_j C(k, j) gap(p)^(k−j) S_j(p−1) + source_k(p)``, from 0 in each stretch.

    ``gap`` is the distance of each place from the one before it; ``backward`` carries from each place to that one.
    """
    ahead = -1 if backward else 1
    inside = (stretches.left if backward else stretches.rank) > 0
    gap = gap.roll(-1) if backward else gap
    sums: list[Tensor] = []
    before: list[Tensor] = []
    for k in range(len(source)):
        step = torch.zeros_like(gap)
        for j in range(k):
            step = step * gap + comb(k, j) * before[j]
        if k:
            step = step * gap
            step = torch.where(step.isnan(), 0.0, step)  # none, times a gap beyond the floats
        sums.append(running_sum(step + source[k], stretches, backward=backward))
        before.append(torch.where(inside, sums[k].roll(ahead), 0.0))
    return torch.stack(sums) if sums else source


def recentred(sums: Tensor, coefficients: list[float]) -> Tensor:
    """``(K + 1, P)`` coefficients ``Σ_k c_k C(k, i) S_(k−i)`` of ``d^i``."""
    out = torch.zeros_like(sums)
    for k, c in enumerate(coefficients):
        for i in range(k + 1 if c else 0):
            out[i] += (c * comb(k, i)) * sums[k - i]
    return out


def slope_of(sums: Tensor, coefficients: list[float]) -> Tensor:
    """``Σ_k k c_k S_(k−1)``."""
    out = sums.new_zeros(sums.shape[1])
    for k, c in enumerate(coefficients):
        if k and c:
            out += (k * c) * sums[k - 1]
    return out


def _evaluate(powers: Tensor, place: Tensor, distance: Tensor) -> tuple[Tensor, Tensor]:
    """``Σ_i powers[i] d^i`` and its derivative."""
    rows = powers.to(distance.dtype).unbind(0)
    value, slope = rows[-1][place], torch.zeros_like(distance)
    for row in reversed(rows[:-1]):
        slope = torch.addcmul(value, slope, distance)
        value = torch.addcmul(row[place], value, distance)
    return value, slope


def _land(landed: Tensor, place: Tensor, distance: Tensor, weight: Tensor) -> None:
    """Add ``ω d^k`` at each negative's place."""
    flat, term = place.flatten(), weight
    for k, row in enumerate(landed):
        term = term * distance if k else term
        row.index_add_(0, flat, term.flatten().to(row.dtype))


def _of_mass(mass: Tensor, degree: int) -> Tensor:
    return torch.cat([mass[None], mass.new_zeros((degree, len(mass)))])


def _after(table: Sorted) -> tuple[Tensor, Tensor]:
    """Score and weight of the value before each place; at a class's first there is none, of weight 0."""
    before = torch.where(table.rank > 0, table.value.roll(1), table.value)
    return torch.where(before.isinf(), 0.0, before), torch.where(table.rank > 0, table.mass.roll(1), 0.0)


def _gaps(anchor: Tensor, inside: Tensor) -> Tensor:
    """Distance of each place from the one before, 0 where that is not ``inside`` the same stretch."""
    return torch.where(inside, anchor - anchor.roll(1), 0.0)


class _Lower:
    """``(−∞, high)``: a run that ends before a place is at that place, and empty at the class's first."""

    def __init__(self, table: Sorted, high: float, coefficients: list[float]) -> None:
        self.high, self.coefficients = high, coefficients
        self.stretches = table.classes
        self.anchor, mass = _after(table)
        self.gap = _gaps(self.anchor, table.rank > 0)
        degree = len(coefficients) - 1
        self.powers = recentred(carried(_of_mass(mass, degree), self.gap, self.stretches), coefficients)
        self.landed = mass.new_zeros((degree, len(mass)))

    def visit(
        self, x: Tensor, weight: Tensor, columns: slice, begin: Tensor | None, end: Tensor, *, gradient: bool
    ) -> tuple[Tensor, Tensor]:
        distance = self.high - (self.anchor.to(x.dtype)[end] - x)
        if gradient:
            _land(self.landed, end, distance, weight)
        return _evaluate(self.powers, end, distance)

    def collect(self, landed: Tensor) -> Tensor:
        return -slope_of(carried(landed, self.gap, self.stretches, backward=True), self.coefficients).roll(-1)


class _Upper:
    """``[low, ∞)``: a run from a place on is at that place, and empty at the class's closing one."""

    def __init__(self, table: Sorted, low: float, coefficients: list[float]) -> None:
        self.low, self.coefficients = low, coefficients
        self.stretches = table.classes
        self.anchor = torch.where(table.value.isinf(), 0.0, table.value)
        self.gap = _gaps(self.anchor, (table.rank > 0) & ~table.value.isinf())
        degree = len(coefficients) - 1
        sums = carried(_of_mass(table.mass, degree), self.gap, self.stretches, backward=True)
        self.powers = recentred(sums, coefficients)
        self.landed = table.mass.new_zeros((degree, len(table.mass)))

    def visit(
        self, x: Tensor, weight: Tensor, columns: slice, begin: Tensor | None, end: Tensor, *, gradient: bool
    ) -> tuple[Tensor, Tensor]:
        assert begin is not None
        distance = (self.anchor.to(x.dtype)[begin] - x) - self.low
        if gradient:
            _land(self.landed, begin, distance, weight)
        value, slope = _evaluate(self.powers, begin, distance)
        return value, -slope

    def collect(self, landed: Tensor) -> Tensor:
        return slope_of(carried(landed, self.gap, self.stretches), self.coefficients)


class _Between:
    """``[low, high)``: the rest of a cell, by its first place, and the beginning of one, by the place after it."""

    def __init__(self, table: Sorted, low: float, high: float, coefficients: list[float], further: Further) -> None:
        self.high, self.coefficients = high, coefficients
        degree, places = len(coefficients) - 1, len(table.value)
        here = torch.arange(places, device=table.value.device)
        rounding = 256.0 * torch.finfo(table.value.dtype).eps * (abs(low) + abs(high))
        is_first = _cells(further(high - low - rounding), table)
        self.stretches = _stretches(is_first)
        self.cell_end = here + self.stretches.left + 1
        self.begun = torch.where(table.rank > 0, (here - self.stretches.rank).roll(1), -1)
        """First place of the cell that has the one before; −1 at a class's first."""

        # From the value before a cell to the beginning of the next one.
        follows = self.cell_end.clamp(max=places - 1)
        span = table.value[follows] - table.value.roll(1)
        inside = is_first & (table.rank > 0) & ~table.value.isinf() & ~table.value[follows].isinf()
        self.reaches_over = bool((inside & (span <= high - low + rounding)).any())

        # Beginnings: a place later, so that a class's first place is a stretch of its own.
        self.stretches_after = _stretches(is_first.roll(1) | (table.rank == 0))
        self.anchor, mass = _after(table)
        self.gap = _gaps(self.anchor, self.stretches_after.rank > 0)
        sums = carried(_of_mass(mass, degree), self.gap, self.stretches_after)
        self.powers = recentred(sums, coefficients)

        closing = table.value.isinf()
        self.last = torch.where(closing, 0.0, table.value[self.cell_end - 1])
        self.to_last = torch.where(closing, 0.0, self.last - table.value)
        terms = torch.stack(basis(self.to_last, degree + 1, chebyshev=False)) * table.mass
        self.powers_of_rest = recentred(running_sum(terms, self.stretches, backward=True), coefficients)
        self.landed = mass.new_zeros((2 * degree, places))

    def visit(
        self, x: Tensor, weight: Tensor, columns: slice, begin: Tensor | None, end: Tensor, *, gradient: bool
    ) -> tuple[Tensor, Tensor]:
        assert begin is not None
        degree = len(self.coefficients) - 1
        begun = self.begun[end]
        # Place 0 has no beginning, and the last one no rest.
        of_rest = torch.where((begun != begin) & (begin < end), begin, len(self.gap) - 1)
        rest = self.landed[degree:] if gradient else None
        beginning = self.landed[:degree] if gradient else None
        value, slope = self._part(self.last, self.powers_of_rest, of_rest, x, weight, rest)
        parts = [end * (begun >= begin)]
        if self.reaches_over:
            over = torch.where(begin < end, self.cell_end[begin], end)
            while bool((over < begun).any()):
                following = torch.where(over < begun, self.cell_end[over], 0)
                parts.append(following)
                over = torch.where(over < begun, following, over)
        for place in parts:
            more, steeper = self._part(self.anchor, self.powers, place, x, weight, beginning)
            value, slope = value + more, slope + steeper
        return value, slope

    def _part(
        self, anchor: Tensor, powers: Tensor, place: Tensor, x: Tensor, weight: Tensor, landed: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        distance = self.high - (anchor.to(x.dtype)[place] - x)
        if landed is not None:
            _land(landed, place, distance, weight)
        return _evaluate(powers, place, distance)

    def collect(self, landed: Tensor) -> Tensor:
        degree = len(self.coefficients) - 1
        through = carried(landed[:degree], self.gap, self.stretches_after, backward=True)
        from_rest = running_sum(landed[degree:], self.stretches)
        powers = basis(self.to_last, degree, chebyshev=False)
        at_value = torch.zeros_like(from_rest)
        for k in range(degree):
            for j in range(k + 1):
                at_value[k] += comb(k, j) * powers[k - j] * from_rest[j]
        return -slope_of(through, self.coefficients).roll(-1) - slope_of(at_value, self.coefficients)


def _cells(further: Tensor, table: Sorted) -> Tensor:
    """Whether a cell begins at each place; the closing places are cells by themselves."""
    is_first = ((table.rank == 0) | table.value.isinf()).to(torch.int32)
    # After r rounds all cells up to the 2^r-th of each class are known, and a jump goes over 2^r of them.
    for _ in range(table.classes.longest.bit_length()):
        is_first = is_first.scatter_reduce(0, further, is_first, "amax")
        further = further[further]
    return is_first > 0
