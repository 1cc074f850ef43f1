"""What the page holds of every pair, and how much of it."""

import base64
import json

import numpy as np
import pytest

from mauc import pairwise_auc
from mauc.report import judge
from mauc.report.pairs import CURVE_POINTS, MOST_CLASSES, pair_data


def area(curve):
    false, true = np.array(curve) / 1000
    return np.trapezoid(true, false)


def test_matrix_histograms_and_curves(scored):
    y, models, names = scored([70, 400, 6], models=2)
    data = pair_data(judge(y, models))
    assert data["classes"] == ["class 001", "class 000", "class 002"]
    order = [1, 0, 2]
    for model, scores in zip(data["models"], models.values(), strict=True):
        matrix = np.frombuffer(base64.b64decode(model["auc"]), "<u2").reshape(3, 3)
        expected = pairwise_auc(y, scores)[np.ix_(order, order)]
        assert (np.diag(matrix) == 65535).all()
        off = ~np.eye(3, dtype=bool)
        np.testing.assert_allclose(matrix[off] / 10000, expected[off], atol=1e-4)
        counts = np.frombuffer(base64.b64decode(model["histograms"]), np.uint8).reshape(3, 3, data["bins"])
        assert (counts[:, 2].sum(axis=1) == 6).all(), "small counts are exact"
        for i in range(3):
            low, high, log_odds = model["axes"][i]
            column = scores[:, order[i]]
            assert (low, high, log_odds) == (column.min(), column.max(), 0)
            theirs = np.histogram(column[y == names[order[1]]], data["bins"], (low, high))[0]
            np.testing.assert_array_equal(counts[i, 1], theirs)
            for j in range(3):
                if i != j:
                    curve = model["roc"][f"{i},{j}"]
                    assert len(curve[0]) <= CURVE_POINTS
                    assert (curve[0][0], curve[1][0], curve[0][-1], curve[1][-1]) == (0, 0, 1000, 1000)
                    assert area(curve) == pytest.approx(expected[i, j], abs=0.02)


def test_ties_and_constant_columns():
    y = np.repeat([0, 1, 2], [5, 4, 3])
    data = pair_data(judge(y, np.zeros((12, 3))))
    assert data["models"][0]["roc"]["0,1"] == [[0, 1000], [0, 1000]]
    assert data["models"][0]["axes"][0] == [-0.5, 0.5, 0]


def test_crowded_probabilities_are_drawn_over_log_odds(scored):
    y, models, _ = scored([50, 30, 20])
    sharp = np.exp(6 * models["model a"])
    data = pair_data(judge(y, sharp / sharp.sum(axis=1, keepdims=True)))
    low, high, log_odds = data["models"][0]["axes"][0]
    assert log_odds == 1
    assert -9.3 < low < high < 9.3


@pytest.mark.parametrize(
    ("n_classes", "models", "most"),
    [(3, 5, 1e5), (40, 4, 2e6), (200, 2, 2e6), pytest.param(450, 3, 2.5e6, marks=pytest.mark.slow)],
)
def test_size_is_bounded(scored, n_classes, models, most):
    y, made, _ = scored(np.arange(n_classes) % 7 + 2, models=models)
    found = judge(y, made)
    data = pair_data(found)
    assert len(json.dumps(data)) < most
    shown = len(data["classes"])
    assert shown == min(n_classes, MOST_CLASSES)
    assert data["left_out"] == n_classes - shown
    first = data["models"][0]
    assert first["histograms"] or first["some"]
    for pair in (*found.rarest, *found.worst):
        if pair.j >= data["left_out"]:
            i, j = pair.i - data["left_out"], pair.j - data["left_out"]
            assert f"{i},{j}" in first["roc"]
            assert first["histograms"] or {f"{i},{i}", f"{i},{j}", f"{j},{j}"} <= set(first["some"])
