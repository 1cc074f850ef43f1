"""Metrics of decisions instead of costs: a function of classes, or the name of a scikit-learn scorer."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from mauc._validation import invalid

Metric = Callable[..., float]
"""Function of true and predicted classes, and possibly of ``sample_weight``; larger is better."""


class _Predictions(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that predicts its input, because a scorer needs a model."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes_ = classes

    def predict(self, predicted: NDArray[Any]) -> NDArray[Any]:
        return predicted


def metric_of(scoring: Callable[..., float] | str, classes: NDArray[Any]) -> Metric:
    """Return the function to maximise."""
    if callable(scoring):
        return scoring
    advice = "pass e.g. 'f1_macro' or sklearn.metrics.cohen_kappa_score"
    if not isinstance(scoring, str):
        requirement = "must be a function of (y_true, y_pred) or the name of a scorer"
        raise invalid("scoring", requirement, repr(scoring), advice)
    try:
        scorer = get_scorer(scoring)
    except ValueError:
        advice = "sklearn.metrics.get_scorer_names() has all names"
        raise invalid("scoring", "must be the name of a scorer", repr(scoring), advice) from None

    def score(true: NDArray[Any], predicted: NDArray[Any], **options: Any) -> float:
        try:
            return float(scorer(_Predictions(classes), predicted, true, **options))
        except AttributeError:
            came = f"{scoring!r}, which needs scores"
            raise invalid("scoring", "must be a metric of predicted classes", came, advice) from None

    return score


def takes_weights(metric: Metric) -> bool:
    """Return True if a metric has a parameter ``sample_weight``."""
    known = signature(metric).parameters.values()
    return any(p.name == "sample_weight" or p.kind == Parameter.VAR_KEYWORD for p in known)
