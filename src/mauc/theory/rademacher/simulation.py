"""MAUC Rademacher complexity (Definition 2) of linear models, by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from mauc._estimators import encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import check_not_negative, check_whole, invalid
from mauc.surrogates import Surrogate, get_surrogate
from mauc.theory._checks import check_p
from mauc.theory.constants import surrogate_constants
from mauc.theory.rademacher.norms import linear_bound

__all__ = ["Complexity", "linear"]

ASCENT_STEPS = 8


@dataclass(frozen=True)
class Complexity:
    """An estimate of the complexity, what brackets it, and the bound of the theory."""

    lower: float
    """Mean over the draws of the best value found inside; the complexity itself where the supremum is closed form."""
    upper: float
    """What it is at most, by contraction; ``lower`` where the supremum is closed form or every sign was tried."""
    stderr: float
    """Of ``lower``, over the draws of the signs."""
    bound: float
    """What the theory says: :func:`linear_bound`, or Massart's for a finite list."""

    @property
    def exact(self) -> bool:
        """Only the signs were simulated, or not even they, where ``stderr`` is 0."""
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
    whose points is in the class, from above by :func:`linear_bound` with ``sharp=True``.

    Parameters
    ----------
    X : (N, d) array
    y : (N,) classes
    gamma, p : float
        Largest p-norm of a row of W, p in (1, 2].
    surrogate : str, object or None
        ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``, ``"generalized_hinge"``, ``"logistic"``,
        ``"distance_weighted"``, or an object with ``loss(t)`` and ``derivative(t)``; None for ℓ(t) = t.
    alpha : float, optional
        Margin or rate α of the surrogate; None is the surrogate's own.
    **options
        Further parameters of the surrogate: ``q``, ``epsilon``.
    split : bool, default=False
        Take the supremum of the two halves, those of :math:`\sigma_m` and of :math:`\sigma_n`, apart. The sum is not
        smaller, and with it Theorem 4 holds for every class; the rows of W are free of each other, so it holds without.
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
    sizes: dict[str, Any] = {"gamma": gamma, "radius": radius, "p": p, "lipschitz": lipschitz}
    upper = lower if ell is None else linear_bound(counts, **sizes, sharp=True)
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
