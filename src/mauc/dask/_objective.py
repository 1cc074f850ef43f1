"""The objective of the linear model as sums over partitions: one graph with two rounds of tasks per evaluation.

The exponential risk is a function of two sums for each class. Each partition sends these sums first and, once the
total is known, its gradient. The rows stay on the workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed

from mauc._typing import Floats, Ints
from mauc._validation import invalid
from mauc.activations import activate, pull_back
from mauc.dask._partitions import run, shared, task, tree
from mauc.linear._objective import Objective
from mauc.log_loss import LogTerm
from mauc.risk import SurrogateRisk


class Part(NamedTuple):
    """Some rows of a training set."""

    X: Any
    codes: Ints
    share: Floats
    """``(n,)`` share of each row in the weight of its class."""
    v: Floats
    """``(C, C)`` pair weights."""
    log_term: LogTerm | None

    @property
    def negative(self) -> Floats:
        """Return the ``(n, C)`` weight of each score as a negative; 0 in the row's own column."""
        return np.asarray(self.v.T[self.codes] * self.share[:, None])


@dataclass(frozen=True)
class Exponential:
    """``ℓ(t) = exp(−α t)``: ``R = Σ_i (Σ_m a_m exp(−α P_m)) (Σ_n ω_n exp(α Q_n))``, by the logarithms of both sums.

    In column i of the scores, P are those of the rows of class i, with weights a (``share``), and Q those of the other
    rows, with weights ω (``negative``).
    """

    alpha: float

    def _terms(self, part: Part, scores: Floats) -> tuple[Floats, Floats]:
        """Return the logarithms of the terms of each row as a positive, and of each score as a negative."""
        with np.errstate(divide="ignore"):
            of_p = np.log(part.share) - self.alpha * scores[np.arange(len(scores)), part.codes]
            return of_p, np.log(part.negative) + self.alpha * scores

    def sums(self, part: Part, scores: Floats) -> Floats:
        """Return the ``(2, C)`` logarithms of both sums."""
        of_p, of_q = self._terms(part, scores)
        of_p = np.where(part.codes[:, None] == np.arange(scores.shape[1]), of_p[:, None], -np.inf)
        return np.stack([_log_sum(of_p), _log_sum(of_q)])

    def add(self, parts: Sequence[Floats]) -> Floats:
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def value(self, sums: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(sums.sum(axis=0)).sum())

    def slope(self, part: Part, scores: Floats, sums: Floats) -> Floats:
        """Return the ``(n, C)`` gradient in the scores, from the sums of all partitions."""
        of_p, of_q = self._terms(part, scores)
        with np.errstate(over="ignore"):
            slope = self.alpha * np.exp(of_q + sums[0])
            slope[np.arange(len(scores)), part.codes] = -self.alpha * np.exp(of_p + sums[1][part.codes])
        return np.asarray(slope)


def _log_sum(logarithms: Floats) -> Floats:
    """Return the ``(C,)`` logarithm of the sum of each column; several times as fast as ``np.logaddexp.reduce``."""
    peak = logarithms.max(axis=0, initial=-np.inf)
    shift = np.where(np.isneginf(peak), 0.0, peak)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logarithms - shift).sum(axis=0)) + shift)


def closed_form(risk: SurrogateRisk) -> Exponential:
    """Return the sums of a risk; raise an error if it is not exponential."""
    form = risk.surrogate.closed_form
    if form is None or form.kind != "exponential":
        advice = "train the others in memory, on a sample of the rows, by mauc.MAUCClassifier"
        raise invalid("surrogate", "must be 'exponential' on Dask", risk.surrogate.name, advice)
    return Exponential(form.alpha)


@dataclass
class PartitionedObjective(Objective):
    """Value and gradient at ``θ`` of persisted parts."""

    parts: list[Delayed]
    form: Exponential
    activation: str
    fit_intercept: bool
    l2: float
    shape: tuple[int, int]

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and the flat gradient."""
        weights, intercept = self.split(theta)
        at = shared((weights, intercept))
        forward = [(part, task(_forward, self.activation, part, at)) for part in self.parts]
        sums = tree(self.form.add, [task(_sums, self.form, *each) for each in forward])
        gradients = [task(_gradient, self.form, self.activation, sums, *each) for each in forward]
        of_all, (lost, gradient) = run(sums, tree(_add, gradients))
        penalty = 0.5 * self.l2 * float(np.vdot(weights, weights))
        gradient[:, : weights.shape[1]] += self.l2 * weights
        return self.form.value(of_all) + lost + penalty, gradient[:, : self.shape[1]].ravel()


# The tasks; the dashboard shows their names.


def _forward(activation: str, part: Part, at: tuple[Floats, Floats | None]) -> tuple[Floats, float, Floats | float]:
    """Return the scores, and the value and the gradient in the logits of the log-loss."""
    weights, intercept = at
    logits = np.asarray(part.X @ weights.T + (0.0 if intercept is None else intercept), dtype=np.float64)
    lost, of_logs = (0.0, 0.0) if part.log_term is None else part.log_term.of_logits(logits, slice(None))
    return activate(logits, activation), lost, of_logs


def _sums(form: Exponential, part: Part, forward: tuple[Floats, float, Any]) -> Floats:
    return form.sums(part, forward[0])


def _gradient(
    form: Exponential, activation: str, sums: Floats, part: Part, forward: tuple[Floats, float, Any]
) -> tuple[float, Floats]:
    """Return the log-loss and the ``(C, d + 1)`` gradient."""
    scores, lost, of_logs = forward
    slope = pull_back(scores, form.slope(part, scores, sums), activation) + of_logs
    return lost, np.column_stack([np.asarray(slope.T @ part.X), slope.sum(axis=0)])


def _add(parts: list[tuple[float, Floats]]) -> tuple[float, Floats]:
    return sum(lost for lost, _ in parts), np.sum([gradient for _, gradient in parts], axis=0)
