"""The paths of the CPU against the operations that every device has."""

import pytest

torch = pytest.importorskip("torch")

from mauc.kernels.crowd import MANY, Crowd  # noqa: E402
from mauc.nn._engine import batch, host  # noqa: E402
from mauc.nn.functional import mauc_loss  # noqa: E402


def draw(n, c, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    target = torch.cat([torch.arange(c - 1), torch.randint(0, c - 1, (n - c + 1,), generator=generator)])
    return (2.0 * torch.randn(n, c, generator=generator)).to(dtype), target


def value_and_gradient(logits, target, surrogate, **options):
    logits = logits.clone().requires_grad_()
    loss = mauc_loss(logits, target, surrogate=surrogate, **options)
    loss.backward()
    return loss.detach(), logits.grad


@pytest.fixture
def elsewhere(monkeypatch):
    """The same call on the way that other devices go."""

    def call(*args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(host, "fits", lambda *args, **options: False)
            patch.setattr(host, "searches", lambda scores, batch: False)  # nor smooth() then
            return value_and_gradient(*args, **options)

    return call


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("pairs", ["ovo", "ova"])
@pytest.mark.parametrize("log_loss", [0.0, 0.7])
@pytest.mark.parametrize("counts", [None, torch.tensor([5.0, 900.0, 7.0, 80.0, 1.0])])
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_closed_forms(monkeypatch, elsewhere, surrogate, counts, log_loss, pairs, dtype):
    monkeypatch.setattr(batch, "CHUNK", 40)  # several blocks, the last of them short
    logits, target = draw(27, 5, dtype=dtype)  # the last class is absent
    options = {"alpha": 3.0, "log_loss": log_loss, "pairs": pairs, "class_counts": counts}
    seen = []
    real = host.evaluate
    monkeypatch.setattr(host, "evaluate", lambda *args: seen.append(real(*args)) or seen[-1])
    found, expected = (call(logits, target, surrogate, **options) for call in (value_and_gradient, elsewhere))
    assert len(seen) == 1
    assert seen[0] is not None
    torch.testing.assert_close(found, expected, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-7)


@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_logits_in_any_layout(monkeypatch, surrogate):
    logits, target = draw(27, 5, dtype=torch.float64)
    expected = value_and_gradient(logits, target, surrogate, log_loss=0.3)
    transposed, strided = logits.T.contiguous().T, torch.stack([logits, logits], 2)[:, :, 1]
    for chunk in (batch.CHUNK, 40):
        monkeypatch.setattr(batch, "CHUNK", chunk)
        for same in (transposed, strided):
            leaf = same.detach().requires_grad_()
            loss = mauc_loss(leaf, target, surrogate=surrogate, log_loss=0.3)
            torch.testing.assert_close((loss.detach(), *torch.autograd.grad(loss, leaf)), expected)


def test_a_softmax_all_on_an_absent_class_is_left_to_logarithms(elsewhere):
    logits, target = draw(12, 4)
    logits[3] = torch.tensor([0.0, 0.0, 0.0, 200.0])
    found, expected = (call(logits, target, "exponential", log_loss=1.0) for call in (value_and_gradient, elsewhere))
    assert found[0].isfinite()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("spread", "last"), [(0.1, 0.1), (1.0, 1.0), (0.1, 9.0)])
@pytest.mark.parametrize(("surrogate", "alpha"), [("hinge", 0.4), ("generalized_hinge", 0.5)])
def test_a_line_where_the_scores_meet_no_more(monkeypatch, elsewhere, surrogate, alpha, spread, last):
    """The few rows that are looked at first, and one beyond them that alone reaches the kink."""
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("pairs", ["ovo", "ova", torch.rand(64, 64, generator=torch.Generator().manual_seed(1))])
@pytest.mark.parametrize(("surrogate", "alpha"), [("hinge", 0.4), ("generalized_hinge", 0.5), ("logistic", 1.0)])
def test_crowds(monkeypatch, elsewhere, surrogate, alpha, pairs, dtype):
    """Trained-like logits, enough of them to be taken together where they stand at one place."""
    logits, target = draw(MANY // 64 + 3, 64, dtype=dtype)
    logits[torch.arange(len(target)), target] += 6.0
    target[7] = -100
    weight = torch.rand(len(target), generator=torch.Generator().manual_seed(2))
    visited = []
    real = Crowd.visit
    monkeypatch.setattr(Crowd, "visit", lambda self, *args: visited.append(real(self, *args)) or visited[-1])
    options = {"alpha": alpha, "pairs": pairs, "weight": weight}
    found, expected = (call(logits, target, surrogate, **options) for call in (value_and_gradient, elsewhere))
    assert visited
    assert all(apart is not None for apart in visited)
    torch.testing.assert_close(found, expected, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-9)


def test_what_is_no_number_stays_none():
    logits, target = draw(20, 4)
    logits[2, 1] = torch.nan
    for surrogate, alpha in (("squared", 0.5), ("exponential", 0.5), ("hinge", 0.5), ("hinge", 1.5)):
        value, gradient = value_and_gradient(logits, target, surrogate, alpha=alpha, log_loss=0.5)
        assert value.isnan()
        assert gradient.isnan().any()
