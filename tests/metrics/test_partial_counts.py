"""Parts of the rows, counted one by one and added up, give what all rows give."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from mauc.metrics import pairwise_auc
from mauc.metrics import partial_counts as pc
from mauc.metrics.measures import PairMeasure
from mauc.partition import ClassPartition


@st.composite
def problems(draw):
    """Few rows with heavy ties, or distinct ones; absent classes, singletons, weights of any size, float32.

    The rows are in random order, cut at random places: empty parts among them.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 5))
    codes = np.concatenate([[0, 1], rng.integers(0, draw(st.integers(2, n_classes)), draw(st.integers(0, 60)))])
    scores = rng.normal(size=(len(codes), n_classes))
    if draw(st.booleans()):
        scores = np.round(scores)
    scores = scores.astype(draw(st.sampled_from([np.float64, np.float32])))
    weight = None
    if draw(st.booleans()):
        weight = 0.5 + rng.random(len(codes))
        weight[rng.random(len(codes)) < 0.1] = 0.0
        weight[np.unique(codes, return_index=True)[1]] = 1.0
        weight[rng.random(len(codes)) < 0.2] *= 1e3
        weight *= 10.0 ** draw(st.sampled_from([0, -250, 250]))
    edges = np.sort(rng.integers(0, len(codes) + 1, draw(st.integers(0, 5))))
    return codes, scores, n_classes, weight, np.split(rng.permutation(len(codes)), edges)


@given(problems(), st.sampled_from(["ovo", "ova"]), st.sampled_from([1, 300, 1 << 26]))
@examples(150)
def test_matrix_and_influences(problem, pairs, most):
    codes, scores, n_classes, weight, parts = problem
    partition = ClassPartition(codes, n_classes, weight)
    v = partition.pair_weights(pairs)
    unit = None if weight is None else partition.shares
    totals = partition.counts.astype(float) if weight is None else partition.present.astype(float)
    some = [pc.Rows(codes[p], scores[p].T, None if unit is None else unit[p]) for p in parts]
    positives = pc.sort_positives([pc.own_scores(each) for each in some])
    lost, as_negative, wins = np.zeros_like(v), [np.zeros(len(p)) for p in parts], []
    for columns in pc.column_groups(max(map(len, parts)), partition.counts, most=most):
        counts = [pc.count_part(positives, totals, each, v, columns) for each in some]
        whole = pc.add_counts([pc.add_counts(counts[:2]), *counts[2:]])
        lost += whole.lost
        as_negative = [so_far + each.as_negative for so_far, each in zip(as_negative, counts, strict=True)]
        wins += pc.wins_of_positives(whole, positives, columns)
    np.testing.assert_array_equal(sum(pc.lost_in_part(positives, each) for each in some), lost)
    matrix = pc.pair_matrix(lost, totals)
    expected = pairwise_auc(codes, scores, labels=np.arange(n_classes), sample_weight=weight)
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-12)
    if weight is None:
        np.testing.assert_array_equal(matrix, expected)
    _, influence = PairMeasure().matrix_and_influence(partition.problem(scores, v, normalised=False))
    for p, rows, each in zip(parts, some, as_negative, strict=True):
        found = pc.influence(positives, wins, rows, each)
        np.testing.assert_allclose(found, influence[p], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("m", "n"), [(500, 900), (900, 500), (0, 5), (3, 0)])
def test_find(m, n):
    rng = np.random.default_rng(0)
    values, x = (np.sort(np.round(rng.normal(size=k), 1)).astype(np.float32) for k in (m, n))
    left, right = pc.find(values, x)
    np.testing.assert_array_equal(left, np.searchsorted(values, x))
    np.testing.assert_array_equal(right, np.searchsorted(values, x, side="right"))


def test_float32_stays():
    codes, scores = np.array([0, 1, 0]), np.eye(2, dtype=np.float32)[[0, 1, 1]]
    parts = [pc.own_scores(pc.Rows(codes, x.T)) for x in (scores, scores + 1)]
    assert [each.values.dtype for each in pc.sort_positives(parts)] == [np.float32, np.float32]


def test_counts_take_no_more_memory_than_the_scores():
    """A part of n rows of C classes once needed 32 n (C - 1) bytes; now at most 16 for each position of a positive."""
    rng = np.random.default_rng(0)
    n, n_classes = 40_000, 10
    codes, scores = rng.integers(0, n_classes, n), rng.random((n, n_classes), dtype=np.float32)
    part, v = pc.Rows(codes, list(scores.T)), np.full((n_classes, n_classes), 1 / 90)
    positives = pc.sort_positives([pc.own_scores(part)])
    totals = np.bincount(codes)
    tracemalloc.start()
    counted = pc.count_part(positives, totals.astype(float), part, v, range(n_classes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    kept = counted.negatives_at.data.nbytes + counted.negatives_at.indices.nbytes
    assert kept <= pc.bytes_counted(n, totals).sum() <= 16 * (n + n_classes)
    assert peak < 4 * scores.nbytes
    assert [len(group) for group in pc.column_groups(n, totals, most=200_000)] == [3, 3, 3, 1]
