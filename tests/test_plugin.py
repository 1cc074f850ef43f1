"""The plug-in: Theorem 2 on top of any probabilistic classifier."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from experiments.datasets import load_simulated
from mauc import MAUCPluginClassifier, mauc_score, mauc_scorer
from mauc.plugin import balanced_posterior


def draw_posterior(n_samples=200, n_classes=4):
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(n_classes, 0.3), n_samples), rng.dirichlet(np.ones(n_classes))


class Oracle(ClassifierMixin, BaseEstimator):
    """Knows the posterior, learns nothing."""

    def __init__(self, posterior):
        self.posterior = posterior

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return self.posterior(X)


def blobs(sizes, n_features=4, shift=1.5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(y), n_features)) + shift * np.eye(len(sizes), n_features)[y], y


def test_an_increasing_map_of_the_optimal_score():
    posterior, priors = draw_posterior()
    s = posterior / priors
    optimal = s / (s.sum(axis=1, keepdims=True) - s)
    balanced = balanced_posterior(posterior, priors)
    for column in range(4):
        by_optimal = np.argsort(optimal[:, column], kind="stable")
        assert (np.diff(balanced[by_optimal, column]) >= -1e-15).all()
    np.testing.assert_allclose(balanced / (1.0 - balanced), optimal, rtol=1e-6, atol=1e-12)


def test_identities_of_the_balanced_posterior():
    posterior, priors = draw_posterior()
    balanced = balanced_posterior(posterior, priors)
    np.testing.assert_allclose(balanced.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(balanced_posterior(posterior, np.full(4, 0.25)), posterior, rtol=1e-12)
    np.testing.assert_allclose(balanced_posterior(7.0 * posterior, priors), balanced, rtol=1e-12)
    np.testing.assert_allclose(balanced_posterior(posterior, 7.0 * priors), balanced, rtol=1e-12)
    np.testing.assert_allclose(balanced_posterior(balanced, 1.0 / priors), posterior, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(balanced_posterior(np.tile(priors, (2, 1)), priors), 0.25, rtol=1e-14)


def test_rows_of_zeros_are_even_and_certainty_stays():
    priors = np.array([0.7, 0.2, 0.1])
    rows = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(balanced_posterior(rows, priors), [[1 / 3, 1 / 3, 1 / 3], [0, 1, 0]])


@pytest.mark.parametrize(("n_classes", "imbalance"), [(2, 30), (3, 1), (6, 30)])
def test_the_true_posterior_reaches_the_bayes_mauc(n_classes, imbalance):
    data = load_simulated(n_samples=900, n_classes=n_classes, imbalance=imbalance, n_features=6, separation=1.5)
    model = MAUCPluginClassifier(Oracle(data.posterior)).fit(data.X, data.y)
    np.testing.assert_allclose(model.priors_, data.priors)
    X, y = data.sample(np.full(n_classes, 300))
    best = data.bayes_scores(X)
    assert model.score(X, y) == pytest.approx(mauc_score(y, best), abs=1e-12)
    scores = model.predict_proba(X)
    for column in range(n_classes):
        np.testing.assert_array_equal(np.argsort(scores[:, column]), np.argsort(best[:, column]))
    if imbalance > 1 and n_classes > 2:
        assert mauc_score(y, data.posterior(X)) < mauc_score(y, best), "the posterior itself is not optimal"


def test_logistic_regression_comes_near_the_bayes_mauc():
    """The posterior of Gaussians with one covariance is a logistic regression."""
    data = load_simulated(n_samples=4000, n_classes=4, imbalance=20, n_features=5, separation=1.5, seed=1)
    X, y = data.sample(np.full(4, 2000))
    ceiling = mauc_score(y, data.bayes_scores(X))
    assert ceiling < 0.95
    for cv in (None, 3):
        score = MAUCPluginClassifier(LogisticRegression(), cv=cv).fit(data.X, data.y).score(X, y)
        assert ceiling - 0.01 < score <= ceiling + 1e-3


def test_it_lifts_a_forest_on_imbalanced_data():
    gains = []
    for seed in range(6):
        data = load_simulated(n_samples=500, n_classes=5, imbalance=40, n_features=5, separation=2.0, seed=seed)
        X, y = data.sample(np.full(5, 400), seed=seed)
        forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=seed)
        model = MAUCPluginClassifier(forest).fit(data.X, data.y)
        gains.append(model.score(X, y) - mauc_score(y, model.estimator_.predict_proba(X)))
    assert np.mean(gains) > 0.01


@pytest.mark.parametrize("sizes", [(60, 30, 2, 1), (40, 1, 1)])
def test_calibration_takes_classes_of_any_size(sizes):
    X, y = blobs(sizes)
    model = MAUCPluginClassifier(GaussianNB(var_smoothing=1e-2), cv=5).fit(X, y)
    scores = model.predict_proba(X)
    assert scores.shape == (len(y), len(sizes))
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.priors_, np.array(sizes) / sum(sizes))
    assert 0.5 < model.score(X, y) <= 1.0


def test_calibration_on_the_folds_of_a_splitter():
    X, y = blobs((60, 40, 30))
    by_number, by_splitter = (MAUCPluginClassifier(cv=cv).fit(X, y) for cv in (3, StratifiedKFold(3)))
    for model in (by_number, by_splitter):
        assert model.score(X, y) > 0.85
    assert not np.array_equal(by_number.predict_proba(X), MAUCPluginClassifier().fit(X, y).predict_proba(X))


def test_fitted_attributes():
    X, y = blobs((40, 20, 10))
    names = np.array(["a", "b", "c"])[y]
    base = LogisticRegression()
    model = MAUCPluginClassifier(base).fit(X, names)
    assert not hasattr(base, "coef_"), "the classifier passed is left alone"
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.priors_, [4 / 7, 2 / 7, 1 / 7])
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert model.score(X, names) == mauc_score(names, model.predict_proba(X)) == mauc_scorer(model, X, names)
    np.testing.assert_array_equal(clone(model).fit(X, names).predict_proba(X), model.predict_proba(X))
    here = names != "b"
    assert np.isfinite(model.score(X[here], names[here]))


def test_sparse():
    X, y = blobs((40, 20, 10))
    X[np.abs(X) < 0.5] = 0.0
    dense, csr = (MAUCPluginClassifier(cv=3).fit(layout, y) for layout in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(csr.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("cv", [None, 3])
def test_weights_count_in_the_priors_and_in_the_fit(cv):
    X, y = blobs((40, 20, 10))
    weight = np.array([1.0, 3.0, 2.0])[y] * (1 + (X[:, 3] > 0))
    model = MAUCPluginClassifier(cv=cv).fit(X, y, sample_weight=weight)
    expected = np.bincount(y, weight) / weight.sum()
    np.testing.assert_allclose(model.priors_, expected)
    assert np.abs(model.predict_proba(X) - MAUCPluginClassifier(cv=cv).fit(X, y).predict_proba(X)).max() > 1e-3
    if cv is None:
        alone = LogisticRegression().fit(X, y, weight).predict_proba(X)
        np.testing.assert_array_equal(model.predict_proba(X), balanced_posterior(alone, expected))
        times = np.array([1, 3, 2])[y]
        rows = np.repeat(np.arange(len(y)), times)
        np.testing.assert_allclose(
            MAUCPluginClassifier().fit(X, y, times).predict_proba(X),
            MAUCPluginClassifier().fit(X[rows], y[rows]).predict_proba(X),
            atol=1e-3,
        )
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        MAUCPluginClassifier().fit(X, y, -weight)


def test_weights_that_the_classifier_cannot_take():
    """Its posterior is that of the unweighted data: dividing by weighted priors would be wrong, so it is refused."""
    X, y = blobs((40, 20, 10))
    with pytest.raises(ValueError, match=r"sample_weight .*KNeighborsClassifier"):
        MAUCPluginClassifier(KNeighborsClassifier(15)).fit(X, y, np.array([1.0, 5.0, 20.0])[y])


def test_weights_are_routed():
    X, y = blobs((40, 20, 10))
    weight = 1.0 + (X[:, 3] > 0)
    with config_context(enable_metadata_routing=True):
        model = MAUCPluginClassifier(LogisticRegression()).set_fit_request(sample_weight=True)
        model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.priors_, np.bincount(y, weight) / weight.sum())


def test_bad_input():
    X, y = blobs((40, 20, 10))
    message = r"estimator must have predict_proba, got LinearSVC: pass a probabilistic classifier, or wrap it in Cal"
    with pytest.raises(ValueError, match=message):
        MAUCPluginClassifier(LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="n_splits must be a whole number of at least 2, got 1"):
        MAUCPluginClassifier(cv=1).fit(X, y)
    with pytest.raises(ValueError, match="y must hold two classes or more"):
        MAUCPluginClassifier().fit(X, np.zeros(len(y)))
    with pytest.raises(NotFittedError):
        MAUCPluginClassifier().predict_proba(X)
    model = MAUCPluginClassifier().fit(X[y < 2], y[y < 2])
    with pytest.warns(UndefinedMetricWarning, match="left out of the multiclass AUC: 2; RareClassKFold"):
        assert model.score(X, y) == model.score(X[y < 2], y[y < 2])


@parametrize_with_checks([MAUCPluginClassifier(LogisticRegression())])
def test_estimator_checks(estimator, check):
    check(estimator)
