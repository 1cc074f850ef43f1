r"""Losses without a closed form, in torch operations on every device; any order of derivative.

A loss is a sum of polynomials of the difference ``t = p − q``, one for each break b, which count where ``t < b``
(:class:`Polynomials`). For each negative q the positives with ``p < q + b`` are the first ones in sorted order, and
cumulated sums over the sorted positives are the coefficients of a polynomial in q:

.. math:: \sum_{p < q + b} a_p \sum_{kl} A_{kl} T_k(p) T_l(q) = \sum_l S_l(q + b) \, T_l(q), \qquad
    S_l(t) = \sum_{p < t} a_p \sum_k A_{kl} T_k(p)

That takes O(N·C·log n) time, and O(N·C) for one polynomial of all differences. Without polynomials that are close
enough the pairs are taken in blocks, O(N²). Sums are in float64.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.polynomial import chebyshev
from numpy.polynomial.polynomial import polyval
from torch import Tensor
from torch.nn.functional import pad, softplus

from mauc._kernels.piecewise import KernelPiece
from mauc._typing import Floats
from mauc.nn._loss.batch import Weights
from mauc.plan import EPS, TOLERANCES, difference_matrix, plan, radius_for
from mauc.surrogates import DistanceWeighted, Logistic, Piece, QHinge, Surrogate

Function = Callable[[Tensor], Tensor]


class Polynomials(NamedTuple):
    """``ℓ(p − q)`` as a sum over the breaks b of ``Σ_kl A_kl T_k(p / h) T_l(q / h)`` where ``p − q < b``."""

    breaks: tuple[float, ...]
    """That of the most coefficients comes first. One may be infinite."""
    matrices: tuple[Floats, ...]
    """The A of each break."""
    half_width: float
    """h: scores, less the centre of their column, lie in [−h, h]."""

    @property
    def terms(self) -> Iterator[tuple[float, Floats]]:
        """Yield each break with its A."""
        return zip(self.breaks, self.matrices, strict=True)


@lru_cache(maxsize=256)
def polynomials(
    surrogate: Surrogate, radius: float, tolerances: tuple[float, ...], *, bounded: bool, digits: float = 1e-11
) -> Polynomials | None:
    """Return the polynomials for differences up to ``radius``; None if none are close enough.

    The powers of a piece cancel in the sums; they may lose ``digits`` of ℓ(0).
    """
    found = plan(surrogate, radius, tolerances=tolerances, saturated=bounded)
    if found is None:
        return None
    half_width = next((piece.half_width for piece in found.pieces if piece.half_width is not None), radius / 2.0)
    size = abs(float(surrogate.loss(np.zeros(1))[0])) or 1.0
    jumps: dict[float, Floats] = {}
    for piece in found.pieces:
        matrix = piece.matrix if piece.half_width is not None else _expanded(piece, half_width)
        if piece.half_width is None and not EPS * float(np.abs(matrix).sum()) <= digits * size:
            return None
        _add(jumps, piece.high, matrix)
        if piece.low > -math.inf:
            _add(jumps, piece.low, -matrix)
    breaks = tuple(sorted(jumps, key=lambda b: -len(jumps[b])))
    return Polynomials(breaks, tuple(jumps[b] for b in breaks), half_width)


def _expanded(piece: KernelPiece, half_width: float) -> Floats:
    """Return A of an exact piece, which is given in powers of the distance from its end."""
    powers = piece.matrix[:, 0]
    degree = max(1, len(powers) - 1)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not close enough
        return difference_matrix(lambda t: np.asarray(polyval(piece.high - t, powers), float), degree, half_width)


def _add(jumps: dict[float, Floats], end: float, matrix: Floats) -> None:
    """Add a matrix to that of a break, which may be smaller or larger."""
    before = jumps.get(end, np.zeros((1, 1)))
    most = max(len(before), len(matrix))
    jumps[end] = np.pad(before, (0, most - len(before))) + np.pad(matrix, (0, most - len(matrix)))


class Columns(NamedTuple):
    """Some columns, and the samples of their classes."""

    number: Tensor
    """``(K,)`` numbers of the columns."""
    own: Tensor
    """``(K, W)`` rows of the samples of each class, padded by row 0."""
    mass: Tensor
    """``(K, W)`` their weights, 0 in the padding."""
    negative: Tensor
    """``(K, N)`` weight of each score as a negative."""


def columns_of(weights: Weights, block: int) -> Iterator[Columns]:
    """Yield columns of classes with samples, about ``block`` scores at a time.

    The classes of a block differ in size by a factor of two at most: a class that holds half of all samples pads
    no other.
    """
    y, device = weights.y, weights.y.device
    members = (weights.unit > 0).nonzero()[:, 0]
    members = members[y[members].argsort(stable=True)]
    size = torch.bincount(y[members], minlength=len(weights.column))
    first, sizes = size.cumsum(0) - size, size.tolist()
    paired = (weights.total > 0).tolist()
    order = sorted((c for c, n in enumerate(sizes) if n and paired[c]), key=lambda c: -sizes[c])
    while order:
        widest = sizes[order[0]]
        most = max(1, block // (len(y) + widest))
        some = [c for c in order[:most] if 2 * sizes[c] >= widest]
        order = order[len(some) :]
        index = torch.tensor(some, device=device)
        place = torch.arange(widest, device=device)
        inside = place < size[index, None]
        own = members[torch.where(inside, first[index, None] + place, 0)]
        of_row = weights.row if weights.matrix is None else weights.row * weights.matrix[y][:, index].T
        negative = torch.where(y == index[:, None], 0.0, weights.column[index, None] * of_row)
        yield Columns(index, torch.where(inside, own, 0), torch.where(inside, weights.unit[own], 0.0), negative)


class Form(NamedTuple):
    """How to compute a loss of some scores."""

    centre: Tensor
    """``(C,)`` middles of the columns."""
    polynomials: Polynomials | None
    """None if none are close enough."""
    function: Function
    """ℓ of tensors."""


def piecewise_risk(
    scores: Tensor, weights: Weights, surrogate: Surrogate, *, bounded: bool, gradient: bool, block: int | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return the risk and, on request, its ``(N, C)`` slope in the scores' dtype, in the memory of a block.

    ``block`` scores are taken at a time. Default: 2¹⁶ on the CPU, which stay in a second-level cache, else 2²⁴.
    """
    block = block or (1 << 16 if scores.is_cpu else 1 << 24)
    scores, place, weights = scores.detach(), scores.device, _with_float64(weights)
    value = 0.0 * scores.sum(dtype=weights.unit.dtype)  # NaN reaches the loss from every column
    slope = torch.zeros_like(scores) if gradient else None
    form = _form(scores, weights, surrogate, bounded=bounded)
    if form is None:
        return value * torch.nan, None if slope is None else slope * torch.nan
    for some, x in _blocks(scores, weights, form, block):
        if slope is None:
            value = value + _risk(x, some, form).to(place)
        else:
            of_some, of_x = _slope(x, some, form)
            value = value + of_some.to(place)
            slope[:, some.number.to(place)] = of_x.T.to(slope)
    return value, slope


def differentiable_piecewise_risk(
    scores: Tensor, weights: Weights, surrogate: Surrogate, *, bounded: bool, block: int = 1 << 24
) -> Tensor:
    """Return the risk in operations that torch can differentiate any number of times."""
    weights, place = _with_float64(weights), scores.device
    value = 0.0 * scores.sum(dtype=weights.unit.dtype)
    form = _form(scores, weights, surrogate, bounded=bounded)
    if form is None:
        return value * torch.nan
    for some, x in _blocks(scores, weights, form, block):
        value = value + _risk(x, some, form).to(place)
    return value


def _with_float64(weights: Weights) -> Weights:
    """Return the weights where float64 sums can be computed: on the CPU if the device has none, or none that repeat."""
    deterministic = torch.are_deterministic_algorithms_enabled() and not weights.unit.is_cpu
    if weights.unit.dtype == torch.float64 and not deterministic:
        return weights
    moved = (x.cpu() if isinstance(x, Tensor) else x for x in weights)
    wide = (x.double() if isinstance(x, Tensor) and x.is_floating_point() else x for x in moved)
    return Weights(*wide)  # type: ignore[arg-type]


def _form(scores: Tensor, weights: Weights, surrogate: Surrogate, *, bounded: bool) -> Form | None:
    """Choose how to compute the loss; None if scores without a bound are not finite."""
    radius, centre, function = 1.0, torch.full_like(weights.column, 0.5), in_torch(surrogate)
    if not bounded and len(scores):
        low, high = (x.detach().to(weights.unit) for x in (scores.amin(0), scores.amax(0)))
        if not bool((low.isfinite() & high.isfinite()).all()):
            return None
        centre, span = 0.5 * low + 0.5 * high, float((high - low).max())
        if math.isinf(span):  # the loss of a pair whose difference overflows is infinite; all others stay right
            return Form(centre, None, function)
        radius = radius_for(span)
    tolerances = TOLERANCES["float64" if scores.dtype == torch.float64 else "float32"]
    found = polynomials(surrogate, radius, tolerances, bounded=bounded)
    if found is None:
        what = f"no polynomial of the {surrogate.name} surrogate on differences up to {radius:g} is close enough"
        warnings.warn(f"{what}: taking all pairs in blocks, O(N²) time", stacklevel=8)
    return Form(centre, found, function)


def _blocks(scores: Tensor, weights: Weights, form: Form, block: int) -> Iterator[tuple[Columns, Tensor]]:
    """Yield some columns and their ``(K, N)`` scores, less their centres."""
    scores = scores.to(weights.unit.device)
    for some in columns_of(weights, 1 if form.polynomials is None else block):
        x = scores.T.index_select(0, some.number).to(torch.float64)
        # Differences of pairs are taken of the scores themselves: less a centre far out they would lose digits.
        yield some, x if form.polynomials is None else x - form.centre[some.number, None]


def _risk(x: Tensor, some: Columns, form: Form) -> Tensor:
    """Return the risk of some columns."""
    if form.polynomials is None:
        value = x.new_zeros(())
        for _, _, t, weight in _pairs(x, some):
            value = value + (weight * form.function(t)).sum()
        return value
    q, positives = x / form.polynomials.half_width, Sorted.of(x, some, form.polynomials)
    sums = [positives.sums(end, matrix) for end, matrix in form.polynomials.terms]
    return (chebyshev_sum(_summed(sums), q) * some.negative).sum()


def _slope(x: Tensor, some: Columns, form: Form) -> tuple[Tensor, Tensor]:
    """Return the risk of some columns and its ``(K, N)`` slope."""
    value = x.new_zeros(())
    if form.polynomials is None:
        slope = torch.zeros_like(x)
        for own, others, t, weight in _pairs(x, some):
            each, pull = torch.func.vjp(form.function, t)[:2]
            (of_t,) = pull(weight)
            value = value + (weight * each).sum()
            slope[0, own] += of_t.sum(1)
            slope[0, others] -= of_t.sum(0)
        return value, slope
    q, positives, in_q = x / form.polynomials.half_width, Sorted.of(x, some, form.polynomials), []
    own = torch.zeros_like(positives.mass)
    for end, matrix in form.polynomials.terms:
        of_q = torch.stack([positives.received(end, t) for t in _weighted_terms(q, some.negative, len(matrix))])
        value = value + (positives.times(matrix) * of_q * positives.mass).sum()
        in_p, of_slope = (np.asarray(chebyshev.chebder(matrix, axis=axis), float) for axis in (0, 1))
        own += (positives.times(in_p) * of_q).sum(0)
        in_q.append(positives.sums(end, of_slope))
    slope = (chebyshev_sum(_summed(in_q), q) * some.negative).contiguous()
    place = positives.rows + torch.arange(len(x), device=x.device)[:, None] * x.shape[1]
    slope.view(-1).index_add_(0, place.flatten(), (positives.mass * own).flatten())
    return value, slope.div_(form.polynomials.half_width)


def _pairs(x: Tensor, some: Columns, block: int = 1 << 10) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield the rows of some positives and negatives of one column, their differences and their weights."""
    for own, mass in zip(torch.split(some.own[0], block), torch.split(some.mass[0], block), strict=True):
        for others in torch.split(some.negative[0].nonzero()[:, 0], block):
            yield own, others, x[0, own, None] - x[0, others], mass[:, None] * some.negative[0, others]


class Sorted(NamedTuple):
    """The positives of some columns in order, and the places of the negatives among them."""

    rows: Tensor
    """``(K, W)``"""
    mass: Tensor
    """``(K, W)`` weights, 0 in the padding."""
    terms: Tensor
    """``(L, K, W)`` T_l of the positives."""
    first: dict[float, Tensor]
    """For each finite break b: where each negative finds its sum in flat ``(K, W + 1)`` sums over the ``p < q + b``."""

    @classmethod
    def of(cls, x: Tensor, some: Columns, form: Polynomials) -> "Sorted":
        """Sort the positives, and search the negatives among them."""
        rows, mass, first = some.own, some.mass, dict[float, Tensor]()
        finite = [b for b in form.breaks if b < math.inf]
        if finite:
            q = x.detach()
            place, order = torch.where(mass > 0, q.gather(1, rows), torch.inf).sort(1)
            rows, mass = rows.gather(1, order), mass.gather(1, order)
            begin = torch.arange(len(rows), device=x.device)[:, None] * (rows.shape[1] + 1)
            first = {b: (torch.searchsorted(place, q + b) + begin).flatten() for b in finite}
        size = max(len(matrix) for matrix in form.matrices)
        return cls(rows, mass, chebyshev_terms(x.gather(1, rows) / form.half_width, size), first)

    def times(self, matrix: Floats) -> Tensor:
        """Return the ``(L, K, W)`` ``Σ_k A_kl T_k(p)``."""
        a = torch.as_tensor(matrix, dtype=self.terms.dtype, device=self.terms.device)
        return torch.einsum("kl,kcw->lcw", a, self.terms[: len(a)])

    def sums(self, end: float, matrix: Floats) -> Tensor:
        """Return for each negative the ``(L, K, N)`` sums over the ``p < q + b``; over all positives ``(L, K, 1)``."""
        each = self.times(matrix) * self.mass
        if end == math.inf:
            return each.sum(2, keepdim=True)
        sums = pad(each.cumsum(2), (1, 0)).flatten(1)
        return sums.index_select(1, self.first[end]).view(*each.shape[:2], -1)

    def received(self, end: float, each: Tensor) -> Tensor:
        """Return for each positive the ``(K, W)`` sum of ``each`` over the ``q > p − b``; over all q ``(K, 1)``."""
        if end == math.inf:
            return each.sum(1, keepdim=True)
        k, w = self.mass.shape
        sums = each.new_zeros(k * (w + 1)).index_add_(0, self.first[end], each.flatten()).view(k, w + 1)
        return sums.flip(1).cumsum(1).flip(1)[:, 1:]


def _summed(coefficients: list[Tensor]) -> list[Tensor]:
    """Return the sums of ``(L, K, N)`` coefficients, of which some have fewer than others, one by one."""
    most = max(len(each) for each in coefficients)
    return [sum((each[k] for each in coefficients[1:] if k < len(each)), coefficients[0][k]) for k in range(most)]


def _weighted_terms(x: Tensor, weight: Tensor, size: int) -> Iterator[Tensor]:
    """Yield ``T_0(x) … T_{size-1}(x)`` times a weight."""
    before, last = weight, weight * x
    yield before
    yield from (last,) if size > 1 else ()
    for _ in range(size - 2):
        before, last = last, 2.0 * x * last - before
        yield last


def chebyshev_terms(x: Tensor, size: int) -> Tensor:
    """Return ``T_0(x) … T_{size-1}(x)``, stacked."""
    return torch.stack(list(_weighted_terms(x, torch.ones_like(x), size)))


def chebyshev_sum(coefficients: list[Tensor], x: Tensor) -> Tensor:
    """Return ``Σ_l c_l T_l(x)`` by the recurrence of Clenshaw."""
    last, before = coefficients[-1], None
    for c in coefficients[-2:0:-1]:
        last, before = torch.addcmul(c if before is None else c - before, last, x, value=2.0), last
    if len(coefficients) == 1:
        return last.expand_as(x)
    return torch.addcmul(coefficients[0] if before is None else coefficients[0] - before, last, x)


def in_torch(surrogate: Surrogate) -> Function:
    """Return ℓ as a function of tensors; of NumPy functions it has first derivatives alone."""
    if isinstance(surrogate, Logistic):
        return lambda t: softplus(-surrogate.alpha * t, threshold=40.0)
    if isinstance(surrogate, QHinge):
        return lambda t: _power(surrogate.alpha - t, surrogate.q)
    if isinstance(surrogate, DistanceWeighted):
        e = surrogate.epsilon
        return lambda t: torch.where(t < e, (2.0 - t / e) / e, 1.0 / t.clamp(min=e))
    if all(piece.coefficients is not None for piece in surrogate.pieces):
        return lambda t: _piece_by_piece(surrogate.pieces, t)
    of_numpy: Any = OfNumPy.apply
    return lambda t: of_numpy(t, (surrogate.loss, surrogate.derivative), surrogate.name)


def _power(x: Tensor, q: float) -> Tensor:
    """Return ``max(x, 0)^q``, whose second derivative at 0 is 0."""
    return torch.where(x > 0, torch.where(x > 0, x, 1.0) ** q, 0.0)


def _piece_by_piece(pieces: tuple[Piece, ...], t: Tensor) -> Tensor:
    """Return ℓ that is a polynomial on each piece, in powers of the distance from the piece's end."""
    out = torch.zeros_like(t)
    for piece in pieces:
        distance = piece.high - t if piece.high < math.inf else t if piece.low == -math.inf else t - piece.low
        coefficients = piece.coefficients if piece.low == -math.inf and piece.high == math.inf else piece.from_end
        inside = (t >= piece.low) & (t < piece.high)
        distance = torch.where(inside, distance, 0.0)  # elsewhere it may be infinite, and its slope NaN
        *others, highest = coefficients or (0.0,)
        value = torch.full_like(t, highest)
        for c in reversed(others):
            value = value * distance + c
        out = torch.where(inside, value, out)
    return out


class OfNumPy(torch.autograd.Function):
    """The first of some NumPy functions, each the derivative of the one before."""

    @staticmethod
    def forward(t: Tensor, functions: tuple[Any, ...], name: str) -> Tensor:
        with np.errstate(over="ignore", invalid="ignore"):
            return torch.as_tensor(functions[0](t.cpu().numpy())).to(t)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        t, ctx.functions, ctx.name = inputs
        ctx.save_for_backward(t)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if len(ctx.functions) == 1:
            raise NotImplementedError(
                f"second derivatives of the loss are not available with the {ctx.name} surrogate, whose functions of "
                "NumPy arrays torch cannot differentiate: take a surrogate with a name, or one of polynomial pieces"
            )
        (t,) = ctx.saved_tensors
        of_numpy: Any = OfNumPy.apply
        return upstream * of_numpy(t, ctx.functions[1:], ctx.name), None, None
