"""The complexity of a finite list of models, and Theorem 4 against it."""

import itertools
import math

import numpy as np
import pytest

from experiments.tests.theory.complexity import complexity


def tried(models, y, ell, by_column=False):
    """Definition 2 for a list of models as it is written: every sign pattern, every pair."""
    counts = np.bincount(y)
    total = 0.0
    for sign in itertools.product((-1, 1), repeat=len(y)):
        values = np.zeros((len(models), len(counts)))
        for k, scores in enumerate(models):
            for m, n in itertools.product(range(len(y)), repeat=2):
                if y[m] != y[n]:
                    weight = (sign[m] + sign[n]) / 2 / (counts[y[m]] * counts[y[n]])
                    values[k, y[m]] += weight * ell(scores[m, y[m]] - scores[n, y[m]])
        total += values.max(axis=0).sum() if by_column else values.sum(axis=1).max()
    return total / 2 ** len(y)


@pytest.mark.parametrize("by_column", [False, True])
def test_it_is_the_definition(by_column):
    y = np.array([0, 0, 1, 1, 2])
    models = np.random.default_rng(0).random((4, 5, 3))
    found, stderr = complexity(models, y, loss=lambda t: np.exp(-2 * t), by_column=by_column)
    assert found == pytest.approx(tried(models, y, lambda t: math.exp(-2 * t), by_column), rel=1e-12)
    assert stderr == 0
    drawn, stderr = complexity(models, y, loss=lambda t: np.exp(-2 * t), by_column=by_column, most_exact=0)
    assert 0 < abs(drawn - found) < 4 * stderr


def test_theorem_4_with_the_joint_complexity():
    """Product classes: E sup (R − R̂) over samples of two points a class is at most 4 E R̂ad / (C (C − 1))."""
    rng = np.random.default_rng(3)
    places, ell = rng.random((3, 4, 6)), lambda t: np.exp(-3 * t)  # of each column: 4 functions of 6 values of x
    chances = rng.dirichlet(np.ones(6), 3)
    y = np.repeat([0, 1, 2], (3, 2, 2))
    means = [
        [np.mean([g @ ell(f[:, None] - f) @ chances[j] for j in range(3) if j != i]) for f in places[i]]
        for i, g in enumerate(chances)
    ]
    gaps, complexities = [], []
    for _ in range(120):
        x = np.array([rng.choice(6, p=chances[c]) for c in y])
        largest = 0.0
        for i in range(3):
            losses = ell(places[i][:, x[y == i]][:, :, None] - places[i][:, x[y != i]][:, None, :])
            weights = 1 / np.bincount(y)[y[y != i]]
            sample = (losses.mean(axis=1) * weights).sum(axis=1) / 2
            largest += (np.array(means[i]) - sample).max() / 3
        gaps.append(largest)
        models = [
            np.column_stack([places[i, k[i]][x] for i in range(3)]) for k in itertools.product(range(4), repeat=3)
        ]
        complexities.append(complexity(models, y, loss=ell)[0])
    assert 0 < np.mean(gaps) < 4 * np.mean(complexities) / 6
