"""Theorems 7, 8 and 9 as the paper prints them, and the last two with their slips corrected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from experiments.theory.linear_models import linear_bound
from mauc._validation import check_not_negative, check_real, check_whole, invalid
from mauc.theory._checks import check_class_counts
from mauc.theory.bounds.theorems import C1, C2, Bound, abstract, assemble
from mauc.theory.imbalance import chi, xi

__all__ = ["theorem_7", "theorem_8", "theorem_9"]

CHAIN = 24.0
"""The constant of Theorem 9: twice that of Theorem 5 (b)."""


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
    empirical_risk: float,
    class_counts: ArrayLike,
    *,
    corrected: bool,
    gamma: float,
    depth: int,
    radius: float,
    lipschitz: float = 1.0,
    bound: float = 1.0,
    delta: float = 0.05,
    logit_bound: float | None = None,
) -> Bound:
    r"""Compute Theorem 8, the smaller of two terms over :math:`\sqrt N`; L is ``depth + 1``, as the paper counts it.

    .. math:: I_1 = \frac{\sqrt 2}{2} C_1 \varphi \frac{\chi}{C - 1}
        + \Bigl[ \frac{\sqrt 2}{2} C_1 R_x \varphi \gamma C_3 + \frac{C_2 B}{C} \sqrt{2 \log \tfrac 2\delta} \Bigr] \xi,
        \quad C_3 = \frac{\sqrt{L \log 2} + \sqrt C}{\sqrt{C - 1}}

    .. math:: I_2 = C_1 \varphi \Bigl[ \frac{2^9}{C} \xi \log^{3/2}(e R_s N C)\, \gamma R_x (1 + \sqrt{2 L \log 2}) + 1
        \Bigr] + \frac{C_2 B}{C} \sqrt{\log \tfrac 2\delta}\, \xi

    Corrected in :math:`I_1`: no 2 beside :math:`\log(2/\delta)`, which Theorem 4 has not; and
    :math:`C_3 = \sqrt{C / (C - 1)}\, (1 + \sqrt{2 L \log 2})`, as P2349 lost a root of C and two factors :math:`2^L` of
    P2298 multiply. In :math:`I_2`: :math:`1 + \sqrt{2 L \log 2}` becomes :math:`((1 + \sqrt{2 L \log 2})^2 + 1)^{1/2}`,
    as the outputs of a network differ (P1720); it still rests on Theorem 6. The second needs ``logit_bound``.
    """
    n = check_class_counts(class_counts)
    C, N, L = len(n), n.sum(), check_whole("depth", depth, least=1) + 1
    phi, size = check_not_negative("lipschitz", lipschitz), check_not_negative("radius", radius)
    product = check_not_negative("gamma", gamma) * size
    peeled = 1.0 + np.sqrt(2.0 * L * np.log(2.0))
    if corrected:
        c3, peeled_all, excess = np.sqrt(C / (C - 1)) * peeled, np.hypot(peeled, 1.0), 1.0
    else:
        c3, peeled_all, excess = (np.sqrt(L * np.log(2.0)) + np.sqrt(C)) / np.sqrt(C - 1), peeled, np.sqrt(2.0)
    # (complexity, factor on the concentration term)
    options = {"I1": (np.sqrt(0.5) * C1 * phi * (chi(n) / (C - 1) + product * c3 * xi(n)), excess)}
    if logit_bound is not None:
        inner = np.log(np.e * check_real("logit_bound", logit_bound, low=0) * N * C)
        second = 2.0**9 / C * xi(n) * max(inner, 0.0) ** 1.5 * product * peeled_all
        options["I2"] = (C1 * phi * (second + 1.0), 1.0)
    noise = C2 * check_not_negative("bound", bound) / C * xi(n)
    noise *= np.sqrt(np.log(2.0 / check_real("delta", delta, low=0, high=1)))
    chosen = min(options, key=lambda name: options[name][0] + options[name][1] * noise)
    complexity, factor = options[chosen]
    return assemble(
        f"dnn bound, {'corrected' if corrected else 'printed'}",
        empirical_risk,
        n,
        complexity / np.sqrt(N),
        bound=bound,
        delta=delta,
        c2=C2 * factor,
        inputs={
            **{"gamma": gamma, "depth": depth, "radius": radius, "lipschitz": lipschitz, "logit_bound": logit_bound},
            **{name: float(value / np.sqrt(N)) for name, (value, _) in options.items()},
        },
        note=_note(corrected, "Theorem 8", chosen == "I2"),
    )


def theorem_9(
    empirical_risk: float,
    class_counts: ArrayLike,
    *,
    corrected: bool,
    spectral_norms: Sequence[float],
    distance: float,
    n_parameters: int,
    radius: float,
    lipschitz: float = 1.0,
    bound: float = 1.0,
    delta: float = 0.05,
    logit_bound: float | None = None,
) -> Bound:
    r"""Compute Theorem 9, :math:`\tilde C = 24`, :math:`1 + \nu` the largest of ``spectral_norms`` and 1, W weights.

    .. math:: C_1 \tilde C \frac{\varphi R_s \xi}{C} \sqrt{\frac{W (\nu N_L + \beta + \log(3 \beta R_x N))}{N}}

    for :math:`R_s > 1 / \min\{\sqrt N, \frac\xi C \sqrt{W (\ldots)}\}`, which is checked. Corrected: its proof cuts the
    chain at :math:`1 / \sqrt N`, hence :math:`\log(3 \beta R_x \sqrt N)`; and P2428 has β twice, in the Lipschitz
    constant and in the radius of the ball that is covered, though what follows has it once.
    """
    n = check_class_counts(class_counts)
    C, N = len(n), n.sum()
    if logit_bound is None:
        requirement = "must be given for Theorem 9"
        raise invalid("logit_bound", requirement, None, "pass the largest logit, R_s, or use mauc.theory.bounds.cnn")
    reach = check_real("logit_bound", logit_bound, low=0)
    norms = [check_not_negative("spectral_norms", norm) for norm in spectral_norms]
    if not norms:
        raise invalid("spectral_norms", "must be one number for each layer", "none", "pass them")
    beta, size = check_not_negative("distance", distance), check_not_negative("radius", radius)
    nu = max(*norms, 1.0) - 1.0
    with np.errstate(divide="ignore"):
        covered = np.log(3.0 * beta * size * (np.sqrt(N) if corrected else N))
    weights = check_whole("n_parameters", n_parameters, least=1) * (nu * len(norms) + beta + covered)
    if not weights > 0 or not reach > 1.0 / min(np.sqrt(N), xi(n) / C * np.sqrt(weights)):
        requirement = "must exceed 1 / min(sqrt(N), xi / C sqrt(W (nu N_L + beta + log(3 beta R_x N))))"
        raise invalid("logit_bound", requirement, f"{reach:g}", "use mauc.theory.bounds.cnn, which needs no such thing")
    complexity = C1 * CHAIN * check_not_negative("lipschitz", lipschitz) * reach * xi(n) / C * np.sqrt(weights / N)
    inputs: dict[str, Any] = {
        "spectral_norms": tuple(spectral_norms),
        "distance": distance,
        "n_parameters": n_parameters,
        "radius": radius,
        "lipschitz": lipschitz,
        "logit_bound": logit_bound,
    }
    name = f"cnn bound, {'corrected' if corrected else 'printed'}"
    note = _note(corrected, "Theorem 9", False)
    return assemble(name, empirical_risk, n, complexity, bound=bound, delta=delta, c2=C2, inputs=inputs, note=note)


def _note(corrected: bool, theorem: str, by_theorem_6: bool) -> str:
    if not corrected:
        return f"{theorem} as printed, with the constants of its proof"
    return f"{theorem} with its slips corrected" + (", up to Theorem 6, which is not proved" if by_theorem_6 else "")
