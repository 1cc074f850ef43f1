"""Choosing by the validation part alone."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from experiments.tuning import PREPROCESSINGS, Method, Parts, combinations, preprocess, run_method
from mauc import MAUCClassifier, mauc_score, pairwise_auc

METHODS = [
    Method("ours", MAUCClassifier, combinations(alpha=(1.0, 4.0), l2=(1e-1, 1e-4))),
    Method("LR", LogisticRegression, combinations(C=(1e-3, 1.0, 1e3))),
]


def draw(n=90, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, n_features)) + 0.7 * np.eye(3, n_features)[y], y


def draw_parts(seed=0):
    X, y = draw(seed=seed)
    return Parts(X[:40], y[:40], X[40:60], y[40:60], X[60:], y[60:])


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_the_test_part_chooses_nothing(method):
    parts = draw_parts()
    first = run_method(method, parts)
    rng = np.random.default_rng(0)
    for _ in range(3):
        order = rng.permutation(len(parts.y_test))
        other = run_method(method, replace(parts, y_test=parts.y_test[order]))
        assert (other["params"], other["validation"]) == (first["params"], first["validation"])
        assert other["test"] != first["test"]
    other = run_method(method, replace(parts, X_test=-parts.X_test))
    assert (other["params"], other["validation"]) == (first["params"], first["validation"])


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_the_best_on_validation_is_judged_on_test(method):
    parts = draw_parts(1)
    result = run_method(method, parts)
    models = [method.make(**params).fit(parts.X_train, parts.y_train) for params in method.grid]
    validation = [mauc_score(parts.y_validation, m.predict_proba(parts.X_validation)) for m in models]
    best = int(np.argmax(validation))
    assert result["params"] == method.grid[best]
    assert result["validation"] == pytest.approx(validation[best], abs=1e-15)
    scores = models[best].predict_proba(parts.X_test)
    assert result["test"] == pytest.approx(mauc_score(parts.y_test, scores), abs=1e-15)
    matrix = np.array([[np.nan if v is None else v for v in row] for row in result["matrix"]])
    np.testing.assert_array_equal(matrix, pairwise_auc(parts.y_test, scores))
    assert result["test_counts"] == np.bincount(parts.y_test).tolist()
    assert 0 <= result["fit_seconds"] <= result["search_seconds"]


def test_classes_missing_from_a_part():
    X, y = draw()
    train, validation, test = np.flatnonzero(y < 2)[:40], np.flatnonzero(y < 2)[40:], np.arange(60, 90)
    parts = Parts(X[train], y[train], X[validation], y[validation], X[test], y[test])
    result = run_method(METHODS[1], parts)
    matrix = np.array([[np.nan if v is None else v for v in row] for row in result["matrix"]])
    assert matrix.shape == (3, 3)
    np.testing.assert_array_equal(matrix[2, :2], 0.5)
    absent = run_method(METHODS[0], replace(parts, X_test=parts.X_validation, y_test=parts.y_validation))
    assert absent["test_counts"][1:] == [int((parts.y_validation == 1).sum())]
    assert 0.0 <= absent["test"] <= 1.0


def test_preprocessing_knows_the_training_part_only():
    X, _ = draw()
    train = np.arange(30)
    standard = preprocess(X, train, "standard")
    np.testing.assert_allclose(standard[train].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(standard[train].std(axis=0), 1.0)
    rows = preprocess(X, train, "rows")
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    np.testing.assert_allclose(rows * np.linalg.norm(X, axis=1)[:, None], X)
    changed = X.copy()
    changed[50:] *= 100.0
    for kind in PREPROCESSINGS:
        np.testing.assert_array_equal(preprocess(changed, train, kind)[:50], preprocess(X, train, kind)[:50])
