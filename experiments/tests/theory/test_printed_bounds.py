"""Theorems 7 to 9 as printed and corrected, beside ours, and Theorem 10."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from experiments.tests.theory.complexity import complexity
from experiments.theory import theorem_7, theorem_8, theorem_9
from mauc import theory
from mauc.surrogates import CustomSurrogate
from mauc.theory import bounds

COUNTS = (500, 300, 200)
XI = math.sqrt(sum(1000 / n for n in COUNTS))
CHI = math.sqrt(sum(1e6 / (a * b) for i, a in enumerate(COUNTS) for j, b in enumerate(COUNTS) if i != j))
DNN = {"gamma": 2.0, "radius": 1.5, "lipschitz": 0.8, "depth": 3}
CNN = {"spectral_norms": (1.2, 0.7), "distance": 0.4, "n_parameters": 50, "radius": 1.5, "lipschitz": 0.8}


@pytest.mark.parametrize("p", [2.0, 1.01])
def test_theorem_7_is_its_print(p):
    found = theorem_7(0.1, COUNTS, gamma=2.0, radius=1.5, lipschitz=0.8, bound=3.0, p=p, delta=0.1)
    complexity = 4 * 1.5 * 0.8 * 2.0 / (3 - 1) * math.sqrt(2 * (p / (p - 1) - 1) / 3) * CHI
    noise = 5 * 3.0 / 3 * math.sqrt(2 * math.log(2 / 0.1)) * XI
    assert found.total == pytest.approx(0.1 + (complexity + noise) / math.sqrt(1000), rel=1e-12)


def test_both_terms_of_theorem_8():
    """C₁ = 4, L = depth + 1."""
    L = 4
    peeled = 1 + math.sqrt(2 * L * math.log(2))
    for corrected, c3, peeled_all in (
        (False, (math.sqrt(L * math.log(2)) + math.sqrt(3)) / math.sqrt(2), peeled),
        (True, math.sqrt(3 / 2) * peeled, math.hypot(peeled, 1)),
    ):
        first = 4 * math.sqrt(2) / 2 * 0.8 * CHI / 2 + math.sqrt(2) * 4 * 1.5 * 0.8 * 2.0 / 2 * c3 * XI
        chain = 2**9 / 3 * XI * math.log(math.e * 5.0 * 1000 * 3) ** 1.5 * 2.0 * 1.5 * peeled_all
        expected = np.array([first, 4 * 0.8 * (chain + 1)]) / math.sqrt(1000)
        assert theorem_8(COUNTS, **DNN, corrected=corrected, logit_bound=5.0) == pytest.approx(expected, rel=1e-12)


def test_theorem_9_is_its_print():
    for corrected, inside in ((False, 1000), (True, math.sqrt(1000))):
        weights = 50 * (0.2 * 2 + 0.4 + math.log(3 * 0.4 * 1.5 * inside))
        complexity = 4 * 24 * 0.8 * 5.0 * XI / 3 * math.sqrt(weights / 1000)
        found = theorem_9(COUNTS, **CNN, corrected=corrected, logit_bound=5.0)
        assert found == pytest.approx(complexity, rel=1e-12)


@pytest.mark.parametrize("counts", [COUNTS, (5000, 300, 20), (100,) * 10])
def test_ours_are_below(counts):
    """The ratios of docs/theory.md. The printed first term of Theorem 8 can be lower still: it lost a root of C."""
    dnn, cnn = bounds.dnn(0.1, counts, **DNN).complexity, bounds.cnn(0.1, counts, **CNN).complexity
    first, second = theorem_8(counts, **DNN, corrected=True, logit_bound=5.0)
    assert 1.2 < first / dnn < 1.65
    assert 2_500 < second / dnn < 11_500
    assert 0.55 < theorem_8(counts, **DNN, corrected=False, logit_bound=5.0)[0] / dnn < 1.15
    assert 40 < theorem_9(counts, **CNN, corrected=True, logit_bound=5.0) / cnn < 107


def test_the_complexity_of_small_networks_is_below_theorem_8():
    """A net of rectified networks of product γ stands for the class: the Monte-Carlo complexity is below both terms."""
    rng = np.random.default_rng(0)
    counts, gamma = (30, 15, 5), 2.0
    y = np.repeat([0, 1, 2], counts)
    X = rng.normal(size=(50, 3)) + np.eye(3)[y]
    X /= np.linalg.norm(X, axis=1).max()
    logits = []
    for _ in range(400):
        first, second = rng.normal(size=(6, 3)), rng.normal(size=(3, 6))
        logits.append(gamma * np.maximum(X @ first.T, 0) @ second.T / np.linalg.norm(first) / np.linalg.norm(second))
    found, stderr = complexity(softmax(np.array(logits), axis=2), y, by_column=True, n_draws=500)
    of_class = {"gamma": gamma, "depth": 2, "radius": 1.0}
    theirs = theorem_8(counts, **of_class, corrected=True, logit_bound=2.0)
    for bound in (*theirs, bounds.dnn(0.0, counts, **of_class).complexity):
        assert 4 * (found + 4 * stderr) / 6 < bound


def _polynomial(function, degree):
    """Return the Bernstein polynomial of a function on [0, 1], as a function."""
    own = CustomSurrogate(lambda t: function((t + 1) / 2), lambda t: 0.0 * t)
    return lambda t: theory.bernstein(own, degree).loss(2 * t - 1)


@pytest.mark.parametrize(("degree", "order"), [(1, 0), (1, 2), (5, 1), (12, 2), (12, 3)])
def test_theorem_10(degree, order):
    """c_k m <= B⁽ᵏ⁾ <= c_k M, and the factor is the best one: t^k reaches it."""
    t = np.linspace(0.0, 1.0, 201)
    # e^{2t} − t³ has all derivatives at hand
    derivative = 2.0**order * np.exp(2 * t) - [t**3, 3 * t**2, 6 * t, 6 + 0 * t][order]
    value = _polynomial(lambda u: np.exp(2 * u) - u**3, degree)
    polynomial = np.polynomial.Polynomial.fit(t, value(t), degree, domain=[0, 1], window=[0, 1]).deriv(order)(t)
    factor = math.prod(1 - i / degree for i in range(order))
    slack = 1e-5 * np.abs(derivative).max()
    assert factor * derivative.min() - slack <= polynomial.min()
    assert polynomial.max() <= factor * derivative.max() + slack
    power = _polynomial(lambda u: u**order, degree)
    top = np.polynomial.Polynomial.fit(t, power(t), degree, domain=[0, 1], window=[0, 1]).deriv(order)(0.5)
    assert top == pytest.approx(factor * math.factorial(order), abs=1e-5)
