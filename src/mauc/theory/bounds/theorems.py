"""The bounds from plain numbers: any class of models, linear models, networks. ``docs/theory.md`` has the proofs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_choice, check_not_negative, check_real, check_whole, invalid
from mauc.activations import Activation
from mauc.surrogates import get_surrogate
from mauc.theory._checks import check_class_counts, check_p, check_product
from mauc.theory.imbalance import xi

__all__ = ["Bound", "SurrogateConstants", "abstract", "chaining", "cnn", "dnn", "linear", "surrogate_constants"]

C1 = 4.0
C2 = 5.0 * float(np.sqrt(2.0))
"""Of Theorem 4, whose complexity depends on the sample, so that it deviates too: 10 B / C."""
C2_FIXED = float(np.sqrt(2.0))
"""Where the complexity does not depend on the sample, only the risk deviates: 2 B / C."""
SOFTMAX_SLOPE = float(np.sqrt(2.0)) / 4.0
"""Largest length of the gradient of one softmax score: √2 f (1 − f) at f = ½."""
PROVED = "proved with these constants in docs/theory.md"


@dataclass(frozen=True)
class Bound:
    """With probability 1 − δ over the training sample, the risk on unseen data is at most :attr:`total`."""

    name: str
    empirical_risk: float
    complexity: float
    """How far the class of models can adapt to the sample."""
    concentration: float
    """How far the risk of one model on a sample deviates from its expectation."""
    delta: float
    range: float
    """B, the largest loss of a pair: a bound that is not below it is vacuous."""
    inputs: dict[str, Any] = field(default_factory=dict)
    """The quantities that the terms were computed from."""
    note: str = ""
    """Conditions of the bound."""

    @property
    def terms(self) -> dict[str, float]:
        """The three terms by name."""
        return {name: getattr(self, name) for name in ("empirical_risk", "complexity", "concentration")}

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
        """True if the bound is not below the largest loss, so that it tells nothing about the risk."""
        return self.total >= self.range

    def __str__(self) -> str:
        lines = [f"{self.name}, with probability {1 - self.delta:g}: risk <= {self.total:.4g}"]
        lines += [f"  {name.replace('_', ' '):<15} {value:.4g}" for name, value in self.terms.items()]
        if self.vacuous:
            lines.append(f"  vacuous: the loss never exceeds {self.range:.4g}")
        return "\n".join([*lines, f"  {self.note}"] if self.note else lines)


@dataclass(frozen=True)
class SurrogateConstants:
    """Lipschitz constant and range of a surrogate, which every bound needs."""

    lipschitz: float
    """Largest ``|ℓ′|``: φ."""
    bound: float
    """Largest ``|ℓ|``: B."""


def surrogate_constants(
    surrogate: Any, *, radius: float = 1.0, alpha: float | None = None, **options: float
) -> SurrogateConstants:
    """Return the Lipschitz constant φ and the bound B of a surrogate on ``[−radius, radius]``.

    Differences of softmax or sigmoid scores are in [−1, 1]. Both are the largest values at the ends, on a fine grid and
    at the breakpoints: exact for convex surrogates, whose extremes are at the ends.

    Examples
    --------
    >>> from mauc.theory.bounds import surrogate_constants
    >>> surrogate_constants("squared", alpha=1.0)
    SurrogateConstants(lipschitz=4.0, bound=4.0)
    """
    ell = get_surrogate(surrogate, alpha=alpha, **options)
    radius = check_real("radius", radius, low=0)
    edges = np.array([piece.low for piece in ell.pieces if -radius < piece.low < radius])
    t = np.concatenate([np.linspace(-radius, radius, 4097), edges, np.nextafter(edges, -np.inf)])
    # A steep surrogate on a wide range may exceed the largest float: then its bound is infinite.
    with np.errstate(over="ignore"):
        return SurrogateConstants(float(np.abs(ell.derivative(t)).max()), float(np.abs(ell.loss(t)).max()))


def assemble(
    name: str,
    empirical_risk: float,
    n: Floats,
    complexity: float,
    *,
    bound: float,
    delta: float,
    c2: float = C2_FIXED,
    **details: Any,
) -> Bound:
    """Return the bound with that complexity and the concentration term that all theorems share."""
    delta, bound = check_real("delta", delta, low=0, high=1), check_not_negative("bound", bound)
    concentration = c2 * bound / len(n) * xi(n) * np.sqrt(np.log(2.0 / delta) / n.sum())
    risk = check_not_negative("empirical_risk", empirical_risk)
    return Bound(name, risk, float(complexity), float(concentration), delta, bound, **details)


def abstract(
    empirical_risk: float,
    class_counts: ArrayLike,
    rademacher: float,
    *,
    bound: float = 1.0,
    delta: float = 0.05,
) -> Bound:
    r"""Return the bound for any class of models whose Rademacher complexity is known (Theorem 4).

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
        Complexity of Definition 2 on the sample, for example of :func:`chaining`. ``docs/theory.md`` proves the bound
        for scores whose columns share no weights. If they share weights, pass the sum of the columns' complexities.
    bound : float, default=1.0
        B: the loss of a pair is in [0, B].
    delta : float, default=0.05
        Probability with which the bound may fail.

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
    complexity = C1 * check_not_negative("rademacher", rademacher) / (len(n) * (len(n) - 1))
    inputs = {"rademacher": rademacher}
    return assemble("abstract bound", empirical_risk, n, complexity, bound=bound, delta=delta, c2=C2, inputs=inputs)


def chaining(
    log_covering_number: Callable[[float], float],
    class_counts: ArrayLike,
    *,
    lipschitz: float = 1.0,
    radius: float = 0.5,
) -> float:
    r"""Bound the Rademacher complexity of any class of scores by its covering numbers (Theorem 5).

    The complexity (Definition 2) says how far the class can follow random signs of the samples.

    .. math:: \hat{\mathfrak R} \le \inf_{\alpha > 0} \left\{ 8 \varphi C (C - 1)\, \alpha + 24 \varphi (C - 1)
        \frac{\xi}{\sqrt N} \int_\alpha^{D/2} \sqrt{\log \mathcal N(\varepsilon)}\, d\varepsilon \right\}

    where :math:`\mathcal N(\varepsilon)` scores are enough for every member of the class to be within ε of one of them,
    in every column of every sample. ``docs/theory.md`` proves these constants.

    Parameters
    ----------
    log_covering_number : function of ε
        :math:`\log \mathcal N(\varepsilon)`, not increasing.
    class_counts : (C,) class sizes
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ.
    radius : float, default=0.5
        D: every member of the class is within D of one score; ½ for scores in [0, 1].

    Returns
    -------
    float
        The integral is an upper sum over 2000 scales, at most 1.4 % too large.

    Examples
    --------
    >>> from math import log
    >>> from mauc.theory import bounds
    >>> round(bounds.chaining(lambda eps: 10 * log(1 + 1 / eps), [5000, 3000, 2000]), 2)
    1.9
    """
    n = check_class_counts(class_counts)
    C = len(n)
    phi = check_not_negative("lipschitz", lipschitz)
    scales = 0.5 * check_real("radius", radius, low=0) * np.geomspace(1e-12, 1.0, 2001)
    logs = np.array([float(log_covering_number(float(epsilon))) for epsilon in scales])
    if not (logs >= 0).all():
        k = int(np.flatnonzero(~(logs >= 0))[0])
        came = f"{logs[k]:g} at {scales[k]:.3g}"
        advice = "return the logarithm of a number of scores, at least 1"
        raise invalid("log_covering_number", "must be at least 0", came, advice)
    if (np.diff(logs) > 1e-9 * (1.0 + logs[:-1])).any():
        k = int(np.argmax(np.diff(logs)))
        came = f"{logs[k]:.6g} at {scales[k]:.3g} and {logs[k + 1]:.6g} at {scales[k + 1]:.3g}"
        raise invalid("log_covering_number", "must not increase", came, "larger balls cover with fewer of them")
    # log N does not increase, so its value at the left end of each step makes an upper sum.
    steps = np.diff(scales) * np.sqrt(logs[:-1])
    integral = np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])
    values = 8.0 * C * (C - 1) * scales + 24.0 * (C - 1) * xi(n) / np.sqrt(n.sum()) * integral
    return float(phi * values.min())


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
    activation: Activation = "identity",
) -> Bound:
    r"""Return the bound for linear models with :math:`\lVert W_i \rVert_p \le \gamma` (Theorem 7, sharpened).

    .. math:: R \le \hat R + \frac{4 R_x \varphi \gamma \sqrt{\bar p - 1}}{C (C - 1)}
        \sum_{i \ne j} \frac{1}{\sqrt{\min(n_i, n_j)}}
        + \frac{2 B}{C}\, \xi \sqrt{\frac{\log(2 / \delta)}{2 N}}

    Parameters
    ----------
    empirical_risk, class_counts, bound, delta
        As in :func:`abstract`.
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

    Notes
    -----
    This is the complexity that the paper's proof arrives at. It never grows when a class does. The printed theorem
    enlarges it to a multiple of :math:`\chi / \sqrt N`, which grows with the frequent classes, and has
    :math:`10 B / C` in the concentration term.

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
    stretches = {"identity": 1.0, "sigmoid": 0.25, "softmax": C / 2.0, "log_odds": 2.0 * C}
    stretch = stretches[check_choice("activation", activation, tuple(stretches))]
    scale = check_product(lipschitz=lipschitz, gamma=gamma, radius=radius)
    # Σ over ordered pairs of classes of 1 / √(smaller size).
    over_pairs = 2.0 * np.sum(np.arange(C - 1, -1, -1) / np.sqrt(np.sort(n)))
    rademacher = scale * np.sqrt(1.0 / (check_p(p) - 1.0)) * over_pairs
    return assemble(
        "linear bound",
        empirical_risk,
        n,
        C1 * rademacher * stretch / (C * (C - 1)),
        bound=bound,
        delta=delta,
        inputs={"gamma": gamma, "radius": radius, "p": p, "lipschitz": lipschitz, "activation": activation},
    )


def dnn(
    empirical_risk: float,
    class_counts: ArrayLike,
    *,
    gamma: float,
    depth: int,
    radius: float,
    lipschitz: float = 1.0,
    bound: float = 1.0,
    delta: float = 0.05,
) -> Bound:
    r"""Return the bound for fully connected networks with softmax scores (Theorem 8, and ours in its place).

    For rectified networks of L layers whose Frobenius norms have a product of at most γ, the complexity term is

    .. math:: 2 \sqrt 2\, \varphi \gamma R_x \sqrt{\bigl(1 + \sqrt{2 L \log 2}\bigr)^2 + 1}\; \frac{\xi}{\sqrt N} ,

    which does not depend on the widths. It does not depend on the sample either, so the concentration term has
    :math:`2 B / C` for the :math:`10 B / C` of :func:`abstract`. The bound of :func:`cnn` also holds for such
    networks; it depends on the norms through their logarithm only. :func:`for_estimator` returns the smaller of both.

    ``docs/theory.md`` proves it, by blocks of independent pairs, vector contraction and the depth lemma of Golowich,
    Rakhlin and Shamir (2018). It is ours. Theorem 8 has the same ingredients and larger constants.

    Parameters
    ----------
    empirical_risk, class_counts, bound, delta
        As in :func:`abstract`; the scores are softmax, so their differences are in [−1, 1].
    gamma : float
        Product of the Frobenius norms of the layers.
    depth : int
        Number of layers L.
    radius : float
        :math:`R_x`, largest 2-norm of a sample.
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ on [−1, 1].

    Examples
    --------
    >>> from mauc.theory import bounds
    >>> print(bounds.dnn(0.1, [40000, 30000, 30000], gamma=1.0, depth=2, radius=1.0))
    dnn bound, with probability 0.95: risk <= 0.1858
      empirical risk  0.1
      complexity      0.07708
      concentration   0.008669
      proved with these constants in docs/theory.md
    """
    n = check_class_counts(class_counts)
    L = check_whole("depth", depth, least=1)
    depth_factor = np.sqrt((1.0 + np.sqrt(2.0 * L * np.log(2.0))) ** 2 + 1.0)
    scale = check_product(lipschitz=lipschitz, gamma=gamma, radius=radius)
    return assemble(
        "dnn bound",
        empirical_risk,
        n,
        2.0 * np.sqrt(2.0) * scale * depth_factor * xi(n) / np.sqrt(n.sum()),
        bound=bound,
        delta=delta,
        inputs={"gamma": gamma, "depth": depth, "radius": radius, "lipschitz": lipschitz},
        note=PROVED,
    )


def cnn(
    empirical_risk: float,
    class_counts: ArrayLike,
    *,
    spectral_norms: Sequence[float],
    distance: float,
    n_parameters: int,
    radius: float,
    lipschitz: float = 1.0,
    bound: float = 1.0,
    delta: float = 0.05,
) -> Bound:
    r"""Return the bound for networks near their initial weights (Theorem 9, and ours in its place).

    The network has L layers, convolutions and linear maps, and softmax scores. Activations and pooling between the
    layers must map 0 to 0 and must not enlarge distances. β bounds how far the layers, as linear operators, are from
    their initial weights: :math:`\sum_l \lVert A_l - A^0_l \rVert \le \beta`. The scores are then Lipschitz functions
    of the W weights, with the constant

    .. math:: \Lambda = \tfrac{\sqrt 2}{4} R_x \,\Bigl(1 + \frac \beta L\Bigr)^L \prod_l \max(1, \lVert A^0_l \rVert),

    and the class has covering numbers :math:`\log \mathcal N(\varepsilon) \le W \log(1 + 2 \beta \Lambda /
    \varepsilon)`. The complexity term is that of :func:`abstract` with the :func:`chaining` bound of these numbers. It
    does not depend on the sample, so the concentration term has :math:`2 B / C` instead of :math:`10 B / C`. The number
    of pixels does not matter.

    ``docs/theory.md`` proves it, after Long and Sedghi (2020). Theorem 9 has the same ingredients.

    Parameters
    ----------
    empirical_risk, class_counts, bound, delta
        As in :func:`abstract`; the scores are softmax, so their differences are in [−1, 1].
    spectral_norms : sequence of float
        Largest singular value of each layer as an operator, at the initial weights; :func:`conv_spectral_norm`.
    distance : float
        β, summed spectral distance of the layers from their initial weights.
    n_parameters : int
        W, the number of weights.
    radius : float
        :math:`R_x`, largest 2-norm of a sample.
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ on [−1, 1].

    Examples
    --------
    >>> from mauc.theory import bounds
    >>> print(bounds.cnn(0.1, [10**6] * 3, spectral_norms=[1.0, 1.0], distance=0.1, n_parameters=500, radius=1.0))
    cnn bound, with probability 0.95: risk <= 0.1393
      empirical risk  0.1
      complexity      0.03771
      concentration   0.001568
      proved with these constants in docs/theory.md
    """
    n = check_class_counts(class_counts)
    norms = [check_not_negative("spectral_norms", norm) for norm in spectral_norms]
    if not norms:
        raise invalid("spectral_norms", "must be one number for each layer", "none", "pass them")
    beta, L = check_not_negative("distance", distance), len(norms)
    W = check_whole("n_parameters", n_parameters, least=1)
    size = check_not_negative("radius", radius)
    rademacher = 0.0  # of a single network
    if beta > 0 and size > 0:
        # Logarithms: the product of the norms of a deep network exceeds the largest float.
        log_norms = sum(np.log(max(1.0, norm)) for norm in norms)
        log_slope = np.log(SOFTMAX_SLOPE * size) + L * np.log1p(beta / L) + log_norms
        log_reach = float(np.log(beta) + log_slope)
        rademacher = chaining(
            lambda epsilon: W * float(np.logaddexp(0.0, np.log(2.0) + log_reach - np.log(epsilon))),
            n,
            lipschitz=lipschitz,
            radius=0.5 if log_reach > np.log(0.5) else float(np.exp(log_reach)),
        )
    return assemble(
        "cnn bound",
        empirical_risk,
        n,
        C1 * rademacher / (len(n) * (len(n) - 1)),
        bound=bound,
        delta=delta,
        inputs={
            "spectral_norms": tuple(spectral_norms),
            "distance": distance,
            "n_parameters": n_parameters,
            "radius": radius,
            "lipschitz": lipschitz,
        },
        note=PROVED,
    )
