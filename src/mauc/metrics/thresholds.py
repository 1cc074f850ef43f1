"""Sensitivity, specificity, predictive values and net benefit of one class at a threshold of its score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from mauc._validation import check_choice, check_real, class_position, invalid
from mauc.metrics.any_measure import Scored, Value

__all__ = ["AtThreshold"]

Kind = Literal["sensitivity", "specificity", "ppv", "npv", "net_benefit"]


@dataclass(frozen=True)
class AtThreshold:
    r"""A measure of the rule "a row is positive if its score of a class is at least a threshold".

    With the shares TP, FP, FN, TN of the rows that are true positives, and so on,

    ================ ============================================================
    ``sensitivity``  TP / (TP + FN)
    ``specificity``  TN / (TN + FP)
    ``ppv``          TP / (TP + FP), the precision
    ``npv``          TN / (TN + FN)
    ``net_benefit``  TP − FP · t / (1 − t) at the probability t
    ================ ============================================================

    The first four are shares of some of the rows, :math:`\theta = \sum_n a_n h_n d_n / \sum_n a_n d_n`, for rows with
    :math:`d_n = 1`, of which :math:`h_n` are hit. The influence of a row is :math:`d_n (h_n - \theta) / \bar d`. That
    of the net benefit is its own term minus the mean. Classes are not samples of their own: the share of each class
    varies from sample to sample, as in the study. Net benefit: Vickers and Elkin, Medical Decision Making 26, 2006.

    ``of`` is the class against all others; the threshold of a net benefit is strictly between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.metrics import AtThreshold, measure_interval
    >>> y = np.repeat(["ill", "well"], [20, 80])
    >>> risk = np.r_[np.repeat([0.8, 0.2], [15, 5]), np.repeat([0.6, 0.1], [10, 70])]
    >>> scores = np.column_stack([risk, 1 - risk])
    >>> for kind in ("sensitivity", "ppv", "net_benefit"):
    ...     found = measure_interval(AtThreshold(kind, "ill", 0.5), y, scores)
    ...     print(f"{kind}: {found.score:.3f} [{found.low:.3f}, {found.high:.3f}]")
    sensitivity: 0.750 [0.531, 0.888]
    ppv: 0.600 [0.407, 0.766]
    net_benefit: 0.050 [-0.049, 0.149]
    """

    kind: Kind
    of: Any
    threshold: float

    def evaluate(self, scored: Scored) -> Value:
        """Return the measure."""
        kind = check_choice("kind", self.kind, get_args(Kind))
        k, shares = class_position("of", self.of, scored.labels), scored.shares
        own, column = scored.partition.codes == k, np.asarray(scored.scores[:, k], dtype=np.float64)
        if kind == "net_benefit":
            t = check_real("threshold", self.threshold, low=0, high=1)
            benefit = np.where(column >= t, np.where(own, 1.0, -t / (1.0 - t)), 0.0)
            value = float(shares @ benefit)
            return Value(value, benefit - value)
        chosen = column >= check_real("threshold", self.threshold, low=-math.inf)
        among, hit = {
            "sensitivity": (own, chosen),
            "specificity": (~own, ~chosen),
            "ppv": (chosen, own),
            "npv": (~chosen, ~own),
        }[kind]
        part = float(shares[among].sum())
        if part == 0.0:
            which = "at or above" if kind == "ppv" else "below"
            came, advice = f"{self.threshold:g} with no score {which} it", "pass another threshold"
            raise invalid("threshold", f"must leave rows for the {kind}", came, advice)
        value = float(shares[among & hit].sum() / part)
        influence = np.asarray(among * (hit - value) / part, dtype=np.float64)
        return Value(value, influence, rows=part**2 / float(np.square(shares[among]).sum()))
