"""MAUC Rademacher complexity (Definition 2) of linear models, by simulation, and the bound of Theorem 7's lemma."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from mauc._estimators import encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import check_not_negative, check_whole, invalid
from mauc.theory._checks import check_class_counts, check_p, check_product
from mauc.theory.imbalance import chi

__all__ = ["Complexity", "linear_bound", "linear_complexity"]


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


@dataclass(frozen=True)
class Complexity:
    """A complexity averaged over random signs, and the bound of the theory."""

    value: float
    """Mean over the draws of the signs."""
    stderr: float
    """Standard error of the mean; 0 if every pattern of signs was tried."""
    bound: float
    """Bound of the theory: :func:`linear_bound`, or Massart's for a finite list."""


def linear_complexity(
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
    >>> from experiments.theory import linear_complexity
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [60, 30, 10])
    >>> found = linear_complexity(rng.normal(size=(100, 3)) + y[:, None], y)
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
