"""What a wrong posterior costs in multiclass AUC: the bounds of docs/theory.md, and that their constant is sharp."""

import numpy as np
import pytest
from scipy.special import softmax


def lost(b, q, mass):
    """MAUC of b less that of q, where x has n values with these masses in the mixture of balanced classes."""
    n_classes = b.shape[1]
    g = n_classes * b * mass[:, None]
    assert g.sum(axis=0) == pytest.approx(1.0)
    others = (g.sum(axis=1, keepdims=True) - g) / (n_classes - 1)

    def mauc(f):
        t = f[:, None] - f[None]
        return np.einsum("xi,yi,xyi->", g, others, (t > 0) + 0.5 * (t == 0)) / n_classes

    return mauc(b) - mauc(q)


def balanced_problem(rng, n_points, n_classes):
    """Posterior and masses of random densities."""
    g = rng.dirichlet(np.full(n_points, rng.choice([0.2, 1.0, 5.0])), n_classes).T + 1e-12
    g /= g.sum(axis=0)
    mass = g.mean(axis=1)
    return g / g.sum(axis=1, keepdims=True), mass, g


def some_scores(rng, b):
    """Distributions near b, far from it, or constant."""
    kind = rng.integers(4)
    if kind == 0:
        return softmax(np.log(b) + rng.normal(size=b.shape) * rng.choice([0.01, 0.3, 3.0]), axis=1)
    if kind == 1:
        return rng.dirichlet(np.ones(b.shape[1]), len(b))
    if kind == 2:
        return np.full_like(b, 1.0 / b.shape[1])
    return softmax(-np.log(b) * 0.01, axis=1)  # the opposite order


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_regret_is_at_most_the_distance_of_the_posteriors(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(200):
        b, mass, _ = balanced_problem(rng, int(rng.integers(2, 9)), n_classes)
        q = some_scores(rng, b)
        distance = mass @ np.abs(b - q).sum(axis=1)
        divergence = mass @ (b * np.log(b / q)).sum(axis=1)
        factor = n_classes / (n_classes - 1)
        assert lost(b, q, mass) <= factor * distance + 1e-12
        assert distance <= np.sqrt(2 * divergence) + 1e-12


def test_the_constant_is_sharp():
    """Nearly all of the mass where b is ½; the rest in the wrong order, by next to nothing."""
    ends, step = 1e-3, 0.1
    mass = np.array([ends, 1 - 2 * ends, ends])
    up = np.array([0.5 + step, 0.5, 0.5 - step])
    wrong = np.array([0.5 - 1e-9, 0.5, 0.5 + 1e-9])
    b, q = (np.column_stack([each, 1 - each]) for each in (up, wrong))
    bound = 2 * (mass @ np.abs(b - q).sum(axis=1))
    assert 0.99 * bound < lost(b, q, mass) <= bound


@pytest.mark.parametrize("n_classes", [2, 4])
def test_adjusted_cross_entropy_needs_the_rarest_class(n_classes):
    rng = np.random.default_rng(n_classes)
    largest = 0.0
    for _ in range(200):
        b, mass, g = balanced_problem(rng, int(rng.integers(2, 9)), n_classes)
        p = rng.dirichlet(np.full(n_classes, 0.7)) + 1e-3
        p /= p.sum()
        joint = g * p
        seen, eta = joint.sum(axis=1), joint / joint.sum(axis=1, keepdims=True)
        q = some_scores(rng, b)
        estimated = q * p / (q * p).sum(axis=1, keepdims=True)
        excess = seen @ (eta * np.log(eta / estimated)).sum(axis=1)
        bound = 2 / ((n_classes - 1) * p.min()) * np.sqrt(2 * excess)
        assert lost(b, q, mass) <= bound + 1e-12
        largest = max(largest, lost(b, q, mass) / (n_classes / (n_classes - 1) * np.sqrt(2 * excess) + 1e-300))
    assert largest > 1, "without the factor it does not hold"


def test_networks_differ_by_no_more_than_their_layers_along_the_segment():
    """‖s − s′‖ <= R_x (1 + β/L)^L Π max(1, ‖A⁰‖) Σ ‖A − A′‖ for pairs of networks in the ball."""
    rng = np.random.default_rng(0)

    def norm(a):
        return np.linalg.norm(a, 2)

    def through(layers, x):
        for layer in layers[:-1]:
            x = np.maximum(layer @ x, 0.0)
        return layers[-1] @ x

    for _ in range(200):
        depth, beta = int(rng.integers(1, 5)), float(rng.choice([0.1, 1.0, 4.0]))
        start = [rng.normal(size=(4, 4)) * rng.choice([0.2, 0.5]) for _ in range(depth)]
        networks = []
        for _ in range(2):
            shares = beta * rng.dirichlet(np.full(depth, 0.3))
            steps = [rng.normal(size=(4, 4)) for _ in range(depth)]
            networks.append([a + s * e / norm(e) for a, s, e in zip(start, shares, steps, strict=True)])
        x = rng.normal(size=4)
        moved = sum(norm(a - b) for a, b in zip(*networks, strict=True))
        slope = (1 + beta / depth) ** depth * np.prod([max(1.0, norm(a)) for a in start])
        difference = np.linalg.norm(through(networks[0], x) - through(networks[1], x))
        assert difference <= slope * moved * np.linalg.norm(x) * (1 + 1e-12)
    assert 2.0 * 2.0 > (1 + 1 / 3) ** 3, "the product of the maxima alone, L = 3, β = 1, is too large"
