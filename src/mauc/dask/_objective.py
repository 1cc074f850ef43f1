"""The objective of the linear model as sums over partitions: one graph with two rounds of tasks per evaluation.

The exponential risk is a function of two sums for each class. Each worker adds up these sums over its partitions and
sends them; once the total is known, it adds up and sends its gradient. The rows stay on the workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mauc._typing import Floats, Ints
from mauc.activations import activate, pull_back
from mauc.dask._partitions import Task, run, shared, task, tree
from mauc.linear._objective import Objective
from mauc.log_loss import LogTerm


class Part(NamedTuple):
    """Some rows of a training set."""

    X: Any
    codes: Ints
    share: Floats
    """``(n,)`` share of each row in the weight of its class."""
    v: Floats
    """``(C, C)`` pair weights."""
    log_term: LogTerm | None


@dataclass
class PartitionedObjective(Objective):
    """Value and gradient at ``θ`` of persisted parts.

    For ``ℓ(t) = exp(−α t)`` the risk is ``R = Σ_i (Σ_m a_m exp(−α P_m)) (Σ_n ω_n exp(α Q_n))``, computed by the
    logarithms of both sums. In column i of the scores, P are those of the rows of class i, with weights a (``share``),
    and Q those of the other rows, with weights ω.
    """

    parts: list[Task]
    """Lists of parts, each on one worker."""
    alpha: float
    activation: str
    fit_intercept: bool
    l2: float
    shape: tuple[int, int]

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and the flat gradient."""
        weights, intercept = self.split(theta)
        at = shared((weights, intercept))
        forward = [(some, task(_forward, self.activation, some, at)) for some in self.parts]
        sums = tree(_add_sums, [task(_sums, self.alpha, *each) for each in forward])
        gradients = [task(_gradient, self.alpha, self.activation, sums, *each) for each in forward]
        of_all, (lost, gradient) = run(sums, tree(_add, gradients))
        with np.errstate(over="ignore"):
            risk = float(np.exp(of_all.sum(axis=0)).sum())
        penalty = 0.5 * self.l2 * float(np.vdot(weights, weights))
        gradient[:, : weights.shape[1]] += self.l2 * weights
        return risk + lost + penalty, gradient[:, : self.shape[1]].ravel()


# The tasks; the dashboard shows their names.


class Forward(NamedTuple):
    """The scores of a part, and the value and the gradient in the logits of its log-loss."""

    scores: Floats
    lost: float
    of_logs: Floats | float


def _forward(activation: str, parts: list[Part], at: tuple[Floats, Floats | None]) -> list[Forward]:
    weights, intercept = at
    found = []
    for part in parts:
        logits = np.asarray(part.X @ weights.T + (0.0 if intercept is None else intercept), dtype=np.float64)
        lost, of_logs = (0.0, 0.0) if part.log_term is None else part.log_term.of_logits(logits, slice(None))
        found.append(Forward(activate(logits, activation), lost, of_logs))
    return found


def _sums(alpha: float, parts: list[Part], forward: list[Forward]) -> Floats:
    """Return the ``(2, C)`` logarithms of both sums."""
    found = []
    for part, (scores, _, _) in zip(parts, forward, strict=True):
        of_p, of_q = _terms(alpha, part, scores)
        of_p = np.where(part.codes[:, None] == np.arange(of_q.shape[1]), of_p[:, None], -np.inf)
        found.append(np.stack([_log_sum(of_p), _log_sum(of_q)]))
    return _add_sums(found)


def _add_sums(parts: Sequence[Floats]) -> Floats:
    return np.asarray(np.logaddexp.reduce(parts, axis=0))


def _gradient(
    alpha: float, activation: str, sums: Floats, parts: list[Part], forward: list[Forward]
) -> tuple[float, Floats]:
    """Return the log-loss and the ``(C, d + 1)`` gradient, from the sums of all partitions."""
    found = []
    for part, (scores, lost, of_logs) in zip(parts, forward, strict=True):
        of_p, of_q = _terms(alpha, part, scores)
        with np.errstate(over="ignore"):
            slope = alpha * np.exp(of_q + sums[0])
            slope[np.arange(len(scores)), part.codes] = -alpha * np.exp(of_p + sums[1][part.codes])
        slope = pull_back(scores, slope, activation) + of_logs
        found.append((lost, np.column_stack([np.asarray(slope.T @ part.X), slope.sum(axis=0)])))
    return _add(found)


def _add(parts: list[tuple[float, Floats]]) -> tuple[float, Floats]:
    return sum(lost for lost, _ in parts), np.sum([gradient for _, gradient in parts], axis=0)


def _terms(alpha: float, part: Part, scores: Floats) -> tuple[Floats, Floats]:
    """Return the logarithms of the terms of each row as a positive, and of each score as a negative."""
    omega = part.v.T[part.codes] * part.share[:, None]  # 0 in the column of the own class
    with np.errstate(divide="ignore"):
        of_p = np.log(part.share) - alpha * scores[np.arange(len(scores)), part.codes]
        return of_p, np.log(omega) + alpha * scores


def _log_sum(logarithms: Floats) -> Floats:
    """Return the ``(C,)`` logarithm of the sum of each column; several times as fast as ``np.logaddexp.reduce``."""
    peak = logarithms.max(axis=0, initial=-np.inf)
    shift = np.where(np.isneginf(peak), 0.0, peak)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logarithms - shift).sum(axis=0)) + shift)
