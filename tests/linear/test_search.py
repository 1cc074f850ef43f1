"""MAUCClassifierCV: what it tries, what it chooses, and classes too small to be in every fold."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from mauc import MAUCClassifier, MAUCClassifierCV, mauc_score
from mauc.model_selection import RareClassKFold

GRID = {"alphas": (1.0, 4.0), "log_losses": (0.0,), "l2s": (1e-1, 1e-3), "cv": 3, "tol": 1e-4, "max_iter": 500}


def blobs(sizes=(40, 25, 12), n_features=4, shift=1.2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(y), n_features)) + shift * np.eye(len(sizes), n_features)[y], y


def test_results_and_choice():
    X, y = blobs()
    model = MAUCClassifierCV(("exponential", "squared"), **GRID).fit(X, y)
    results = model.cv_results_
    assert set(results) == {
        "params",
        "split0_test_score",
        "split1_test_score",
        "split2_test_score",
        "mean_test_score",
        "std_test_score",
        "rank_test_score",
    }
    tried = {(p["surrogate"], p["alpha"], p["l2"]) for p in results["params"]}
    assert tried == {(s, a, l2) for s in ("exponential", "squared") for a in (1.0, 4.0) for l2 in (1e-1, 1e-3)}
    assert len(results["params"]) == 8
    splits = np.column_stack([results[f"split{k}_test_score"] for k in range(3)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=1))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=1))
    best = results["mean_test_score"].argmax()
    assert results["rank_test_score"][best] == 1
    assert sorted(results["rank_test_score"]) == list(range(1, 9))
    assert model.best_score_ == results["mean_test_score"][best]
    chosen = {"surrogate": model.surrogate_, "alpha": model.alpha_, "log_loss": model.log_loss_, "l2": model.l2_}
    assert results["params"][best] == chosen


def test_scores_are_those_of_separate_fits():
    X, y = blobs()
    model = MAUCClassifierCV(alphas=(2.0,), log_losses=(0.0,), l2s=(1e-2,), cv=3, tol=1e-4).fit(X, y)
    for k, (train, test) in enumerate(RareClassKFold(3).split(X, y)):
        one = MAUCClassifier(alpha=2.0, log_loss=0.0, l2=1e-2, tol=1e-4).fit(X[train], y[train])
        assert model.cv_results_[f"split{k}_test_score"][0] == one.score(X[test], y[test])


def test_the_log_loss_is_searched():
    X, y = blobs()
    model = MAUCClassifierCV(("exponential", "squared"), **{**GRID, "log_losses": (0.0, 1.0)}).fit(X, y)
    tried = [(p["surrogate"], p["alpha"], p["log_loss"], p["l2"]) for p in model.cv_results_["params"]]
    assert tried == list(product(("exponential", "squared"), (1.0, 4.0), (0.0, 1.0), (1e-3, 1e-1)))


@pytest.mark.parametrize(
    ("pairs", "tried"),
    [("ova", {0.1, 1.0, 10.0}), (np.array([[0, 1, 1], [1, 0, 1], [1, 2, 0]]), {0.0})],
    ids=["product", "no product"],
)
def test_default_log_losses(pairs, tried):
    model = MAUCClassifierCV(**{**GRID, "log_losses": None, "l2s": (1e-2,)}, pairs=pairs).fit(*blobs())
    assert {p["log_loss"] for p in model.cv_results_["params"]} == tried


def test_the_final_model_is_the_chosen_one_on_all_data():
    X, y = blobs()
    names = np.array(["x", "y", "z"])[y]
    model = MAUCClassifierCV(**GRID).fit(X, names)
    alone = MAUCClassifier(
        model.surrogate_, alpha=model.alpha_, log_loss=0.0, l2=model.l2_, tol=1e-4, max_iter=500
    ).fit(X, names)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert model.score(X, names) == mauc_score(names, model.predict_proba(X))
    assert model.objective_curve_.shape == (model.n_iter_ + 1,)
    assert not hasattr(clone(model), "l2_")


@pytest.mark.parametrize("l2s", [(1e-1, 1e-3), (1e-3, 1e-1)])
def test_of_equal_means_the_stronger_penalty_wins_across_alphas(l2s):
    """On classes that every candidate separates."""
    X, y = blobs(shift=20.0)
    model = MAUCClassifierCV(**{**GRID, "l2s": l2s}).fit(X, y)
    assert model.cv_results_["mean_test_score"].tolist() == [1.0] * 4
    assert model.l2_ == 1e-1
    ranked = np.argsort(model.cv_results_["rank_test_score"])
    assert [model.cv_results_["params"][k]["l2"] for k in ranked] == [1e-1, 1e-1, 1e-3, 1e-3]


@pytest.mark.parametrize("sizes", [(40, 25, 2), (40, 20, 1, 1), (30, 2), (4, 4, 4)])
def test_classes_smaller_than_the_folds(sizes):
    """Without a warning: they are errors here."""
    X, y = blobs(sizes)
    model = MAUCClassifierCV(**{**GRID, "cv": 5}).fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert 0.5 < model.best_score_ <= 1.0
    assert model.predict_proba(X).shape == (len(y), len(sizes))


def test_no_fold_that_can_be_scored():
    """All classes but one have a single sample, which stays in training."""
    X, y = blobs((30, 1, 1))
    with pytest.raises(ValueError, match=r"(fold|cv)"):
        MAUCClassifierCV(**GRID).fit(X, y)


@pytest.mark.slow
def test_processes_change_nothing():
    X, y = blobs()
    alone, in_two = (MAUCClassifierCV(n_jobs=n, **GRID).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(alone.coef_, in_two.coef_)
    for name, values in alone.cv_results_.items():
        np.testing.assert_array_equal(values, in_two.cv_results_[name])


@pytest.mark.parametrize("cv", [StratifiedKFold(4), ShuffleSplit(4, test_size=0.4, random_state=0), RareClassKFold(4)])
def test_own_splitter(cv):
    X, y = blobs()
    model = MAUCClassifierCV(**{**GRID, "alphas": (2.0,), "cv": cv}).fit(X, y)
    for k, (train, test) in enumerate(cv.split(X, y)):
        one = MAUCClassifier(alpha=2.0, log_loss=0.0, l2=1e-3, tol=1e-4, max_iter=500).fit(X[train], y[train])
        weakest = [p["l2"] for p in model.cv_results_["params"]].index(1e-3)
        assert model.cv_results_[f"split{k}_test_score"][weakest] == one.score(X[test], y[test])
    listed = MAUCClassifierCV(**{**GRID, "alphas": (2.0,), "cv": list(cv.split(X, y))}).fit(X, y)
    np.testing.assert_array_equal(listed.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])


def test_sparse_and_weights():
    X, y = blobs()
    X[np.abs(X) < 0.5] = 0.0
    weight = np.random.default_rng(0).random(len(y)) + 0.1
    dense = MAUCClassifierCV(**GRID).fit(X, y, weight)
    csr = MAUCClassifierCV(**GRID).fit(sparse.csr_array(X), y, weight)
    np.testing.assert_allclose(csr.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"], atol=1e-3)
    plain = MAUCClassifierCV(**GRID).fit(X, y)
    assert (dense.cv_results_["mean_test_score"] != plain.cv_results_["mean_test_score"]).any()
    np.testing.assert_array_equal(
        MAUCClassifierCV(**GRID).fit(X, y, weight.tolist()).cv_results_["mean_test_score"],
        dense.cv_results_["mean_test_score"],
    )


def test_weights_of_zero_are_no_samples_in_the_folds_either():
    X, y = blobs((40, 25, 12))
    weight = np.ones(len(y))
    weight[np.flatnonzero(y == 2)[2:]] = 0.0
    model = MAUCClassifierCV(**GRID).fit(X, y, weight)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_only_the_final_fit_warns():
    X, y = blobs()
    with pytest.warns(ConvergenceWarning) as caught:
        MAUCClassifierCV(**{**GRID, "max_iter": 2}).fit(X, y)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("name", "grid"),
    [
        ("surrogates", "exponential"),
        ("surrogates", None),
        ("alphas", []),
        ("log_losses", 1.0),
        ("l2s", ()),
        ("l2s", None),
    ],
)
def test_empty_grid(name, grid):
    X, y = blobs()
    with pytest.raises(ValueError, match=f"{name} must be a sequence with at least one entry, got"):
        MAUCClassifierCV(**{**GRID, name: grid}).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"l2s": (1e-2, -1.0)}, "l2 must be a finite number of at least 0, got -1.0"),
        ({"alphas": (0.0,)}, "alpha must be"),
        ({"log_losses": (0.0, -1.0)}, "log_loss must be a finite number of at least 0, got -1.0"),
        ({"surrogates": ("nope",)}, "surrogate must be one of"),
        ({"cv": 1}, "n_splits must be a whole number of at least 2, got 1"),
    ],
)
def test_bad_parameters(params, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=message):
        MAUCClassifierCV(**{**GRID, **params}).fit(X, y)
