"""Quick scores of a stack are those of its models: kinds of models, of numbers and of gaps; what is asked itself."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc.ensemble import MAUCStackingClassifier, TableColumns, default_estimators, quick, quick_trees
from mauc.ensemble.bases import class_scores, ordinal_estimators
from mauc.ensemble.combination import Combination
from mauc.ensemble.fitting import FoldAverage
from mauc.ensemble.quick import QuickScores, Rows

SMALL = {"hgb": {"max_iter": 9}, "mlp": {"balancedperceptron__max_epochs": 3}}
SMALL |= {name: {"n_estimators": 7} for name in ("et", "et_deep", "rf")}
NAMES = [name for name, _ in default_estimators()]


def small_models():
    return [(name, model.set_params(**SMALL.get(name, {}))) for name, model in default_estimators()]


def whole_numbers(n_samples=80, n_classes=3, seed=0):
    """Columns whose cuts lie at halves: of many values, of two, with gaps, without any number, and constant."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    X = rng.integers(-3, 4, size=(n_samples, 6)) + 2.0 * (y[:, None] == [0, 1, 2, 0, 1, 2])
    X[:, 3] = X[:, 3] > 0
    X[::5, 4] = np.nan
    return np.column_stack([X, np.full(n_samples, np.nan), np.ones(n_samples)]), y


def new_numbers(n_samples=150):
    """Values on the cuts and far away, and gaps in every column."""
    rng = np.random.default_rng(1)
    X = rng.integers(-10, 13, size=(n_samples, 8)) / 2.0
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:2] = [[1e30], [-1e30]]
    return X


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_default_models(name, n_classes):
    X, y = whole_numbers(n_classes=n_classes)
    model = dict(small_models())[name].fit(X, 2 * y)
    scores = QuickScores(model, 2 * n_classes)
    assert scores.quick is not None
    new = new_numbers()
    np.testing.assert_allclose(scores(Rows(new)), class_scores(model, new, 2 * n_classes), rtol=1e-12)
    one = new[:1]
    np.testing.assert_allclose(scores(Rows(one)), class_scores(model, one, 2 * n_classes), rtol=1e-12)


def test_models_of_an_order():
    X, y = whole_numbers()
    new = new_numbers()
    for _, model in ordinal_estimators([2, 0, 1], 0):
        scores = QuickScores(model.fit(X, y), 3)
        assert scores.quick is not None
        np.testing.assert_allclose(scores(Rows(new)), class_scores(model, new, 3), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision(name):
    X, y = whole_numbers()
    model = dict(small_models())[name].fit(X.astype(np.float32), y)
    new = new_numbers()[2:].astype(np.float32)
    np.testing.assert_allclose(QuickScores(model, 3)(Rows(new)), class_scores(model, new, 3), rtol=1e-6)


def test_all_boosted_trees_of_a_large_model_part_by_part(monkeypatch):
    """Columns of many cuts have a table of their own, columns of few share one; samples come in parts."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), rng.integers(0, 2, size=(300, 12))])
    y = (X[:, 0] > 0) + (X[:, 1] + X[:, 5] > 1) + X[:, 7].astype(int)
    model = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, min_samples_leaf=2).fit(X, y)
    new = rng.normal(size=(500, 15))
    new[rng.random(new.shape) < 0.1] = np.nan
    expected = class_scores(model, new, 4)
    scores = QuickScores(model, 4)
    sizes = np.diff(quick_trees.BoostingScores(model._predictors, model._baseline_prediction).starts)
    assert min(sizes) == 1
    assert max(sizes) > 2
    np.testing.assert_allclose(scores(Rows(new)), expected, rtol=1e-12)
    monkeypatch.setattr(quick_trees, "PAIRS", 1)
    monkeypatch.setattr(quick_trees, "MOST_ROWS", 150)
    np.testing.assert_allclose(scores(Rows(new)), expected, rtol=1e-12)


def test_trees_without_a_split():
    X, y = np.ones((12, 2)), np.arange(12) % 3
    for model in (HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=8), RandomForestClassifier(2)):
        model.fit(X, y)
        scores = QuickScores(model, 3)
        assert scores.quick is not None
        np.testing.assert_allclose(scores(Rows(X)), class_scores(model, X, 3), rtol=1e-12)


class Contrary(RandomForestClassifier):
    """Scores of its own."""

    def predict_proba(self, X):
        return 1.0 - super().predict_proba(X)


def boosting(**options):
    return HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2, **options)


@pytest.mark.parametrize(
    "model",
    [
        Contrary(3),
        RandomForestClassifier(2, monotonic_cst=[1, 0]),
        RandomForestClassifier(2, n_jobs=2),
        boosting(max_leaf_nodes=8, categorical_features=[1]),
        boosting(max_leaf_nodes=9),
        make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), LogisticRegression()),
        make_pipeline(SimpleImputer(), StandardScaler(with_mean=False), LogisticRegression()),
        make_pipeline(StandardScaler(), SimpleImputer(), LogisticRegression()),
        make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(solver="liblinear")),
    ],
    ids=str,
)
def test_other_models_are_asked_themselves(model):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(60, 2)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=60) > 8).astype(int)
    scores = QuickScores(model.fit(X, y), 3)
    assert scores.quick is None
    np.testing.assert_array_equal(scores(Rows(X)), class_scores(model, X, 3))


def test_tables_of_bits_have_a_limit(monkeypatch):
    X, y = whole_numbers()
    model = boosting(max_leaf_nodes=8).fit(X[:, :6], y)
    assert QuickScores(model, 3).quick is not None
    monkeypatch.setattr(quick_trees, "MOST_BYTES", 10)
    assert QuickScores(model, 3).quick is None


@pytest.mark.filterwarnings("ignore:overflow")  # scikit-learn's own, on the way to its error
@pytest.mark.parametrize("value", [np.inf, 1e39])
def test_numbers_that_a_model_refuses(value):
    X, y = whole_numbers()
    model = ExtraTreesClassifier(2).fit(X, y)
    new = new_numbers()
    new[3, 0] = value
    with pytest.raises(ValueError, match="infinity or a value too large for dtype\\('float32'\\)"):
        QuickScores(model, 3)(Rows(new))


def test_what_is_a_table_of_numbers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": [True, False]})
    np.testing.assert_array_equal(Rows(frame).numbers, [[1, 0.5, 1], [2, np.nan, 0]])
    assert Rows(frame.astype({"c": "float32"})).numbers.dtype == np.float64
    assert Rows(frame.astype("float32")).numbers.dtype == np.float32
    others = [frame.assign(b="x"), frame.astype({"a": "Int64"}), frame.to_numpy(dtype=object), sparse.eye_array(2)]
    for other in (*others, ["x", "y"], pd.Series([1.0, 2.0]), np.ones(3), frame[:0]):
        assert Rows(other).numbers is None


def asked(stack, X):
    """The combination of what the models say themselves."""
    by_fold = [each.transform(X) for each in stack._fold_columns] or [X] * 9
    whole = X if stack.columns_ is None else stack.columns_.transform(X)
    n_classes = len(stack.classes_)
    scores = [
        np.mean([class_scores(m, part, n_classes) for m, part in zip(model.estimators, by_fold, strict=False)], axis=0)
        if isinstance(model, FoldAverage)
        else class_scores(model, whole, n_classes)
        for model in stack.estimators_
    ]
    return stack._combination.scores(np.array(scores))


def test_a_whole_stack(monkeypatch):
    X, y = whole_numbers(120)
    new = new_numbers()
    stack = MAUCStackingClassifier(small_models(), cv=4).fit(X, y)
    expected = asked(stack, new)
    np.testing.assert_allclose(stack.predict_proba(new), expected, rtol=1e-12)
    with monkeypatch.context() as patched:
        patched.setattr(quick, "MOST_KEPT", 0)
        np.testing.assert_allclose(stack.predict_proba(new), expected, rtol=1e-12)
    again = pickle.loads(pickle.dumps(stack))
    assert "_stack_scores" not in vars(again)
    np.testing.assert_array_equal(again.predict_proba(new), stack.predict_proba(new))
    again.estimators_ = [again.estimators_[0]] * len(again.estimators_)
    np.testing.assert_allclose(again.predict_proba(new), asked(again, new), rtol=1e-12)


def test_a_table_with_words():
    """Every fold has categories of its own."""
    pd = pytest.importorskip("pandas")
    X, y = whole_numbers()
    words = np.array(["red", "green", "blue", None], dtype=object)[np.arange(len(y)) % 7 % 4]
    words[:4] = ["ochre", "umber", "sienna", "sepia"]
    table = pd.DataFrame({"number": X[:, 0], "word": words})
    some = [(name, model) for name, model in small_models() if name in ("lr", "et", "hgb")]
    stack = MAUCStackingClassifier(some, cv=4, columns=TableColumns()).fit(table, y)
    assert len({len(columns.encoder_.categories_[0]) for columns in stack._fold_columns}) > 1
    new = table.assign(number=table["number"][::-1].to_numpy())
    new.loc[5, "word"] = "mauve"
    np.testing.assert_allclose(stack.predict_proba(new), asked(stack, new), rtol=1e-12)


class Loud(LogisticRegression):
    """Fails when it is asked about seven samples."""

    def predict_proba(self, X):
        if len(X) == 7:
            raise RuntimeError("asked")
        return super().predict_proba(X)


def test_a_model_without_a_say_is_not_asked():
    X, y = whole_numbers()
    X = X[:, :4]
    stack = MAUCStackingClassifier([("lr", LogisticRegression()), ("loud", Loud())]).fit(X, y)
    floors = stack._combination.floors
    stack._combination = Combination(np.array([1.0, 0.0]), floors)
    alone = stack.predict_proba(X[:7])
    np.testing.assert_allclose(alone.argmax(axis=1), stack.estimators_[0].predict_proba(X[:7]).argmax(axis=1))
    for weights, share in (([1.0, 0.1], 1.0), ([1.0, 0.0], 0.5)):
        stack._combination = Combination(np.array(weights), floors, share)
        with pytest.raises(RuntimeError, match="asked"):
            stack.predict_proba(X[:7])
