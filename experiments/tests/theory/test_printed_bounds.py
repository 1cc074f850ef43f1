"""Theorems 8 and 9 as printed and corrected, beside ours, and Theorem 10."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from experiments.theory import bernstein, bernstein_factor, finite, logit_chaining, theorem_7, theorem_8, theorem_9
from mauc.surrogates import SURROGATES, CustomSurrogate
from mauc.theory import bounds, consistency_report

COUNTS = (500, 300, 200)
XI = math.sqrt(sum(1000 / n for n in COUNTS))
CHI = math.sqrt(sum(1e6 / (a * b) for i, a in enumerate(COUNTS) for j, b in enumerate(COUNTS) if i != j))
DNN = {"gamma": 2.0, "radius": 1.5, "lipschitz": 0.8, "bound": 3.0, "depth": 3}
CNN = {"spectral_norms": (1.2, 0.7), "distance": 0.4, "n_parameters": 50, "radius": 1.5, "lipschitz": 0.8, "bound": 3.0}
NOISE = 5 * math.sqrt(2) * 3.0 / 3 * math.sqrt(math.log(2 / 0.05)) * XI


@pytest.mark.parametrize("p", [2.0, 1.5, 1.01])
def test_theorem_7_is_its_print(p):
    found = theorem_7(0.1, COUNTS, gamma=2.0, radius=1.5, lipschitz=0.8, bound=3.0, p=p, delta=0.1)
    complexity = 4 * 1.5 * 0.8 * 2.0 / (3 - 1) * math.sqrt(2 * (p / (p - 1) - 1) / 3) * CHI
    noise = 5 * 3.0 / 3 * math.sqrt(2 * math.log(2 / 0.1)) * XI
    assert found.total == pytest.approx(0.1 + (complexity + noise) / math.sqrt(1000), rel=1e-12)


def test_theorem_8_is_its_print():
    """Both terms: C₁ = 4, C₂ = 5√2, L = depth + 1, K = e R_s."""
    L = 4
    c3 = (math.sqrt(L * math.log(2)) + math.sqrt(3)) / math.sqrt(2)
    I1 = 4 * math.sqrt(2) / 2 * 0.8 * CHI / 2 + math.sqrt(2) * 4 * 1.5 * 0.8 * 2.0 / 2 * c3 * XI + math.sqrt(2) * NOISE
    found = theorem_8(0.1, COUNTS, **DNN, corrected=False)
    assert found.total == pytest.approx(0.1 + I1 / math.sqrt(1000), rel=1e-12)
    peeled = math.sqrt(2 * math.log(2) * L) + 1
    chain = 2**9 / 3 * XI * math.log(math.e * 5.0 * 1000 * 3) ** 1.5 * 2.0 * 1.5 * peeled
    both = theorem_8(0.1, COUNTS, **DNN, corrected=False, logit_bound=5.0)
    assert both.inputs["I2"] == pytest.approx(4 * 0.8 * (chain + 1) / math.sqrt(1000), rel=1e-12)
    assert both.total == pytest.approx(found.total), "the first is smaller here"
    tiny = theorem_8(0.1, COUNTS, **{**DNN, "gamma": 1e-6}, corrected=False, logit_bound=1e-3)
    assert tiny.complexity == tiny.inputs["I2"] < tiny.inputs["I1"]
    assert tiny.concentration == pytest.approx(NOISE / math.sqrt(1000))


def test_theorem_8_corrected():
    peeled = 1 + math.sqrt(2 * 4 * math.log(2))
    c3 = math.sqrt(3 / 2) * peeled
    I1 = 4 * math.sqrt(2) / 2 * 0.8 * CHI / 2 + math.sqrt(2) * 4 * 1.5 * 0.8 * 2.0 / 2 * c3 * XI + NOISE
    found = theorem_8(0.1, COUNTS, **DNN, corrected=True, logit_bound=5.0)
    assert found.total == pytest.approx(0.1 + I1 / math.sqrt(1000), rel=1e-12)
    printed = theorem_8(0.1, COUNTS, **DNN, corrected=False, logit_bound=5.0)
    grown = found.inputs["I2"] / printed.inputs["I2"]
    assert grown == pytest.approx(math.hypot(peeled, 1) / peeled, rel=1e-3)
    assert "slips corrected" in str(found)
    assert "as printed" in str(printed)


def test_theorem_9_is_its_print():
    for corrected, inside in ((False, 1000), (True, math.sqrt(1000))):
        weights = 50 * (0.2 * 2 + 0.4 + math.log(3 * 0.4 * 1.5 * inside))
        complexity = 4 * 24 * 0.8 * 5.0 * XI / 3 * math.sqrt(weights / 1000)
        found = theorem_9(0.1, COUNTS, **CNN, corrected=corrected, logit_bound=5.0)
        assert found.complexity == pytest.approx(complexity, rel=1e-12)
        assert found.concentration == pytest.approx(NOISE / math.sqrt(1000), rel=1e-12)
    with pytest.raises(ValueError, match=r"logit_bound must exceed 1 / min\(sqrt\(N\)"):
        theorem_9(0.1, COUNTS, **CNN, corrected=False, logit_bound=0.01)
    with pytest.raises(ValueError, match="logit_bound must exceed"):
        theorem_9(0.1, COUNTS, **{**CNN, "distance": 0.0}, corrected=False, logit_bound=5.0)
    with pytest.raises(ValueError, match="logit_bound must be given for Theorem 9, got None"):
        theorem_9(0.1, COUNTS, **CNN, corrected=False)


def test_theorem_9_is_theorem_5_with_its_covering_numbers():
    """Cut at 1/√N the chain is below the corrected form, which is below the printed one."""
    log_reach = math.log(1.5 * 0.4) + 0.2 * 2 + 0.4
    chained = logit_chaining(
        lambda e: max(0.0, 50 * (math.log(3 / e) + log_reach)), COUNTS, lipschitz=0.8, logit_bound=5.0
    )
    corrected, printed = (
        theorem_9(0.1, COUNTS, **CNN, corrected=way, logit_bound=5.0).complexity for way in (True, False)
    )
    assert 4 * chained / 6 < corrected < printed


@pytest.mark.parametrize("counts", [COUNTS, (5000, 300, 20), (100,) * 10])
def test_ours_are_below(counts):
    """The printed first term of Theorem 8 can be lower still: it lost a root of C."""
    for ours, theirs, options, factor in ((bounds.dnn, theorem_8, DNN, 1.2), (bounds.cnn, theorem_9, CNN, 40.0)):
        below = ours(0.1, counts, **options).complexity
        corrected = theirs(0.1, counts, **options, corrected=True, logit_bound=5.0).complexity
        assert factor * below < corrected


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
    found = finite(softmax(np.array(logits), axis=2), y, by_column=True, n_draws=500)
    of_class = {"gamma": gamma, "depth": 2, "radius": 1.0}
    theirs = theorem_8(0.0, counts, **of_class, corrected=True, logit_bound=2.0)
    for bound in (theirs.inputs["I1"], theirs.inputs["I2"], bounds.dnn(0.0, counts, **of_class).complexity):
        assert 4 * (found.value + 4 * found.stderr) / 6 < bound


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("degree", [1, 2, 5, 12])
def test_theorem_10(degree, order):
    """c_k m <= B⁽ᵏ⁾ <= c_k M, and the factor is the best one: t^k reaches it."""
    t = np.linspace(0.0, 1.0, 201)
    # e^{2t} − t³ has all derivatives at hand
    derivative = 2.0**order * np.exp(2 * t) - [t**3, 3 * t**2, 6 * t, 6 + 0 * t][order]
    value, _ = bernstein(lambda u: np.exp(2 * u) - u**3, 0.0, 1.0, degree)
    polynomial = np.polynomial.Polynomial.fit(t, value(t), degree, domain=[0, 1], window=[0, 1]).deriv(order)(t)
    factor = bernstein_factor(degree, order)
    assert factor == pytest.approx(math.prod((degree - i) / degree for i in range(order)) if order <= degree else 0.0)
    slack = 1e-5 * np.abs(derivative).max()
    assert factor * derivative.min() - slack <= polynomial.min()
    assert polynomial.max() <= factor * derivative.max() + slack
    power, _ = bernstein(lambda u: u**order, 0.0, 1.0, degree)
    top = np.polynomial.Polynomial.fit(t, power(t), degree, domain=[0, 1], window=[0, 1]).deriv(order)(0.5)
    assert top == pytest.approx(factor * math.factorial(order), abs=1e-5)


@pytest.mark.parametrize("degree", [1, 12, 64])
@pytest.mark.parametrize("name", sorted(SURROGATES))
def test_bernstein_keeps_the_condition(name, degree):
    """Corollary 2, and more: its polynomial of the hinge has no kink."""
    options = {"epsilon": 0.2} if name == "distance_weighted" else {"alpha": 1.0}
    polynomial = CustomSurrogate(*bernstein(SURROGATES[name](**options).loss, -1.0, 1.0, degree))
    assert consistency_report(polynomial).satisfied


@pytest.mark.parametrize("degree", [2, 9])
def test_the_forward_difference_of_bernstein_has_its_own_index(degree):
    """B^(j) at the left end is K!/(K−j)! Δ^j f_0 / width^j."""
    nodes = np.exp(-np.linspace(-1.0, 2.0, degree + 1))
    polynomial, derivative = bernstein(lambda t: np.exp(-t), -1.0, 2.0, degree)
    assert polynomial(-1.0) == pytest.approx(nodes[0], rel=1e-14)
    assert derivative(-1.0) == pytest.approx(degree * (nodes[1] - nodes[0]) / 3.0, rel=1e-13)
    assert derivative(2.0) == pytest.approx(degree * (nodes[-1] - nodes[-2]) / 3.0, rel=1e-13)
