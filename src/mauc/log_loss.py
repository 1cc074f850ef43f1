r"""The log-loss that goes with multiclass AUC: cross-entropy of logits that are shifted by the class frequencies.

.. math:: \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(z_n + s)_{y_n}\right], \qquad
    s_j = \log (p_j / b_j) \quad \text{where} \quad v_{ij} = a_i b_j .

Its minimiser is :math:`\operatorname{softmax}(z)_j \propto \eta_j b_j / p_j`: with equal pairs (``"ovo"``, b = 1) an
increasing map, column by column, of Theorem 2's optimal scores. With ``"ova"``, b = p and nothing is shifted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mauc._typing import Floats, Ints
from mauc._validation import invalid

__all__ = ["log_loss_rows", "prior_ratios"]

ROUNDING = 1e-9


def prior_ratios(pairs: str | Floats, priors: Floats) -> Floats:
    """``(C,)`` numbers ``p_j / b_j``, whose logarithm is added to the logits; absent classes have 0.

    >>> import numpy as np
    >>> prior_ratios("ovo", np.array([0.9, 0.1]))
    array([0.9, 0.1])
    >>> prior_ratios("ova", np.array([0.9, 0.1]))
    array([1., 1.])
    """
    if isinstance(pairs, str):
        return priors if pairs == "ovo" else np.where(priors > 0, 1.0, 0.0)
    return np.where(priors > 0, priors / partner_weights(pairs), 0.0)


def partner_weights(pairs: Any) -> Floats:
    """``(C,)`` b of ``v_ij = a_i b_j`` for ``i ≠ j``, of mean 1; an error where the matrix has no such form."""
    v = np.array(pairs, dtype=np.float64)
    n_classes = len(v)
    np.fill_diagonal(v, 0.0)
    v /= v.max()
    here = np.flatnonzero(v.any(axis=1))
    if n_classes == 2:
        return np.ones(2)
    refused = invalid(
        "log_loss",
        "needs pairs that are products a_i b_j of a weight of each class",
        "a matrix that is not",
        "pass log_loss=0, or pairs='ovo' or 'ova'",
    )
    if len(here) < 2:
        raise refused
    first, second = here[:2]
    third = next(k for k in range(n_classes) if k not in (first, second))
    b = v[first].copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        b[first] = v[second, first] / v[second, third] * v[first, third]
        a = np.where(np.arange(n_classes) == third, v[:, first] / b[first], v[:, third] / b[third])
        product = np.outer(a, b)
    np.fill_diagonal(product, 0.0)
    if not (np.isfinite(b).all() and (b > 0).all() and np.allclose(product, v, rtol=ROUNDING, atol=0.0)):
        raise refused
    return b / b.mean()


def log_loss_rows(logits: Floats, y: Ints, ratios: Floats, share: Floats) -> tuple[float, Floats]:
    """``Σ_n share_n [−log softmax(z_n + log r)_{y_n}]`` and its gradient ``share_n (softmax(z_n + log r) − e_{y_n})``.

    ``share`` is ``u_n / Σu``. O(N·C) time and one array of the shape of the logits.
    """
    rows = np.arange(len(y))
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = shifted[rows, y]
    power = np.exp(shifted, out=shifted)
    power *= ratios
    total = power.sum(axis=1)
    value = float(share @ (np.log(total) - own - np.log(ratios[y])))
    power *= (share / total)[:, None]
    power[rows, y] -= share
    return value, power
