"""The best possible scores and their multiclass AUC (Theorem 2), and the pair weights of one-vs-rest (Theorem 1)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._validation import check_choice, check_scores, check_whole, invalid
from mauc.metrics.inference import mauc_interval
from mauc.partition import ClassPartition
from mauc.plugin import balanced_posterior
from mauc.theory._checks import ROUNDING, check_priors

__all__ = ["BayesMAUC", "bayes_mauc", "bayes_scores", "ova_weights"]


class BayesMAUC(NamedTuple):
    """The highest multiclass AUC that any scores reach, estimated on fresh samples, and its standard error."""

    value: float
    stderr: float


def bayes_scores(
    posterior: ArrayLike, priors: ArrayLike, *, form: Literal["bounded", "odds"] = "bounded"
) -> NDArray[np.float64]:
    r"""Return the scores with the highest possible multiclass AUC (Theorem 2).

    With the posterior :math:`\eta` and the priors p,

    .. math:: f^*_i = \frac{s_i}{\sum_{j \ne i} s_j}, \qquad s_i = \eta_i / p_i,

    or any increasing function of it, column by column.

    Parameters
    ----------
    posterior : (N, C) or (C,) array
        Probability of each class; rows sum to 1.
    priors : (C,) array
        Share of each class.
    form : {"bounded", "odds"}, default="bounded"
        ``"odds"`` is :math:`f^*_i` itself, infinite where :math:`\eta_i = 1`. ``"bounded"`` is
        :math:`f^*_i / (1 + f^*_i) = s_i / \sum_j s_j`, which is 1 there: the scores of
        :class:`mauc.MAUCPluginClassifier`, which every metric takes.

    Returns
    -------
    array of the shape of ``posterior``
        O(N C) time.

    Examples
    --------
    >>> from mauc.theory import bayes_scores
    >>> bayes_scores([[0.9, 0.1], [0.5, 0.5]], [0.9, 0.1])
    array([[0.5, 0.5],
           [0.1, 0.9]])
    >>> bayes_scores([1.0, 0.0, 0.0], [0.2, 0.3, 0.5], form="odds")
    array([inf,  0.,  0.])
    """
    check_choice("form", form, ("bounded", "odds"))
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
    out = balanced_posterior(eta, p) if form == "bounded" else _odds(eta / p)
    return out[0] if one_row else out


def _odds(s: NDArray[np.float64]) -> NDArray[np.float64]:
    # Σ_j s_j − s_i would cancel in the largest entry of a row; the others are summed there.
    others = s.sum(axis=1, keepdims=True) - s
    rows, top = np.arange(len(s)), s.argmax(axis=1)
    rest = s.copy()
    rest[rows, top] = 0.0
    others[rows, top] = rest.sum(axis=1)
    return np.divide(s, others, out=np.full_like(s, np.inf), where=others > 0)


def bayes_mauc(distribution: Any, *, n_per_class: int | None = None, seed: int = 0) -> BayesMAUC:
    """Estimate the highest multiclass AUC (ovo) that any scores reach, by simulation.

    Parameters
    ----------
    distribution : object
        Any object with ``priors`` of shape ``(C,)``, ``sample(sizes, seed)``, which draws the given number of samples
        of each class and returns ``(X, y)`` with codes ``y``, and ``posterior(X)``, the exact ``(N, C)`` probabilities.
        If it has ``bayes_mauc(n_per_class, seed)``, that is called instead.
    n_per_class : int, optional
        Number of samples of each class; every pair of classes counts the same, so equal numbers are best. Default: up
        to 5000, fewer with more than 40 classes.
    seed : int, default=0

    Returns
    -------
    BayesMAUC
        ``value`` and ``stderr``; O(n_per_class C²) time and memory.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from mauc import theory
    >>> class TwoGaussians:
    ...     priors = np.array([0.9, 0.1])
    ...
    ...     def sample(self, sizes, seed):
    ...         y = np.repeat([0, 1], sizes)
    ...         return np.random.default_rng(seed).normal(2.0 * y), y
    ...
    ...     def posterior(self, X):
    ...         joint = self.priors * norm.pdf(X[:, None], [0.0, 2.0])
    ...         return joint / joint.sum(axis=1, keepdims=True)
    >>> best = theory.bayes_mauc(TwoGaussians())
    >>> abs(best.value - norm.cdf(2**0.5)) < 3 * best.stderr
    np.True_
    """
    if callable(getattr(distribution, "bayes_mauc", None)):
        return distribution.bayes_mauc(n_per_class, seed)
    missing = [name for name in ("priors", "sample", "posterior") if not hasattr(distribution, name)]
    if missing:
        requirement = "must have priors, sample(sizes, seed) and posterior(X)"
        came = f"{type(distribution).__name__} without {', '.join(missing)}"
        raise invalid("distribution", requirement, came, "pass such an object")
    priors = check_priors(distribution.priors, "distribution.priors")
    if n_per_class is None:
        n_per_class = min(5000, max(2, (1 << 23) // len(priors) ** 2))
    sizes = np.full(len(priors), check_whole("n_per_class", n_per_class, least=2))
    X, y = distribution.sample(sizes, check_whole("seed", seed, least=0))
    interval = mauc_interval(y, bayes_scores(distribution.posterior(X), priors), labels=np.arange(len(priors)))
    return BayesMAUC(interval.score, interval.stderr)


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
