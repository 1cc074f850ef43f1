"""Sweeps find what trying every interval finds."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from mauc.decision.sweep import DecisionProblem, _sweep, least_loss


def draw(seed, n_samples=25, n_classes=3, ties=False):
    """Posteriors, some of them equal; costs of any kind, also of a decision that is never the best."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n_samples)
    posterior = rng.dirichlet(np.ones(n_classes), n_samples) * np.exp(1.5 * np.eye(n_classes)[codes])
    if ties:
        posterior = np.ceil(4 * posterior) / 4
    costs = rng.gamma(1.0, size=(n_classes, n_classes)) * (1 - np.eye(n_classes))
    weight = rng.gamma(2.0, size=n_samples)
    return DecisionProblem(posterior, codes, weight / weight.sum(), costs, np.zeros((n_classes, n_classes)))


def brute_force(problem, shifts, k):
    """The least loss over all shifts of class k: the loss in between all crossings of any two lines of any row."""
    others = problem.posterior * np.exp(shifts)
    others[:, k] = 0.0
    intercept, slope = others @ problem.costs, problem.posterior[:, [k]] * problem.costs[k]
    crossings = []
    for a, b in combinations(range(len(problem.costs)), 2):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (intercept[:, a] - intercept[:, b]) / (slope[:, b] - slope[:, a])
        crossings.extend(np.log(t[np.isfinite(t) & (t > 0)]))
    edges = np.unique(crossings)
    edges = edges[np.diff(edges, prepend=-np.inf) > 1e-9]
    points = np.concatenate([[edges[0] - 1], (edges[1:] + edges[:-1]) / 2, [edges[-1] + 1]])
    return min(problem.loss(np.where(np.arange(len(shifts)) == k, point, shifts)) for point in points)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_sweep_finds_the_best_interval(n_classes, ties):
    for seed in range(8):
        problem = draw(seed, n_classes=n_classes, ties=ties)
        shifts = np.random.default_rng(seed).normal(size=n_classes)
        for k in range(n_classes):
            found = np.where(np.arange(n_classes) == k, _sweep(problem, shifts, k), shifts)
            assert problem.loss(found) == pytest.approx(brute_force(problem, shifts, k), abs=1e-12)


def test_the_end_is_one_that_no_class_alone_betters():
    for seed in range(5):
        problem = draw(seed, n_samples=60, n_classes=4)
        shifts, least = least_loss(problem, np.zeros(4))
        assert least == pytest.approx(problem.loss(shifts), abs=1e-12)
        assert least < problem.loss(np.zeros(4))
        for k in range(4):
            assert least <= brute_force(problem, shifts, k) + 1e-12


def test_a_metric_is_asked_in_place_of_the_costs():
    problem = draw(0, n_samples=20)
    right = DecisionProblem(problem.posterior, problem.codes, np.full(20, 0.05), 1 - np.eye(3), problem.penalty)
    asked = replace(right, metric=lambda taken: float(np.mean(taken == right.codes)))
    by_costs, cost = least_loss(right, np.zeros(3))
    by_metric, score = least_loss(asked, np.zeros(3))
    assert -score == pytest.approx(1.0 - cost)
    np.testing.assert_array_equal(right.decisions(by_costs), right.decisions(by_metric))


def test_the_penalty_holds_the_shifts_together():
    problem = draw(3, n_samples=60, n_classes=4)
    for strength in (1e-3, 1e-2, 1e3):
        tied = replace(problem, penalty=strength * (1 - np.eye(4)))
        shifts, least = least_loss(tied, np.zeros(4))
        assert least <= tied.objective(np.zeros(4))
        assert least == pytest.approx(tied.objective(shifts))
        assert (np.ptp(shifts) == 0.0) == (strength > 1.0)
