"""Bounds on the complexity of linear models, from the norm of their weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mauc._validation import check_not_negative
from mauc.theory._checks import check_class_counts, check_p
from mauc.theory.imbalance import chi

__all__ = ["linear_bound"]


def linear_bound(
    class_counts: ArrayLike,
    *,
    gamma: float = 1.0,
    radius: float = 1.0,
    p: float = 2.0,
    lipschitz: float = 1.0,
    sharp: bool = False,
) -> float:
    r"""The bound on the complexity of linear models that Theorem 7 uses.

    .. math:: \varphi \gamma R_x \sqrt{2 C (\bar p - 1)}\; \frac{\chi}{\sqrt N}, \qquad \bar p = \frac{p}{p - 1}

    Parameters
    ----------
    class_counts : (C,) class sizes
    gamma, p : float
        Largest p-norm of a row of W, p in (1, 2].
    radius : float
        :math:`R_x`, largest 2-norm of a sample.
    lipschitz : float
        φ, Lipschitz constant of ℓ.
    sharp : bool, default=False
        What the proof has before it is made larger to read :math:`\chi`:

        .. math:: \varphi \gamma R_x \sqrt{\bar p - 1} \sum_i \left[ \frac{C - 1}{\sqrt{n_i}}
            + \sqrt{\textstyle\sum_{j \ne i} 1 / n_j} \right]

    Notes
    -----
    For every φ-Lipschitz ℓ, split or not: the supremum is taken apart over the fixed partner of a pair first, then each
    sign multiplies one difference, and scalar contraction applies (``docs/theory.md``). The paper has that order in its
    proof. It prints :math:`0 < p < \infty`; Khinchin-Kahane needs :math:`\bar p \ge 2`, and the bound is wrong for
    p > 2. It prints :math:`\lVert x \rVert_2^2 \le R_x` and uses the norm.

    Examples
    --------
    >>> from mauc.theory import rademacher
    >>> counts = [50, 30, 20]
    >>> round(rademacher.linear_bound(counts), 3), round(rademacher.linear_bound(counts, sharp=True), 3)
    (2.0, 1.879)
    """
    n = check_class_counts(class_counts)
    scale = check_not_negative("lipschitz", lipschitz) * check_not_negative("gamma", gamma)
    scale *= check_not_negative("radius", radius)
    dual = check_p(p) / (p - 1.0)
    if not sharp:
        return float(scale * np.sqrt(2.0 * len(n) * (dual - 1.0)) * chi(n) / np.sqrt(n.sum()))
    inverse = 1.0 / n
    sides = (len(n) - 1) * np.sqrt(inverse) + np.sqrt(inverse.sum() - inverse)
    return float(scale * np.sqrt(dual - 1.0) * sides.sum())
