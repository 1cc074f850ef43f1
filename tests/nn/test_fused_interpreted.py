"""The Triton kernels, interpreted on the host, against the plain operations in float64.

Run with ``TRITON_INTERPRET=1`` where Triton is installed; the kernels see the same numbers as on a device, one program
after another.
"""

import os

import pytest
import torch
from cases import CASES
from pair_loss import pair_loss

from mauc.nn._loss.batch import Batch
from mauc.nn._loss.evaluate import evaluate, recipe_for
from mauc.nn._loss.settings import Loss
from mauc.surrogates import get_surrogate

pytest.importorskip("triton")
pytestmark = [
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="set TRITON_INTERPRET=1"),
    # Of the interpreter, which computes in NumPy what a mask then discards.
    pytest.mark.filterwarnings("ignore:Conversion of an array with ndim > 0:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

HINGE = ("hinge", {"alpha": 0.5})
ROUNDED = ("generalized_hinge", {"alpha": 0.5, "epsilon": 0.125})
LOGISTIC = ("logistic", {"alpha": 1.0})
STEEP = ("logistic", {"alpha": 4.0})
EXPONENTIAL = ("exponential", {"alpha": 4.0})
SQUARED = ("squared", {"alpha": 0.7})


def draw(n, c, *, ties=False):
    generator = torch.Generator().manual_seed(n + c)
    logits = torch.randint(-8, 9, (n, c), generator=generator) / 8 if ties else torch.randn(n, c, generator=generator)
    return logits.requires_grad_(), torch.randint(0, c, (n,), generator=generator), generator


def assert_equal(logits, y, loss, tolerance=3e-6, **settings):
    name, options = loss
    pairs, activation = settings["pairs"], settings.get("activation", "softmax")
    kind = pairs if isinstance(pairs, str) else "matrix"
    of_loss = Loss(get_surrogate(name, **options), activation, kind, None, settings.get("log_loss", 0.0), False)
    recipe = recipe_for(Batch(logits, y, None, None, None, None if kind != "matrix" else pairs), of_loss)
    # Torch operations compute all other losses, a matrix of pair weights, and the squared loss of raw scores.
    plain = name not in ("exponential", "squared") or kind == "matrix"
    plain |= name == "squared" and activation == "identity"
    assert (type(recipe).__name__ == "Plain") == plain
    wide = logits.detach().double().requires_grad_()
    exact = pair_loss(wide, y, surrogate=name, **options, **settings)
    got = pair_loss(logits, y, surrogate=name, **options, **settings)
    (gradient,) = torch.autograd.grad(exact, wide)
    (ours,) = torch.autograd.grad(got, logits)
    assert got.item() == pytest.approx(exact.item(), rel=tolerance)
    assert (ours.double() - gradient).abs().max() <= tolerance * gradient.abs().max()


@pytest.mark.parametrize(
    "loss", [HINGE, ("q_hinge", {"alpha": 0.5, "q": 3.0}), ROUNDED, LOGISTIC, STEEP], ids=lambda x: x[0]
)
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_equals_float64(loss, activation):
    logits, y, _ = draw(40, 6)
    assert_equal(logits, y, loss, activation=activation, pairs="ovo")


@pytest.mark.parametrize("case", [case for case in CASES if case.build().closed_form is not None], ids=str)
def test_every_case_with_kernels(case):
    logits, y, generator = draw(40, 6)
    weight = torch.rand(40, generator=generator)
    for activation in ("softmax", "sigmoid"):
        for settings in ({"pairs": "ovo"}, {"pairs": "ova", "weight": weight}):
            assert_equal(logits, y, (case.surrogate, case.options), activation=activation, **settings)


@pytest.mark.parametrize("loss", [HINGE, ROUNDED, EXPONENTIAL, SQUARED], ids=lambda x: x[0])
def test_raw_scores_with_ties(loss):
    logits, y, generator = draw(40, 5, ties=True)
    assert_equal(logits, y, loss, activation="identity", pairs="ova", weight=torch.rand(40, generator=generator))


@pytest.mark.parametrize("loss", [HINGE, LOGISTIC, EXPONENTIAL], ids=lambda x: x[0])
def test_own_pairs_weights_ignored_samples_and_both_terms(loss):
    logits, y, generator = draw(40, 5)
    y[::6], y[y == 3] = -100, 2
    weight = torch.rand(40, generator=generator)
    weight[::7] = 0.0
    assert_equal(logits, y, loss, pairs=torch.rand(5, 5, generator=generator), weight=weight)
    counts = torch.arange(1.0, 6.0)
    assert_equal(logits, y, loss, pairs="ova", weight=weight, class_counts=counts, log_loss=0.5)


@pytest.mark.parametrize("activation", ["log_odds", "identity"])
@pytest.mark.parametrize(("scale", "offset"), [(4.0, 0.0), (1.0, 100.0), (40.0, 0.0)], ids=str)
def test_exponential_of_scores_without_a_bound(activation, scale, offset):
    """Exponentials that overflow, columns far from 0, and samples of weight 0 beyond all others."""
    logits, y, generator = draw(40, 5)
    y[::6] = -100
    weight = torch.rand(40, generator=generator)
    weight[::7] = 0.0
    with torch.no_grad():
        logits.mul_(scale).add_(offset * torch.arange(5))
        logits[::7] *= 10.0
    settings = {"pairs": "ova", "weight": weight, "class_counts": [1, 2, 3, 4, 50], "activation": activation}
    gentle = ("exponential", {"alpha": 0.5})
    assert_equal(logits, y, gentle, 1e-5, **settings, log_loss=0.5, log1p=True)
    assert_equal(logits, y, gentle, 1e-5, **settings, log_loss=0.5, log1p=True, limit=1.0)
    if scale < 40.0:  # else the risk itself overflows
        assert_equal(logits, y, gentle, 1e-5, pairs="ovo", weight=weight, activation=activation)


def test_log_odds_of_two_classes_and_of_many():
    for n, c in ((40, 2), (7, 70)):
        logits, y, _ = draw(n, c)
        assert_equal(logits, y, EXPONENTIAL, pairs="ovo", activation="log_odds")


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
@pytest.mark.parametrize("pairs", ["ovo", "ova"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_recommended_loss(activation, pairs, weighted):
    logits, y, generator = draw(40, 6)
    y[::7], y[y == 2] = -100, 1
    with torch.no_grad():
        logits[:20] *= 4.0
    weight = torch.rand(40, generator=generator) if weighted else None
    settings = {"activation": activation, "pairs": pairs, "weight": weight, "class_counts": [1, 2, 3, 4, 5, 60]}
    for limit in (1.0, 0.1, None):
        assert_equal(logits, y, ("exponential", {}), **settings, log_loss=0.5, log1p=True, limit=limit)
    assert_equal(logits, y, SQUARED, **settings, log_loss=0.5, limit=0.5)


@pytest.mark.parametrize("loss", [HINGE, LOGISTIC], ids=lambda x: x[0])
def test_more_classes_than_samples(loss):
    logits, y, _ = draw(4, 70)
    assert_equal(logits, y, loss, pairs="ovo", log_loss=0.5)


@pytest.mark.parametrize("loss", [HINGE, ROUNDED], ids=lambda x: x[0])
@pytest.mark.parametrize("top", [1.0, 3.0, 6.0])
def test_trained_scores(loss, top):
    """Whose negatives end at one place, at few or at many; the true class is likelier, but not in every row."""
    logits, y, generator = draw(120, 4)
    with torch.no_grad():
        logits[torch.arange(120), y] += top * torch.rand(120, generator=generator).sqrt()
        logits[:60] *= 0.25
    assert_equal(logits, y, loss, pairs="ovo")


@pytest.mark.parametrize("loss", [HINGE, LOGISTIC, EXPONENTIAL], ids=lambda x: x[0])
def test_no_pair_and_not_a_number(loss):
    logits, _, _ = draw(20, 5)
    name, options = loss
    for y in (torch.full((20,), 2), torch.full((20,), -100)):
        for activation in ("softmax", "identity") if loss is not LOGISTIC else ("softmax",):
            value = pair_loss(logits, y, surrogate=name, **options, activation=activation)
            assert value.item() == 0.0
            assert not torch.autograd.grad(value, logits)[0].any()
    y = torch.arange(20) % 4
    with torch.no_grad():
        logits[3, 4] = torch.nan
    for activation in ("softmax", "sigmoid", *(("log_odds", "identity") if name == "exponential" else ())):
        assert pair_loss(logits, y, surrogate=name, **options, activation=activation).isnan()
    y[3] = -100
    assert pair_loss(logits, y, surrogate=name, **options).isfinite()


@pytest.mark.parametrize("loss", [HINGE, LOGISTIC, EXPONENTIAL, SQUARED], ids=lambda x: x[0])
def test_both_terms_are_zero_where_no_sample_counts(loss):
    logits, y, _ = draw(20, 5)
    name, options = loss
    for target, weight in ((torch.full((20,), -100), None), (y, torch.zeros(20))):
        settings = {"log_loss": 1.0, "class_counts": [9, 5, 4, 3, 2], "weight": weight}
        value = pair_loss(logits, target, surrogate=name, **options, **settings)
        (gradient,) = torch.autograd.grad(value, logits)
        assert value.item() == 0.0
        assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("loss", [EXPONENTIAL, ROUNDED, LOGISTIC], ids=lambda x: x[0])
def test_without_a_graph_and_in_half_precision(loss):
    name, options = loss
    logits, y, _ = draw(33, 17)
    settings = Loss(get_surrogate(name, **options), "softmax", "ovo", -100, 0.0, False)
    value, gradient = evaluate(Batch(logits, y, None, None, None, None), settings)
    attached = pair_loss(logits, y, surrogate=name, **options)
    assert value == attached
    assert torch.equal(gradient, torch.autograd.grad(attached, logits)[0])
    with torch.no_grad():
        assert pair_loss(logits, y, surrogate=name, **options) == value
    if loss is EXPONENTIAL:
        y[7] = 17  # which does not exist: the kernels cannot say so
        assert evaluate(Batch(logits, y, None, None, None, None), settings)[0].isnan()
        y[7] = 0
    # What comes from above is multiplied before the gradient is rounded, whose digits float16 would not have else.
    half, wide = logits.detach().half().requires_grad_(), logits.detach().half().double().requires_grad_()
    (ours,) = torch.autograd.grad(4096.0 * pair_loss(half, y, surrogate=name, **options).float(), half)
    (exact,) = torch.autograd.grad(4096.0 * pair_loss(wide, y, surrogate=name, **options), wide)
    assert ours.dtype == torch.float16
    torch.testing.assert_close(ours.double(), exact, rtol=torch.finfo(torch.float16).eps, atol=1e-6)


@pytest.mark.parametrize("loss", [EXPONENTIAL, HINGE], ids=lambda x: x[0])
def test_saved_tensors_may_come_back_in_another_layout(loss):
    name, options = loss
    logits, y, _ = draw(40, 6)
    part = torch.cat([logits.detach(), torch.full((40, 3), torch.nan)], 1)[:, :6].requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda x: x):
        (copied,) = torch.autograd.grad(pair_loss(part, y, surrogate=name, **options), part)
    (plain,) = torch.autograd.grad(pair_loss(logits, y, surrogate=name, **options), logits)
    torch.testing.assert_close(copied, plain)


@pytest.mark.parametrize("loss", [EXPONENTIAL, HINGE, LOGISTIC], ids=lambda x: x[0])
def test_scaled_and_second_derivatives(loss):
    logits, y, _ = draw(12, 4)
    name, options = loss
    value = pair_loss(logits, y, surrogate=name, **options)
    (once,) = torch.autograd.grad(value, logits, retain_graph=True)
    (thrice,) = torch.autograd.grad(3.0 * value, logits, retain_graph=True)
    torch.testing.assert_close(thrice, 3.0 * once)
    bends = []
    for x in (logits, logits.detach().double().requires_grad_()):
        (slope,) = torch.autograd.grad(pair_loss(x, y, surrogate=name, **options), x, create_graph=True)
        bends.append(torch.autograd.grad(slope.square().sum(), x)[0].double())
    torch.testing.assert_close(bends[0], bends[1], rtol=1e-4, atol=1e-6)
