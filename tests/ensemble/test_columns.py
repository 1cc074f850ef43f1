"""What the default models of a stack take: tables of mixed columns, texts, sparse matrices, groups."""

import os
import subprocess
import sys
from platform import machine
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from mauc.ensemble import MAUCStackingClassifier, TableColumns, default_estimators
from mauc.ensemble import planner as module
from mauc.ensemble.columns import TextColumn, for_sparse
from mauc.ensemble.combination import OutOfFold
from mauc.model_selection import group_folds

FEW = {name: {"n_estimators": 5} for name in ("et", "et_deep", "rf")} | {
    "hgb": {"max_iter": 3},
    "mlp": {"balancedperceptron__max_epochs": 5},
}


@pytest.fixture
def small_models(monkeypatch):
    """The default list with few trees."""

    real = module.plan_members

    def small(*size):
        plan = real(*size)
        for member in plan.members:
            member.model.set_params(**FEW.get(member.name, {}))
        return plan

    monkeypatch.setattr("mauc.ensemble.classifier.plan_members", small)


@parametrize_with_checks([TableColumns()])
def test_estimator_checks(estimator, check):
    pytest.importorskip("pandas")
    check(estimator)


def mixed_table(n_samples=90, seed=0):
    """Classes that only all columns together tell apart: a number, a category, a date and a text."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skrub")
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_samples) % 4)
    start = pd.Timestamp("2021-01-01")
    table = pd.DataFrame(
        {
            "number": np.where(rng.random(n_samples) < 0.1, np.nan, rng.normal(size=n_samples) + 3 * (y == 0)),
            "count": pd.array(rng.integers(0, 9, n_samples), dtype="Int64"),
            "truth": rng.random(n_samples) < 0.5,
            "category": pd.Categorical(np.where(y == 1, "red", rng.choice(["blue", "green"], n_samples))),
            "date": [start + pd.Timedelta(days=int(k)) for k in 300 * (y == 2) + rng.integers(0, 99, n_samples)],
            "text": [f"{'late' if k == 3 else 'early'} train {n}" for n, k in enumerate(y)],
            "half": pd.Series(np.where(np.arange(n_samples) % 2, "x", None), dtype=object),
        }
    )
    table.loc[::7, "count"] = pd.NA
    table.loc[1::7, ["category", "date", "text"]] = None
    return table, np.array(["a", "b", "c", "d"])[y]


def test_a_table_of_numbers_categories_dates_and_texts_with_gaps(small_models):
    table, y = mixed_table()
    new, truth = mixed_table(60, seed=1)
    model = MAUCStackingClassifier(cv=2).fit(table, y)
    assert model.columns_.numbers_ == ["number", "count", "truth"]
    assert model.score(new, truth) > 0.9
    alone = MAUCStackingClassifier(cv=2).fit(table[["number", "count", "truth"]], y)
    assert alone.score(new[["number", "count", "truth"]], truth) < 0.8
    unheard = new.assign(category="violet", text="not a word of it")
    assert np.isfinite(model.predict_proba(unheard)).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(new.rename(columns={"text": "words"}))
    with pytest.warns(UserWarning, match=r"column 'number' held numbers in training and has 60 values that are not n"):
        scores = model.predict_proba(new.assign(number="many"))
    np.testing.assert_array_equal(scores, model.predict_proba(new.assign(number=np.nan)))


def test_numbers_are_centred_and_lose_no_digit():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skrub")
    large = 2.0**40 + 1
    table = pd.DataFrame({"n": [1, None, large], "b": [True, False, True], "o": pd.Series([1, None, 2], dtype=object)})
    columns = TableColumns().fit(table)
    found = columns.transform(table)
    np.testing.assert_array_equal(columns.centres_, [(1 + large) / 2, 1, 1.5])
    np.testing.assert_array_equal(found + columns.centres_, [[1, 1, 1], [np.nan, 0, np.nan], [large, 1, 2]])
    table["town"] = ["Ulm", "Kiel", "Ulm"]
    columns = TableColumns().fit(table)
    np.testing.assert_array_equal(columns.transform(table)[:, :3], found)
    unknown = columns.transform(table.assign(town="Bonn"))
    assert not unknown[:, 3:].any(), "an unknown town is none of the two"
    array = table.to_numpy(dtype=object)
    np.testing.assert_array_equal(TableColumns().fit_transform(array), columns.transform(table))
    with pytest.raises(ValueError, match="Expected unique column names"):
        TableColumns().fit(table.set_axis(["n", "n", "o", "town"], axis=1))
    matrix = sparse.eye_array(3, format="csr")
    assert TableColumns().fit_transform(matrix) is matrix


def test_new_kinds_of_values_change_no_other_column():
    pd = pytest.importorskip("pandas")
    table, _ = mixed_table()
    columns = TableColumns().fit(table.assign(empty=np.nan, code=[f"{k % 45:03d}x" for k in range(len(table))]))
    assert columns.empty_ == ["empty"]
    new = table.assign(empty="words", code=[f"{k % 45:03d}x" for k in range(len(table))])
    with pytest.warns(UserWarning, match="column 'empty' was empty in training and is ignored"):
        found = columns.transform(new)
    new = new.assign(empty=np.nan)
    np.testing.assert_array_equal(found, columns.transform(new))
    first = 3 + columns.encoder_.transform(np.array([[None, None]], dtype=object)).shape[1]
    for name, value in (
        ("date", 7),
        ("date", "soon"),
        ("text", pd.Timestamp("2020-01-01")),
        ("text", 7),
        ("code", True),
    ):
        other = columns.transform(new.assign(**{name: value}))
        np.testing.assert_array_equal(other[:, :first], found[:, :first])


def test_an_array_has_the_columns_of_the_training_table():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"size": [3.0, 1.0, 2.0], "town": ["Ulm", "Kiel", "Ulm"]})
    columns = TableColumns().fit(table)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = columns.transform(table.to_numpy(dtype=object))
    np.testing.assert_array_equal(found, columns.transform(table))


def test_texts_that_repeat_also_have_a_code():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skrub")
    names = [f"person {k % 50}" for k in range(200)]
    columns = TableColumns().fit(pd.DataFrame({"name": names}))
    once = TableColumns().fit(pd.DataFrame({"name": [f"person {k}" for k in range(200)]}))
    made = columns.transform(pd.DataFrame({"name": ["person 7", "person 7", "nobody", None]}))
    assert made.shape[1] == once.transform(pd.DataFrame({"name": names})).shape[1] + 1
    np.testing.assert_array_equal(made[0], made[1])
    assert made[0, -1] == sorted({*names}).index("person 7")
    assert np.isnan(made[2:, -1]).all()


def test_the_offset_of_a_column_takes_nothing_from_any_model(small_models):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    x = rng.normal(0, 0.3, 300) + y
    near, far = (MAUCStackingClassifier(cv=3).fit((x + shift)[:, None], y) for shift in (0.0, 1e9))
    for name, score in near.oof_scores_.items():
        assert far.oof_scores_[name] == pytest.approx(score, abs=5e-3), name
    assert far.score((x + 1e9)[:, None], y) > 0.98


class RowRecorder(TransformerMixin, BaseEstimator):
    """Subtracts the mean, and stores the rows that it was fitted on."""

    fitted_on: ClassVar[list] = []

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        self.fitted_on.append(X[:, 0].astype(int).tolist())
        return self

    def transform(self, X):
        return X - self.mean_


class Counted(LogisticRegression):
    means: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.means.append(float(np.abs(X.mean(axis=0)).max()))
        return super().fit(X, y, sample_weight)


def test_columns_are_learnt_once_for_all_models():
    y = np.arange(30) % 3
    X = np.column_stack([np.arange(30.0), y + np.linspace(0, 1, 30)])
    RowRecorder.fitted_on, Counted.means = [], []
    weight = (np.arange(30) != 29).astype(float)
    stack = MAUCStackingClassifier([("a", Counted()), ("b", Counted(C=0.1))], cv=2, columns=RowRecorder()).fit(
        X, y, weight
    )
    assert RowRecorder.fitted_on == [list(range(29))], "a weight of 0 is no sample"
    assert len(Counted.means) == 6
    np.testing.assert_allclose(stack.columns_.mean_, X[:29].mean(axis=0))


def test_texts_need_no_table(small_models):
    pytest.importorskip("skrub")
    words = ["red apple", "green pear", "blue plum"]
    y = np.repeat([0, 1, 2], [20, 15, 10])
    X = [f"{words[k]} {n}" for n, k in enumerate(y)]
    for columns in ("auto", TfidfVectorizer()):
        model = MAUCStackingClassifier(cv=2, columns=columns).fit(X, y)
        assert model.score(X, y) > 0.99


def test_without_skrub_the_columns_are_named(monkeypatch):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "town": list("abab"), "when": pd.date_range("2020", periods=4)})
    monkeypatch.setitem(sys.modules, "skrub", None)
    message = r"columns of text or dates \(when\) needs skrub, which is not installed: pip install 'mauc\[cli\]'"
    with pytest.raises(ImportError, match=message):
        MAUCStackingClassifier(cv=2).fit(table, [0, 0, 1, 1])
    assert MAUCStackingClassifier([("d", DummyClassifier())], cv=2).fit(table, [0, 0, 1, 1]).columns_ is None
    with pytest.raises(ValueError, match=r"columns must be 'auto', None or a transformer, got 'all': pass e\.g\."):
        MAUCStackingClassifier(columns="all", cv=2).fit(table, [0, 0, 1, 1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_sparse_matrix_is_another_layout_of_the_same_numbers(small_models):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = np.where(rng.random((90, 12)) < 0.6, 0.0, rng.normal(size=(90, 12)) + 2 * np.eye(3, 12)[y])
    X[3, 5] = np.nan
    dense = MAUCStackingClassifier(cv=2).fit(X, y)
    model = MAUCStackingClassifier(cv=2)
    assert model.__sklearn_tags__().input_tags.sparse
    model.fit(sparse.csr_array(X), y, np.ones(90))
    for name, tolerance in {
        "lr": 2e-3,
        "lr_strong": 1e-3,
        "mauc": 1e-2,
        "kernel": 1e-8,
        "mlp": 1e-9,
        "hgb": 1e-9,
    }.items():
        one = dense.named_estimators_[name].predict_proba(X)
        two = model.named_estimators_[name].predict_proba(sparse.csr_array(X))
        np.testing.assert_allclose(two, one, atol=tolerance, err_msg=name)
    assert model.score(sparse.csc_array(X), y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(sparse.csr_array(X)))


def test_many_sparse_columns_become_components_for_a_model_that_needs_dense_ones():
    X = sparse.random_array((40, 201), density=0.05, format="csr", rng=0)
    models = dict(default_estimators())
    many = for_sparse(models["hgb"], 201)[:-1].fit(X)
    assert many.transform(X[:7]).shape == (7, 40), "no more components than rows"
    np.testing.assert_allclose(many.transform(X) @ many.transform(X).T, (X @ X.T).toarray(), atol=1e-10)
    X.data[3] = np.nan
    assert np.isfinite(many.fit_transform(X)).all()
    few = for_sparse(models["mlp"], 200)
    np.testing.assert_array_equal(few[0].fit_transform(X), X.toarray())
    assert few[-1].named_steps["standardscaler"].with_mean, "dense columns are centred"
    assert list(for_sparse(models["et"], 201).named_steps) == ["simpleimputer", "extratreesclassifier"]
    chosen = module.make_pipeline(module.TreeColumns(list(range(300)), [], most=250), models["hgb"])
    assert list(for_sparse(chosen, 300).named_steps) == ["simpleimputer", "truncatedsvd", "boostedtrees"]


def test_groups_are_held_out_as_a_whole():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat([f"p{k}" for k in range(20)], 4))
    y = rng.integers(0, 3, 80)
    only = np.flatnonzero(groups == "p7")
    y[only[0]] = 3  # a class of one group alone
    # Every group has a mark that tells its rows' classes: worth nothing on other groups.
    X = np.eye(20)[[int(name[1:]) for name in groups]] + rng.normal(size=(80, 20)) * 0.01
    split = []
    stack = MAUCStackingClassifier([("lr", LogisticRegression())], cv=5)
    stack._folds = lambda *work, real=stack._folds: split.extend(real(*work)) or real(*work)
    stack.fit(X, y, groups=list(groups))
    assert len(split) == 5
    for train, test in split:
        assert not set(groups[train]) & set(groups[test])
        assert set(y[test]) <= set(y[train])
    held = np.concatenate([test for _, test in split])
    assert sorted(held) == sorted(set(range(80)) - {only[0]})
    assert sorted(held) == stack.oof_rows_.tolist()
    by_splitter = MAUCStackingClassifier([("lr", LogisticRegression())], cv=GroupKFold(4))
    expected = MAUCStackingClassifier([("lr", LogisticRegression())], cv=list(GroupKFold(4).split(X, y, groups))).fit(
        X, y
    )
    np.testing.assert_array_equal(by_splitter.fit(X, y, groups=groups).oof_model_scores_, expected.oof_model_scores_)


def test_the_weights_are_judged_by_groups_they_were_not_learnt_from():
    rng = np.random.default_rng(0)
    y, groups = np.arange(60) % 3, np.arange(60) // 5
    data = OutOfFold(rng.dirichlet(np.ones(3), (2, 60)), y, None, np.full(3, 0.01), groups)
    folds = data.rows(np.arange(5, 60)).folds(0)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(55))
    for train, test in folds:
        assert not set(groups[5:][train]) & set(groups[5:][test])


def test_group_folds_spread_a_class_of_two_groups():
    y = np.repeat([0, 1, 2], [40, 16, 4])
    groups = np.repeat(np.arange(30), 2)
    for seed in range(5):
        tests = [set(y[test]) for _, test in group_folds(y, groups, 5, seed)]
        assert sum(2 in each for each in tests) == 2, "rows 56 to 59 are two groups, and both are held out"


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([0, 1, 2], r"groups must have the shape \(6,\), got \(3,\): pass the group of each row"),
        ([0, 0, None, 1, 1, 1], "groups must hold a value for every row, got None in row 2: pass the group"),
        (np.array([0, "p"] * 3, dtype=object), "groups must hold values of one kind, got a mixture of int, str"),
        (["p"] * 6, "groups must be 2 or more, got only p"),
        ([0, 1, 2, 0, 1, 2], "groups must leave a class to train on when one is held out"),
    ],
)
def test_bad_groups(groups, words):
    with pytest.raises(ValueError, match=words):
        MAUCStackingClassifier([("lr", LogisticRegression())]).fit(np.eye(6), [0, 1, 2] * 2, groups=groups)


def test_categories_of_training_by_column():
    """Words, and codes with digits, which skrub encodes; numbers have none."""
    pd = pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
    table = pd.DataFrame({"soil": ["sand", None, "clay"] * 10, "code": ["a1", "b2", "a1"] * 10, "x": range(30)})
    found = TableColumns().fit(table).known_categories()
    assert found == {"soil": ["clay", "sand", None], "code": ["a1", "b2"]}


def test_quick_columns_keep_the_order_of_texts():
    pd = pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    table = pd.DataFrame({"size": [3.0, 1.0, 2.0, 4.0], "code": ["b1", "a1", None, "c1"]})
    columns = TableColumns(quick=True).fit(table)
    np.testing.assert_array_equal(columns.transform(table)[:, 1], [1.0, 0.0, np.nan, 2.0])
    new = pd.DataFrame({"size": [0.0, 0.0], "code": ["b9", "zz"]})
    np.testing.assert_array_equal(columns.transform(new)[:, 1], [2.0, 3.0])
    assert columns.get_feature_names_out().tolist() == ["size", "code_place"]


def test_quick_columns_compare_whole_texts():
    """Fifty addresses of one site begin alike."""
    pd = pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    pages = [f"https://www.example.org/a/long/path/of/one/site/page/{k:02d}" for k in range(50)]
    columns = TableColumns(quick=True).fit(pd.DataFrame({"page": pages}))
    np.testing.assert_array_equal(columns.transform(pd.DataFrame({"page": pages}))[:, 0], np.arange(50))


def test_a_cell_that_is_a_mistake_does_not_hide_the_others():
    pd = pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"height": rng.normal(size=200), "rare": np.where(np.arange(200) < 5, 1e9, 0.0)})
    before = TableColumns().fit_transform(table)
    table.loc[7, "height"] = 1e30
    columns = TableColumns()
    after = columns.fit_transform(table)
    assert 5 < after[7, 0] < 50
    np.testing.assert_allclose(np.delete(after, 7, axis=0), np.delete(before, 7, axis=0), atol=0.05)
    np.testing.assert_array_equal(columns.transform(table), after)


def test_texts_are_encoded_alike_with_any_number_of_threads():
    pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    words = np.array([f"{a}{b}" for a in "abcdefgh" for b in ("ox", "in", "um", "el")])
    texts = [" ".join(rng.choice(words, 12)) for _ in range(1_500)]
    table, rows = pandas.DataFrame({"text": texts}), np.arange(1_500)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(MAUCStackingClassifier()._fit_columns(table, rows, None, None, None)[0])
    np.testing.assert_array_equal(*found)


CODES = """
import numpy, pandas, sys
from mauc.ensemble.columns import TextColumn
codes = [a + b for a in "abcdefgh" for b in "stuvwxyz"]
numbers = TextColumn().fit_transform(pandas.Series(numpy.random.default_rng(0).choice(codes, 500), name="code"))
sys.stdout.buffer.write(numbers.iloc[:, :30].to_numpy().tobytes())
"""


def test_codes_without_common_letters_are_encoded_alike_by_every_processor():
    """Their singular values are equal: without a tie-breaker, rounding chose the components."""
    pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
    if not any(each.get("internal_api") == "openblas" for each in threadpool_info()) or machine() != "x86_64":
        pytest.skip("only OpenBLAS on x86 can take the code of another processor")
    found = []
    for processor in ("Sandybridge", "Nehalem"):
        env = os.environ | {"OPENBLAS_CORETYPE": processor}
        done = subprocess.run([sys.executable, "-c", CODES], env=env, capture_output=True, check=True)
        found.append(np.frombuffer(done.stdout).reshape(500, 30))
    np.testing.assert_allclose(*found, atol=1e-6)
    assert np.ptp(found[0], axis=0).min() > 0.1


def test_texts_that_differ_in_case_alone_give_no_component_of_rounding_errors():
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(["oak", "OAK", "elm", "ELM", "yew", "YEW"] * 3, name="tree")
    numbers = TextColumn().fit_transform(texts)
    assert list(numbers.columns) == ["tree_0", "tree_1", "tree_2", "tree_place"]
    assert np.abs(numbers.iloc[:, :3]).max().min() > 0.1
