"""Definition 2 by simulation, its bounds, and chaining."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import softmax

from mauc.surrogates import CustomSurrogate
from mauc.theory import rademacher
from mauc.theory.rademacher.simulation import _dual_vector


def sample(counts, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    X = rng.normal(size=(len(y), d)) + rng.normal(size=(len(counts), d))[y]
    return X / np.linalg.norm(X, axis=1).max(), y


def exact(X, y, gamma, p, split):
    """Definition 2 for ℓ(t) = t as it is written: every sign pattern, every pair."""
    dual = p / (p - 1)
    counts = np.bincount(y)
    values = []
    for signs in itertools.product((-1, 1), repeat=len(y)):
        total = 0.0
        for half in ((1, 0), (0, 1)) if split else ((1, 1),):
            for i in range(len(counts)):
                v = np.zeros(X.shape[1])
                for m, n in itertools.product(range(len(y)), repeat=2):
                    if y[m] == i and y[n] != i:
                        weight = (half[0] * signs[m] + half[1] * signs[n]) / 2 / (counts[i] * counts[y[n]])
                        v += weight * (X[m] - X[n])
                total += gamma * np.linalg.norm(v, ord=dual)
        values.append(total)
    return np.mean(values)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("p", [2.0, 1.3])
def test_estimate_is_the_definition(p, split):
    X, y = sample((3, 2, 2))
    found = rademacher.linear(X, y, gamma=1.7, p=p, split=split, n_draws=1500)
    assert found.exact
    assert abs(found.lower - exact(X, y, 1.7, p, split)) < 4 * found.stderr
    assert found.stderr < 0.03 * found.lower


@pytest.mark.parametrize("counts", [(20, 20), (60, 30, 10), (40, 3, 2, 1), (5, 5, 5, 5, 5)])
@pytest.mark.parametrize("p", [2.0, 1.5, 1.1])
def test_estimate_stays_under_its_bound(counts, p):
    X, y = sample(counts)
    whole = rademacher.linear(X, y, p=p, n_draws=60)
    halves = rademacher.linear(X, y, p=p, n_draws=60, split=True)
    assert whole.lower <= halves.lower + 1e-12, "a supremum of a sum is not above the sum of suprema"
    assert 0 < halves.lower + 4 * halves.stderr < halves.bound
    assert whole.bound == pytest.approx(
        rademacher.linear_bound(counts, p=p, radius=np.linalg.norm(X, axis=1).max()), rel=1e-12
    )


@pytest.mark.parametrize("name", ["squared", "exponential", "hinge", "logistic"])
def test_bracket_of_a_surrogate(name):
    X, y = sample((15, 8, 4))
    found = rademacher.linear(X, y, surrogate=name, gamma=0.7, n_draws=40)
    assert 0 < found.lower < found.upper
    assert not found.exact
    assert found.upper <= found.bound
    assert found.lower + 4 * found.stderr < found.bound


def test_the_lower_end_meets_the_closed_form_where_there_is_one():
    X, y = sample((8, 6, 3))
    line = CustomSurrogate(lambda t: t, np.ones_like)
    for p in (2.0, 1.4):
        bracketed = rademacher.linear(X, y, surrogate=line, p=p, n_draws=20)
        closed = rademacher.linear(X, y, p=p, n_draws=20)
        assert bracketed.lower == pytest.approx(closed.lower, rel=1e-9)


@pytest.mark.parametrize("p", [2.0, 1.5, 1.05])
def test_dual_vector(p):
    v = np.random.default_rng(0).normal(size=6)
    w = _dual_vector(v, 2.0, p / (p - 1))
    assert np.linalg.norm(w, ord=p) == pytest.approx(2.0)
    assert w @ v == pytest.approx(2.0 * np.linalg.norm(v, ord=p / (p - 1)))
    assert not _dual_vector(np.zeros(3), 2.0, 2.0).any()


def test_bounds_are_the_formulas():
    counts, gamma, radius, p, phi = (50, 30, 20), 1.5, 2.5, 1.25, 0.7
    rho = [n / 100 for n in counts]
    chi = math.sqrt(sum(1 / (a * b) for i, a in enumerate(rho) for j, b in enumerate(rho) if i != j))
    expected = phi * gamma * radius * math.sqrt(2 * 3 * (5 - 1)) * chi / math.sqrt(100)
    options = {"gamma": gamma, "radius": radius, "p": p, "lipschitz": phi}
    assert rademacher.linear_bound(counts, **options) == pytest.approx(expected, rel=1e-12)
    total = sum(
        2 / math.sqrt(n) + math.sqrt(2 * sum(1 / m for j, m in enumerate(counts) if j != i))
        for i, n in enumerate(counts)
    )
    expected = math.sqrt(2) * phi * gamma * radius * math.sqrt(5 - 1) * total
    assert rademacher.contraction_bound(counts, **options) == pytest.approx(expected, rel=1e-12)


def test_the_order_of_the_lemma_is_the_stronger_one():
    """Sub-additivity first, then scalar contraction: below the printed form, and far below vector contraction."""
    rng = np.random.default_rng(0)
    below = []
    for _ in range(200):
        counts = rng.integers(1, 300, rng.integers(2, 9))
        sharp = rademacher.linear_bound(counts, sharp=True)
        C = len(counts)
        sides = sum(
            (C - 1) / math.sqrt(n) + math.sqrt(sum(1 / m for j, m in enumerate(counts) if j != i))
            for i, n in enumerate(counts)
        )
        assert sharp == pytest.approx(sides, rel=1e-12)
        assert sharp <= rademacher.linear_bound(counts) * (1 + 1e-12)
        below.append(rademacher.contraction_bound(counts) / sharp)
    assert min(below) >= math.sqrt(2) - 1e-12
    assert max(below) > 1.9


def test_the_lemma_is_wrong_for_p_above_2():
    """As printed, 0 < p < ∞: at p = 4 and in 400 dimensions it is far below the complexity itself."""
    counts, d, p = (20, 20), 400, 4.0
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (40, d)) / math.sqrt(d)
    dual = p / (p - 1)
    means = []
    for _ in range(50):
        sign = rng.choice([-1.0, 1.0], 40)
        v = rademacher.simulation._directions(X, np.repeat([0, 1], 20), sign, 2, 1.0, 1.0)
        means.append(np.linalg.norm(v, ord=dual, axis=1).sum())
    printed = rademacher.linear_bound(counts) * math.sqrt(dual - 1)
    assert np.mean(means) > 1.3 * printed


def tried(models, y, ell, apart=False):
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
        total += values.max(axis=0).sum() if apart else values.sum(axis=1).max()
    return total / 2 ** len(y)


@pytest.mark.parametrize("apart", [False, True])
def test_finite_is_the_definition(apart):
    y = np.array([0, 0, 1, 1, 2])
    models = np.random.default_rng(0).random((4, 5, 3))
    found = rademacher.finite(models, y, surrogate="exponential", alpha=2.0, apart=apart)
    assert found.lower == found.upper == pytest.approx(tried(models, y, lambda t: math.exp(-2 * t), apart), rel=1e-12)
    assert found.stderr == 0
    assert 0 < found.lower < found.bound
    assert rademacher.finite(models[:1], y).lower == pytest.approx(0.0, abs=1e-12), "one model follows no signs"


def test_finite_by_simulation_is_near_the_exact_one(monkeypatch):
    y, models = np.repeat([0, 1, 2], (6, 4, 2)), np.random.default_rng(1).random((6, 12, 3))
    exactly = rademacher.finite(models, y)
    monkeypatch.setattr(rademacher.finite_lists, "EXACT", 5)
    drawn = rademacher.finite(models, y)
    assert drawn.stderr > 0
    assert abs(drawn.lower - exactly.lower) < 4 * drawn.stderr


def test_joint_and_apart():
    """Apart is not smaller, and for all combinations of columns it is the same."""
    y, columns = np.array([0, 0, 1, 1, 1, 2]), np.random.default_rng(2).random((3, 2, 6))
    product = [np.column_stack(c) for c in itertools.product(*columns)]
    tied = [np.column_stack([columns[i, k] for i in range(3)]) for k in range(2)]
    for models in (product, tied):
        joint, apart = (rademacher.finite(models, y, surrogate="squared", apart=a).lower for a in (False, True))
        assert joint <= apart + 1e-12
    assert rademacher.finite(product, y, apart=True).lower == pytest.approx(rademacher.finite(product, y).lower)


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
        complexities.append(rademacher.finite(models, y, surrogate="exponential", alpha=3.0).lower)
    assert 0 < np.mean(gaps) < 4 * np.mean(complexities) / 6


@pytest.mark.parametrize("part", ["a", "b"])
def test_logit_chaining_holds_for_softmax_of_linear_logits(part):
    """A fine net of linear logits stands for the class; its complexity is below both parts of Theorem 5."""
    X, y = sample((40, 20, 10), d=2)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(300, 3, 2))
    W *= 2.0 / np.linalg.norm(W, axis=2, keepdims=True)
    found = rademacher.finite(softmax(np.einsum("nd,kcd->knc", X, W), axis=2), y, n_draws=500)
    bound = rademacher.logit_chaining(lambda e: 6 * math.log1p(4 / e), (40, 20, 10), logit_bound=2.0, part=part)
    assert found.lower + 4 * found.stderr < bound
    # Theorem 6, from the ordinary complexity of the same logits: E sup Σ σ_jk w_j·x_k = 2 Σ_j |Σ_k σ_jk x_k|
    norms = np.linalg.norm(np.einsum("sjk,kd->sjd", rng.choice([-1.0, 1.0], (400, 3, 70)), X), axis=2)
    ordinary = 2 * norms.sum(axis=1).mean() / (70 * 3)
    assert found.lower < rademacher.transformation_bound(ordinary, (40, 20, 10), logit_bound=2.0)


def test_parts_of_theorem_5_are_their_formulas():
    counts, top = np.array([500, 300, 200]), 2.0
    rate = 2 * math.sqrt(sum(1000 / n for n in counts)) / math.sqrt(1000)

    def cover(e):
        return 5 * math.log1p(3 / e)

    sums = []
    for K in range(1, 25):
        steps = sum(top * 2.0**-k * math.sqrt(cover(top * 2.0**-k)) for k in range(1, K + 1))
        sums.append(6 * top * 2.0**-K + 6 * rate * steps)
    a = rademacher.logit_chaining(cover, counts, logit_bound=top, part="a")
    assert a == pytest.approx(min(sums), rel=1e-12)
    scales = np.linspace(1e-6, top, 20_001)
    middle = np.sqrt([cover(e) for e in 0.5 * (scales[1:] + scales[:-1])])
    tails = np.concatenate([np.cumsum((np.diff(scales) * middle)[::-1])[::-1], [0.0]])
    b = rademacher.logit_chaining(cover, counts, logit_bound=top, part="b", lipschitz=3.0)
    assert b == pytest.approx(36 * (6 * scales + rate * tails).min(), rel=0.02)
    assert a < b / 3


def test_chaining_is_its_integral():
    """√log N = 1/ε² has integrals, hence the best α, in closed form."""
    counts = np.array([500, 300, 200])
    xi = math.sqrt(sum(1000 / n for n in counts))
    rate = 24 * 2 * xi / math.sqrt(1000)
    alpha = math.sqrt(rate / (8 * 6))  # where the derivative 8 C (C − 1) − rate / α² is 0
    top = 2.0 * alpha
    expected = 8 * 6 * alpha + rate * (1 / alpha - 1 / top)
    found = rademacher.chaining(lambda e: e**-4, counts, radius=2 * top)
    assert expected <= found <= 1.02 * expected
    assert rademacher.chaining(lambda e: e**-4, counts, radius=2 * top, lipschitz=3.0) == pytest.approx(3 * found)
    assert rademacher.chaining(lambda e: 0.0, counts) < 1e-9


def test_chaining_of_a_finite_class_is_massarts_lemma_up_to_a_constant():
    counts, n_models = (400, 400), 50
    found = rademacher.chaining(lambda e: math.log(n_models), counts)
    # The largest of n values of variance proxy s² D² is at most s D √(2 log n), with s = 2 φ (C − 1) ξ / √N.
    massart = 2 * math.sqrt(4 / 800) * 0.5 * math.sqrt(2 * math.log(n_models))
    assert massart <= found <= 10 * massart


def test_chaining_holds_for_linear_models():
    """Scores W x with |W_i| ≤ γ and |x| ≤ 1: balls of radius ε/1 in each row cover, (1 + 2γ/ε)^(C d) of them."""
    X, y = sample((200, 100, 50), d=2)
    found = rademacher.linear(X, y, gamma=0.5, n_draws=30, split=True)
    chained = rademacher.chaining(lambda e: 3 * 2 * math.log1p(2 * 0.5 / e), (200, 100, 50), radius=0.5)
    assert found.lower < chained


@pytest.mark.parametrize("factor", [2, 10])
def test_chaining_falls_with_the_size(factor):
    def cover(e):
        return 20 * math.log1p(1 / e)

    counts = np.array([30_000, 20_000, 10_000])
    assert rademacher.chaining(cover, counts * factor) == pytest.approx(
        rademacher.chaining(cover, counts) / math.sqrt(factor), rel=0.05
    )
    assert rademacher.chaining(cover, [3, 2, 1]) <= 8 * 6 * 0.25, "never above the trivial one"


def test_bad_arguments():
    X, y = sample((4, 3))
    with pytest.raises(ValueError, match="p must be a finite number above 1 and at most 2, got 1: use p=2"):
        rademacher.linear(X, y, p=1)
    with pytest.raises(ValueError, match="gamma must be a finite number of at least 0, got -1"):
        rademacher.linear(X, y, gamma=-1)
    with pytest.raises(ValueError, match="y must have one class per row of X, got 6 for 7 rows"):
        rademacher.linear(X, y[:-1])
    with pytest.raises(ValueError, match="n_draws must be a whole number of at least 2"):
        rademacher.linear(X, y, n_draws=1)
    with pytest.raises(ValueError, match="log_covering_number must be at least 0, got -1"):
        rademacher.chaining(lambda e: -1.0, [3, 3])
    with pytest.raises(ValueError, match="log_covering_number must not increase"):
        rademacher.chaining(lambda e: e, [3, 3])
    with pytest.raises(ValueError, match=r"scores must be arrays of shape \(7, 2\), one row per sample"):
        rademacher.finite([np.ones((7, 3))], y)
    with pytest.raises(ValueError, match="scores must be a list of one array or more, got none"):
        rademacher.finite([], y)
    with pytest.raises(ValueError, match=r"logit_bound must be at least 1 / \(e N C\)"):
        rademacher.transformation_bound(1.0, [3, 3], logit_bound=1e-9)
    with pytest.raises(ValueError, match="part must be one of 'a', 'b', got 'c'"):
        rademacher.logit_chaining(lambda e: 1.0, [3, 3], logit_bound=1.0, part="c")
    with pytest.raises(ValueError, match="class_counts must be at least 1 in every class, got 0 for class 1: drop"):
        rademacher.linear_bound([3, 0])
