"""What decisions are judged by in place of costs: a function of classes, or the name of a scorer of scikit-learn's."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from mauc._validation import invalid

__all__ = ["Metric", "metric_of", "takes_weights"]

Metric = Callable[..., float]
"""Of true and predicted classes, and perhaps of ``sample_weight``; the larger, the better."""


class _Decided(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose predictions are what it is given: a scorer asks a model, and decisions have been made."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes_ = classes

    def predict(self, decisions: NDArray[Any]) -> NDArray[Any]:
        return decisions


def metric_of(scoring: Any, classes: NDArray[Any]) -> Metric:
    """The function that is to be maximised."""
    if isinstance(scoring, str):
        return _of_scorer(scoring, classes)
    if not callable(scoring):
        requirement = "must be a function of (y_true, y_pred) or the name of a scorer"
        raise invalid(
            "scoring", requirement, repr(scoring), "pass e.g. 'f1_macro' or sklearn.metrics.cohen_kappa_score"
        )
    found: Metric = scoring
    return found


def _of_scorer(name: str, classes: NDArray[Any]) -> Metric:
    try:
        scorer = get_scorer(name)
    except ValueError:
        advice = "sklearn.metrics.get_scorer_names() has all names"
        raise invalid("scoring", "must be the name of a scorer", repr(name), advice) from None
    model = _Decided(classes)

    def score(true: NDArray[Any], taken: NDArray[Any], **options: Any) -> float:
        try:
            return float(scorer(model, taken, true, **options))
        except AttributeError:
            advice = "pass one such as 'f1_macro' or 'matthews_corrcoef': scores are not changed by decisions"
            raise invalid("scoring", "must judge predicted classes", f"{name!r}, which judges scores", advice) from None

    return score


def takes_weights(metric: Metric) -> bool:
    """Whether a metric has a place for ``sample_weight``."""
    known = signature(metric).parameters.values()
    return any(p.name == "sample_weight" or p.kind == Parameter.VAR_KEYWORD for p in known)
