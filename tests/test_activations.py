"""Scores of logits and the chain rule back, against their definitions."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy.special import softmax

from mauc.activations import ACTIVATIONS, activate, pull_back

EXTREME = np.array(
    [[800.0, 0.0, -800.0], [0.0, 0.0, 0.0], [-1e4, 1e4, 1e4], [40.0, -40.0, 39.0], [1e-9, 0.0, -745.0], [5.0, 5.0, 4.0]]
)


def exact_log_odds(row):
    """``z_i − log Σ_{j≠i} e^{z_j}`` in 60 digits."""
    getcontext().prec = 60
    powers = [Decimal(float(z)).exp() for z in row]
    return [float(Decimal(float(z)) - _others(powers, i).ln()) for i, z in enumerate(row)]


def _others(powers, i):
    return sum(power for j, power in enumerate(powers) if j != i)


def exact_pull_back(row, gradient):
    """``G_k − Σ_{i≠k} G_i e^{z_k} / Σ_{j≠i} e^{z_j}`` in 60 digits."""
    getcontext().prec = 60
    powers = [Decimal(float(z)).exp() for z in row]
    g, columns = [Decimal(float(x)) for x in gradient], range(len(row))
    return [float(g[k] - sum(g[i] * powers[k] / _others(powers, i) for i in columns if i != k)) for k in columns]


def test_log_odds_are_those_of_softmax():
    logits = np.random.default_rng(0).normal(size=(20, 5))
    p = softmax(logits, axis=1)
    np.testing.assert_allclose(activate(logits, "log_odds"), np.log(p / (1.0 - p)), rtol=1e-12, atol=1e-13)


def test_log_odds_are_exact_where_probabilities_are_0_or_1():
    expected = [exact_log_odds(row) for row in EXTREME]
    np.testing.assert_allclose(activate(EXTREME, "log_odds"), expected, rtol=1e-14, atol=1e-15)


def test_log_odds_go_back_exactly_where_probabilities_are_0_or_1():
    gradient = np.random.default_rng(1).normal(size=EXTREME.shape)
    expected = [exact_pull_back(*rows) for rows in zip(EXTREME, gradient, strict=True)]
    found = pull_back(activate(EXTREME, "log_odds"), gradient.copy(), "log_odds")
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_pull_back_is_the_gradient(activation, n_classes):
    step = 1e-6
    rng = np.random.default_rng(n_classes)
    logits, gradient = rng.normal(size=(3, n_classes)), rng.normal(size=(3, n_classes))

    def value(z):
        return float(np.sum(gradient * activate(z, activation)))

    found = pull_back(activate(logits.copy(), activation), gradient.copy(), activation)
    for place in np.ndindex(*logits.shape):
        shift = np.zeros_like(logits)
        shift[place] = step
        slope = (value(logits + shift) - value(logits - shift)) / (2 * step)
        assert found[place] == pytest.approx(slope, abs=1e-8)


def test_log_odds_rank_as_softmax_does():
    logits = np.random.default_rng(2).normal(size=(50, 4))
    both = (activate(logits, kind).argsort(axis=0) for kind in ("log_odds", "softmax"))
    np.testing.assert_array_equal(*both)
