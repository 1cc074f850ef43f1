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
from mauc.theory._checks import check_class_counts, check_p
from mauc.theory.imbalance import chi, xi

__all__ = ["Complexity", "chaining", "linear", "linear_bound"]


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
    >>> from mauc.theory import rademacher
    >>> round(rademacher.linear_bound([50, 30, 20]), 3)
    2.0
    """
    n = check_class_counts(class_counts)
    scale = check_not_negative("lipschitz", lipschitz) * check_not_negative("gamma", gamma)
    scale *= check_not_negative("radius", radius)
    dual = check_p(p) / (p - 1.0)
    return float(scale * np.sqrt(2.0 * len(n) * (dual - 1.0)) * chi(n) / np.sqrt(n.sum()))


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
    """A complexity averaged over random signs, and the bound of the theory."""

    value: float
    """Mean over the draws of the signs."""
    stderr: float
    """Standard error of the mean; 0 if every pattern of signs was tried."""
    bound: float
    """Bound of the theory: :func:`linear_bound`, or Massart's for a finite list."""


def linear(
    X: Any, y: ArrayLike, *, gamma: float = 1.0, p: float = 2.0, n_draws: int = 200, seed: int = 0
) -> Complexity:
    r"""Simulate the complexity of linear scores with :math:`\lVert W_i \rVert_p \le \gamma` on a sample.

    With a sign :math:`\sigma` for each sample, equally likely 1 and −1, and :math:`\ell(t) = t` (Definition 2),

    .. math:: \hat{\mathfrak R} = \mathbb E_\sigma \sup_W \sum_i \sum_{j \ne i} \frac{1}{n_i n_j}
        \sum_{m \in N_i, n \in N_j} \frac{\sigma_m + \sigma_n}{2}\, W_i \cdot (x_m - x_n)
        = \gamma\, \mathbb E_\sigma \sum_i \lVert v_i \rVert_{\bar p}

    with vectors :math:`v_i` of class means, so that only the signs are simulated. A φ-Lipschitz loss multiplies the
    bound by φ.

    Parameters
    ----------
    X : (N, d) array
    y : (N,) classes
    gamma, p : float
        Largest p-norm of a row of W, p in (1, 2].
    n_draws : int, default=200
        Number of draws of the signs.
    seed : int, default=0

    Returns
    -------
    Complexity
        Time O(n_draws N d).

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.theory import rademacher
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [60, 30, 10])
    >>> found = rademacher.linear(rng.normal(size=(100, 3)) + y[:, None], y)
    >>> print(f"{found.value:.2f} ± {found.stderr:.2f} <= {found.bound:.2f}")
    1.99 ± 0.05 <= 14.91
    """
    X = check_array(X, dtype=np.float64, input_name="X")
    _, codes = encode_classes(y)
    if len(codes) != len(X):
        raise invalid("y", "must have one class per row of X", f"{len(codes)} for {len(X)} rows", "pass both in full")
    gamma, dual = check_not_negative("gamma", gamma), check_p(p) / (p - 1.0)
    counts = np.bincount(codes).astype(np.float64)
    rng = np.random.default_rng(check_whole("seed", seed, least=0))
    draws = check_whole("n_draws", n_draws, least=2)
    found = np.empty(draws)
    for k in range(draws):
        directions = _directions(X, codes, rng.choice([-1.0, 1.0], len(codes)), len(counts))
        found[k] = gamma * np.linalg.norm(directions, ord=dual, axis=1).sum()
    bound = linear_bound(counts, gamma=gamma, radius=float(np.linalg.norm(X, axis=1).max()), p=p)
    return Complexity(float(found.mean()), float(found.std(ddof=1) / np.sqrt(draws)), bound)


def _directions(X: Floats, codes: Ints, sign: Floats, n_classes: int) -> Floats:
    """Return the ``(C, d)`` vectors :math:`v_i`."""
    members = [codes == i for i in range(n_classes)]
    mean = np.array([X[rows].mean(axis=0) for rows in members])
    signed = np.array([sign[rows] @ X[rows] / rows.sum() for rows in members])
    level = np.array([sign[rows].mean() for rows in members])[:, None]
    as_positive = (n_classes - 1) * signed - level * (mean.sum(axis=0) - mean)
    as_negative = mean * (level.sum() - level) - (signed.sum(axis=0) - signed)
    return 0.5 * (as_positive + as_negative)
