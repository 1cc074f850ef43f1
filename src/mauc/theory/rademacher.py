"""MAUC Rademacher complexity (Definition 2): how far a class of models can follow random signs of the samples.

:func:`linear` simulates it for linear models; :func:`linear_bound` bounds it by norms, :func:`chaining` by covering
numbers.
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
from mauc.theory.imbalance import chi, xi

__all__ = ["Complexity", "chaining", "linear", "linear_bound"]


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


def linear_bound(
    class_counts: ArrayLike,
    *,
    gamma: float = 1.0,
    radius: float = 1.0,
    p: float = 2.0,
    lipschitz: float = 1.0,
    sharp: bool = False,
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
    sharp : bool, default=False
        Return the smaller term of the proof, before it is enlarged to :math:`\chi`:

        .. math:: \varphi \gamma R_x \sqrt{\bar p - 1} \sum_i \left[ \frac{C - 1}{\sqrt{n_i}}
            + \sqrt{\textstyle\sum_{j \ne i} 1 / n_j} \right]

    Notes
    -----
    The bound holds for every φ-Lipschitz ℓ, split or not: the proof first fixes one partner of each pair, so that each
    sign multiplies one difference and scalar contraction applies (``docs/theory.md``). The paper prints
    :math:`0 < p < \infty`; Khinchin-Kahane needs :math:`\bar p \ge 2`, and the bound is wrong for p > 2. It prints
    :math:`\lVert x \rVert_2^2 \le R_x` and uses the norm.

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


def chaining(
    log_covering_number: Callable[[float], float],
    class_counts: ArrayLike,
    *,
    lipschitz: float = 1.0,
    radius: float = 0.5,
) -> float:
    r"""Bound the complexity of any class of scores by its covering numbers (Theorem 5).

    .. math:: \hat{\mathfrak R} \le \inf_{\alpha > 0} \left\{ 8 \varphi C (C - 1)\, \alpha + 24 \varphi (C - 1)
        \frac{\xi}{\sqrt N} \int_\alpha^{D/2} \sqrt{\log \mathcal N(\varepsilon)}\, d\varepsilon \right\}

    where :math:`\mathcal N(\varepsilon)` scores are enough for every member of the class to be within ε of one of them,
    in every column of every sample. ``docs/theory.md`` has the proof of these constants; they hold split or not.

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
    >>> from mauc.theory import rademacher
    >>> round(rademacher.chaining(lambda eps: 10 * log(1 + 1 / eps), [5000, 3000, 2000]), 2)
    1.9
    """
    n = check_class_counts(class_counts)
    C = len(n)
    phi = check_not_negative("lipschitz", lipschitz)
    top = 0.5 * check_real("radius", radius, low=0)
    scales, integral = upper_sums(log_covering_number, top)
    values = 8.0 * C * (C - 1) * scales + 24.0 * (C - 1) * xi(n) / np.sqrt(n.sum()) * integral
    return float(phi * values.min())


def upper_sums(log_covering_number: Callable[[float], float], top: float) -> tuple[Floats, Floats]:
    """Return scales α up to ``top``, and for each an upper sum of the integral of √log N from α to ``top``."""
    scales = top * np.geomspace(1e-12, 1.0, 2001)
    logs = log_covering_numbers(log_covering_number, scales)
    # log N does not increase, so its value at the left end of each step makes an upper sum.
    steps = np.diff(scales) * np.sqrt(logs[:-1])
    return scales, np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])


def log_covering_numbers(log_covering_number: Callable[[float], float], scales: Floats) -> Floats:
    """Return log N at ascending scales."""
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
    return logs


@dataclass(frozen=True)
class Complexity:
    """An estimate of the complexity, with a lower and an upper end, and the bound of the theory."""

    lower: float
    """Mean over the draws of the largest value found; the complexity itself where the supremum has a closed form."""
    upper: float
    """Upper end, by contraction; equal to ``lower`` where the supremum has a closed form or every sign was tried."""
    stderr: float
    """Standard error of ``lower`` over the draws of the signs."""
    bound: float
    """Bound of the theory: :func:`linear_bound`, or Massart's for a finite list."""

    @property
    def exact(self) -> bool:
        """True if the supremum is exact, so that only the signs were simulated, or enumerated where ``stderr`` is 0."""
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
    r"""Simulate the complexity of linear scores with :math:`\lVert W_i \rVert_p \le \gamma` on a sample.

    With a sign :math:`\sigma` for each sample, equally likely 1 and −1 (Definition 2),

    .. math:: \hat{\mathfrak R} = \mathbb E_\sigma \sup_W \sum_i \sum_{j \ne i} \frac{1}{n_i n_j}
        \sum_{m \in N_i, n \in N_j} \frac{\sigma_m + \sigma_n}{2}\, \ell\bigl(W_i \cdot (x_m - x_n)\bigr) .

    For ℓ(t) = t, the default, the supremum is :math:`\gamma \sum_i \lVert v_i \rVert_{\bar p}` with a vector
    :math:`v_i` of class means. For a surrogate it is bounded from below by conditional gradient ascent, each of whose
    points is in the class, and from above by :func:`linear_bound` with ``sharp=True``.

    Parameters
    ----------
    X : (N, d) array
    y : (N,) classes
    gamma, p : float
        Largest p-norm of a row of W, p in (1, 2].
    surrogate : str, object or None
        A name of :data:`mauc.surrogates.SURROGATES`, or an object with ``loss(t)`` and ``derivative(t)``; None for
        ℓ(t) = t.
    alpha, **options
        Parameters of a surrogate given by its name: ``alpha``, ``q``, ``epsilon``.
    split : bool, default=False
        Take the supremum for :math:`\sigma_m` and for :math:`\sigma_n` separately. The sum is not smaller, and with it
        Theorem 4 holds for every class; for linear models it holds without, as the rows of W are independent.
    n_draws : int, default=200
        Number of draws of the signs.
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
    sizes: dict[str, Any] = {"gamma": gamma, "radius": radius, "p": p, "lipschitz": lipschitz}
    upper = lower if ell is None else linear_bound(counts, **sizes, sharp=True)
    return Complexity(lower, upper, stderr, linear_bound(counts, **sizes))


def _directions(X: Floats, codes: Ints, sign: Floats, n_classes: int, positive: float, negative: float) -> Floats:
    """Return ``(C, d)`` vectors :math:`v_i`: for ℓ(t) = t the sum is :math:`\\sum_i W_i \\cdot v_i`."""
    members = [codes == i for i in range(n_classes)]
    mean = np.array([X[rows].mean(axis=0) for rows in members])
    signed = np.array([sign[rows] @ X[rows] / rows.sum() for rows in members])
    level = np.array([sign[rows].mean() for rows in members])[:, None]
    as_positive = (n_classes - 1) * signed - level * (mean.sum(axis=0) - mean)
    as_negative = mean * (level.sum() - level) - (signed.sum(axis=0) - signed)
    return 0.5 * (positive * as_positive + negative * as_negative)


def _dual_vector(v: Floats, gamma: float, dual: float) -> Floats:
    """Return the vector of p-norm γ whose product with ``v`` is largest."""
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
    """Return the largest value found, summed over the columns, which share no weights."""
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
            for _ in range(8):
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
