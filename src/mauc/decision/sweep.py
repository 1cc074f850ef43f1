"""What the classes have to weigh so that decisions on a sample are cheapest: coordinate descent by exact sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mauc._typing import Floats, Ints

__all__ = ["Judged", "cheapest", "least_loss"]

MOST_ROUNDS = 50
SAME = 1e-12
"""Differences of rounding, in units of the largest cost."""
MOST_TRIED = 64
"""Intervals in which a metric is asked, which no sum over the rows tells."""


def cheapest(posterior: Floats, costs: Floats) -> Ints:
    """``(N,)`` decision of least expected cost, ``argmin_j Σ_i q_i c_ij``; the first of equal ones."""
    return (posterior @ costs).argmin(axis=1)


@dataclass(frozen=True, eq=False)
class Judged:
    """A sample on which decisions are judged, and what holds the weights of its classes together."""

    posterior: Floats
    """``(N, C)`` numbers >= 0, each row up to a factor."""
    codes: Ints
    """``(N,)`` true classes."""
    weight: Floats
    """``(N,)`` what each row counts; their sum is 1."""
    costs: Floats
    """``(C, C)`` with ``[i, j]`` = cost of taking class i for class j, at least 0."""
    tie: Floats
    """``(C, C)`` symmetric with a diagonal of 0, ``κ_ij >= 0`` of the penalty."""
    metric: Callable[[Ints], float] | None = None
    """Of ``(N,)`` decisions, to be large; None: the cost, to be small."""

    def decisions(self, shifts: Floats) -> Ints:
        r""":math:`d_n = \arg\min_j \sum_i e^{\delta_i} q_{ni} c_{ij}`."""
        return cheapest(self.posterior * np.exp(shifts), self.costs)

    def loss(self, shifts: Floats) -> float:
        r""":math:`\sum_n w_n c_{y_n d_n}`, or the negative metric."""
        taken = self.decisions(shifts)
        return -self.metric(taken) if self.metric else float(self.weight @ self.costs[self.codes, taken])

    def objective(self, shifts: Floats) -> float:
        r"""The loss, and :math:`\sum_{i < j} \kappa_{ij} (\delta_i - \delta_j)^2`."""
        return self.loss(shifts) + 0.5 * float((self.tie * (shifts[:, None] - shifts) ** 2).sum())


class _Changes(NamedTuple):
    """Where the lowest of some lines changes."""

    first: Ints
    """``(N,)`` the lowest line of each row at 0+."""
    at: Floats
    """``(M,)`` where, for each change."""
    rows: Ints
    """``(M,)`` in which row."""
    left: Ints
    """``(M,)`` the line that is lowest before."""
    taken: Ints
    """``(M,)`` and after."""


def lowest_lines(intercept: Floats, slope: Floats) -> _Changes:
    """Which of C lines ``intercept + t · slope`` is lowest in each row, for all t > 0.

    A row goes on to the line that meets its own first, of several to the flattest: ``O(N C)`` for all first changes,
    and so on for the rows that have more of them.
    """
    current = np.where(intercept <= intercept.min(axis=1, keepdims=True), slope, np.inf).argmin(axis=1)
    first, rows = current.copy(), np.arange(len(intercept))
    found: list[tuple[Floats, Ints, Ints, Ints]] = []
    while len(rows):
        left = current[rows]
        fall = np.take_along_axis(slope[rows], left[:, None], axis=1) - slope[rows]
        rise = intercept[rows] - np.take_along_axis(intercept[rows], left[:, None], axis=1)
        meets = np.full_like(fall, np.inf)
        np.divide(rise, fall, out=meets, where=fall > 0)
        at = meets.min(axis=1)
        taken = np.where(meets <= at[:, None], slope[rows], np.inf).argmin(axis=1)
        more = np.isfinite(at)
        rows, left, taken = rows[more], left[more], taken[more]
        current[rows] = taken
        found.append((at[more], rows, left, taken))
    return _Changes(first, *(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _sweep(judged: Judged, shifts: Floats, k: int) -> float:
    """The shift of class k at which the objective is least, the others as they are.

    As the weight of class k grows, a row changes its decision where the expected costs of two decisions, which are
    lines in that weight, meet. Between two such changes of any row the cost is constant; the shift that is tried there
    is the one that the penalty likes best if it lies there, else the middle.
    """
    others = judged.posterior * np.exp(shifts)
    others[:, k] = 0.0
    lines = lowest_lines(others @ judged.costs, judged.posterior[:, [k]] * judged.costs[k])
    order = np.argsort(lines.at, kind="stable")
    edges = np.log(lines.at[order])
    last = np.flatnonzero(np.diff(edges, append=np.inf) > 0)
    pull = float(judged.tie[k].sum())
    towards = float(judged.tie[k] @ shifts / pull) if pull > 0 else float(shifts[k])
    points = _points(edges[last], towards)
    if judged.metric is None:
        true = judged.codes[lines.rows]
        change = judged.weight[lines.rows] * (judged.costs[true, lines.taken] - judged.costs[true, lines.left])
        loss = np.append(0.0, np.cumsum(change[order])[last])
    else:
        points = points[np.unique(np.linspace(0, len(points) - 1, MOST_TRIED).round().astype(np.int64))]
        loss = np.array([judged.loss(np.where(np.arange(len(shifts)) == k, point, shifts)) for point in points])
    value = loss + pull * (points - towards) ** 2
    best = np.flatnonzero(value <= value.min() + SAME)
    return float(points[best[np.abs(points[best] - towards).argmin()]])


def _points(edges: Floats, towards: float) -> Floats:
    """A point in each of the intervals between the edges and beyond them: ``towards`` where it is inside."""
    if len(edges) == 0:
        return np.array([towards])
    low, high = np.append(-np.inf, edges), np.append(edges, np.inf)
    middle = np.concatenate([[edges[0] - 1.0], 0.5 * (edges[1:] + edges[:-1]), [edges[-1] + 1.0]])
    return np.where((low < towards) & (towards < high), towards, middle)


def least_loss(judged: Judged, start: Floats) -> tuple[Floats, float]:
    """Shifts that no change of a single class betters, and their objective: ``O(N C² (C + log N))`` per round."""
    shifts, least = start, judged.objective(start)
    for _ in range(MOST_ROUNDS):
        before = least
        for k in range(len(shifts)):
            tried = np.where(np.arange(len(shifts)) == k, _sweep(judged, shifts, k), shifts)
            value = judged.objective(tried)
            if value < least - SAME:
                shifts, least = tried, value
        if least == before:
            break
    return shifts, least
