"""The bounds of :mod:`mauc.theory` hold in simulations, and what their proofs use is true."""

import numpy as np
import pytest
from scipy.special import softmax

from experiments import datasets
from mauc import MAUCClassifier, SurrogateRisk
from mauc.theory import bounds
from mauc.theory.bounds.theorems import SOFTMAX_SLOPE


def test_slope_of_softmax():
    """√2/4 in the 2-norm, as the bounds of networks and of linear models with softmax have it."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for n_classes in (2, 3, 10):
        logits = np.concatenate([rng.normal(0, s, (20_000, n_classes)) for s in (0.1, 1.0, 5.0)])
        logits[0] = np.array([0.0, 0.0] + [-50.0] * (n_classes - 2))
        f = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        gradient = f[:, :1] * (np.eye(n_classes)[0] - f)
        largest = max(largest, np.linalg.norm(gradient, axis=1).max())
    assert largest == pytest.approx(SOFTMAX_SLOPE, rel=1e-9)


def draw(known, counts, rng):
    y = np.repeat(np.arange(len(counts)), counts)
    X = known.draw(y, rng, np.dtype(float))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0), y  # in the unit ball


@pytest.mark.parametrize("counts", [(60, 60, 60), (300, 40, 10)])
def test_the_linear_bound_holds_in_simulation(counts):
    """For the fitted model, and for the worst model that ascent finds, over all samples; by a wide margin."""
    data = datasets.load_simulated(class_counts=[2, 2, 2], n_features=3, separation=1.0, seed=4)
    gamma = 3.0
    risk = SurrogateRisk("squared", alpha=1.0)
    constants = bounds.surrogate_constants("squared", radius=2 * gamma)
    rng = np.random.default_rng(0)
    X_test, y_test = draw(data.classes, (3000,) * 3, rng)
    gaps = []
    for _ in range(20):
        X, y = draw(data.classes, counts, rng)
        model = MAUCClassifier("squared", activation="identity", l2=1e-6, fit_intercept=False, max_iter=300).fit(X, y)
        W = model.coef_ * min(1.0, gamma / np.linalg.norm(model.coef_, axis=1).max())
        empirical, true = risk.value(y, X @ W.T), risk.value(y_test, X_test @ W.T)
        options = {"gamma": gamma, "radius": 1.0, "lipschitz": constants.lipschitz, "bound": constants.bound}
        assert true <= bounds.linear(empirical, counts, **options).total
        gaps.append(true - empirical)
    assert np.mean(gaps) > 0, "there is something to bound"


def test_the_complexity_bounds_the_expected_largest_gap():
    """E sup_W (R − R̂) for ℓ(t) = t is closed form, so the uniform statement itself can be tested, not one model."""
    counts, gamma = np.array([40, 15, 5]), 1.0
    rng = np.random.default_rng(1)
    means = rng.normal(size=(3, 4)) * 0.2
    largest = []
    for _ in range(300):
        centre = np.array([(means[k] + rng.uniform(-0.4, 0.4, (n, 4))).mean(axis=0) for k, n in enumerate(counts)])
        moved = means - centre
        # R − R̂ = Σ_i W_i · Σ_{j≠i} (moved_i − moved_j) / (C (C − 1))
        v = (3 * moved - moved.sum(axis=0)) / 6
        largest.append(gamma * np.linalg.norm(v, axis=1).sum())
    radius = np.linalg.norm(np.abs(means) + 0.4, axis=1).max()
    found = bounds.linear(0.0, counts, gamma=gamma, radius=radius, bound=2 * gamma * radius)
    assert np.mean(largest) < found.complexity
    assert np.quantile(largest, 0.95) < found.gap


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "exponential", "logistic"])
@pytest.mark.parametrize("activation", ["identity", "softmax"])
def test_the_complexity_bounds_the_largest_gap_that_ascent_finds(name, activation):
    """E sup_W (R − R̂), from below, for surrogates: gradient ascent on the difference of two risks."""
    counts, gamma = (60, 20, 6), 1.0
    data = datasets.load_simulated(class_counts=[2, 2, 2], n_features=3, separation=1.0, seed=4)
    rng = np.random.default_rng(5)
    risk = SurrogateRisk(name)
    X_true, y_true = draw(data.classes, (2000,) * 3, rng)
    largest = []
    for _ in range(10):
        X, y = draw(data.classes, counts, rng)
        best = -np.inf
        for _ in range(4):
            W = rng.normal(size=(3, 3))
            for step in range(60):
                W *= np.minimum(1.0, gamma / np.linalg.norm(W, axis=1, keepdims=True))
                value, slope = 0.0, np.zeros((3, 3))
                for sign, rows, classes in ((1.0, X_true, y_true), (-1.0, X, y)):
                    scores = rows @ W.T if activation == "identity" else softmax(rows @ W.T, axis=1)
                    part, gradient = risk.value_and_gradient(classes, scores)
                    if activation == "softmax":
                        gradient = scores * (gradient - (scores * gradient).sum(axis=1, keepdims=True))
                    value += sign * part
                    slope += sign * gradient.T @ rows
                best = max(best, value)
                W = W + gamma * slope / np.linalg.norm(slope) / (1 + 0.2 * step)
        largest.append(best)
    constants = bounds.surrogate_constants(name, radius=2 * gamma if activation == "identity" else 1.0)
    found = bounds.linear(0.0, counts, gamma=gamma, radius=1.0, lipschitz=constants.lipschitz, activation=activation)
    assert 0 < np.mean(largest) < found.complexity


@pytest.mark.parametrize(("name", "counts"), [("squared", (6, 3, 2)), ("exponential", (1, 1, 8))])
def test_the_risk_is_unbiased(name, counts):
    """Proposition 1: the mean of R̂ over samples is R, however rare a class."""
    rng = np.random.default_rng(len(name))
    means = np.array([[0.5, 0.0, -0.2], [0.0, 0.3, 0.0], [-0.1, 0.1, 0.4]])  # of the scores, class by class
    risk = SurrogateRisk(name)
    y = np.repeat(np.arange(3), counts)
    values = np.array([risk.value(y, means[y] + rng.uniform(-0.5, 0.5, (len(y), 3))) for _ in range(1500)])
    ell = risk.surrogate.loss
    difference = rng.uniform(-0.5, 0.5, 400_000) - rng.uniform(-0.5, 0.5, 400_000)
    true = np.mean([ell(means[i, i] - means[j, i] + difference).mean() for i in range(3) for j in range(3) if i != j])
    assert abs(values.mean() - true) < 4 * values.std() / np.sqrt(len(values)) + 2e-3
