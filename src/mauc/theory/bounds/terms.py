"""A bound as its terms, and the abstract bound that all others fill in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._validation import check_not_negative
from mauc.theory._checks import check_class_counts, check_delta
from mauc.theory.imbalance import xi

__all__ = ["C1", "C2", "C2_FIXED", "Bound", "abstract", "assemble"]

C1 = 4.0
C2 = 5.0 * float(np.sqrt(2.0))
"""Of Theorem 4, whose complexity depends on the sample and strays as well: 10 B / C."""
C2_FIXED = float(np.sqrt(2.0))
"""Where the complexity is a number that does not depend on the sample, only the risk strays: 2 B / C."""


@dataclass(frozen=True)
class Bound:
    """With probability 1 − δ over the training sample, the risk on unseen data is at most :attr:`total`."""

    name: str
    empirical_risk: float
    complexity: float
    """How far the class of models can adapt to the sample."""
    concentration: float
    """How far a single model's risk strays on a sample."""
    delta: float
    range: float
    """B: a bound that is not below it says nothing."""
    inputs: dict[str, Any] = field(default_factory=dict)
    """The quantities that the terms were computed from."""
    alternatives: dict[str, float] = field(default_factory=dict)
    """Complexity terms of which the smallest was taken."""
    note: str = ""
    """Under what the bound holds."""

    @property
    def terms(self) -> dict[str, float]:
        """The three terms by name."""
        return {
            "empirical_risk": self.empirical_risk,
            "complexity": self.complexity,
            "concentration": self.concentration,
        }

    @property
    def total(self) -> float:
        """The bound on the risk."""
        return self.empirical_risk + self.complexity + self.concentration

    @property
    def gap(self) -> float:
        """The bound on the risk less the empirical risk."""
        return self.complexity + self.concentration

    @property
    def vacuous(self) -> bool:
        """No smaller than the largest loss, so that it says nothing about the risk."""
        return self.total >= self.range

    def __str__(self) -> str:
        lines = [f"{self.name}, with probability {1 - self.delta:g}: risk <= {self.total:.4g}"]
        lines += [f"  {name.replace('_', ' '):<15} {value:.4g}" for name, value in self.terms.items()]
        if self.vacuous:
            lines.append(f"  vacuous: the loss never exceeds {self.range:.4g}")
        return "\n".join([*lines, f"  {self.note}"] if self.note else lines)


def assemble(
    name: str,
    empirical_risk: float,
    class_counts: ArrayLike,
    complexity: float,
    *,
    bound: float,
    delta: float,
    c2: float,
    **details: Any,
) -> Bound:
    """The bound with that complexity and the concentration term that all theorems share."""
    n = check_class_counts(class_counts)
    delta, bound = check_delta(delta), check_not_negative("bound", bound)
    concentration = check_not_negative("c2", c2) * bound / len(n) * xi(n) * np.sqrt(np.log(2.0 / delta) / n.sum())
    risk = check_not_negative("empirical_risk", empirical_risk)
    return Bound(name, risk, float(complexity), float(concentration), delta, bound, **details)


def abstract(
    empirical_risk: float,
    class_counts: ArrayLike,
    rademacher: float,
    *,
    bound: float = 1.0,
    delta: float = 0.05,
    c1: float = C1,
    c2: float = C2,
) -> Bound:
    r"""The bound for any class of models whose Rademacher complexity is known (Theorem 4).

    .. math:: R \le \hat R + \frac{C_1\, \hat{\mathfrak R}}{C (C - 1)}
        + C_2 \frac B C\, \xi \sqrt{\frac{\log(2/\delta)}{N}}, \qquad C_1 = 4,\; C_2 = 5 \sqrt 2

    for all models of the class at once, R the ovo risk.

    Parameters
    ----------
    empirical_risk : float
        Risk on the training sample, as :class:`mauc.SurrogateRisk` has it.
    class_counts : (C,) array
        Number of training samples of each class.
    rademacher : float
        Complexity of Definition 2 on the sample, :mod:`mauc.theory.rademacher`. The paper has it for every class; it is
        proved in ``docs/theory.md`` where the columns of scores are free of each other. Where they share weights, pass
        the sum of the columns' complexities, or of those of the two halves of the signs
        (``rademacher.linear(..., split=True)``).
    bound : float, default=1.0
        B: the loss of a pair is in [0, B].
    delta : float, default=0.05
        Probability with which the bound may fail.
    c1, c2 : float
        :math:`C_1` and :math:`C_2`.

    Examples
    --------
    >>> from mauc.theory import bounds
    >>> print(bounds.abstract(0.1, [4000, 3000, 3000], 0.02))
    abstract bound, with probability 0.95: risk <= 0.2504
      empirical risk  0.1
      complexity      0.01333
      concentration   0.1371
    """
    n = check_class_counts(class_counts)
    complexity = check_not_negative("c1", c1) * check_not_negative("rademacher", rademacher) / (len(n) * (len(n) - 1))
    return assemble(
        "abstract bound",
        empirical_risk,
        n,
        complexity,
        bound=bound,
        delta=delta,
        c2=c2,
        inputs={"rademacher": rademacher, "c1": c1, "c2": c2},
    )
