"""The fused kernels against the plain operations in float64."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from cases import CASES, EACH_KIND, Case
from numpy.polynomial.chebyshev import chebval2d
from pair_loss import PairLoss, pair_loss
from torch._subclasses.fake_tensor import FakeTensorMode

from mauc.nn._engine import fused, fused_bilinear, fused_ranked, fused_tiny, plans
from mauc.nn._engine.fused_bilinear import expanded
from mauc.nn._engine.fused_moments import Form, form_of
from mauc.nn._engine.fused_tiny import is_tiny, pairwise
from mauc.nn._engine.tiles import Cut, Layout
from mauc.nn._engine.truncated import truncated_powers
from mauc.surrogates import get_surrogate

SHAPES = [(32, 12), (3, 2), (1000, 100), (513, 1000), (257, 5089), (5000, 7), (9001, 33)]
# Every loss of the list that the kernels compute, and steeper ones.
FUSED = [
    *(case for case in CASES if form_of(case.build()) is not None),
    Case("exponential", {"alpha": 8.0}),
    Case("hinge", {"alpha": 4.0}),
]
OTHERS = [case for case in EACH_KIND if form_of(case.build()) is None]
RANKED = [
    Case("hinge", {"alpha": 0.5}),
    Case("q_hinge", {"alpha": 0.5, "q": 3.0}),
    Case("generalized_hinge", {"alpha": 0.5}),
]


def test_which_surrogates_fuse():
    assert {case.surrogate for case in FUSED} == {"squared", "exponential", "hinge"}
    assert form_of(get_surrogate("squared", alpha=0.5)) == Form("squared", 0.5, 1.0)
    assert form_of(get_surrogate("exponential", alpha=2.0)) == Form("exponential", 2.0, 1.0)
    assert form_of(get_surrogate("exponential", alpha=31.0)) is None
    assert form_of(get_surrogate("hinge", alpha=2.0)) == Form("line", 2.0, 1.0)
    assert form_of(get_surrogate("hinge", alpha=0.5)) is None
    assert form_of(get_surrogate("generalized_hinge", alpha=2.0)) == Form("line", 2.0, 1.0)
    assert form_of(get_surrogate("logistic")) is None


def test_truncated_powers_are_the_loss():
    t = np.linspace(-2.0, 2.0, 401)
    taken = {str(case): (case.build(), truncated_powers(case.build())) for case in CASES}
    for surrogate, form in taken.values():
        if form is not None:
            distance = np.array(form.ends)[:, None] - t
            powers = (
                np.maximum(distance, 0.0)[:, None] ** np.arange(form.degree + 1)[:, None] * (distance > 0.0)[:, None]
            )
            assert np.allclose(
                np.einsum("bk,bkt->t", np.array(form.coefficients), powers), surrogate.loss(t), atol=1e-9
            )
    names = {name.split("-alpha")[0] for name, (_, form) in taken.items() if form is not None}
    assert names == {"hinge", "q_hinge", "generalized_hinge", "custom-pieces"}
    assert truncated_powers(get_surrogate("q_hinge", alpha=1e-3, q=5)) is None  # its digits would be lost in the sums
    rounded = get_surrogate("generalized_hinge", alpha=0.5)
    assert truncated_powers(rounded).anchored
    assert not truncated_powers(rounded, bounded=False).anchored
    assert not truncated_powers(get_surrogate("generalized_hinge", alpha=0.5, epsilon=0.01)).anchored


def test_bilinear_forms_are_the_loss_and_its_slopes():
    p, q = np.meshgrid(np.linspace(0.0, 1.0, 33), np.linspace(0.0, 1.0, 33))
    for case in CASES:
        form, surrogate = expanded(case.build()), case.build()
        if form is None:
            continue
        loss, in_q, in_p = (chebval2d(2.0 * p - 1.0, 2.0 * q - 1.0, np.array(m)) for m in form.matrices)
        at_zero = abs(surrogate.loss(np.zeros(1))[0])
        # At a corner on the edge of the range the slope is one-sided.
        inside = np.abs(p - q) < 1.0
        assert np.abs(loss - surrogate.loss(p - q)).max() <= 2e-7 * at_zero, str(case)
        slope = surrogate.derivative(p - q)
        size = abs(surrogate.derivative(np.zeros(1))[0])
        assert np.abs(in_p - slope)[inside].max() <= 2e-7 * size, str(case)
        assert np.abs(in_q + slope)[inside].max() <= 2e-7 * size, str(case)


@pytest.mark.parametrize("bounded", [True, False], ids=["scores", "raw"])
def test_pairwise_forms_are_the_loss_and_its_slope(bounded):
    ends = np.linspace(-1.0, 1.0, 257) if bounded else np.linspace(-8.0, 8.0, 257)
    t, taken = ends[1:-1] + 1e-9, set()  # beside the kinks, and within the square of scores
    for case in CASES:
        form, surrogate = pairwise(case.build(), bounded=bounded), case.build()
        if form is None:
            continue
        taken.add(str(case).split("-alpha")[0])
        loss, slope = np.zeros_like(t), np.zeros_like(t)
        for end, origin, row in zip(form.ends, form.origins, form.coefficients, strict=True):
            powers = np.polynomial.Polynomial(row)
            here = t < end
            total, steep = powers(origin - t), -powers.deriv()(origin - t)
            if form.rate:
                total = row[0] * np.exp(form.rate * (origin - t))
                steep = -form.rate * total
            loss, slope = np.where(here, total, loss), np.where(here, steep, slope)
        at_zero, steep = abs(surrogate.loss(np.zeros(1))[0]), abs(surrogate.derivative(np.zeros(1))[0])
        assert np.allclose(loss, surrogate.loss(t), rtol=1e-12, atol=2e-7 * at_zero), str(case)
        assert np.allclose(slope, surrogate.derivative(t), rtol=1e-12, atol=2e-7 * steep), str(case)
    always = {"squared", "exponential", "hinge", "q_hinge", "generalized_hinge", "custom-pieces"}
    assert taken == (always | {"logistic", "custom-smooth", "custom-polynomial"} if bounded else always)


def test_pieces_that_cancel_take_float64():
    assert not pairwise(get_surrogate("generalized_hinge", alpha=0.5, epsilon=0.01), bounded=False).exact
    assert not pairwise(get_surrogate("logistic", alpha=1.0), bounded=True).exact
    assert pairwise(get_surrogate("logistic", alpha=4.0), bounded=True).exact


@pytest.mark.parametrize(
    ("shape", "tiny"), [((32, 12), True), ((64, 32), True), ((64, 33), False), ((65, 2), False), ((3, 600), False)]
)
def test_which_batches_are_tiny(shape, tiny):
    assert is_tiny(torch.empty(shape)) == tiny


def test_addresses_are_those_of_the_vectors():
    zeros = {"a": (3, torch.float64), "b": (5, torch.int32)}
    others = {"c": (7, torch.float32), "d": (2, torch.int64)}
    layout = Layout(zeros, others)
    memory = layout.allocate(torch.device("cpu"))
    vectors = vars(layout.tensors(*memory))
    assert {name: (len(x), x.dtype) for name, x in vectors.items()} == zeros | others
    assert {name: x.data_ptr() for name, x in vectors.items()} == vars(layout.addresses(*memory))
    assert not any(x.data_ptr() % 16 for x in vectors.values())
    assert not vectors["a"].any()
    assert not vectors["b"].any()


def test_no_more_programs_than_are_held():
    cut = Cut(rows=32, columns=8, warps=1, registers=128)  # 16 programs to a multiprocessor
    assert cut.grid(65_536, 1000, 132) == (125, 16)
    assert cut.grid(40, 1000, 132) == (125, 2)
    assert cut.grid(65_536, 20_000, 132) == (2500, 1)


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


@pytest.mark.parametrize(
    "case",
    [Case("hinge", {"alpha": 0.5}), Case("logistic", {"alpha": 1.0}), Case("exponential", {"alpha": 1.0})],
    ids=str,
)
def test_numbers_are_placed_while_a_graph_is_made(case, monkeypatch):
    """Before the first call, which may be inside a CUDA graph, whose memory they must not take."""
    monkeypatch.setattr(fused, "runs_kernels", lambda device: True)
    placed = [module.form_on for module in (fused_ranked, fused_bilinear, fused_tiny)]
    for on_device in (*placed, plans.number_on):
        on_device.cache_clear()
    with FakeTensorMode() as mode:
        logits, y = mode.from_tensor(torch.randn(5, 3)), mode.from_tensor(torch.zeros(5, dtype=torch.long))
        surrogate = case.build()
        numbers = [float(getattr(surrogate, field.name)) for field in fields(surrogate)]
        others = ("softmax", "ovo", -100, 0.0, False, True)
        torch.ops.mauc.loss(logits, y, None, None, None, None, surrogate.name, numbers, *others)
    assert sum(form_on.cache_info().currsize for form_on in placed) >= 2
    assert plans.number_on.cache_info().currsize == 1
    made = fused_tiny.form_on.cache_info().misses
    ends, _ = fused_tiny.form_on(fused_tiny.pairwise(surrogate, bounded=True), logits.device)
    assert fused_tiny.form_on.cache_info().misses == made
    assert type(ends) is torch.Tensor


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
@pytest.mark.parametrize("case", FUSED, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_float64(shape, case, activation):
    logits, y = draw(*shape)
    for pairs in ("ovo", "ova"):
        assert_equal(logits, y, surrogate=case.surrogate, **case.options, activation=activation, pairs=pairs)


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
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_no_pair_and_not_a_number(surrogate):
    logits, _ = draw(20, 5)
    for y in (torch.full((20,), 2, device="cuda"), torch.full((20,), -100, device="cuda")):
        for pairs in ("ovo", "ova"):
            logits.grad = None
            loss = pair_loss(logits, y, surrogate=surrogate, pairs=pairs)
            loss.backward()
            assert loss.item() == 0.0
            assert not logits.grad.any()
    y = torch.arange(20, device="cuda") % 4
    with torch.no_grad():
        logits[3, 4] = torch.nan
    assert pair_loss(logits, y, surrogate=surrogate).isnan()
    ignored = y.clone()
    ignored[3] = -100
    assert pair_loss(logits, ignored, surrogate=surrogate).isfinite()
    assert pair_loss(logits.detach().nan_to_num(), y + 2, surrogate=surrogate).isnan()  # class 5 does not exist


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
    ranked = [{"surrogate": case.surrogate, **case.options} for case in (*RANKED, Case("logistic", {"alpha": 1.0}))]
    for settings in ranked:
        pair_loss(logits, y, **settings).backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchronizing"):
            logits.sum().item()
        for settings in ({}, {"surrogate": "squared", "pairs": "ova"}, {"activation": "identity"}):
            pair_loss(logits, y, **settings).backward()
        for settings in ranked:
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
    """In the kernels of ranks and of bilinear forms, or in plain operations."""
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
@pytest.mark.parametrize("case", [*RANKED, Case("squared"), Case("exponential", {"alpha": 1.0})], ids=str)
def test_raw_scores(case):
    logits, y = draw(5000, 33)
    with torch.no_grad():
        logits += 10.0 * torch.arange(33, device="cuda")
    assert_equal(logits, y, surrogate=case.surrogate, **case.options, activation="identity")


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
def test_tiny_batches(case, dtype):
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
@pytest.mark.parametrize("case", [RANKED[2], Case("logistic", {"alpha": 1.0})], ids=str)
def test_tiny_batches_without_pairs_or_numbers(case):
    logits, _ = draw(20, 5)
    loss = {"surrogate": case.surrogate, **case.options}
    for y in (torch.full((20,), 2, device="cuda"), torch.full((20,), -100, device="cuda")):
        logits.grad = None
        value = pair_loss(logits, y, **loss)
        value.backward()
        assert value.item() == 0.0
        assert not logits.grad.any()
    y = torch.arange(20, device="cuda") % 4
    assert pair_loss(logits, y + 2, **loss).isnan()  # class 5 does not exist
    with torch.no_grad():
        logits[3, 4] = torch.nan
    assert pair_loss(logits, y, **loss, activation="sigmoid").isnan()
    y[3] = -100
    assert pair_loss(logits, y, **loss, activation="sigmoid").isfinite()


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(300, 20), (32, 12)], ids=str)
@pytest.mark.parametrize(
    "case", [*RANKED, Case("logistic", {"alpha": 1.0}), Case("exponential", {"alpha": 1.0})], ids=str
)
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
@pytest.mark.parametrize("shape", [(300, 20), (32, 12)], ids=str)
@pytest.mark.parametrize(
    "case",
    [Case("hinge", {"alpha": 0.5}), Case("logistic", {"alpha": 1.0}), Case("exponential", {"alpha": 1.0})],
    ids=str,
)
def test_a_module_that_is_called_again(case, shape):
    """In other dtypes, on another stream, under autocast, in a graph, and as the plain function."""
    loss = PairLoss(case.surrogate, **case.options).cuda()
    side = torch.cuda.Stream()
    for dtype in (torch.float32, torch.float32, torch.bfloat16, torch.float32):
        logits, y = draw(*shape, dtype)
        plain = pair_loss(logits, y, surrogate=case.surrogate, **case.options)
        (slope,) = torch.autograd.grad(plain, logits)
        plain = plain.detach()  # no graph of one stream is alive while another is at work
        for stream in (torch.cuda.current_stream(), side):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                (ours,) = torch.autograd.grad(loss(logits, y), logits)
            torch.cuda.current_stream().wait_stream(stream)
            assert torch.allclose(ours, slope, rtol=1e-2 if dtype == torch.bfloat16 else 1e-4, atol=1e-9)
        with torch.autocast("cuda", torch.bfloat16):
            assert loss(logits, y).dtype == torch.float32
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        value = loss(logits, y)
        (ours,) = torch.autograd.grad(value, logits)
    for _ in range(2):
        graph.replay()
        assert torch.allclose(value, plain)
        assert torch.allclose(ours, slope, rtol=1e-4, atol=1e-9)
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.allclose(loss(logits, y), plain)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")  # torch captures such a one, on purpose, first of all
@pytest.mark.parametrize("shape", [(300, 20), (32, 12)], ids=str)
@pytest.mark.parametrize(
    "case",
    [Case("hinge", {"alpha": 0.5}), Case("logistic", {"alpha": 1.0}), Case("exponential", {"alpha": 1.0})],
    ids=str,
)
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
