"""The objective of the linear model over partitions: one graph per evaluation, two rounds of tasks in it.

First each partition scores its rows and sends the sums that the risk is made of; then each takes the sums of all and
sends its gradient. The rows stay where they are. Surrogates in pieces also send own-class scores, once per evaluation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.delayed import Delayed

from mauc._typing import Floats
from mauc.activations import BOUNDED
from mauc.dask._partitions import keep, run, task, tree
from mauc.kernels.piecewise import RankedSums
from mauc.linear.by_parts import Forward, MomentSums, Part, RankedParts, RowParts, Visited, additive_risk, range_matters
from mauc.metrics.partial_counts import OwnScores, merge
from mauc.risk import SurrogateRisk

__all__ = ["PartitionedObjective"]


class PartitionedObjective:
    """``θ ↦`` value and gradient of persisted ``parts``, as :class:`mauc.linear.objective.LinearObjective` has them."""

    def __init__(
        self, parts: list[Delayed], rows: RowParts, risk: SurrogateRisk, l2: float, shape: tuple[int, int]
    ) -> None:
        self.parts, self.rows, self.risk, self.l2, self.shape = parts, rows, risk, l2, shape
        self.evaluations = 0
        self.sums: MomentSums | RankedParts | None = None
        if not range_matters(risk, rows.activation):
            bounded = rows.activation in BOUNDED
            self.sums = additive_risk(risk, np.zeros(shape[0]), np.ones(shape[0]), bounded=bounded)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Value and flat gradient."""
        self.evaluations += 1
        block = theta.reshape(self.shape)
        at = task(_itself, block, what="coefficients")
        forward = [task(_forward, self.rows, part, at) for part in self.parts]
        if isinstance(sums := self.sums or self._looked_at(forward), RankedParts):
            value, gradient = self._ranked(forward, sums)
        else:
            value, gradient = self._moments(forward, sums)
        weights = block[:, : block.shape[1] - self.rows.fit_intercept]
        gradient[:, : weights.shape[1]] += self.l2 * weights
        return value + 0.5 * self.l2 * float(np.vdot(weights, weights)), gradient.ravel()

    def split(self, theta: Floats) -> tuple[Floats, Floats | None]:
        """``W`` of shape ``(C, d)`` and ``b`` of shape ``(C,)``, or None."""
        block = theta.reshape(self.shape)
        return (block[:, :-1], block[:, -1]) if self.rows.fit_intercept else (block, None)

    def _with(self, forward: list[Delayed]) -> list[tuple[Delayed, Delayed]]:
        return list(zip(self.parts, forward, strict=True))

    def _looked_at(self, forward: list[Delayed]) -> MomentSums | RankedParts:
        """The sums for scores whose range is not known beforehand: a round of its own."""
        forward[:] = keep(*forward)
        ranges = [task(_range, each) for each in forward]
        ((low, high),) = run(tree(_widest, ranges, "widest-range"))
        return additive_risk(self.risk, low, high)

    def _moments(self, forward: list[Delayed], risk: MomentSums) -> tuple[float, Floats]:
        sums = tree(risk.add, [task(_sums, risk, *each) for each in self._with(forward)], "sum-moments")
        ends = [task(_gradient, self.rows, risk, sums, *each) for each in self._with(forward)]
        of_all, (lost, gradient) = run(sums, tree(_add, ends, "sum-gradients"))
        return risk.value(of_all) + lost, gradient

    def _ranked(self, forward: list[Delayed], risk: RankedParts) -> tuple[float, Floats]:
        own = [task(_own, risk, *each) for each in self._with(forward)]
        table = task(_table, risk, tree(merge, own, "merge-own-scores"))
        visited = [task(_visit, risk, table, *each) for each in self._with(forward)]
        landed = tree(risk.add, [task(_landed, each) for each in visited], "sum-landed")
        of_values = task(_of_values, table, landed)
        ends = [
            task(_ranked_gradient, self.rows, risk, table, of_values, found, *each)
            for found, each in zip(visited, self._with(forward), strict=True)
        ]
        value, (lost, gradient) = run(task(_value, landed), tree(_add, ends, "sum-gradients"))
        return value + lost, gradient


# What the tasks do; the dashboard shows their names.


def _itself(x: Any) -> Any:
    return x


def _forward(rows: RowParts, part: Part, theta: Floats) -> Forward:
    return rows.forward(part, theta)


def _range(forward: Forward) -> tuple[Floats, Floats]:
    return forward.scores.min(axis=0, initial=np.inf), forward.scores.max(axis=0, initial=-np.inf)


def _widest(parts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    return np.min([low for low, _ in parts], axis=0), np.max([high for _, high in parts], axis=0)


def _sums(risk: MomentSums, part: Part, forward: Forward) -> Any:
    return risk.sums(part.classes.with_scores(forward.scores))


def _gradient(rows: RowParts, risk: MomentSums, sums: Any, part: Part, forward: Forward) -> tuple[float, Floats]:
    slope = risk.slope(part.classes.with_scores(forward.scores), sums)
    return forward.log_loss, rows.gradient(part, forward, slope)


def _add(parts: list[tuple[float, Floats]]) -> tuple[float, Floats]:
    return sum(lost for lost, _ in parts), np.sum([gradient for _, gradient in parts], axis=0)


def _own(risk: RankedParts, part: Part, forward: Forward) -> OwnScores:
    return risk.own(part.classes.with_scores(forward.scores))


def _table(risk: RankedParts, own: OwnScores) -> RankedSums:
    return risk.table([own])


def _visit(risk: RankedParts, table: RankedSums, part: Part, forward: Forward) -> Visited:
    return risk.visit(part.classes.with_scores(forward.scores), table)


def _landed(visited: Visited) -> tuple[float, list[Floats]]:
    return visited.value, visited.landed


def _value(landed: tuple[float, list[Floats]]) -> float:
    return landed[0]


def _of_values(table: RankedSums, landed: tuple[float, list[Floats]]) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return table.collect(landed[1])


def _ranked_gradient(
    rows: RowParts, risk: RankedParts, table: RankedSums, of_values: Floats, visited: Visited, part: Part,
    forward: Forward,
) -> tuple[float, Floats]:  # fmt: skip
    # Results of tasks are shared: what this task overwrites must be its own.
    mine = visited._replace(slope=visited.slope.copy())
    slope = risk.slope(part.classes.with_scores(forward.scores), table, mine, of_values)
    return forward.log_loss, rows.gradient(part, forward, slope)
