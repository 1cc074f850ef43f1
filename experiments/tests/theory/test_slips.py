"""What the paper prints, computed, beside what is true: each test fails on the print. The list is in docs/theory.md."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import softmax

from experiments.tests.theory.complexity import linear_complexity
from experiments.theory import linear_bound
from mauc import SurrogateRisk, mauc_score
from mauc.theory import ova_weights

N_CLASSES = 3
Y = np.repeat(np.arange(N_CLASSES), (6, 9, 5))
N = np.bincount(Y)
F = np.random.default_rng(0).random((len(Y), N_CLASSES))


def pairwise(loss, f=F):
    """Σ over i ≠ j of the mean over the pairs: the definition, not divided by C (C − 1)."""
    t = {(i, j): f[i == Y, i][:, None] - f[j == Y, i] for i, j in itertools.permutations(range(N_CLASSES), 2)}
    return sum(loss(difference).mean() for difference in t.values())


def slopes(value, at, step=1e-6):
    """Central differences."""
    out = np.zeros_like(at)
    for place in np.ndindex(*at.shape):
        moved = [at.copy(), at.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        out[place] = (value(moved[0]) - value(moved[1])) / (2 * step)
    return out


def test_example_1():
    pairs = np.ones((3, 3))
    pairs[0, 1] = 0.8
    found = np.sum(ova_weights([0.5, 0.45, 0.05]) * pairs)
    assert found == pytest.approx(0.940, abs=1e-12)
    assert abs(found - 0.933) > 5e-3


def test_ties_and_the_factor_of_the_risk():
    assert mauc_score(Y, np.ones((len(Y), 3))) == 0.5, "the evaluation formula, without ties, says 0"
    assert SurrogateRisk("exponential", alpha=1.0).value(Y, F) == pytest.approx(pairwise(lambda t: np.exp(-t)) / 6)


def test_generalized_hinge_as_printed_jumps():
    def printed(t, epsilon=0.1):
        return 1 - t if t <= 1 - epsilon else (t - 1 - epsilon) ** 2 / (4 * epsilon) if t < 1 else 0.0

    assert printed(1 - 1e-12) - printed(1 + 1e-12) == pytest.approx(0.025)


def cal_index(positive, negative, alpha, *, printed):
    """Algorithm 1: the place of the last active negative of every positive; unless printed, −1 where there is none."""
    p = q = 0
    last = np.zeros(len(positive), dtype=int)
    floor = 0 if printed else -1
    while p < len(positive) and q < len(negative):
        if positive[p] - negative[q] < alpha:
            q += 1
        else:
            last[p] = max(q - 1, floor)
            p += 1
    last[p:] = q - 1
    return last


def hinge_by_algorithm_2(alpha, *, index, printed_index=False, f=F, y=Y):
    """``index`` is the subscript of the negative's score in the sum over u: "u", or "k" as printed."""
    counts, loss = np.bincount(y), 0.0
    for i in range(len(counts)):
        positive = np.sort(f[y == i, i])[::-1]
        order = np.argsort(-f[y != i, i])
        negative, weight = f[y != i, i][order], 1 / (counts[i] * counts[y[y != i][order]])
        begin = total = moment = 0
        for k, last in enumerate(cal_index(positive, negative, alpha, printed=printed_index)):
            new = range(begin, last + 1)
            total += sum(weight[u] for u in new)
            moment += sum(weight[u] * negative[u if index == "u" else k] for u in new)
            begin = max(begin, last + 1)
            loss += (alpha - positive[k]) * total + moment
    return loss


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
def test_algorithm_2_sums_the_score_of_the_wrong_negative(alpha):
    true = pairwise(lambda t: np.maximum(alpha - t, 0))
    assert hinge_by_algorithm_2(alpha, index="u") == pytest.approx(true, rel=1e-12)
    assert hinge_by_algorithm_2(alpha, index="k") > 1.1 * true


def test_cal_index_cannot_express_an_empty_set():
    f, y = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0, 1])
    assert hinge_by_algorithm_2(0.1, index="u", f=f, y=y) == 0.0
    assert hinge_by_algorithm_2(0.1, index="u", f=f, y=y, printed_index=True) < 0, "a hinge below 0"


def squared_by_algorithm_3(f, alpha, margin):
    """½ Δᵀ(κ ⊙ Δ) − Δ₁ Δ₂ with Δ = margin·Y − f; the print has no α and no 2 before it."""
    total, gradient = 0.0, np.zeros_like(f)
    for i in range(N_CLASSES):
        own = (i == Y).astype(float)
        D = (1 - own) / (N[i] * N[Y])
        delta = (alpha if margin else 1.0) * own - f[:, i]
        kappa = N[i] * D + (N_CLASSES - 1) / N[i] * own
        first, second = delta @ D, own @ delta
        total += 0.5 * delta @ (kappa * delta) - first * second
        gradient[:, i] = kappa * delta - second * D - first * own
    return total, gradient


def test_squared_scheme_and_the_sign_of_its_gradient():
    alpha = 0.7
    true = pairwise(lambda t: (alpha - t) ** 2)
    value, gradient = squared_by_algorithm_3(F, alpha, margin=True)
    assert 2 * value == pytest.approx(true, rel=1e-12), "half of its own definition"
    assert 2 * squared_by_algorithm_3(F, alpha, margin=False)[0] == pytest.approx(pairwise(lambda t: (1 - t) ** 2))
    numeric = slopes(lambda f: pairwise(lambda t: (alpha - t) ** 2, f), F)
    assert -2 * gradient == pytest.approx(numeric, abs=1e-7), "Δ falls with f"
    assert np.abs(gradient - numeric).max() > 0.1


def test_exponential_scheme_and_the_index_of_its_gradient():
    """Positives e^{−αf}, and in the sum over j everything but the derivative of f_j has the subscript j."""
    alpha, Z = 2.0, np.random.default_rng(1).normal(size=F.shape)

    def halves(f, sign=1.0):
        a = [np.exp(-sign * alpha * f[j == Y, j]).sum() for j in range(N_CLASSES)]
        b = [(np.exp(sign * alpha * f[j != Y, j]) / (N[j] * N[Y[j != Y]])).sum() for j in range(N_CLASSES)]
        return np.array(a), np.array(b)

    def gradient(f, subscript):
        a, b = halves(f)
        out = np.zeros_like(f)
        for i, j in itertools.product(range(N_CLASSES), repeat=2):
            k = j if subscript == "j" else i
            own, D = (k == Y).astype(float), (k != Y) / (N[k] * N[Y])
            inner = f[:, j] * ((i == j) - f[:, i])
            out[:, i] += alpha * inner * (a[j] * D * np.exp(alpha * f[:, k]) - b[j] * own * np.exp(-alpha * f[:, k]))
        return out

    f = softmax(Z, axis=1)
    true = pairwise(lambda t: np.exp(-alpha * t), f)
    assert np.dot(*halves(f)) == pytest.approx(true, rel=1e-12)
    assert abs(np.dot(*halves(f, sign=-1.0)) - true) > 0.1, "with the two signs exchanged"
    numeric = slopes(lambda z: pairwise(lambda t: np.exp(-alpha * t), softmax(z, axis=1)), Z)
    assert gradient(f, "j") == pytest.approx(numeric, abs=1e-7)
    assert np.abs(gradient(f, "i") - numeric).max() > 0.05


def test_bernstein_sums_begin_at_0():
    def polynomial(u, begin, degree=8):
        return sum(
            (1 - k / degree) * math.comb(degree, k) * u**k * (1 - u) ** (degree - k) for k in range(begin, degree + 1)
        )

    assert polynomial(0.2, 0) == pytest.approx(0.8), "of 1 − u, exactly"
    assert abs(polynomial(0.2, 1) - 0.8) > 0.1


def test_moment_lemmas_have_a_square_too_many():
    """For Z = σ c, v = c²: log E e^{λZ} <= λ² v / 2, not λ² v² / 2; and E max <= √(2 v log n) needs λ²."""
    c, lam = 0.1, 1.0
    v = c**2
    true = math.log(math.cosh(lam * c))
    assert true <= lam**2 * v / 2
    assert true > lam**2 * v**2 / 2
    # A standard normal has log E e^{λZ} = λ²/2, which is no more than λ V²/2 for a V only while λ <= V².
    assert all(lam**2 / 2 > lam * 3.0**2 / 2 for lam in (10.0, 100.0))


def test_the_radius_is_the_norm_not_its_square():
    rng = np.random.default_rng(0)
    X = 0.05 * rng.normal(size=(40, 3))
    y = np.repeat([0, 1], (30, 10))
    found, _ = linear_complexity(X, y, n_draws=50)
    radius = np.linalg.norm(X, axis=1).max()
    assert found < linear_bound([30, 10], radius=radius)
    assert found > linear_bound([30, 10], radius=radius**2)


def test_the_ordinary_complexity_goes_with_the_root():
    """P2163 prints γ R_x (1 + √(2 L log 2)) / (N C), which even one linear layer exceeds; the root is right (P2417)."""
    rng = np.random.default_rng(0)
    n, c, L = 200, 3, 2
    X = rng.normal(size=(n, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    drawn = np.mean([np.linalg.norm(rng.choice([-1.0, 1.0], (c, n)) @ X) for _ in range(100)]) / (n * c)
    peeled = 1 + math.sqrt(2 * L * math.log(2))
    assert peeled / (n * c) < drawn < peeled / math.sqrt(n * c)


def test_requirements_of_table_1_are_exchanged():
    """A class of 4 among 10 000: linear schemes pay, against the requirement printed for squared; sorting does not."""
    n_i, n = 4, 10_000
    pairs = n_i * (n - n_i)
    linear = n
    ranked = n_i * math.log(n_i) + (n - n_i) * math.log(n - n_i)
    assert linear < pairs
    assert ranked > pairs
    assert n_i > 2, "what is printed for the hinge"
    assert not n_i > n - math.exp(n_i / 2), "what is printed for squared"
