"""Calibrated probabilities of a stack: right, by class size, and ranked as the scores are."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from mauc import mauc_score
from mauc.ensemble import MAUCStackingClassifier
from mauc.ensemble.calibration import Calibration, fit_calibration


def scored_sample(slopes, intercepts, n_samples=4000, seed=0):
    """Binary logits of softmax scores, and classes drawn from the normalised maps of them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(n_samples, len(slopes)))
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = expit(np.asarray(slopes) * logit(scores) + intercepts)
    codes = (rng.random((n_samples, 1)) > np.cumsum(truth / truth.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    return scores, np.minimum(codes, len(slopes) - 1)


def shares_of(codes, n_classes, weight=None):
    counts = np.bincount(codes, weight, n_classes)
    return counts / counts.sum()


def test_maps_of_two_classes_are_one_and_the_right_one():
    scores, codes = scored_sample((0.5, 0.5), (-1.0, 1.0))
    found = fit_calibration(scores, codes, None, shares_of(codes, 2))
    # P(1 | z) is the normalised pair of the two sigmoids, which is the sigmoid itself.
    np.testing.assert_allclose(found.slopes, 0.5, atol=0.05)
    np.testing.assert_allclose(found.intercepts, (-1.0, 1.0), atol=0.1)
    np.testing.assert_allclose(found.probabilities(scores).sum(axis=1), 1.0, atol=1e-5)


def test_the_mean_probability_is_the_share_of_the_class():
    scores, codes = scored_sample((0.7, 1.0, 1.4, 1.0), (0.0, -1.0, 0.5, -4.0), 800)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 800)
    for given in (None, weight):
        shares = shares_of(codes, 4, given)
        found = fit_calibration(scores, codes, given, shares)
        mean = np.average(expit(found.slopes * logit(scores) + found.intercepts), axis=0, weights=given)
        np.testing.assert_allclose(mean, shares, rtol=1e-3)


def test_weights_are_repetitions_up_to_their_unit():
    scores, codes = scored_sample((0.7, 1.0, 1.4), (0.0, -1.0, 0.5), 300)
    times = np.random.default_rng(0).integers(1, 4, 300)
    rows = np.repeat(np.arange(300), times)
    shares = shares_of(codes, 3, times)
    tenfold, plain = (fit_calibration(scores, codes, unit * times, shares) for unit in (10.0, 1.0))
    np.testing.assert_allclose(tenfold.slopes, plain.slopes, rtol=1e-6)
    repeated = fit_calibration(scores[rows], codes[rows], None, shares)
    # The pull weighs as so many samples, and there are twice as many in one of the two.
    np.testing.assert_allclose(repeated.slopes, plain.slopes, rtol=0.05)
    np.testing.assert_allclose(repeated.intercepts, plain.intercepts, atol=0.05)


def test_a_rare_class_follows_the_others():
    scores, codes = scored_sample((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), 600)
    order = np.argsort(-scores[:, 2])
    codes[codes == 2] = 0
    codes[order[:3]] = 2  # the three of the highest scores: separated, as rare classes are
    found = fit_calibration(scores, codes, None, shares_of(codes, 3))
    assert found.slopes[2] < 1.5 * found.slopes[:2].max()
    codes[codes == 2] = 0
    never = fit_calibration(scores, codes, None, np.array([0.5, 0.49, 0.01]))
    assert never.slopes[:2].min() < never.slopes[2] < never.slopes[:2].max() or np.ptp(never.slopes) < 1e-6
    assert abs(expit(never.slopes[2] * logit(scores[:, 2]) + never.intercepts[2]).mean() - 0.01) < 1e-4


def test_columns_are_ranked_as_before_even_where_the_sigmoid_is_one():
    rng = np.random.default_rng(0)
    column = np.unique(np.r_[10.0 ** -rng.uniform(1, 300, 50), rng.random(50), 1 - 10.0 ** -rng.uniform(1, 10, 50)])
    maps = Calibration(np.array([5.0, 0.01]), np.array([3.0, -3.0]), 1 / 1002)
    found = maps.probabilities(np.column_stack([column, column]))
    assert (np.diff(found, axis=0) > 0).all()
    assert ((found >= 0) & (found <= 1)).all()
    assert np.isfinite(maps.probabilities(np.array([[0.0, 1.0]]))).all()


def overlapping(sizes=(120, 50, 12), seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(y), 4)) + np.eye(len(sizes), 4)[y], y


def models():
    return [("lr", LogisticRegression(class_weight="balanced")), ("nb", GaussianNB())]


def test_a_calibrated_stack():
    X, y = overlapping()
    new, truth = overlapping(seed=1)
    plain, calibrated, normalized = (
        MAUCStackingClassifier(models(), cv=3, calibrate=how).fit(X, y) for how in (False, True, "normalized")
    )
    raw, found, rows = (model.predict_proba(new) for model in (plain, calibrated, normalized))
    assert plain.calibration_ is None
    assert mauc_score(truth, found) == mauc_score(truth, raw) == normalized.score(new, truth)
    assert np.array_equal(np.argsort(found, axis=0), np.argsort(raw, axis=0))
    np.testing.assert_allclose(rows, found / found.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=0.3)
    assert log_loss(truth, rows) < log_loss(truth, raw) - 0.05
    assert np.sum((found - np.eye(3)[truth]) ** 2) < np.sum((raw - np.eye(3)[truth]) ** 2)
    assert np.abs(found.mean(axis=0) - shares_of(y, 3)).max() < 0.05 < np.abs(raw.mean(axis=0) - shares_of(y, 3)).max()
    np.testing.assert_array_equal(calibrated.predict(new), found.argmax(axis=1))
    weighted = MAUCStackingClassifier(models(), cv=3, calibrate=True)
    weighted.fit(X, y, np.where(y == 2, 10.0, 1.0))
    assert weighted.predict_proba(new)[:, 2].mean() > 3 * found[:, 2].mean()


def test_what_cannot_be_calibrated_is_refused():
    X, y = overlapping((8, 8))
    one = [(np.arange(16), np.flatnonzero(y == 0))]
    with pytest.raises(
        ValueError,
        match="calibrate needs held-out samples of two classes, got fewer: pass more samples of each class",
    ):
        MAUCStackingClassifier(models(), cv=one, calibrate=True).fit(X, y)
    with pytest.raises(ValueError, match="calibrate must be True, False or 'normalized', got 'isotonic'"):
        MAUCStackingClassifier(models(), calibrate="isotonic").fit(X, y)
