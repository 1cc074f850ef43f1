"""The bound for linear models, from plain numbers; ``docs/theory.md`` has the proof."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_choice, check_not_negative
from mauc.theory._checks import check_class_counts, check_p
from mauc.theory.bounds.terms import C1, C2, C2_FIXED, Bound, assemble
from mauc.theory.imbalance import chi
from mauc.theory.rademacher import linear_bound

__all__ = ["linear"]

ACTIVATIONS = ("identity", "sigmoid", "softmax", "log_odds")


def linear(
    empirical_risk: float,
    class_counts: ArrayLike,
    *,
    gamma: float,
    radius: float,
    p: float = 2.0,
    lipschitz: float = 1.0,
    bound: float = 1.0,
    delta: float = 0.05,
    activation: str = "identity",
    sharp: bool = True,
    c1: float = C1,
    c2: float | None = None,
) -> Bound:
    r"""The bound for linear models with :math:`\lVert W_i \rVert_p \le \gamma` (Theorem 7, in its sharp form).

    .. math:: R \le \hat R + \frac{4 R_x \varphi \gamma \sqrt{\bar p - 1}}{C (C - 1)}
        \sum_{i \ne j} \frac{1}{\sqrt{\min(n_i, n_j)}}
        + \frac{2 B}{C}\, \xi \sqrt{\frac{\log(2 / \delta)}{2 N}}

    Parameters
    ----------
    empirical_risk : float
        Risk on the training sample, as :class:`mauc.SurrogateRisk` has it.
    class_counts : (C,) array
        Number of training samples of each class.
    bound : float, default=1.0
        B: the loss of a pair is in [0, B].
    delta : float, default=0.05
        Probability with which the bound may fail.
    gamma : float
        Largest p-norm of a row of W.
    radius : float
        :math:`R_x`, largest 2-norm of a sample.
    p : float, default=2.0
        In (1, 2]; :math:`\bar p = p / (p - 1)`.
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ on the differences of scores, :func:`surrogate_constants`.
    activation : {"identity", "sigmoid", "softmax", "log_odds"}, default="identity"
        The theorem is about the scores :math:`W x`. For others the complexity is multiplied by how much they can
        stretch: ¼ for the sigmoid, C/2 for softmax and 2C for the log-odds, where every row of W moves every score (our
        addition).
    sharp : bool, default=True
        Take the complexity that the proof arrives at. It never grows when a class does. False: as the theorem prints
        it, enlarged to read

        .. math:: \frac{4 R_x \varphi \gamma}{C - 1} \sqrt{\frac{2 (\bar p - 1)}{C}}\, \frac{\chi}{\sqrt N} ,

        which grows with the frequent classes, and with the printed :math:`10 B / C` in the concentration term.
    c1, c2 : float
        :math:`C_1`, and :math:`C_2` of the concentration term: :math:`\sqrt 2`, or :math:`5 \sqrt 2` as printed.

    Examples
    --------
    >>> from mauc.theory import bounds
    >>> print(bounds.linear(0.1, [40000, 30000, 30000], gamma=1.0, radius=1.0))
    linear bound, with probability 0.95: risk <= 0.1318
      empirical risk  0.1
      complexity      0.02309
      concentration   0.008669
    """
    n = check_class_counts(class_counts)
    C = len(n)
    stretch = {"identity": 1.0, "sigmoid": 0.25, "softmax": C / 2.0, "log_odds": 2.0 * C}[
        check_choice("activation", activation, ACTIVATIONS)
    ]
    rademacher = linear_bound(n, gamma=gamma, radius=radius, p=p, lipschitz=lipschitz)
    if sharp:
        rademacher *= _over_pairs(n) / (np.sqrt(2.0 * C) * chi(n) / np.sqrt(n.sum()))
    inputs = {
        "gamma": gamma,
        "radius": radius,
        "p": check_p(p),
        "lipschitz": lipschitz,
        "activation": activation,
        "sharp": sharp,
    }
    return assemble(
        "linear bound",
        empirical_risk,
        n,
        check_not_negative("c1", c1) * rademacher * stretch / (C * (C - 1)),
        bound=bound,
        delta=delta,
        c2=(C2_FIXED if sharp else C2) if c2 is None else c2,
        inputs=inputs,
    )


def _over_pairs(n: Floats) -> float:
    """Sum over the ordered pairs of classes of one over the root of the smaller size."""
    ascending = np.sort(n)
    return float(2.0 * np.sum(np.arange(len(n) - 1, -1, -1) / np.sqrt(ascending)))
