"""Base classes of the classifiers, class codes of a target, and scores of any estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import _safe_indexing, check_array, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from mauc._labels import positions
from mauc._validation import check_classes, check_hashable, invalid, is_missing, listing, scores_of, unwrap
from mauc.activations import activate
from mauc.metrics import mauc_score


def encode_classes(y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted classes of a training target, at least two, and the code of each sample."""
    if y is None:
        requirement = "is required: a classifier requires y to be passed, but the target y is None"
        raise invalid("y", requirement, None, "pass y")
    given = unwrap(y, "y")
    target = column_or_1d(
        check_array(given, ensure_2d=False, dtype=None, input_name="y", ensure_all_finite="allow-nan"), warn=True
    )
    check_hashable(target, "y")
    if target.dtype.kind in "Of" and any(is_missing(value) for value in target.tolist()):
        advice = "drop the samples without a class"
        raise invalid("y", "must name the class of every sample", "a missing value", advice)
    check_classification_targets(target)
    classes, codes = np.unique(target, return_inverse=True)
    if len(classes) < 2:
        came = f"1 class, {classes.tolist()[0]!r}"
        raise invalid("y", "must hold two classes or more", came, "multiclass AUC compares classes; check the split")
    return classes, codes


def scores_by_code(estimator: Any, X: Any, n_classes: int) -> NDArray[np.float64]:
    """Return ``(N, C)`` scores of an estimator fitted on codes ``0..C-1``; 0 for a class that it does not know."""
    scores = _all_columns(estimator, X)
    out = np.zeros((len(scores), n_classes))
    out[:, np.asarray(estimator.classes_, dtype=np.int64)] = scores
    return out


def scores_by_class(estimator: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``(N, C)`` scores of an estimator that was fitted on all these classes."""
    missing = np.setdiff1d(classes, estimator.classes_)
    if len(missing):
        advice = "RareClassKFold, which a number of folds gives, keeps every class in every training part"
        raise invalid("cv", "must train on every class in every fold", f"a fold without {missing[0]}", advice)
    return _all_columns(estimator, X)[:, np.searchsorted(estimator.classes_, classes)]


def _all_columns(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return one column per class; the only column of a binary decision function is the difference of two."""
    scores = np.asarray(scores_of(estimator, X), dtype=np.float64)
    return np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores


def mauc_of_known(
    y: ArrayLike, scores: Any, classes: NDArray[Any], pairs: Any = "ovo", sample_weight: ArrayLike | None = None
) -> float:
    """Compute the multiclass AUC over the classes of the model that are in ``y``.

    Samples of a class that the model does not know are left out with a warning; an error would turn every candidate of
    a search into NaN.
    """
    there, codes = check_classes(y)
    known = positions(there, classes) >= 0
    if not known.all() and known.any():
        warnings.warn(
            f"classes that were not in the training part are left out of the multiclass AUC: {listing(there[~known])}; "
            "RareClassKFold keeps every class in every training part",
            UndefinedMetricWarning,
            stacklevel=3,
        )
        rows = np.flatnonzero(known[codes])
        y, scores = there[codes[rows]], _safe_indexing(scores, rows)
        sample_weight = None if sample_weight is None else _safe_indexing(sample_weight, rows)
    return mauc_score(y, scores, pairs=pairs, labels=classes, sample_weight=sample_weight, absent="ignore")


class HighestScoreClassifier(ClassifierMixin):  # type: ignore[misc]
    """Provide ``predict`` of a classifier that has ``predict_proba``."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of the highest ``predict_proba``."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


class RankingClassifier(HighestScoreClassifier):
    """Provide ``predict`` and ``score`` of a classifier that ranks by ``predict_proba``."""

    pairs: Any = "ovo"
    classes_: NDArray[Any]

    def _ranking_scores(self, X: Any) -> NDArray[Any]:
        """Return the ``(N, C)`` scores that the model ranks by."""
        return np.asarray(self.predict_proba(X))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the multiclass AUC of the scores that the model ranks by, over the classes in ``y``.

        Samples of a class that was not in the training data are left out, with a warning.
        """
        return mauc_of_known(y, self._ranking_scores(X), self.classes_, self.pairs, sample_weight)


class WrappingClassifier(RankingClassifier, MetaEstimatorMixin):  # type: ignore[misc]
    """A classifier around another one, ``estimator``, by default a logistic regression."""

    estimator: Any
    estimator_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _base(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression() if self.estimator is None else self.estimator

    def _keep_input_names(self) -> None:
        """Copy the number and names of the columns from the fitted estimator, if it has them."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))


class LogitClassifier(RankingClassifier):
    """A classifier whose scores are an activation of its ``(N, C)`` logits, ``_logits(X)``; X may be sparse."""

    activation: Any = "softmax"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _logits(self, X: Any) -> NDArray[Any]:
        """Return ``(N, C)`` logits; subclasses implement it."""
        raise NotImplementedError(f"{type(self).__name__} must define _logits(X)")

    def _scores_are(self) -> str:
        """Return the activation that the model ranks by.

        With a log-loss it is softmax, whatever the ranking term uses: it ranks 0.7 to 1.5 points better than the logits
        of the same network (guide, "Which loss").
        """
        log_loss = getattr(self, "log_loss_", getattr(self, "log_loss", 0.0))
        return "softmax" if log_loss else str(self.activation or "softmax")

    def _ranking_scores(self, X: Any) -> NDArray[Any]:
        return activate(self._logits(X), self._scores_are())

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return logits of shape ``(N, C)``; for two classes the difference of the two columns, of shape ``(N,)``.

        The model ranks by them only with ``activation="identity"`` and no log-loss: softmax changes the order within a
        column.
        """
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def _has_probabilities(self) -> bool:
        return self._scores_are() in ("softmax", "log_odds")

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return softmax scores of shape ``(N, C)``, which are not calibrated.

        Available with ``activation="softmax"`` or ``"log_odds"``, or with a log-loss.
        """
        return activate(self._logits(X), "softmax")

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest logit."""
        # Not of the scores, which are tied where an activation saturates.
        best = self._logits(X).argmax(axis=1)
        return self.classes_[best]
