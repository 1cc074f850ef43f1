"""Stacking by multiclass AUC: the weights, the matrix, rare classes, scikit-learn's contract."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneOut, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from mauc import mauc_score
from mauc.activations import activate
from mauc.ensemble import MAUCStackingClassifier
from mauc.ensemble.bases import class_scores, default_estimators, weight_argument
from mauc.ensemble.combination import RIDGE, RISK, Combination, OutOfFold, fit_weights, learn_combination
from mauc.ensemble.perceptron import BalancedPerceptron


def blobs(sizes, n_features=4, shift=1.5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(y), n_features)) + shift * np.eye(len(sizes), n_features)[y], y


def pair():
    return [("lr", LogisticRegression(class_weight="balanced")), ("nb", GaussianNB(var_smoothing=1e-2))]


def few_trees():
    small = {name: {"n_estimators": 5} for name in ("et", "et_deep", "rf")}
    small |= {"hgb": {"max_iter": 3}, "mlp": {"balancedperceptron__max_epochs": 3}}
    return [(name, model.set_params(**small.get(name, {}))) for name, model in default_estimators()]


def noisy_scores(seed=0, n_models=3, sizes=(40, 25, 12, 5)):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    truth = np.eye(len(sizes))[y]
    logits = np.stack([(3.0 / (k + 1)) * truth + rng.normal(size=truth.shape) for k in range(n_models)])
    return np.stack([activate(part, "softmax") for part in logits]), y


def held_out(scores, y, floor=0.01):
    return OutOfFold(np.asarray(scores), y, None, np.full(np.shape(scores)[2], floor))


# Two models whose weights are exact: naive Bayes and class_weight="balanced" count samples somewhere.
EXACT = [(f"lr{c:g}", LogisticRegression(C=c, solver="newton-cholesky", tol=1e-10)) for c in (0.1, 10.0)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([MAUCStackingClassifier(EXACT[:1], cv=2)])
def test_estimator_checks(estimator, check):
    check(estimator)


def test_weights_stay_finite_where_the_models_separate_the_classes():
    y = np.repeat([0, 1, 2], 10)
    strength = np.random.default_rng(0).uniform(1.0, 3.0, size=(2, 30, 1))
    data = held_out(np.exp(strength * np.eye(3)[y] - 3.0), y, 1e-9)
    weights = fit_weights(data, "ovo")
    assert weights.max() < 20
    for column in Combination(weights, data.floors).scores(data.scores).T:
        assert len(np.unique(column)) == 30, "no two samples are tied"


def test_weights_are_a_constrained_minimum_of_the_risk_and_the_pull_to_the_mean():
    scores, y = noisy_scores()
    found = fit_weights(held_out(scores, y), "ovo")
    logs = np.log(np.maximum(scores, 0.01))
    assert (found >= 0).all()

    def value(weights):
        pull = 0.5 * RIDGE * np.sum((weights - 1 / 3) ** 2)
        return RISK.value(y, activate(np.tensordot(weights, logs, axes=1), "softmax")) + pull

    best = value(found)
    for k in range(len(logs)):
        for step in (1e-2, -1e-2):
            moved = found.copy()
            moved[k] = max(0.0, moved[k] + step)
            assert value(moved) >= best
    assert best < min(value(np.eye(3)[k]) for k in range(3))


def test_a_random_model_gets_little_weight():
    scores, y = noisy_scores()
    noise = np.random.default_rng(1).dirichlet(np.ones(4), len(y))
    even = np.full_like(noise, 0.25)
    weights = fit_weights(held_out([scores[0], noise, even], y), "ovo")
    assert weights[0] > 5 * weights[1]


def test_models_that_rank_wrongly_get_even_weights():
    """A model trained without one of two samples says it is like the others, more than of any other."""
    two = np.repeat([0, 1], [10, 2])
    wrong = np.stack([np.where(np.eye(2)[two] == 1, 0.1, 0.9)] * 2)
    np.testing.assert_array_equal(fit_weights(held_out(wrong, two), "ovo"), 0.5)


def test_one_class_to_learn_from_gives_even_weights():
    scores, _ = noisy_scores()
    data = held_out(scores[:, :3], np.zeros(3, dtype=np.int64))
    found = learn_combination(data, "ovo", random_state=0)
    assert np.isnan(found.mauc)
    np.testing.assert_allclose(found.combination.weights, 1 / 3)


def test_weights_are_used_alone_if_they_gain():
    """Weights gain if the other models are noise, and not if they are copies."""
    scores, y = noisy_scores(n_models=1, sizes=(60, 40, 30))
    noise = np.random.default_rng(1).dirichlet(np.ones(3), (3, len(y)))
    sure = learn_combination(held_out([scores[0], *noise], y), "ovo", random_state=0)
    assert sure.combination.share == 1.0
    like, y = noisy_scores(n_models=1, sizes=(60, 40, 30), seed=2)
    same = held_out([like[0], like[0]], y)
    unsure = learn_combination(same, "ovo", random_state=0)
    assert unsure.combination.share == 0.5
    assert unsure.mauc == mauc_score(y, unsure.held_out)
    assert sure.mauc > mauc_score(y, np.mean([scores[0], *noise], axis=0))


def test_the_formula():
    scores, _ = noisy_scores()
    weights, floors = np.array([0.5, 0.0, 2.0]), np.array([0.2, 0.1, 0.01, 0.3])
    logs = np.log(np.where(scores < floors, floors, scores))
    by_hand = np.exp(0.5 * logs[0] + 2.0 * logs[2])
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Combination(weights, floors).scores(scores), by_hand)
    half = Combination(weights, floors, 0.5).scores(scores)
    np.testing.assert_allclose(half, (by_hand + scores.mean(axis=0)) / 2)


@pytest.mark.parametrize("sizes", [(30, 2, 1), (20, 1)])
def test_classes_of_any_size_without_a_warning(sizes):
    X, y = blobs(sizes)
    model = MAUCStackingClassifier(few_trees(), cv=3).fit(X, y)
    scores = model.predict_proba(X)
    assert scores.shape == (len(y), len(sizes))
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.5
    np.testing.assert_array_equal(model.oof_rows_, np.flatnonzero(np.bincount(y)[y] > 1))
    if sizes != (20, 1):  # where a single class is held out, which no combination can be learnt from
        assert not np.isnan(model.oof_combination_).any()
    assert set(model.oof_scores_) >= {*dict(default_estimators()), "combination"}, "and more where an order shows"


@pytest.mark.parametrize("cv", [StratifiedKFold(3), LeaveOneOut(), [(np.arange(5, 42), np.arange(5))]])
def test_a_class_missing_from_a_fold_has_the_floor(cv):
    X, y = blobs((25, 15, 1, 1))
    model = MAUCStackingClassifier(pair(), cv=cv).fit(X, y)
    for c in (2, 3):
        own = model.oof_model_scores_[:, y[model.oof_rows_] == c, c]
        assert (own == 0).all()
    np.testing.assert_allclose(model._combination.floors[2:], 0.03 / 42)
    assert np.isfinite(model.predict_proba(X)).all()


def test_folds_that_leave_one_class_to_train_on_are_skipped():
    X, y = blobs((20, 10))
    zero, one = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    both = np.r_[zero[:10], one[:5]], np.r_[zero[10:], one[5:]]
    model = MAUCStackingClassifier(pair(), cv=[(zero, one), both]).fit(X, y)
    np.testing.assert_array_equal(model.oof_rows_, np.sort(both[1]))
    nothing = MAUCStackingClassifier(pair(), cv=[(zero, one)]).fit(X, y)
    assert list(nothing.weights_.values()) == [0.5, 0.5]
    assert np.isnan(list(nothing.oof_scores_.values())).all()


def test_samples_held_out_twice_have_the_mean():
    X, y = blobs((30, 20))
    rows = np.arange(50)
    first, second = (rows[10:], rows[:10]), (rows[20:], rows[:20])

    def held_out(*splits):
        return MAUCStackingClassifier(pair(), cv=splits).fit(X, y).oof_model_scores_

    once, both = [held_out(first), held_out(second)], held_out(first, second)
    np.testing.assert_allclose(both[:, :10], (once[0][:, :10] + once[1][:, :10]) / 2)
    np.testing.assert_allclose(both[:, 10:20], once[1][:, 10:20])
    assert both.shape == (2, 20, 2)


def test_better_than_its_parts():
    """Each model sees half of the features."""
    gains = []
    for seed in range(3):
        (X, y), (Z, truth) = blobs((150, 60, 20), 6, 1.0, seed), blobs((300, 300, 300), 6, 1.0, seed + 50)
        halves = [(f"half{k}", make_pipeline(Columns(k), LogisticRegression(class_weight="balanced"))) for k in (0, 1)]
        model = MAUCStackingClassifier(halves).fit(X, y)
        parts = [mauc_score(truth, part.predict_proba(Z)) for part in model.estimators_]
        gains.append(model.score(Z, truth) - max(parts))
    assert min(gains) > 0.02


class Columns(BaseEstimator):
    """Every second feature."""

    def __init__(self, first=0):
        self.first = first

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X[:, self.first :: 2]


def test_fitted_attributes():
    X, y = blobs((40, 20, 10))
    names = np.array(["a", "b", "c"])[y]
    bases = pair()
    model = MAUCStackingClassifier(bases).fit(X, names)
    assert not hasattr(bases[0][1], "coef_"), "the classifiers passed are left alone"
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert list(model.weights_) == list(model.named_estimators_) == ["lr", "nb"]
    assert model.oof_model_scores_.shape == (2, 70, 3)
    np.testing.assert_allclose(model._combination.floors, 0.03 * np.array([40, 20, 10]) / 70)
    for k, name in enumerate(("lr", "nb")):
        assert model.oof_scores_[name] == mauc_score(names, model.oof_model_scores_[k]), "of the model as it is"
    assert 0.7 < model.oof_scores_["combination"] <= 1.0
    assert model.weighted_share_ in (0.5, 1.0)
    assert model.cut_ == {}
    assert list(model.seconds_) == ["lr", "nb"]
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert model.score(X, names) == mauc_score(names, model.predict_proba(X))
    np.testing.assert_array_equal(clone(model).fit(X, names).predict_proba(X), model.predict_proba(X))


def test_rows_drawn_with_replacement_keep_their_classes():
    X, y = blobs((60, 40, 20))
    rng = np.random.default_rng(0)
    folds = []
    for _ in range(4):
        drawn = rng.integers(0, 120, 120)
        folds.append((drawn, np.setdiff1d(np.arange(120), drawn)))
    assert MAUCStackingClassifier(pair(), cv=folds).fit(X, y).oof_scores_["lr"] > 0.75
    masks = [(np.isin(np.arange(120), a), np.isin(np.arange(120), b)) for a, b in folds]
    rows = [(np.unique(a), b) for a, b in folds]
    by_mask, by_rows = (MAUCStackingClassifier(pair(), cv=cv).fit(X, y) for cv in (masks, rows))
    np.testing.assert_array_equal(by_mask.oof_model_scores_, by_rows.oof_model_scores_)


@pytest.mark.parametrize(("sizes", "class_weight"), [((10,) * 60, "balanced"), ((1500, 400, 12), None)])
def test_the_floor_ties_nothing_that_a_model_ranks(sizes, class_weight):
    """Many classes, or a rare one under a model that does not balance: scores far below a hundredth."""
    centres = 0.5 * np.random.default_rng(9).normal(size=(len(sizes), 8))
    (X, y), (Z, truth) = blobs(sizes, 8, 0.0), blobs((10,) * len(sizes), 8, 0.0, 1)
    X, Z = X + centres[y], Z + centres[truth]
    model = LogisticRegression(class_weight=class_weight)
    stack = MAUCStackingClassifier([("lr", model)], cv=3).fit(X, y)
    assert stack.score(Z, truth) > mauc_score(truth, model.fit(X, y).predict_proba(Z)) - 0.01


def test_models_can_be_dropped():
    X, y = blobs((30, 15, 5))
    model = MAUCStackingClassifier(pair()).set_params(nb="drop").fit(X, y)
    assert list(model.weights_) == ["lr"]
    assert list(model.oof_scores_) == ["lr", "combination"]
    search = GridSearchCV(MAUCStackingClassifier(pair(), cv=2), {"nb": ["drop", GaussianNB()]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.5


def test_texts():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    words = ["red apple", "green pear", "blue plum"]
    y = np.repeat([0, 1, 2], [20, 15, 10])
    X = [f"{words[k]} {n % 7}" for n, k in enumerate(y)]
    words_of = make_pipeline(CountVectorizer(), LogisticRegression())
    model = MAUCStackingClassifier([("lr", words_of)])
    for texts in (X, np.array(X), pd.Series(X)):
        assert model.fit(texts, y).score(texts, y) == 1.0


def test_a_model_without_finite_scores_is_named():
    class Broken(GaussianNB):
        def predict_proba(self, X):
            return np.full((len(X), len(self.classes_)), np.nan)

    X, y = blobs((30, 15, 5))
    for models in ([("bad", Broken()), *pair()], [*pair(), ("bad", Broken())]):
        with pytest.raises(ValueError, match="estimators must give finite scores, got NaN or infinity from Broken"):
            MAUCStackingClassifier(models).fit(X, y)


def test_weights_with_metadata_routing():
    X, y = blobs((30, 15, 5))
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 50)
    models = [("lr", make_pipeline(StandardScaler(), LogisticRegression())), ("nb", GaussianNB())]
    plain = MAUCStackingClassifier(models).fit(X, y, weight)
    with config_context(enable_metadata_routing=True):
        routed = MAUCStackingClassifier(models).fit(X, y, weight)
    np.testing.assert_array_equal(routed.predict_proba(X), plain.predict_proba(X))


def test_weights_reach_the_model_of_a_search():
    X, y = blobs((30, 15, 5))
    weight = np.where(np.arange(50) < 25, 1.0, 5.0)
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2)
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    found = [MAUCStackingClassifier([("m", m)]).fit(X, y, weight) for m in (search, plain)]
    np.testing.assert_allclose(found[0].predict_proba(X), found[1].predict_proba(X))


def test_groups_are_given_as_folds():
    X, y = blobs((30, 15, 5))
    groups = np.arange(50) // 2
    with pytest.raises(ValueError, match=r"cv must split without groups, got GroupKFold.*: pass cv=list\(splitter"):
        MAUCStackingClassifier(pair(), cv=GroupKFold(3)).fit(X, y)
    model = MAUCStackingClassifier(pair(), cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(model.oof_rows_, np.arange(50))


def test_xgboost_with_names_of_classes():
    xgboost = pytest.importorskip("xgboost", reason="needs XGBoost")
    X, y = blobs((30, 15, 5))
    names = np.array(["flu", "healthy", "rare"])[y]
    trees = xgboost.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1)
    model = MAUCStackingClassifier([("lr", LogisticRegression()), ("xgb", trees)], cv=3).fit(X, names)
    assert model.score(X, names) > 0.8
    assert set(model.predict(X)) <= set(names)


def test_parameters_of_the_models_by_name():
    model = MAUCStackingClassifier(pair())
    assert model.get_params()["lr__class_weight"] == "balanced"
    model.set_params(lr__C=10.0, nb=KNeighborsClassifier())
    assert model.estimators[0][1].C == 10.0
    assert isinstance(model.estimators[1][1], KNeighborsClassifier)
    assert "estimators" in MAUCStackingClassifier().get_params()


def test_jobs_change_neither_results_nor_warning_filters():
    X, y = blobs((30, 15, 5))
    before = list(warnings.filters)
    one = MAUCStackingClassifier(pair(), cv=2).fit(X, y).predict_proba(X)
    with parallel_config("threading"):
        two = MAUCStackingClassifier(pair(), n_jobs=2, cv=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(one, two)
    assert warnings.filters == before


def test_weights_reach_the_models_and_the_combination():
    X, y = blobs((40, 20, 10))
    weight = 1.0 + 3.0 * (X[:, 3] > 0)
    plain, weighted = (MAUCStackingClassifier(pair(), cv=3).fit(X, y, w) for w in (None, weight))
    assert not np.allclose(plain.estimators_[0].coef_, weighted.estimators_[0].coef_)
    np.testing.assert_allclose(
        weighted.estimators_[0].coef_, LogisticRegression(class_weight="balanced").fit(X, y, weight).coef_
    )
    assert plain.weights_ != weighted.weights_
    same = MAUCStackingClassifier(pair(), cv=3).fit(X, y, np.full(70, 1.0))
    np.testing.assert_allclose(same.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_weights_of_zero_are_no_samples():
    X, y = blobs((40, 20, 10))
    kept = np.arange(70) % 5 != 0
    dropped = MAUCStackingClassifier(pair()).fit(X[kept], y[kept], np.ones(kept.sum()))
    zeroed = MAUCStackingClassifier(pair()).fit(X, y, kept.astype(float))
    np.testing.assert_allclose(zeroed.predict_proba(X), dropped.predict_proba(X), atol=1e-10)


def test_weights_in_pipelines():
    nested = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression()))
    assert list(weight_argument(nested, np.ones(3))) == ["pipeline__logisticregression__sample_weight"]
    X, y = blobs((30, 15, 5))
    MAUCStackingClassifier(few_trees(), cv=2).fit(X, y, np.linspace(1, 2, 50))
    message = (
        "sample_weight needs models whose fit takes it, got KNeighborsClassifier: leave that model out, or pass no we"
    )
    with pytest.raises(ValueError, match=message):
        MAUCStackingClassifier([("knn", KNeighborsClassifier())]).fit(X, y, np.ones(50))


def test_models_with_a_decision_function_only():
    X, y = blobs((30, 20, 10))
    model = MAUCStackingClassifier([("ridge", RidgeClassifier()), *pair()]).fit(X, y)
    assert model.score(X, y) > 0.8
    scores = class_scores(model.estimators_[0], X, 3)
    np.testing.assert_array_equal(scores.argmax(axis=1), model.estimators_[0].predict(X))
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)


def test_sparse_and_missing_values():
    X, y = blobs((30, 20, 10))
    X[np.abs(X) < 0.5] = 0.0
    bases = [("lr", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
    dense, csr = (MAUCStackingClassifier(bases).fit(layout, y) for layout in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(csr.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-3)
    X[::7, 0] = np.nan
    model = MAUCStackingClassifier(few_trees(), cv=2)
    assert MAUCStackingClassifier().__sklearn_tags__().input_tags.allow_nan
    assert model.fit(X, y).score(X, y) > 0.8


def test_data_frames_reach_the_models():
    pandas = pytest.importorskip("pandas")
    X, y = blobs((30, 20, 10))
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = MAUCStackingClassifier([("named", ByName()), *pair()]).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.score(frame, y) > 0.8


class ByName(ClassifierMixin, BaseEstimator):
    """Wants a column by its name."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X[["a", "c"]].to_numpy(), y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X[["a", "c"]].to_numpy())


def test_defaults():
    named = default_estimators(3)
    assert [name for name, _ in named] == ["et", "lr", "hgb", "rf", "mauc", "kernel", "et_deep", "mlp", "lr_strong"]
    assert named[0][1].random_state == named[7][1][-1].random_state == 3
    assert MAUCStackingClassifier().get_params(deep=False) == {
        "calibrate": False,
        "columns": "auto",
        "cv": None,
        "effort": "normal",
        "estimators": None,
        "n_jobs": None,
        "ordinal": None,
        "pairs": "ovo",
        "random_state": 0,
        "time_limit": None,
    }


def test_models_are_averaged_over_the_folds_or_fitted_on_all_data():
    X, y = blobs((40, 20, 10))
    forest = RandomForestClassifier(5, random_state=0)
    named = [*pair(), ("rf", forest), ("scaled rf", make_pipeline(StandardScaler(), forest))]
    model = MAUCStackingClassifier(named).fit(X, y)
    assert model.weighted_share_ == 0.5, "so that every model is used"
    np.testing.assert_array_equal(model.named_estimators_["rf"].predict_proba(X), forest.fit(X, y).predict_proba(X))
    assert model.named_estimators_["scaled rf"][-1].n_estimators == 5
    lr = model.named_estimators_["lr"]
    assert len(lr.estimators) == 5
    by_hand = np.mean([model.predict_proba(X) for model in lr.estimators], axis=0)
    np.testing.assert_array_equal(lr.predict_proba(X), by_hand)
    np.testing.assert_array_equal(lr.predict(X), by_hand.argmax(axis=1))
    few = MAUCStackingClassifier(named, cv=3).fit(X, y)
    assert few.named_estimators_["lr"].coef_.shape == (3, 4), "two thirds of the data are too few"


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_of_models_of_ones_own_none_begins_after_the_limit(n_jobs):
    X, y = blobs((40, 20, 10))
    model = MAUCStackingClassifier(pair(), time_limit=1e-9, n_jobs=n_jobs).fit(X, y)
    assert list(model.named_estimators_) == ["lr"], "the first is fitted in any case"
    assert model.cut_ == {"nb": "was not ready in time"}
    assert np.isfinite(model.predict_proba(X)).all()


def test_columns_without_a_number_in_a_fold():
    X, y = blobs((40, 20, 10))
    X = np.column_stack([X, np.full(70, np.nan), np.full(70, np.nan)])
    X[3, 4] = 1.0
    model = MAUCStackingClassifier(few_trees()).fit(X, y)
    assert model.score(X, y) > 0.8
    assert np.isfinite(model.predict_proba(np.where(np.isnan(X), 7.0, X))).all()


def test_a_time_limit_that_cuts_nothing_changes_nothing():
    X, y = blobs((40, 20, 10))
    model = MAUCStackingClassifier(pair(), time_limit=600, n_jobs=2).fit(X, y)
    alone = MAUCStackingClassifier(pair()).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X))


def test_a_perceptron_that_balances_the_classes():
    X, y = blobs((200, 200, 8), shift=2.0)
    names = np.array(["a", "b", "c"])[y]
    model = BalancedPerceptron(max_epochs=40).fit(X, names)
    assert np.mean(model.predict(X)[y == 2] == "c") > 0.8, "the rare class is found"
    heavy = BalancedPerceptron(max_epochs=10).fit(X, y, np.where(y == 0, 50.0, 1.0))
    assert (heavy.predict(X) == 0).mean() > (BalancedPerceptron(max_epochs=10).fit(X, y).predict(X) == 0).mean()


@pytest.mark.parametrize("sizes", [(40, 40), (40, 40, 40)])
def test_a_perceptron_predicts_as_scikit_learn_does(sizes):
    X, y = blobs(sizes)
    model = BalancedPerceptron(max_epochs=3).fit(X, y)
    same = MLPClassifier((64, 32), alpha=0.01, learning_rate_init=3e-3, batch_size=64, random_state=0)
    for _ in range(3):
        same.partial_fit(X, y, classes=np.unique(y), sample_weight=np.ones(len(y)))
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(X), atol=1e-12)


@pytest.mark.slow
def test_the_default_list_on_a_real_set():
    from experiments.datasets import load, stratified_splits

    wine = load("wine-imb")
    train, _, test = stratified_splits(wine.y, 1, (0.6, 0.1, 0.3))[0]
    model = MAUCStackingClassifier().fit(wine.X[train], wine.y[train])
    parts = [mauc_score(wine.y[test], m.predict_proba(wine.X[test])) for m in model.estimators_]
    assert model.score(wine.X[test], wine.y[test]) > max(parts) - 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": []}, r"estimators must be a list of \(name, classifier\), got \[\]: pass e\.g\."),
        ({"estimators": [("a", GaussianNB()), ("a", GaussianNB())]}, "must have different names .*, got 'a': rename"),
        ({"estimators": [("cv", GaussianNB())]}, "must have different names .*, got 'cv'"),
        ({"estimators": [("combination", GaussianNB())]}, "got 'combination'"),
        ({"time_limit": -1.0}, "time_limit must be a finite number above 0"),
        ({"cv": 1}, "n_splits must be a whole number of at least 2, got 1"),
        ({"pairs": "all"}, "pairs must be one of 'ovo', 'ova'"),
        ({"random_state": None}, "random_state must be a whole number of at least 0"),
        ({"estimators": [("line", LinearRegression())]}, "must have a classifier under 'line'"),
        ({"estimators": [("lr", "drop")]}, r"must be a list of \(name, classifier\)"),
    ],
)
def test_bad_parameters(options, message):
    X, y = blobs((20, 10, 5))
    with pytest.raises(ValueError, match=message):
        MAUCStackingClassifier(**{"estimators": pair(), **options}).fit(X, y)


def test_missing_classes():
    X, _ = blobs((20, 10, 5))
    for missing in (None, np.nan):
        with pytest.raises(ValueError, match="y must name the class of every sample, got a missing value: drop"):
            MAUCStackingClassifier(pair()).fit(X, np.array(["a", "b", missing] * 11 + ["a", "b"], dtype=object))


def test_bad_input():
    X, y = blobs((20, 10, 5))
    with pytest.raises(ValueError, match="y must hold two classes or more"):
        MAUCStackingClassifier(pair()).fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MAUCStackingClassifier(pair()).fit(X, y[1:])
    with pytest.raises(NotFittedError):
        MAUCStackingClassifier(pair()).predict_proba(X)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        MAUCStackingClassifier(pair()).fit(X, y, -np.ones(35))


class ThreadCounter(DummyClassifier):
    """Stores the largest number of threads that OpenMP and BLAS have in its fit."""

    def fit(self, X, y, sample_weight=None):
        self.threads_ = max(pool["num_threads"] for pool in threadpool_info())
        return super().fit(X, y, sample_weight)


def test_models_use_one_thread_so_that_results_do_not_depend_on_the_machine():
    y = np.repeat([0, 1, 2], 10)
    X = np.random.default_rng(0).normal(size=(30, 2)) + y[:, None]
    with threadpool_limits(4):
        stack = MAUCStackingClassifier([("a", ThreadCounter()), ("b", ThreadCounter())], cv=2).fit(X, y)
    assert [model.threads_ for model in stack.estimators_] == [1, 1]


def test_a_model_that_is_clearly_ahead_replaces_the_combination_unless_samples_are_few():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [400, 300, 200])
    good = activate(4.0 * np.eye(3)[y] + rng.normal(size=(900, 3)), "softmax")
    # Copies of a ranking that is wrong where the good one is right, and right where it is not.
    bad = [activate(0.1 * np.eye(3)[y] + 3.0 * rng.normal(size=(900, 3)), "softmax") for _ in range(3)]
    found = learn_combination(held_out([good, *bad], y), "ovo", random_state=0)
    scores = [mauc_score(y, each) for each in (good, *bad)]
    assert mauc_score(y, found.held_out) > max(scores) - 2e-3, "never clearly below its best model"
    few = np.r_[np.arange(400), 400 + np.arange(9), 700 + np.arange(50)]
    small = learn_combination(held_out(np.stack([good, *bad])[:, few], y[few]), "ovo", random_state=0)
    assert np.isfinite(small.mauc)
    assert sorted(small.combination.weights) != [0.0, 0.0, 0.0, 1.0]


def test_values_beyond_single_precision_are_named():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[3, 1] = 1e307
    with pytest.raises(ValueError, match="too large for dtype"):
        MAUCStackingClassifier(cv=2).fit(X, np.arange(40) % 2)
