"""DeepAUC: its saddle point is the squared risk of the core, and its optimiser finds it."""

import copy

import numpy as np
import pytest
import torch
from pair_loss import pair_loss
from torch import nn

from experiments.deepauc import DeepAUCLoss, PPDOptimizer
from mauc import SurrogateRisk, mauc_score

SIZES = [17, 6, 2, 1]


def data(sizes=SIZES, seed=0):
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(y), len(sizes), generator=generator, dtype=torch.float64) * 2, y


settings = pytest.mark.parametrize(("pairs", "priors"), [("ovo", False), ("ovo", True), ("ova", False), ("ova", True)])


@settings
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "identity"])
def test_the_saddle_is_the_squared_risk(pairs, priors, alpha, activation):
    """In value and in the gradient of the logits; with the class sizes, too, where the batch is the whole set."""
    logits, y = data()
    logits.requires_grad_()
    loss = DeepAUCLoss(4, alpha=alpha, activation=activation, pairs=pairs, class_counts=SIZES if priors else None)
    loss.double().solve(logits, y)
    value = loss(logits, y)
    gradient, *of_own = torch.autograd.grad(value, [logits, loss.a, loss.b, loss.dual])
    exact = pair_loss(logits, y, surrogate="squared", alpha=alpha, activation=activation, pairs=pairs)
    (expected,) = torch.autograd.grad(exact, logits)
    torch.testing.assert_close(value, exact, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-12)
    assert max(g.abs().max() for g in of_own) < 1e-12, "nothing moves at the saddle"
    scores = {"softmax": logits.softmax(1), "sigmoid": logits.sigmoid(), "identity": logits}[activation].detach()
    core, slope = SurrogateRisk("squared", alpha=alpha, pairs=pairs).value_and_gradient(y.numpy(), scores.numpy())
    assert value.item() == pytest.approx(core, rel=1e-10)
    if activation == "identity":
        np.testing.assert_allclose(gradient, slope, atol=1e-12)


@settings
def test_it_is_a_saddle(pairs, priors):
    """Any other a or b is higher, any other dual lower; by V_i d² exactly."""
    logits, y = data()
    loss = DeepAUCLoss(4, pairs=pairs, class_counts=SIZES if priors else None).double().solve(logits, y)
    at = loss(logits, y).item()
    for name, sign in (("a", 1.0), ("b", 1.0), ("dual", -1.0)):
        for k in range(4):
            other = copy.deepcopy(loss)
            with torch.no_grad():
                getattr(other, name)[k] += 0.3
            assert other(logits, y).item() - at == pytest.approx(sign * 0.3**2 / 4, rel=1e-9)


@settings
def test_gradients(pairs, priors):
    logits, y = data()
    loss = DeepAUCLoss(4, pairs=pairs, class_counts=[40, 20, 9, 3] if priors else None).double()
    with torch.no_grad():
        loss.a += 0.3
        loss.b -= 0.1

    def value(z, a, b, dual):
        return torch.func.functional_call(loss, {"a": a, "b": b, "dual": dual}, (z, y))

    own = [p.detach().clone().requires_grad_() for p in (loss.a, loss.b, loss.dual)]
    assert torch.autograd.gradcheck(value, [logits.requires_grad_(), *own])


@pytest.mark.parametrize("pairs", ["ovo", "ova"])
def test_with_class_sizes_single_samples_are_unbiased(pairs):
    """The mean over all batches of one sample is the function on the whole set, wherever a, b and dual are."""
    logits, y = data()
    loss = DeepAUCLoss(4, pairs=pairs, class_counts=SIZES).double()
    with torch.no_grad():
        for k, p in enumerate(loss.parameters()):
            p.copy_(torch.linspace(-k, 1.0, 4))
    alone = torch.stack([loss(logits[k : k + 1], y[k : k + 1]) for k in range(len(y))])
    torch.testing.assert_close(alone.mean(), loss(logits, y), rtol=1e-10, atol=1e-12)


def test_absent_classes_drop_out():
    """Without class sizes: the risk of the classes present, as in the core; what belongs to the others stays."""
    logits, y = data()
    some = y != 2
    loss = DeepAUCLoss(4).double().solve(logits[some], y[some])
    value = loss(logits[some], y[some])
    exact = pair_loss(logits[some], y[some], surrogate="squared")
    torch.testing.assert_close(value, exact, rtol=1e-12, atol=1e-12)
    assert (loss.a[2], loss.b[2], loss.dual[2]) == (0, 0, 1)
    value.backward()
    assert all(p.grad[2] == 0 for p in loss.parameters())


@pytest.mark.parametrize("rows", [0, 3])
def test_fewer_than_two_classes(rows):
    logits = torch.randn(rows, 3, requires_grad=True)
    loss = DeepAUCLoss(3)
    value = loss(logits, torch.ones(rows, dtype=torch.long))
    value.backward()
    assert value.item() == 0
    assert not logits.grad.any()
    assert not any(p.grad.any() for p in loss.parameters())


@pytest.mark.parametrize("priors", [False, True])
def test_ignored_samples(priors):
    logits, y = data()
    loss = DeepAUCLoss(4, class_counts=SIZES if priors else None).double()
    more = torch.cat([logits, torch.full((3, 4), torch.nan, dtype=torch.float64)])
    ignored = torch.cat([y, torch.full((3,), -100)])
    torch.testing.assert_close(loss(more, ignored), loss(logits, y), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("priors", [False, True])
def test_zero_and_no_gradient_where_no_sample_counts(priors):
    loss = DeepAUCLoss(4, class_counts=SIZES if priors else None)
    logits = torch.full((3, 4), torch.nan, requires_grad=True)
    value = loss(logits, torch.full((3,), -100))
    value.backward()
    assert value.item() == 0.0
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in (logits, *loss.parameters()))


def test_half_precision_is_computed_wide():
    logits, y = data()
    loss = DeepAUCLoss(4, class_counts=[1e6, 1e5, 10, 3])
    expected = loss(logits.float(), y)
    assert loss(logits.bfloat16(), y).dtype == torch.float32
    torch.testing.assert_close(loss.half()(logits.half(), y), expected, rtol=2e-2, atol=0.0)


def toy(seed=0, sizes=(120, 60, 20, 6)):
    generator = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.arange(4), torch.tensor(sizes))
    return nn.functional.one_hot(y, 6).float() * 2 + 0.3 * torch.randn(len(y), 6, generator=generator), y


@pytest.mark.parametrize(("method", "rate", "priors"), [("sgd", 1.0, True), ("adagrad", 0.05, False)])
def test_learns_a_separable_toy(method, rate, priors):
    X, y = toy()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
    loss = DeepAUCLoss(4, class_counts=torch.bincount(y) if priors else None)
    optimizer = PPDOptimizer(model.parameters(), loss, lr=rate, method=method, stage_steps=150, growth=2.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(600):
        batch = torch.randint(len(y), (32,), generator=generator)  # the rarest class is often absent
        optimizer.zero_grad()
        loss(model(X[batch]), y[batch]).backward()
        optimizer.step()
    assert optimizer.stage == 2
    assert mauc_score(y.numpy(), model(X).softmax(1).detach().numpy()) > 0.99


def test_finds_the_saddle_of_fixed_scores():
    """With the network held still, a, b and dual come to where the risk is that of the core."""
    logits, y = data()
    model, loss = nn.Linear(1, 1), DeepAUCLoss(4).double()
    optimizer = PPDOptimizer(model.parameters(), loss, lr=0.5, proximal=1e9)
    for _ in range(200):
        optimizer.zero_grad()
        loss(logits, y).backward()
        optimizer.step()
    solved = DeepAUCLoss(4).double().solve(logits, y)
    for name in ("a", "b", "dual"):
        torch.testing.assert_close(getattr(loss, name), getattr(solved, name), rtol=0, atol=1e-3)


def one_parameter(**options):
    p, loss = nn.Parameter(torch.tensor([2.0])), DeepAUCLoss(2)
    return p, loss, PPDOptimizer([p], loss, **options)


def test_a_step_by_hand():
    """v⁺ = (v/η + v_k/γ − g) / (1/η + 1/γ), θ⁺ = θ + η g; then the average, and the step divided by three."""
    p, loss, optimizer = one_parameter(lr=0.5, proximal=4.0)
    steps, v = [3.0, -1.0], [2.0]
    for g in steps:
        p.grad, loss.dual.grad = torch.tensor([g]), torch.tensor([g, 0.0])
        optimizer.step()
        v.append((v[-1] / 0.5 + 2.0 / 4.0 - g) / (1 / 0.5 + 1 / 4.0))
        assert p.item() == pytest.approx(v[-1], rel=1e-6)
    assert loss.dual.tolist() == pytest.approx([1.0 + 0.5 * 3.0 - 0.5 * 1.0, 1.0])
    optimizer.end_stage()
    average = (v[1] + v[2]) / 2
    assert p.item() == pytest.approx(average, rel=1e-6)
    assert loss.dual[0].item() == pytest.approx((2.5 + 2.0) / 2)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5 / 3] * 3
    p.grad = torch.tensor([1.0])
    optimizer.step()
    eta = 0.5 / 3
    assert p.item() == pytest.approx((average / eta + average / 4.0 - 1.0) / (1 / eta + 1 / 4.0), rel=1e-6)


def test_adagrad_by_hand():
    p, _, optimizer = one_parameter(lr=0.5, proximal=4.0, method="adagrad", delta=0.1, average=False)
    v, squares = 2.0, 0.0
    for g in (3.0, -1.0):
        p.grad = torch.tensor([g])
        optimizer.step()
        squares += g * g
        h = (0.1 + squares**0.5) / 0.5
        v = (h * v + 2.0 / 4.0 - g) / (h + 1 / 4.0)
        assert p.item() == pytest.approx(v, rel=1e-6)
    optimizer.end_stage()
    assert p.item() == pytest.approx(v, rel=1e-6), "the last point, without averages"


def test_stages_grow():
    p, _, optimizer = one_parameter(stage_steps=2, growth=2.0)
    stages = []
    for _ in range(7):
        p.grad = torch.ones(1)
        optimizer.step()
        stages.append(optimizer.stage)
    assert stages == [0, 1, 1, 1, 1, 2, 2]


def test_parameters_of_the_loss_are_taken_once():
    module = nn.Module()
    module.network, module.loss = nn.Linear(2, 3), DeepAUCLoss(3)
    optimizer = PPDOptimizer(module.parameters(), module.loss, weight_decay=0.1)
    assert [len(group["params"]) for group in optimizer.param_groups] == [2, 2, 1]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0, 0.0]
    groups = [{"params": module.network.weight, "lr": 0.3}, {"params": [module.network.bias, module.loss.a]}]
    optimizer = PPDOptimizer(groups, module.loss)
    assert [(len(group["params"]), group["lr"]) for group in optimizer.param_groups] == [
        (1, 0.3),
        (1, 0.1),
        (2, 0.1),
        (1, 0.1),
    ]


def test_weight_decay_and_closure():
    p, _, optimizer = one_parameter(lr=0.1, proximal=1e12, weight_decay=0.5)

    def closure():
        optimizer.zero_grad()
        p.grad = torch.zeros(1)
        return 7.0

    assert optimizer.step(closure) == 7.0
    assert p.item() == pytest.approx(2.0 - 0.1 * 0.5 * 2.0)


@pytest.mark.parametrize("method", ["sgd", "adagrad"])
def test_state_goes_on(method):
    """A run saved in the middle of a stage ends where the unbroken one does."""
    X, y = toy()

    def begin():
        torch.manual_seed(0)
        model, loss = nn.Linear(6, 4), DeepAUCLoss(4)
        return model, loss, PPDOptimizer(model.parameters(), loss, lr=0.5, method=method, stage_steps=3, growth=1.5)

    def go_on(model, loss, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(X), y).backward()
            optimizer.step()

    whole = begin()
    go_on(*whole, 12)
    first = begin()
    go_on(*first, 5)
    second = begin()
    for old, new in zip(first, second, strict=True):
        new.load_state_dict(copy.deepcopy(old.state_dict()))
    go_on(*second, 7)
    assert second[2].stage == whole[2].stage
    assert torch.equal(second[0].weight, whole[0].weight)
    assert torch.equal(second[1].dual, whole[1].dual)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DeepAUCLoss(1), "num_classes must be a whole number of at least 2, got 1"),
        (lambda: DeepAUCLoss(3, alpha=0), "alpha must be a finite number above 0, got 0"),
        (lambda: DeepAUCLoss(3, pairs=np.ones((3, 3))), "pairs must be one of 'ovo', 'ova'"),
        (lambda: DeepAUCLoss(3, activation="relu"), "activation must be one of"),
        (lambda: DeepAUCLoss(3, class_counts=[1, 2]), "class_counts must be 3 positive numbers"),
        (
            lambda: DeepAUCLoss(3)(torch.zeros(2, 4), torch.zeros(2, dtype=torch.long)),
            "logits must have num_classes=3 columns, got 4 columns: pass one per class",
        ),
        (lambda: one_parameter(lr=0), "lr must be a finite number above 0, got 0"),
        (lambda: one_parameter(proximal=-1.0), "proximal must be a finite number above 0, got -1.0"),
        (lambda: one_parameter(method="adam"), "method must be one of 'sgd', 'adagrad', got 'adam'"),
        (lambda: one_parameter(decay=0.5), "decay must be a finite number of at least 1, got 0.5: 1 keeps"),
        (lambda: one_parameter(growth=True), "growth must be a finite number of at least 1, got True"),
        (lambda: one_parameter(stage_steps=0), "stage_steps must be a whole number of at least 1, got 0"),
        (lambda: one_parameter(weight_decay=-1), "weight_decay must be a finite number of at least 0, got -1"),
        (lambda: PPDOptimizer([], DeepAUCLoss(2)), "params must hold a parameter of the network, got none"),
        (lambda: PPDOptimizer([nn.Parameter(torch.ones(1))], nn.MSELoss()), "loss must be a DeepAUCLoss"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
