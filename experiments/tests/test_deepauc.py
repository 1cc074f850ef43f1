"""DeepAUC: its saddle point is the squared risk of the core, and its optimiser finds it."""

import copy

import pytest
import torch
from pair_loss import pair_loss
from torch import nn

from experiments.deepauc import DeepAUCLoss, PPDOptimizer
from mauc import mauc_score

SIZES = [17, 6, 2, 1]
priors = pytest.mark.parametrize("counts", [None, SIZES])


def data(sizes=SIZES, seed=0):
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(y), len(sizes), generator=generator, dtype=torch.float64) * 2, y


def solve(loss, logits, y):
    """Put a, b and dual at the saddle point: the means of both sides, each other class alike."""
    s, present = logits.detach().softmax(1), y.unique().tolist()
    with torch.no_grad():
        for i in present:
            high = s[y == i, i].mean()
            low = torch.stack([s[y == j, i].mean() for j in present if j != i]).mean()
            loss.a[i], loss.b[i], loss.dual[i] = high, low, 1.0 - high + low
    return loss


@priors
def test_the_saddle_is_the_squared_risk(counts):
    """In value and in the gradient of the logits; with the class sizes, too, where the batch is the whole set."""
    logits, y = data()
    logits.requires_grad_()
    loss = solve(DeepAUCLoss(4, class_counts=counts).double(), logits, y)
    value = loss(logits, y)
    gradient, *of_own = torch.autograd.grad(value, [logits, loss.a, loss.b, loss.dual])
    exact = pair_loss(logits, y, surrogate="squared")
    (expected,) = torch.autograd.grad(exact, logits)
    torch.testing.assert_close(value, exact, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-12)
    assert max(g.abs().max() for g in of_own) < 1e-12, "nothing moves at the saddle"


@priors
def test_it_is_a_saddle(counts):
    """Any other a or b is higher, any other dual lower; by d² / C exactly."""
    logits, y = data()
    loss = solve(DeepAUCLoss(4, class_counts=counts).double(), logits, y)
    at = loss(logits, y).item()
    for name, sign in (("a", 1.0), ("b", 1.0), ("dual", -1.0)):
        for k in range(4):
            other = copy.deepcopy(loss)
            with torch.no_grad():
                getattr(other, name)[k] += 0.3
            assert other(logits, y).item() - at == pytest.approx(sign * 0.3**2 / 4, rel=1e-9)


def test_with_class_sizes_single_samples_are_unbiased():
    """The mean over all batches of one sample is the function on the whole set, wherever a, b and dual are."""
    logits, y = data()
    loss = DeepAUCLoss(4, class_counts=SIZES).double()
    with torch.no_grad():
        for k, p in enumerate(loss.parameters()):
            p.copy_(torch.linspace(-k, 1.0, 4))
    alone = torch.stack([loss(logits[k : k + 1], y[k : k + 1]) for k in range(len(y))])
    torch.testing.assert_close(alone.mean(), loss(logits, y), rtol=1e-10, atol=1e-12)


def test_absent_classes_drop_out():
    """Without class sizes: the risk of the classes present, as in the core; what belongs to the others stays."""
    logits, y = data()
    some = y != 2
    loss = solve(DeepAUCLoss(4).double(), logits[some], y[some])
    value = loss(logits[some], y[some])
    exact = pair_loss(logits[some], y[some], surrogate="squared")
    torch.testing.assert_close(value, exact, rtol=1e-12, atol=1e-12)
    value.backward()
    assert all(p.grad[2] == 0 for p in loss.parameters())


def test_one_class_alone_is_zero():
    logits = torch.randn(3, 3, requires_grad=True)
    value = DeepAUCLoss(3)(logits, torch.ones(3, dtype=torch.long))
    value.backward()
    assert value.item() == 0
    assert not logits.grad.any()


@pytest.mark.parametrize("counts", [None, (120, 60, 20, 6)])
def test_learns_a_separable_toy(counts):
    generator = torch.Generator().manual_seed(0)
    y = torch.repeat_interleave(torch.arange(4), torch.tensor((120, 60, 20, 6)))
    X = nn.functional.one_hot(y, 6).float() * 2 + 0.3 * torch.randn(len(y), 6, generator=generator)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
    loss = DeepAUCLoss(4, class_counts=counts)
    optimizer = PPDOptimizer(model.parameters(), loss, lr=0.05)
    generator = torch.Generator().manual_seed(0)
    for step in range(600):
        batch = torch.randint(len(y), (32,), generator=generator)  # the rarest class is often absent
        optimizer.zero_grad()
        loss(model(X[batch]), y[batch]).backward()
        optimizer.step()
        if step in (150, 450):
            optimizer.end_stage()
    assert mauc_score(y.numpy(), model(X).softmax(1).detach().numpy()) > 0.99


def test_steps_by_hand():
    """v⁺ = (H v/η + v_k/γ − g) / (H/η + 1/γ), θ⁺ = θ + η g/H; then the average, and the step divided by three."""
    p, loss = nn.Parameter(torch.tensor([2.0])), DeepAUCLoss(2)
    optimizer = PPDOptimizer([p], loss, 0.5, proximal=4.0, delta=0.1)
    v, dual, squares = [2.0], [1.0], 0.0
    for g in (3.0, -1.0):
        p.grad, loss.dual.grad = torch.tensor([g]), torch.tensor([g, 0.0])
        optimizer.step()
        squares += g * g
        h = 0.1 + squares**0.5
        v.append((h / 0.5 * v[-1] + 2.0 / 4.0 - g) / (h / 0.5 + 1 / 4.0))
        dual.append(dual[-1] + 0.5 * g / h)
        assert p.item() == pytest.approx(v[-1], rel=1e-6)
        assert loss.dual.tolist() == pytest.approx([dual[-1], 1.0])
    optimizer.end_stage()
    assert p.item() == pytest.approx((v[1] + v[2]) / 2, rel=1e-6)
    assert loss.dual[0].item() == pytest.approx((dual[1] + dual[2]) / 2)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5 / 3] * 3


def test_weight_decay_is_of_the_network_alone():
    p, loss = nn.Parameter(torch.tensor([2.0])), DeepAUCLoss(2)
    optimizer = PPDOptimizer([p], loss, 0.1, proximal=1e12, weight_decay=0.5, delta=1.0)
    p.grad, loss.a.grad = torch.zeros(1), torch.zeros(2)
    optimizer.step()
    assert p.item() == pytest.approx(2.0 - 0.1 * 1.0 / 2.0), "H is δ plus the gradient of the decay, 0.5 · 2"
    assert loss.a.tolist() == [0.0, 0.0]
