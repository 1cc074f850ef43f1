"""The loss and the metric where other libraries and their habits meet them."""

from types import SimpleNamespace

import pytest
import torch
from pair_loss import PairLoss
from torch.nn.functional import cross_entropy

from mauc.nn import LogitAdjustedLoss, MAUCLoss


def data(n=12, c=3):
    logits = torch.randn(n, c, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return logits.requires_grad_(), torch.arange(n) % c


def test_what_trainers_pass_is_taken():
    """The arguments and the output object of Hugging Face."""
    logits, y = data()
    loss = MAUCLoss([5, 3, 2])
    assert torch.equal(loss(SimpleNamespace(logits=logits), y, num_items_in_batch=torch.tensor(12)), loss(logits, y))
    with pytest.raises(TypeError, match="wieght"):
        loss(logits, y, wieght=torch.ones(12))


@pytest.mark.parametrize("loss", [MAUCLoss([5, 3, 2]), PairLoss("hinge"), PairLoss("squared", pairs="ova")], ids=str)
def test_pixels_are_rows(loss):
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    masks = torch.randint(0, 3, (2, 4, 5), generator=generator)
    masks[0, 0] = -100
    weight = torch.rand(2, 4, 5, generator=generator, dtype=torch.float64)
    value = loss(images, masks, weight)
    rows = images.movedim(1, -1).reshape(-1, 3)
    expected = loss(rows, masks.flatten(), weight.flatten())
    assert torch.equal(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, images), torch.autograd.grad(expected, images))
    with pytest.raises(ValueError, match=r"^target must have the shape \(2, 4, 5\), got shape \(2, 5\)"):
        loss(images, masks[:, 0])


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_adjusted_cross_entropy_takes_pixels(reduction):
    images = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    masks = torch.arange(40).reshape(2, 4, 5) % 3
    got = LogitAdjustedLoss([5, 3, 2], reduction=reduction)(images, masks)
    shift = (torch.tensor([5.0, 3.0, 2.0]) / 10).log()[:, None, None]
    torch.testing.assert_close(got, cross_entropy(images + shift, masks, reduction=reduction))


def test_a_toy_segmentation_learns():
    torch.manual_seed(0)
    masks = torch.zeros(8, 8, 8, dtype=torch.int64)
    masks[:, 2:4, 2:5], masks[:, 6, 6] = 1, 2
    images = torch.nn.functional.one_hot(masks, 3).movedim(-1, 1) + 0.3 * torch.randn(8, 3, 8, 8)
    network, loss = torch.nn.Conv2d(3, 3, 3, padding=1), MAUCLoss(torch.bincount(masks.flatten()))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    first = None
    for _ in range(40):
        optimizer.zero_grad()
        value = loss(network(images), masks)
        value.backward()
        optimizer.step()
        first = value.item() if first is None else first
    assert value.item() < 0.2 * first


def test_probabilities_as_targets_are_told_what_to_do():
    logits, y = data()
    mixed = torch.nn.functional.one_hot(y, 3).double()
    with pytest.raises(ValueError, match=r"target must be classes, .* got probabilities: for mixup, mix two losses"):
        MAUCLoss([5, 3, 2])(logits, mixed)


def test_a_class_that_never_occurs_may_have_the_count_0():
    logits, y = data(12, 4)
    y = y.clamp(max=2)
    message = "class_counts is 0 for class 3: without a sample, nothing teaches the network to score it"
    with pytest.warns(UserWarning, match=message):
        loss = MAUCLoss([3, 3, 6, 0])
    with pytest.warns(UserWarning, match=message):
        adjusted = LogitAdjustedLoss([3, 3, 6, 0])
    for each in (loss, adjusted):
        value = each(logits, y)
        (gradient,) = torch.autograd.grad(value, logits)
        assert value.isfinite()
        assert gradient.isfinite().all()
        with pytest.raises(ValueError, match="class_counts must be positive for every class that occurs, got 0 at 3"):
            each(logits, torch.full((12,), 3))
    expected = cross_entropy(logits[:, :3] + torch.tensor([3.0, 3.0, 6.0]).log(), y)
    torch.testing.assert_close(adjusted(logits, y), expected)
    (slope,) = torch.autograd.grad(loss(logits, y), logits, create_graph=True)
    assert torch.autograd.grad(slope.square().sum(), logits)[0].isfinite().all()
    with pytest.raises(ValueError, match="class_counts must be two or more positive numbers, got 0 at 0"):
        MAUCLoss([0, 0, 0])


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_one_logit_for_two_classes(shape):
    y = torch.arange(6) % 2
    for loss in (MAUCLoss([3, 3]), LogitAdjustedLoss([3, 3])):
        with pytest.raises(ValueError, match=r"logits must have two columns or more.*: give the network two outputs"):
            loss(torch.zeros(shape), y)


@pytest.mark.parametrize(
    "settings", [{}, {"activation": "log_odds"}, {"pairs": "ova"}, {"surrogate": "hinge"}], ids=str
)
def test_a_batch_without_rows_is_0(settings):
    logits = torch.zeros(0, 3, requires_grad=True)
    value = MAUCLoss([5, 3, 2], **settings)(logits, torch.zeros(0, dtype=torch.int64))
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.item() == 0.0
    assert gradient.shape == (0, 3)
