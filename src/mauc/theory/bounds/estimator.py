"""The bound of a fitted model on its training data."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mauc._estimators import encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import invalid, is_sparse
from mauc.activations import BOUNDED, activate
from mauc.linear import MAUCClassifier
from mauc.risk import SurrogateRisk
from mauc.theory._checks import check_p
from mauc.theory.bounds.networks import network_norms
from mauc.theory.bounds.theorems import Bound, cnn, dnn, linear, surrogate_constants

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
    initial: Any = None,
    surrogate: Any = "exponential",
    alpha: float | None = None,
) -> Bound:
    r"""Return the bound on the risk of a fitted model, from the model and the data that it was trained on.

    The function reads the norms of the weights from the model, the largest length of a sample from X, and computes the
    Lipschitz constant and the range of the surrogate. Biases count as weights of a feature that is always 1. The risk
    is the ovo one, whatever pairs the model was trained by.

    Parameters
    ----------
    estimator : MAUCClassifier, Pipeline that ends in one, or torch.nn.Module
        A module returns logits; :func:`network_norms` lists the layers it may have. Linear models get :func:`linear`,
        networks :func:`cnn`, rectified networks without convolutions the smaller of :func:`dnn` and :func:`cnn`.
    X : (N, ...) array
        The training data.
    y : (N,) classes
        For a module, codes of its columns. Every class of the model must have a sample.
    delta : float, default=0.05
        Probability with which the bound may fail.
    p : float, default=2.0
        Norm of a linear model's weights, in (1, 2].
    initial : Module or state_dict, optional
        Weights of a network before its training; zeros by default.
    surrogate, alpha
        The loss, for a module; a classifier has its own.

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
    if isinstance(estimator, MAUCClassifier):
        return _linear(estimator, X, y, delta, check_p(p))
    if not callable(getattr(estimator, "state_dict", None)):
        requirement = "must be a fitted MAUCClassifier or a torch.nn.Module"
        advice = "pass one of these, or the norms to bounds.linear, dnn or cnn as numbers"
        raise invalid("estimator", requirement, type(estimator).__name__, advice)
    risk = SurrogateRisk(surrogate, alpha=alpha)
    return _network(estimator, X, _codes(y, None, "the module"), risk, delta, initial)


def _codes(y: ArrayLike, classes: Any, owner: str) -> Ints:
    names, codes = encode_classes(y)
    if classes is None:
        if names.dtype.kind not in "iu" or names[0] != 0 or names[-1] != len(names) - 1:
            came = ", ".join(map(str, names[:8]))
            advice = "encode the classes; drop the columns of those without samples"
            raise invalid("y", f"must hold every column of {owner}, 0 to C - 1", came, advice)
        return codes
    missing = sorted(set(classes.tolist()) - set(names.tolist()))
    if missing:
        raise invalid("y", f"must have samples of every class of {owner}", f"none of {missing[0]!r}", SEEN)
    unknown = sorted(set(names.tolist()) - set(classes.tolist()))
    if unknown:
        raise invalid("y", f"must hold classes of {owner} only", f"{unknown[0]!r}", SEEN)
    return codes


def _largest_norm(X: Any) -> float:
    if is_sparse(X):
        return float(np.sqrt(X.multiply(X).sum(axis=1).max()))
    return float(np.linalg.norm(np.asarray(X, dtype=np.float64).reshape(len(X), -1), axis=1).max())


def _linear(model: MAUCClassifier, X: Any, y: ArrayLike, delta: float, p: float) -> Bound:
    check_is_fitted(model)
    codes = _codes(y, model.classes_, "the model")
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
    return _noted(
        linear(
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
    )


def _network(network: Any, X: Any, codes: Ints, risk: SurrogateRisk, delta: float, initial: Any) -> Bound:
    norms = network_norms(network, X, initial=initial)
    logits = _logits(network, X)
    if len(logits) != len(codes) or logits.ndim != 2:
        requirement = "must map the rows of X to logits of shape (N, C)"
        raise invalid("network", requirement, f"shape {logits.shape}", "pass a classifier, and X and y in full")
    if logits.shape[1] != int(codes.max()) + 1:
        came = f"{int(codes.max()) + 1} for {logits.shape[1]} columns"
        raise invalid("y", "must have samples of every class", came, "drop the columns of classes without samples")
    constants = surrogate_constants(risk.surrogate)
    shared: dict[str, Any] = {
        "radius": norms.radius(_largest_norm(_numpy(X))),
        "lipschitz": constants.lipschitz,
        "bound": constants.bound,
        "delta": delta,
    }
    value, counts = risk.value(codes, softmax(logits, axis=1)), np.bincount(codes)
    near: dict[str, Any] = {"spectral_norms": norms.initial_spectral, "distance": norms.distance}
    near["n_parameters"] = norms.n_parameters
    found = [cnn(value, counts, **near, **shared)]
    if norms.frobenius is not None:
        with np.errstate(over="ignore"):
            # If the product of many norms exceeds the largest float, the other bound is smaller and is used.
            gamma = min(float(np.prod(norms.frobenius)), 1e200)
        found.append(dnn(value, counts, gamma=gamma, depth=norms.depth, **shared))
    return _noted(min(found, key=lambda each: each.total))


def _noted(found: Bound) -> Bound:
    return replace(found, note="; ".join(filter(None, [found.note, NOTE])))


def _numpy(X: Any) -> Any:
    return X.detach().cpu().numpy() if hasattr(X, "detach") else X


def _logits(network: Any, X: Any) -> Floats:
    import torch

    network = deepcopy(network).eval()
    rows = torch.as_tensor(_numpy(X)).to(next(network.parameters()))
    with torch.no_grad():
        parts = [network(rows[k : k + 1024]) for k in range(0, len(rows), 1024)]
    return torch.cat(parts).double().cpu().numpy()
