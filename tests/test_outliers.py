"""One score far from all others costs nobody any digit: every surrogate and scheme, NumPy and torch, against the
definition in extended precision.
"""

import numpy as np
import pytest
from cases import EACH_KIND, Case, evaluate
from oracles import draw_outlier, errors, extended_risk
from pair_loss import pair_loss

from mauc import SurrogateRisk
from mauc.surrogates import QHinge

# The power decides how far an outlier reaches.
POWERS = [Case("q_hinge", {"alpha": 1.0, "q": q}) for q in (5.0, 60.0)]


def reached(case, value, gradient, size=300.0):
    """Whether the result is within the floats; the exponential is not, far out."""
    return abs(value) < 10.0**size and np.abs(gradient).max() < 10.0**size


@pytest.mark.parametrize("case", [*EACH_KIND, POWERS[0]], ids=str)
def test_an_outlier_costs_no_digits(case):
    surrogate = case.build()
    # Where ℓ is approximated, no polynomial reaches so far, and pairs are taken in blocks.
    schemes = ("auto", "blocked") if case.exact else ("blocked",)
    for seed in range(40):
        y, scores = draw_outlier(np.random.default_rng(seed), 2.0 if case.surrogate == "exponential" else 12.0)
        expected = extended_risk(surrogate, y, scores)
        for scheme in schemes:
            assert max(errors(evaluate(case.risk(scheme=scheme), y, scores), expected)) <= 1e-11, (scheme, seed)


# In torch an outlier costs time instead: sums of powers would lose digits, so a warning says that blocks are taken.
IN_BLOCKS = pytest.mark.filterwarnings("ignore:no polynomial of the .* taking all pairs in blocks:UserWarning")


@IN_BLOCKS
@pytest.mark.parametrize("case", [*(case for case in EACH_KIND if case.exact), *POWERS], ids=str)
def test_an_outlier_costs_no_digits_in_torch(case):
    torch = pytest.importorskip("torch")

    surrogate = case.build()
    for dtype, tolerance, largest in ((torch.float64, 1e-11, 12.0), (torch.float32, 3e-6, 4.0)):
        for seed in range(20):
            y, scores = draw_outlier(np.random.default_rng(seed), 2.0 if case.surrogate == "exponential" else largest)
            logits = torch.tensor(scores, dtype=dtype, requires_grad=True)
            expected = extended_risk(surrogate, y, logits.detach().numpy())
            if not reached(case, *expected, size=37.0 if dtype == torch.float32 else 300.0):
                continue
            value = pair_loss(logits, torch.tensor(y), surrogate=surrogate, activation="identity")
            value.backward()
            assert max(errors((value.item(), logits.grad.numpy()), expected)) <= tolerance, (dtype, seed)


@pytest.mark.parametrize(("q", "far", "value"), [(5, 1e4, 1.4282325), (3, 1e6, 1.04925), (2, 1e10, 0.9225)])
def test_a_far_positive_is_not_active(q, far, value):
    assert SurrogateRisk(QHinge(q=q)).value([0, 0, 1], [[0, 0], [far, 0], [0.3, 0]]) == pytest.approx(value)


def test_a_large_power_of_small_distances():
    y, scores = [0, 0, 1, 1], np.array([[0.9, 0.1], [0.85, 0.2], [0.1, 0.9], [0.12, 0.8]])
    risk = SurrogateRisk(QHinge(q=60))
    expected = extended_risk(risk.surrogate, y, scores)
    assert 0.0 < expected[0] < 1e-24
    assert max(errors(risk.value_and_gradient(y, scores), expected)) < 1e-11


@IN_BLOCKS
@pytest.mark.parametrize("q", [2, 5, 60])
def test_a_large_power_of_softmax_scores_in_torch(q):
    torch = pytest.importorskip("torch")

    logits = torch.tensor([[3.0, 0.0], [2.5, 0.0], [0.0, 3.0], [0.0, 2.0]], dtype=torch.float64)
    expected = extended_risk(SurrogateRisk(QHinge(q=q)).surrogate, [0, 0, 1, 1], torch.softmax(logits, 1).numpy())
    value = pair_loss(logits, torch.tensor([0, 0, 1, 1]), surrogate="q_hinge", q=q)
    # Moments are relative to ℓ(0) = 1; a power that large is not taken by moments.
    assert value.item() == pytest.approx(float(expected[0]), rel=1e-11, abs=1e-13 if q < 10 else 0.0)


@pytest.mark.parametrize("far", [1.7e308, -1.7e308])
@pytest.mark.parametrize(
    ("library", "name"),
    [
        *((library, name) for library in ("numpy", "torch") for name in ("hinge", "q_hinge", "generalized_hinge")),
        ("numpy", "squared"),
    ],
)
def test_scores_at_the_end_of_the_floats_are_never_undefined(name, library, far):
    y = np.array([0, 0, 1, 1])
    scores = np.array([[0.0, 0.5], [far, -far], [0.3, 0.0], [-far, 0.2]])
    risk = SurrogateRisk(name)
    with np.errstate(over="ignore"):
        expected = extended_risk(risk.surrogate, y, scores)
        expected = float(expected[0]), expected[1].astype(np.float64)
    if library == "numpy":
        value, gradient = risk.value_and_gradient(y, scores)
    else:
        torch = pytest.importorskip("torch")

        logits = torch.tensor(scores, requires_grad=True)
        loss = pair_loss(logits, torch.tensor(y), surrogate=name, activation="identity")
        loss.backward()
        value, gradient = loss.item(), logits.grad.numpy()
    # A difference beyond the floats is infinite by the definition, whatever its weight.
    assert value == pytest.approx(expected[0], rel=1e-12) or (value == np.inf and expected[0] > 8e307)
    settled = np.isfinite(gradient)
    largest = np.abs(expected[1][settled]).max()
    np.testing.assert_allclose(gradient[settled], expected[1][settled], rtol=1e-12, atol=1e-12 * largest)
    assert not np.isnan(gradient).any()
    assert (np.abs(expected[1][~settled]) > 4e307).all()  # a pair beyond the floats, times its weight


@pytest.mark.parametrize("case", [case for case in EACH_KIND if case.exact and not case.label], ids=str)
def test_a_far_score_without_weight_costs_no_digits(case):
    y, weight = np.array([1, 0, 0, 2]), np.array([1.0, 1.0, 0.0, 1.0])
    scores = np.array([[0.9, 0.3, 0.1], [0.8, 0.6, 0.5], [-4e10, 0.7, 4e10], [0.2, 0.1, 0.6]])
    expected = case.risk(scheme="pairwise").value_and_gradient(y, scores, weight)
    kept = weight > 0
    alone = case.risk(scheme="pairwise").value_and_gradient(y[kept], scores[kept], weight[kept])
    assert max(errors((expected[0], expected[1][kept]), alone)) <= 1e-14
    assert max(errors(case.risk().value_and_gradient(y, scores, weight), expected)) <= 1e-11


@IN_BLOCKS
@pytest.mark.parametrize("epsilon", [0.3, 0.01, 1e-14])
@pytest.mark.parametrize("kind", ["spread", "ties", "chain"])
def test_runs_between_two_bounds_keep_their_digits(kind, epsilon):
    """Many cells, with values that tie, that are a piece's width apart, and that differ by a rounding."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 120)
    scores = rng.normal(0.0, 3.0, (120, 3))
    if kind == "ties":
        scores = np.round(scores * 4.0) / 4.0
    if kind == "chain":
        scores = 2.0 * epsilon * rng.integers(-9, 9, (120, 3)) * (1.0 + 2e-16 * rng.integers(-3, 4, (120, 3)))
    case = Case("generalized_hinge", {"alpha": 0.5, "epsilon": epsilon})
    expected = case.risk(scheme="pairwise").value_and_gradient(y, scores)
    tolerance = 1e-11 if epsilon > 1e-6 else 2e-2  # where a rounding is a tenth of the piece
    assert max(errors(case.risk().value_and_gradient(y, scores), expected)) <= tolerance
    torch = pytest.importorskip("torch")

    logits = torch.tensor(scores, requires_grad=True)
    value = pair_loss(logits, torch.tensor(y), surrogate=case.build(), activation="identity")
    value.backward()
    assert max(errors((value.item(), logits.grad.numpy()), expected)) <= tolerance
