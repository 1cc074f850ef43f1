"""Who is in which class, and how much each pair of classes counts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from strategies import samples

from mauc.partition import ClassPartition
from mauc.risk import SurrogateRisk

Y = np.array([0, 0, 0, 2, 2, 3])
WEIGHT = np.array([1.0, 0.0, 2.0, 0.5, 0.5, 4.0])


def test_counts_weights_and_priors():
    partition = ClassPartition(Y, 5)
    np.testing.assert_array_equal(partition.counts, [3, 0, 2, 1, 0])
    np.testing.assert_array_equal(partition.weights, [3.0, 0.0, 2.0, 1.0, 0.0])
    np.testing.assert_array_equal(partition.priors, np.array([3, 0, 2, 1, 0]) / 6)
    np.testing.assert_array_equal(partition.present, [True, False, True, True, False])


def test_sample_weights_replace_counts():
    partition = ClassPartition(Y, 5, WEIGHT)
    np.testing.assert_array_equal(partition.counts, [3, 0, 2, 1, 0])
    np.testing.assert_array_equal(partition.weights, [3.0, 0.0, 1.0, 4.0, 0.0])
    np.testing.assert_array_equal(partition.priors, [0.375, 0.0, 0.125, 0.5, 0.0])


def test_pair_weights_are_those_of_the_definition():
    p = np.array([0.5, 0.3, 0.2])
    partition = ClassPartition(np.repeat([0, 1, 2], [5, 3, 2]), 3)
    ovo, ova = partition.pair_weights("ovo"), partition.pair_weights("ova")
    for i in range(3):
        for j in range(3):
            assert ovo[i, j] == pytest.approx(0.0 if i == j else 1 / 6)
            assert ova[i, j] == pytest.approx(0.0 if i == j else p[j] / (3 * (1 - p[i])))
    own = np.array([[9.0, 1.0, 2.0], [0.0, 9.0, 3.0], [4.0, 0.0, 9.0]])
    np.testing.assert_allclose(partition.pair_weights(own), np.array([[0, 1, 2], [0, 0, 3], [4, 0, 0]]) / 10)
    assert own.sum() == 37.0, "the matrix of the caller is not touched"


@given(samples())
def test_pair_weights_sum_to_one_over_the_pairs_present(sample):
    n_classes = sample.scores.shape[1]
    partition = ClassPartition(sample.y, n_classes, sample.weight)
    v = partition.pair_weights(sample.pairs)
    here = partition.present
    assert v.shape == (n_classes, n_classes)
    assert np.all(v >= 0.0)
    assert np.all(v[~np.outer(here, here)] == 0.0)
    assert np.all(np.diag(v) == 0.0)
    own_is_elsewhere = not isinstance(sample.pairs, str) and (sample.pairs * np.outer(here, here)).sum() == np.trace(
        sample.pairs * np.outer(here, here)
    )
    assert v.sum() == pytest.approx(0.0 if here.sum() < 2 or own_is_elsewhere else 1.0, rel=1e-14)


@given(samples(min_present=2))
def test_ova_ranks_each_column_against_all_others_at_once(sample):
    """Theorem 1a: within a column, ova counts the other classes by their size, and columns count the same."""
    partition = ClassPartition(sample.y, sample.scores.shape[1], sample.weight)
    v, u, here = partition.pair_weights("ova"), partition.weights, partition.present
    np.testing.assert_allclose(v.sum(axis=1), here / here.sum(), rtol=1e-13)
    for i in np.flatnonzero(here):
        rest = np.where(np.arange(len(u)) == i, 0.0, u)
        np.testing.assert_allclose(v[i], rest / rest.sum() / here.sum(), rtol=1e-13)


@pytest.mark.parametrize("heavy", [1e3, 1e10, 1e17, 1e300])
def test_ova_keeps_its_digits_when_one_class_outweighs_the_rest(heavy):
    # 1 − p_i cancels there, down to a division by 0.
    v = ClassPartition(np.array([0, 1, 2]), 3, np.array([heavy, 1.0, 3.0])).pair_weights("ova")
    expected = [[0, 1 / 4, 3 / 4], [heavy / (heavy + 3), 0, 3 / (heavy + 3)], [heavy / (heavy + 1), 1 / (heavy + 1), 0]]
    np.testing.assert_allclose(v, np.array(expected) / 3, rtol=1e-12)


@pytest.mark.parametrize("pairs", ["ovo", "ova", np.ones((3, 3))], ids=["ovo", "ova", "matrix"])
def test_no_pair_no_weight(pairs):
    np.testing.assert_array_equal(ClassPartition(np.array([1, 1]), 3).pair_weights(pairs), np.zeros((3, 3)))


def test_a_matrix_without_weight_on_the_pairs_present_counts_nothing():
    pairs = np.zeros((3, 3))
    pairs[0, 1] = 1.0
    np.testing.assert_array_equal(ClassPartition(np.array([1, 2]), 3).pair_weights(pairs), np.zeros((3, 3)))


@given(samples(min_present=2))
def test_problem_has_unit_class_sums_and_the_pairs_as_they_are(sample):
    n_classes = sample.scores.shape[1]
    partition = ClassPartition(sample.y, n_classes, sample.weight)
    v = partition.pair_weights(sample.pairs)
    problem = partition.problem(sample.scores, v)
    np.testing.assert_allclose(np.bincount(sample.y, problem.classes.unit, n_classes), partition.present, rtol=1e-14)
    assert problem.classes.v is v
    raw = partition.problem(sample.scores, v, normalised=False).classes.unit
    weight = np.ones(len(sample.y)) if sample.weight is None else sample.weight
    for k in np.unique(sample.y[weight > 0]):
        mine = (sample.y == k) & (weight > 0)
        factor = np.unique(raw[mine] / weight[mine])
        assert len(factor) == 1
        assert np.frexp(factor)[0] == 0.5, "a power of two, so that no digit is lost"


@pytest.mark.parametrize("size", [1e308, 1.0, 1e-315])
def test_pair_weights_of_any_size(size):
    partition = ClassPartition(np.array([0, 0, 1, 2]), 3)
    matrix = np.array([[1.5, 1.0, 0.5], [0.25, 0.0, 1.0], [1.0, 0.5, 0.0]])
    np.testing.assert_allclose(partition.pair_weights(size * matrix), partition.pair_weights(matrix), rtol=1e-3)
    scores = np.random.default_rng(0).normal(size=(4, 3))
    risk, same = (SurrogateRisk(pairs=pairs).value(partition.codes, scores) for pairs in (size * matrix, matrix))
    assert risk == pytest.approx(same, rel=1e-3)


@pytest.mark.parametrize("weights", [[1e-200, 1.0, 1e200], [1e-320, 1e-320, 1e307], [1e307, 1e307, 1e307]])
def test_shares_and_ova_for_weights_of_any_size(weights):
    codes = np.array([0, 0, 1, 1, 2, 2])
    partition = ClassPartition(codes, 3, np.repeat(weights, 2))
    np.testing.assert_allclose(partition.shares, 0.5, rtol=1e-12)
    v = partition.pair_weights("ova")
    exact = [[0 if i == j else Fraction(weights[j]) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(v, [[float(x / sum(row) / 3) for x in row] for row in exact], rtol=1e-12, atol=1e-300)
