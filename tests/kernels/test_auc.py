"""Tie-aware pair counts and influences against the definition."""

from dataclasses import replace

import numpy as np
import pytest
from cases import settings
from oracles import pairwise_auc

from mauc._kernels.auc import auc_influence, auc_matrix
from mauc.partition import ClassPartition

KINDS = ("ties", "softmax", "float32")
kinds = pytest.mark.parametrize("kind", KINDS)
each_layout = pytest.mark.parametrize(
    ("kind", "n_classes", "cut"),
    [
        ("ties", 2, {"block_positives": 1}),
        ("ties", 5, {"tile_elements": 50}),
        ("ties", 32, {}),
        ("softmax", 5, {"block_positives": 1}),
        ("softmax", 32, {"tile_elements": 50}),
        ("float32", 2, {}),
        ("float32", 32, {"block_positives": 1}),
    ],
    ids=str,
)


def problems(kind, n_classes, cut):
    for what, y, scores, weight, pairs in settings(kind, n_classes, n_samples=40 + 2 * n_classes):
        partition = ClassPartition(y, n_classes, weight)
        yield what, replace(partition.problem(scores, partition.pair_weights(pairs)), **cut)
        if n_classes > 5:
            return


@each_layout
def test_auc_matrix_is_the_definition(kind, n_classes, cut):
    for what, problem in problems(kind, n_classes, cut):
        np.testing.assert_allclose(auc_matrix(problem), pairwise_auc(problem), rtol=1e-12, atol=1e-14, err_msg=what)


@kinds
def test_auc_matrix_of_counts_is_exact(kind):
    _, y, scores, _, _ = next(settings(kind, 5))
    problem = ClassPartition(y, 5).problem(scores, normalised=False)
    for i in range(5):
        for j in range(5):
            p, q = scores[y == i, i], scores[y == j, i]
            won = int(2 * (p[:, None] > q).sum() + (p[:, None] == q).sum())
            got = auc_matrix(problem)[i, j]
            assert np.isnan(got) if i == j else got == won / 2 / (len(p) * len(q))


def influence_by_definition(problem):
    """``h_n`` of the docstring, with ψ summed over the pairs that n is in."""
    scores, y, unit = problem.scores.astype(float), problem.classes.y, problem.classes.unit
    out = np.zeros(len(y))
    for n, i in enumerate(y):
        for j in range(problem.classes.n_classes):
            others = np.flatnonzero(y == j)
            as_positive = np.sign(scores[n, i] - scores[others, i]) / 2 + 0.5
            as_negative = np.sign(scores[others, j] - scores[n, j]) / 2 + 0.5
            out[n] += (
                problem.classes.v[i, j] * unit[others] @ as_positive
                + problem.classes.v[j, i] * unit[others] @ as_negative
            )
    return out


@each_layout
def test_influence_is_the_definition(kind, n_classes, cut):
    for what, problem in problems(kind, n_classes, cut):
        heavy = problem.classes.unit > 0
        got, expected = auc_influence(problem), influence_by_definition(problem)
        np.testing.assert_allclose(got[heavy], expected[heavy], rtol=1e-11, atol=1e-13, err_msg=what)
        # A sample appears as a positive and as a negative, so the influences add up to twice the metric.
        twice = 2.0 * np.nansum(problem.classes.v * pairwise_auc(problem))
        assert problem.classes.unit @ got == pytest.approx(twice, rel=1e-12), what


def test_slip_a_tie_counts_one_half():
    # The paper's evaluation formula drops ties.
    partition = ClassPartition(np.array([0, 0, 1, 1]), 2)
    scores = np.array([[0.5, 0.0], [0.5, 0.0], [0.5, 0.0], [0.25, 0.0]])
    auc = auc_matrix(partition.problem(scores, partition.pair_weights("ovo"), normalised=False))
    np.testing.assert_array_equal(auc, [[np.nan, 0.75], [0.5, np.nan]])
