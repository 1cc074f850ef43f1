"""LightGBM trained and stopped by multiclass AUC, as a scikit-learn classifier."""

import numpy as np
import pytest

pytest.importorskip("lightgbm", reason="needs the extra mauc[boosting]")

from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from mauc import mauc_score, mauc_scorer
from mauc.boosting import MAUCBoostingClassifier, classifier

FEW = {"n_estimators": 15, "cv": None}
# LightGBM counts samples in its bins and leaves, whatever their weights.
UNWEIGHTED = {
    "check_sample_weight_equivalence_on_dense_data": "bins and leaves of LightGBM count samples",
    "check_sample_weight_equivalence_on_sparse_data": "bins and leaves of LightGBM count samples",
}


def blobs(sizes=(80, 40, 12), seed=0, shift=1.5):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(y), 4)) + shift * np.eye(len(sizes), 4)[y], y


@parametrize_with_checks(
    [MAUCBoostingClassifier(n_estimators=10, cv=None, min_child_samples=1)],
    expected_failed_checks=lambda model: UNWEIGHTED,
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("activation", ["softmax", "identity"])
@pytest.mark.parametrize("surrogate", ["exponential", "squared"])
def test_learns(surrogate, activation):
    (X, y), (Z, truth) = blobs(), blobs((100, 100, 100), seed=1)
    model = MAUCBoostingClassifier(surrogate, alpha=1.0, activation=activation, n_estimators=40, cv=3).fit(X, y)
    assert 0.75 < model.score(Z, truth) < 1.0
    assert 1 <= model.n_iter_ == len(model.cv_scores_) <= 40
    assert model.cv_scores_[-1] == model.cv_scores_.max()
    assert mauc_scorer(model, Z, truth) == pytest.approx(model.score(Z, truth))
    assert hasattr(model, "predict_proba") == (activation == "softmax")


def test_fitted_attributes():
    X, y = blobs()
    names = np.array(["a", "b", "c"])[y]
    model = MAUCBoostingClassifier(**FEW).fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.n_iter_ == 15
    assert model.cv_scores_ is None
    scores = model.predict_proba(X)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.score(X, names) == mauc_score(names, scores)
    np.testing.assert_array_equal(clone(model).fit(X, names).predict_proba(X), scores)
    two = MAUCBoostingClassifier(**FEW).fit(X[y < 2], y[y < 2])
    assert two.decision_function(X).shape == (len(X),)
    np.testing.assert_array_equal(two.decision_function(X) > 0, two.predict(X) == 1)


@pytest.mark.parametrize("sizes", [(40, 20, 2), (40, 20, 1), (30, 2)])
def test_classes_of_any_size(sizes):
    X, y = blobs(sizes)
    model = MAUCBoostingClassifier(n_estimators=15, cv=3, min_child_samples=1).fit(X, y)
    assert model.predict_proba(X).shape == (len(y), len(sizes))
    assert model.score(X, y) > 0.5


def test_leaves_larger_than_a_fold_allows():
    X, y = blobs((30, 14, 6))
    model = MAUCBoostingClassifier(n_estimators=5, cv=3, min_child_samples=20).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_folds():
    X, y = blobs()
    by_splitter = MAUCBoostingClassifier(n_estimators=10, cv=StratifiedKFold(3)).fit(X, y)
    assert 1 <= by_splitter.n_iter_ <= 10
    with pytest.raises(ValueError, match="cv must give a fold that holds out two classes or more, got 3"):
        MAUCBoostingClassifier(cv=3).fit(X[[0, *np.flatnonzero(y == 2)[:1]]], [0, 1])


def test_weights():
    X, y = blobs()
    weight = 1.0 + 4.0 * (X[:, 3] > 0)
    plain, weighted = (MAUCBoostingClassifier(**FEW).fit(X, y, w).predict_proba(X) for w in (None, weight))
    assert np.abs(plain - weighted).max() > 1e-3
    kept = np.arange(len(y)) % 4 != 0
    dropped = MAUCBoostingClassifier(**FEW).fit(X[kept], y[kept], np.ones(kept.sum()))
    zeroed = MAUCBoostingClassifier(**FEW).fit(X, y, kept.astype(float))
    np.testing.assert_allclose(zeroed.predict_proba(X), dropped.predict_proba(X))


def test_sparse_and_missing_values():
    X, y = blobs()
    X[np.abs(X) < 0.5] = 0.0
    dense, csr = (MAUCBoostingClassifier(**FEW).fit(layout, y) for layout in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(csr.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-6)
    X[::5, 0] = np.nan
    assert MAUCBoostingClassifier(**FEW).fit(X, y).score(X, y) > 0.8


def test_options_reach_lightgbm(capsys):
    X, y = blobs()
    model = MAUCBoostingClassifier(**FEW, verbose=1, lightgbm_params={"max_depth": 1}).fit(X, y)
    assert model.booster_.trees_to_dataframe()["node_depth"].max() == 2
    assert capsys.readouterr().out == "MAUCBoostingClassifier: 15 rounds\n"


def test_folds_and_weights_of_zero_speak_of_the_same_rows():
    X, y = blobs()
    kept = np.arange(len(y)) % 3 != 0
    rows = np.flatnonzero(kept)
    half = len(rows) // 2
    folds = [(rows[:half], rows[half:]), (rows[half:], rows[:half])]
    options = {"n_estimators": 10, "min_child_samples": 2}
    zeroed = MAUCBoostingClassifier(**options, cv=folds).fit(X, y, kept.astype(float))
    inside = [tuple(np.searchsorted(rows, part) for part in fold) for fold in folds]
    dropped = MAUCBoostingClassifier(**options, cv=inside).fit(X[kept], y[kept], np.ones(kept.sum()))
    np.testing.assert_array_equal(zeroed.cv_scores_, dropped.cv_scores_)


def test_the_seed_reaches_the_folds():
    X, y = blobs()
    first, second = (
        MAUCBoostingClassifier(n_estimators=5, subsample=1.0, colsample_bynode=1.0, random_state=seed).fit(X, y)
        for seed in (0, 1)
    )
    assert not np.array_equal(first.cv_scores_[:1], second.cv_scores_[:1])


def test_categories_by_number():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 40, 20])
    town = np.where(y == 0, rng.choice([1, 4, 7], 120), np.where(y == 1, rng.choice([0, 3, 6], 120), 5))
    X = np.column_stack([town, rng.normal(size=120)])
    options = {"n_estimators": 1, "cv": None, "num_leaves": 3, "min_child_samples": 1, "colsample_bynode": 1.0}
    further = {"categorical_feature": [0], "min_data_per_group": 1, "cat_smooth": 0.0}
    model = MAUCBoostingClassifier(**options, lightgbm_params=further).fit(X, y)
    assert model.score(X, y) == 1.0
    assert "==" in set(model.booster_.trees_to_dataframe()["decision_type"].dropna())


def test_without_lightgbm(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"needs LightGBM, which is not installed: pip install 'mauc\[boosting\]'"):
        classifier.MAUCBoostingClassifier().fit(*blobs())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be a whole number of at least 1, got 0"),
        ({"early_stopping_rounds": 1.5}, r"early_stopping_rounds must be a whole number of at least 1, got 1\.5"),
        ({"activation": "sigmoid"}, "activation must be one of 'softmax', 'identity', got 'sigmoid'"),
        ({"random_state": np.random.RandomState(0)}, "random_state must be a whole number"),
        (
            {"lightgbm_params": {"eta": 0.1}},
            "must have no parameter that .*, got 'eta': pass learning_rate=",
        ),
        ({"lightgbm_params": {"num_trees": 2}}, "got 'num_trees': pass n_estimators="),
        ({"surrogate": "hinge"}, "surrogate must have a bounded second derivative"),
        ({"num_leaves": 1}, "num_leaves must be a whole number of at least 2, got 1"),
        ({"learning_rate": -1}, "learning_rate must be a finite number above 0, got -1"),
        ({"subsample": "all"}, "subsample must be a finite number above 0 and at most 1, got 'all': pass a share"),
        ({"colsample_bynode": 0}, "colsample_bynode must be a finite number above 0 and at most 1, got 0"),
        ({"reg_lambda": -1}, "reg_lambda must be a finite number of at least 0, got -1"),
        ({"n_jobs": 1.5}, r"n_jobs must be a whole number of at least -1, got 1\.5"),
        ({"lightgbm_params": [1]}, r"lightgbm_params must be a dictionary, got \[1\]: pass e.g."),
        (
            {"lightgbm_params": {"max_bin": 1}},
            r"lightgbm_params and the data .*, got \{'max_bin': 1\}, of which LightGBM says: Check failed: \(max_bin\)",
        ),
        ({"lightgbm_params": {"boosting": "rf"}}, "LightGBM says: RF mode do not support custom objective function"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        MAUCBoostingClassifier(**{"n_estimators": 2, **options}).fit(*blobs())


def test_columns_of_texts_are_named():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    table = pd.DataFrame({"size": [1.0, 2.0], "town": pd.Categorical(["a", "b"])})
    with pytest.raises(ValueError, match="X must have columns of numbers for LightGBM, got town: put skrub"):
        MAUCBoostingClassifier().fit(table, [0, 1])


def test_not_fitted():
    with pytest.raises(NotFittedError):
        MAUCBoostingClassifier().predict(np.zeros((2, 2)))
