"""The same label in different types is one class everywhere, and a label that means none or two is refused."""

import datetime

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from mauc import (
    MAUCDecision,
    compare_mauc,
    mauc_importance,
    mauc_interval,
    mauc_sample_size,
    mauc_score,
    multiclass_auc_report,
    pairwise_auc,
)
from mauc.report import judge

CODES = np.tile([0, 1, 2], 20)
SCORES = np.random.default_rng(0).normal(size=(60, 3)) + 1.5 * np.eye(3)[CODES]
DAYS = np.array(["2020-01-01", "2021-02-03", "2022-12-31"], dtype="datetime64[D]")
EXPECTED = mauc_score(CODES, SCORES)
RIGHT = np.where(np.arange(60) % 4 == 0, (CODES + 1) % 3, CODES)
"""Predictions of which three quarters are right."""


def python_days(days):
    return [day.item() for day in days.astype("datetime64[D]")]


DATES = [DAYS.astype(f"datetime64[{unit}]") for unit in ("D", "h", "s", "ms", "us", "ns")]
DATES.append(np.array([datetime.datetime(*day.timetuple()[:3]) for day in python_days(DAYS)], dtype=object))
DATES.append(np.array(python_days(DAYS), dtype=object))


@pytest.mark.parametrize("true", DATES)
@pytest.mark.parametrize("predicted", [*DATES, DAYS.astype(str)])
def test_dates_of_any_unit_are_the_same_class(true, predicted):
    found = judge(true[CODES], SCORES, y_pred=predicted[RIGHT])
    assert found.headline.accuracy == 0.75
    assert found.labels == ("2020-01-01", "2021-02-03", "2022-12-31")
    assert mauc_score(true[CODES], SCORES, labels=predicted) == EXPECTED


@pytest.mark.parametrize(
    ("true", "predicted"),
    [
        ([1, 2, 3], ["1", "2", "3"]),
        ([1, 2, 3], [1.0, 2.0, 3.0]),
        (["1", "2", "3"], [1, 2, 3]),
        (["1.0", "2.0", "3.0"], [1, 2, 3]),
        (["a", "b", "c"], [b"a", b"b", b"c"]),
        ([b"a", b"b", b"c"], ["a", "b", "c"]),
        (["1", "1.0", "2"], ["1", "1.0", 2]),
        (np.array([1, 2, 3], dtype="timedelta64[s]"), np.array([1000, 2000, 3000], dtype="timedelta64[ms]")),
    ],
)
def test_classes_of_other_types(true, predicted):
    true, objects = np.array(true), np.array(predicted, dtype=object)
    for given in (np.array(predicted)[RIGHT], objects[RIGHT], list(objects[RIGHT])):
        if given is objects or len({type(each) for each in objects}) == 1 or isinstance(given, list):
            assert judge(true[CODES], SCORES, y_pred=given).headline.accuracy == 0.75
    assert mauc_score(true[CODES], SCORES, labels=objects) == EXPECTED


@pytest.mark.parametrize("predicted", [[0, 1], [0.0, 1.0], ["0", "1"], [False, True], ["False", "True"]])
def test_truth_of_booleans(predicted):
    true = CODES > 0
    found = judge(true, SCORES[:, :2], y_pred=np.array(predicted)[(RIGHT > 0).astype(int)])
    assert found.headline.accuracy == pytest.approx(np.mean((RIGHT > 0) == true))
    assert judge(true * 1, SCORES[:, :2], y_pred=true).headline.accuracy == 1.0


def test_predictions_of_no_class_are_refused():
    with pytest.raises(
        ValueError, match=r"^y_pred must hold classes of the scores, got x and no class of 0, 1, 2: pass"
    ):
        judge(CODES, SCORES, y_pred=np.full(60, "x"))
    assert judge(CODES, SCORES, y_pred=np.where(CODES == 0, "0", "x")).headline.accuracy == pytest.approx(1 / 3)


@pytest.mark.parametrize("missing", [np.nan, None, float("nan")])
def test_a_missing_group_or_level_is_refused(missing):
    values = ["a", "b", missing] * 20
    for call in (
        lambda: mauc_interval(CODES, SCORES, groups=values),
        lambda: multiclass_auc_report(CODES, SCORES, subgroups=values),
        lambda: judge(CODES, SCORES, subgroups=values),
    ):
        with pytest.raises(ValueError, match=r"must hold a value for every row, got (nan|None) in row 2"):
            call()


def test_groups_and_levels_are_of_one_kind():
    for parameter in ("groups", "subgroups"):
        with pytest.raises(ValueError, match=f"^{parameter} must hold values of one kind, got a mixture of int, str"):
            judge(CODES, SCORES, **{parameter: [1, "1", 2] * 20})
    found = judge(CODES, SCORES, subgroups=np.repeat([10, 9], 30))
    assert [one.level for one in found.subgroups] == ["9", "10"]


def test_models_whose_names_have_the_same_text_are_refused():
    for call in (
        lambda: compare_mauc(CODES, {1: SCORES, "1": -SCORES, "b": SCORES}),
        lambda: judge(CODES, {1: SCORES, "1": -SCORES}),
    ):
        with pytest.raises(ValueError, match="must hold models with different names, got '1' twice: rename one"):
            call()


def test_labels_that_are_the_same_class_are_refused():
    for labels in (np.array([1, "1", 2], dtype=object), [b"a", "a", "b"], [1, 1, 2]):
        with pytest.raises(ValueError, match="labels must be two or more different classes"):
            mauc_score(CODES, SCORES, labels=labels)


@pytest.mark.parametrize(
    "names",
    [
        ["c_prob", "a_prob", "b_prob"],
        ["C", "A", "B"],
        [" c", "a ", "b"],
        ["p(c)", "p(a)", "p(b)"],
        ["P_C", "P_A", "P_B"],
        [b"c", b"a", b"b"],
    ],
)
def test_columns_around_the_names_of_classes(names):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(SCORES[:, [2, 0, 1]], columns=names)
    assert mauc_score(np.array(list("abc"))[CODES], frame) == EXPECTED


@pytest.mark.parametrize(
    "names",
    [["a_prob", "b_prob", "x_prob"], ["a", "b", "x"], ["A", "B", "x"], ["p_a", "p_b", "c"], ["p_a", "p_x", "p_y"]],
)
def test_columns_of_which_only_some_are_classes_are_refused(names):
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="y_score must have all columns named after the classes, or none"):
        mauc_score(np.array(list("abc"))[CODES], pd.DataFrame(SCORES, columns=names))


@pytest.mark.parametrize(
    "names", [["x", "y", "z"], ["alpha", "beta", "gamma"], [0, 1, 2], ["column_0", "column_1", "column_2"]]
)
def test_columns_with_other_names_are_matched_by_position(names):
    pd = pytest.importorskip("pandas")
    assert mauc_score(np.array(list("abc"))[CODES], pd.DataFrame(SCORES, columns=names)) == EXPECTED
    assert mauc_score(CODES + 1, pd.DataFrame(SCORES, columns=range(3))) == EXPECTED


def test_a_single_column_scores_the_class_that_it_is_named_after():
    pd = pytest.importorskip("pandas")
    y, column = (CODES > 0).astype(int), SCORES[:, 1] + SCORES[:, 2]
    expected = mauc_score(y, column)
    assert expected > 0.6
    assert mauc_score(y, pd.Series(column)) == expected
    assert mauc_score(y, pd.Series(column, name=1)) == expected
    assert mauc_score(y, pd.Series(column, name="other")) == expected
    assert mauc_score(y, pd.Series(-column, name=0)) == expected
    assert mauc_score(y, pd.DataFrame({"0": -column})) == expected
    assert mauc_score(y + 1, pd.Series(column, name=0)) == expected
    for unclear in (pd.DataFrame(column), pd.Series(column, name="model_0"), pd.DataFrame({"p_0": column})):
        with pytest.raises(ValueError, match="y_score must say which class a single column scores"):
            mauc_score(y, unclear)


def test_rows_and_columns_of_a_frame_of_pair_weights_have_names():
    pd = pytest.importorskip("pandas")
    weights, order = np.arange(9.0).reshape(3, 3), [2, 0, 1]
    y, names = np.array(list("abc"))[CODES], np.array(list("abc"))[order]
    moved = pd.DataFrame(weights[order][:, order], index=names, columns=names)
    expected = mauc_score(y, SCORES, pairs=weights)
    assert expected != mauc_score(y, SCORES, pairs=moved.to_numpy())
    assert mauc_score(y, SCORES, pairs=moved) == expected
    assert mauc_interval(y, SCORES, pairs=moved).score == expected
    assert mauc_score(y, SCORES, pairs=moved.loc[:, list("abc")]) == expected
    assert mauc_score(y, SCORES, pairs=pd.DataFrame(weights)) == expected
    with pytest.raises(
        ValueError, match="pairs must have rows and columns of the same names, got names of one of them: name"
    ):
        mauc_score(y, SCORES, pairs=moved.reset_index(drop=True))
    with pytest.raises(ValueError, match="pairs must have all columns named after the classes, or none"):
        mauc_score(y, SCORES, pairs=moved.rename(columns={"a": "x"}))


def test_training_classes_of_another_type():
    names = np.array(["1", "2", "3"])
    found = judge(names[CODES], SCORES, y_train=np.repeat([1.0, 2.0, 3.0], [5, 9, 2]))
    assert found.training_counts == {"1": 5, "2": 9, "3": 2}
    assert found.guess.label == "2"


def test_a_label_of_dates_keeps_the_matrix():
    np.testing.assert_array_equal(pairwise_auc(DAYS[CODES], SCORES, labels=DAYS), pairwise_auc(CODES, SCORES))


def test_pairs_of_importance_are_named_in_any_type():
    model, X = (lambda X: X), SCORES
    found = mauc_importance(model, X, DAYS[CODES], between=[("2020-01-01", python_days(DAYS)[1])], n_repeats=1)
    assert {one.pair for one in found} == {None, ("2020-01-01", "2021-02-03")}
    with pytest.raises(ValueError, match="between must hold pairs of two different classes that have rows"):
        mauc_importance(model, X, DAYS[CODES], between=[("2020-01-01", DAYS[0])])


def test_class_shares_and_costs_of_pandas_have_names():
    pd = pytest.importorskip("pandas")
    y, names = np.array(list("abc"))[CODES], list("cab")
    shares = pd.Series([0.2, 0.7, 0.1], index=names)
    found, expected = (
        mauc_sample_size(y, SCORES, width=0.2, class_shares=each, n_draws=10) for each in (shares, [0.7, 0.1, 0.2])
    )
    assert found == expected
    costs = np.array([[0.0, 1.0, 2.0], [9.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    frame = pd.DataFrame(costs, index=list("abc"), columns=list("abc")).loc[names, names]
    model, named = (MAUCDecision(GaussianNB(), costs=each).fit(SCORES, y) for each in (costs, frame))
    np.testing.assert_array_equal(named.costs_, model.costs_)
    np.testing.assert_array_equal(named.predict(SCORES), model.predict(SCORES))
    assert named.best_score_ == model.best_score_


def test_class_counts_of_value_counts_are_in_the_order_of_the_classes():
    pd = pytest.importorskip("pandas")
    torch = pytest.importorskip("torch", reason="needs the extra mauc[torch]")
    from mauc.nn.functional import mauc_loss

    target, logits = torch.tensor([2, 2, 2, 0, 0, 1]), torch.arange(18.0).reshape(6, 3).sin()
    counts = pd.Series(target.numpy()).value_counts()
    assert counts.tolist() == [3, 2, 1]
    found, expected = (mauc_loss(logits, target, class_counts=each) for each in (counts, torch.bincount(target)))
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
