"""MAUC Rademacher complexity (Definition 2): by simulation for linear models, its bound, and the chaining bound.

Public as ``mauc.theory.rademacher``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from mauc._estimators import encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import check_not_negative, check_real, check_whole, invalid
from mauc.surrogates import Surrogate, get_surrogate
from mauc.theory._checks import check_class_counts, check_p
from mauc.theory.constants import surrogate_constants
from mauc.theory.imbalance import chi, xi

__all__ = ["Complexity", "chaining", "contraction_bound", "linear", "linear_bound"]

CHAIN_STEPS = 2000
CHAIN_SPAN = 1e-12
"""Smallest scale of the chain, relative to the largest."""
ASCENT_STEPS = 8


@dataclass(frozen=True)
class Complexity:
    """An estimate of the complexity, what brackets it, and the bound of the theory."""

    lower: float
    """Mean over the draws of the best value found inside; the complexity itself where the supremum is closed form."""
    upper: float
    """What it is at most, by contraction; ``lower`` where the supremum is closed form."""
    stderr: float
    """Of ``lower``, over the draws of the signs."""
    bound: float
    """:func:`linear_bound`."""

    @property
    def exact(self) -> bool:
        """The supremum is closed form: only the signs were simulated."""
        return self.lower == self.upper


def linear(
    X: Any,
    y: ArrayLike,
    *,
    gamma: float = 1.0,
    p: float = 2.0,
    surrogate: Any = None,
    alpha: float | None = None,
    split: bool = False,
    n_draws: int = 200,
    seed: int = 0,
    **options: float,
) -> Complexity:
    r"""Complexity of linear scores with :math:`\lVert W_i \rVert_p \le \gamma` on a sample, by simulation.

    With a sign :math:`\sigma` for each sample, equally likely 1 and −1 (Definition 2),

    .. math:: \hat{\mathfrak R} = \mathbb E_\sigma \sup_W \sum_i \sum_{j \ne i} \frac{1}{n_i n_j}
        \sum_{m \in N_i, n \in N_j} \frac{\sigma_m + \sigma_n}{2}\, \ell\bigl(W_i \cdot (x_m - x_n)\bigr) .

    For ℓ(t) = t, the default, the supremum is :math:`\gamma \sum_i \lVert v_i \rVert_{\bar p}` with a vector
    :math:`v_i` of class means. For a surrogate it is bracketed: from below by conditional gradient ascent, each of
    whose points is in the class, from above by :func:`contraction_bound`.

    Parameters
    ----------
    X : (N, d) array
    y : (N,) classes
    gamma, p : float
        Largest p-norm of a row of W, p in (1, 2].
    surrogate, alpha, **options
        As in :class:`mauc.SurrogateRisk`; None for ℓ(t) = t.
    split : bool, default=False
        Take the supremum of the two halves, those of :math:`\sigma_m` and of :math:`\sigma_n`, apart. The sum is not
        smaller, and it is the form for which Theorem 4 is proved in ``docs/theory.md``.
    n_draws : int, default=200
        Draws of the signs.
    seed : int, default=0

    Returns
    -------
    Complexity
        Time O(n_draws N d), with a surrogate O(n_draws N² C).

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.theory import rademacher
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [60, 30, 10])
    >>> found = rademacher.linear(rng.normal(size=(100, 3)) + y[:, None], y)
    >>> print(f"{found.lower:.2f} ± {found.stderr:.2f} <= {found.bound:.2f}")
    1.99 ± 0.05 <= 14.91
    """
    X = check_array(X, dtype=np.float64, input_name="X")
    _, codes = encode_classes(y)
    if len(codes) != len(X):
        raise invalid("y", "must have one class per row of X", f"{len(codes)} for {len(X)} rows", "pass both in full")
    gamma, dual = check_not_negative("gamma", gamma), check_p(p) / (p - 1.0)
    counts = np.bincount(codes).astype(np.float64)
    rng = np.random.default_rng(check_whole("seed", seed, least=0))
    radius = float(np.linalg.norm(X, axis=1).max())
    draws = check_whole("n_draws", n_draws, least=2)
    ell = None if surrogate is None else get_surrogate(surrogate, alpha=alpha, **options)
    lipschitz = 1.0
    if ell is not None and gamma * radius > 0:
        lipschitz = surrogate_constants(ell, radius=2.0 * gamma * radius).lipschitz
    parts = ((1.0, 0.0), (0.0, 1.0)) if split else ((1.0, 1.0),)
    found = np.zeros(draws)
    for k in range(draws):
        sign = rng.choice([-1.0, 1.0], len(codes))
        for positive, negative in parts:
            directions = _directions(X, codes, sign, len(counts), positive, negative)
            if ell is None:
                found[k] += gamma * np.linalg.norm(directions, ord=dual, axis=1).sum()
            else:
                halves = 0.5 * positive * sign, 0.5 * negative * sign
                found[k] += _ascend(X, codes, halves, ell, gamma, dual, directions)
    lower, stderr = float(found.mean()), float(found.std(ddof=1) / np.sqrt(draws))
    sizes = {"gamma": gamma, "radius": radius, "p": p, "lipschitz": lipschitz}
    upper = lower if ell is None else contraction_bound(counts, **sizes)
    return Complexity(lower, upper, stderr, linear_bound(counts, **sizes))


def _directions(X: Floats, codes: Ints, sign: Floats, n_classes: int, positive: float, negative: float) -> Floats:
    """``(C, d)`` :math:`v_i`: what :math:`W_i` is multiplied with where ℓ(t) = t."""
    members = [codes == i for i in range(n_classes)]
    mean = np.array([X[rows].mean(axis=0) for rows in members])
    signed = np.array([sign[rows] @ X[rows] / rows.sum() for rows in members])
    level = np.array([sign[rows].mean() for rows in members])[:, None]
    as_positive = (n_classes - 1) * signed - level * (mean.sum(axis=0) - mean)
    as_negative = mean * (level.sum() - level) - (signed.sum(axis=0) - signed)
    return 0.5 * (positive * as_positive + negative * as_negative)


def _dual_vector(v: Floats, gamma: float, dual: float) -> Floats:
    """The vector of p-norm γ whose product with ``v`` is largest."""
    largest = np.abs(v).max()
    if largest == 0:
        return np.zeros_like(v)
    scaled = np.abs(v) / largest
    w = np.sign(v) * scaled ** (dual - 1.0)
    p = dual / (dual - 1.0)
    return gamma * w / np.linalg.norm(w, ord=p)


def _ascend(
    X: Floats, codes: Ints, signs: tuple[Floats, Floats], ell: Surrogate, gamma: float, dual: float, directions: Floats
) -> float:
    """The largest value found, column by column: the columns share no weights."""
    total = 0.0
    n_classes = len(directions)
    counts = np.bincount(codes, minlength=n_classes)
    for i in range(n_classes):
        here = codes == i
        coefficient = (signs[0][here][:, None] + signs[1][~here]) / (counts[i] * counts[codes[~here]])
        slope = float(ell.derivative(np.zeros(1))[0])
        best = -np.inf
        for start in (_dual_vector(slope * directions[i], gamma, dual), np.zeros(X.shape[1])):
            w = start
            for _ in range(ASCENT_STEPS):
                z = X @ w
                t = z[here][:, None] - z[~here]
                value = float(np.sum(coefficient * ell.loss(t)))
                if value <= best:
                    break
                best = value
                pull = coefficient * ell.derivative(t)
                gradient = pull.sum(axis=1) @ X[here] - pull.sum(axis=0) @ X[~here]
                w = _dual_vector(gradient, gamma, dual)
        total += best
    return total


def linear_bound(
    class_counts: ArrayLike, *, gamma: float = 1.0, radius: float = 1.0, p: float = 2.0, lipschitz: float = 1.0
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

    Notes
    -----
    Proved in ``docs/theory.md`` for ℓ(t) = t, split or not. For other ℓ what is proved of the complexity is
    :func:`contraction_bound`, at most twice as much; Theorem 7 itself is proved another way, with this term.

    Examples
    --------
    >>> from mauc.theory import rademacher
    >>> round(rademacher.linear_bound([50, 30, 20]), 3)
    2.0
    """
    n = check_class_counts(class_counts)
    scale = check_not_negative("lipschitz", lipschitz) * check_not_negative("gamma", gamma)
    scale *= check_not_negative("radius", radius)
    dual = check_p(p) / (p - 1.0)
    return float(scale * np.sqrt(2.0 * len(n) * (dual - 1.0)) * chi(n) / np.sqrt(n.sum()))


def contraction_bound(
    class_counts: ArrayLike, *, gamma: float = 1.0, radius: float = 1.0, p: float = 2.0, lipschitz: float = 1.0
) -> float:
    r"""What the complexity of linear models is at most for any ℓ with the Lipschitz constant φ, by vector contraction.

    .. math:: \sqrt 2\, \varphi \gamma R_x \sqrt{\bar p - 1} \sum_i \left[ \frac{C - 1}{\sqrt{n_i}}
        + \sqrt{(C - 1) \sum_{j \ne i} \frac{1}{n_j}} \right]

    Parameters as in :func:`linear_bound`; it holds for the split complexity too.

    Examples
    --------
    >>> from mauc.theory import rademacher
    >>> round(rademacher.contraction_bound([50, 30, 20]), 3)
    3.117
    """
    n = check_class_counts(class_counts)
    C = len(n)
    scale = check_not_negative("lipschitz", lipschitz) * check_not_negative("gamma", gamma)
    scale *= check_not_negative("radius", radius)
    dual = check_p(p) / (p - 1.0)
    inverse = 1.0 / n
    sides = (C - 1) * np.sqrt(inverse) + np.sqrt((C - 1) * (inverse.sum() - inverse))
    return float(np.sqrt(2.0) * scale * np.sqrt(dual - 1.0) * sides.sum())


def chaining(
    log_covering_number: Callable[[float], float],
    class_counts: ArrayLike,
    *,
    lipschitz: float = 1.0,
    radius: float = 0.5,
) -> float:
    r"""A bound on the complexity of any class of scores, from its covering numbers (Theorem 5).

    .. math:: \hat{\mathfrak R} \le \inf_{\alpha > 0} \left\{ 8 \varphi C (C - 1)\, \alpha + 24 \varphi (C - 1)
        \frac{\xi}{\sqrt N} \int_\alpha^{D/2} \sqrt{\log \mathcal N(\varepsilon)}\, d\varepsilon \right\}

    with :math:`\mathcal N(\varepsilon)` scores such that every member of the class is within ε of one of them, in every
    column of every sample. The constants are those of the proof in ``docs/theory.md``; it holds split or not.

    Parameters
    ----------
    log_covering_number : function of ε
        :math:`\log \mathcal N(\varepsilon)`, not increasing.
    class_counts : (C,) class sizes
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ.
    radius : float, default=0.5
        D: the whole class is within it of one score; ½ serves for scores in [0, 1].

    Returns
    -------
    float
        The integral is an upper sum over 2000 scales, at most 1.4 % too large.

    Examples
    --------
    >>> from math import log
    >>> from mauc.theory import rademacher
    >>> round(rademacher.chaining(lambda eps: 10 * log(1 + 1 / eps), [5000, 3000, 2000]), 2)
    1.9
    """
    n = check_class_counts(class_counts)
    C = len(n)
    phi = check_not_negative("lipschitz", lipschitz)
    top = 0.5 * check_real("radius", radius, low=0)
    scales = top * np.geomspace(CHAIN_SPAN, 1.0, CHAIN_STEPS + 1)
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
