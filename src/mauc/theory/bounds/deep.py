"""The bounds for fully connected and convolutional networks, from plain numbers; ``docs/theory.md`` has the proofs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._validation import check_not_negative, check_real, check_whole, invalid
from mauc.theory._checks import check_class_counts
from mauc.theory.bounds.terms import C1, C2_FIXED, Bound, assemble
from mauc.theory.imbalance import xi
from mauc.theory.rademacher import chaining

__all__ = ["cnn", "dnn"]

# Largest length of the gradient of one softmax score: √2 f (1 − f) at f = ½.
SOFTMAX_SLOPE = float(np.sqrt(2.0)) / 4.0


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
    constant: float = 1.0,
    spectral_norms: Sequence[float] | None = None,
    distance: float | None = None,
    n_parameters: int | None = None,
    c2: float = C2_FIXED,
) -> Bound:
    r"""The bound for fully connected networks with softmax scores (Theorem 8, and ours in its place).

    The smaller of two complexity terms, plus a concentration term with :math:`2 B / C` for the :math:`10 B / C` of
    :func:`abstract`, as neither depends on the sample (``c2``: :math:`\sqrt 2`). For rectified networks of L
    layers whose Frobenius norms have a product of at most γ,

    .. math:: 2 \sqrt 2\, \varphi \gamma R_x \sqrt{\bigl(1 + \sqrt{2 L \log 2}\bigr)^2 + 1}\; \frac{\xi}{\sqrt N} ,

    which does not depend on the widths; and, where ``spectral_norms``, ``distance`` and ``n_parameters`` are given, the
    one of :func:`cnn`, which depends on the norms through their logarithm only.

    Both are proved in ``docs/theory.md``: by blocks of independent pairs, vector contraction and the depth lemma of
    Golowich, Rakhlin and Shamir (2018). They are ours. Theorem 8 has the same ingredients and larger constants;
    ``experiments/theory/printed.py`` has it as printed, and without the slips of its proof.

    Parameters
    ----------
    empirical_risk : float
        Risk on the training sample, as :class:`mauc.SurrogateRisk` has it.
    class_counts : (C,) array
        Number of training samples of each class.
    bound : float, default=1.0
        B: the loss of a pair is in [0, B], for differences of scores in [−1, 1].
    delta : float, default=0.05
        Probability with which the bound may fail.
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ on [−1, 1]: the scores are softmax.
    radius : float
        :math:`R_x`, largest 2-norm of a sample.
    gamma : float
        Product of the Frobenius norms of the layers.
    depth : int
        Number of layers L.
    constant : float, default=1.0
        Factor on the complexity. With 1 the bound is proved; with others it holds up to that constant.
    spectral_norms : sequence of float
        Largest singular value of each layer as an operator, at the initial weights; :func:`conv_spectral_norm`.
    distance : float
        β, summed spectral distance of the layers from their initial weights.
    n_parameters : int
        W, the number of weights.

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
    scale = check_not_negative("lipschitz", lipschitz) * check_not_negative("gamma", gamma)
    scale *= check_not_negative("radius", radius)
    terms = {"frobenius": float(2.0 * np.sqrt(2.0) * scale * depth_factor * xi(n) / np.sqrt(n.sum()))}
    inputs: dict[str, Any] = {"gamma": gamma, "depth": depth, "radius": radius, "lipschitz": lipschitz}
    given = {"spectral_norms": spectral_norms, "distance": distance, "n_parameters": n_parameters}
    missing = [name for name, value in given.items() if value is None]
    if missing and len(missing) < len(given):
        others = " and ".join(name for name in given if name not in missing)
        advice = "pass all three, or none for the Frobenius term alone"
        raise invalid(missing[0], f"must be given with {others}", None, advice)
    if spectral_norms is not None and distance is not None and n_parameters is not None:
        terms["parameters"] = _parametric_complexity(
            n,
            spectral_norms=spectral_norms,
            distance=distance,
            n_parameters=n_parameters,
            radius=radius,
            lipschitz=lipschitz,
        )
        inputs.update(given)
    factor = check_real("constant", constant, low=0)
    alternatives = {name: factor * value for name, value in terms.items()}
    return assemble(
        "dnn bound",
        empirical_risk,
        n,
        min(alternatives.values()),
        bound=bound,
        delta=delta,
        c2=c2,
        inputs=inputs,
        alternatives=alternatives,
        note=_up_to(factor),
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
    constant: float = 1.0,
    c2: float = C2_FIXED,
) -> Bound:
    r"""The bound for networks near their initial weights (Theorem 9, and ours in its place).

    Networks of L layers (convolutions and linear maps, with activations and pooling between them that do not stretch
    and keep 0) and softmax scores, whose layers as linear operators stay within a total spectral distance β of the
    initial ones, :math:`\sum_l \lVert A_l - A^0_l \rVert \le \beta`. They depend on their W weights with the Lipschitz
    constant

    .. math:: \Lambda = \tfrac{\sqrt 2}{4} R_x \,\Bigl(1 + \frac \beta L\Bigr)^L \prod_l \max(1, \lVert A^0_l \rVert),

    so that balls of radius ε cover the class with :math:`\log \mathcal N(\varepsilon) \le W \log(1 + 2 \beta \Lambda /
    \varepsilon)`. The chaining bound of that, :func:`mauc.theory.rademacher.chaining`, goes into :func:`abstract`, with
    :math:`2 B / C` for its :math:`10 B / C`, as it does not depend on the sample. The number of pixels does not matter.

    Proved in ``docs/theory.md``, after Long and Sedghi (2020). Theorem 9 has the same ingredients;
    ``experiments/theory/printed.py`` has it as printed, and without the slips of its proof.

    Parameters
    ----------
    empirical_risk : float
        Risk on the training sample, as :class:`mauc.SurrogateRisk` has it.
    class_counts : (C,) array
        Number of training samples of each class.
    bound : float, default=1.0
        B: the loss of a pair is in [0, B], for differences of scores in [−1, 1].
    delta : float, default=0.05
        Probability with which the bound may fail.
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ on [−1, 1]: the scores are softmax.
    radius : float
        :math:`R_x`, largest 2-norm of a sample.
    constant : float, default=1.0
        Factor on the complexity. With 1 the bound is proved; with others it holds up to that constant.
    spectral_norms : sequence of float
        Largest singular value of each layer as an operator, at the initial weights; :func:`conv_spectral_norm`.
    distance : float
        β, summed spectral distance of the layers from their initial weights.
    n_parameters : int
        W, the number of weights.

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
    factor = check_real("constant", constant, low=0)
    complexity = _parametric_complexity(
        n,
        spectral_norms=spectral_norms,
        distance=distance,
        n_parameters=n_parameters,
        radius=radius,
        lipschitz=lipschitz,
    )
    return assemble(
        "cnn bound",
        empirical_risk,
        n,
        factor * complexity,
        bound=bound,
        delta=delta,
        c2=c2,
        inputs={
            "spectral_norms": tuple(spectral_norms),
            "distance": distance,
            "n_parameters": n_parameters,
            "radius": radius,
            "lipschitz": lipschitz,
        },
        note=_up_to(factor),
    )


def _parametric_complexity(
    class_counts: ArrayLike,
    *,
    spectral_norms: Sequence[float],
    distance: float,
    n_parameters: int,
    radius: float,
    lipschitz: float,
) -> float:
    """The complexity term of :func:`cnn`."""
    n = check_class_counts(class_counts)
    norms = [check_not_negative("spectral_norms", norm) for norm in spectral_norms]
    if not norms:
        raise invalid("spectral_norms", "must be one number for each layer", "none", "pass them")
    beta, L = check_not_negative("distance", distance), len(norms)
    W = check_whole("n_parameters", n_parameters, least=1)
    size = check_not_negative("radius", radius)
    if beta == 0 or size == 0:
        return 0.0  # a single network
    # Logarithms: the product of the norms of a deep network exceeds the largest float.
    log_slope = np.log(SOFTMAX_SLOPE * size) + L * np.log1p(beta / L) + sum(np.log(max(1.0, norm)) for norm in norms)
    log_reach = float(np.log(beta) + log_slope)
    rademacher = chaining(
        lambda epsilon: W * float(np.logaddexp(0.0, np.log(2.0) + log_reach - np.log(epsilon))),
        n,
        lipschitz=lipschitz,
        radius=0.5 if log_reach > np.log(0.5) else float(np.exp(log_reach)),
    )
    return C1 * rademacher / (len(n) * (len(n) - 1))


def _up_to(constant: float) -> str:
    if constant == 1.0:
        return "proved with these constants in docs/theory.md"
    return f"holds up to the constant, taken as {constant:g}"
