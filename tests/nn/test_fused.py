"""The Triton kernels on a device against the plain operations in float64."""

import pytest
import torch
from cases import CASES, EACH_KIND, Case
from pair_loss import PairLoss, pair_loss

from mauc.nn._loss.closed import closed_form

SHAPES = [(32, 12), (3, 2), (1000, 100), (513, 1000), (257, 5089), (5000, 7), (9001, 33)]
# Every loss of the list that the kernels compute, and steeper ones.
FUSED = [
    *(case for case in CASES if closed_form(case.build()) is not None),
    Case("exponential", {"alpha": 8.0}),
    Case("hinge", {"alpha": 4.0}),
]
OTHERS = [case for case in EACH_KIND if closed_form(case.build()) is None]
RANKED = [
    Case("hinge", {"alpha": 0.5}),
    Case("q_hinge", {"alpha": 0.5, "q": 3.0}),
    Case("generalized_hinge", {"alpha": 0.5}),
]


def draw(n, c, dtype=torch.float32, device="cuda", scale=2.0):
    generator = torch.Generator().manual_seed(n + c)
    logits = scale * torch.randn(n, c, generator=generator)
    y = torch.randint(0, c, (n,), generator=generator)
    return logits.to(dtype).to(device).requires_grad_(), y.to(device)


def reference(logits, y, **settings):
    z = logits.detach().double().cpu().requires_grad_()
    for name in ("weight", "class_counts", "pairs"):
        if isinstance(settings.get(name), torch.Tensor):
            settings[name] = settings[name].cpu()
    loss = pair_loss(z, y.cpu(), **settings)
    loss.backward()
    return loss.item(), z.grad


def _of_a_pair_at_the_kink(logits, y, surrogate, alpha=1.0, **_):
    """What a pair adds to the slope of a logit: of many millions, rounding moves one or the other past the kink."""
    n, c = logits.shape
    if surrogate != "hinge" or alpha >= 1.0 or n < 2000:
        return 0.0
    return 1.0 / (c * (c - 1) * torch.bincount(y[y >= 0]).min().item() ** 2)


def assert_equal(logits, y, tolerance=1e-5, **settings):
    value, gradient = reference(logits, y, **settings)
    logits.grad = None
    got = pair_loss(logits, y, **settings)
    got.backward()
    assert got.device == logits.device
    assert got.item() == pytest.approx(value, rel=tolerance)
    kink = _of_a_pair_at_the_kink(logits, y, **settings)
    off = (logits.grad.double().cpu() - gradient).abs().max()
    assert off <= tolerance * gradient.abs().max() + kink
    relative = (logits.grad.double().cpu() - gradient).norm() / gradient.norm()
    assert (
        relative <= (10.0 * tolerance if kink else tolerance) or logits.dtype == torch.float16
    )  # whose smallest gradients have few digits


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
@pytest.mark.parametrize("case", FUSED, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_float64(shape, case, activation):
    logits, y = draw(*shape)
    for pairs in ("ovo", "ova"):
        assert_equal(logits, y, surrogate=case.surrogate, **case.options, activation=activation, pairs=pairs)


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ["log_odds", "identity"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exponential_of_scores_without_a_bound(shape, activation):
    logits, y = draw(*shape)
    assert_equal(logits, y, surrogate="exponential", alpha=0.5, activation=activation)
    settings = {"surrogate": "exponential", "alpha": 8.0, "activation": activation}
    assert_equal(logits, y, **settings, log_loss=0.5, log1p=True, limit=1.0)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [200, 6000])
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_weights_ignored_samples_and_class_counts(surrogate, n):
    logits, y = draw(n, 10)
    y[y == 3] = -100  # some ignored, and class 3 absent
    weight = torch.rand(n, device="cuda", dtype=torch.float64)
    weight[::7] = 0.0
    counts = torch.arange(1, 11, device="cuda") * 100
    for pairs in ("ovo", "ova"):
        for sizes in (None, counts):
            assert_equal(logits, y, surrogate=surrogate, pairs=pairs, weight=weight, class_counts=sizes)
            assert not logits.grad[y == -100].any()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_half_precision(surrogate, dtype):
    logits, y = draw(300, 100, dtype)
    assert_equal(logits, y, tolerance=torch.finfo(dtype).eps, surrogate=surrogate)
    with torch.autocast("cuda", dtype):
        assert pair_loss(logits, y, surrogate=surrogate).dtype == torch.float32


@pytest.mark.gpu
def test_scaled_strided_and_twice():
    logits, y = draw(100, 24)
    loss = pair_loss(logits, y)
    (once,) = torch.autograd.grad(loss, logits, retain_graph=True)
    (thrice,) = torch.autograd.grad(3.0 * loss, logits)
    assert torch.allclose(thrice, 3.0 * once)
    wide = torch.zeros(100, 30, device="cuda")
    wide[:, :24] = logits.detach()
    part = wide[:, :24].requires_grad_()
    assert torch.allclose(torch.autograd.grad(pair_loss(part, y), part)[0], once, rtol=1e-4, atol=1e-9)
    turned = logits.detach().T.contiguous().T.requires_grad_()
    assert torch.allclose(torch.autograd.grad(pair_loss(turned, y), turned)[0], once, rtol=1e-4, atol=1e-9)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype:UserWarning")  # of the mode itself
@pytest.mark.parametrize("shape", [(100, 24), (32, 12)], ids=str)
def test_the_kernels_never_wait_for_the_device(shape):
    logits, y = draw(*shape)
    pair_loss(logits, y).backward()
    pair_loss(logits, y, activation="identity").backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchronizing"):
            logits.sum().item()
        for settings in ({}, {"surrogate": "squared", "pairs": "ova"}, {"activation": "identity"}):
            pair_loss(logits, y, **settings).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
def test_extra_memory_is_the_gradient():
    logits, y = draw(20_000, 1000)
    pair_loss(logits, y).backward()
    logits.grad = None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    pair_loss(logits, y).backward()
    extra = torch.cuda.max_memory_allocated() - before
    assert extra <= 1.01 * logits.numel() * logits.element_size()


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:.*taking all pairs in blocks:UserWarning")
@pytest.mark.parametrize("case", [*OTHERS, Case("hinge", {"alpha": 0.01})], ids=str)
def test_every_other_loss_on_the_device(case):
    """In torch operations."""
    logits, y = draw(500, 40)
    assert_equal(logits, y, surrogate=case.surrogate, **case.options)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case", [*RANKED, Case("logistic", {"alpha": 1.0}), Case("exponential", {"alpha": 4.0})], ids=str
)
@pytest.mark.parametrize("shape", [*SHAPES, (60, 20_000)], ids=str)
def test_both_terms_own_pairs_and_many_classes(shape, case):
    logits, y = draw(*shape)
    assert_equal(logits, y, surrogate=case.surrogate, **case.options, log_loss=0.5)
    if shape[1] <= 1000:
        pairs = torch.rand(shape[1], shape[1], generator=torch.Generator().manual_seed(0))
        assert_equal(logits, y, surrogate=case.surrogate, **case.options, pairs=pairs)


@pytest.mark.gpu
@pytest.mark.parametrize("top", [4.0, 8.0])
@pytest.mark.parametrize("shape", [(1000, 100), (9001, 33)], ids=str)
@pytest.mark.parametrize("case", RANKED, ids=str)
def test_trained_scores(case, shape, top):
    """Whose negatives mostly end at one place among the positives."""
    logits, y = draw(*shape)
    with torch.no_grad():
        logits[torch.arange(len(y)), y] += top
    assert_equal(logits, y, surrogate=case.surrogate, **case.options)


@pytest.mark.gpu
def test_more_samples_than_are_compared_with_one_another():
    logits, y = draw(70_000, 3)
    assert_equal(logits, y, surrogate="hinge", alpha=0.5, activation="identity")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(
    "case",
    [*RANKED, Case("logistic", {"alpha": 1.0}), Case("logistic", {"alpha": 4.0}), Case("exponential", {"alpha": 1.0})],
    ids=str,
)
def test_small_batches(case, dtype):
    tolerance = 1e-5 if dtype == torch.float32 else torch.finfo(dtype).eps
    loss = {"surrogate": case.surrogate, **case.options, "tolerance": tolerance}
    for shape in ((48, 9), (64, 32), (16, 500)):
        logits, y = draw(*shape, dtype)
        weight = torch.rand(len(y), device="cuda")
        y[::6], weight[::7] = -100, 0.0
        counts = torch.arange(1, shape[1] + 1, device="cuda")
        pairs = torch.rand(shape[1], shape[1], generator=torch.Generator().manual_seed(0))
        assert_equal(logits, y, **loss)
        part = torch.cat([logits, logits], 1).detach()[:, : shape[1]].requires_grad_()
        assert_equal(part, y, **loss)
        assert_equal(logits, y, **loss, weight=weight, pairs="ova", class_counts=counts, log_loss=0.5)
        assert_equal(logits, y, **loss, weight=weight, pairs=pairs, activation="sigmoid")
        if case.surrogate != "logistic":
            assert_equal(logits, y, **loss, weight=weight, activation="identity")
        assert not logits.grad[y == -100].any()


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(300, 20), (32, 12)], ids=str)
@pytest.mark.parametrize("case", [Case("squared"), Case("exponential", {"alpha": 1.0})], ids=str)
def test_captured_in_a_graph(case, shape):
    logits, y = draw(*shape)
    expected = reference(logits, y, surrogate=case.surrogate, **case.options)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            (gradient,) = torch.autograd.grad(pair_loss(logits, y, surrogate=case.surrogate, **case.options), logits)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        value = pair_loss(logits, y, surrogate=case.surrogate, **case.options)
        (gradient,) = torch.autograd.grad(value, logits)
    for _ in range(2):
        graph.replay()
        assert value.item() == pytest.approx(expected[0], rel=1e-5)
        assert (gradient.double().cpu() - expected[1]).abs().max() <= 1e-5 * expected[1].abs().max()


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")  # torch captures such a one, on purpose, first of all
@pytest.mark.parametrize("shape", [(300, 20), (32, 12)], ids=str)
@pytest.mark.parametrize("case", [Case("squared"), Case("exponential", {"alpha": 1.0})], ids=str)
def test_compiled_with_graphs(case, shape):
    logits, y = draw(*shape)
    value, gradient = reference(logits, y, surrogate=case.surrogate, **case.options)
    torch.compiler.reset()
    compiled = torch.compile(PairLoss(case.surrogate, **case.options), fullgraph=True, mode="reduce-overhead")
    for _ in range(3):
        got = compiled(logits, y)
        (ours,) = torch.autograd.grad(got, logits)
        assert got.item() == pytest.approx(value, rel=1e-5)
        assert (ours.double().cpu() - gradient).abs().max() <= 1e-5 * gradient.abs().max()


@pytest.mark.gpu
def test_module_follows_to_the_device():
    logits, y = draw(50, 5)
    criterion = PairLoss(pairs=torch.rand(5, 5), class_counts=[1, 2, 3, 4, 5]).cuda()
    assert criterion(logits, y).is_cuda
