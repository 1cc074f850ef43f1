"""The loss of two terms: the paper's risk, and cross-entropy shifted by the class frequencies."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

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
    loss = mauc_loss(logits, y, **settings)
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
    only, of_only = value_and_gradient(logits, y, **settings, log_loss="only", class_counts=COUNTS)
    torch.testing.assert_close(only, adjusted.detach())
    torch.testing.assert_close(of_only, of_adjusted)


def test_none_is_the_risk_to_the_bit():
    logits, y = draw()
    for a, b in zip(value_and_gradient(logits, y), value_and_gradient(logits, y, log_loss=0), strict=True):
        assert torch.equal(a, b)


def test_frequencies_of_the_batch_where_none_are_given():
    logits, y = draw()
    counts = torch.bincount(y, minlength=4)
    with_counts = value_and_gradient(logits, y, log_loss=1.0, class_counts=counts)
    for a, b in zip(value_and_gradient(logits, y, log_loss=1.0), with_counts, strict=True):
        torch.testing.assert_close(a, b)


def test_ova_is_plain_cross_entropy():
    logits, y = draw()
    only = mauc_loss(logits, y, pairs="ova", log_loss="only", class_counts=COUNTS)
    torch.testing.assert_close(only, cross_entropy(logits, y))


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


@pytest.mark.parametrize("class_counts", [None, COUNTS], ids=["counts-of-batch", "counts"])
@pytest.mark.parametrize(
    "settings",
    [*SURROGATES, {"pairs": "ova"}, {"pairs": [[1.0] * 4] * 4}],
    ids=["squared", "exp", "hinge", "ova", "matrix"],
)
def test_zero_and_no_gradient_where_no_sample_counts(settings, class_counts):
    assert_nothing_counts(MAUCLoss(**settings, log_loss=1.0, class_counts=class_counts))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch itself
@pytest.mark.parametrize("settings", SURROGATES, ids=["squared", "exp", "hinge"])
def test_zero_and_no_gradient_where_no_sample_counts_compiled(settings):
    torch.compiler.reset()
    assert_nothing_counts(torch.compile(MAUCLoss(**settings, log_loss=1.0), backend="aot_eager"))
    torch.compiler.reset()


def test_second_derivatives_are_zero_where_no_sample_counts():
    logits, _ = draw(6, 4)
    ignored = torch.full((6,), -100)
    for surrogate in SURROGATES:
        value = mauc_loss(logits, ignored, **surrogate, log_loss=1.0)
        (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
        (second,) = torch.autograd.grad(gradient.sum(), logits)
        assert torch.equal(second, torch.zeros_like(second))


def test_a_matrix_of_products_and_another_one():
    logits, y = draw()
    b = np.array([1.0, 2.0, 4.0, 1.0])
    matrix = np.outer([1.0, 3.0, 1.0, 2.0], b)
    only = mauc_loss(logits, y, pairs=matrix, log_loss="only", class_counts=COUNTS)
    torch.testing.assert_close(only, cross_entropy(logits + torch.tensor(COUNTS / b).log(), y))
    matrix[0, 1] = 7.0
    with pytest.raises(ValueError, match="log_loss needs pairs that are products"):
        mauc_loss(logits, y, pairs=matrix, log_loss=1.0)
    with pytest.raises(ValueError, match="log_loss needs pairs that are products"):
        MAUCLoss(pairs=matrix, log_loss=1.0, class_counts=COUNTS)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), True, "yes", None])
def test_bad_weights_are_refused(bad):
    with pytest.raises(ValueError, match="log_loss must be a finite number >= 0 or 'only', got"):
        MAUCLoss(log_loss=bad)
    with pytest.raises(ValueError, match="log_loss must be a finite number >= 0 or 'only', got"):
        mauc_loss(*draw(), log_loss=bad)


def test_module_is_the_function():
    logits, y = draw(dtype=torch.float32)
    for pairs in ("ovo", "ova"):
        module = MAUCLoss("exponential", alpha=4.0, log_loss=2.0, pairs=pairs, class_counts=COUNTS)
        function = mauc_loss(logits, y, alpha=4.0, log_loss=2.0, pairs=pairs, class_counts=COUNTS)
        torch.testing.assert_close(module(logits, y), function)
    assert "log_loss=2.0" in repr(module)


def test_second_derivatives():
    logits, y = draw(8, 4)
    for surrogate in SURROGATES:
        settings = {**surrogate, "log_loss": 0.5, "class_counts": COUNTS}
        assert torch.autograd.gradgradcheck(lambda z, s=settings: mauc_loss(z, y[:8], **s), logits)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch itself
def test_compiled():
    logits, y = draw(dtype=torch.float32)
    loss = MAUCLoss("exponential", alpha=4.0, log_loss=1.0, class_counts=COUNTS)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(logits, y), loss(logits, y))


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
@pytest.mark.parametrize("shape", [(32, 12), (1000, 100), (257, 5089), (9001, 33)], ids=str)
def test_fused(shape, activation):
    n, c = shape
    logits, y = draw(n, c, torch.float32, "cuda")
    with torch.no_grad():
        y[::7] = -100
    weight = torch.rand(n, device="cuda")
    counts = torch.arange(1, c + 1)
    for surrogate in ({"surrogate": "squared"}, {"surrogate": "exponential", "alpha": 8.0}, {"surrogate": "hinge"}):
        for pairs in ("ovo", "ova"):
            for sizes in (None, counts):
                settings = {**surrogate, "activation": activation, "pairs": pairs, "log_loss": 0.5}
                z = logits.detach().double().cpu().requires_grad_()
                exact, of_exact = value_and_gradient(
                    z, y.cpu(), weight=weight.double().cpu(), class_counts=sizes, **settings
                )
                on_device = None if sizes is None else sizes.cuda()
                got, of_got = value_and_gradient(logits, y, weight=weight, class_counts=on_device, **settings)
                assert got.item() == pytest.approx(exact.item(), rel=1e-5)
                assert (of_got.double().cpu() - of_exact).abs().max() <= 1e-5 * of_exact.abs().max()
