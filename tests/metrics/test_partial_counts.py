"""Parts of a sample, counted one by one and added up, give what the whole sample gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from mauc.metrics import compare_mauc, mauc_interval, pairwise_auc
from mauc.metrics import partial_counts as pc
from mauc.metrics.scores import weighted_mean
from mauc.metrics.uncertainty import Moments, comparison_of_moments, interval_of_moments, squares_about


def in_parts(rng, n, n_parts):
    """Rows in random order, cut at random places: empty parts among them."""
    edges = np.sort(rng.integers(0, n + 1, n_parts - 1))
    return np.split(rng.permutation(n), edges)


def part_of(array, part):
    return None if array is None else array[part]


def influences_of_parts(parts, codes, scores, n_classes, v, weight=None):
    """All three phases, merged two by two: totals, matrix of AUCs, and the influences of each part."""
    own = [pc.OwnScores.of(codes[p], scores[p], n_classes, part_of(weight, p)) for p in parts]
    while len(own) > 1:
        own = [pc.merge(own[k : k + 2]) for k in range(0, len(own), 2)]
    totals, ladders = own[0].totals, own[0].ladders()
    placed = [pc.place(ladders, totals, codes[p], scores[p], part_of(weight, p), v) for p in parts]
    whole = pc.add_placed([pc.add_placed(placed[:2]), *placed[2:]])
    influences = [
        pc.influence(ladders, whole.landed, codes[p], scores[p], each.as_negative)
        for p, each in zip(parts, placed, strict=True)
    ]
    return totals, pc.auc_of_lost(whole.lost, totals), influences


def squares(parts, totals, mean, influences, codes, weight):
    return sum(
        squares_about(mean, h, codes[p], totals.shares(codes[p], part_of(weight, p)))
        for p, h in zip(parts, influences, strict=True)
    )


@st.composite
def problems(draw, alike=False):
    """Few samples with heavy ties, or distinct ones; absent classes, singletons, weights of any size, float32.

    ``alike``: no sample has almost all the weight of its class, which leaves the variance few digits.
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
        if not alike:
            weight[rng.random(len(codes)) < 0.2] *= 1e3
        weight *= 10.0 ** draw(st.sampled_from([0, -250, 250]))
    parts = in_parts(rng, len(codes), draw(st.integers(1, 6)))
    return codes, scores, n_classes, weight, parts


@given(problems())
@examples(100)
def test_pair_matrix(problem):
    codes, scores, n_classes, weight, parts = problem
    expected = pairwise_auc(codes, scores, labels=np.arange(n_classes), sample_weight=weight)
    _, found, _ = influences_of_parts(parts, codes, scores, n_classes, np.ones((n_classes, n_classes)), weight)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    if weight is None:
        np.testing.assert_array_equal(found, expected)


@given(problems(alike=True), st.sampled_from(["ovo", "ova"]))
@examples(100)
@pytest.mark.filterwarnings("ignore:class.* a single sample")
def test_interval_and_comparison(problem, pairs):
    codes, scores, n_classes, weight, parts = problem
    other = np.round(scores + np.random.default_rng(0).normal(size=scores.shape), 1).astype(scores.dtype)
    options = {"labels": np.arange(n_classes), "sample_weight": weight, "pairs": pairs, "absent": "ignore"}
    v = pc.ClassTotals.of(codes, n_classes, weight).partition().pair_weights(pairs)
    found = []
    for each in (scores, other):
        totals, matrix, influences = influences_of_parts(parts, codes, each, n_classes, v, weight)
        mean = pc.mean_influence(matrix, v)
        of_squares = squares(parts, totals, mean, influences, codes, weight)
        found.append((weighted_mean(matrix, v), Moments(mean, of_squares), influences))
    (a, of_a, h_a), (b, of_b, h_b) = found
    sizes = totals.sizes(v)
    expected = mauc_interval(codes, scores, level=0.9, **options)
    result = interval_of_moments(sizes, a, of_a, 0.9)
    np.testing.assert_allclose(list(vars(result).values()), list(vars(expected).values()), rtol=0, atol=1e-12)
    difference = [x - y for x, y in zip(h_a, h_b, strict=True)]
    of_both = squares(parts, totals, of_a.mean - of_b.mean, difference, codes, weight)
    expected = compare_mauc(codes, scores, other, **options)
    result = comparison_of_moments(sizes, (a, of_a), (b, of_b), of_both, 0.95)
    np.testing.assert_allclose(list(vars(result).values()), list(vars(expected).values()), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("rungs", "n"), [(500, 900), (900, 500), (0, 5), (3, 0)])
def test_scores_are_found_on_a_ladder(rungs, n):
    rng = np.random.default_rng(0)
    values, x = (np.sort(np.round(rng.normal(size=k), 1)).astype(np.float32) for k in (rungs, n))
    left, right = pc.Ladder(values).find(x, block=64)
    np.testing.assert_array_equal(left, np.searchsorted(values, x))
    np.testing.assert_array_equal(right, np.searchsorted(values, x, side="right"))


def test_float32_stays():
    codes, scores = np.array([0, 1, 0]), np.eye(2, dtype=np.float32)[[0, 1, 1]]
    whole = pc.merge([pc.OwnScores.of(codes, scores, 2), pc.OwnScores.of(codes, scores + 1, 2)])
    assert [values.dtype for values in whole.values] == [np.float32, np.float32]
    assert whole.__sizeof__() == 4 * 6
