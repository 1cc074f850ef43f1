"""Each level of a column against the other levels."""

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from mauc import mauc_interval, multiclass_auc_report
from mauc.metrics.subgroups import subgroup_scores
from mauc.metrics.uncertainty import holm
from mauc.partition import ClassPartition
from mauc.report import Report, judge

NAMES = np.array(["elm", "oak", "yew"])


def simulated(n=300, *, weaker=1.0, seed=0):
    """Classes, scores that find them less well for "m" if ``weaker`` is below 1, and two levels."""
    rng = np.random.default_rng(seed)
    y, sex = NAMES[np.arange(n) % 3], rng.choice(["f", "m"], n)
    lead = np.where(sex == "m", weaker, 1.0)[:, None]
    return y, rng.normal(size=(n, 3)) + 1.5 * lead * (y[:, None] == NAMES), sex


def test_each_level_has_its_score_and_its_difference_to_the_other():
    y, scores, sex = simulated(weaker=0.3)
    found = multiclass_auc_report(y, scores, subgroups=sex, output_dict=True)["subgroups"]
    for name in ("f", "m"):
        own, other = sex == name, sex != name
        expected = mauc_interval(y[own], scores[own])
        assert (found[name]["auc"], found[name]["low"], found[name]["high"]) == pytest.approx(
            (expected.score, expected.low, expected.high)
        )
        assert found[name]["difference"] == pytest.approx(expected.score - mauc_interval(y[other], scores[other]).score)
        assert found[name]["support"] == own.sum()
    assert found["m"]["difference"] < 0 < found["f"]["difference"]
    assert found["m"]["difference_high"] < 0
    assert found["m"]["pvalue"] < 0.01
    assert found["m"]["holm"] == found["m"]["pvalue"], "two levels are one comparison"
    centre = np.arange(300) // 100
    three = multiclass_auc_report(y, scores, subgroups=centre, output_dict=True)["subgroups"].values()
    own = [mauc_interval(y[centre == k], scores[centre == k]).score for k in range(3)]
    for k, one in enumerate(three):
        assert one["difference"] == pytest.approx(own[k] - np.mean(np.delete(own, k)))
    assert [one["holm"] for one in three] == pytest.approx(list(holm(np.array([one["pvalue"] for one in three]))))
    assert found["m"]["difference_low"] == pytest.approx(-found["f"]["difference_high"])


def test_the_pvalue_is_where_the_interval_touches_zero():
    y, scores, sex = simulated(weaker=0.7)
    partition, codes = ClassPartition(np.searchsorted(NAMES, y), 3), NAMES
    one = subgroup_scores(partition, scores, codes, sex)[0][0].difference
    near = subgroup_scores(partition, scores, codes, sex, level=1 - one.pvalue)[0][0].difference
    assert min(abs(near.low), abs(near.high)) < 1e-6


@pytest.mark.slow
def test_the_size_of_the_test():
    pvalues = []
    for seed in range(120):
        y, scores, sex = simulated(120, seed=seed)
        pvalues.append(multiclass_auc_report(y, scores, subgroups=sex, output_dict=True)["subgroups"]["f"]["pvalue"])
    assert np.mean(np.array(pvalues) < 0.05) <= 0.1
    assert np.mean(np.array(pvalues) < 0.5) > 0.3


def test_text():
    y, scores, sex = simulated(weaker=0.3)
    text = multiclass_auc_report(y, scores, subgroups=sex)
    table = text.split("\n\n", 3)[3].splitlines()
    assert " ".join(table[0].split()) == "MAUC 95 % interval support minus the others 95 % interval p"
    assert [line.split()[0] for line in table[2:]] == ["f", "m"]
    assert len({len(line) for line in table if line}) == 1


def test_a_class_that_a_level_lacks_is_warned_of_and_left_out_of_the_difference():
    y, scores, sex = simulated()
    sex = np.where(y == "yew", "f", sex)
    with pytest.warns(UndefinedMetricWarning, match="level m has no row of class yew: its score and its difference"):
        found = multiclass_auc_report(y, scores, subgroups=sex, output_dict=True)["subgroups"]
    assert found["m"]["absent"] == ["yew"]
    common = y != "yew"
    parts = [mauc_interval(y[common & (sex == s)], scores[common & (sex == s)][:, :2]).score for s in ("m", "f")]
    assert found["m"]["difference"] == pytest.approx(parts[0] - parts[1])
    assert "Level m has no row of class yew" in " ".join(judge(y, scores, subgroups=sex).notes)


def test_a_level_of_one_class_has_no_score():
    y, scores, _ = simulated()
    with pytest.warns(UndefinedMetricWarning, match="has no row of class"):
        found = multiclass_auc_report(y, scores, subgroups=y, output_dict=True)["subgroups"]
    with pytest.warns(UndefinedMetricWarning, match="has no row of class"):
        text = multiclass_auc_report(y, scores, subgroups=y)
    assert np.isnan(found["oak"]["auc"])
    assert np.isnan(found["oak"]["holm"])
    assert "–" in text


def test_groups():
    y, scores, sex = simulated()
    patient = np.array([f"{s}{k // 6}" for k, s in enumerate(sex)])
    alone, together = (
        multiclass_auc_report(y, scores, subgroups=sex, groups=g, output_dict=True)["subgroups"]["f"]
        for g in (None, patient)
    )
    assert together["difference_high"] - together["difference_low"] > 0.9 * (
        alone["difference_high"] - alone["difference_low"]
    )


def test_levels_whose_scores_are_shifted_do_not_differ():
    """Pairs of rows of different centres are ranked by the shift; no level has such pairs."""
    rng = np.random.default_rng(0)
    y, centre = np.arange(900) % 3, np.repeat(["a", "b", "c"], 300)
    within = rng.normal(size=(300, 3)) + 1.5 * np.eye(3)[y[:300]]
    scores = np.concatenate([within + shift * np.array([1.0, -1.0, 0.5]) for shift in (0.0, 2.0, -2.0)])
    found = multiclass_auc_report(y, scores, subgroups=centre, output_dict=True)
    for one in found["subgroups"].values():
        assert one["difference"] == pytest.approx(0, abs=1e-12)
        assert one["pvalue"] > 0.99
    assert found["subgroups_pvalue"] > 0.99
    assert "Any difference between the levels: p = 1" in multiclass_auc_report(y, scores, subgroups=centre)


def test_any_difference_is_found_without_a_level_that_stands_out():
    rng = np.random.default_rng(0)
    y, centre = np.arange(1200) % 3, np.repeat(np.arange(4), 300)
    lead = np.array([0.5, 1.0, 1.5, 2.0])[centre]
    scores = rng.normal(size=(1200, 3)) + lead[:, None] * np.eye(3)[y]
    found = multiclass_auc_report(y, scores, subgroups=centre, output_dict=True)
    assert found["subgroups_pvalue"] < 1e-6
    two = multiclass_auc_report(y, scores, subgroups=centre > 1, output_dict=True)
    assert two["subgroups_pvalue"] == two["subgroups"]["True"]["pvalue"]


def test_groups_in_several_levels_are_paired():
    """Each patient is scored in both centres, by nearly the same scores: the two scores rise and fall together."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    once = rng.normal(size=(150, 3)) + 1.2 * np.eye(3)[y]
    scores = np.concatenate([once, once + 0.1 * rng.normal(size=once.shape)])
    centre, patient = np.repeat(["a", "b"], 150), np.tile(np.arange(150), 2)
    alone, paired = (
        multiclass_auc_report(np.tile(y, 2), scores, subgroups=centre, groups=g, output_dict=True)["subgroups"]["a"]
        for g in (None, patient)
    )
    width = [one["difference_high"] - one["difference_low"] for one in (paired, alone)]
    assert width[0] < 0.5 * width[1]


def test_reports():
    y, scores, sex = simulated()
    found = judge(y, scores, subgroups=sex)
    assert [one.level for one in found.subgroups] == ["f", "m"]
    pytest.importorskip("jinja2")
    report = Report(y, scores, subgroups=sex)
    assert 'id="h-subgroups"' in report.html
    assert 'id="h-subgroups"' not in Report(y, scores).html
    assert '"subgroups": [{"level": "f"' in report.to_json()


@pytest.mark.parametrize(
    ("subgroups", "message"),
    [
        (["f"], r"^subgroups must have the shape \(300,\), got \(1,\): pass the level of each row"),
        (["f"] * 300, r"^subgroups must have two levels or more, got only f: levels are compared"),
        ([None] * 300, r"^subgroups must hold a value for every row, got None in row 0"),
    ],
)
def test_errors(subgroups, message):
    y, scores, _ = simulated()
    with pytest.raises(ValueError, match=message):
        multiclass_auc_report(y, scores, subgroups=subgroups)
