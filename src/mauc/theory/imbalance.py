"""Class imbalance as the bounds measure it: ξ, χ, and the class whose next sample lowers the bounds most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._estimators import encode_classes
from mauc._typing import Floats

__all__ = ["Imbalance", "imbalance"]


def xi(class_counts: Floats) -> float:
    r"""Return :math:`\xi = \sqrt{\sum_i 1/\rho_i}` with :math:`\rho_i = n_i / N`."""
    return float(np.sqrt(class_counts.sum() * np.sum(1.0 / class_counts)))


def chi(class_counts: Floats) -> float:
    r"""Return :math:`\chi = \sqrt{\sum_i \sum_{j \ne i} 1/(\rho_i \rho_j)}`."""
    inverse = class_counts.sum() / class_counts
    # Sum the products of all pairs: (Σ 1/ρ)² − Σ 1/ρ² would cancel if one class is very rare.
    below = np.concatenate([[0.0], np.cumsum(inverse)[:-1]])
    return float(np.sqrt(2.0 * np.sum(inverse * below)))


@dataclass(frozen=True, eq=False)
class Imbalance:
    """Result of :func:`imbalance`; ``print`` it for a summary."""

    classes: NDArray[Any]
    """``(C,)`` class labels."""
    class_counts: NDArray[np.int64]
    """``(C,)`` samples :math:`n_i` of each class."""

    @property
    def n_samples(self) -> int:
        return int(self.class_counts.sum())

    @property
    def priors(self) -> Floats:
        """``(C,)`` shares :math:`\\rho_i = n_i / N`."""
        return self.class_counts / self.n_samples

    @property
    def xi(self) -> float:
        """:math:`\\xi = \\sqrt{\\sum_i 1/\\rho_i}`; C where all classes have the same size, more otherwise."""
        return xi(self.class_counts.astype(np.float64))

    @property
    def chi(self) -> float:
        """:math:`\\chi = \\sqrt{\\sum_{i \\ne j} 1/(\\rho_i \\rho_j)}`."""
        return chi(self.class_counts.astype(np.float64))

    @property
    def rate(self) -> float:
        """:math:`\\xi / \\sqrt N = \\sqrt{\\sum_i 1/n_i}`: a factor of the concentration term of every bound."""
        return self.xi / float(np.sqrt(self.n_samples))

    @property
    def ratio(self) -> float:
        """Largest class size divided by the smallest."""
        return float(self.class_counts.max() / self.class_counts.min())

    @property
    def effective_size(self) -> float:
        """:math:`N / \\xi^2 = 1 / \\sum_i 1/n_i`, never above the size of the rarest class.

        The concentration term of every bound shrinks like :math:`1 / \\sqrt{\\text{effective size}}`.
        """
        return 1.0 / float(np.sum(1.0 / self.class_counts))

    @property
    def effective_size_per_class(self) -> float:
        """:math:`C N / \\xi^2`, the harmonic mean of the class sizes.

        This many samples in every class give the same :math:`\\xi / \\sqrt N`.
        """
        return len(self.class_counts) * self.effective_size

    @property
    def shares(self) -> Floats:
        """``(C,)`` share of each class in :math:`\\xi^2`; they sum to 1."""
        return self.effective_size / self.class_counts

    @property
    def marginal_values(self) -> Floats:
        """``(C,)`` relative decrease of :math:`\\xi / \\sqrt N` by one more sample of the class."""
        # 1/n − 1/(n + 1) = 1/n · 1/(n + 1), as a share of the sum.
        removed = self.shares / (self.class_counts + 1.0)
        # 1 − √(1 − r), as r / (1 + √(1 − r)): for a large class r is tiny.
        return removed / (1.0 + np.sqrt(1.0 - removed))

    def __str__(self) -> str:
        shown = 12
        order = np.argsort(self.class_counts, kind="stable")
        rare, frequent = order[0], order[-1]
        width = max(5, *(len(str(self.classes[k])) for k in order[:shown]))
        lines = [
            f"{self.n_samples} samples, {len(order)} classes of {self.class_counts[rare]} to "
            f"{self.class_counts[frequent]} (ratio {self.ratio:.3g})",
            f"xi = {self.xi:.4g} (balanced: {len(order)}), chi = {self.chi:.4g}, xi/sqrt(N) = {self.rate:.4g}",
            f"as good as {self.effective_size_per_class:.1f} samples in every class, "
            f"{len(order) * self.effective_size_per_class:.0f} in all",
            "",
            f"{'class':>{width}}  {'samples':>8}  {'share of xi²':>12}  {'one more lowers by':>18}",
        ]
        for k in order[:shown]:
            lines.append(
                f"{self.classes[k]!s:>{width}}  {self.class_counts[k]:>8}  {self.shares[k]:>12.1%}  "
                f"{self.marginal_values[k]:>18.3%}"
            )
        if len(order) > shown:
            lines.append(f"and {len(order) - shown} more")
        return "\n".join([*lines, "", self._advice(rare, frequent)])

    def _advice(self, rare: np.intp, frequent: np.intp) -> str:
        if self.ratio == 1:
            return "The classes have the same size: one more sample is worth the same in each."
        doubled = 1.0 - np.sqrt(1.0 - 0.5 * self.shares[rare])
        times = self.marginal_values[rare] / self.marginal_values[frequent]
        return (
            f"One more sample of class {self.classes[rare]} is worth {times:.3g} of class {self.classes[frequent]}. "
            f"Twice as many of class {self.classes[rare]} lower xi/sqrt(N) by {doubled:.1%}."
        )


def imbalance(y: ArrayLike) -> Imbalance:
    r"""Compute ξ, χ and the effect of each class of ``y`` on them.

    The concentration term of every bound, and the complexity in ``bounds.dnn``, are proportional to
    :math:`\xi / \sqrt N = \sqrt{\sum_i 1/n_i}`; the complexity in ``bounds.cnn`` grows with it. The rare classes
    dominate the sum: one more sample of class i takes :math:`1/n_i - 1/(n_i + 1) \approx 1/n_i^2` off it.
    :math:`\chi / \sqrt N` is the complexity in the paper's printed theorem on linear models; ``bounds.linear`` is
    sharper.

    Parameters
    ----------
    y : (N,) classes
        At least two different ones. For given class sizes n pass ``np.repeat(np.arange(len(n)), n)``.

    Returns
    -------
    Imbalance
        O(N log N) time.

    Examples
    --------
    >>> from mauc import theory
    >>> print(theory.imbalance(["a"] * 90 + ["b"] * 9 + ["c"]))
    100 samples, 3 classes of 1 to 90 (ratio 90)
    xi = 10.59 (balanced: 3), chi = 49.69, xi/sqrt(N) = 1.059
    as good as 2.7 samples in every class, 8 in all
    <BLANKLINE>
    class   samples  share of xi²  one more lowers by
        c         1         89.1%             25.538%
        b         9          9.9%              0.496%
        a        90          1.0%              0.005%
    <BLANKLINE>
    One more sample of class c is worth 4.69e+03 of class a. Twice as many of class c lower xi/sqrt(N) by 25.5%.
    """
    classes, codes = encode_classes(y)
    return Imbalance(classes, np.bincount(codes))
