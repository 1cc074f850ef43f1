"""The loss on the CPU: few operations, and those on vectors in NumPy, whose calls cost a third of torch's.

Two walks over blocks of rows that stay in the caches: scores, their terms and column sums; then the slope through the
softmax. The log-loss takes the softmax that is there, ``softmax(z + log r) = F r / ΣF r``, instead of one of its own.
Small batches are left to :mod:`mauc.nn._engine.small`. Piecewise polynomials are left to
:mod:`mauc.kernels`, whose bins are faster than a search by halves.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mauc._typing import Floats, Ints
from mauc.kernels.piecewise import Piece, ranked_risk
from mauc.kernels.tiles import Classes, Problem
from mauc.nn._engine import small
from mauc.nn._engine.batch import Batch, chunks, class_sum, is_free, take
from mauc.nn._engine.forms import FAINT, Form, Line, Weights, form_of, log1p_risk, weights_of
from mauc.nn._engine.log_term import LogTerm
from mauc.nn._engine.moments import FLAT_ALPHA, Result, Slope
from mauc.surrogates import ClosedForm, Surrogate

__all__ = ["evaluate", "ranked", "searches"]

DTYPES = (torch.float32, torch.float64)
LOG2_E = 1.0 / math.log(2.0)
"""``exp(x) = 2 ** (LOG2_E · x)``, which torch has in a third of the time."""
MOST_CLASSES = 2048
"""Up to here own pair weights, ``(C, C)``, are no burden for the kernels."""
FEW_ROWS = 16
"""That spare most scores, which span more than a piece, the look at all of them."""


def evaluate(
    logits: Tensor,
    y: Ints,
    size: Floats,
    surrogate: Surrogate,
    activation: str,
    pairs: str | Tensor,
    class_counts: Tensor | None,
    term: LogTerm,
) -> tuple[float, Tensor] | None:
    """The loss of one process and its gradient with respect to the logits, where no sample is ignored or weighs more.

    ``size`` is ``(C,)``, the number of samples of each class. None for a loss of another form; where the log-loss needs
    more care; and where the scores meet more than a straight piece.
    """
    form: Form | Surrogate | None = form_of(surrogate)
    if isinstance(form, ClosedForm) and form.kind == "exponential" and form.alpha > FLAT_ALPHA:
        form = None
    if len(y) <= small.MOST_PAIRED and (form is None or (isinstance(form, Line) and not form.all_scores)):
        form = surrogate
    if (
        form is None
        or activation != "softmax"
        or not isinstance(pairs, str)
        or logits.dtype not in DTYPES
        or logits.numel() == 0
    ):
        return None
    counts: Floats | None = None
    if class_counts is not None and pairs == "ova":
        counts = class_counts.double().numpy()
    ratios: Floats | None = None if term.ratios is None else term.ratios.double().numpy()
    weights = weights_of(size, pairs, counts)
    if isinstance(form, Surrogate) or logits.numel() <= small.MOST:
        return small.evaluate(logits, y, form, weights, term.share, ratios, log1p=term.log1p)
    return _in_blocks(logits, y, form, weights, term.share, ratios, log1p=term.log1p)


@np.errstate(all="ignore")
def _in_blocks(
    logits: Tensor,
    y: Ints,
    form: Form,
    weights: Weights,
    share: float,
    ratios: Floats | None,
    *,
    log1p: bool,
) -> tuple[float, Tensor] | None:
    reach = form.reach if isinstance(form, Line) and not form.all_scores else np.inf
    if reach < 1.0 and not _within(torch.softmax(logits[:FEW_ROWS], 1), reach):
        return None
    batch = _Batch(logits, y, weights)
    if reach < 1.0 and not _within(batch.scores, reach):
        return None
    if isinstance(form, Line):
        value = batch.line(form)
    elif form.kind == "squared":
        value = batch.squared(form.alpha)
    else:
        value = batch.exponential(form.alpha, log1p=log1p)
    if ratios is None:
        batch.through()
    else:
        mixed = batch.mixed(ratios)
        if not (mixed.min() > FAINT and batch.own.min() > FAINT):
            return None
        value += share * float(np.log(mixed / (batch.own * ratios[y])).mean())
        batch.through(ratios, mixed, share / len(y))
    return value, batch.gradient


def _within(scores: Tensor, reach: float) -> bool:
    """Whether all differences of these scores lie on a line."""
    x = scores.numpy()
    return bool((x.max(axis=0).astype(np.float64) - x.min(axis=0)).max() < reach)


class _Batch:
    """Scores ``F = softmax(z)``, and the gradient that takes shape in ``gradient``."""

    def __init__(self, logits: Tensor, y: Ints, weights: Weights) -> None:
        unit, row, self.column, self.total = weights
        self.y, self.unit, self.row = y, unit[y], row[y]
        self.blocks = chunks(logits)
        # Gradients are made in place, and torch's softmax writes in place only where rows lie one after the other.
        logits = logits.contiguous()
        self.scores, self.gradient = torch.empty_like(logits), torch.empty_like(logits)
        self.flat = self.gradient.numpy().reshape(-1)
        self.dtype = self.flat.dtype
        self.at = np.arange(0, logits.numel(), logits.shape[1]) + y
        """Where the scores of the samples' own classes lie."""
        for k in self.blocks:
            torch.softmax(take(logits, k), 1, out=take(self.scores, k))
        self.own: Floats = self.scores.numpy().take(self.at).astype(np.float64)

    def _tensor(self, x: NDArray[np.floating]) -> Tensor:
        return torch.from_numpy(x.astype(self.dtype, copy=False))

    def mixed(self, ratios: Floats) -> Floats:
        """``(N,)`` ``ΣF r``."""
        found: Floats = torch.mv(self.scores, self._tensor(ratios)).double().numpy()
        return found

    def squared(self, alpha: float) -> float:
        """See :func:`mauc.nn._engine.moments.squared`."""
        y, unit, column, total = self.y, self.unit, self.column, self.total
        mean = np.bincount(y, unit * self.own, len(column))
        centred = self.own - mean[y]
        spread = np.dot(unit, centred**2)
        origin, of_row, of_column = self._tensor(alpha - mean), self._tensor(self.row)[:, None], self._tensor(column)
        first, second = np.zeros(len(column)), 0.0
        for k in self.blocks:
            distance = take(self.scores, k) + origin
            part = torch.mul(distance, take(of_row, k), out=take(self.gradient, k))
            self.flat[self.at[k]] = 0.0
            first += part.sum(0).numpy()
            second += float(torch.mv(distance.mul_(part), of_column).double().sum())
        first *= column
        self.scale, self.at_own = 2.0 * column, 2.0 * unit * (total * centred - first[y])
        return total * float(spread) + second

    def line(self, line: Line) -> float:
        """See :func:`mauc.kernels.moments.line_risk`: the slope does not depend on the scores."""
        unit, column, total = self.unit, self.column, self.total
        of_row, sum_q = self._tensor(self.row)[:, None], np.zeros(len(column))
        for k in self.blocks:
            part = take(self.gradient, k).copy_(take(of_row, k))
            self.flat[self.at[k]] = 0.0
            sum_q += (part * take(self.scores, k)).sum(0).numpy()
        self.scale, self.at_own = -line.slope * column, line.slope * total * unit
        return float(line.at_zero * (total > 0) + self.at_own @ self.own + self.scale @ sum_q)

    def exponential(self, alpha: float, *, log1p: bool) -> float:
        """See :func:`mauc.nn._engine.moments.exponential`."""
        y, column = self.y, self.column
        of_p = self.unit * np.exp(-alpha * self.own)
        log_row = self._tensor(np.log2(self.row))[:, None]
        sum_q = np.zeros(len(column))
        for k in self.blocks:
            part = torch.add(take(log_row, k), take(self.scores, k), alpha=LOG2_E * alpha, out=take(self.gradient, k))
            part.exp2_()
            self.flat[self.at[k]] = 0.0
            sum_q += part.sum(0).numpy()
        sum_q *= column
        sum_p: Floats = np.bincount(y, of_p, len(column))  # type: ignore[assignment]
        value = float(sum_p @ sum_q)
        if log1p:
            value, slope = log1p_risk(sum_p * sum_q, self.total)
            sum_p, sum_q = sum_p * slope, sum_q * slope
        self.scale, self.at_own = alpha * column * sum_p, -alpha * of_p * sum_q[y]
        return value

    def through(self, ratios: Floats | None = None, mixed: Floats | None = None, share: float = 0.0) -> None:
        """``F ⊙ (G − Σ_i F G)`` with ``G`` as in :class:`mauc.nn._engine.moments.Slope`, and the log-loss's part.

        That is ``s (q − e_y)`` with ``q = F r / ΣF r``, the same map of ``G = s (r / ΣF r − e_y / F_y)``.
        """
        scale, own = self._tensor(self.scale), self.at_own
        if ratios is not None and mixed is not None:
            own = own + share * (ratios[self.y] / mixed - 1.0 / self.own)
            of_row, of_column = self._tensor(share / mixed)[:, None], self._tensor(ratios)
        for k in self.blocks:
            part, score = take(self.gradient, k), take(self.scores, k)
            part.mul_(scale)
            if share:
                part.addcmul_(take(of_row, k), of_column)
            self.flat[self.at[k]] = own[k]
            torch._softmax_backward_data(part, score, 1, score.dtype, grad_input=part)


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
