"""The log-loss term: by hand, by finite differences, and what its minimiser is."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from mauc.log_loss import LogTerm, partner_weights, prior_ratios
from mauc.partition import ClassPartition

PRIORS = np.array([0.6, 0.3, 0.1])


def drawn(n=12, c=3, seed=0):
    rng = np.random.default_rng(seed)
    share = rng.random(n)
    return rng.normal(0, 3, (n, c)), rng.integers(0, c, n), share / share.sum()


def value_and_gradient(logits, y, ratios, share):
    return LogTerm(y, ratios, share).of_logits(logits, slice(None))


def test_value_by_hand():
    logits, y, share = drawn()
    value, _ = value_and_gradient(logits, y, PRIORS, share)
    by_hand = -share @ log_softmax(logits + np.log(PRIORS), axis=1)[np.arange(len(y)), y]
    assert value == pytest.approx(by_hand, rel=1e-14)


def test_gradient_is_the_slope_of_the_value():
    logits, y, share = drawn()
    _, gradient = value_and_gradient(logits, y, PRIORS, share)
    for n, c in np.ndindex(logits.shape):
        step = np.zeros_like(logits)
        step[n, c] = 1e-6
        up, down = (value_and_gradient(logits + s, y, PRIORS, share)[0] for s in (step, -step))
        assert gradient[n, c] == pytest.approx((up - down) / 2e-6, abs=1e-9)


def test_logits_of_any_size():
    value, gradient = value_and_gradient(np.array([[1e4, 0.0, -1e4]]), np.array([2]), PRIORS, np.ones(1))
    assert value == pytest.approx(2e4 + np.log(6.0))
    assert gradient.tolist() == [[1.0, 0.0, -1.0]]


@pytest.mark.parametrize("pairs", ["ovo", "ova", "matrix"])
def test_the_minimiser_ranks_by_theorem_2(pairs):
    """On points with known posterior: softmax(z)_j ∝ η_j b_j / p_j."""
    rng = np.random.default_rng(1)
    posterior = rng.dirichlet(np.ones(3), 4)
    priors = posterior.mean(axis=0)
    b = {"ovo": np.ones(3), "ova": priors, "matrix": np.array([1.0, 2.0, 5.0])}[pairs]
    weights = np.outer([3.0, 1.0, 2.0], b) if pairs == "matrix" else pairs
    ratios = prior_ratios(weights, priors)
    y = np.tile(np.arange(3), 4)

    def risk(z):
        value, gradient = value_and_gradient(np.repeat(z.reshape(4, 3), 3, axis=0), y, ratios, posterior.ravel() / 4)
        return value, gradient.reshape(4, 3, 3).sum(axis=1).ravel()

    z = minimize(risk, np.zeros(12), jac=True, options={"gtol": 1e-10}).x.reshape(4, 3)
    expected = posterior * b / priors
    np.testing.assert_allclose(softmax(z, axis=1), expected / expected.sum(axis=1, keepdims=True), atol=1e-6)


def test_absent_classes_are_no_rivals():
    ratios = prior_ratios("ovo", np.array([0.5, 0.0, 0.5]))
    value, gradient = value_and_gradient(np.zeros((1, 3)), np.array([0]), ratios, np.ones(1))
    assert value == pytest.approx(np.log(2.0))
    assert gradient.tolist() == [[-0.5, 0.0, 0.5]]


def test_ova_is_the_product_that_needs_no_shift():
    y = np.repeat(np.arange(4), [7, 3, 2, 1])
    partition = ClassPartition(y, 4)
    b = partner_weights(partition.pair_weights("ova"))
    np.testing.assert_allclose(partition.priors / b, (partition.priors / b)[0], rtol=1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1, 1], [1, 0, 1], [1, 2, 0]],
        [[0, 1, 0], [1, 0, 1], [1, 1, 0]],
        [[0, 0, 0], [0, 0, 0], [1, 1, 0]],
        [[0, 1, 1], [0, 0, 1], [0, 1, 0]],
    ],
)
def test_matrices_without_an_adjustment_are_refused(matrix):
    with pytest.raises(ValueError, match=r"log_loss needs pairs that are products a_i b_j .*: pass log_loss=0"):
        partner_weights(matrix)


def test_a_class_whose_own_column_does_not_count_is_fine():
    np.testing.assert_allclose(partner_weights(np.outer([0.0, 1.0, 4.0, 2.0], [1.0, 2.0, 3.0, 2.0])), [0.5, 1, 1.5, 1])
