"""The scorer, and folds that keep every class in every training part."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.svm import LinearSVC

from mauc import MAUCClassifier, mauc_score, mauc_scorer
from mauc._estimators import encode_classes
from mauc.model_selection import MAUCScorer, RareClassKFold


def blobs(sizes=(40, 25, 12), n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(y), n_features)) + 1.2 * np.eye(len(sizes), n_features)[y], y


class Fixed(ClassifierMixin, BaseEstimator):
    """Scores that are the features themselves."""

    def __init__(self, classes=(0, 1, 2)):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.asarray(self.classes)
        return self


class WithDecision(Fixed):
    def decision_function(self, X):
        return -X


class WithBoth(WithDecision):
    def predict_proba(self, X):
        return X


def test_probabilities_come_first():
    X, y = blobs(n_features=3)
    assert mauc_scorer(WithBoth().fit(X, y), X, y) == mauc_score(y, X)
    assert mauc_scorer(WithDecision().fit(X, y), X, y) == mauc_score(y, -X)
    model = LogisticRegression().fit(X, y)
    assert mauc_scorer(model, X, y) == mauc_score(y, model.predict_proba(X))
    assert mauc_scorer(model, X, y) != mauc_score(y, model.decision_function(X))
    assert mauc_scorer.score(model, X, y) == mauc_scorer(model, X, y)


def test_no_scores_at_all():
    X, y = blobs(n_features=3)
    message = r"estimator must have predict_proba or decision_function, got Fixed: pass a classifier that scores"
    with pytest.raises(ValueError, match=message):
        mauc_scorer(Fixed().fit(X, y), X, y)


def test_one_column_for_two_classes():
    X, y = blobs((30, 12))
    y = np.array(["no", "yes"])[y]
    for model in (LinearSVC(), RidgeClassifier()):
        model.fit(X, y)
        assert mauc_scorer(model, X, y) == mauc_score(y, model.decision_function(X)) > 0.7


def test_absent_and_unseen_classes():
    X, y = blobs(n_features=3)
    model = WithBoth().fit(X, y)
    here = y != 1
    assert mauc_scorer(model, X[here], y[here]) == pytest.approx(mauc_score(y[here], X[here][:, [0, 2]]), abs=1e-15)
    with pytest.raises(ValueError, match=r"must name every class of y_true, got 0, 1, 2 without 3, 4, 5"):
        mauc_scorer(model, X, y + 3)


UNSEEN = r"^classes that were not in the training part are left out of the multiclass AUC: {}; RareClassKFold keeps"


def test_a_class_that_training_lacked_is_left_out():
    X, y = blobs(n_features=3)
    weight = np.random.default_rng(0).random(len(y))
    for model in (WithBoth().fit(X, y), MAUCClassifier().fit(X, y)):
        seen = y != 2
        expected = [mauc_scorer(model, X[seen], y[seen]), mauc_scorer(model, X[seen], y[seen], weight[seen])]
        for scorer in (mauc_scorer, *([type(model).score] if isinstance(model, MAUCClassifier) else [])):
            with pytest.warns(UndefinedMetricWarning, match=UNSEEN.format("7")) as caught:
                assert scorer(model, X, np.where(seen, y, 7)) == expected[0]
            assert len(caught) == 1
            assert caught[0].filename == __file__
            with pytest.warns(UndefinedMetricWarning, match=UNSEEN.format("7")):
                assert scorer(model, X, np.where(seen, y, 7), weight) == expected[1]


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_a_search_whose_folds_lack_a_class():
    X, y = blobs((40, 20, 1))
    with pytest.warns(UndefinedMetricWarning, match=UNSEEN.format("2")):
        search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=mauc_scorer, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=mauc_scorer, cv=RareClassKFold(3))
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()


def test_named_columns_of_an_estimator():
    pd = pytest.importorskip("pandas")

    class Named(WithBoth):
        def predict_proba(self, X):
            return pd.DataFrame(X, columns=["ant", "bee", "cat"])[["cat", "ant", "bee"]]

    X, y = blobs(n_features=3)
    names = np.array(["ant", "bee", "cat"])[y]
    model = Named(("ant", "bee", "cat")).fit(X, names)
    assert mauc_scorer(model, X, names) == mauc_score(names, X)
    with pytest.warns(UndefinedMetricWarning, match=UNSEEN.format("dog")):
        mauc_scorer(model, X, np.where(names == "ant", "dog", names))


def test_pairs():
    X, y = blobs(n_features=3)
    model = WithBoth().fit(X, y)
    own = np.arange(9.0).reshape(3, 3)
    for pairs in ("ova", own):
        assert MAUCScorer(pairs)(model, X, y) == mauc_score(y, X, pairs=pairs) != mauc_scorer(model, X, y)
    with pytest.raises(ValueError, match="pairs must be one of"):
        MAUCScorer("all")(model, X, y)


def test_clone_pickle_repr():
    assert (repr(mauc_scorer), repr(RareClassKFold(3))) == (
        "MAUCScorer()",
        "RareClassKFold(n_splits=3, random_state=0)",
    )
    assert clone(MAUCScorer("ova")).pairs == pickle.loads(pickle.dumps(MAUCScorer("ova"))).pairs == "ova"


def test_in_searches():
    X, y = blobs()
    model = LogisticRegression()
    result = cross_validate(model, X, y, scoring={"ovo": mauc_scorer, "ova": MAUCScorer("ova")}, cv=3)
    assert (result["test_ovo"] > 0.7).all()
    assert (result["test_ovo"] != result["test_ova"]).any()
    search = GridSearchCV(model, {"C": [1e-3, 1.0]}, scoring=mauc_scorer, cv=3).fit(X, y)
    expected = cross_val_score(LogisticRegression(C=search.best_params_["C"]), X, y, scoring=mauc_scorer, cv=3)
    assert search.best_score_ == expected.mean()
    assert search.score(X, y) == mauc_scorer(search.best_estimator_, X, y)


def test_weights_are_routed():
    X, y = blobs()
    weight = np.random.default_rng(1).random(len(y)) + 0.1
    folds = list(RareClassKFold(3).split(X, y))
    with config_context(enable_metadata_routing=True):
        scorer = MAUCScorer().set_score_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=True)
        result = cross_validate(model, X, y, scoring=scorer, cv=folds, params={"sample_weight": weight})
        ignoring = MAUCScorer().set_score_request(sample_weight=False)
        other = cross_validate(model, X, y, scoring=ignoring, cv=folds, params={"sample_weight": weight})
    for k, (train, test) in enumerate(folds):
        fitted = LogisticRegression().fit(X[train], y[train], weight[train])
        scores = fitted.predict_proba(X[test])
        assert result["test_score"][k] == mauc_score(y[test], scores, sample_weight=weight[test])
        assert other["test_score"][k] == mauc_score(y[test], scores)


@st.composite
def targets(draw):
    sizes = draw(st.lists(st.integers(1, 14), min_size=1, max_size=6))
    return np.array(
        draw(st.permutations([name for name, size in zip("abcdef", sizes, strict=False) for _ in range(size)]))
    )


@given(targets(), st.integers(2, 8), st.integers(0, 3))
def test_folds(y, n_splits, seed):
    X = np.zeros((len(y), 1))
    splitter = RareClassKFold(n_splits, random_state=seed)
    folds = list(splitter.split(X, y))
    assert len(folds) == splitter.get_n_splits(X, y) == n_splits
    classes, counts = np.unique(y, return_counts=True)
    held_out = np.zeros(len(y), dtype=int)
    per_fold = []
    for train, test in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
        np.testing.assert_array_equal(np.unique(y[train]), classes)
        held_out[test] += 1
        per_fold.append([(y[test] == c).sum() for c in classes])
    single = np.isin(y, classes[counts == 1])
    np.testing.assert_array_equal(held_out, np.where(single, 0, 1))
    sizes = np.array(per_fold)
    assert np.ptp(sizes.sum(axis=1)) <= 1, "folds of equal size"
    assert (np.ptp(sizes, axis=0) <= 1).all(), "each class spread evenly"
    again = list(splitter.split(X, y))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(folds, again, strict=True))


def test_folds_depend_on_the_seed():
    y = np.repeat([0, 1], 20)
    first, second = (next(iter(RareClassKFold(4, random_state=seed).split(y, y)))[1] for seed in (0, 1))
    assert not np.array_equal(first, second)
    generator = np.random.RandomState(0)
    drawn = [next(iter(RareClassKFold(4, random_state=generator).split(y, y)))[1] for _ in range(2)]
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("n_splits", [1, 2.5, "3"])
def test_bad_number_of_folds(n_splits):
    y = np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match="n_splits must be a whole number of at least 2, got"):
        list(RareClassKFold(n_splits).split(y, y))


def test_folds_need_classes():
    with pytest.raises(ValueError, match=r"\by\b"):
        list(RareClassKFold(2).split(np.zeros((6, 2))))


def test_encode_classes():
    classes, codes = encode_classes(["b", "a", "c", "a"])
    assert (classes.tolist(), codes.tolist()) == (["a", "b", "c"], [1, 0, 2, 0])
    with pytest.raises(ValueError, match=r"y must hold two classes or more, got 1 class, 'a'"):
        encode_classes(np.array(["a", "a"], dtype=object))
    with pytest.raises(ValueError, match="Unknown label type"):
        encode_classes([0.5, 1.5])
    with pytest.raises(ValueError, match=r"y must hold single values such as strings or whole numbers, got a dict$"):
        encode_classes([{"a": 1}, {"b": 2}])
    with pytest.raises(ValueError, match=r"y must not be masked, got 1 masked values"):
        encode_classes(np.ma.masked_equal([0, 1, 2], 2))
