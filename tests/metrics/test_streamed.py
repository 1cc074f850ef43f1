"""The metric and its variance from columns that are read again, against the kernels on scores in memory."""

import numpy as np
import pytest
from array_rows import ArrayRows, make_rows

from mauc.kernels.auc import auc_influence, auc_matrix
from mauc.metrics import streamed
from mauc.metrics.streamed import sorted_columns, stream_auc
from mauc.partition import ClassPartition


@pytest.mark.parametrize("room", [2**30, 3000, 600])
@pytest.mark.parametrize(("ties", "dtype"), [(False, np.float64), (True, np.float64), (True, np.float32)])
def test_matrix_and_moments_are_those_in_memory(monkeypatch, room, ties, dtype):
    """Whatever the room: all columns at once, one by one, and tables of positives in slices."""
    monkeypatch.setattr(streamed, "LEAST", room)
    monkeypatch.setattr(streamed, "BLOCK", 16)
    codes, scores = make_rows(0, ties=ties, dtype=dtype)
    rows, partition = ArrayRows(codes, scores), ClassPartition(codes, 5)
    weights = [partition.pair_weights(kind) for kind in ("ovo", "ova")]
    found = stream_auc(rows, weights, budget=0, keep_losses=True)
    assert (rows.readings == 3) == (room == 2**30)
    np.testing.assert_array_equal(found.matrix, auc_matrix(partition.problem(scores, normalised=False)))
    right = scores.argmax(axis=1) == codes
    np.testing.assert_array_equal(found.right, np.bincount(codes[right], minlength=5))
    for k, v in enumerate(weights):
        influence, whole = auc_influence(partition.problem(scores, v)), v.sum(axis=0) + v.sum(axis=1)
        mean = np.bincount(codes, influence) / partition.counts
        np.testing.assert_allclose(whole - found.lost.mean[:, k], mean, rtol=1e-12)
        squares = np.bincount(codes, (influence - mean[codes]) ** 2)
        np.testing.assert_allclose(found.lost.squares[:, k], squares, rtol=1e-11, atol=1e-15)
        if k == 0:
            np.testing.assert_allclose(whole[codes] - found.losses, influence, rtol=1e-6)


def test_moments_of_a_pair_are_those_of_its_two_classes(monkeypatch):
    codes, scores = make_rows(1)
    found = stream_auc(ArrayRows(codes, scores), [ClassPartition(codes, 5).pair_weights("ovo")])
    for i, j in ((0, 1), (3, 1), (4, 0)):
        of_pair = np.isin(codes, [i, j])
        two = ClassPartition((codes[of_pair] == i).astype(np.int64), 2)
        influence = auc_influence(two.problem(scores[of_pair][:, [j, i]], two.pair_weights("ovo")))
        for here, there, code in ((i, j, 1), (j, i, 0)):
            h = influence[two.codes == code]
            assert 1.0 - found.lost_in_pair.mean[here, there] == pytest.approx(h.mean(), rel=1e-12)
            squares = np.square(h - h.mean()).sum()
            assert found.lost_in_pair.squares[here, there] == pytest.approx(squares, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("score", ["perfect", "constant"])
def test_perfect_and_constant_scores(score):
    codes = np.repeat([0, 1, 2], [50, 20, 1])
    scores = np.eye(3)[codes] if score == "perfect" else np.full((71, 3), 0.3)
    found = stream_auc(ArrayRows(codes, scores), [ClassPartition(codes, 3).pair_weights("ovo")])
    off = ~np.eye(3, dtype=bool)
    assert (found.matrix[off] == (1.0 if score == "perfect" else 0.5)).all()
    assert np.abs(found.lost.squares).max() < 1e-28


def test_columns_are_seen_sorted_within_each_class(monkeypatch):
    monkeypatch.setattr(streamed, "LEAST", 5000.0)
    codes, scores = make_rows(2)
    seen, some = {}, {}
    rows = ArrayRows(codes, scores)
    stream_auc(rows, [np.ones((5, 5))], budget=0, seen=seen.__setitem__)
    sorted_columns(rows, {3: [3, 0], 1: [4]}, some.__setitem__, budget=0)
    for i in range(5):
        for j in range(5):
            np.testing.assert_array_equal(seen[i][j], np.sort(scores[codes == j, i]))
            wanted = (i, j) in ((3, 3), (3, 0), (1, 4))
            if i in some:
                np.testing.assert_array_equal(some[i][j], seen[i][j] if wanted else [])
