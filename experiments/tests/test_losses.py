"""The competitors' losses: arithmetic written out by hand, gradients, and the conventions of torch.nn."""

import copy
import math
import pickle

import pytest
import torch
from torch import nn

from experiments.losses import ClassBalancedLoss, FocalLoss, LDAMLoss, effective_number_weights
from mauc.nn import LogitAdjustedLoss

COUNTS = [1000, 100, 10]
LOGITS = [[2.0, 0.5, -1.0], [0.0, 0.0, 0.0], [1.0, -2.0, 0.3], [0.2, 0.1, 3.0]]
TARGET = [0, 1, 2, 2]
MADE = {
    "focal": lambda **k: FocalLoss(2.0, **k),
    "focal, weighted": lambda **k: FocalLoss(0.5, weight=[0.2, 1.0, 3.0], **k),
    "CB-CE": lambda **k: ClassBalancedLoss(COUNTS, beta=0.99, **k),
    "CB-focal": lambda **k: ClassBalancedLoss(COUNTS, beta=0.99, loss="focal", **k),
    "LDAM": lambda **k: LDAMLoss(COUNTS, scale=2.0, **k),
    "adjusted": lambda **k: LogitAdjustedLoss(COUNTS, **k),
    "LDAM-DRW": lambda **k: LDAMLoss(COUNTS, scale=2.0, drw_epoch=0, **k),
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
def test_focal_by_hand(gamma):
    p = [probability(row, y) for row, y in zip(LOGITS, TARGET, strict=True)]
    losses = [-((1 - q) ** gamma) * math.log(q) for q in p]
    logits, y = data()
    assert FocalLoss(gamma, reduction="none")(logits, y).tolist() == pytest.approx(losses, rel=1e-12)
    assert FocalLoss(gamma, reduction="sum")(logits, y).item() == pytest.approx(sum(losses), rel=1e-12)
    assert FocalLoss(gamma)(logits, y).item() == pytest.approx(sum(losses) / 4, rel=1e-12)
    w = [0.2, 1.0, 3.0]
    assert FocalLoss(gamma, weight=w)(logits, y).item() == pytest.approx(mean(losses, w), rel=1e-12)


@pytest.mark.parametrize("tau", [0, 1.0, 1.5])
def test_adjusted_by_hand(tau):
    logits, y = data()
    moved = [[z + tau * math.log(n / sum(COUNTS)) for z, n in zip(row, COUNTS, strict=True)] for row in LOGITS]
    losses = [-math.log(probability(row, k)) for row, k in zip(moved, TARGET, strict=True)]
    assert LogitAdjustedLoss(COUNTS, tau=tau, reduction="none")(logits, y).tolist() == pytest.approx(losses, rel=1e-12)
    assert LogitAdjustedLoss(COUNTS, tau=tau)(logits, y).item() == pytest.approx(sum(losses) / 4, rel=1e-12)


def test_adjusted_learns_the_posterior_of_equal_classes():
    """One point with posterior η and priors p: softmax(z) is minimised at η_i / p_i, normalised."""
    counts, posterior = torch.tensor([60.0, 30.0, 10.0]), torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    z = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([z], max_iter=100, tolerance_grad=1e-12, tolerance_change=0)
    loss = LogitAdjustedLoss(counts, reduction="none")

    def step():
        optimizer.zero_grad()
        value = (posterior * loss(z.expand(3, 3), torch.arange(3))).sum()
        value.backward()
        return value

    optimizer.step(step)
    ratio = posterior / (counts / counts.sum())
    assert torch.softmax(z, 1)[0].tolist() == pytest.approx((ratio / ratio.sum()).tolist(), rel=1e-6)


@pytest.mark.parametrize("gamma", [None, 2.0])
def test_class_balanced_by_hand(gamma):
    p = [probability(row, y) for row, y in zip(LOGITS, TARGET, strict=True)]
    losses = [-((1 - q) ** (gamma or 0)) * math.log(q) for q in p]
    options = {} if gamma is None else {"loss": "focal", "gamma": gamma}
    loss = ClassBalancedLoss(COUNTS, beta=0.99, **options)
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


def test_special_cases_are_cross_entropy():
    logits, y = data()
    w = torch.tensor([0.3, 1.0, 2.0], dtype=torch.float64)
    plain = nn.functional.cross_entropy(logits, y)
    assert torch.allclose(FocalLoss(0)(logits, y), plain, rtol=1e-12)
    assert torch.allclose(ClassBalancedLoss(COUNTS, beta=0)(logits, y), plain, rtol=1e-12)
    assert torch.allclose(LDAMLoss(COUNTS, max_margin=1e-9, scale=1.0)(logits, y), plain, rtol=1e-8)
    weighted = nn.functional.cross_entropy(logits, y, weight=w)
    assert torch.allclose(FocalLoss(0, weight=w)(logits, y), weighted, rtol=1e-12)


@made
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradients(make, reduction):
    logits, y = data()
    loss = make(reduction=reduction)
    assert torch.autograd.gradcheck(lambda z: loss(z, y), logits.requires_grad_())


@made
def test_ignored_samples_count_nowhere(make):
    logits, y = data()
    more = torch.cat([logits, torch.full((2, 3), torch.nan, dtype=torch.float64)]).requires_grad_()
    ignored = torch.cat([y, torch.tensor([-100, -100])])
    value = make()(more, ignored)
    assert torch.allclose(value, make()(logits, y), rtol=1e-12)
    assert make(reduction="none")(more, ignored)[4:].tolist() == [0.0, 0.0]
    value.backward()
    assert torch.equal(more.grad[4:], torch.zeros(2, 3, dtype=torch.float64))
    assert more.grad[:4].isfinite().all()
    assert more.grad[:4].any()


@made
def test_no_sample_that_counts(make):
    logits, _ = data()
    logits.requires_grad_()
    value = make()(logits, torch.full((4,), -100))
    value.backward()
    assert value.item() == 0
    assert not logits.grad.any()


@made
def test_sure_predictions_have_finite_gradients(make):
    logits = torch.tensor([[200.0, 0.0, 0.0], [0.0, 200.0, 0.0], [200.0, 0.0, 0.0]], requires_grad=True)
    value = make()(logits, torch.tensor([0, 1, 2]))
    value.backward()
    assert value.isfinite()
    assert logits.grad.isfinite().all()


@made
def test_conventions(make):
    """Copies, pickles, no state, and digits that survive .half()."""
    logits, y = data()
    loss = make()
    assert loss.state_dict() == {}
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), make().half()):
        assert torch.equal(other(logits, y), loss(logits, y))
    assert loss(logits.float(), y).dtype == torch.float32
    assert (
        loss.to("meta")(torch.empty(4, 3, device="meta"), torch.empty(4, dtype=torch.long, device="meta")).shape == ()
    )


def test_repr_names_the_settings():
    assert repr(FocalLoss(2)) == "FocalLoss(gamma=2, reduction='mean')"
    assert repr(ClassBalancedLoss([1, 2], loss="focal")) == (
        "ClassBalancedLoss('focal', beta=0.9999, gamma=2, reduction='mean')"
    )
    assert repr(LDAMLoss([1, 2], drw_epoch=3)) == (
        "LDAMLoss(max_margin=0.5, scale=30, drw_epoch=3, beta=0.9999, reduction='mean')"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FocalLoss(-1.0), r"gamma must be a finite number of at least 0, got -1.0: 0 is cross-entropy"),
        (lambda: FocalLoss(weight=[[1.0]]), r"weight must be one positive number per class, got shape \(1, 1\)"),
        (lambda: FocalLoss(weight=[1.0, 0.0]), r"weight must be one positive number per class, got \[1.0, 0.0\]"),
        (lambda: FocalLoss(weight="many"), r"weight must be one positive number per class, got 'many'"),
        (lambda: FocalLoss(reduction="max"), "reduction must be one of 'mean', 'sum', 'none', got 'max'"),
        (lambda: ClassBalancedLoss([3, 0]), "class_counts must be two or more positive numbers, got 0 at 1"),
        (
            lambda: ClassBalancedLoss([3, 1], beta=1.0),
            "beta must be a finite number of at least 0 and below 1, got 1.0",
        ),
        (lambda: ClassBalancedLoss([3, 1], loss="hinge"), "loss must be one of 'cross_entropy', 'focal', got 'hinge'"),
        (lambda: LDAMLoss([3, 1], max_margin=0), "max_margin must be a finite number above 0, got 0"),
        (lambda: LDAMLoss([3, 1], scale=-1), "scale must be a finite number above 0, got -1"),
        (lambda: LDAMLoss([3, 1], drw_epoch=-1), "drw_epoch must be a whole number of at least 0, got -1"),
        (lambda: LDAMLoss([3, 1]).set_epoch(0.5), "epoch must be a whole number of at least 0, got 0.5"),
        (
            lambda: LDAMLoss([3, 1])(torch.zeros(2, 3), torch.tensor([0, 1])),
            "logits must have one column for each of the 2 classes, got 3 columns: pass the class sizes",
        ),
        (lambda: FocalLoss()(torch.zeros(2, 3), torch.tensor([0, 3])), "target must be from 0 to 2"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("counts", [3, None, [], [5], [[1, 2]]])
def test_class_sizes_must_be_a_list_of_them(counts):
    with pytest.raises(ValueError, match="class_counts must be two or more positive numbers"):
        ClassBalancedLoss(counts)
