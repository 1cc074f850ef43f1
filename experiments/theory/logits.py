"""Theorems 5 and 6 as printed: the complexity of softmax scores, from that of their logits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mauc._validation import check_choice, check_not_negative, check_real, invalid
from mauc.theory._checks import check_class_counts
from mauc.theory.bounds.covering import log_covering_numbers, upper_sums
from mauc.theory.imbalance import xi

__all__ = ["logit_chaining", "transformation_bound"]

HALVINGS = 40


def logit_chaining(
    log_covering_number: Callable[[float], float],
    class_counts: ArrayLike,
    *,
    logit_bound: float,
    lipschitz: float = 1.0,
    part: str = "b",
) -> float:
    r"""Compute Theorem 5 as printed, for softmax scores of logits in :math:`[-R_s, R_s]`.

    With :math:`\varepsilon_k = 2^{-k} R_s`, the best K being taken, and (b) from it:

    .. math:: (a)\quad \hat{\mathfrak R} \le \varphi C (C - 1)\, \varepsilon_K + 6 \varphi (C - 1) \frac{\xi}{\sqrt N}
        \sum_{k=1}^K \varepsilon_k \sqrt{\log \mathcal N(\varepsilon_k)}

    .. math:: (b)\quad \hat{\mathfrak R} \le 12 \varphi \inf_{0 \le \alpha \le R_s} \left\{ C (C - 1)\, \alpha
        + (C - 1) \frac{\xi}{\sqrt N} \int_\alpha^{R_s} \sqrt{\log \mathcal N(\varepsilon)}\, d\varepsilon \right\}

    Both hold as printed, split or not, with constants half of those of :func:`mauc.theory.bounds.chaining`, because
    softmax halves differences of logits in the largest one. The lemmas they rest on are misprinted:
    :math:`\lambda^2 v / 2` in both (P1678, P1683).

    Parameters
    ----------
    log_covering_number : function of ε
        :math:`\log \mathcal N(\varepsilon)` of the *logits*, not increasing: every member is within ε of one of the
        :math:`\mathcal N`, in every column of every sample.
    class_counts : (C,) class sizes
    logit_bound : float
        :math:`R_s`.
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ on [−1, 1].
    part : {"a", "b"}, default="b"

    Examples
    --------
    >>> from math import log
    >>> from experiments.theory import logit_chaining
    >>> cover = lambda eps: 10 * log(1 + 1 / eps)
    >>> counts = [5000, 3000, 2000]
    >>> [round(logit_chaining(cover, counts, logit_bound=0.5, part=part), 2) for part in "ab"]
    [0.9, 1.65]
    """
    n = check_class_counts(class_counts)
    C = len(n)
    phi, top = check_not_negative("lipschitz", lipschitz), check_real("logit_bound", logit_bound, low=0)
    rate = (C - 1) * xi(n) / np.sqrt(n.sum())
    if check_choice("part", part, ("a", "b")) == "b":
        scales, integral = upper_sums(log_covering_number, top)
        return float(12.0 * phi * (C * (C - 1) * scales + rate * integral).min())
    halves = top * 0.5 ** np.arange(HALVINGS, 0, -1.0)
    steps = (halves * np.sqrt(log_covering_numbers(log_covering_number, halves)))[::-1]
    return float(phi * (C * (C - 1) * halves[::-1] + 6.0 * rate * np.cumsum(steps)).min())


def transformation_bound(
    instance_complexity: float, class_counts: ArrayLike, *, logit_bound: float, lipschitz: float = 1.0
) -> float:
    r"""Compute Theorem 6 as printed: the complexity of softmax scores from the ordinary one of their logits.

    .. math:: \hat{\mathfrak R} \le C (C - 1)\, \varphi \left[ \frac{2^9}{\sqrt C}\, \xi \log^{3/2}(e R_s N C)\,
        \hat{\mathfrak R}_{NC} + \frac{1}{\sqrt N} \right], \qquad \hat{\mathfrak R}_{NC} = \mathbb E_\sigma \sup_f
        \frac{1}{N C} \sum_{j, k} \sigma_{jk} f_j(x_k)

    Not proved here: the paper's proof names a proposition of another paper, which is about the worst case over samples,
    not this sample's :math:`\hat{\mathfrak R}_{NC}`. Read it as the print.

    Parameters
    ----------
    instance_complexity : float
        :math:`\hat{\mathfrak R}_{NC}` of the logits, a sign for each sample and column.
    class_counts : (C,) class sizes
    logit_bound : float
        :math:`R_s`, largest absolute logit.
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ on [−1, 1].

    Examples
    --------
    >>> from experiments.theory import transformation_bound
    >>> round(transformation_bound(0.001, [50, 30, 20], logit_bound=2.0), 1)
    115.3
    """
    n = check_class_counts(class_counts)
    C, N = len(n), n.sum()
    inner = np.log(np.e * check_real("logit_bound", logit_bound, low=0) * N * C)
    if inner < 0:
        raise invalid("logit_bound", "must be at least 1 / (e N C)", f"{logit_bound:g}", "pass a larger one")
    ordinary = check_not_negative("instance_complexity", instance_complexity)
    first = 2.0**9 / np.sqrt(C) * xi(n) * inner**1.5 * ordinary
    return float(C * (C - 1) * check_not_negative("lipschitz", lipschitz) * (first + 1.0 / np.sqrt(N)))
