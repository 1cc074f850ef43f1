"""What is trained follows from the size of a table and the effort alone."""

import pytest
from sklearn.base import clone

from mauc.ensemble import default_estimators
from mauc.ensemble.planner import EFFORTS, FORESTS, Size, plan_members, starter

SIZES = [
    Size(150, 4, 3),
    Size(450, 280, 13),
    Size(200, 5_000, 4),
    Size(5_800, 120, 3),
    Size(40_000, 25, 5),
    Size(100_000, 60, 10),
    Size(500_000, 41, 23),
    Size(40_000, 9, 4_137),
]


def described(plan):
    return plan.n_folds, [(each.name, each.rows, repr(each.model)) for each in plan.members]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("effort", list(EFFORTS))
def test_a_plan_is_the_same_every_time_and_has_two_kinds_of_models(size, effort):
    plan = plan_members(size, effort)
    assert described(plan) == described(plan_members(size, effort))
    names = [each.name for each in plan.members]
    assert {"lr"} < set(names[:2]) <= {"hgb", "et", "lr", "rf"}, "trees and a linear model first"
    assert len(set(names)) == len(names)
    assert all(0 < each.rows <= size.rows for each in plan.members)
    for each in plan.members:
        clone(each.model)


def test_a_small_table_gets_the_default_models_as_they_are():
    plan = plan_members(Size(150, 4, 3))
    assert plan.n_folds == 5
    expected = {name: repr(model) for name, model in default_estimators()}
    found = {
        each.name: repr(each.model.set_params(**({"max_features": 1.0} if each.name == "hgb" else {})))
        for each in plan.members
    }
    assert found == expected


def test_more_rows_mean_fewer_folds_and_fewer_rows_of_slow_models_and_effort_buys_them_back():
    folds = [plan_members(Size(rows, 20, 5)).n_folds for rows in (500, 8_000, 20_000, 100_000)]
    assert folds == [5, 5, 3, 1]
    rows = {each.name: each.rows for each in plan_members(Size(100_000, 20, 5)).members}
    assert rows["lr"] == rows["hgb"] == 100_000
    assert rows["mlp"] < 100_000
    best = {each.name: each.rows for each in plan_members(Size(100_000, 20, 5), "best").members}
    assert all(best[name] >= n for name, n in rows.items())


@pytest.mark.parametrize("size", SIZES)
def test_forests_fit_into_a_model_file(size):
    for each in [*plan_members(size).members, starter(0, size.classes)]:
        if each.name in (*FORESTS, "starter"):
            leaves = min(each.model.max_leaf_nodes or 10**9, each.rows / each.model.min_samples_leaf)
            assert each.model.n_estimators * 2 * leaves * (64 + 8 * size.classes) < 1e8


def test_models_of_an_order_join():
    names = [each.name for each in plan_members(Size(150, 4, 3), order=[2, 0, 1]).members]
    assert names[:4] == ["et", "lr", "odds", "odds_kernel"]
