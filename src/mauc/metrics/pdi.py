"""The polytomous discrimination index: one row of each class is compared at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mauc._typing import Floats
from mauc._validation import class_position
from mauc.metrics.any_measure import Scored, Value
from mauc.partition import ClassPartition

__all__ = ["PDI"]


@dataclass(frozen=True)
class PDI:
    r"""Polytomous discrimination index of Van Calster et al.

    Draw one row :math:`n_k` of each class. The index of class i is the probability that the row of class i has the
    largest score of class i; T rows that tie with it for the largest share it:

    .. math:: \mathrm{PDI}_i = \operatorname{E} \frac{[F_{n_i i} = \max_k F_{n_k i}]}{1 + T}
        = \operatorname{mean}_{m \in N_i} \int_0^1 \prod_{j \ne i} \bigl( a_{mj} + b_{mj} z \bigr) \, dz ,

    where :math:`a_{mj}` is the share of class j with a lower score than row m, and :math:`b_{mj}` the share with an
    equal one. ``PDI`` is the mean over the classes. Random scores have 1 / C. With two classes it is the AUC.

    It is a U-statistic with one row of each class, so each row has an influence, and :func:`measure_interval` and
    :func:`compare_measure` have DeLong's variance for it. The integral is exact, by Gauss and Legendre's rule.
    O(N·C) time after a sort of each class, and O(N·C²) for rows that tie.

    ``of`` is the class; None stands for the mean over all classes. See Van Calster et al., Extending the c-statistic to
    nominal polytomous outcomes, Statistics in Medicine 31, 2012.

    Examples
    --------
    >>> from mauc.metrics import PDI, measure_interval
    >>> scores = [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]]
    >>> [measure_interval(PDI(k), [0, 0, 1, 2] * 2, scores * 2).score for k in (0, 1, 2)]
    [0.75, 0.75, 1.0]
    """

    of: Any = None

    def evaluate(self, scored: Scored) -> Value:
        """Return the index."""
        partition, scores, labels, _ = scored
        n_classes = partition.n_classes
        columns = range(n_classes) if self.of is None else [class_position("of", self.of, labels)]
        of_each = [_of_class(partition, np.asarray(scores[:, i], dtype=np.float64), i) for i in columns]
        # Each class has the weight 1: a row of it is in every comparison.
        v = 0.5 * n_classes * partition.pair_weights("ovo")
        return Value(float(np.mean([value for value, _ in of_each])), np.mean([h for _, h in of_each], axis=0), v)


def _of_class(partition: ClassPartition, column: Floats, i: int) -> tuple[float, Floats]:
    """Return the index of class i and the ``(N,)`` influences, from its column of the scores."""
    codes, shares, n_classes = partition.codes, partition.shares, partition.n_classes
    own = np.flatnonzero(codes == i)
    own = own[np.argsort(column[own], kind="stable")]
    x, others = column[own], [k for k in range(n_classes) if k != i]
    lower, equal = np.empty((len(others), len(own))), np.empty((len(others), len(own)))
    members = [np.flatnonzero(codes == j) for j in others]
    for k, rows in enumerate(members):
        order = rows[np.argsort(column[rows], kind="stable")]
        below = np.r_[0.0, np.cumsum(shares[order])]
        first, last = (np.searchsorted(column[order], x, side) for side in ("left", "right"))
        lower[k], equal[k] = below[first], below[last] - below[first]
    tied = equal.any()
    nodes, weights = np.polynomial.legendre.leggauss(n_classes // 2 + 1 if tied else 1)
    influence = np.zeros(len(codes))
    for z, weight in zip(0.5 + 0.5 * nodes, 0.5 * weights, strict=True):
        terms = lower + equal * z
        # The products without one factor, which may be 0.
        before = np.cumprod(np.vstack([np.ones(len(own)), terms[:-1]]), axis=0)
        after = np.cumprod(np.vstack([np.ones(len(own)), terms[:0:-1]]), axis=0)[::-1]
        influence[own] += weight * before[-1] * terms[-1]
        for k, rows in enumerate(members):
            beaten = np.r_[0.0, np.cumsum(shares[own] * before[k] * after[k])]
            first, last = (np.searchsorted(x, column[rows], side) for side in ("left", "right"))
            influence[rows] += weight * (beaten[-1] - beaten[last] + z * (beaten[last] - beaten[first]))
    return float(shares[own] @ influence[own]), influence
