"""Comparisons of several models, non-inferiority, and agreement with R's pROC."""

import dataclasses
import json
import shutil

import numpy as np
import proc_study
import pytest
from scipy import stats

from mauc import compare_mauc, mauc_score
from mauc.metrics.uncertainty import holm


def models(counts=(60, 40, 20), noises=(0.5, 1.0, 2.0, 0.6), seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    shared = rng.normal(size=(len(y), len(counts))) + 1.5 * np.eye(len(counts))[y]
    return y, {f"m{k}": shared + noise * rng.normal(size=shared.shape) for k, noise in enumerate(noises)}


def test_all_against_the_best():
    y, scores = models()
    best = max(scores, key=lambda name: mauc_score(y, scores[name]))
    found = compare_mauc(y, scores)
    assert {(one.a, one.b) for one in found} == {(name, best) for name in scores if name != best}
    assert [one.difference for one in found] == sorted(one.difference for one in found)
    every = [compare_mauc(y, scores[a], scores[b]).pvalue for a in scores for b in scores if a < b]
    for one in found:
        alone = compare_mauc(y, scores[one.a], scores[one.b])
        assert (one.difference, one.low, one.high, one.pvalue) == (*dataclasses.astuple(alone)[:3], alone.pvalue)
        place = int(np.argmin(np.abs(np.array(every) - one.pvalue)))
        assert one.holm == pytest.approx(holm(np.array(every))[place]), "for all pairs: the data chose the best"


def test_against_one_and_all_against_all():
    y, scores = models()
    some = compare_mauc(y, scores, against="m2")
    assert {one.b for one in some} == {"m2"}
    assert [one.holm for one in some] == pytest.approx(list(holm(np.array([one.pvalue for one in some]))))
    every = compare_mauc(y, scores, against="all", groups=np.arange(len(y)) // 2, pairs="ova")
    assert len(every) == 6
    one = every[0]
    expected = compare_mauc(y, scores[one.a], scores[one.b], groups=np.arange(len(y)) // 2, pairs="ova")
    assert one.pvalue == expected.pvalue


def test_equal_models_in_a_dict():
    y, scores = models()
    (found,) = compare_mauc(y, {"a": scores["m0"], "b": scores["m0"].copy()})
    assert (found.difference, found.pvalue, found.holm) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize("margin", [0.01, 0.03, 0.2])
def test_not_worse_by_a_margin(margin):
    """The one-sided test at half of 1 − level agrees with the interval."""
    y, scores = models()
    for a, b in (("m0", "m1"), ("m1", "m0"), ("m2", "m0")):
        found = compare_mauc(y, scores[a], scores[b], margin=margin)
        plain = compare_mauc(y, scores[a], scores[b])
        assert (found.low, found.high, found.difference) == (plain.low, plain.high, plain.difference)
        assert (found.pvalue < 0.025) == (found.low > -margin)
    assert compare_mauc(y, scores["m2"], scores["m0"], margin=0.0 + 1e-12).pvalue > 0.5
    same = compare_mauc(y, scores["m0"], scores["m0"], margin=margin)
    assert 0 < same.pvalue < 1e-300


def test_the_test_of_a_margin_keeps_its_size():
    """Model b is better by exactly the margin: the test at 2.5 % should seldom say otherwise."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    of_a, of_b = (stats.norm.cdf(1.5 / np.sqrt(2 * (1 + noise**2))) for noise in (1.2, 0.8))
    refused = 0
    for _ in range(300):
        shared = rng.normal(size=(120, 2)) + 1.5 * np.eye(2)[y]
        a, b = (shared + noise * rng.normal(size=shared.shape) for noise in (1.2, 0.8))
        refused += compare_mauc(y, a, b, margin=of_b - of_a).pvalue < 0.025
    assert refused <= 16


def test_the_margin_has_a_variance_near_one():
    """At a difference of -0.1 a model of .98 would be above 1 if both moved by the same amount."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    for _ in range(20):
        a, b = (rng.normal(size=(60, 3)) + 2.9 * np.eye(3)[y] for _ in range(2))
        found = compare_mauc(y, a, b, margin=0.1)
        assert 0 < found.pvalue < 1
        assert (found.pvalue < 0.025) == (found.low > -0.1)


def test_several_models_and_a_margin_need_a_reference():
    y, scores = models()
    for against in ("best", "all"):
        with pytest.raises(ValueError, match=r"^against must name a model beside margin, got '\w+': pass the name of"):
            compare_mauc(y, scores, margin=0.05, against=against)
    found = compare_mauc(y, scores, margin=0.05, against="m1")
    again = compare_mauc(y, dict(reversed(scores.items())), margin=0.05, against="m1")
    assert found == again
    assert {one.b for one in found} == {"m1"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (({"a": 1.0},), r"^score_a must hold two models or more, got 1: pass name -> scores"),
        ((np.eye(3),), r"^score_b must be the scores of a model, got None: pass the scores of the other"),
        (({"a": np.eye(3), "b": np.eye(3)}, np.eye(3)), r"^score_b must be None beside a dict of models, got ndarray"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        compare_mauc([0, 1, 2], *call)
    y, scores = models()
    with pytest.raises(ValueError, match=r"^against must be one of 'best', 'all', 'm0', .* got 'm9'"):
        compare_mauc(y, scores, against="m9")
    with pytest.raises(ValueError, match=r"^margin must be"):
        compare_mauc(y, scores, margin=-0.1)


@pytest.fixture(scope="module")
def figures():
    return json.loads(proc_study.FIGURES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", proc_study.SIZES)
def test_equal_to_the_figures_of_proc(figures, name):
    found = proc_study.ours(name)
    for key, expected in figures[name].items():
        assert found[key] == pytest.approx(expected, rel=1e-9, abs=1e-12), key


def test_what_we_report_comes_near_in_many_rows(figures):
    found = proc_study.ours("many rows")
    expected = figures["many rows"]
    assert found["our variance"] == pytest.approx(expected["variance"], rel=2e-3)
    assert found["our low"] == pytest.approx(expected["low"], abs=1e-3)
    assert found["our pvalue"] == pytest.approx(expected["pvalue"], rel=0.15)


def test_the_page_has_the_figures_of_proc(figures):
    assert proc_study.table(figures).split("differ by")[0] in proc_study.PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R with pROC")
def test_r_writes_these_figures(figures):
    again = proc_study.run_r()
    for name in proc_study.SIZES:
        assert again[name] == pytest.approx(figures[name], rel=1e-9)
