"""Shift the log-weights of the classes so that decisions cost least: coordinate descent by exact sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mauc._typing import Floats, Ints

ROUNDING = 1e-12
"""Differences of the objective that count as equal; the largest cost is 1."""


def cheapest(posterior: Floats, costs: Floats) -> Ints:
    """Return the ``(N,)`` decisions of least expected cost, ``argmin_j Σ_i q_i c_ij``; the first of equal ones."""
    return (posterior @ costs).argmin(axis=1)


@dataclass(frozen=True, eq=False)
class DecisionProblem:
    """The samples on which decisions are scored, and the penalty of the shifts."""

    posterior: Floats
    """``(N, C)`` numbers >= 0, each row up to a factor."""
    codes: Ints
    """``(N,)`` true classes."""
    weight: Floats
    """``(N,)`` sample weights; their sum is 1."""
    costs: Floats
    """``(C, C)``: ``[i, j]`` is the cost >= 0 of deciding for class j if class i is true."""
    penalty: Floats
    """``(C, C)`` symmetric ``κ_ij >= 0`` with a diagonal of 0."""
    metric: Callable[[Ints], float] | None = None
    """Function of ``(N,)`` decisions to maximise; None: minimise the cost."""

    def decisions(self, shifts: Floats) -> Ints:
        r"""Return :math:`d_n = \arg\min_j \sum_i e^{\delta_i} q_{ni} c_{ij}`."""
        return cheapest(self.posterior * np.exp(shifts), self.costs)

    def loss(self, shifts: Floats) -> float:
        r"""Return :math:`\sum_n w_n c_{y_n d_n}`, or the negative metric."""
        taken = self.decisions(shifts)
        return -self.metric(taken) if self.metric else float(self.weight @ self.costs[self.codes, taken])

    def objective(self, shifts: Floats) -> float:
        r"""Return the loss plus :math:`\sum_{i < j} \kappa_{ij} (\delta_i - \delta_j)^2`."""
        return self.loss(shifts) + 0.5 * float((self.penalty * (shifts[:, None] - shifts) ** 2).sum())


def least_loss(problem: DecisionProblem, start: Floats, max_rounds: int = 50) -> tuple[Floats, float]:
    """Return shifts that no change of a single class improves, and their objective.

    One round costs ``O(N C² (C + log N))``.
    """
    shifts, least = start, problem.objective(start)
    for _ in range(max_rounds):
        before = least
        for k in range(len(shifts)):
            tried = _with_shift(shifts, k, _sweep(problem, shifts, k))
            value = problem.objective(tried)
            if value < least - ROUNDING:
                shifts, least = tried, value
        if least == before:
            break
    return shifts, least


def _with_shift(shifts: Floats, k: int, shift: float) -> Floats:
    return np.where(np.arange(len(shifts)) == k, shift, shifts)


def _sweep(problem: DecisionProblem, shifts: Floats, k: int, max_tried: int = 64) -> float:
    """Return the shift of class k of least objective, the others fixed.

    As the weight of class k grows, a row changes its decision where the expected costs of two decisions, which are
    lines in that weight, meet. Between two changes the cost is constant. In each interval one shift is tried: that of
    the least penalty if it lies inside, else the middle. A metric is no sum over rows: it is evaluated in at most
    ``max_tried`` intervals.
    """
    others = problem.posterior * np.exp(shifts)
    others[:, k] = 0.0
    changes = lowest_lines(others @ problem.costs, problem.posterior[:, [k]] * problem.costs[k])
    order = np.argsort(changes.at, kind="stable")
    edges = np.log(changes.at[order])
    last = np.flatnonzero(np.diff(edges, append=np.inf) > 0)
    pull = float(problem.penalty[k].sum())
    centre = float(problem.penalty[k] @ shifts / pull) if pull > 0 else float(shifts[k])
    points = _points(edges[last], centre)
    if problem.metric is None:
        true = problem.codes[changes.rows]
        change = problem.weight[changes.rows] * (
            problem.costs[true, changes.after] - problem.costs[true, changes.before]
        )
        loss = np.append(0.0, np.cumsum(change[order])[last])
    else:
        points = points[np.unique(np.linspace(0, len(points) - 1, max_tried).round().astype(np.int64))]
        loss = np.array([problem.loss(_with_shift(shifts, k, point)) for point in points])
    value = loss + pull * (points - centre) ** 2
    best = np.flatnonzero(value <= value.min() + ROUNDING)
    return float(points[best[np.abs(points[best] - centre).argmin()]])


def _points(edges: Floats, centre: float) -> Floats:
    """Return a point in each interval between and beyond the edges: ``centre`` if it is inside, else the middle."""
    if len(edges) == 0:
        return np.array([centre])
    low, high = np.append(-np.inf, edges), np.append(edges, np.inf)
    middle = np.concatenate([[edges[0] - 1.0], 0.5 * (edges[1:] + edges[:-1]), [edges[-1] + 1.0]])
    return np.where((low < centre) & (centre < high), centre, middle)


class _Changes(NamedTuple):
    """``(M,)`` positions at which the lowest line of a row changes, the rows, and the lines before and after."""

    at: Floats
    rows: Ints
    before: Ints
    after: Ints


def lowest_lines(intercept: Floats, slope: Floats) -> _Changes:
    """Find where the lowest of the C lines ``intercept + t · slope`` of each row changes, for t > 0.

    A row changes to the line that meets its current line first; if several meet it there, to the flattest. The first
    changes of all rows cost ``O(N C)``; further ones cost as much for the rows that have them.
    """
    current = np.where(intercept <= intercept.min(axis=1, keepdims=True), slope, np.inf).argmin(axis=1)
    rows = np.arange(len(intercept))
    found: list[tuple[Floats, Ints, Ints, Ints]] = []
    while len(rows):
        before = current[rows]
        fall = np.take_along_axis(slope[rows], before[:, None], axis=1) - slope[rows]
        rise = intercept[rows] - np.take_along_axis(intercept[rows], before[:, None], axis=1)
        meets = np.full_like(fall, np.inf)
        np.divide(rise, fall, out=meets, where=fall > 0)
        at = meets.min(axis=1)
        after = np.where(meets <= at[:, None], slope[rows], np.inf).argmin(axis=1)
        more = np.isfinite(at)
        rows, before, after = rows[more], before[more], after[more]
        current[rows] = after
        found.append((at[more], rows, before, after))
    return _Changes(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
