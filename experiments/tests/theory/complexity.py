"""MAUC Rademacher complexity (Definition 2) of a list of models and of linear models, for the tests of the bounds."""

import numpy as np

ALL_SIGNS = 18
"""Up to so many samples, every sign pattern is tried."""


def complexity(models, y, *, loss=None, by_column=False, n_draws=4096, most_exact=ALL_SIGNS):
    r"""Return the complexity of models, given by their ``(M, N, C)`` scores, and its standard error, 0 if it is exact.

    The term of a model in Definition 2 is linear in the signs, :math:`\sum_k \sigma_k c_k(f)`, so the complexity is
    :math:`\mathbb E_\sigma \max_f \sigma \cdot c(f)`. ``loss`` is ℓ(t) = t by default. ``by_column`` adds up the maxima
    of the columns, which Theorem 4 needs if the columns of a model depend on each other.
    """
    n_samples = len(y)
    parts = np.stack([_coefficients(np.asarray(model), y, loss) for model in models])
    parts = parts if by_column else parts.sum(axis=1, keepdims=True)
    if n_samples <= most_exact:
        patterns = np.arange(1 << n_samples)
        signs = np.where((patterns[:, None] >> np.arange(n_samples)) & 1, 1.0, -1.0)
        return _largest(parts, signs).mean(), 0.0
    values = _largest(parts, np.random.default_rng(0).choice([-1.0, 1.0], (n_draws, n_samples)))
    return values.mean(), values.std(ddof=1) / np.sqrt(n_draws)


def _coefficients(scores, y, loss):
    """Return ``(C, N)``: half the weighted sum of ℓ over the pairs of column i that sample k is in."""
    counts = np.bincount(y)
    out = np.zeros((len(counts), len(y)))
    for i, count in enumerate(counts):
        own = y == i
        t = scores[own, i][:, None] - scores[~own, i]
        pairs = (t if loss is None else loss(t)) / (2.0 * count * counts[y[~own]])
        out[i, own], out[i, ~own] = pairs.sum(axis=1), pairs.sum(axis=0)
    return out


def _largest(parts, signs):
    """Return the sum over the columns of the largest value of a model, for each row of signs."""
    return np.einsum("mcn,sn->mcs", parts, signs, optimize=True).max(axis=0).sum(axis=0)


def linear_complexity(X, y, *, gamma=1.0, p=2.0, n_draws=200):
    r"""Return the complexity of linear scores with :math:`\lVert W_i \rVert_p \le \gamma`, and its standard error.

    For :math:`\ell(t) = t` it is :math:`\gamma\, \mathbb E_\sigma \sum_i \lVert v_i \rVert_{\bar p}` with vectors
    :math:`v_i` of class means, so that only the signs are drawn.
    """
    rng = np.random.default_rng(0)
    found = np.empty(n_draws)
    for k in range(n_draws):
        v = directions(X, y, rng.choice([-1.0, 1.0], len(y)))
        found[k] = gamma * np.linalg.norm(v, ord=p / (p - 1.0), axis=1).sum()
    return found.mean(), found.std(ddof=1) / np.sqrt(n_draws)


def directions(X, y, sign):
    """Return the ``(C, d)`` vectors :math:`v_i`."""
    members = [y == i for i in range(y.max() + 1)]
    mean = np.array([X[rows].mean(axis=0) for rows in members])
    signed = np.array([sign[rows] @ X[rows] / rows.sum() for rows in members])
    level = np.array([sign[rows].mean() for rows in members])[:, None]
    as_positive = (len(members) - 1) * signed - level * (mean.sum(axis=0) - mean)
    as_negative = mean * (level.sum() - level) - (signed.sum(axis=0) - signed)
    return 0.5 * (as_positive + as_negative)
