"""The loss on the CPU: few operations, and those on vectors in NumPy, whose calls cost a third of torch's.

Two walks over blocks of rows that stay in the caches: scores, their terms and column sums; then the slope through the
softmax. The log-loss takes the softmax that is there, ``softmax(z + log r) = F r / ΣF r``, instead of one of its own.
Piecewise and longer polynomials are left to :mod:`mauc.kernels`, which take most scores of a softmax together, and
whose bins find the others faster than a search by halves.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mauc._typing import Floats, Ints
from mauc.kernels.crowd import MANY
from mauc.kernels.crowd_moments import crowd_moments_risk, short_form
from mauc.kernels.piecewise import Piece, ranked_risk
from mauc.kernels.tiles import Classes, Problem
from mauc.nn._engine.batch import Batch, chunks, class_sum, is_free, take
from mauc.nn._engine.log_term import LogTerm
from mauc.nn._engine.moments import FLAT_ALPHA, Result, Slope
from mauc.surrogates import Surrogate

__all__ = ["evaluate", "fits", "ranked", "searches", "smooth"]

MOST_CLASSES = 2048
"""Up to here own pair weights, ``(C, C)``, are no burden for the kernels."""
FEW_ROWS = 16
"""That spare most scores, which span more than a piece, the look at all of them."""
FAINT = 1e-30
"""Below this a score, or ``ΣF r``, has lost digits in single precision, and so would its logarithm."""


def fits(
    logits: Tensor, surrogate: Surrogate, activation: str, pairs: str | Tensor, term: LogTerm, *, plain: bool
) -> bool:
    """Whether this module has the loss; ``plain``: neither weights nor ignored samples nor other processes."""
    form = surrogate.closed_form
    return (
        plain
        and is_free(logits.device)
        and (_line_of(surrogate) is not None if form is None else form.kind == "squared" or form.alpha <= FLAT_ALPHA)
        and activation == "softmax"
        and isinstance(pairs, str)
        and term.ranks
        and logits.dtype in (torch.float32, torch.float64)
        and logits.numel() > 0
    )


class _Line(NamedTuple):
    """``ℓ(t) = at_zero + slope · t`` on ``(−reach, reach)``."""

    at_zero: float
    slope: float
    reach: float

    @property
    def all_scores(self) -> bool:
        """Whether no softmax leaves the line; differences of ±1 come from saturated ones, which pass no gradient on."""
        return self.reach >= 1.0


def _line_of(surrogate: Surrogate) -> _Line | None:
    """The straight piece around 0, if ℓ has one."""
    try:
        return _line(surrogate)
    except TypeError:  # cannot be hashed
        return _line.__wrapped__(surrogate)


@lru_cache(maxsize=256)
def _line(surrogate: Surrogate) -> _Line | None:
    for piece in surrogate.pieces:
        reach = min(-piece.low, piece.high)
        if reach > 0.0 and piece.coefficients is not None and len(piece.coefficients) == 2:
            return _Line(*piece.coefficients, reach)
    return None


class _Weights(NamedTuple):
    """As in :class:`mauc.nn._engine.batch.Batch`."""

    unit: Floats
    row: Floats
    column: Floats
    total: Floats


def _weights(y: Ints, size: Floats, pairs: str, class_counts: Floats | None) -> _Weights:
    here = np.sign(size)
    count = float(here.sum())
    unit = 1.0 / size[y]
    if pairs == "ovo":
        column = here / max(count * (count - 1.0), 1.0)
        return _Weights(unit, unit, column, column * (count - 1.0))
    share = here * ((count > 1.0) / max(count, 1.0))
    mass = size if class_counts is None else here * class_counts
    # Sums of the others from both ends: the whole less the class would cancel where one class is nearly all.
    others = np.zeros(len(mass))
    others[1:] = np.cumsum(mass[:-1])
    others[:-1] += np.cumsum(mass[:0:-1])[::-1]
    column = np.divide(share, others, out=np.zeros(len(mass)), where=others > 0)
    return _Weights(unit, unit * mass[y], column, share)


def evaluate(
    logits: Tensor,
    target: Tensor,
    surrogate: Surrogate,
    pairs: str,
    class_counts: Tensor | None,
    term: LogTerm,
) -> tuple[Tensor, Tensor] | None:
    """The loss, of float64, and its gradient with respect to the logits; None where the log-loss needs more care, or
    the scores meet more than a straight piece.
    """
    form = surrogate.closed_form
    line = _line_of(surrogate) if form is None else None
    if line is not None and not line.all_scores and not _within(torch.softmax(logits[:FEW_ROWS], 1), line):
        return None
    # Gradients are made in place, and torch's softmax writes in place only where rows lie one after the other.
    logits = logits.contiguous()
    y: Ints = target.numpy()
    counts: Floats | None = None if class_counts is None else class_counts.double().numpy()
    size = np.bincount(y, minlength=logits.shape[1]).astype(np.float64)
    weights = _weights(y, size, pairs, counts)
    ratios: Floats | None = None
    if term.share:
        if term.ratios is not None:
            ratios = term.ratios.double().numpy()
        else:
            known = size if counts is None else counts
            ratios = known if pairs == "ovo" else np.sign(known)
    with np.errstate(all="ignore"):
        batch = _Batch(logits, target, y, weights)
        if form is not None:
            value = (batch.squared if form.kind == "squared" else batch.exponential)(form.alpha)
        elif line is not None and (line.all_scores or _within(batch.scores, line)):
            value = batch.line(line)
        else:
            return None
        if ratios is None:
            batch.through()
        else:
            mixed = batch.mixed(ratios)
            if not (mixed.min() > FAINT and batch.own.min() > FAINT):
                return None
            surprise = np.log(mixed) - np.log(batch.own * ratios[y])
            value += term.share * float(surprise.mean())
            batch.through(ratios, mixed, term.share / len(y))
    return torch.tensor(value, dtype=torch.float64), batch.gradient


def _within(scores: Tensor, line: _Line) -> bool:
    """Whether all differences of these scores lie on the line."""
    x = scores.numpy()
    return bool((x.max(axis=0).astype(np.float64) - x.min(axis=0)).max() < line.reach)


class _Batch:
    """Scores ``F = softmax(z)``, and the gradient that takes shape in ``gradient``."""

    def __init__(self, logits: Tensor, target: Tensor, y: Ints, weights: _Weights) -> None:
        self.y, self.weights = y, weights
        self.dtype = np.float32 if logits.dtype == torch.float32 else np.float64
        self.blocks = chunks(logits)
        self.place = target[:, None]
        self.scores = torch.empty_like(logits) if len(self.blocks) > 1 else torch.softmax(logits, 1)
        if len(self.blocks) > 1:
            for k in self.blocks:
                torch.softmax(logits[k], 1, out=self.scores[k])
        self.own = self.scores.gather(1, self.place)[:, 0].double().numpy()
        self.gradient = torch.empty_like(logits)

    def _tensor(self, x: NDArray[np.floating]) -> Tensor:
        return torch.from_numpy(x.astype(self.dtype, copy=False))

    def mixed(self, ratios: Floats) -> Floats:
        """``(N,)`` ``ΣF r``."""
        found: Floats = torch.mv(self.scores, self._tensor(ratios)).double().numpy()
        return found

    def squared(self, alpha: float) -> float:
        """See :func:`mauc.nn._engine.moments.squared`."""
        y, (unit, row, column, total) = self.y, self.weights
        mean = np.bincount(y, unit * self.own, len(column))
        centred = self.own - mean[y]
        spread = np.bincount(y, unit * centred**2, len(column))
        origin, of_row, of_column = self._tensor(alpha - mean), self._tensor(row)[:, None], self._tensor(column)
        first, second = np.zeros(len(column)), 0.0
        for k in self.blocks:
            distance = take(self.scores, k) + origin
            part = torch.mul(distance, take(of_row, k), out=take(self.gradient, k))
            part.scatter_(1, take(self.place, k), 0.0)
            first += part.sum(0).numpy()
            second += float(torch.mv(distance.mul_(part), of_column).double().sum())
        first *= column
        self.column, self.at_own = 2.0 * column, 2.0 * unit * (total[y] * centred - first[y])
        return float(total @ spread) + second

    def line(self, line: _Line) -> float:
        """See :func:`mauc.kernels.moments.line_risk`: the slope does not depend on the scores."""
        y, (unit, row, column, total) = self.y, self.weights
        mean = np.bincount(y, unit * self.own, len(column))
        of_row, sum_q = self._tensor(row)[:, None], np.zeros(len(column))
        for k in self.blocks:
            part = take(self.gradient, k).copy_(take(of_row, k))
            part.scatter_(1, take(self.place, k), 0.0)
            sum_q += (part * take(self.scores, k)).sum(0).numpy()
        self.column, self.at_own = -line.slope * column, line.slope * unit * total[y]
        return float(total @ (line.at_zero + line.slope * mean) - line.slope * (column @ sum_q))

    def exponential(self, alpha: float) -> float:
        """See :func:`mauc.nn._engine.moments.exponential`."""
        y, (unit, row, column, _) = self.y, self.weights
        of_p = unit * np.exp(-alpha * self.own)
        log_row = self._tensor(np.log(row))[:, None]
        sum_q = np.zeros(len(column))
        for k in self.blocks:
            part = torch.add(take(log_row, k), take(self.scores, k), alpha=alpha, out=take(self.gradient, k)).exp_()
            part.scatter_(1, take(self.place, k), 0.0)
            sum_q += part.sum(0).numpy()
        sum_q *= column
        sum_p = np.bincount(y, of_p, len(column))
        self.column, self.at_own = alpha * column * sum_p, -alpha * of_p * sum_q[y]
        return float(sum_p @ sum_q)

    def through(self, ratios: Floats | None = None, mixed: Floats | None = None, share: float = 0.0) -> None:
        """``F ⊙ (G − Σ_i F G)`` with ``G`` as in :class:`mauc.nn._engine.moments.Slope`, and the log-loss's part.

        That is ``s (q − e_y)`` with ``q = F r / ΣF r``: ``s (q − F)`` is the same map of ``G = s r / ΣF r``.
        """
        scale, own = self._tensor(self.column), self._tensor(self.at_own)[:, None]
        if ratios is not None and mixed is not None:
            of_row, of_column = self._tensor(share / mixed), self._tensor(ratios)
            own += self._tensor(share * ratios[self.y] / mixed)[:, None]
            less = torch.full_like(own, -share)
        for k in self.blocks:
            part, score, place = take(self.gradient, k), take(self.scores, k), take(self.place, k)
            part.mul_(scale)
            if share:
                part.addr_(take(of_row, k), of_column)
            part.scatter_(1, place, take(own, k))
            torch.ops.aten._softmax_backward_data.out(part, score, 1, score.dtype, grad_input=part)
            if share:
                part.add_(score, alpha=share)
                part.scatter_add_(1, place, take(less, k))


def searches(scores: Tensor, batch: Batch) -> bool:
    """Whether :func:`ranked` may be called: values on the host, all of them numbers."""
    if not is_free(scores.device) or scores.numel() == 0:
        return False
    if batch.matrix is not None and scores.shape[1] > MOST_CLASSES:
        return False
    return math.isfinite(scores.sum().item())


def ranked(scores: Tensor, batch: Batch, pieces: tuple[Piece, ...], *, gradient: bool) -> Result:
    """:func:`mauc.kernels.piecewise.ranked_risk` of scores between 0 and 1, in one process."""
    problem, dtype = _problem(scores, batch)
    value, slope = ranked_risk(problem, list(pieces), gradient=gradient, dtype=dtype)
    return _result(value, slope)


def smooth(scores: Tensor, batch: Batch, piece: Piece, tolerance: float, *, gradient: bool) -> Result | None:
    """:func:`mauc.kernels.crowd_moments.crowd_moments_risk` of scores between 0 and 1, in one process; None where most
    are not near 0, or nothing is gained.
    """
    if scores.numel() < MANY or piece.half_width is None or not searches(scores, batch):
        return None
    short = _short_form(piece, tolerance)
    if short is None:
        return None
    problem, dtype = _problem(scores, batch)
    found = crowd_moments_risk(problem, piece.matrix, short, 0.5, piece.half_width, gradient=gradient, dtype=dtype)
    return None if found is None else _result(*found)


_SHORT_FORMS: dict[tuple[int, float], tuple[Floats, Floats | None]] = {}
MOST_SHORT_FORMS = 64


def _short_form(piece: Piece, tolerance: float) -> Floats | None:
    """Kept with the matrix it was made of, so that no other one gets its number."""
    key = (id(piece.matrix), tolerance)
    if key not in _SHORT_FORMS:
        assert piece.half_width is not None
        while len(_SHORT_FORMS) >= MOST_SHORT_FORMS:
            del _SHORT_FORMS[next(iter(_SHORT_FORMS))]
        _SHORT_FORMS[key] = piece.matrix, short_form(piece.matrix, 0.5, piece.half_width, tolerance)
    return _SHORT_FORMS[key][1]


def _problem(scores: Tensor, batch: Batch) -> tuple[Problem, np.dtype[Any]]:
    factors = v = None
    if batch.matrix is None:
        factors = (batch.row.numpy(), batch.column.numpy())
    else:
        weight_of = class_sum(batch.y, batch.row, scores.shape[1])
        v = torch.outer(batch.column, weight_of).sign_().mul_(batch.matrix.T).fill_diagonal_(0.0).numpy()
    x = scores.numpy()
    return Classes(batch.y.numpy(), batch.unit.numpy(), scores.shape[1], v, factors).with_scores(x), x.dtype


def _result(value: float, slope: NDArray[Any] | None) -> Result:
    found = torch.tensor(value, dtype=torch.float64)
    return found, None if slope is None else Slope(torch.from_numpy(slope), None, None)
