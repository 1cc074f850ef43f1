"""The loss of two terms: the paper's risk, and cross-entropy shifted by the class frequencies."""

import math

import numpy as np
import pytest
import torch
from pair_loss import PairLoss, pair_loss
from torch.nn.functional import cross_entropy

from mauc import SurrogateRisk
from mauc.activations import activate, pull_back
from mauc.nn import LogitAdjustedLoss, MAUCLoss
from mauc.nn.functional import mauc_loss

COUNTS = [60, 30, 8, 2]
SURROGATES = [
    {"surrogate": "squared"},
    {"surrogate": "exponential", "alpha": 8.0},
    {"surrogate": "hinge", "alpha": 0.5},
]


def draw(n=40, c=4, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(n + c)
    logits = 2.0 * torch.randn(n, c, generator=generator, dtype=torch.float64)
    y = torch.randint(0, c, (n,), generator=generator)
    return logits.to(dtype).to(device).requires_grad_(), y.to(device)


def value_and_gradient(logits, y, **settings):
    loss = pair_loss(logits, y, **settings)
    (gradient,) = torch.autograd.grad(loss, logits)
    return loss.detach(), gradient


@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "identity"])
@pytest.mark.parametrize("surrogate", SURROGATES, ids=str)
def test_is_the_sum_of_its_terms(surrogate, activation):
    logits, y = draw()
    settings = {**surrogate, "activation": activation}
    risk, of_risk = value_and_gradient(logits, y, **settings)
    adjusted = LogitAdjustedLoss(COUNTS)(logits, y)
    (of_adjusted,) = torch.autograd.grad(adjusted, logits)
    both, of_both = value_and_gradient(logits, y, **settings, log_loss=0.7, class_counts=COUNTS)
    torch.testing.assert_close(both, risk + 0.7 * adjusted.detach())
    torch.testing.assert_close(of_both, of_risk + 0.7 * of_adjusted)


def recommended(logits, y, counts, activation="softmax", alpha=4.0):
    """The value and the gradient by their definitions, pair by pair."""
    scores = {"softmax": logits.softmax(1), "sigmoid": logits.sigmoid(), "identity": logits}[activation]
    present = y.unique().tolist()
    each = []
    for i in present:
        of_others = [
            torch.exp(-alpha * (scores[y == i, i][:, None] - scores[y == j, i][None, :])).mean()
            for j in present
            if j != i
        ]
        each.append(torch.log1p(torch.stack(of_others).mean()))
    shift = (torch.tensor(counts, dtype=logits.dtype) / sum(counts)).log()
    pair = min(1.0, (len(counts) - 2) / 8) * torch.stack(each).sum() / len(counts)
    log = cross_entropy(logits + shift, y)
    (of_pair,), (of_log,) = (torch.autograd.grad(term, logits, retain_graph=True) for term in (pair, log))
    cut = of_pair * min(1.0, of_log.norm() / of_pair.norm())
    return (pair + log).detach(), (cut + of_log) / (1.0 + cut.norm() / of_log.norm())


@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "identity"])
@pytest.mark.parametrize("shape", [(40, 4), (2000, 4), (200, 12)], ids=str)
@pytest.mark.parametrize("ignored", [False, True])
def test_the_default_is_the_recommended_loss(activation, shape, ignored):
    logits, y = draw(*shape)
    counts = (COUNTS * 3)[: shape[1]]
    with torch.no_grad():
        logits /= 4.0
    y[y == 2] = 1  # a class that the batch lacks
    kept = torch.ones(len(y), dtype=torch.bool)
    if ignored:
        kept[::5] = False
    rows = logits.detach()[kept].requires_grad_()
    exact, of_exact = recommended(rows, y[kept], counts, activation)
    target = torch.where(kept, y, -100)
    loss = MAUCLoss(counts, activation=activation)
    for got in (loss(logits, target), mauc_loss(logits, target, class_counts=counts, activation=activation)):
        (gradient,) = torch.autograd.grad(got, logits)
        torch.testing.assert_close(got, exact, rtol=1e-12, atol=0.0)
        torch.testing.assert_close(gradient[kept], of_exact)
        assert not gradient[~kept].any()


@pytest.mark.parametrize(("surrogate", "scale"), [("exponential", 0.05), ("exponential", 40.0), ("logistic", 0.05)])
def test_log_odds(surrogate, scale):
    """As the NumPy core has them: value and gradient, where probabilities are near 0 and 1 too."""
    logits, y = draw(30)
    with torch.no_grad():
        logits *= scale
    z = logits.detach().numpy()
    alpha = {"exponential": 0.5, "logistic": 1.0}[surrogate]
    risk = SurrogateRisk(surrogate, alpha=alpha, scheme="pairwise")
    scores = activate(z.copy(), "log_odds")
    value, slope = risk.value_and_gradient(y.numpy(), scores)
    of_pairs = pull_back(scores, slope, "log_odds")
    settings = {"surrogate": surrogate, "activation": "log_odds"}
    got, gradient = value_and_gradient(logits, y, **settings)
    assert got.item() == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(gradient, of_pairs, rtol=1e-5, atol=1e-6 * np.abs(of_pairs).max())
    both, _ = value_and_gradient(logits, y, **settings, log_loss=0.5, class_counts=COUNTS)
    torch.testing.assert_close(both, got + 0.5 * LogitAdjustedLoss(COUNTS)(logits, y).detach())


def test_log_odds_of_ignored_rows_and_second_derivatives():
    logits, y = draw(8)
    y[3] = -100
    with torch.no_grad():
        logits[3] = torch.nan
    _, gradient = value_and_gradient(logits, y, activation="log_odds", log_loss=0.5, class_counts=COUNTS)
    assert not gradient[3].any()
    some = logits.detach()[:3].requires_grad_()
    assert torch.autograd.gradgradcheck(lambda z: pair_loss(z, y[:3], activation="log_odds"), some)


def test_log_odds_where_the_largest_probability_rounds_to_1():
    logits, y = draw(30)
    logits = (logits.detach() + 200.0 * torch.nn.functional.one_hot(y, logits.shape[1])).float().requires_grad_()
    loss = MAUCLoss(COUNTS, surrogate="squared", activation="log_odds", limit=None)
    (gradient,) = torch.autograd.grad(loss(logits, y), logits)
    (differentiable,) = torch.autograd.grad(loss(logits, y), logits, create_graph=True)
    torch.testing.assert_close(gradient, differentiable.detach(), rtol=1e-5, atol=1e-6 * gradient.abs().max().item())
    (second,) = torch.autograd.grad(differentiable.square().sum(), logits)
    assert second.isfinite().all()


def test_a_risk_beyond_the_floats_still_has_a_bounded_slope():
    logits = (300.0 * (1.0 - 2.0 * torch.eye(10, dtype=torch.float64))).requires_grad_()
    value = MAUCLoss([1] * 10, activation="identity")(logits, torch.arange(10))
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.item() == pytest.approx(4 * 600.0 + 600.0 + math.log(9.0))
    (of_log,) = torch.autograd.grad(cross_entropy(logits, torch.arange(10)), logits)
    assert 0.0 < gradient.norm() <= of_log.norm()


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
@pytest.mark.parametrize("surrogate", ["exponential", "squared", "hinge"])
def test_no_step_is_longer_than_that_of_the_log_loss(surrogate, activation):
    logits, y = draw(64)
    y[:60] = 0  # lone rows of three classes
    adjusted = LogitAdjustedLoss(COUNTS)
    for scale in (0.01, 1.0, 10.0):
        z = (scale * logits.detach()).requires_grad_()
        (of_log,) = torch.autograd.grad(adjusted(z, y), z)
        (gradient,) = torch.autograd.grad(MAUCLoss(COUNTS, surrogate=surrogate, activation=activation)(z, y), z)
        assert 0.5 * of_log.norm() < gradient.norm() <= of_log.norm() * (1.0 + 1e-12)


def test_two_equal_rows_count_as_one_of_weight_two():
    logits, y = draw(12)
    loss = MAUCLoss(COUNTS)
    (gradient,) = torch.autograd.grad(loss(logits, y, torch.tensor([2.0] + [1.0] * 11)), logits)
    twice = torch.cat([logits[:1], logits]).detach().requires_grad_()
    (of_both,) = torch.autograd.grad(loss(twice, torch.cat([y[:1], y])), twice)
    torch.testing.assert_close(gradient[0], of_both[0] + of_both[1])
    torch.testing.assert_close(gradient[1:], of_both[2:])


def test_second_derivatives_hold_the_limits_fixed():
    logits, y = draw(20)
    loss = MAUCLoss(COUNTS)
    (gradient,) = torch.autograd.grad(loss(logits, y), logits)
    (differentiable,) = torch.autograd.grad(loss(logits, y), logits, create_graph=True)
    torch.testing.assert_close(gradient, differentiable.detach())
    torch.testing.assert_close(gradient, torch.func.grad(lambda z: loss(z, y))(logits.detach()))
    (second,) = torch.autograd.grad(differentiable.square().sum(), logits)
    assert second.isfinite().all()
    assert second.any()


def test_what_the_counts_are_needed_for():
    with pytest.raises(
        ValueError, match=r"class_counts must be the size of each class .* pass torch.bincount\(labels\)"
    ):
        MAUCLoss()
    with pytest.raises(ValueError, match="class_counts is only used by the log-loss and by pairs='ova'"):
        MAUCLoss(COUNTS, log_loss=0.0)
    with pytest.raises(ValueError, match="log1p is for the exponential surrogate"):
        MAUCLoss(COUNTS, surrogate="hinge", log1p=True)
    assert MAUCLoss(COUNTS, surrogate="hinge").settings.log1p is False
    assert MAUCLoss(surrogate="exponential", alpha=1.0, log_loss=0.0).settings.log1p is False


@pytest.mark.parametrize("activation", ["softmax", "identity", "log_odds"])
def test_two_classes_have_adjusted_cross_entropy_alone(activation):
    logits, y = draw(20, 2)
    (gradient,) = torch.autograd.grad(MAUCLoss([9, 1], activation=activation, log1p=True)(logits, y), logits)
    (of_log,) = torch.autograd.grad(LogitAdjustedLoss([9, 1])(logits, y), logits)
    torch.testing.assert_close(gradient, of_log)


def test_ova_shifts_nothing():
    logits, y = draw()
    alone = pair_loss(logits, y, pairs="ova", class_counts=COUNTS)
    both = pair_loss(logits, y, pairs="ova", log_loss=1.0, class_counts=COUNTS)
    torch.testing.assert_close(both - alone, cross_entropy(logits, y))


def test_weights_and_ignored_samples():
    logits, y = draw()
    weight = torch.rand(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y[5:9] = -100
    kept = y != -100
    settings = {"log_loss": 0.5, "class_counts": COUNTS}
    value, gradient = value_and_gradient(logits, y, weight=weight, **settings)
    some = logits.detach()[kept].requires_grad_()
    fewer, of_fewer = value_and_gradient(some, y[kept], weight=weight[kept], **settings)
    torch.testing.assert_close(value, fewer)
    torch.testing.assert_close(gradient[kept], of_fewer)
    assert not gradient[~kept].any()


def assert_nothing_counts(loss):
    logits, y = draw(6, 4)
    for target, weight in ((torch.full((6,), -100), None), (y, torch.zeros(6, dtype=torch.float64))):
        value = loss(logits, target, weight)
        (gradient,) = torch.autograd.grad(value, logits)
        assert value.item() == 0.0
        assert torch.equal(gradient, torch.zeros_like(gradient))


NOTHING = [*SURROGATES, {"pairs": "ova"}, {"pairs": [[1.0] * 4] * 4}, {"activation": "log_odds"}, {"log_loss": 100.0}]


@pytest.mark.parametrize("settings", NOTHING, ids=["squared", "exp", "hinge", "ova", "matrix", "log-odds", "large"])
def test_zero_and_no_gradient_where_no_sample_counts(settings):
    assert_nothing_counts(MAUCLoss(COUNTS, **settings))


def test_second_derivatives_are_zero_where_no_sample_counts():
    logits, _ = draw(6, 4)
    ignored = torch.full((6,), -100)
    for surrogate in SURROGATES[:2]:
        value = mauc_loss(logits, ignored, class_counts=COUNTS, **surrogate)
        (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
        (second,) = torch.autograd.grad(gradient.sum(), logits)
        assert torch.equal(second, torch.zeros_like(second))


def test_a_matrix_of_products_and_another_one():
    logits, y = draw()
    b = np.array([1.0, 2.0, 4.0, 1.0])
    matrix = np.outer([1.0, 3.0, 1.0, 2.0], b)
    both, alone = (pair_loss(logits, y, pairs=matrix, log_loss=s, class_counts=COUNTS) for s in (1.0, 0.0))
    torch.testing.assert_close(both - alone, cross_entropy(logits + torch.tensor(COUNTS / b).log(), y))
    matrix[0, 1] = 7.0
    with pytest.raises(ValueError, match="log_loss needs pairs that are products"):
        pair_loss(logits, y, pairs=matrix, log_loss=1.0, class_counts=COUNTS)
    with pytest.raises(ValueError, match="log_loss needs pairs that are products"):
        PairLoss(pairs=matrix, log_loss=1.0, class_counts=COUNTS)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), True, "yes", None])
def test_bad_weights_are_refused(bad):
    with pytest.raises(ValueError, match="log_loss must be"):
        MAUCLoss(COUNTS, log_loss=bad)
    with pytest.raises(ValueError, match="log_loss must be"):
        mauc_loss(*draw(), class_counts=COUNTS, log_loss=bad)


def test_second_derivatives():
    logits, y = draw(8, 4)
    for surrogate in (*SURROGATES[:2], {"log1p": True}):
        settings = {**surrogate, "log_loss": 0.5, "class_counts": COUNTS}
        assert torch.autograd.gradgradcheck(lambda z, s=settings: pair_loss(z, y[:8], **s), logits)
