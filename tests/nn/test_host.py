"""The paths of the CPU against the operations that every device has."""

import itertools

import numpy as np
import pytest
from cases import EACH_KIND, Case

torch = pytest.importorskip("torch")

from pair_loss import pair_loss  # noqa: E402

from mauc.nn._engine import batch, host, small  # noqa: E402


def draw(n, c, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    target = torch.cat([torch.arange(c - 1), torch.randint(0, c - 1, (n - c + 1,), generator=generator)])
    return (2.0 * torch.randn(n, c, generator=generator)).to(dtype), target


def value_and_gradient(logits, target, surrogate, **options):
    logits = logits.clone().requires_grad_()
    loss = pair_loss(logits, target, surrogate=surrogate, **options)
    loss.backward()
    return loss.detach(), logits.grad


@pytest.fixture
def elsewhere(monkeypatch):
    """The same call on the way that other devices go."""

    def call(*args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(host, "evaluate", lambda *args: None)
            patch.setattr(host, "searches", lambda scores, batch: False)
            return value_and_gradient(*args, **options)

    return call


# What a batch of 27 samples and 5 classes is made to be: the sizes at which its ways part, and the last in blocks, the
# last of which is short.
WAYS = {
    "tiny": {},
    "few": {(small, "TINY"): 0},
    "many": {(small, "TINY"): 0, (small, "FEW"): 0, (small, "FEW_ROWS"): 4},
    "wide": {(small, "TINY"): 0, (small, "FEW"): 0, (small, "FEW_ROWS"): 4, (small, "WIDE"): 1},
    "blocks": {(small, "MOST"): 0, (batch, "CHUNK"): 40},
}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    for place, number in WAYS[request.param].items():
        monkeypatch.setattr(*place, number)
    return request.param


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_closed_forms(monkeypatch, elsewhere, way, surrogate, dtype):
    logits, target = draw(27, 5, dtype=dtype)  # the last class is absent
    seen = []
    real = host.evaluate
    close = {"rtol": 1e-5, "atol": 1e-7} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-14}
    sizes = torch.tensor([5.0, 900.0, 7.0, 80.0, 1.0])
    for counts, log_loss, pairs in itertools.product([None, sizes], [0.0, 0.7], ["ovo", "ova"]):
        options = {"alpha": 3.0, "log_loss": log_loss, "pairs": pairs, "class_counts": counts}
        expected = elsewhere(logits, target, surrogate, **options)
        with monkeypatch.context() as patch:
            patch.setattr(host, "evaluate", lambda *args: seen.append(real(*args)) or seen[-1])
            found = value_and_gradient(logits, target, surrogate, **options)
        assert seen.pop() is not None
        torch.testing.assert_close(found, expected, **close)


@pytest.mark.usefixtures("all_pairs")
@pytest.mark.filterwarnings("ignore:.*taking all pairs in blocks:UserWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "case", [*EACH_KIND, Case("hinge", {"alpha": 0.3}), Case("exponential", {"alpha": 40.0})], ids=str
)
def test_all_pairs(monkeypatch, elsewhere, case, dtype):
    """The definition, whatever the surrogate, and whatever ties."""
    logits, target = draw(27, 5, dtype=dtype)
    tied = torch.randint(0, 2, (27, 5), generator=torch.Generator().manual_seed(1)).to(dtype) * np.log(3.0)
    sizes = torch.tensor([5.0, 900.0, 7.0, 80.0, 1.0])
    for z, pairs, log_loss in ((logits, "ovo", 0.0), (tied, "ova", 0.7), (logits[:9], "ova", 0.0)):
        options = {"pairs": pairs, "log_loss": log_loss, "class_counts": sizes} | case.options
        expected = elsewhere(z, target[: len(z)], case.surrogate, **options)
        with monkeypatch.context() as patch:
            patch.setattr("mauc.nn._engine.loss._evaluate", None)  # nothing else is asked
            found = value_and_gradient(z, target[: len(z)], case.surrogate, **options)
        # The other way is an approximation of some losses, to 1e-7 or so.
        close = 1e-5 if dtype == torch.float32 else 1e-6
        torch.testing.assert_close(found, expected, rtol=close, atol=0.2 * close * expected[1].abs().max().item())


@pytest.mark.usefixtures("all_pairs")
def test_all_pairs_of_what_is_no_number_or_teaches_nothing():
    logits, target = draw(20, 4)
    value, gradient = value_and_gradient(logits, torch.full((20,), 2), "hinge", alpha=0.5)
    assert value == 0.0
    assert not gradient.any()
    logits[2, 1] = torch.nan
    assert value_and_gradient(logits, target, "logistic")[0].isnan()


@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_logits_in_any_layout(way, surrogate):
    logits, target = draw(27, 5, dtype=torch.float64)
    expected = value_and_gradient(logits, target, surrogate, log_loss=0.3)
    transposed, strided = logits.T.contiguous().T, torch.stack([logits, logits], 2)[:, :, 1]
    conjugated = torch.complex(logits, -logits).conj().imag
    assert conjugated.is_neg()
    for same in (transposed, strided, conjugated):
        leaf = same.detach().requires_grad_()
        loss = pair_loss(leaf, target, surrogate=surrogate, log_loss=0.3)
        torch.testing.assert_close((loss.detach(), *torch.autograd.grad(loss, leaf)), expected)


def test_autocast_changes_nothing(way):
    logits, target = draw(27, 5)
    expected = value_and_gradient(logits, target, "exponential", log_loss=0.3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = value_and_gradient(logits, target, "exponential", log_loss=0.3)
    torch.testing.assert_close(found, expected, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("offset", [-1000.0, -100.0, 80.0, 1000.0])
def test_logits_far_from_zero(way, offset):
    """One row far from the others, whose exponentials alone are too large or too small."""
    logits, target = draw(27, 5)
    moved = logits.clone()
    moved[7] = (logits[7].double() + offset).float()
    for log_loss in (0.0, 0.3):
        found, expected = (value_and_gradient(z, target, "exponential", log_loss=log_loss) for z in (moved, logits))
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)  # the logits themselves lose digits


@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
@pytest.mark.parametrize(("n", "c"), [(small.MOST // 2, 2), (999, 100)])
def test_single_precision(surrogate, n, c):
    """Sums over many rows lose no digits on the way."""
    logits, target = draw(n, c + 1)
    value, gradient = value_and_gradient(logits[:, :c], target, surrogate, alpha=1.0)
    exact, slope = value_and_gradient(logits[:, :c].double(), target, surrogate, alpha=1.0)
    assert value.item() == pytest.approx(exact.item(), rel=1.5e-7)
    assert (gradient - slope).norm() < 2e-7 * slope.norm()


def test_a_softmax_all_on_an_absent_class_is_left_to_logarithms(elsewhere, way):
    logits, target = draw(12, 4)
    logits[3] = torch.tensor([0.0, 0.0, 0.0, 200.0])
    found, expected = (call(logits, target, "exponential", log_loss=1.0) for call in (value_and_gradient, elsewhere))
    assert found[0].isfinite()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("spread", "last"), [(0.1, 0.1), (1.0, 1.0), (0.1, 9.0)])
@pytest.mark.parametrize(("surrogate", "alpha"), [("hinge", 0.4), ("generalized_hinge", 0.5)])
@pytest.mark.parametrize("most", [0, small.MOST])
def test_a_line_where_the_scores_meet_no_more(monkeypatch, elsewhere, most, surrogate, alpha, spread, last):
    """The few rows that are looked at first, and one beyond them that alone reaches the kink."""
    monkeypatch.setattr(small, "MOST", most)
    logits, target = draw(host.FEW_ROWS + 40, 5)
    logits *= spread
    logits[-1, 2] = last
    seen = []
    real = host.evaluate
    monkeypatch.setattr(host, "evaluate", lambda *args: seen.append(real(*args)) or seen[-1])
    found, expected = (call(logits, target, surrogate, alpha=alpha) for call in (value_and_gradient, elsewhere))
    assert (seen[0] is not None) == (last == 0.1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("pairs", ["ovo", "ova", torch.rand(5, 5, generator=torch.Generator().manual_seed(1))])
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
@pytest.mark.parametrize("weighted", [False, True])
def test_search(elsewhere, pairs, activation, weighted):
    logits, target = draw(60, 5)
    target[7] = -100
    weight = torch.rand(60, generator=torch.Generator().manual_seed(2)) if weighted else None
    for surrogate, alpha in (("hinge", 0.4), ("generalized_hinge", 0.5)):
        options = {"alpha": alpha, "pairs": pairs, "activation": activation, "weight": weight}
        found, expected = (call(logits, target, surrogate, **options) for call in (value_and_gradient, elsewhere))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)


def test_classes_out_of_range_are_told_whatever_their_size():
    logits, target = draw(12, 4)
    for wrong in (-1, -5, 4, 1 << 60, -(1 << 60)):
        target[5] = wrong
        with pytest.raises(ValueError, match=f"target must be a class from 0 to 3 .*, got {wrong} at 5"):
            pair_loss(logits, target)


def test_what_is_no_number_stays_none(way):
    logits, target = draw(20, 4)
    logits[2, 1] = torch.nan
    for surrogate, alpha in (("squared", 0.5), ("exponential", 0.5), ("hinge", 0.5), ("hinge", 1.5)):
        value, gradient = value_and_gradient(logits, target, surrogate, alpha=alpha, log_loss=0.5)
        assert value.isnan()
        assert gradient.isnan().any()
