"""A plan depends on the size of the table and the effort alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mauc.ensemble import TableColumns, default_estimators
from mauc.ensemble.planner import EFFORTS, FORESTS, TREES, Size, plan_members, starter
from mauc.ensemble.tree_columns import TreeColumns

SIZES = [
    Size(150, 4, 3),
    Size(450, 280, 13),
    Size(200, 5_000, 4),
    Size(5_800, 120, 3),
    Size(6_100, 1_500, 2),
    Size(40_000, 25, 5),
    Size(100_000, 60, 10),
    Size(500_000, 41, 23),
    Size(40_000, 9, 4_137),
]


def described(plan):
    return plan.n_folds, [(each.name, each.rows, repr(each.model)) for each in plan.members]


def last_step(member):
    return member.model.steps[-1][1] if isinstance(member.model, Pipeline) else member.model


@pytest.mark.parametrize("size", SIZES)
def test_a_plan_is_the_same_every_time_and_has_two_kinds_of_models(size):
    for effort in EFFORTS:
        plan = plan_members(size, effort)
        assert described(plan) == described(plan_members(size, effort))
        names = [each.name for each in plan.members]
        assert names[0] in ("et", "rf"), "a forest first: a good model is ready soon"
        assert "lr" in names[:3]
        assert "lr" in plan.early
        assert TREES.intersection(plan.early).intersection(names), "of two kinds, whatever a deadline cuts"
        assert len(set(names)) == len(names)
        assert all(0 < each.rows <= size.rows for each in plan.members)
        for each in plan.members:
            clone(each.model)


@pytest.mark.parametrize(
    "size", [Size(5_800, 120, 3), Size(40_000, 25, 5), Size(20_000, 16, 26), Size(6_100, 1_500, 2)]
)
def test_a_forest_and_boosting_on_all_rows_come_first_where_rows_are_many(size):
    first = plan_members(size).members[:2]
    assert [each.name for each in first] == ["rf", "hgb"]
    assert [each.rows for each in first] == [size.rows] * 2


def test_a_small_table_gets_the_default_models_as_they_are():
    plan = plan_members(Size(150, 4, 3))
    assert plan.n_folds == 5
    expected = {name: repr(model) for name, model in default_estimators()}
    assert {each.name: repr(each.model) for each in plan.members} == expected


def test_more_rows_mean_fewer_folds_and_fewer_rows_of_slow_models_and_effort_buys_them_back():
    folds = [plan_members(Size(rows, 20, 5)).n_folds for rows in (500, 8_000, 100_000)]
    assert folds == [5, 3, 1]
    rows = {each.name: each.rows for each in plan_members(Size(100_000, 20, 5)).members}
    assert rows["rf"] == rows["hgb"] == 100_000
    assert rows["kernel"] < 100_000
    best = {each.name: each.rows for each in plan_members(Size(100_000, 20, 5), "best").members}
    assert all(best[name] >= n for name, n in rows.items())


@pytest.mark.parametrize("size", SIZES)
def test_forests_fit_into_a_model_file(size):
    for each in [*plan_members(size).members, starter(0, size.classes)]:
        if each.name in (*FORESTS, "starter"):
            forest = last_step(each)
            leaves = min(forest.max_leaf_nodes or 10**9, each.rows / forest.min_samples_leaf)
            assert forest.n_estimators * 2 * leaves * (64 + 8 * size.classes) < 2.5e8


def test_models_of_an_order_join():
    names = [each.name for each in plan_members(Size(150, 4, 3), order=[2, 0, 1]).members]
    assert names[:4] == ["et", "lr", "odds", "odds_kernel"]


def test_of_many_columns_boosting_gets_the_most_important():
    columns = {each.name: each.model for each in plan_members(Size(6_100, 1_500, 2)).members}["hgb"].steps[0][1]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1_500)), rng.integers(2, size=300)
    X[:, 700] += 3 * y
    found = columns.fit_transform(X, y)
    assert found.shape == (300, columns.most)
    assert 700 in columns.kept_


def test_trees_get_one_column_for_each_column_of_words():
    town, rng = np.array(["Ulm", "Kiel", "Bonn"]), np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.normal(size=90), "town": town[rng.integers(3, size=90)], "size": rng.normal(size=90)}
    )
    columns = TableColumns()
    X = columns.fit_transform(table)
    narrow = columns.tree_columns()
    assert (X.shape[1], narrow.width) == (5, 3)
    narrow.fit(X, np.zeros(90))
    assert np.array_equal(np.sort(town)[narrow.transform(X)[:, 2].astype(int)], table["town"])
    unknown = columns.transform(table.assign(town="Trier"))
    assert np.isnan(narrow.transform(unknown)[:, 2]).all()
    members = plan_members(Size(10_000, 5, 3), tree_columns=narrow).members
    behind = {
        each.name for each in members if isinstance(each.model, Pipeline) and isinstance(each.model[0], TreeColumns)
    }
    assert {"rf", "hgb", "et"} <= behind <= {*FORESTS, "hgb", "hgb_deep"}


def test_few_rows_keep_a_column_for_each_word():
    members = plan_members(Size(500, 5, 3), tree_columns=TreeColumns([0, 1], [(2, 5)])).members
    assert not any(isinstance(each.model, Pipeline) and isinstance(each.model[0], TreeColumns) for each in members)
