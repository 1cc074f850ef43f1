"""Compare two models by their scores on the same cross-validation splits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.exceptions import UndefinedMetricWarning

from mauc._typing import Floats
from mauc._validation import check_real, invalid
from mauc.metrics.uncertainty import NO_DIFFERENCE, Comparison

__all__ = ["compare_cv_scores"]

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Differences that vary by less, relative to the scores, are equal but for rounding."""


def compare_cv_scores(
    score_a: ArrayLike | Mapping[str, Any],
    score_b: ArrayLike | Mapping[str, Any],
    *,
    test_size: float | None = None,
    level: float = 0.95,
) -> Comparison:
    r"""Compare two models by their scores on the same cross-validation splits, with the corrected resampled t-test.

    The training sets of different splits overlap, so the K differences :math:`d_k` of the scores are not independent,
    and a plain paired t-test rejects far too often. Nadeau and Bengio use a larger variance of the mean, which grows
    with the share of test rows in each split:

    .. math:: \widehat{\operatorname{Var}}(\bar d) =
        \Bigl(\frac1K + \frac{n_{\mathrm{test}}}{n_{\mathrm{train}}}\Bigr) \frac{1}{K - 1} \sum_k (d_k - \bar d)^2 ,

    with Student's t at K − 1 degrees of freedom.

    Parameters
    ----------
    score_a, score_b : (K,) arrays, or dicts from ``sklearn.model_selection.cross_validate``
        Score of each model on each split, of any metric: the same splits in the same order. From a dict,
        ``"test_score"`` is used.
    test_size : float, optional
        Share of the rows that each split tests, such as 0.2 for five folds. Required unless a dict was made with
        ``return_indices=True``.
    level : float, default=0.95
        Confidence level, between 0 and 1.

    Returns
    -------
    Comparison
        With ``difference`` (mean of a minus b), ``low``, ``high``, ``stderr``, ``pvalue``. The interval of scores in
        [0, 1] stays within [−1, 1]. Equal scores on every split give 0 ± 0 and the p-value 1. If the difference is
        another number, the same on every split, all but the difference is NaN, with ``UndefinedMetricWarning``: the
        estimate of the variance is 0, which Student's t does not allow, and a test that divides by it would call any
        difference certain. A finer metric or more splits give an answer.

    Notes
    -----
    This test compares two ways of training. If there is a test set, :func:`compare_mauc` compares two trained models on
    it.

    The correction is a heuristic: no unbiased estimator of the variance of k-fold cross-validation exists (Bengio and
    Grandvalet). Splits share training rows, and no split shows what these do to all of them. The test counts this as if
    two splits were correlated by the share of their test rows; where models depend more on the training rows, it
    rejects too often. ``python tests/cv_study.py`` compares two equal models on 120 rows at the level 0.05, in 1,000
    draws, and 250 with 10 × 10 folds. The test rejected

    - in 1.1 to 5.1 % of the draws for probabilities from the centres of the classes, over 5 and 10 folds, 5 × 2, 5 × 5
      and 10 × 10 folds (the uncorrected test: 5.5 to 53.6 %),
    - in 6.1 % for nearest neighbours over 10 folds, and in 15.2 % over 10 × 10,
    - in 7.6 % for scores that rank worse the worse the centres are learned over 10 folds, in 16.8 % over 10 × 10, and
      in 24.6 % over 5 × 2.

    So one round of k folds is safer than repeated ones, although repeated folds depend less on how the rows were split
    (Bouckaert and Frank). With fewer than five splits the interval is very wide.

    References
    ----------
    Nadeau, Bengio: Inference for the generalization error. Machine Learning 52, 2003.
    Bengio, Grandvalet: No unbiased estimator of the variance of k-fold cross-validation. JMLR 5, 2004.
    Bouckaert, Frank: Evaluating the replicability of significance tests for comparing learning algorithms. PAKDD 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import RepeatedStratifiedKFold, cross_validate
    >>> from mauc import compare_cv_scores, mauc_scorer
    >>> X, y = load_wine(return_X_y=True)
    >>> splits = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
    >>> model = LogisticRegression(max_iter=5000)
    >>> options = {"scoring": mauc_scorer, "cv": splits, "return_indices": True}
    >>> few, fewer = (cross_validate(model, X[:, :k], y, **options) for k in (4, 3))
    >>> result = compare_cv_scores(few, fewer)
    >>> print(f"{result.difference:.3f} [{result.low:.3f}, {result.high:.3f}], p = {result.pvalue:.2f}")
    0.038 [0.005, 0.072], p = 0.03
    """
    level = check_real("level", level, low=0, high=1)
    a, b = (_split_scores(name, scores) for name, scores in (("score_a", score_a), ("score_b", score_b)))
    if len(a) != len(b):
        advice = "score both models on the same splits"
        raise invalid("score_b", f"must have the shape ({len(a)},) of score_a", f"({len(b)},)", advice)
    tested = _test_size(test_size, score_a, score_b)
    differences = a - b
    if not differences.any():
        return NO_DIFFERENCE
    mean, freedom = float(differences.mean()), len(a) - 1
    if np.ptp(differences) <= ROUNDING * max(np.abs(a).max(), np.abs(b).max()):
        warnings.warn(
            f"the scores differ by {mean:.4g} on every split: the variance of the difference cannot be estimated, and "
            "there is no interval and no p-value",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return Comparison(mean, math.nan, math.nan, math.nan, math.nan)
    stderr = math.sqrt((1.0 / len(a) + tested / (1.0 - tested)) * float(differences.var(ddof=1)))
    reach = float(special.stdtrit(freedom, 0.5 + 0.5 * level)) * stderr
    pvalue = 2.0 * float(special.stdtr(freedom, -abs(mean) / stderr))
    smallest = float(np.finfo(np.float64).tiny)
    # AUCs and accuracies differ by at most 1; a log-loss has no limit.
    most = 1.0 if min(a.min(), b.min()) >= 0.0 and max(a.max(), b.max()) <= 1.0 else math.inf
    return Comparison(mean, max(-most, mean - reach), min(most, mean + reach), stderr, max(pvalue, smallest))


def _split_scores(parameter: str, given: ArrayLike | Mapping[str, Any]) -> Floats:
    if isinstance(given, Mapping):
        if "test_score" not in given:
            advice = "pass what cross_validate returns with a single metric, or the scores as an array"
            raise invalid(parameter, "must hold 'test_score'", f"only {', '.join(map(repr, given))}", advice)
        given = given["test_score"]
    scores = np.asarray(given, dtype=np.float64)
    if scores.ndim != 1 or len(scores) < 2:
        advice = "pass one score for each of two splits or more"
        raise invalid(parameter, "must have the shape (n_splits,)", f"shape {scores.shape}", advice)
    if not np.isfinite(scores).all():
        advice = "leave out splits on which the score is undefined, for both models"
        raise invalid(parameter, "must be finite", f"{scores[~np.isfinite(scores)][0]}", advice)
    return scores


def _test_size(given: float | None, *results: Any) -> float:
    """Return the share of rows that a split tests, from the indices in the results if it is not given."""
    if given is not None:
        return check_real("test_size", given, low=0, high=1)
    for result in results:
        if isinstance(result, Mapping) and "indices" in result:
            n_test, n_train = (sum(map(len, result["indices"][part])) for part in ("test", "train"))
            return n_test / (n_test + n_train)
    advice = "pass test_size=0.2 for five folds, or return_indices=True to cross_validate"
    raise invalid("test_size", "is required with scores alone", "None", advice)
