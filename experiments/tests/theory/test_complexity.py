"""The complexity of a finite list of models, and Theorems 4 to 6 against it."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import softmax

from experiments.theory import finite, logit_chaining, transformation_bound


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
def test_finite_is_the_definition(by_column):
    y = np.array([0, 0, 1, 1, 2])
    models = np.random.default_rng(0).random((4, 5, 3))
    found = finite(models, y, surrogate="exponential", alpha=2.0, by_column=by_column)
    assert found.value == pytest.approx(tried(models, y, lambda t: math.exp(-2 * t), by_column), rel=1e-12)
    assert found.stderr == 0
    assert 0 < found.value < found.bound
    assert finite(models[:1], y).value == pytest.approx(0.0, abs=1e-12), "one model follows no signs"


def test_finite_by_simulation_is_near_the_exact_one():
    y, models = np.repeat([0, 1, 2], (6, 4, 2)), np.random.default_rng(1).random((6, 12, 3))
    exactly = finite(models, y)
    drawn = finite(models, y, exact_up_to=5)
    assert drawn.stderr > 0
    assert abs(drawn.value - exactly.value) < 4 * drawn.stderr


def test_joint_and_by_column():
    """The sum over columns is not smaller, and for all combinations of columns it is the same."""
    y, columns = np.array([0, 0, 1, 1, 1, 2]), np.random.default_rng(2).random((3, 2, 6))
    product = [np.column_stack(c) for c in itertools.product(*columns)]
    tied = [np.column_stack([columns[i, k] for i in range(3)]) for k in range(2)]
    for models in (product, tied):
        joint, by_column = (finite(models, y, surrogate="squared", by_column=a).value for a in (False, True))
        assert joint <= by_column + 1e-12
    assert finite(product, y, by_column=True).value == pytest.approx(finite(product, y).value)


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
        complexities.append(finite(models, y, surrogate="exponential", alpha=3.0).value)
    assert 0 < np.mean(gaps) < 4 * np.mean(complexities) / 6


@pytest.mark.parametrize("part", ["a", "b"])
def test_logit_chaining_holds_for_softmax_of_linear_logits(part):
    """A fine net of linear logits stands for the class; its complexity is below both parts of Theorem 5."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], (40, 20, 10))
    X = rng.normal(size=(70, 2)) + rng.normal(size=(3, 2))[y]
    X /= np.linalg.norm(X, axis=1).max()
    W = rng.normal(size=(300, 3, 2))
    W *= 2.0 / np.linalg.norm(W, axis=2, keepdims=True)
    found = finite(softmax(np.einsum("nd,kcd->knc", X, W), axis=2), y, n_draws=500)
    bound = logit_chaining(lambda e: 6 * math.log1p(4 / e), (40, 20, 10), logit_bound=2.0, part=part)
    assert found.value + 4 * found.stderr < bound
    # Theorem 6, from the ordinary complexity of the same logits: E sup Σ σ_jk w_j·x_k = 2 Σ_j |Σ_k σ_jk x_k|
    norms = np.linalg.norm(np.einsum("sjk,kd->sjd", rng.choice([-1.0, 1.0], (400, 3, 70)), X), axis=2)
    ordinary = 2 * norms.sum(axis=1).mean() / (70 * 3)
    assert found.value < transformation_bound(ordinary, (40, 20, 10), logit_bound=2.0)


def test_parts_of_theorem_5_are_their_formulas():
    counts, top = np.array([500, 300, 200]), 2.0
    rate = 2 * math.sqrt(sum(1000 / n for n in counts)) / math.sqrt(1000)

    def cover(e):
        return 5 * math.log1p(3 / e)

    sums = []
    for K in range(1, 25):
        steps = sum(top * 2.0**-k * math.sqrt(cover(top * 2.0**-k)) for k in range(1, K + 1))
        sums.append(6 * top * 2.0**-K + 6 * rate * steps)
    a = logit_chaining(cover, counts, logit_bound=top, part="a")
    assert a == pytest.approx(min(sums), rel=1e-12)
    scales = np.linspace(1e-6, top, 20_001)
    middle = np.sqrt([cover(e) for e in 0.5 * (scales[1:] + scales[:-1])])
    tails = np.concatenate([np.cumsum((np.diff(scales) * middle)[::-1])[::-1], [0.0]])
    b = logit_chaining(cover, counts, logit_bound=top, part="b", lipschitz=3.0)
    assert b == pytest.approx(36 * (6 * scales + rate * tails).min(), rel=0.02)
    assert a < b / 3


def test_messages():
    y = np.array([0, 0, 0, 1, 1, 1, 1])
    with pytest.raises(ValueError, match=r"scores must be arrays of shape \(7, 2\), one row per sample"):
        finite([np.ones((7, 3))], y)
    with pytest.raises(ValueError, match="scores must be a list of one array or more, got none"):
        finite([], y)
    with pytest.raises(ValueError, match=r"logit_bound must be at least 1 / \(e N C\)"):
        transformation_bound(1.0, [3, 3], logit_bound=1e-9)
    with pytest.raises(ValueError, match="part must be one of 'a', 'b', got 'c'"):
        logit_chaining(lambda e: 1.0, [3, 3], logit_bound=1.0, part="c")
