"""The objective of the linear model from parts of the training set that are never in one place.

The risk is not a sum over samples, but it is a function of few sums: of moments of both sides of each column, or, for
piecewise surrogates, of the sorted own-class scores of all samples. So an evaluation goes to the parts twice: for these
sums, and, once they are known, for the gradient, which adds up. :class:`RowParts` says what is done with a part; who
carries sums and parts to and fro is for the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from mauc._typing import Floats
from mauc._validation import invalid
from mauc.activations import BOUNDED, activate, pull_back
from mauc.kernels.moments import chebyshev_moments, polynomial_slope
from mauc.kernels.piecewise import Piece, RankedSums
from mauc.kernels.search import sort_columns
from mauc.kernels.tiles import Classes, Problem, tiles
from mauc.log_loss import LogTerm
from mauc.metrics.partial_counts import OwnScores, merge
from mauc.plan import needs_range
from mauc.risk import SurrogateRisk

__all__ = ["Forward", "MomentSums", "Part", "RankedParts", "RowParts", "additive_risk", "range_matters"]


class Part(NamedTuple):
    """Some rows of a training set; ``unit`` of the classes are shares in the weight of the whole class."""

    X: Any
    classes: Classes
    log_term: LogTerm | None


class Forward(NamedTuple):
    """The scores of a part, with what the log-loss leaves for the gradient."""

    scores: Floats
    log_loss: float
    of_logs: Floats | None
    """``(n, C)`` gradient of the log-loss in the logits, where the scores are not their softmax."""


@dataclass(frozen=True)
class RowParts:
    """Forward and back through a part: ``θ ↦`` scores, and the slope in the scores ``↦`` the gradient in ``θ``."""

    activation: str
    fit_intercept: bool

    def forward(self, part: Part, theta: Floats) -> Forward:
        """``theta`` is ``[W, b]`` of shape ``(C, d + 1)``, or ``W``."""
        weights, term, rows = theta[:, : part.X.shape[1]], part.log_term, slice(None)
        logits = np.ascontiguousarray(part.X @ weights.T, dtype=np.float64)
        if self.fit_intercept:
            logits += theta[:, -1]
        if term is None:
            return Forward(activate(logits, self.activation), 0.0, None)
        if self.activation == "softmax":
            lost, scores = term.with_softmax(logits, rows)
            return Forward(scores, lost, None)
        lost, of_logs = term.of_logits(logits, rows)
        return Forward(activate(logits, self.activation), lost, of_logs)

    def gradient(self, part: Part, forward: Forward, slope: Floats) -> Floats:
        """``(C, d + 1)`` or ``(C, d)`` gradient of a part, from the slope of the risk in its scores."""
        slope = pull_back(forward.scores, slope, self.activation)
        if forward.of_logs is not None:
            slope += forward.of_logs
        elif part.log_term is not None:
            part.log_term.add_gradient(forward.scores, slope, slice(None))
        product = np.asarray(slope.T @ part.X)
        return np.column_stack([product, slope.sum(axis=0)]) if self.fit_intercept else product


class MomentSums(Protocol):
    """A risk that is known from sums over the samples."""

    def sums(self, problem: Problem) -> Any:
        """Those of a part."""

    def add(self, parts: Sequence[Any]) -> Any:
        """Those of several parts together."""

    def value(self, sums: Any) -> float:
        """The risk, from the sums of all parts."""

    def slope(self, problem: Problem, sums: Any) -> Floats:
        """``(n, C)`` gradient in the scores of a part, from the sums of all."""


def _weights(classes: Classes) -> Floats:
    """``(n, C)`` weight of each score as a negative; 0 in the sample's own column."""
    return np.asarray(classes.of_negative[classes.y] * classes.unit[:, None])


class _Spread(NamedTuple):
    """Of the positives and the negatives of each column, ``(2, C)`` each."""

    weight: Floats
    mean: Floats
    squares: Floats
    """Weighted sum of squared distances from the mean."""


@dataclass(frozen=True)
class _Squared:
    """``ℓ(t) = (α − t)²``: ``V (Var P + Var Q + (α − mean P + mean Q)²)``, column by column.

    Means and squares about them, put together as such: sums of plain squares would cancel.
    """

    alpha: float

    def sums(self, problem: Problem) -> _Spread:
        y, unit, n_classes = problem.classes.y, problem.classes.unit, problem.classes.n_classes
        negative = _weights(problem.classes)
        weight = np.stack([np.bincount(y, unit, n_classes), negative.sum(axis=0)])
        summed = np.stack(
            [np.bincount(y, unit * problem.own, n_classes), np.einsum("nc,nc->c", negative, problem.scores)]
        )
        mean = np.divide(summed, weight, out=np.zeros_like(summed), where=weight > 0)
        of_p = np.bincount(y, unit * (problem.own - mean[0][y]) ** 2, n_classes)
        return _Spread(weight, mean, np.stack([of_p, np.einsum("nc,nc->c", negative, (problem.scores - mean[1]) ** 2)]))

    def add(self, parts: Sequence[_Spread]) -> _Spread:
        weight = np.sum([part.weight for part in parts], axis=0)
        summed = np.sum([part.weight * part.mean for part in parts], axis=0)
        mean = np.divide(summed, weight, out=np.zeros_like(summed), where=weight > 0)
        squares = np.sum([part.squares + part.weight * (part.mean - mean) ** 2 for part in parts], axis=0)
        return _Spread(weight, mean, squares)

    def value(self, sums: _Spread) -> float:
        gap = self.alpha - sums.mean[0] + sums.mean[1]
        return float(np.sum(sums.weight[1] * (sums.squares[0] + gap**2) + sums.squares[1]))

    def slope(self, problem: Problem, sums: _Spread) -> Floats:
        y, unit = problem.classes.y, problem.classes.unit
        (mean_p, mean_q), total = sums.mean, sums.weight[1]
        gap = self.alpha - mean_p + mean_q
        slope = 2.0 * _weights(problem.classes) * (problem.scores - mean_q + gap)
        slope[np.arange(len(y)), y] = -2.0 * unit * total[y] * (gap[y] - (problem.own - mean_p[y]))
        return np.asarray(slope)


@dataclass(frozen=True)
class _Exponential:
    """``ℓ(t) = exp(−α t)``: ``R = Σ_i (Σ_m a_m exp(−α P_m)) (Σ_n ω_n exp(α Q_n))``; logarithms of both sums travel."""

    alpha: float

    def _terms(self, problem: Problem) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore"):
            of_p = np.log(problem.classes.unit) - self.alpha * problem.own
            of_q = np.log(_weights(problem.classes))
        of_q += self.alpha * problem.scores
        return of_p, of_q

    def sums(self, problem: Problem) -> Floats:
        """``(2, C)`` logarithms."""
        y, n_classes = problem.classes.y, problem.classes.n_classes
        of_p, of_q = self._terms(problem)
        peak = np.full((2, n_classes), -np.inf)
        np.maximum.at(peak[0], y, of_p)
        peak[1] = of_q.max(axis=0, initial=-np.inf)
        shift = np.where(np.isneginf(peak), 0.0, peak)
        total = np.stack([np.bincount(y, np.exp(of_p - shift[0][y]), n_classes), np.exp(of_q - shift[1]).sum(axis=0)])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(total) + shift)

    def add(self, parts: Sequence[Floats]) -> Floats:
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def value(self, sums: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(sums.sum(axis=0)).sum())

    def slope(self, problem: Problem, sums: Floats) -> Floats:
        y = problem.classes.y
        of_p, of_q = self._terms(problem)
        with np.errstate(over="ignore"):
            slope = self.alpha * np.exp(of_q + sums[0])
            slope[np.arange(len(y)), y] = -self.alpha * np.exp(of_p + sums[1][y])
        return np.asarray(slope)


@dataclass(frozen=True, eq=False)
class _Polynomial:
    """As :func:`mauc.kernels.moments.polynomial_risk`; ``centre`` is the middle of each column's range."""

    matrix: Floats
    half_width: float
    centre: Floats

    def sums(self, problem: Problem) -> Floats:
        return chebyshev_moments(problem, self.centre, self.half_width, len(self.matrix) - 1)

    def add(self, parts: Sequence[Floats]) -> Floats:
        return np.asarray(np.sum(parts, axis=0))

    def value(self, sums: Floats) -> float:
        return float(np.sum(sums[0] * (self.matrix @ sums[1])))

    def slope(self, problem: Problem, sums: Floats) -> Floats:
        return polynomial_slope(problem, self.centre, self.half_width, self.matrix, sums)


class Visited(NamedTuple):
    """What the negatives of a part give and find."""

    value: float
    landed: list[Floats]
    """What they hand to the positives: adds up over parts."""
    slope: Floats
    """``(n, C)``; the own columns are still to come."""


@dataclass(frozen=True, eq=False)
class RankedParts:
    """As :func:`mauc.kernels.piecewise.ranked_risk`: the own-class scores travel, and what lands on them."""

    pieces: list[Piece]
    centre: Floats | None

    def own(self, problem: Problem) -> OwnScores:
        """Of a part; they are put together by :func:`mauc.metrics.partial_counts.merge`."""
        classes = problem.classes
        return OwnScores.of(classes.y, problem.own, classes.n_classes, np.asarray(classes.unit))

    def table(self, own: Sequence[OwnScores]) -> RankedSums:
        """What all negatives are held against."""
        whole = merge(own)
        offsets = np.concatenate([[0], np.cumsum([len(values) for values in whole.values])])
        exponents = whole.totals.exponent.tolist()
        mass = [np.ldexp(np.asarray(each), by) for each, by in zip(whole.mass, exponents, strict=True)]
        values = np.concatenate(whole.values).astype(np.float64, copy=False)
        return RankedSums(sort_columns(values, offsets, np.concatenate(mass)), self.pieces, self.centre)

    def visit(self, problem: Problem, table: RankedSums) -> Visited:
        """The negatives of a part."""
        slope = np.zeros(problem.scores.shape)
        return Visited(*table.visit(tiles(problem), slope), slope)

    def add(self, parts: Sequence[tuple[float, list[Floats]]]) -> tuple[float, list[Floats]]:
        """Values, and what has landed, of several parts."""
        landed = [np.sum(each, axis=0) for each in zip(*(part[1] for part in parts), strict=True)]
        return sum(part[0] for part in parts), landed

    def slope(self, problem: Problem, table: RankedSums, visited: Visited, of_values: Floats) -> Floats:
        """The gradient in the scores of a part; ``of_values`` is what ``table.collect`` made of all landings."""
        y, unit = problem.classes.y, problem.classes.unit
        start, values = table.table.start, table.table.values
        for k in np.unique(y).tolist():
            mine = np.flatnonzero(y == k)
            at = start[k] + np.searchsorted(values[start[k] : start[k + 1] - 1], problem.own[mine])
            own = unit[mine] * of_values[at]
            visited.slope[mine, k] = np.where(np.isnan(own), 0.0, own)
        return visited.slope


def range_matters(risk: SurrogateRisk, activation: str) -> bool:
    """Whether the scores must be looked at before their sums can be taken: softmax and sigmoid have a range anyway."""
    return activation not in BOUNDED and risk.surrogate.closed_form is None and needs_range(risk.surrogate)


def additive_risk(risk: SurrogateRisk, low: Floats, high: Floats, *, bounded: bool = False) -> MomentSums | RankedParts:
    """The risk in sums, for scores from ``low`` to ``high``, ``(C,)`` each; the ends count where the range matters or
    the scores are those of a softmax or sigmoid (``bounded``).
    """
    surrogate, form = risk.surrogate, risk.surrogate.closed_form
    if risk.scheme in ("blocked", "pairwise"):
        advice = "pairs of samples on different workers cannot be taken one by one; use 'auto'"
        raise invalid("scheme", "must be 'auto', 'moments' or 'ranked' here", repr(risk.scheme), advice)
    if form is not None:
        return _Squared(form.alpha) if form.kind == "squared" else _Exponential(form.alpha)
    found = risk.plan_for(float((high - low).max()) if bounded or needs_range(surrogate) else np.inf, bounded=bounded)
    if found is None:
        advice = "use another surrogate, a larger tolerance, or activation='softmax'"
        came = f"{surrogate.name} on scores that differ by {float((high - low).max()):g}"
        raise invalid("surrogate", "must be a polynomial, in pieces, within the tolerance", came, advice)
    centre = low + 0.5 * (high - low)
    if found.scheme == "ranked":
        return RankedParts(list(found.pieces), centre)
    (piece,) = found.pieces
    assert piece.half_width is not None
    return _Polynomial(piece.matrix, piece.half_width, centre)
