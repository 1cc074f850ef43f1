r"""The log-loss that goes with multiclass AUC: cross-entropy of logits shifted by the class frequencies.

.. math:: \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(z_n + s)_{y_n}\right], \qquad
    s_j = \log (p_j / b_j) \quad \text{where} \quad v_{ij} = a_i b_j .

Its minimiser is :math:`\operatorname{softmax}(z)_j \propto \eta_j b_j / p_j`: with equal pairs (``"ovo"``, b = 1) an
increasing function, column by column, of Theorem 2's optimal scores. With ``"ova"``, b = p and nothing is shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mauc._typing import Floats, Ints
from mauc._validation import check_not_negative, invalid


def check_log_loss(log_loss: Any) -> float:
    """Return the weight of the log-loss beside the risk."""
    advice = "0 is the ranking loss alone; for the log-loss alone use scikit-learn's LogisticRegression"
    return check_not_negative("log_loss", log_loss, advice=advice)


def prior_ratios(pairs: str | Floats, priors: Floats) -> Floats:
    """Return ``(C,)`` numbers ``p_j / b_j``, whose logarithm is added to the logits; 0 for absent classes.

    >>> import numpy as np
    >>> prior_ratios("ovo", np.array([0.9, 0.1]))
    array([0.9, 0.1])
    >>> prior_ratios("ova", np.array([0.9, 0.1]))
    array([1., 1.])
    """
    if isinstance(pairs, str):
        return priors if pairs == "ovo" else np.where(priors > 0, 1.0, 0.0)
    return np.where(priors > 0, priors / partner_weights(pairs), 0.0)


def has_log_loss(pairs: Any) -> bool:
    """Return True if a log-loss is defined for these pair weights."""
    try:
        return isinstance(pairs, str) or len(partner_weights(pairs)) > 0
    except ValueError:
        return False


def partner_weights(pairs: Any) -> Floats:
    """Return ``(C,)`` b of ``v_ij = a_i b_j`` for ``i ≠ j``, with mean 1; raise if the matrix has no such form."""
    v = np.array(pairs, dtype=np.float64)
    n_classes = len(v)
    np.fill_diagonal(v, 0.0)
    v /= v.max()
    here = np.flatnonzero(v.any(axis=1))
    if n_classes == 2:
        return np.ones(2)
    requirement = "needs pairs that are products a_i b_j of a weight of each class"
    refused = invalid("log_loss", requirement, "a matrix that is not", "pass log_loss=0, or pairs='ovo' or 'ova'")
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
    if not (np.isfinite(b).all() and (b > 0).all() and np.allclose(product, v, rtol=1e-9, atol=0.0)):
        raise refused
    return b / b.mean()


@dataclass(frozen=True)
class LogTerm:
    """``λ mean_n u_n [−log softmax(z_n + log r)_{y_n}]`` of a training set."""

    y: Ints
    ratios: Floats
    """``(C,)`` r; 0 for absent classes."""
    share: Floats
    """``(N,)`` ``λ u_n / Σu``."""

    def of_logits(self, logits: Floats, rows: slice) -> tuple[float, Floats]:
        """Return the sum over some rows, and its gradient, ``share_n (softmax(z_n + log r) − e_{y_n})``.

        O(N·C) time and one array of the shape of the logits.
        """
        y, share, lines = self.y[rows], self.share[rows], np.arange(len(logits))
        shifted = logits - logits.max(axis=1, keepdims=True)
        own = shifted[lines, y]
        power = np.exp(shifted, out=shifted)
        power *= self.ratios
        total = power.sum(axis=1)
        value = float(share @ (np.log(total) - own - np.log(self.ratios[y])))
        power *= (share / total)[:, None]
        power[lines, y] -= share
        return value, power


def log_term(
    log_loss: Any, pairs: str | Floats, y: Ints, class_weights: Floats, unit: Floats, *, balanced: bool = False
) -> LogTerm | None:
    """Return the term of a training set; None where ``log_loss`` is 0.

    ``class_weights`` are the ``(C,)`` summed weights of the classes, 0 where one is absent; ``unit`` the ``(N,)``
    shares of the samples in the weight of their class. ``balanced``: every class counts the same in the mean, and the
    shift is that of equal frequencies, so that the minimiser does not change.
    """
    weight = check_log_loss(log_loss)
    if not weight:
        return None
    sizes = class_weights / class_weights.max()
    priors = sizes / sizes.sum()
    ratios = prior_ratios(pairs, priors)
    if balanced:
        present = priors > 0
        ratios = np.divide(ratios, priors * present.sum(), out=np.zeros_like(ratios), where=present)
        priors = present / present.sum()
    return LogTerm(y, ratios, weight * unit * priors[y])
