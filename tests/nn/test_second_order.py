"""Second derivatives: equal to finite differences of the first ones; refused where torch cannot know them."""

import numpy as np
import pytest
import torch
from cases import EACH_KIND
from pair_loss import PairLoss, pair_loss

CLOSED = [{"surrogate": "squared"}, {"surrogate": "exponential"}, {"surrogate": "hinge", "alpha": 1.0}]
# No polynomial is close to it, and torch cannot differentiate its functions of NumPy arrays.
UNKNOWN = [case for case in EACH_KIND if case.label == "custom-undeclared"]
KNOWN = [case for case in EACH_KIND if case not in UNKNOWN]
blocks_are_fine = pytest.mark.filterwarnings("ignore:.*taking all pairs in blocks:UserWarning")


def draw(n=7, c=4):
    generator = torch.Generator().manual_seed(3)
    logits = 0.7 * torch.randn(n, c, generator=generator, dtype=torch.float64)
    y = torch.tensor([0, 1, 2, 0, 1, 0, 3])[:n]
    return logits.requires_grad_(), y, torch.rand(n, generator=generator, dtype=torch.float64) + 0.1


def penalty(loss, x, w):
    """The derivative of a squared gradient: the use that a constant gradient gets wrong in silence."""
    (g,) = torch.autograd.grad(loss(x @ w), x, create_graph=True)
    return torch.autograd.grad(g.square().sum(), w)[0]


@pytest.mark.parametrize("settings", CLOSED, ids=str)
@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "identity"])
def test_equals_finite_differences(settings, activation):
    if settings["surrogate"] == "hinge" and activation == "identity":
        pytest.skip("no line on raw scores")
    logits, y, weight = draw(6, 3)
    y = torch.where(torch.arange(len(y)) == 4, -100, y)

    def loss(z):
        return pair_loss(z, y, activation=activation, pairs="ova", weight=weight, **settings)

    assert torch.autograd.gradgradcheck(loss, (logits,))


@pytest.mark.parametrize("surrogate", ["squared", "exponential"])
@pytest.mark.parametrize("pairs", ["ovo", np.arange(16.0).reshape(4, 4)], ids=["ovo", "matrix"])
def test_a_gradient_penalty(surrogate, pairs):
    x, y, _ = draw()
    w = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    criterion = PairLoss(surrogate, alpha=0.5, pairs=pairs)
    got = penalty(lambda z: 3.0 * criterion(z, y), x, w)

    def of_penalty(w):
        (g,) = torch.autograd.grad(3.0 * criterion(x @ w, y), x)
        return g.square().sum().item()

    step = torch.zeros_like(w)
    step[1, 2] = 1e-5
    expected = (of_penalty(w.detach() + step) - of_penalty(w.detach() - step)) / 2e-5
    assert got[1, 2].item() == pytest.approx(expected, rel=1e-5)


@blocks_are_fine
@pytest.mark.parametrize("activation", ["softmax", "identity"])
@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_every_surrogate(case, activation):
    logits, y, weight = draw()
    y = torch.where(torch.arange(len(y)) == 4, -100, y)

    def loss(z):
        settings = {"surrogate": case.surrogate, **case.options, "activation": activation}
        return pair_loss(z, y, weight=weight, pairs="ova", **settings)

    # The slope of an approximation jumps by its tolerance where two pieces meet: a longer step does not see it.
    eps, atol = (1e-5, 1e-4) if case.exact else (1e-4, 1e-3)
    assert torch.autograd.gradgradcheck(loss, (logits,), eps=eps, atol=atol)


@blocks_are_fine
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch.func's own
@pytest.mark.parametrize("case", EACH_KIND, ids=str)
def test_torch_func_has_the_gradient_of_every_surrogate(case):
    logits, y, _ = draw()

    def loss(z):
        return pair_loss(z, y, surrogate=case.surrogate, **case.options)

    (expected,) = torch.autograd.grad(loss(logits), logits)
    got, value = torch.func.grad_and_value(loss)(logits.detach())
    torch.testing.assert_close(got, expected, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(value, loss(logits).detach())


@blocks_are_fine
@pytest.mark.parametrize("case", UNKNOWN, ids=str)
def test_functions_of_numpy_arrays_are_refused(case):
    logits, y, _ = draw()
    w = torch.eye(4, dtype=torch.float64, requires_grad=True)
    message = r"second derivatives of the loss are not available with the custom surrogate, .*take a surrogate with a"
    with pytest.raises(NotImplementedError, match=message):
        penalty(lambda z: pair_loss(z, y, surrogate=case.surrogate, **case.options), logits, w)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch.func's own
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "logistic", "generalized_hinge"])
def test_every_order_and_torch_func(surrogate):
    logits, y, weight = draw(6)

    def loss(z):
        return pair_loss(z, y, surrogate=surrogate, weight=weight[:6])

    (gradient,) = torch.autograd.grad(loss(logits), logits)
    plain = logits.detach()
    assert torch.allclose(torch.func.grad(loss)(plain), gradient)
    assert torch.allclose(torch.func.vmap(loss)(plain[None])[0], loss(plain))
    hessian = torch.autograd.functional.hessian(loss, plain)
    assert torch.allclose(torch.func.hessian(loss)(plain), hessian)
    assert torch.autograd.gradgradcheck(lambda z: torch.autograd.grad(loss(z), z, create_graph=True)[0], (logits,))


def test_huge_scores_and_no_weight():
    """The peak of the exponentials is taken over what counts."""
    logits = torch.tensor([[800.0, 0.0], [799.0, 1.0], [798.0, 0.5], [9e4, 0.0]], dtype=torch.float64)
    y, weight = torch.tensor([0, 1, 1, 0]), torch.tensor([1.0, 1.0, 1.0, 0.0])

    def loss(z):
        return pair_loss(z, y, activation="identity", weight=weight)

    near = torch.cat([logits[:3] - torch.tensor([800.0, 0.0]), torch.zeros(1, 2)])
    expected = torch.autograd.functional.hessian(loss, near)
    assert torch.allclose(torch.autograd.functional.hessian(loss, logits), expected, rtol=1e-9)
    assert expected[0, 0, 0, 0] > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision(dtype):
    logits, y, _ = draw()
    w = torch.eye(4, dtype=torch.float64, requires_grad=True)
    expected = penalty(lambda z: pair_loss(z, y), logits, w)
    low = logits.detach().to(dtype).requires_grad_()
    got = penalty(lambda z: pair_loss(z, y), low, torch.eye(4, dtype=dtype, requires_grad=True))
    assert got.dtype == dtype
    assert torch.allclose(got.double(), expected, atol=8 * torch.finfo(dtype).eps * expected.abs().max())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")  # Dynamo's own
@pytest.mark.parametrize(("backend", "surrogate"), [("eager", "hinge"), ("aot_eager", "exponential")])
def test_compiled_they_are_refused(backend, surrogate):
    x, y, _ = draw()
    w = torch.eye(4, dtype=torch.float64, requires_grad=True)
    criterion = torch.compile(PairLoss(surrogate, alpha=0.5), backend=backend)
    (g,) = torch.autograd.grad(criterion(x @ w, y), x)
    assert torch.allclose(g, torch.autograd.grad(PairLoss(surrogate, alpha=0.5)(x @ w, y), x)[0])
    with pytest.raises(RuntimeError, match=r"compile the rest without the loss|donated buffers|double backward"):
        penalty(lambda z: criterion(z, y), x, w)
