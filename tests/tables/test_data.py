"""Splits into training rows and test rows, and the order of the classes."""

from pathlib import Path

import numpy as np
import pytest

from mauc._tables.data import by_group, by_time, parse_groups, parse_times, prepare, stratified
from mauc._tables.errors import Failure
from mauc._tables.options import Options
from mauc._tables.read import as_read
from mauc._tables.training import cv_folds

pd = pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

LABELS = np.repeat(["a", "b", "c", "d"], [60, 20, 3, 2])


@pytest.mark.parametrize("share", [0.05, 0.25, 0.9])
def test_stratified_keeps_rare_classes_in_both_parts(share):
    train, test = stratified(LABELS, share, seed=0)
    assert sorted([*train, *test]) == list(range(len(LABELS)))
    assert set(LABELS[train]) == set(LABELS[test]) == set(LABELS)
    assert abs(np.sum(LABELS[test] == "a") - share * 60) <= 1
    again = stratified(LABELS, share, seed=0)
    np.testing.assert_array_equal(test, again[1])


def test_a_single_row_is_trained_on():
    train, test = stratified(np.array(["a", "a", "b"]), 0.5, seed=0)
    assert 2 in train
    assert 2 not in test


def test_the_latest_rows_are_held_out_and_ties_stay_together():
    times = np.array([5, 1, 2, 3, 4, 4, 4, 4.0])
    labels = np.array(list("abababab"))
    train, test = by_time(labels, times, 0.25)
    assert times[train].max() < times[test].min()
    assert sorted(test) == [0, 4, 5, 6, 7]


def test_times_that_cannot_be_split():
    with pytest.raises(Failure, match="cannot be split into earlier and later"):
        by_time(np.array(["a", "b"]), np.zeros(2), 0.5)
    with pytest.raises(Failure, match="fewer than two classes to train or test on"):
        by_time(np.array(["a", "a", "b", "b"]), np.arange(4.0), 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_groups_stay_whole_and_classes_in_both_parts(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 12, len(LABELS))
    groups[-2:] = [0, 1]
    train, test = by_group(LABELS, groups, 0.25, seed)
    assert not set(groups[train]) & set(groups[test])
    assert set(LABELS[train]) == set(LABELS)
    assert {"a", "b"} <= set(LABELS[test])
    assert 0.1 < len(test) / len(LABELS) < 0.5


@pytest.mark.parametrize(
    ("groups", "expected"),
    [(["p1", "p1 ", "p2"], ["p1", "p1", "p2"]), (pd.Series([1, 1.0, 2.5], dtype=object), ["1", "1", "2.5"])],
)
def test_groups_that_differ_only_in_how_they_are_written(groups, expected):
    assert parse_groups(pd.Series(groups), "g", Path("t"), "--group").tolist() == expected


@pytest.mark.parametrize("kind", ["int64", "Int64", "uint64"])
def test_times_are_told_apart_to_the_last_digit(kind):
    times = pd.Series([2**60, 2**60 + 1], dtype=kind)
    assert np.diff(parse_times(times, "at", Path("t"), None)).tolist() == [1]
    nanoseconds = as_read(pd.DataFrame({"at": pd.to_datetime(times.astype("int64"), unit="ns")}))["at"]
    assert np.diff(parse_times(nanoseconds, "at", Path("t"), None)).tolist() == [1]


def test_many_groups_are_split_in_linear_time():
    """The time once grew with the square of the groups: these took a minute."""
    groups = np.arange(40_000) // 2
    train, test = by_group(np.array(["a", "b"])[groups % 2], groups, 0.25, 0)
    assert len(test) == 10_000
    assert set(groups[train]).isdisjoint(groups[test])


def test_one_group_cannot_be_split():
    with pytest.raises(Failure, match="two classes must be in two groups or more"):
        by_group(LABELS, np.zeros(len(LABELS)), 0.25, 0)


def test_folds_of_whole_groups():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 12, len(LABELS))
    folds = cv_folds(LABELS, groups, 4, seed=0)
    assert 1 <= len(folds) <= 4
    for train, test in folds:
        assert set(groups[train]).isdisjoint(groups[test])
        assert set(LABELS[test]) <= set(LABELS[train])
    of_one_class = cv_folds(np.repeat(list("aaabbb"), 9), np.repeat(np.arange(6), 9), 6, seed=0)
    assert sorted(row for _, test in of_one_class for row in test) == list(range(54)), "a group may have one class"
    for labels, groups in ((LABELS, np.zeros(len(LABELS))), (np.array(list("aab")), np.arange(3))):
        with pytest.raises(Failure, match="--cv needs two classes that are in two groups or more"):
            cv_folds(labels, groups, 4, seed=0)


@pytest.mark.parametrize(
    ("target", "order"),
    [
        ([10, 2, 1], ("1", "2", "10")),
        (["10", "b", "a"], None),
        (pd.Categorical(["mid", "low", "high"], ["low", "mid", "high"], ordered=True), ("low", "mid", "high")),
        (pd.Categorical([1.0, 3.0, 2.0], ordered=True), ("1", "2", "3")),
        (pd.cut(pd.Series([1, 9, 4]), [0, 2, 5, 10]), ("(0, 2]", "(2, 5]", "(5, 10]")),
        (pd.Categorical(pd.to_datetime(["2024-01-02", "2024-01-01"]), ordered=True), ("2024-01-01", "2024-01-02")),
        (range(31), None),
    ],
)
def test_the_order_of_the_classes(target, order):
    table = pd.DataFrame({"x": np.arange(2 * len(target)), "y": pd.concat([pd.Series(target)] * 2, ignore_index=True)})
    assert prepare(as_read(table), Options(target="y"), Path("t.csv")).order == order
