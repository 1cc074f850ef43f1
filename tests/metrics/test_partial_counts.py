"""Parts of the rows, counted one by one and added up, give what all rows give."""

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


@given(problems(), st.sampled_from(["ovo", "ova"]))
@examples(150)
def test_matrix_and_influences(problem, pairs):
    codes, scores, n_classes, weight, parts = problem
    partition = ClassPartition(codes, n_classes, weight)
    v = partition.pair_weights(pairs)
    unit = None if weight is None else partition.shares
    totals = partition.counts.astype(float) if weight is None else partition.present.astype(float)
    some = [pc.Rows(codes[p], scores[p].T, None if unit is None else unit[p]) for p in parts]
    positives = pc.sort_positives([pc.own_scores(each) for each in some])
    counts = [pc.count_part(positives, totals, each, v) for each in some]
    whole = pc.add_counts([pc.add_counts(counts[:2]), *counts[2:]])
    np.testing.assert_array_equal(sum(pc.lost_in_part(positives, each) for each in some), whole.lost)
    matrix = pc.pair_matrix(whole.lost, totals)
    expected = pairwise_auc(codes, scores, labels=np.arange(n_classes), sample_weight=weight)
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-12)
    if weight is None:
        np.testing.assert_array_equal(matrix, expected)
    wins = pc.wins_of_positives(whole, positives)
    _, influence = PairMeasure().matrix_and_influence(partition.problem(scores, v, normalised=False))
    for p, rows, each in zip(parts, some, counts, strict=True):
        found = pc.influence(positives, wins, rows, each.as_negative)
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
