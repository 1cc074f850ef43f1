"""Fitted models: finite scores, an objective that only falls, the same answer for the same question."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.naive_bayes import GaussianNB

from fuzz import definitions
from fuzz.draw import classes
from mauc import MAUCClassifier, MAUCPluginClassifier, SurrogateRisk, mauc_scorer
from mauc.theory import bayes_scores

SURROGATES = ("squared", "exponential", "hinge", "q_hinge", "generalized_hinge", "logistic", "distance_weighted")


def run(rng: np.random.Generator) -> None:
    y, _ = classes(rng, 30, 4)
    names = np.array(["a", "b", "c", "d"])[y]
    X = rng.normal(size=(len(y), 3)) * 10.0 ** rng.integers(-3, 4)
    X[:, 0] += y * X.std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.filterwarnings("ignore", message=".*taking all pairs in blocks", category=UserWarning)
        if rng.random() < 0.8:
            _linear(rng, X, names)
        else:
            _plugin(rng, X, names)


def _linear(rng, X, y):
    surrogate, activation = str(rng.choice(SURROGATES)), str(rng.choice(["softmax", "sigmoid"]))
    weight = rng.integers(1, 4, len(y)).astype(float) if rng.random() < 0.5 else None
    l2, log_loss = 10.0 ** rng.uniform(-4, 0), float(rng.choice([0.0, 0.5]))
    model = MAUCClassifier(surrogate, log_loss=log_loss, l2=l2, activation=activation, max_iter=30)
    model.fit(X, y, sample_weight=weight)
    scores = (model.predict_proba if activation == "softmax" else model.decision_function)(X)
    assert np.isfinite(scores).all(), f"{model}: scores are not finite"
    assert set(model.predict(X)) <= set(y), f"{model}: a class that training lacks"
    codes = np.searchsorted(model.classes_, y)
    risk = SurrogateRisk(surrogate)
    shape = (len(y), len(model.classes_))
    if activation == "softmax":
        assert np.allclose(scores.sum(axis=1), 1.0), f"{model}: rows do not sum to 1"
        if log_loss == 0.0:
            reached = risk.value(codes, scores, weight) + 0.5 * l2 * float(np.sum(model.coef_**2))
            at_zero = risk.value(codes, np.full(shape, 1.0 / shape[1]), weight)
            assert reached <= at_zero + 1e-6, f"{model}: worse than 0"
        value = mauc_scorer(model, X, y)
        assert abs(value - float(definitions.mauc(codes, scores, None, "ovo"))) <= 1e-12, f"{model}: the scorer"
    again = MAUCClassifier(**model.get_params()).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(again.coef_, model.coef_, err_msg=f"{model}: a second fit differs")


def _plugin(rng, X, y):
    base = GaussianNB(var_smoothing=0.1)
    model = MAUCPluginClassifier(base).fit(X, y)
    priors = np.unique(y, return_counts=True)[1] / len(y)
    ratio = base.fit(X, y).predict_proba(X).astype(np.longdouble) / priors
    expected = (ratio / ratio.sum(axis=1, keepdims=True)).astype(float)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9, atol=1e-300, err_msg="plug-in")
    posterior = rng.dirichlet(np.ones(len(priors)), len(y))
    ratio = posterior / priors
    expected = ratio / ratio.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bayes_scores(posterior, priors), expected, rtol=1e-6, err_msg="bayes_scores")
