"""Partial AUC and AUC-μ against ROC curves drawn point by point, finite differences, scikit-learn and simulation."""

import re
from dataclasses import astuple, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from scipy import integrate, stats
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score
from strategies import examples, samples

from mauc import compare_mauc, mauc_interval, mauc_score, pairwise_auc
from mauc.metrics.measures import PairMeasure
from mauc.partition import ClassPartition

RATES = ("sensitivity", "specificity")
OPTIONS = [
    {"by": "difference"},
    {"min_sensitivity": 0.8},
    {"min_specificity": 0.8},
    {"by": "difference", "min_sensitivity": 0.7},
]


def roc(positive, negative):
    """Corners of the ROC curve, straight across ties, from (score, weight) of both classes."""
    corners = [(0.0, 0.0)]
    for threshold in sorted({x for x, _ in positive + negative}, reverse=True):
        false, true = (sum(w for x, w in side if x >= threshold) for side in (negative, positive))
        corners.append((false / sum(w for _, w in negative), true / sum(w for _, w in positive)))
    return corners


def mean_specificity(corners, low):
    """Over the sensitivities of at least ``low``: the area to the left of the curve above it, over its height."""
    area = 0.0
    for (x0, y0), (x1, y1) in pairwise(corners):
        if y1 > max(low, y0):
            cut = x0 + (x1 - x0) * (max(low, y0) - y0) / (y1 - y0)
            area += (1.0 - (cut + x1) / 2) * (y1 - max(low, y0))
    return area / (1.0 - low)


def mean_sensitivity(corners, low):
    """Over the specificities of at least ``low``: the curve with its axes exchanged."""
    return mean_specificity([(1.0 - y, 1.0 - x) for x, y in reversed(corners)], low)


def definition(measure, y, scores, weight, n_classes):
    """Every pair of classes by its ROC curve."""
    matrix = np.full((n_classes, n_classes), np.nan)
    for i in range(n_classes):
        for j in range(n_classes):
            s = scores[:, i].astype(float) - (scores[:, j].astype(float) if measure.difference else 0.0)
            sides = [[(s[n], weight[n]) for n in np.flatnonzero(y == k)] for k in (i, j)]
            if i != j and all(sides):
                corners = roc(*sides)
                if measure.of_negatives:
                    matrix[i, j] = mean_sensitivity(corners, 1.0 - measure.share)
                else:
                    matrix[i, j] = mean_specificity(corners, 1.0 - measure.share)
    return matrix


def simulated(counts, seed=0, *, decimals=None):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    scores = rng.normal(size=(len(y), len(counts))) + np.eye(len(counts))[y]
    return y, scores if decimals is None else np.round(scores, decimals)


MEASURES = [
    PairMeasure(difference=True),
    *(PairMeasure(difference, c) for difference, c in ((False, 0.5), (False, 0.1), (True, 0.3))),
    *(PairMeasure(difference, c, of_negatives=True) for difference, c in ((False, 0.75), (False, 0.1), (True, 0.2))),
]
measures = pytest.mark.parametrize("measure", MEASURES, ids=str)


class TestMatrix:
    @measures
    @examples(12)
    @given(samples(scales=(1.0, 1e-3)))
    def test_definition(self, measure, sample):
        n_classes = sample.scores.shape[1]
        problem = ClassPartition(sample.y, n_classes, sample.weight).problem(sample.scores, normalised=False)
        weight = np.ones(len(sample.y)) if sample.weight is None else sample.weight
        expected = definition(measure, sample.y, sample.scores, weight, n_classes)
        np.testing.assert_allclose(measure.matrix(problem), expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("decimals", [None, 1])
    @pytest.mark.parametrize("max_fpr", [0.05, 0.1, 0.5])
    def test_scikit_learn_has_it_standardised(self, decimals, max_fpr):
        y, scores = simulated((70, 40), decimals=decimals)
        score = scores[:, 1] - scores[:, 0]
        weight = np.random.default_rng(3).exponential(size=len(y))
        area = pairwise_auc(y, score, min_specificity=1 - max_fpr, sample_weight=weight)[1, 0]
        standardised = (1 + (area - max_fpr / 2) / (1 - max_fpr / 2)) / 2
        theirs = roc_auc_score(y, score, max_fpr=max_fpr, sample_weight=weight)
        assert standardised == pytest.approx(theirs, abs=1e-12)

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("argmax", [False, True])
    def test_auc_mu_as_its_authors_compute_it(self, argmax, weighted):
        y, scores = simulated((30, 20, 9, 1), decimals=1)
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        rng = np.random.default_rng(4)
        weight = rng.exponential(size=len(y)) if weighted else np.ones(len(y))
        partition = 1 - np.eye(4) if argmax else rng.random((4, 4)) * (1 - np.eye(4))
        total = 0.0
        for i in range(4):
            for j in range(i + 1, 4):
                rows = np.isin(y, (i, j))
                of_j = p[rows] @ (partition[i] - partition[j])
                total += roc_auc_score(y[rows] == j, of_j, sample_weight=weight[rows])
        ours = mauc_score(y, -p @ partition.T, by="difference", sample_weight=weight if weighted else None)
        assert ours == pytest.approx(total / 6, abs=1e-12)
        if argmax:
            assert mauc_score(y, p, by="difference", sample_weight=weight) == pytest.approx(total / 6, abs=1e-12)

    def test_two_classes(self):
        y, scores = simulated((20, 30), decimals=1)
        score = scores[:, 1] - scores[:, 0]
        assert mauc_score(y, score, by="difference") == mauc_score(y, score)
        # One curve, seen from either class.
        for by in ("column", "difference"):
            found, kept = (pairwise_auc(y, score, by=by, **{f"min_{axis}": 0.8}) for axis in RATES)
            np.testing.assert_allclose(found, kept.T, rtol=0, atol=1e-14)

    def test_the_whole_curve(self):
        y, scores = simulated((9, 6, 4), decimals=0)
        for by in ("column", "difference"):
            whole = pairwise_auc(y, scores, by=by)
            for axis in RATES:
                np.testing.assert_array_equal(pairwise_auc(y, scores, by=by, **{f"min_{axis}": 0}), whole)

    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_constant_and_perfect_scores(self, options):
        y = np.repeat([0, 1, 2], [10, 4, 1])
        assert mauc_score(y, np.ones((15, 3)), **options) == pytest.approx(share_of(options) / 2, abs=1e-15)
        assert mauc_score(y, np.eye(3)[y], **options) == 1.0
        assert mauc_score(y, -np.eye(3)[y], **options) == pytest.approx(0.0, abs=1e-15)

    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_absent_class(self, options):
        y, scores = simulated((9, 6, 4))
        wide = np.insert(scores, 1, 7.0, axis=1)
        found = pairwise_auc(y, wide, labels=[0, 9, 1, 2], **options)
        assert np.isnan(found[1]).all()
        assert np.isnan(found[:, 1]).all()
        known = [0, 2, 3]
        np.testing.assert_array_equal(found[np.ix_(known, known)], pairwise_auc(y, scores, **options))
        ignored = mauc_score(y, wide, labels=[0, 9, 1, 2], absent="ignore", **options)
        assert ignored == pytest.approx(mauc_score(y, scores, **options), abs=1e-15)

    def test_differences_beyond_the_floats(self):
        scores = np.array([[1.7e308, -1.7e308], [1.6e308, -1.7e308], [-1.7e308, 1.7e308], [1.7e308, -1.6e308]])
        assert mauc_score([0, 0, 1, 1], scores, by="difference") == 0.875

    @pytest.mark.parametrize("measure", [MEASURES[0], MEASURES[3], MEASURES[4]], ids=str)
    def test_how_the_work_is_cut_changes_nothing(self, measure):
        y, scores = simulated((40, 30, 20, 7, 1), decimals=1)
        partition = ClassPartition(y, 5)
        problem = partition.problem(scores, partition.pair_weights("ova"), normalised=False)
        matrix, influence = measure.matrix_and_influence(problem)
        cut = measure.matrix_and_influence(replace(problem, block_positives=1, tile_elements=7))
        np.testing.assert_allclose(cut[0], matrix, rtol=0, atol=1e-14)
        np.testing.assert_allclose(cut[1], influence, rtol=0, atol=1e-14)


class TestInfluence:
    @measures
    @pytest.mark.parametrize("decimals", [None, 0])
    def test_derivative_in_the_weights(self, measure, decimals):
        y, scores = simulated((14, 9, 1, 6), decimals=decimals)
        rng = np.random.default_rng(2)
        partition = ClassPartition(y, 4, rng.exponential(size=len(y)))
        v = partition.pair_weights(rng.random((4, 4)))
        matrix, influence = measure.matrix_and_influence(partition.problem(scores, v))
        np.testing.assert_array_equal(matrix, measure.matrix(partition.problem(scores)))
        counted = np.nan_to_num(matrix) * v
        mean = counted.sum(axis=0) + counted.sum(axis=1)
        np.testing.assert_allclose(np.bincount(y, partition.shares * influence), mean, rtol=0, atol=1e-13)
        # A little more weight on one sample, a little less on all of its class.
        step = 1e-6
        for n in range(len(y)):
            ends = []
            for sign in (-1, 1):
                moved = partition.shares.copy()
                moved[y == y[n]] *= 1.0 - sign * step
                moved[n] += sign * step
                ends.append(np.nansum(v * measure.matrix(ClassPartition(y, 4, moved).problem(scores))))
            slope = (ends[1] - ends[0]) / (2 * step)
            assert slope == pytest.approx(influence[n] - mean[y[n]], abs=1e-5), n

    def test_a_region_that_ends_between_two_samples(self):
        """1 − 0.9 is not a tenth: a sliver of the next sample must not move the cut to it."""
        y, score = np.repeat([0, 1], [3, 20]), np.r_[0.5, 1.5, 2.5, np.arange(20.0)]
        partition = ClassPartition(y, 2)
        problem = partition.problem(np.column_stack([-score, score]), np.eye(2)[::-1] / 2)
        below, above = (PairMeasure(share=np.nextafter(0.1, side)).matrix_and_influence(problem) for side in (0, 1))
        assert below[0][1, 0] == pytest.approx((0 + 1 / 3) / 2, abs=1e-14)
        for found, expected in zip(below, above, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def share_of(options):
    """Width of the region."""
    return 1.0 - options.get("min_sensitivity", options.get("min_specificity", 0.0))


def coverage(counts, sep, options, draws):
    """Of the interval of 95 %, with the true value and the median width.

    Scores are N(0, 1) with ``sep`` more in the own column; a difference has twice the lead at √2 the noise.
    """
    lead = sep * (np.sqrt(2) if options.get("by") == "difference" else 1.0)
    share = share_of(options)
    area, _ = integrate.quad(lambda u: stats.norm.cdf(stats.norm.ppf(u) + lead), 0.0, share)
    truth = area / share
    n_classes = len(counts)
    y, rng = np.repeat(np.arange(n_classes), counts), np.random.default_rng(6)
    found = []
    for _ in range(draws):
        scores = rng.normal(size=(len(y), n_classes)) + sep * np.eye(n_classes)[y]
        result = mauc_interval(y, scores, **options)
        found.append((result.low <= truth <= result.high, result.high - result.low))
    covered, width = zip(*found, strict=True)
    return truth, np.mean(covered), np.median(width)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:min_.* leaves fewer than 10 samples")
def test_table(capsys):
    with capsys.disabled():
        print("\n| rows | measure | truth | coverage | width |\n|---|---|---|---|---|")
        for options in (*OPTIONS, {"min_sensitivity": 0.9}, {"min_specificity": 0.9}):
            for n in (50, 300):
                for sep in (1.06, 2.5):
                    truth, covered, width = coverage((n, n, n), sep, options, draws=300)
                    asked = ", ".join(f"`{name}={value!r}`" for name, value in options.items())
                    print(f"| 3 × {n} | {asked} | {truth:.2f} | {covered:.3f} | {width:.3f} |", flush=True)
                    assert covered >= (0.9 if share_of(options) * n > 9.9 else 0.85)


class TestIntervals:
    def test_two_classes(self):
        y, scores = simulated((20, 30), decimals=1)
        a, b = scores[:, 1] - scores[:, 0], scores[:, 1]
        for judged, arguments in ((mauc_interval, (y, a)), (compare_mauc, (y, a, b))):
            ordinary, by_difference = (astuple(judged(*arguments, by=by)) for by in ("column", "difference"))
            np.testing.assert_allclose(by_difference, ordinary, rtol=1e-10)

    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_score_and_a_model_against_itself(self, options):
        y, scores = simulated((90, 60, 50), decimals=1)
        found = mauc_interval(y, scores, pairs="ova", **options)
        assert found.score == pytest.approx(mauc_score(y, scores, pairs="ova", **options), abs=1e-15)
        assert found.low < found.score < found.high
        same = compare_mauc(y, scores, scores, **options)
        assert (same.difference, same.pvalue) == (0.0, 1.0)

    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_coverage(self, options):
        assert 0.9 <= coverage((100, 80, 60), 1.5, options, draws=150)[1] <= 0.99

    def test_too_few_samples_in_a_region(self):
        y, scores = simulated((60, 50, 20))
        mauc_interval(y, scores, min_sensitivity=0.5)
        message = "min_sensitivity=0.8 leaves fewer than 10 samples of class 2 in its region: the score is"
        with pytest.warns(UndefinedMetricWarning, match=f"^{re.escape(message)}"):
            mauc_interval(y, scores, min_sensitivity=0.8)
        with pytest.warns(UndefinedMetricWarning, match=r"^min_specificity=0.8 .* of class 2 in"):
            compare_mauc(y, scores, -scores, min_specificity=0.8)
        # Where the class is whole in every pair that counts, nothing is missing.
        mauc_interval(y, scores, pairs=[[0, 0, 1], [0, 0, 1], [0, 0, 0]], min_sensitivity=0.8)

    def test_a_region_is_worth_fewer_samples(self):
        y, scores = np.repeat([0, 1, 2], 50), np.eye(3)[np.repeat([0, 1, 2], 50)]
        lows = [mauc_interval(y, scores, min_sensitivity=a).low for a in (0.0, 0.5, 0.8)]
        assert lows == sorted(lows, reverse=True)
        assert lows[0] - lows[2] > 0.01


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"by": "row"}, "by must be one of 'column', 'difference', got 'row'"),
            ({"min_sensitivity": 1.0}, "min_sensitivity must be a finite number of at least 0 and below 1, got 1.0"),
            ({"min_specificity": -0.1}, "min_specificity must be a finite number of at least 0 and below 1, got -0.1"),
            (
                {"min_sensitivity": 0.9, "min_specificity": 0.8},
                "min_specificity must be None beside min_sensitivity, got 0.8: pass one of the two",
            ),
        ],
    )
    def test_options(self, options, message):
        y, scores = simulated((3, 3, 3))
        for judged in (mauc_score, pairwise_auc, mauc_interval):
            with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
                judged(y, scores, **options)
