"""Rows that depend on each other: the group takes the place of the row."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from group_study import Design, simulate, write
from sklearn.exceptions import UndefinedMetricWarning

from mauc import compare_mauc, mauc_interval, mauc_score, multiclass_auc_report
from mauc.metrics import mauc_importance
from mauc.report import Report, judge


def grouped(n_groups=60, rows=5, correlation=0.8, *, one_class=True, seed=0):
    """Classes, scores and groups; the rows of a group have a part of their noise in common."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), rows)
    y = (group if one_class else rng.permutation(len(group))) % 3
    noise = np.sqrt(correlation) * rng.normal(size=(n_groups, 3))[group]
    noise += np.sqrt(1 - correlation) * rng.normal(size=(len(group), 3))
    return y, noise + 1.2 * np.eye(3)[y], group


def assert_results(a, b, **tolerance):
    np.testing.assert_allclose(dataclasses.astuple(a), dataclasses.astuple(b), **(tolerance or {"rtol": 1e-9}))


@pytest.mark.parametrize("pairs", ["ovo", "ova"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_group_for_each_row_changes_nothing(pairs, weighted):
    y, scores, group = grouped(rows=1)
    options = {"pairs": pairs, "sample_weight": np.random.default_rng(1).random(len(y)) if weighted else None}
    assert_results(mauc_interval(y, scores, groups=group, **options), mauc_interval(y, scores, **options))
    other = scores + np.random.default_rng(2).normal(size=scores.shape)
    assert_results(compare_mauc(y, scores, other, groups=group, **options), compare_mauc(y, scores, other, **options))


@pytest.mark.parametrize("one_class", [True, False])
def test_rows_written_several_times_tell_nothing_new(one_class):
    y, scores, _ = grouped(rows=1)
    group = np.arange(len(y)) if one_class else np.arange(len(y)) // 2
    other = scores + np.random.default_rng(2).normal(size=scores.shape)
    many = np.repeat(np.arange(len(y)), 4)
    again = mauc_interval(y[many], scores[many], groups=group[many])
    assert_results(again, mauc_interval(y, scores, groups=group))
    assert_results(
        compare_mauc(y[many], scores[many], other[many], groups=group[many]),
        compare_mauc(y, scores, other, groups=group),
    )


@pytest.mark.parametrize("one_class", [True, False])
def test_stderr_against_the_bootstrap_of_groups(one_class):
    y, scores, group = grouped(150, 6, one_class=one_class)
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(group == g) for g in range(150)]
    draws = []
    for _ in range(400):
        some = np.concatenate([rows[g] for g in rng.integers(150, size=150)])
        draws.append(mauc_score(y[some], scores[some]))
    assert mauc_interval(y, scores, groups=group).stderr == pytest.approx(np.std(draws), rel=0.15)


@pytest.mark.parametrize("kind", ["one", "mixed", "rare"])
def test_intervals_cover_and_tests_keep_their_size(kind):
    line = simulate(Design(kind, 30, 5, 0.8, 0.86), draws=150)
    assert line.coverage[0] >= 0.9
    assert line.size[0] <= 0.11
    assert line.coverage_of_difference >= 0.88
    if kind == "one":
        assert line.coverage[1] < 0.8, "rows taken as independent"


def test_names_of_groups_do_not_matter():
    y, scores, group = grouped(20)
    expected = mauc_interval(y, scores, groups=group)
    order = np.random.default_rng(0).permutation(len(y))
    named = pd.Series([f"patient {g}" for g in 100 - group])
    for groups in (named, named.astype("category"), named.to_list()):
        assert_results(mauc_interval(y, scores, groups=groups), expected)
    assert_results(mauc_interval(y[order], scores[order], groups=group[order]), expected)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"^groups must have the shape \(100,\), got \(2,\): pass the group of each row"),
        ([None, *range(99)], r"^groups must hold a value for every row, got None in row 0: pass"),
        (np.r_[np.nan, np.arange(99)], r"got (np.float64\()?nan\)? in row 0"),
        (pd.array([1] * 99 + [pd.NA]), r"in row 99"),
    ],
    ids=["length", "None", "NaN", "NA"],
)
def test_errors(groups, message):
    y, scores, _ = grouped(20)
    with pytest.raises(ValueError, match=message):
        mauc_interval(y, scores, groups=groups)


def test_a_class_in_one_group_is_warned_of():
    y, scores, group = grouped(20)
    group = np.where(y == 2, 99, group)
    with pytest.warns(UndefinedMetricWarning, match="class 2 has a single group"):
        found = mauc_interval(y, scores, groups=group)
    assert found.high - found.low > 2 * (lambda r: r.high - r.low)(mauc_interval(y, scores))


def test_reports_have_the_intervals_of_groups():
    y, scores, group = grouped()
    other = scores + np.random.default_rng(2).normal(size=scores.shape)
    expected = mauc_interval(y, scores, groups=group)
    table = multiclass_auc_report(y, scores, groups=group, output_dict=True)
    assert (table["MAUC"]["low"], table["MAUC"]["high"]) == pytest.approx((expected.low, expected.high))
    ones = np.zeros((3, 3))
    ones[1] = 1.0
    assert table["1"]["low"] == pytest.approx(mauc_interval(y, scores, pairs=ones, groups=group).low)
    found, without = judge(y, {"a": scores, "b": other}, groups=group), judge(y, {"a": scores, "b": other})
    assert_results(found.headline.mauc, expected)
    assert found.tests[0].pvalue == pytest.approx(compare_mauc(y, other, scores, groups=group).pvalue)
    assert found.notes[0].startswith("The 300 test rows are in 60 groups")
    for ours, theirs in zip(
        (*found.rarest, *found.further.classes), (*without.rarest, *without.further.classes), strict=True
    ):
        for name in ("interval", "auc", "recall", "precision"):
            if hasattr(ours, name):
                wide, narrow = getattr(ours, name), getattr(theirs, name)
                assert wide.high - wide.low > narrow.high - narrow.low, name
    decided, before = found.further.decisions[0], without.further.decisions[0]
    assert decided.accuracy.score == pytest.approx(before.accuracy.score)
    assert decided.accuracy.low < before.accuracy.low
    assert decided.balanced_accuracy.low < before.balanced_accuracy.low
    pytest.importorskip("jinja2")
    assert "are in 60 groups" in Report(y, scores, groups=group).html


def test_importance_knows_groups():
    y, scores, group = grouped()
    X = pd.DataFrame(scores, columns=list("abc"))
    alone, together = (mauc_importance(np.asarray, X, y, groups=groups) for groups in (None, group))
    assert [one.column for one in alone] == [one.column for one in together]
    assert sum(one.stderr for one in together) > 1.2 * sum(one.stderr for one in alone)


def test_the_page_keeps_what_is_around_the_tables(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- written by tests/group_study.py -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    lines = [simulate(Design("one", groups, 2, 0.5, 0.86), draws=3) for groups in (10, 30)]
    write({"one": lines}, 3, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!--")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert "| 30 | 2 | 0.5 | 0.86 |" in text
