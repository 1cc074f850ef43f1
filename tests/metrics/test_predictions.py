"""Ties of the highest score count in equal parts, so accuracy does not depend on the order of the classes."""

from itertools import permutations

import numpy as np
import pytest
from array_rows import ArrayRows

from mauc.metrics.out_of_core import score_rows
from mauc.report import judge

RNG = np.random.default_rng(7)
CODES = RNG.choice(3, 300, p=[0.6, 0.3, 0.1])
SCORES = RNG.integers(0, 3, (300, 3)) / 2.0 + 0.5 * np.eye(3)[CODES]
TOP = SCORES.max(axis=1, keepdims=True) == SCORES
CREDIT = TOP[np.arange(300), CODES] / TOP.sum(axis=1)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_accuracy_does_not_depend_on_the_order_of_the_classes(order):
    assert TOP.sum(axis=1).max() == 3
    names = np.array(list("abc"))[np.argsort(order)]
    found = judge(names[CODES], SCORES[:, order])
    assert found.headline.accuracy == pytest.approx(CREDIT.mean(), abs=1e-12)
    recalls = [CREDIT[k == CODES].mean() for k in range(3)]
    assert found.headline.balanced_accuracy == pytest.approx(np.mean(recalls), abs=1e-12)
    (decision,) = found.further.decisions
    assert decision.accuracy.score == pytest.approx(CREDIT.mean(), abs=1e-12)
    assert decision.balanced_accuracy.score == pytest.approx(np.mean(recalls), abs=1e-12)
    shares = TOP / TOP.sum(axis=1, keepdims=True)
    place = [int(np.flatnonzero(names == label)[0]) for label in found.labels]
    expected = np.array([[shares[i == CODES, j].sum() for j in place] for i in place])
    np.testing.assert_allclose(decision.confusion, expected, rtol=1e-12)
    for k, one in zip(place, found.further.classes, strict=True):
        assert one.recall.score == pytest.approx(recalls[k], abs=1e-12)
        assert one.precision.score == pytest.approx(shares[k == CODES, k].sum() / shares[:, k].sum(), abs=1e-12)
    assert "in equal parts" in decision.text


def test_rows_in_parts_count_ties_alike():
    found = score_rows(ArrayRows(CODES, SCORES), 100)
    np.testing.assert_allclose(found.right, np.bincount(CODES, CREDIT), rtol=1e-12)


def test_constant_scores_are_right_as_often_as_chance():
    found = judge(CODES, np.ones((300, 3)))
    assert found.headline.accuracy == pytest.approx(1 / 3)
    assert found.headline.balanced_accuracy == pytest.approx(1 / 3)
    assert found.further.calibration.bins[0].right.score == pytest.approx(1 / 3)


def test_scores_without_ties_are_counted_in_whole_rows():
    scores = SCORES + 1e-3 * RNG.random(SCORES.shape)
    found = judge(CODES, scores)
    assert found.headline.accuracy == np.mean(scores.argmax(axis=1) == CODES)
    assert "equal parts" not in found.further.decisions[0].text
    (confusion,) = (each.confusion for each in found.further.decisions)
    np.testing.assert_array_equal(confusion, confusion.astype(int))
