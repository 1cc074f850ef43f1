"""The bound of a fitted linear model on its training data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mauc._estimators import encode_classes
from mauc._typing import Ints
from mauc._validation import invalid, is_sparse
from mauc.activations import BOUNDED, activate
from mauc.linear import MAUCClassifier
from mauc.theory._checks import check_p
from mauc.theory.bounds.theorems import Bound, linear, surrogate_constants

__all__ = ["for_estimator"]

NOTE = "norms are those of the fitted model: read it as the bound for all models of such norms"
SEEN = "pass the data that it was trained on"


def for_estimator(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    delta: float = 0.05,
    p: float = 2.0,
) -> Bound:
    r"""Return the bound of :func:`linear` on the risk of a fitted model, from the data that it was trained on.

    The function reads the norms of the weights from the model, the largest length of a sample from X, and computes the
    Lipschitz constant and the range of the surrogate. Biases count as weights of a feature that is always 1. The risk
    is the ovo one, whatever pairs the model was trained by.

    Parameters
    ----------
    estimator : MAUCClassifier, or Pipeline that ends in one
    X : (N, d) array or sparse matrix
        The training data.
    y : (N,) classes
        Every class of the model must have a sample.
    delta : float, default=0.05
        Probability with which the bound may fail.
    p : float, default=2.0
        Norm of the weights, in (1, 2].

    Returns
    -------
    Bound

    Notes
    -----
    A bound holds for all models of a class that was fixed before the data were seen. Here the class is made after the
    model. To be strict, fix the norms beforehand, or divide ``delta`` by the number of classes of models considered.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from mauc import MAUCClassifier
    >>> from mauc.theory import bounds
    >>> X, y = make_classification(3000, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    >>> model = MAUCClassifier("squared", l2=0.01).fit(X, y)
    >>> found = bounds.for_estimator(model, X, y)
    >>> found.name, found.vacuous, sorted(found.terms)
    ('linear bound', True, ['complexity', 'concentration', 'empirical_risk'])
    """
    if isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    if not isinstance(estimator, MAUCClassifier):
        advice = "pass one, or the norms of another model to bounds.linear, dnn or cnn as numbers"
        raise invalid("estimator", "must be a fitted MAUCClassifier", type(estimator).__name__, advice)
    return _linear(estimator, X, y, delta, check_p(p))


def _codes(y: ArrayLike, classes: Any) -> Ints:
    names, codes = encode_classes(y)
    missing = sorted(set(classes.tolist()) - set(names.tolist()))
    if missing:
        raise invalid("y", "must have samples of every class of the model", f"none of {missing[0]!r}", SEEN)
    unknown = sorted(set(names.tolist()) - set(classes.tolist()))
    if unknown:
        raise invalid("y", "must hold classes of the model only", f"{unknown[0]!r}", SEEN)
    return codes


def _largest_norm(X: Any) -> float:
    if is_sparse(X):
        return float(np.sqrt(X.multiply(X).sum(axis=1).max()))
    return float(np.linalg.norm(np.asarray(X, dtype=np.float64).reshape(len(X), -1), axis=1).max())


def _linear(model: MAUCClassifier, X: Any, y: ArrayLike, delta: float, p: float) -> Bound:
    check_is_fitted(model)
    codes = _codes(y, model.classes_)
    activation = model._activation()
    scores = activate(model._logits(X), activation)
    risk = model._risk()
    weights, radius = model.coef_, _largest_norm(X)
    if model.intercept_.any() and activation != "identity":  # it cancels in differences
        weights, radius = np.column_stack([weights, model.intercept_]), float(np.hypot(radius, 1.0))
    gamma = float(np.linalg.norm(weights, ord=p, axis=1).max())
    # A log-odd moves by twice the largest change of a logit.
    stretch = {"identity": 2.0, "log_odds": 4.0}.get(activation, 0.0)
    reach = 1.0 if activation in BOUNDED else max(stretch * gamma * radius, 1e-300)
    constants = surrogate_constants(risk.surrogate, radius=reach)
    found = linear(
        risk.value(codes, scores),
        np.bincount(codes),
        gamma=gamma,
        radius=radius,
        p=p,
        lipschitz=constants.lipschitz,
        bound=constants.bound,
        delta=delta,
        activation=activation,
    )
    return replace(found, note=NOTE)
