"""Partial AUC and AUC-μ against ROC curves drawn point by point, finite differences, scikit-learn and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from strategies import examples, samples

from mauc.metrics.measures import PairMeasure
from mauc.partition import ClassPartition


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
    for (x0, y0), (x1, y1) in zip(corners, corners[1:], strict=False):
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
            s = scores[:, i].astype(float) - (scores[:, j].astype(float) if measure.by == "difference" else 0.0)
            sides = [[(s[n], weight[n]) for n in np.flatnonzero(y == k)] for k in (i, j)]
            if i != j and all(sides):
                corners = roc(*sides)
                if measure.share_of_negatives < 1.0:
                    matrix[i, j] = mean_sensitivity(corners, 1.0 - measure.share_of_negatives)
                else:
                    matrix[i, j] = mean_specificity(corners, 1.0 - measure.share_of_positives)
    return matrix


def simulated(counts, seed=0, *, decimals=None):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    scores = rng.normal(size=(len(y), len(counts))) + np.eye(len(counts))[y]
    return y, scores if decimals is None else np.round(scores, decimals)


MEASURES = [
    PairMeasure("difference"),
    *(PairMeasure(by, share_of_positives=c) for by in ("column", "difference") for c in (0.5, 0.1)),
    *(PairMeasure(by, share_of_negatives=c) for by in ("column", "difference") for c in (0.75, 0.2)),
]
measures = pytest.mark.parametrize("measure", MEASURES, ids=str)


class TestMatrix:
    @measures
    @examples(25)
    @given(samples(scales=(1.0, 1e-3)))
    def test_definition(self, measure, sample):
        n_classes = sample.scores.shape[1]
        problem = ClassPartition(sample.y, n_classes, sample.weight).problem(sample.scores, normalised=False)
        weight = np.ones(len(sample.y)) if sample.weight is None else sample.weight
        expected = definition(measure, sample.y, sample.scores, weight, n_classes)
        np.testing.assert_allclose(measure.matrix(problem), expected, rtol=0, atol=1e-12)


def sum_of_pairs(measure, v, partition, scores):
    return np.nansum(v * measure.matrix(partition.problem(scores)))


class TestInfluence:
    @measures
    @pytest.mark.parametrize("decimals", [None, 0])
    def test_derivative_in_the_weights(self, measure, decimals):
        y, scores = simulated((14, 9, 1, 6), decimals=decimals)
        rng = np.random.default_rng(2)
        weight = rng.exponential(size=len(y))
        partition = ClassPartition(y, 4, weight)
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
                ends.append(sum_of_pairs(measure, v, ClassPartition(y, 4, moved), scores))
            slope = (ends[1] - ends[0]) / (2 * step)
            assert slope == pytest.approx(influence[n] - mean[y[n]], abs=1e-5), n
