"""``LogitAdjustedLoss``: arithmetic written out by hand, gradients, and the conventions of torch.nn."""

import copy
import math
import pickle

import pytest

torch = pytest.importorskip("torch", reason="needs the extra mauc[torch]")

from mauc.nn import LogitAdjustedLoss  # noqa: E402

COUNTS = [1000, 100, 10]
LOGITS = [[2.0, 0.5, -1.0], [0.0, 0.0, 0.0], [1.0, -2.0, 0.3], [0.2, 0.1, 3.0]]
TARGET = [0, 1, 2, 2]


def data():
    return torch.tensor(LOGITS, dtype=torch.float64), torch.tensor(TARGET)


@pytest.mark.parametrize("tau", [0, 1.5])
def test_by_hand(tau):
    losses = []
    for row, y in zip(LOGITS, TARGET, strict=True):
        moved = [z + tau * math.log(n / sum(COUNTS)) for z, n in zip(row, COUNTS, strict=True)]
        losses.append(math.log(sum(math.exp(z) for z in moved)) - moved[y])
    for reduction, expected in {"none": losses, "sum": sum(losses), "mean": sum(losses) / 4}.items():
        loss = LogitAdjustedLoss(COUNTS, tau=tau, reduction=reduction)
        assert loss(*data()).tolist() == pytest.approx(expected, rel=1e-12)


def test_learns_the_posterior_of_equal_classes():
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


def test_ignored_samples_count_nowhere():
    logits, y = data()
    more = torch.cat([logits, torch.full((2, 3), torch.nan, dtype=torch.float64)]).requires_grad_()
    ignored = torch.cat([y, torch.tensor([-100, -100])])
    value = LogitAdjustedLoss(COUNTS)(more, ignored)
    assert torch.allclose(value, LogitAdjustedLoss(COUNTS)(logits, y), rtol=1e-12)
    value.backward()
    assert torch.equal(more.grad[4:], torch.zeros(2, 3, dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda z: LogitAdjustedLoss(COUNTS)(z, y), logits.requires_grad_())
    assert LogitAdjustedLoss(COUNTS)(logits, torch.full((4,), -100)).item() == 0


def test_conventions():
    """Copies, pickles, no state, and digits that survive .half()."""
    loss = LogitAdjustedLoss(COUNTS)
    assert loss.state_dict() == {}
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), LogitAdjustedLoss(COUNTS).half()):
        assert torch.equal(other(*data()), loss(*data()))
    assert loss(data()[0].float(), data()[1]).dtype == torch.float32


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogitAdjustedLoss([3, 1], tau=-1.0), "tau must be a finite number of at least 0, got -1.0"),
        (lambda: LogitAdjustedLoss([3, 1], reduction="max"), "reduction must be one of 'mean', 'sum', 'none'"),
        (lambda: LogitAdjustedLoss([3, -1]), r"class_counts must .*positive"),
        (lambda: LogitAdjustedLoss([5]), r"class_counts must .*positive"),
        (
            lambda: LogitAdjustedLoss([3, 1])(torch.zeros(2, 3), torch.tensor([0, 1])),
            "logits must have one column for each of the 2 classes, got 3 columns",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
