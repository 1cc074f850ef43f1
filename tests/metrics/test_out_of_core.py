"""The metric and its variance from columns that are read again, against scores in memory."""

import numpy as np
import pytest
from array_rows import ArrayRows, make_rows

from mauc.metrics.out_of_core import StreamedScores, read_columns
from mauc.metrics.summary import difference_squares, summarise
from mauc.partition import ClassPartition


def both(codes, scores, **options):
    """The summary of streamed scores, and of the same in memory."""
    partition = ClassPartition(codes, scores.shape[1])
    weights = {kind: partition.pair_weights(kind) for kind in ("ovo", "ova")}
    return StreamedScores(ArrayRows(codes, scores), **options).summary(weights), summarise(
        partition, [scores], compared=True
    )


@pytest.mark.parametrize(
    ("room", "ties", "dtype"), [(2**30, False, np.float64), (3000, True, np.float64), (600, True, np.float32)]
)
def test_summary_is_that_in_memory(room, ties, dtype):
    """Whatever the room: all columns at once, some at a time, and columns in slices."""
    codes, scores = make_rows(0, ties=ties, dtype=dtype)
    found, expected = both(codes, scores, room=room, compared=True)
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    np.testing.assert_array_equal(found.right, expected.right)
    spreads = [(found.spread[kind], expected.spread[kind]) for kind in ("ovo", "ova")]
    spreads += [(found.pair(i, j), expected.pair(i, j)) for i, j in ((0, 1), (3, 1), (4, 0))]
    for ours, theirs in spreads:
        np.testing.assert_allclose(ours.moments.mean, theirs.moments.mean, rtol=1e-12)
        np.testing.assert_allclose(ours.moments.squares, theirs.moments.squares, rtol=1e-11, atol=1e-15)
        np.testing.assert_allclose(ours.sizes.unbiased, theirs.sizes.unbiased, rtol=1e-12)
    counts = np.bincount(codes)
    between = difference_squares(codes, counts, found.influence, expected.influence, rows=64)
    assert between.max() < 1e-28, "the influences differ by a constant of the class"
    assert found.fingerprint == expected.fingerprint


@pytest.mark.parametrize("score", ["perfect", "constant"])
def test_perfect_and_constant_scores(score):
    codes = np.repeat([0, 1, 2], [50, 20, 1])
    scores = np.eye(3)[codes] if score == "perfect" else np.full((71, 3), 0.3)
    found, _ = both(codes, scores)
    assert (found.matrix[~np.eye(3, dtype=bool)] == (1.0 if score == "perfect" else 0.5)).all()
    assert np.abs(found.spread["ovo"].moments.squares).max() < 1e-28


def test_few_readings_where_there_is_room():
    rows = ArrayRows(*make_rows(1))
    StreamedScores(rows).summary({"ovo": np.ones((5, 5))})
    assert rows.readings == 3


@pytest.mark.parametrize("room", [2**30, 600])
def test_every_score_is_seen_once(room):
    codes, scores = make_rows(2)
    seen = {}
    rows = ArrayRows(codes, scores)

    def keep(i, classes, x):
        assert (np.diff(x) >= 0).all()
        seen.setdefault(i, []).extend(zip(classes.tolist(), x.tolist(), strict=True))

    StreamedScores(rows, room=room).summary({"ovo": np.ones((5, 5))}, keep)
    for i in range(5):
        assert sorted(seen.pop(i)) == sorted(zip(codes.tolist(), scores[:, i].tolist(), strict=True))
    read_columns(rows, [3, 1], keep)
    assert sorted(seen) == [1, 3]
