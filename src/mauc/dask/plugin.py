"""Bayes-optimal scores from a fitted model whose probabilities are lazy."""

from __future__ import annotations

from typing import Any, Self

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mauc._typing import Floats
from mauc._validation import check_weights, invalid
from mauc.dask._counting import class_sizes, codes_of
from mauc.dask._lazy import applied
from mauc.dask._partitions import in_partition, partitions, run, task, tree
from mauc.dask.metrics import mauc_score
from mauc.metrics.partial_counts import ClassTotals, add_totals, check_class_weights
from mauc.plugin import balanced_posterior

__all__ = ["MAUCPluginClassifier"]


class MAUCPluginClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Divides the probabilities of a fitted model by the class frequencies, lazily; see
    :class:`mauc.MAUCPluginClassifier`.

    Parameters
    ----------
    estimator : fitted classifier
        With ``classes_`` and a ``predict_proba`` that takes Dask collections and returns a Dask array, as those of
        XGBoost, LightGBM and dask-ml do; one of scikit-learn is applied partition by partition.
        Its probabilities must be those of the data as they are: no class weights, no resampling.

    Attributes
    ----------
    classes_ : (C,) array
    priors_ : (C,) array
        Share of each class in the training data.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from mauc.dask import MAUCPluginClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X[::2], y[::2])
    >>> model = MAUCPluginClassifier(forest).fit(None, da.from_array(y[::2], chunks=30))
    >>> round(model.score(da.from_array(X[1::2], chunks=(30, 13)), y[1::2]), 3)
    0.998
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Note the class frequencies; the estimator is fitted already.

        Parameters
        ----------
        X : ignored
        y : (N,) Dask array or series, the classes that the estimator was trained on
        sample_weight : (N,) Dask array or series, optional
            The weights that it was trained with.
        """
        if not hasattr(self.estimator, "predict_proba") or not hasattr(self.estimator, "classes_"):
            came, advice = type(self.estimator).__name__, "fit it first, on the same rows"
            raise invalid("estimator", "must be fitted, with classes_ and predict_proba", came, advice)
        classes = np.asarray(_computed(self.estimator.classes_))
        parts = partitions(y=y, sample_weight=sample_weight)
        found, _ = class_sizes([(part.number, part.parts[0]) for part in parts], "y")
        if set(found.tolist()) != set(classes.tolist()):
            came = f"{found.tolist()} for {classes.tolist()}"
            raise invalid("y", "must hold the classes of the estimator", came, "pass the y that it was trained on")
        totals = [task(_totals, classes, part.number, *part.parts) for part in parts]
        (whole,) = run(tree(add_totals, totals, "sum-classes"))
        check_class_weights(whole, classes)
        self.classes_ = classes
        self.priors_: Floats = whole.partition().priors
        return self

    def predict_proba(self, X: Any) -> Any:
        """``(N, C)`` optimal scores, the posterior under equal class sizes: a Dask array of a Dask collection."""
        check_is_fitted(self)
        if not dask.is_dask_collection(X):
            return balanced_posterior(_computed(self.estimator.predict_proba(X)), self.priors_)
        width = (len(self.classes_),)
        posterior = _posterior(self.estimator, X, width)
        return applied(_Balanced(self.priors_), posterior, "balanced_posterior", width, np.float64)

    def predict(self, X: Any) -> Any:
        """The class with the highest score: lazily, for a Dask collection."""
        scores = self.predict_proba(X)
        if not dask.is_dask_collection(scores):
            return self.classes_[scores.argmax(axis=1)]
        return applied(_Highest(self.classes_), scores, "highest", (), self.classes_.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Multiclass AUC of the scores of Dask collections, over the classes present in ``y``."""
        options: dict[str, Any] = {"labels": self.classes_, "sample_weight": sample_weight, "absent": "ignore"}
        return mauc_score(y, self.predict_proba(X), **options)


def _posterior(estimator: Any, X: Any, width: tuple[int, ...]) -> Any:
    """The estimator's own lazy probabilities; partition by partition, where it knows nothing of Dask."""
    if type(estimator).__module__.partition(".")[0] == "sklearn":
        return applied(estimator.predict_proba, X, "predict_proba", width, np.float64)
    found = estimator.predict_proba(X)
    if dask.is_dask_collection(found):
        return found
    came = f"{type(found).__name__} from {type(estimator).__name__}.predict_proba"
    advice = "pass a model of Dask or of scikit-learn"
    raise invalid("estimator", "must return a Dask collection for one", came, advice)


def _computed(x: Any) -> Any:
    return x.compute() if dask.is_dask_collection(x) else x


class _Balanced:
    """A function of rows that can be sent, and told from others by its priors."""

    def __init__(self, priors: Floats) -> None:
        self.priors = priors

    def __call__(self, posterior: Any) -> NDArray[Any]:
        return balanced_posterior(posterior, self.priors)


class _Highest:
    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes

    def __call__(self, scores: Any) -> NDArray[Any]:
        return self.classes[np.asarray(scores).argmax(axis=1)]


def _totals(classes: NDArray[Any], number: int, y: Any, weight: Any) -> ClassTotals:
    with in_partition(number):
        codes = codes_of(y, classes)
        if weight is not None:
            weight = check_weights(weight, codes.shape) if len(codes) else np.zeros(0)
    return ClassTotals.of(codes, len(classes), weight)
