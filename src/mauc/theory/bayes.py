"""The best possible scores (Theorem 2), and the pair weights of one-vs-rest (Theorem 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._validation import check_scores, invalid
from mauc.partition import ClassPartition
from mauc.plugin import balanced_posterior
from mauc.theory._checks import ROUNDING, check_priors

__all__ = ["bayes_scores", "ova_weights"]


def bayes_scores(posterior: ArrayLike, priors: ArrayLike) -> NDArray[np.float64]:
    r"""Return the scores with the highest possible multiclass AUC (Theorem 2).

    With the posterior :math:`\eta` and the priors p,

    .. math:: f^*_i = \frac{s_i}{\sum_{j \ne i} s_j}, \qquad s_i = \eta_i / p_i,

    or any increasing function of it, column by column. This function returns :math:`f^*_i / (1 + f^*_i) = s_i / \sum_j
    s_j`, which is 1 where :math:`\eta_i = 1` and :math:`f^*_i` is infinite. :class:`mauc.MAUCPluginClassifier` has the
    same scores.

    Parameters
    ----------
    posterior : (N, C) or (C,) array
        Probability of each class; rows sum to 1.
    priors : (C,) array
        Share of each class.

    Returns
    -------
    array of the shape of ``posterior``
        O(N C) time. Their multiclass AUC on rows with known posterior, the highest possible, is
        ``mauc_interval(y, bayes_scores(posterior, priors))``.

    Examples
    --------
    >>> from mauc.theory import bayes_scores
    >>> bayes_scores([[0.9, 0.1], [0.5, 0.5]], [0.9, 0.1])
    array([[0.5, 0.5],
           [0.1, 0.9]])
    """
    p = check_priors(priors)
    one_row = np.ndim(posterior) == 1
    eta = check_scores(np.atleast_2d(np.asarray(posterior)) if one_row else posterior, "posterior").astype(np.float64)
    if eta.shape[1] != len(p):
        advice = "pass the priors of the classes of the columns"
        raise invalid("posterior", f"must have one column for each of the {len(p)} priors", f"{eta.shape[1]}", advice)
    wrong = (eta < 0).any(axis=1) | (np.abs(eta.sum(axis=1) - 1.0) > ROUNDING)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        advice = "pass probabilities, e.g. of predict_proba"
        raise invalid("posterior", "must have rows >= 0 that sum to 1", f"{eta[row]} in row {row}", advice)
    out = balanced_posterior(eta, p)
    return out[0] if one_row else out


def ova_weights(priors: ArrayLike) -> NDArray[np.float64]:
    r"""Return the ``(C, C)`` weights of the class pairs in one-vs-rest AUC (Theorem 1a).

    .. math:: v_{ij} = \frac{p_j}{C (1 - p_i)}, \qquad v_{ii} = 0, \qquad \sum_{ij} v_{ij} = 1

    One-vs-rest AUC is the mean of :func:`mauc.pairwise_auc` with these weights: a rare class j hardly counts among the
    negatives of the others. With equal priors they are the weights of one-vs-one (Theorem 1b).

    Examples
    --------
    >>> from mauc.theory import ova_weights
    >>> ova_weights([0.5, 0.45, 0.05]).round(3)
    array([[0.   , 0.3  , 0.033],
           [0.303, 0.   , 0.03 ],
           [0.175, 0.158, 0.   ]])
    """
    p = check_priors(priors)
    return ClassPartition(np.arange(len(p)), len(p), p).pair_weights("ova")
