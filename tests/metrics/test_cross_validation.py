"""The corrected resampled t-test over cross-validation splits."""

import numpy as np
import pytest
from cv_study import DESIGNS, rejections
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning

from mauc import compare_cv_scores


def test_formula():
    """Without a test part the correction vanishes, and the test is the paired t-test."""
    rng = np.random.default_rng(0)
    a, b = rng.random(10), rng.random(10)
    plain = stats.ttest_rel(a, b)
    found = compare_cv_scores(a, b, test_size=1e-12)
    assert found.pvalue == pytest.approx(plain.pvalue)
    low, high = plain.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high))
    corrected = compare_cv_scores(a, b, test_size=0.1)
    assert corrected.stderr == pytest.approx(found.stderr * np.sqrt((1 / 10 + 1 / 9) * 10))
    swapped = compare_cv_scores(b, a, test_size=0.1)
    assert (swapped.difference, swapped.pvalue) == pytest.approx((-corrected.difference, corrected.pvalue))


def test_only_the_interval_of_scores_in_0_to_1_is_limited():
    a, b = np.array([-3.0, -5.0, -4.0]), np.array([-1.0, -1.5, -1.2])
    found = compare_cv_scores(a, b, test_size=0.3)
    assert found.low < found.difference < found.high
    assert found.difference - found.low == pytest.approx(found.high - found.difference)
    assert compare_cv_scores([0.9, 0.1], [0.1, 0.2], test_size=0.3).high == 1.0


def test_results_of_cross_validate():
    splits = [np.arange(k, 50, 5) for k in range(5)]
    indices = {"test": splits, "train": [np.setdiff1d(np.arange(50), test) for test in splits]}
    a, b = np.array([0.9, 0.8, 0.85, 0.9, 0.7]), np.array([0.8, 0.8, 0.8, 0.9, 0.6])
    found = compare_cv_scores({"test_score": a, "indices": indices}, {"test_score": b})
    assert found == compare_cv_scores(a, b, test_size=0.2)


def test_equal_scores():
    found = compare_cv_scores([0.9, 0.8], [0.9, 0.8], test_size=0.5)
    assert (found.difference, found.stderr, found.pvalue) == (0.0, 0.0, 1.0)
    assert 0.0 < compare_cv_scores([0.9, 0.8], [0.8, 0.71], test_size=0.5).pvalue < 1.0


@pytest.mark.parametrize("scores", [[0.75, 0.5, 0.25], [0.9, 0.8, 0.7], [3.0, 1.0, 2.0]])
def test_one_difference_on_all_splits_has_no_test(scores):
    """Its variance is estimated as 0, or as rounding: the p-value was 2e-308, or 1e-30."""
    with pytest.warns(UndefinedMetricWarning, match=r"the scores differ by 0.1 on every split: the variance"):
        found = compare_cv_scores(np.add(scores, 0.1), scores, test_size=0.2)
    assert found.difference == pytest.approx(0.1)
    assert np.isnan([found.low, found.high, found.stderr, found.pvalue]).all()


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([0.9, 0.8], [0.9, 0.8], {}, "test_size is required with scores alone, got None"),
        ([0.9, 0.8], [0.9], {"test_size": 0.2}, r"score_b must have the shape \(n_splits,\), got shape \(1,\)"),
        ([0.9, 0.8], [0.9, 0.8, 0.7], {"test_size": 0.2}, r"score_b must have the shape \(2,\) of score_a, got \(3,\)"),
        ([0.9, np.nan], [0.9, 0.8], {"test_size": 0.2}, "score_a must be finite, got nan"),
        ({"test_mauc": [1]}, [0.9, 0.8], {"test_size": 0.2}, "score_a must hold 'test_score', got only 'test_mauc'"),
    ],
)
def test_bad_input(a, b, options, message):
    with pytest.raises(ValueError, match=message):
        compare_cv_scores(a, b, **options)


@pytest.mark.slow
def test_size_over_splits_of_equal_models():
    """Two models that use different columns of equal value are equal: the uncorrected test says otherwise too often."""
    rng = np.random.default_rng(0)
    rejected = {"corrected": 0, "plain": 0}
    draws = 400
    for _ in range(draws):
        y = np.repeat([0, 1, 2], 40)
        X = rng.normal(size=(120, 6)) + np.tile(np.eye(3), 2)[y]
        scores = {0: [], 1: []}
        for _ in range(10):
            order = rng.permutation(120)
            test, train = order[:24], order[24:]
            for model in scores:
                some = X[:, 3 * model : 3 * model + 3]
                centres = np.stack([some[train][y[train] == k].mean(axis=0) for k in range(3)])
                closeness = -((some[test][:, None] - centres) ** 2).sum(axis=2)
                scores[model].append(np.mean(closeness.argmax(axis=1) == y[test]))
        rejected["corrected"] += compare_cv_scores(*scores.values(), test_size=0.2).pvalue < 0.05
        rejected["plain"] += stats.ttest_rel(*scores.values()).pvalue < 0.05
    assert rejected["corrected"] / draws < 0.1
    assert rejected["plain"] / draws > 0.15


def test_every_design_of_the_study_runs():
    for design in DESIGNS:
        assert len(list(design.splits(np.random.default_rng(0), np.repeat([0, 1, 2], 10)))) == (
            design.n_folds * design.repeats
        )
    corrected, plain = rejections(DESIGNS[0], draws=3)
    assert 0.0 <= corrected <= plain <= 1.0
