"""Ordered classes: proportional odds, and the stack with them."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from mauc.ensemble import MAUCStackingClassifier, default_estimators
from mauc.ensemble.bases import KernelColumns
from mauc.ensemble.classifier import _drop_weak_odds
from mauc.ensemble.fitting import Fits
from mauc.ensemble.odds import GAP, ProportionalOdds, _objective, class_order

GRADES = np.array(["poor", "fair", "good", "excellent"])


def graded(n=150, seed=0):
    """Four grades of one direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n), [-1.2, 0.0, 1.0])


def some_models(*names):
    return [(name, model) for name, model in default_estimators() if name in names]


def test_the_slope_of_the_loss_and_the_loss_itself():
    rng = np.random.default_rng(0)
    X, grades, weight = rng.normal(size=(40, 3)), rng.integers(0, 4, 40), rng.random(40) / 20
    at = np.array([0.3, -2.0, 1.0, -1.0, 0.5, 0.8])

    def by_definition(parameters):
        place, thresholds = X @ parameters[:3], np.cumsum(parameters[3:])
        above = 1.0 / (1.0 + np.exp(thresholds - place[:, None]))
        bounds = np.hstack([np.ones((40, 1)), above, np.zeros((40, 1))])
        p = bounds[np.arange(40), grades] - bounds[np.arange(40), grades + 1]
        return -weight @ np.log(p) + 0.05 * parameters[:3] @ parameters[:3]

    value, slope = _objective(at, X, grades, weight, 3, 0.1)
    assert value == pytest.approx(by_definition(at), abs=1e-14)
    np.testing.assert_allclose(slope, optimize.approx_fprime(at, by_definition, 1e-7), atol=1e-6)
    value, slope = _objective(at * [1e3, 1e3, 1e3, 1.0, 1.0, 1e4], X, grades, weight, 3, 0.1)
    assert np.isfinite([value, *slope]).all(), "no logarithm of a difference that is 0, and no overflow"


def test_two_classes_are_balanced_logistic_regression():
    X, grades = graded()
    y = grades > 2
    odds = ProportionalOdds(l2=1e-2).fit(X, y)
    # Its penalty beside a sum over samples; the weights of both classes sum to the number of samples.
    same = LogisticRegression(C=100 / len(y), class_weight="balanced", tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(odds.coef_, same.coef_[0], rtol=2e-3)
    np.testing.assert_allclose(odds.predict_proba(X), same.predict_proba(X), atol=1e-3)


def test_probabilities_far_from_all_thresholds_do_not_cancel():
    X, grades = graded()
    model = ProportionalOdds().fit(X, grades)
    model.coef_, model.thresholds_ = np.array([1.0, 0.0, 0.0, 0.0]), np.array([-1.0, 0.0, 2.0])
    far = np.zeros((4, 4))
    far[:, 0] = [-700.0, -40.0, 40.0, 700.0]
    p = model.predict_proba(far)
    # With the thresholds a above and b below class k, P(y = k) is about exp(x) (exp(-b) - exp(-a)) far below all of
    # them, and exp(-x) (exp(a) - exp(b)) far above.
    np.testing.assert_allclose(p[0, 1:3], np.exp(-700.0) * np.diff(-np.exp([1.0, 0.0, -2.0])), rtol=1e-9)
    np.testing.assert_allclose(p[2:, 0], np.exp([-41.0, -701.0]), rtol=1e-9)
    np.testing.assert_allclose(p[2:, 1], np.exp([-40.0, -700.0]) * (1.0 - np.exp(-1.0)), rtol=1e-9)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    near = model.predict_proba(X)
    above = 1.0 / (1.0 + np.exp(model.thresholds_ - X[:, :1]))
    np.testing.assert_allclose(near, -np.diff(above, prepend=1.0, append=0.0), rtol=1e-12)


def test_one_class_has_no_odds():
    with pytest.raises(ValueError, match="y must hold two classes or more, got 1 class, 0: "):
        ProportionalOdds().fit(np.ones((3, 1)), np.zeros(3, dtype=int))


def test_an_order_that_is_not_the_alphabet():
    X, grades = graded()
    model = ProportionalOdds(order=GRADES.tolist()).fit(X, GRADES[grades])
    plain = ProportionalOdds().fit(X, grades)
    np.testing.assert_array_equal(model.classes_, np.sort(GRADES))
    np.testing.assert_array_equal(model.predict_proba(X)[:, np.argsort(np.argsort(GRADES))], plain.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), GRADES[plain.predict(X)])
    assert (np.diff(model.thresholds_) >= GAP).all()
    without = ProportionalOdds(order=GRADES.tolist()).fit(X[grades != 1], GRADES[grades[grades != 1]])
    assert without.predict_proba(X).shape == (len(X), 3)
    heavy = ProportionalOdds().fit(X, grades, np.where(grades == 3, 20.0, 1.0))
    assert (heavy.predict(X) == 3).sum() > (plain.predict(X) == 3).sum()
    in_rows = ProportionalOdds().fit(sparse.csr_matrix(X), grades)
    np.testing.assert_allclose(in_rows.predict_proba(sparse.csr_matrix(X)), plain.predict_proba(X), atol=1e-4)


def test_an_order_by_a_list_or_by_the_data_type():
    pd = pytest.importorskip("pandas")
    X, grades = graded()
    listed = MAUCStackingClassifier(some_models("lr", "kernel"), ordinal=GRADES).fit(X, GRADES[grades])
    assert list(listed.named_estimators_) == ["lr", "odds", "odds_kernel", "kernel"]
    assert listed.oof_scores_["odds"] > listed.oof_scores_["lr"], "one direction is enough"
    typed = pd.Series(pd.Categorical(GRADES[grades], [*GRADES, "unseen"], ordered=True))
    assert class_order(None, typed, listed.classes_).tolist() == np.argsort(GRADES).argsort().tolist()
    assert class_order(None, typed.astype(str), listed.classes_) is None
    assert class_order([1, 0], None, np.array([0, 1])) is None, "either order of two is the same"
    own = MAUCStackingClassifier([("lr", LogisticRegression())]).fit(X, typed)
    assert list(own.named_estimators_) == ["lr"], "an ordered y does not change a list of one's own"
    clone(listed)


def test_numbers_have_an_order_unless_they_are_many():
    assert class_order(None, None, np.array([1, 2, 10])).tolist() == [0, 1, 2]
    assert class_order(None, None, np.array([0.5, 1.0, 2.0])).tolist() == [0, 1, 2]
    assert class_order(False, None, np.array([1, 2, 10])) is None
    for without in (np.arange(31), np.array([False, True]), np.array(["1", "2", "3"])):
        assert class_order(None, None, without) is None


@pytest.mark.parametrize(("behind", "kept"), [(0.04, ["odds", "lr", "rf"]), (0.06, ["lr", "rf"])])
def test_models_of_ordered_classes_that_are_far_behind_are_dropped(behind, kept):
    """Their scores stand for themselves: the median of the others is 0.8."""
    fits = Fits(held_out={"odds": 0.8 - behind, "lr": 0.7, "rf": 0.9}, folds={"odds": [], "lr": [], "rf": []})
    _drop_weak_odds(fits, score=float)
    assert list(fits.folds) == list(fits.held_out) == kept


def test_the_only_models_are_not_dropped():
    fits = Fits(held_out={"odds": 0.5})
    _drop_weak_odds(fits, score=float)
    assert list(fits.held_out) == ["odds"]


@pytest.mark.parametrize(
    "ordinal",
    ["yes", [0, 1, 2], [0, 1, 2, 2], [[0, 1], [2, 3]], [0, 1, 2, [3]], [0, 1, 2, {3}], 3, True],
)
def test_bad_orders(ordinal):
    words = r"ordinal must be None, False or a list of all classes, the lowest first, got .*classes are 0, 1, 2, 3"
    with pytest.raises(ValueError, match=words):
        class_order(ordinal, None, np.arange(4))


def test_names_of_its_models_are_taken():
    X, grades = graded()
    with pytest.raises(ValueError, match="must not use the names of the ordinal models, got 'odds': rename it"):
        MAUCStackingClassifier([("odds", LogisticRegression())], ordinal=range(4)).fit(X, grades)


def test_a_sparse_matrix_gives_the_same_odds():
    X, grades = graded(90)
    X = scale(np.where(np.abs(X) < 0.5, 0.0, X), with_mean=False)
    columns = KernelColumns(n_components=20)
    dense = ProportionalOdds().fit(columns.fit_transform(X), grades).predict_proba(columns.transform(X))
    given = sparse.csr_matrix(X)
    of_sparse = ProportionalOdds().fit(columns.fit_transform(given), grades).predict_proba(columns.transform(given))
    np.testing.assert_allclose(of_sparse, dense, atol=1e-3)
