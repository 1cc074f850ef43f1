"""Bounds of fitted linear models."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments import datasets
from mauc import MAUCClassifier, MAUCClassifierCV, SurrogateRisk
from mauc.activations import activate
from mauc.theory import bounds

DATA = datasets.load_simulated(n_samples=300, n_classes=3, imbalance=4, n_features=5, seed=2)
X, Y = DATA.X, DATA.y


def test_linear_from_its_numbers():
    model = MAUCClassifier("exponential", alpha=2.0, l2=1e-2).fit(X, Y)
    found = bounds.for_estimator(model, X, Y, delta=0.1)
    rows = np.column_stack([model.coef_, model.intercept_])
    constants = bounds.surrogate_constants("exponential", alpha=2.0)
    by_hand = bounds.linear(
        SurrogateRisk("exponential", alpha=2.0).value(Y, model.predict_proba(X)),
        np.bincount(Y),
        gamma=max(np.sqrt((row**2).sum()) for row in rows),
        radius=np.sqrt((X**2).sum(axis=1).max() + 1),
        lipschitz=constants.lipschitz,
        bound=constants.bound,
        delta=0.1,
        activation="softmax",
    )
    assert found.terms == pytest.approx(by_hand.terms, rel=1e-9)
    assert "norms are those of the fitted model" in found.note


@pytest.mark.parametrize("activation", ["identity", "sigmoid", "softmax"])
@pytest.mark.parametrize("p", [2.0, 1.2])
def test_linear_variants(activation, p):
    model = MAUCClassifier("squared", activation=activation, fit_intercept=False, l2=1e-2).fit(X, Y)
    found = bounds.for_estimator(model, X, Y, p=p)
    assert found.inputs["gamma"] == pytest.approx(np.linalg.norm(model.coef_, ord=p, axis=1).max())
    assert found.inputs["radius"] == pytest.approx(np.linalg.norm(X, axis=1).max())
    reach = 2 * found.inputs["gamma"] * found.inputs["radius"] if activation == "identity" else 1.0
    assert found.range == pytest.approx((1 + reach) ** 2)
    rows = bounds.for_estimator(model, sparse.csr_matrix(X), Y, p=p)
    assert rows.total == pytest.approx(found.total)


def test_an_intercept_cancels_in_differences_of_linear_scores():
    model = MAUCClassifier("squared", activation="identity", l2=1e-2).fit(X, Y)
    before = bounds.for_estimator(model, X, Y)
    model.intercept_ = model.intercept_ + 10.0
    assert bounds.for_estimator(model, X, Y).total == pytest.approx(before.total)


def test_pipeline_and_names_of_classes():
    names = np.array(["a", "b", "c"])[Y]
    model = make_pipeline(StandardScaler(), MAUCClassifier(l2=1e-2)).fit(X, names)
    found = bounds.for_estimator(model, X, names)
    alone = bounds.for_estimator(model[-1], model[0].transform(X), names)
    assert found.total == alone.total
    with pytest.raises(ValueError, match="y must have samples of every class of the model, got none of 'c': pass"):
        bounds.for_estimator(model, X[names != "c"], names[names != "c"])
    with pytest.raises(ValueError, match="y must hold classes of the model only, got 'z'"):
        bounds.for_estimator(model, X, np.where(np.arange(300) == 0, "z", names))


def test_a_search_is_bounded_by_what_it_chose():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 3)) + np.eye(3)[y]
    search = MAUCClassifierCV(alphas=(4.0,), log_losses=(0.0,), l2s=(1e-1,), cv=2).fit(X, y)
    same = MAUCClassifier("exponential", alpha=4.0, log_loss=0.0, l2=1e-1).fit(X, y)
    assert bounds.for_estimator(search, X, y).total == pytest.approx(bounds.for_estimator(same, X, y).total)


def test_more_rows_do_not_loosen_the_bound_of_a_linear_model():
    rng = np.random.default_rng(0)
    X, y = np.clip(rng.normal(size=(600, 3)), -1, 1), rng.permutation(np.repeat([0, 1, 2], [400, 150, 50]))
    model = MAUCClassifier(l2=1.0).fit(X, y)
    more_X, more_y = np.vstack([X, np.repeat(X[y == 0], 20, axis=0)]), np.append(y, np.zeros(20 * 400, dtype=int))
    first, second = bounds.for_estimator(model, X, y), bounds.for_estimator(model, more_X, more_y)
    assert second.complexity == pytest.approx(first.complexity)
    assert second.concentration < first.concentration


def test_log_odds_of_a_linear_model_are_bounded():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
    model = MAUCClassifier("logistic", alpha=1.0, activation="log_odds", l2=1.0).fit(X, y)
    found = bounds.for_estimator(model, X, y)
    assert found.inputs["activation"] == "log_odds"
    scores = activate(model.decision_function(X), "log_odds")
    widest = np.ptp(scores, axis=0).max()
    assert found.range >= np.logaddexp(0.0, widest)


def test_bad_models():
    with pytest.raises(ValueError, match="estimator must be a fitted MAUCClassifier, got LogisticRegression: pass one"):
        bounds.for_estimator(LogisticRegression().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="delta must be a finite number strictly between 0 and 1"):
        bounds.for_estimator(MAUCClassifier(l2=1e-2).fit(X, Y), X, Y, delta=1.5)
