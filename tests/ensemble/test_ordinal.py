"""Classes that have an order: its names, proportional odds, and the stack that finds it."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from mauc import mauc_score
from mauc.ensemble import MAUCStackingClassifier, default_estimators
from mauc.ensemble.bases import KernelColumns
from mauc.ensemble.odds import GAP, ProportionalOdds, _objective
from mauc.ensemble.ordinal import SCALES, are_numbers, order_of

GRADES = np.array(["poor", "fair", "good", "excellent"])


def graded(n=150, seed=0):
    """Four grades of one direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n), [-1.2, 0.0, 1.0])


def some_models(*names):
    return [(name, model) for name, model in default_estimators() if name in names]


@pytest.mark.parametrize(
    "names",
    [
        "low|medium|high",
        "Very Low|Fairly Low|Average|Fairly High|Very High",
        "poor|fair|good|very good|excellent",
        "very_poor|poor|good",
        "low risk|mid risk|high risk",
        "not too happy|pretty happy|very happy",
        "Strongly disagree|Disagree|Neither agree nor disagree|Agree|Strongly agree",
        "Too Little|About Right|Too Much",
        "none|mild|moderate|severe|very severe",
        "very rarely|rarely|sometimes|often|very often",
        "S|M|L|XL",
        "I|II|III|IV|V|IX|X",
        "Stage I|Stage II|Stage IIIA|Stage IIIB",
        "grade 2|grade 9|grade 10",
        "1-2|3-5|6-10|>10",
        "<18|18 to 24|25 to 64|65+",
        "none|1-2|3 or more",
        "under $5,000|$5,000 to $24,999|$25,000 or more",
        "-10|-2.5|0|7",
    ],
)
def test_names_that_tell_an_order(names):
    expected = names.split("|")
    for shuffled in (expected[::-1], sorted(expected)):
        assert [shuffled[place] for place in order_of(shuffled)] == expected


@pytest.mark.parametrize(
    "names",
    [
        "cat|dog|bird",
        "low|high",
        "low|medium|large",
        "no|yes|maybe",
        "cluster 1|cluster 2|cluster 3",
        "medium|middle|high",
        "A|B|C",
        "1-2|1 to 2|3",
        "i|ii|other",
        "north|east|",
        "¹|²|³",
    ],
)
def test_names_that_tell_none(names):
    assert order_of(names.split("|")) is None


def test_numbers_and_scales():
    np.testing.assert_array_equal(order_of(np.array([2.5, -1.0, 10.0])), [1, 0, 2])
    assert order_of(np.array([True, False])) is None
    assert are_numbers(np.arange(3))
    assert are_numbers(["-1", " 2.5", "+3"])
    assert not are_numbers(["1", "2", "3+"])
    assert not are_numbers(["1e", "nan", "inf"])
    for scale_ in SCALES:
        steps = [step.split(", ")[-1] for step in scale_.split("|")]
        assert len(steps) > 2
        assert [steps[::-1][place] for place in order_of(steps[::-1])] == steps


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


def test_the_stack_finds_the_order(capsys):
    X, grades = graded()
    models = some_models("lr", "kernel")
    for y, expected in ((grades, [0, 1, 2, 3]), (GRADES[grades], GRADES.tolist())):
        stack = MAUCStackingClassifier(models, verbose=1).fit(X, y)
        assert list(stack.named_estimators_) == ["lr", "odds", "odds_kernel", "kernel"] == list(stack.weights_)
        assert stack.ordinal_classes_.tolist() == expected
        assert f"classes in order: {' < '.join(map(str, expected))}" in capsys.readouterr().out
        assert stack.oof_scores_["odds"] > stack.oof_scores_["lr"], "one direction is enough"
    X_new, new = graded(400, seed=1)
    without = MAUCStackingClassifier(models, ordinal=False).fit(X, GRADES[grades])
    assert without.ordinal_classes_ is None
    assert list(without.weights_) == ["lr", "kernel"]
    assert stack.score(X_new, GRADES[new]) > without.score(X_new, GRADES[new])
    assert mauc_score(GRADES[new], stack.predict_proba(X_new), labels=stack.classes_) == stack.score(X_new, GRADES[new])


def test_numbers_that_are_codes(capsys):
    X, grades = graded()
    codes = np.array([2, 0, 3, 1])[grades]
    models = some_models("lr", "kernel")
    found = MAUCStackingClassifier(models, verbose=1).fit(X, codes)
    assert "numbers that show no order: without odds, odds_kernel" in capsys.readouterr().out
    plain = MAUCStackingClassifier(models, ordinal=False).fit(X, codes)
    assert found.ordinal_classes_ is None
    assert found.weights_ == plain.weights_
    assert found.oof_scores_ == plain.oof_scores_
    np.testing.assert_array_equal(found.oof_model_scores_, plain.oof_model_scores_)
    np.testing.assert_array_equal(found.predict_proba(X), plain.predict_proba(X))
    told = MAUCStackingClassifier(models, ordinal=[2, 0, 3, 1]).fit(X, codes)
    assert told.ordinal_classes_.tolist() == [2, 0, 3, 1]
    assert told.oof_scores_["odds"] > told.oof_scores_["lr"]


def test_models_of_ones_own():
    X, grades = graded()
    own = [("lr", LogisticRegression())]
    assert MAUCStackingClassifier(own).fit(X, GRADES[grades]).ordinal_classes_ is None
    assert list(MAUCStackingClassifier(own, ordinal=True).fit(X, grades).weights_) == ["lr", "odds", "odds_kernel"]
    letters = np.array(list("abcd"))[grades]
    assert MAUCStackingClassifier(own, ordinal=True).fit(X, letters).ordinal_classes_.tolist() == list("abcd")
    for two in (True, [1, 0]):
        assert MAUCStackingClassifier(own, ordinal=two).fit(X, (grades > 1).astype(int)).ordinal_classes_ is None
    clone(MAUCStackingClassifier(own, ordinal=GRADES))


@pytest.mark.parametrize("ordinal", ["yes", [0, 1, 2], [0, 1, 2, 2], [[0, 1], [2, 3]], 3, None])
def test_bad_orders(ordinal):
    X, grades = graded()
    words = (
        r"ordinal must be True, False, 'auto' or a list of all classes, the lowest first, got .*classes are 0, 1, 2, 3"
    )
    with pytest.raises(ValueError, match=words):
        MAUCStackingClassifier([("lr", LogisticRegression())], ordinal=ordinal).fit(X, grades)


def test_names_of_its_models_are_taken():
    X, grades = graded()
    with pytest.raises(ValueError, match="must leave the names of ordinal models free, got 'odds': rename it"):
        MAUCStackingClassifier([("odds", LogisticRegression())], ordinal=True).fit(X, grades)


def test_a_sparse_matrix_gives_the_same_odds():
    X, grades = graded(90)
    X = scale(np.where(np.abs(X) < 0.5, 0.0, X), with_mean=False)
    columns = KernelColumns(n_components=20)
    dense = ProportionalOdds().fit(columns.fit_transform(X), grades).predict_proba(columns.transform(X))
    given = sparse.csr_matrix(X)
    of_sparse = ProportionalOdds().fit(columns.fit_transform(given), grades).predict_proba(columns.transform(given))
    np.testing.assert_allclose(of_sparse, dense, atol=1e-3)
