"""Bayes-optimal scores for multiclass AUC from any probabilistic classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from mauc._estimators import WrappingClassifier, encode_classes
from mauc._validation import check_sample_weight, invalid
from mauc.model_selection import RareClassKFold
from mauc.partition import ClassPartition

__all__ = ["MAUCPluginClassifier"]


def balanced_posterior(posterior: NDArray[Any], priors: NDArray[Any]) -> NDArray[np.float64]:
    r"""Return the posterior under equal class sizes, :math:`s_i / \sum_j s_j` with :math:`s_i = \eta_i / p_i`.

    In every column it is an increasing map of Theorem 2's optimal score :math:`s_i / \sum_{j \ne i} s_j`.
    """
    ratio = np.asarray(posterior, dtype=np.float64) / priors
    total = ratio.sum(axis=1, keepdims=True)
    even = np.full_like(ratio, 1.0 / ratio.shape[1])
    return np.divide(ratio, total, out=even, where=total > 0)


def _calibration_folds(cv: Any, codes: NDArray[np.int64]) -> Any:
    """Return splits that hold out every sample once and keep every class in every training part.

    The only sample of a class is in both parts of the first split: without it the classifier would not know its class.
    Returns a list, because scikit-learn refuses a splitter with more folds than the smallest class has samples.
    """
    if not isinstance(cv, int | np.integer):
        return cv
    (train, test), *others = RareClassKFold(int(cv)).split(codes, codes)
    only = np.flatnonzero(np.bincount(codes)[codes] == 1)
    return [(train, np.union1d(test, only)), *(split for split in others if len(split[1]))]


class MAUCPluginClassifier(WrappingClassifier, BaseEstimator):  # type: ignore[misc]
    r"""Turn the probabilities of any classifier into optimal scores for multiclass AUC.

    With the posterior :math:`\eta` and the class frequencies p, the scores

    .. math:: f^*_i = \frac{s_i}{\sum_{j \ne i} s_j}, \qquad s_i = \eta_i / p_i

    maximise multiclass AUC (Theorem 2 of the paper), and so does any increasing function of each column. A classifier
    that estimates :math:`\eta` well need only divide by the class frequencies. ``fit`` clones and fits the classifier;
    to keep a fitted one as it is, wrap it in :class:`~sklearn.frozen.FrozenEstimator`.
    ``predict_proba`` returns :math:`s_i / \sum_j s_j`, the posterior under equal class sizes.

    Parameters
    ----------
    estimator : classifier, default=LogisticRegression()
        Must estimate the posterior of the data: class weights or resampling would divide the priors out twice.
    cv : int, splitter or None, default=None
        Folds on whose held-out parts the probabilities are calibrated first, by temperature scaling: its single
        parameter suits rare classes. Every class stays in every training part. None: no calibration. For forests
        pass 3: their probabilities are often 0 or 1. For another method, pass a
        :class:`~sklearn.calibration.CalibratedClassifierCV` as the estimator.

    Attributes
    ----------
    classes_ : (C,) array
    priors_ : (C,) array
        Share of each class in the training data.
    estimator_ : fitted classifier

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from mauc import MAUCPluginClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MAUCPluginClassifier(RandomForestClassifier(random_state=0), cv=3).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 3)
    0.998

    A fitted classifier stays as it is inside a ``FrozenEstimator``; ``fit`` then only counts the classes.

    >>> from sklearn.frozen import FrozenEstimator
    >>> forest = RandomForestClassifier(random_state=0).fit(X[::2], y[::2])
    >>> MAUCPluginClassifier(FrozenEstimator(forest)).fit(X[::2], y[::2]).estimator_.estimator is forest
    True
    """

    def __init__(self, estimator: Any = None, *, cv: Any = None) -> None:
        self.estimator = estimator
        self.cv = cv

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier, calibrate it if ``cv`` is given, and store the class frequencies."""
        base = self._base()
        if not hasattr(base, "predict_proba"):
            advice = "pass a probabilistic classifier, or wrap it in CalibratedClassifierCV"
            raise invalid("estimator", "must have predict_proba", type(base).__name__, advice)
        classes, codes = encode_classes(y)
        takes_weight = isinstance(base, FrozenEstimator) or has_fit_parameter(base, "sample_weight")
        if sample_weight is not None and not takes_weight:
            advice = "its posterior would not fit the weighted priors; pass no weights, or another classifier"
            raise invalid("sample_weight", "needs a classifier whose fit takes it", type(base).__name__, advice)
        weight = check_sample_weight(sample_weight, codes, len(classes), classes)
        partition = ClassPartition(codes, len(classes), weight)
        if self.cv is None:
            model = clone(base)
        else:
            folds = _calibration_folds(self.cv, codes)
            model = CalibratedClassifierCV(clone(base), method="temperature", cv=folds, ensemble=False)
        self.estimator_ = model.fit(X, y) if sample_weight is None else model.fit(X, y, sample_weight=weight)
        self.classes_ = self.estimator_.classes_
        self.priors_ = partition.priors
        self._keep_input_names()
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the ``(N, C)`` optimal scores: the posterior under equal class sizes."""
        check_is_fitted(self)
        return balanced_posterior(self.estimator_.predict_proba(X), self.priors_)
