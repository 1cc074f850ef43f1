"""Parts of a sample, counted one by one and added up, give what the whole sample gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from mauc.metrics import compare_mauc, mauc_interval, pairwise_auc
from mauc.metrics import partial_counts as pc
from mauc.metrics.scores import weighted_mean
from mauc.metrics.uncertainty import Moments, comparison_of_moments, interval_of_moments


def in_parts(rng, n, n_parts):
    """Rows in random order, cut at random places: empty parts among them."""
    edges = np.sort(rng.integers(0, n + 1, n_parts - 1))
    return np.split(rng.permutation(n), edges)


def collected(parts, codes, scores, n_classes, weight):
    """Phase one, merged two by two."""
    own = pc.own_scores(codes, scores)
    each = [pc.OwnScores.of(codes[p], own[p], n_classes, None if weight is None else weight[p]) for p in parts]
    while len(each) > 1:
        each = [pc.merge(each[k : k + 2]) for k in range(0, len(each), 2)]
    return each[0]


def matrix_of_parts(parts, codes, scores, n_classes, weight=None, block=2):
    """Both phases, a few columns at a time."""
    own = collected(parts, codes, scores, n_classes, weight)
    lost = np.zeros((n_classes, n_classes))
    for first in range(0, n_classes, block):
        last = min(first + block, n_classes)
        ladders = own.columns(first, last).ladders()
        for p in parts:
            w = None if weight is None else weight[p]
            lost[:, first:last] += pc.count_lost(ladders, own.totals, codes[p], scores[p, first:last], w)
    return pc.auc_of_lost(lost, own.totals)


def influences_of_parts(parts, codes, scores, n_classes, v, weight=None, block=2):
    """All three phases: score, moments, and the influences of each part."""
    own = collected(parts, codes, scores, n_classes, weight)
    w = [None if weight is None else weight[p] for p in parts]
    lost = np.zeros((n_classes, n_classes))
    negative = [np.zeros(len(p)) for p in parts]
    blocks = []
    for first in range(0, n_classes, block):
        last = min(first + block, n_classes)
        ladders = own.columns(first, last).ladders()
        placed = [
            pc.place(ladders, own.totals, v, codes[p], scores[p, first:last], u, first=first)
            for p, u in zip(parts, w, strict=True)
        ]
        for k, each in enumerate(placed):
            lost[:, first:last] += each.lost
            negative[k] += each.as_negative
        landed = [pc.add_landed([each.landed[k] for each in placed]) for k in range(last - first)]
        won = [pc.won_by_rung(ladder, of_all) for ladder, of_all in zip(ladders, landed, strict=True)]
        blocks.append((first, ladders, won))
    matrix = pc.auc_of_lost(lost, own.totals)
    mean = pc.mean_influence(matrix, v)
    influences = negative
    for first, ladders, won in blocks:
        influences = [
            pc.influence(ladders, won, codes[p], pc.own_scores(codes[p], scores[p]), h, first=first)
            for p, h in zip(parts, influences, strict=True)
        ]
    return own.totals, weighted_mean(matrix, v), mean, influences


def squares(parts, totals, mean, influences, codes, weight):
    return sum(
        pc.influence_squares(mean, h, totals, codes[p], None if weight is None else weight[p])
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
@examples(150)
def test_pair_matrix(problem):
    codes, scores, n_classes, weight, parts = problem
    expected = pairwise_auc(codes, scores, labels=np.arange(n_classes), sample_weight=weight)
    np.testing.assert_allclose(matrix_of_parts(parts, codes, scores, n_classes, weight), expected, rtol=0, atol=1e-12)


@given(problems(alike=True), st.sampled_from(["ovo", "ova"]))
@examples(100)
@pytest.mark.filterwarnings("ignore:class.* a single sample")
def test_interval_and_comparison(problem, pairs):
    codes, scores, n_classes, weight, parts = problem
    other = np.round(scores + np.random.default_rng(0).normal(size=scores.shape), 1).astype(scores.dtype)
    options = {"labels": np.arange(n_classes), "sample_weight": weight, "pairs": pairs, "absent": "ignore"}
    totals = collected(parts, codes, scores, n_classes, weight).totals
    v = totals.partition().pair_weights(pairs)
    found = []
    for each in (scores, other):
        _, score, mean, influences = influences_of_parts(parts, codes, each, n_classes, v, weight)
        found.append((score, Moments(mean, squares(parts, totals, mean, influences, codes, weight)), influences))
    (a, of_a, h_a), (b, of_b, h_b) = found
    sizes = totals.sizes(v)
    expected = mauc_interval(codes, scores, level=0.9, **options)
    result = interval_of_moments(sizes, a, of_a, 0.9)
    np.testing.assert_allclose(list(vars(result).values()), list(vars(expected).values()), rtol=0, atol=1e-12)
    of_both = squares(
        parts, totals, of_a.mean - of_b.mean, [x - y for x, y in zip(h_a, h_b, strict=True)], codes, weight
    )
    expected = compare_mauc(codes, scores, other, **options)
    result = comparison_of_moments(sizes, (a, of_a), (b, of_b), of_both, 0.95)
    np.testing.assert_allclose(list(vars(result).values()), list(vars(expected).values()), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("decimals", [1, 9])
def test_both_searches(dtype, decimals):
    """Few rungs for many scores are found by bins, many rungs for few scores in sorted order: as NumPy finds them."""
    rng = np.random.default_rng(0)
    for rungs, n in ((500, 40_000), (40_000, 500), (0, 5), (0, 0), (3, 0)):
        values = np.unique(np.round(rng.normal(size=rungs), decimals).astype(dtype))
        x = np.concatenate([np.round(rng.normal(size=n), decimals).astype(dtype), values[: n // 2]])
        position, tied = pc.Ladder.of(values, None).find(x)
        np.testing.assert_array_equal(position, np.searchsorted(values, x))
        np.testing.assert_array_equal(tied, np.isin(x, values))


def test_equal_scores_are_joined():
    """A score of three decimals is at most 1001 numbers, however many samples have it."""
    rng = np.random.default_rng(0)
    codes, own = rng.integers(0, 2, 5000), np.round(rng.random(5000), 3)
    parts = [pc.OwnScores.of(codes[k::3], own[k::3], 2) for k in range(3)]
    whole = pc.merge(parts)
    assert max(len(values) for values in whole.values) <= 1001
    np.testing.assert_array_equal([mass.sum() for mass in whole.mass], whole.totals.counts)


def test_float32_stays():
    codes, own = np.array([0, 1, 0]), np.array([0.1, 0.2, 0.3], dtype=np.float32)
    whole = pc.merge([pc.OwnScores.of(codes, own, 2), pc.OwnScores.of(codes, own + 1, 2)])
    assert [values.dtype for values in whole.values] == [np.float32, np.float32]
    assert whole.mass == (None, None)
    assert whole.__sizeof__() == 4 * 6
