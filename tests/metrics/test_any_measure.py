"""Measures besides the multiclass AUC: each against its definition; intervals, groups and comparisons are shared."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.metrics import brier_score_loss, log_loss, precision_score, recall_score, roc_auc_score

from mauc import compare_mauc, mauc_interval
from mauc.metrics import (
    PDI,
    AtThreshold,
    Calibration,
    MulticlassAUC,
    ProbabilityError,
    compare_measure,
    compare_samples,
    measure_by_centre,
    measure_interval,
)
from mauc.metrics.any_measure import Scored
from mauc.partition import ClassPartition


def simulated(counts=(60, 40, 20), lead=1.5, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    return y, rng.normal(size=(len(y), len(counts))) + lead * np.eye(len(counts))[y]


def probabilities(n=300, n_classes=3, seed=0):
    """Probabilities, and classes drawn from them."""
    rng = np.random.default_rng(seed)
    p = np.exp(rng.normal(size=(n, n_classes)))
    p /= p.sum(axis=1, keepdims=True)
    return (p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), p


def all_sets(y, column, i, weight):
    """The index of class i and the influences, over all sets of one row of each class."""
    members = [np.flatnonzero(y == k) for k in range(y.max() + 1)]
    shares = weight / np.bincount(y, weight)[y]
    index, influence = 0.0, np.zeros(len(y))
    for rows in itertools.product(*members):
        largest = column[list(rows)] == column[list(rows)].max()
        won = largest[i] / largest.sum()
        chance = np.prod(shares[list(rows)])
        index += chance * won
        influence[list(rows)] += chance * won / shares[list(rows)]
    return index, influence


@pytest.mark.parametrize("counts", [(6, 4), (5, 4, 3), (4, 2, 3, 3)])
@pytest.mark.parametrize("decimals", [None, 0])
@pytest.mark.parametrize("weighted", [False, True])
def test_pdi_is_the_mean_over_all_sets_of_one_row_of_each_class(counts, decimals, weighted):
    y, scores = simulated(counts)
    scores = scores if decimals is None else np.round(scores, decimals)
    weight = np.random.default_rng(1).uniform(0.2, 1, len(y)) if weighted else None
    partition = ClassPartition(y, len(counts), weight)
    scored = Scored(partition, scores, np.arange(len(counts)), None)
    expected = [all_sets(y, scores[:, i], i, np.ones(len(y)) if weight is None else weight) for i in range(len(counts))]
    for i, (index, influence) in enumerate(expected):
        found = PDI(i).evaluate(scored)
        assert found.value == pytest.approx(index)
        np.testing.assert_allclose(found.influence, influence, atol=1e-12)
    whole = PDI().evaluate(scored)
    assert whole.value == pytest.approx(np.mean([index for index, _ in expected]))
    np.testing.assert_allclose(whole.influence, np.mean([h for _, h in expected], axis=0), atol=1e-12)


def test_pdi_of_two_classes_is_the_auc():
    y, scores = simulated((30, 20))
    found, expected = measure_interval(PDI(), y, scores), mauc_interval(y, scores)
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(expected))
    assert measure_interval(PDI(), y, 0 * scores).score == 0.5
    assert measure_interval(PDI(), *simulated(lead=0.0, counts=(400, 400, 400))).score == pytest.approx(1 / 3, abs=0.03)


def test_the_multiclass_auc_is_a_measure():
    y, scores = simulated()
    other, groups = scores + np.random.default_rng(1).normal(size=scores.shape), np.arange(len(y)) // 3
    for options in ({}, {"pairs": "ova"}):
        measure = MulticlassAUC(**options)
        assert measure_interval(measure, y, scores, groups=groups).stderr > 0
    assert measure_interval(MulticlassAUC(), y, scores, groups=groups) == mauc_interval(y, scores, groups=groups)
    assert compare_measure(MulticlassAUC(), y, scores, other) == compare_mauc(y, scores, other)


def test_measures_at_a_threshold_are_those_of_the_table():
    y, p = probabilities()
    weight = np.random.default_rng(1).random(len(y))
    for w in (None, weight):
        values = {
            kind: measure_interval(AtThreshold(kind, 2, 0.4), y, p, sample_weight=w)
            for kind in ("sensitivity", "specificity", "ppv", "npv", "net_benefit")
        }
        own, chosen = y == 2, p[:, 2] >= 0.4
        options = {"sample_weight": w}
        expected = {
            "sensitivity": recall_score(own, chosen, **options),
            "specificity": recall_score(~own, ~chosen, **options),
            "ppv": precision_score(own, chosen, **options),
            "npv": precision_score(~own, ~chosen, **options),
            "net_benefit": np.average(own & chosen, weights=w) - np.average(~own & chosen, weights=w) * 0.4 / 0.6,
        }
        assert {kind: found.score for kind, found in values.items()} == pytest.approx(expected)
    low, high = stats.binomtest(int(sum(own & chosen)), int(sum(own))).proportion_ci(method="wilson")
    found = measure_interval(AtThreshold("sensitivity", 2, 0.4), y, p)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_errors_of_probabilities_are_those_of_scikit_learn():
    y, p = probabilities()
    assert measure_interval(ProbabilityError("log_loss"), y, p).score == pytest.approx(log_loss(y, p))
    two, q = probabilities(n_classes=2)
    assert measure_interval(ProbabilityError(), two, q).score == pytest.approx(2 * brier_score_loss(two, q[:, 1]))
    found = measure_interval(ProbabilityError(), y, p)
    each = np.square(p - np.eye(3)[y]).sum(axis=1)
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 299, each.mean(), stats.sem(each)))


@pytest.mark.parametrize("kind", ["intercept", "slope"])
def test_recalibration_has_the_largest_likelihood(kind):
    y, p = probabilities(n=120)
    p = p**1.6 / (p**1.6).sum(axis=1, keepdims=True) * [1.0, 0.7, 1.2]
    p /= p.sum(axis=1, keepdims=True)
    predictors = np.log(p[:, 1:] / p[:, :1])

    def surprise(at):
        logits = at[:2] + (at[2:] if kind == "slope" else 1.0) * predictors
        full = np.column_stack([np.zeros(len(y)), logits])
        return -np.mean(full[np.arange(len(y)), y] - np.log(np.exp(full).sum(axis=1)))

    best = optimize.minimize(surprise, np.r_[0.0, 0.0, 1.0, 1.0][: 4 if kind == "slope" else 2], tol=1e-12).x
    found = [measure_interval(Calibration(kind, k, 0), y, p) for k in (1, 2)]
    assert [one.score for one in found] == pytest.approx(best[-2:], abs=1e-4)


def test_the_influences_of_a_recalibration_are_what_a_row_changes():
    """The jackknife agrees to first order."""
    y, p = probabilities(n=200)
    for kind in ("intercept", "slope"):
        measure = Calibration(kind, 1, 2)
        left = [measure_interval(measure, np.delete(y, k), np.delete(p, k, axis=0)).score for k in range(200)]
        jackknife = np.sqrt(199**2 / 200 * np.var(left, ddof=1))
        assert measure_interval(measure, y, p).stderr == pytest.approx(jackknife, rel=0.06)


MEASURES = [
    PDI(),
    PDI(1),
    MulticlassAUC(),
    AtThreshold("sensitivity", 1, 0.4),
    AtThreshold("ppv", 1, 0.4),
    AtThreshold("net_benefit", 1, 0.4),
    ProbabilityError(),
    ProbabilityError("log_loss"),
    Calibration("intercept", 1, 0),
    Calibration("slope", 1, 0),
]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_every_measure_has_groups_and_comparisons(measure):
    y, p = probabilities(n=240)
    other = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)
    alone = measure_interval(measure, y, p)
    assert alone.low < alone.score < alone.high
    twice = {"y_true": np.repeat(y, 4), "groups": np.repeat(np.arange(240), 4)}
    grouped = measure_interval(measure, y_score=np.repeat(p, 4, axis=0), **twice)
    assert grouped.score == pytest.approx(alone.score)
    assert grouped.stderr == pytest.approx(alone.stderr, rel=0.06), "copies of a row add nothing"
    paired = compare_measure(measure, y, p, other)
    assert paired.difference == pytest.approx(alone.score - measure_interval(measure, y, other).score)
    back = compare_measure(measure, y, other, p)
    assert (back.low, back.high, back.pvalue) == pytest.approx((-paired.high, -paired.low, paired.pvalue))
    assert compare_measure(measure, y, p, p.copy()).pvalue == 1.0
    assert (paired.pvalue < 0.05) == (not paired.low <= 0 <= paired.high)
    z, q = probabilities(n=240, seed=1)
    unpaired = compare_samples(measure, y, p, z, q)
    assert unpaired.difference == pytest.approx(alone.score - measure_interval(measure, z, q).score)
    assert unpaired.stderr == pytest.approx(np.hypot(alone.stderr, measure_interval(measure, z, q).stderr))


def test_the_paired_test_of_a_sensitivity_varies_where_no_row_differs():
    y, p = probabilities()
    shifted = np.where(p > 0.999, p, p + 1e-9)
    found = compare_measure(AtThreshold("sensitivity", 1, 0.4), y, p, shifted)
    assert (found.difference, found.pvalue) == (0.0, 1.0)
    assert found.low < 0 < found.high


def test_a_difference_that_is_the_same_in_all_rows():
    """Every row has the same term, so nothing varies; the difference is still there."""
    y = np.repeat([0, 1], 20)
    a, b = (np.where(np.eye(2)[y] > 0, p, 1 - p) for p in (0.75, 0.5))
    found = compare_measure(ProbabilityError(), y, a, b)
    assert (found.difference, found.low, found.high) == pytest.approx((-0.375,) * 3)
    assert 0 < found.pvalue < 1e-300


def test_centres():
    y, scores = simulated((200, 200, 200), lead=1.2)
    centre = np.arange(600) % 5
    same = measure_by_centre(MulticlassAUC(), y, scores, centre)
    assert list(same.centres) == ["0", "1", "2", "3", "4"]
    for name, one in same.centres.items():
        rows = centre == int(name)
        assert one == mauc_interval(y[rows], scores[rows])
    assert same.mean.low < measure_interval(MulticlassAUC(), y, scores).score < same.mean.high
    assert same.prediction[0] <= same.mean.low
    lead = np.array([0.2, 0.6, 1.0, 1.8, 2.4])[centre]
    varied = scores + (lead - 1.2)[:, None] * np.eye(3)[y]
    different = measure_by_centre(MulticlassAUC(), y, varied, centre)
    assert different.pvalue < 1e-6 < same.pvalue
    assert different.i_squared > 0.8
    assert different.deviation > 0.5
    assert different.prediction[1] - different.prediction[0] > 2 * (same.prediction[1] - same.prediction[0])
    lacking = measure_by_centre(MulticlassAUC(), y, scores, np.where((centre == 4) & (y < 2), "lacking", centre % 2))
    assert lacking.left_out == ("lacking",)


def test_paule_and_mandel_on_published_numbers():
    """BCG trials (Colditz et al., JAMA 1994), log risk ratios: metafor gives tau² = 0.3181 and Q = 152.23."""
    from mauc.metrics.centres import _between, _q

    x = [-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.0120, -0.4694, -1.3713, -0.3394, 0.4459]
    v = [0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124, 0.5325, 0.0714]
    x.append(-0.0173)
    assert _q(0.0, np.array(x), np.array(v)) == pytest.approx(152.23, rel=0.01)
    assert _between(np.array(x), np.array(v)) == pytest.approx(0.3181, abs=0.002)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, p: measure_interval(PDI("x"), y, p), "of must name one of the classes, got 'x'"),
        (lambda y, p: measure_interval(AtThreshold("recall", 1, 0.5), y, p), "kind must be one of 'sensitivity'"),
        (
            lambda y, p: measure_interval(AtThreshold("net_benefit", 1, 1.5), y, p),
            "threshold must be a finite number strictly between 0 and 1, got 1.5",
        ),
        (
            lambda y, p: measure_interval(AtThreshold("ppv", 1, 2.0), y, p),
            "threshold must leave rows for the ppv, got 2 with no score at or above it: pass another threshold",
        ),
        (
            lambda y, p: measure_interval(ProbabilityError(), y, 2 * p),
            "y_score must hold probabilities that sum to 1 in each row, got the sum 2: pass predict_proba",
        ),
        (
            lambda y, p: measure_interval(ProbabilityError("log_loss"), y, np.roll(np.eye(3)[y], 1, axis=1)),
            "y_score must be above 0 for the class of each row, got 0 in row 0: clip the probabilities",
        ),
        (
            lambda y, p: measure_interval(Calibration("slope", 1, 1), y, p),
            "against must be another class than of, got 1: pass a reference class",
        ),
        (
            lambda y, p: measure_interval(Calibration("slope", 1, 0), y, np.eye(3)[y]),
            "y_score must hold probabilities above 0, got",
        ),
        (
            lambda y, p: measure_interval(Calibration("slope", 1, 0), y, 0.9 * np.eye(3)[y] + 0.1 / 3),
            "y_score must have a finite recalibration, got probabilities that separate the classes",
        ),
        (
            lambda y, p: measure_interval(ProbabilityError(), y, p, groups=np.zeros(len(y))),
            "groups must be two or more, got one",
        ),
        (
            lambda y, p: measure_by_centre(PDI(), y, p, y),
            "centres must have rows of every class in two centres or more, got 0 such centres",
        ),
        (lambda y, p: measure_interval(PDI(), y, p, labels=[0, 1, 2, 3]), "y_score must have one column per class"),
    ],
)
def test_errors(call, message):
    y, p = probabilities()
    with pytest.raises(ValueError, match=f"^{message}"):
        call(y, p)


def test_an_absent_class_is_an_error():
    y, p = probabilities()
    with pytest.raises(ValueError, match="y_true must hold every class of labels, got no sample of 2"):
        measure_interval(PDI(), y[y < 2], p[y < 2], labels=[0, 1, 2])


def test_pdi_follows_the_one_vs_rest_auc_roughly():
    """A sanity check on the direction: better scores of a class raise its index."""
    y, scores = simulated()
    better = scores + np.eye(3)[y] * [0.0, 1.0, 0.0]
    assert roc_auc_score(y == 1, better[:, 1]) > roc_auc_score(y == 1, scores[:, 1])
    assert compare_measure(PDI(1), y, better, scores).low > 0
    assert compare_measure(PDI(0), y, better, scores).difference == 0.0
