"""Definition 2 of linear models by simulation, and its bounds."""

import itertools
import math

import numpy as np
import pytest

from experiments.tests.theory.complexity import directions, linear_complexity
from experiments.theory import linear_bound
from mauc.theory import bounds


def sample(counts, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    X = rng.normal(size=(len(y), d)) + rng.normal(size=(len(counts), d))[y]
    return X / np.linalg.norm(X, axis=1).max(), y


def exact(X, y, gamma, p):
    """Definition 2 for ℓ(t) = t as it is written: every sign pattern, every pair."""
    dual = p / (p - 1)
    counts = np.bincount(y)
    values = []
    for signs in itertools.product((-1, 1), repeat=len(y)):
        total = 0.0
        for i in range(len(counts)):
            v = np.zeros(X.shape[1])
            for m, n in itertools.product(range(len(y)), repeat=2):
                if y[m] == i and y[n] != i:
                    v += (signs[m] + signs[n]) / 2 / (counts[i] * counts[y[n]]) * (X[m] - X[n])
            total += gamma * np.linalg.norm(v, ord=dual)
        values.append(total)
    return np.mean(values)


@pytest.mark.parametrize("p", [2.0, 1.3])
def test_estimate_is_the_definition(p):
    X, y = sample((3, 2, 2))
    found, stderr = linear_complexity(X, y, gamma=1.7, p=p, n_draws=1500)
    assert abs(found - exact(X, y, 1.7, p)) < 4 * stderr
    assert stderr < 0.03 * found


@pytest.mark.parametrize(("counts", "p"), [((20, 20), 2.0), ((40, 3, 2, 1), 2.0), ((5, 5, 5, 5, 5), 1.1)])
def test_estimate_stays_under_its_bound(counts, p):
    X, y = sample(counts)
    found, stderr = linear_complexity(X, y, p=p, n_draws=60)
    assert 0 < found + 4 * stderr < linear_bound(counts, p=p, radius=np.linalg.norm(X, axis=1).max())


def test_bounds_are_the_formulas():
    counts, gamma, radius, p, phi = (50, 30, 20), 1.5, 2.5, 1.25, 0.7
    rho = [n / 100 for n in counts]
    chi = math.sqrt(sum(1 / (a * b) for i, a in enumerate(rho) for j, b in enumerate(rho) if i != j))
    expected = phi * gamma * radius * math.sqrt(2 * 3 * (5 - 1)) * chi / math.sqrt(100)
    options = {"gamma": gamma, "radius": radius, "p": p, "lipschitz": phi}
    assert linear_bound(counts, **options) == pytest.approx(expected, rel=1e-12)


def test_the_order_of_the_lemma_is_the_stronger_one():
    """Sub-additivity first, then scalar contraction: the first form of the lemma in docs/theory.md."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts = rng.integers(1, 300, rng.integers(2, 9))
        C = len(counts)
        sides = sum(
            (C - 1) / math.sqrt(n) + math.sqrt(sum(1 / m for j, m in enumerate(counts) if j != i))
            for i, n in enumerate(counts)
        )
        assert sides <= linear_bound(counts) * (1 + 1e-12)


def test_the_lemma_is_wrong_for_p_above_2():
    """As printed, 0 < p < ∞: at p = 4 and in 400 dimensions it is far below the complexity itself."""
    counts, d, p = (20, 20), 400, 4.0
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (40, d)) / math.sqrt(d)
    dual = p / (p - 1)
    means = []
    for _ in range(50):
        sign = rng.choice([-1.0, 1.0], 40)
        v = directions(X, np.repeat([0, 1], 20), sign)
        means.append(np.linalg.norm(v, ord=dual, axis=1).sum())
    printed = linear_bound(counts) * math.sqrt(dual - 1)
    assert np.mean(means) > 1.3 * printed


def test_chaining_holds_for_linear_models():
    """Scores W x with |W_i| ≤ γ and |x| ≤ 1: balls of radius ε/1 in each row cover, (1 + 2γ/ε)^(C d) of them."""
    X, y = sample((200, 100, 50), d=2)
    found, _ = linear_complexity(X, y, gamma=0.5, n_draws=30)
    chained = bounds.chaining(lambda e: 3 * 2 * math.log1p(2 * 0.5 / e), (200, 100, 50), radius=0.5)
    assert found < chained
