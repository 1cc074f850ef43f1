"""The competitors' losses: arithmetic written out by hand, and gradients."""

import math

import pytest
import torch

from experiments.losses import ClassBalancedLoss, LDAMLoss, effective_number_weights

COUNTS = [1000, 100, 10]
LOGITS = [[2.0, 0.5, -1.0], [0.0, 0.0, 0.0], [1.0, -2.0, 0.3], [0.2, 0.1, 3.0]]
TARGET = [0, 1, 2, 2]
MADE = {
    "focal": lambda: ClassBalancedLoss(COUNTS, beta=0.0, gamma=2.0),
    "CB-CE": lambda: ClassBalancedLoss(COUNTS, beta=0.99),
    "CB-focal": lambda: ClassBalancedLoss(COUNTS, beta=0.99, gamma=0.5),
    "LDAM-DRW": lambda: LDAMLoss(COUNTS, scale=2.0, drw_epoch=0),
}
made = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def data():
    return torch.tensor(LOGITS, dtype=torch.float64), torch.tensor(TARGET)


def probability(row, y):
    return math.exp(row[y]) / sum(math.exp(z) for z in row)


def weights(beta):
    each = [(1 - beta) / (1 - beta**n) for n in COUNTS]
    return [w * 3 / sum(each) for w in each]


def mean(losses, w):
    return sum(w[y] * loss for loss, y in zip(losses, TARGET, strict=True)) / sum(w[y] for y in TARGET)


def test_effective_number():
    assert effective_number_weights(COUNTS, 0.99).tolist() == pytest.approx(weights(0.99), rel=1e-12)
    assert effective_number_weights(COUNTS, 0.0).tolist() == [1.0, 1.0, 1.0]
    near = effective_number_weights(COUNTS, 1 - 1e-12)
    assert (near * torch.tensor(COUNTS)).tolist() == pytest.approx([near[0].item() * 1000] * 3, rel=1e-6), "1/n"


@pytest.mark.parametrize("gamma", [0, 0.5, 2.0])
def test_focal_and_class_balanced_by_hand(gamma):
    p = [probability(row, y) for row, y in zip(LOGITS, TARGET, strict=True)]
    losses = [-((1 - q) ** gamma) * math.log(q) for q in p]
    focal = ClassBalancedLoss(COUNTS, beta=0.0, gamma=gamma)
    assert focal(*data()).item() == pytest.approx(sum(losses) / 4, rel=1e-12)
    loss = ClassBalancedLoss(COUNTS, beta=0.99, gamma=gamma)
    assert loss(*data()).item() == pytest.approx(mean(losses, weights(0.99)), rel=1e-12)


def test_ldam_by_hand():
    """Margins 0.5 (10 / n)^¼; the rarest class has the widest."""
    margin = [0.5 * (10 / n) ** 0.25 for n in COUNTS]
    assert margin[2] == 0.5
    losses = []
    for row, y in zip(LOGITS, TARGET, strict=True):
        moved = [3.0 * (z - margin[y] * (k == y)) for k, z in enumerate(row)]
        losses.append(-math.log(probability(moved, y)))
    loss = LDAMLoss(COUNTS, scale=3.0, drw_epoch=2, beta=0.99)
    assert loss.margin.tolist() == pytest.approx(margin, rel=1e-12)
    for epoch, w in ((0, [1, 1, 1]), (1, [1, 1, 1]), (2, weights(0.99)), (5, weights(0.99))):
        loss.set_epoch(epoch)
        assert loss(*data()).item() == pytest.approx(mean(losses, w), rel=1e-12)


@made
def test_gradients(make):
    logits, y = data()
    loss = make()
    assert torch.autograd.gradcheck(lambda z: loss(z, y), logits.requires_grad_())


@made
def test_sure_predictions_have_finite_gradients(make):
    logits = torch.tensor([[200.0, 0.0, 0.0], [0.0, 200.0, 0.0], [200.0, 0.0, 0.0]], requires_grad=True)
    value = make()(logits, torch.tensor([0, 1, 2]))
    value.backward()
    assert value.isfinite()
    assert logits.grad.isfinite().all()
