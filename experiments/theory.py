"""Theorems 7, 8 and 9 as the paper prints them, and the last two corrected, to compare with :mod:`mauc.theory`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mauc.theory._checks import check_class_counts, check_p, check_product
from mauc.theory.bounds.theorems import C1, Bound, abstract
from mauc.theory.imbalance import chi, xi

__all__ = ["linear_bound", "theorem_7", "theorem_8", "theorem_9"]

CHAIN = 24.0
"""The constant of Theorem 9: twice that of Theorem 5 (b)."""


def linear_bound(
    class_counts: ArrayLike,
    *,
    gamma: float = 1.0,
    radius: float = 1.0,
    p: float = 2.0,
    lipschitz: float = 1.0,
) -> float:
    r"""Bound the complexity of linear models by the norms of their weights, as Theorem 7 does.

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

    Notes
    -----
    The bound holds for every φ-Lipschitz ℓ: the proof first fixes one partner of each pair, so that each sign
    multiplies one difference and scalar contraction applies (``docs/theory.md``). The paper prints
    :math:`0 < p < \infty`; Khinchin-Kahane needs :math:`\bar p \ge 2`, and the bound is wrong for p > 2. It prints
    :math:`\lVert x \rVert_2^2 \le R_x` and uses the norm.

    Examples
    --------
    >>> from experiments.theory import linear_bound
    >>> round(linear_bound([50, 30, 20]), 3)
    2.0
    """
    n = check_class_counts(class_counts)
    scale = check_product(lipschitz=lipschitz, gamma=gamma, radius=radius)
    dual = check_p(p) / (p - 1.0)
    return float(scale * np.sqrt(2.0 * len(n) * (dual - 1.0)) * chi(n) / np.sqrt(n.sum()))


def theorem_7(
    empirical_risk: float,
    class_counts: ArrayLike,
    *,
    gamma: float,
    radius: float,
    p: float = 2.0,
    lipschitz: float = 1.0,
    bound: float = 1.0,
    delta: float = 0.05,
) -> Bound:
    r"""Compute Theorem 7 as printed, the abstract bound of :func:`linear_bound`.

    .. math:: \frac{4 R_x \varphi \gamma}{C - 1} \sqrt{\frac{2 (\bar p - 1)}{C}}\, \frac{\chi}{\sqrt N}
    """
    complexity = linear_bound(class_counts, gamma=gamma, radius=radius, p=p, lipschitz=lipschitz)
    return abstract(empirical_risk, class_counts, complexity, bound=bound, delta=delta)


def theorem_8(
    class_counts: ArrayLike,
    *,
    corrected: bool,
    gamma: float,
    depth: int,
    radius: float,
    logit_bound: float,
    lipschitz: float = 1.0,
) -> tuple[float, float]:
    r"""Compute both complexities of Theorem 8, whose smaller one counts; L is ``depth + 1``, as the paper counts it.

    .. math:: I_1 = \frac{\sqrt 2}{2} \frac{C_1 \varphi}{\sqrt N} \Bigl[ \frac{\chi}{C - 1}
        + R_x \gamma C_3 \xi \Bigr], \quad C_3 = \frac{\sqrt{L \log 2} + \sqrt C}{\sqrt{C - 1}}

    .. math:: I_2 = \frac{C_1 \varphi}{\sqrt N} \Bigl[ \frac{2^9}{C} \xi \log^{3/2}(e R_s N C)\, \gamma R_x
        (1 + \sqrt{2 L \log 2}) + 1 \Bigr]

    Corrected in :math:`I_1`: :math:`C_3 = \sqrt{C / (C - 1)}\, (1 + \sqrt{2 L \log 2})`, as P2349 lost a root of C and
    two factors :math:`2^L` of P2298 multiply. In :math:`I_2`: :math:`1 + \sqrt{2 L \log 2}` becomes
    :math:`((1 + \sqrt{2 L \log 2})^2 + 1)^{1/2}`, as the outputs of a network differ (P1720); it still rests on
    Theorem 6, which is not proved.
    """
    n = check_class_counts(class_counts)
    C, N, L = len(n), n.sum(), depth + 1
    scale = C1 * lipschitz / np.sqrt(N)
    peeled = 1.0 + np.sqrt(2.0 * L * np.log(2.0))
    c3 = np.sqrt(C / (C - 1)) * peeled if corrected else (np.sqrt(L * np.log(2.0)) + np.sqrt(C)) / np.sqrt(C - 1)
    peeled_all = np.hypot(peeled, 1.0) if corrected else peeled
    first = np.sqrt(0.5) * (chi(n) / (C - 1) + radius * gamma * c3 * xi(n))
    second = 2.0**9 / C * xi(n) * np.log(np.e * logit_bound * N * C) ** 1.5 * gamma * radius * peeled_all + 1.0
    return float(scale * first), float(scale * second)


def theorem_9(
    class_counts: ArrayLike,
    *,
    corrected: bool,
    spectral_norms: Sequence[float],
    distance: float,
    n_parameters: int,
    radius: float,
    logit_bound: float,
    lipschitz: float = 1.0,
) -> float:
    r"""Compute the complexity of Theorem 9, :math:`1 + \nu` the largest of ``spectral_norms`` and 1, W weights.

    .. math:: 24 C_1 \frac{\varphi R_s \xi}{C} \sqrt{\frac{W (\nu N_L + \beta + \log(3 \beta R_x N))}{N}}

    Corrected: its proof cuts the chain at :math:`1 / \sqrt N`, hence :math:`\log(3 \beta R_x \sqrt N)`; and P2428 has β
    twice, in the Lipschitz constant and in the radius of the ball that is covered, though what follows has it once.
    """
    n = check_class_counts(class_counts)
    C, N = len(n), n.sum()
    nu = max(*spectral_norms, 1.0) - 1.0
    covered = np.log(3.0 * distance * radius * (np.sqrt(N) if corrected else N))
    weights = n_parameters * (nu * len(spectral_norms) + distance + covered)
    return float(C1 * CHAIN * lipschitz * logit_bound * xi(n) / C * np.sqrt(weights / N))
