"""The text report: each row against the metric and interval of its pairs, and what the text says."""

import re

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from mauc import mauc_interval, mauc_score, multiclass_auc_report, pairwise_auc

NAMES = np.array(["ash", "elm", "oak", "yew"])


def simulated(counts=(5, 60, 30, 2), seed=0, n_levels=None):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(NAMES, counts))
    scores = rng.normal(size=(len(y), 4)) + (y[:, None] == NAMES)
    return y, scores if n_levels is None else np.round(scores * n_levels) / n_levels, rng.random(len(y)) + 0.1


@pytest.mark.parametrize("n_levels", [None, 1], ids=["no ties", "ties"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_the_intervals_of_their_pairs(weighted, n_levels):
    y, scores, weight = simulated(n_levels=n_levels)
    weight = weight if weighted else None
    report = multiclass_auc_report(y, scores, sample_weight=weight, level=0.9, output_dict=True)
    assert list(report) == [*NAMES, "MAUC", "one-vs-rest"]
    matrix = pairwise_auc(y, scores, sample_weight=weight)
    for i, name in enumerate(NAMES):
        row = np.zeros((4, 4))
        row[i] = 1.0
        expected = mauc_interval(y, scores, pairs=row, sample_weight=weight, level=0.9)
        found = report[name]
        assert (found["auc"], found["low"], found["high"]) == pytest.approx(
            (expected.score, expected.low, expected.high), abs=1e-12
        )
        assert found["support"] == pytest.approx((y == name).sum() if weight is None else weight[y == name].sum())
        assert found["hardest"] == NAMES[np.nanargmin(matrix[i])]
        assert found["hardest_auc"] == np.nanmin(matrix[i])
    for name, pairs in (("MAUC", "ovo"), ("one-vs-rest", "ova")):
        expected = mauc_interval(y, scores, pairs=pairs, sample_weight=weight, level=0.9)
        assert (report[name]["auc"], report[name]["low"]) == pytest.approx((expected.score, expected.low), abs=1e-12)
    assert np.mean([report[name]["auc"] for name in NAMES]) == pytest.approx(
        mauc_score(y, scores, sample_weight=weight)
    )


def test_the_text_says_what_the_dict_says():
    y, scores, _ = simulated()
    report = multiclass_auc_report(y, scores, output_dict=True)
    head, blank, *lines = multiclass_auc_report(y, scores, digits=4).split("\n")
    assert head.split() == ["AUC", "95", "%", "interval", "support", "hardest", "against"]
    assert [line.split()[0] for line in lines if line] == [*NAMES, "MAUC", "one-vs-rest"]
    assert blank == lines[4] == ""
    oak = report["oak"]
    expected = f"{oak['auc']:.4f}  [{oak['low']:.4f}, {oak['high']:.4f}]       30   {oak['hardest']}"
    assert lines[2].startswith(f"        oak  {expected} ({oak['hardest_auc']:.4f})")
    assert {line.index("[") for line in lines if line} == {lines[0].index("[")}


def test_absent_classes_have_an_empty_row():
    y, scores, _ = simulated()
    kept = y != "oak"
    text = multiclass_auc_report(y[kept], scores[kept], labels=NAMES, absent="ignore")
    assert re.search(r"^ +oak +– +– +0$", text, re.MULTILINE)
    report = multiclass_auc_report(y[kept], scores[kept], labels=NAMES, absent="ignore", output_dict=True)
    assert report["oak"]["hardest"] is None
    assert np.isnan(report["oak"]["auc"])
    assert report["MAUC"]["auc"] == mauc_score(y[kept], scores[kept], labels=NAMES, absent="ignore")
    with pytest.warns(UndefinedMetricWarning, match="no pair of classes"):
        text = multiclass_auc_report(["elm"], [[1.0, 2.0]], labels=["elm", "oak"], absent="ignore")
    assert re.search(r"^ +MAUC +– +– +1$", text, re.MULTILINE)
    with pytest.raises(ValueError, match="y_true must hold every class of labels, got no sample of oak"):
        multiclass_auc_report(y[kept], scores[kept], labels=NAMES)


def test_a_class_of_one_sample_is_told_once():
    y, scores, _ = simulated((5, 60, 30, 1))
    with pytest.warns(UndefinedMetricWarning, match="class yew has a single sample") as told:
        report = multiclass_auc_report(y, scores, output_dict=True)
    assert len(told) == 1
    assert report["yew"]["low"] < report["yew"]["auc"] <= report["yew"]["high"]


def test_no_class_is_hardest_where_all_pairs_are_ranked_right():
    text = multiclass_auc_report([0, 0, 1, 1, 2, 2], np.eye(3)[[0, 0, 1, 1, 2, 2]], digits=2)
    assert re.search(r"^ +1  1\.00 +\[0\.\d\d, 1\.00\] +2$", text, re.MULTILINE)


def test_two_classes_by_one_column():
    y, score = [0, 0, 1, 1], [0.1, 0.4, 0.3, 0.9]
    report = multiclass_auc_report(y, score, target_names=["no", "yes"], output_dict=True)
    assert report["yes"]["auc"] == report["no"]["auc"] == report["MAUC"]["auc"] == 0.75


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_names": ["a"]}, "target_names must have the shape (4,), got 1 names: pass one name per class"),
        (
            {"target_names": ["a", "b", "b", "c"]},
            "names of classes must differ from each other and from MAUC, one-vs-rest, subgroups and "
            "subgroups_pvalue, got b: pass target_names=[…]",
        ),
        ({"target_names": ["a", "b", "MAUC", "c"]}, "got MAUC: pass target_names"),
        ({"target_names": ["a", "b", "subgroups", "c"]}, "got subgroups: pass target_names"),
        ({"digits": -1}, "digits must be a whole number of at least 0, got -1"),
        ({"level": 1.0}, "level must be a finite number strictly between 0 and 1, got 1.0"),
    ],
)
def test_messages(options, message):
    y, scores, _ = simulated()
    with pytest.raises(ValueError, match=re.escape(message)):
        multiclass_auc_report(y, scores, **options)
