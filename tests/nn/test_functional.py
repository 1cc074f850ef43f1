"""The loss equals the core's pairwise definition on the activated logits, with its gradient, on every path."""

import numpy as np
import pytest
import torch
from cases import EACH_KIND, SOME_CASES, Case, Quartic, draw_classes, draw_pairs, draw_weight, settings
from pair_loss import pair_loss
from torch.utils._python_dispatch import TorchDispatchMode

from mauc import SurrogateRisk
from mauc.nn import MAUCLoss
from mauc.nn.functional import mauc_score
from mauc.surrogates import CustomSurrogate, get_surrogate
from mauc.theory import ova_weights

# With what torch alone tells apart: exponentials that need a shift, and hinges that are lines on [−1, 1] or are not.
TORCH_CASES = [
    *EACH_KIND,
    Case("exponential", {"alpha": 40.0}),
    Case("hinge", {"alpha": 1.0}),
    Case("q_hinge", {"alpha": 0.5, "q": 3.0}),
    Case("logistic", {"alpha": 1.0}, exact=False, tolerances={"torch": 1e-10}),
    Case("logistic", {"alpha": 4.0}, exact=False),
]
LOSSES = [(case.surrogate, case.options, case.within("torch")) for case in TORCH_CASES]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=map(str, TORCH_CASES))
MILD = [k for k, case in enumerate(TORCH_CASES) if case.options.get("alpha", 1.0) < 10]
every_mild_loss = pytest.mark.parametrize("loss", [LOSSES[k] for k in MILD], ids=[str(TORCH_CASES[k]) for k in MILD])
ACTIVATE = {"softmax": lambda z: torch.softmax(z, 1), "sigmoid": torch.sigmoid, "identity": lambda z: 1.0 * z}


def oracle(logits, y, surrogate, options, activation, pairs="ovo", weight=None):
    """Value and gradient with respect to the logits, pair by pair, in float64."""
    z = logits.detach().double().requires_grad_()
    scores = ACTIVATE[activation](z)
    risk = SurrogateRisk(get_surrogate(surrogate, **options), pairs=pairs, scheme="pairwise")
    value, slope = risk.value_and_gradient(y, scores.detach().numpy(), weight)
    scores.backward(torch.tensor(slope))
    return value, z.grad


def assert_equal(loss, logits, expected, tolerance, what=""):
    loss.backward()
    value, gradient = expected
    assert loss.shape == (), what
    assert loss.item() == pytest.approx(value, rel=tolerance, abs=1e-14), what
    off = (logits.grad.double() - gradient).abs().max().item()
    assert off <= tolerance * gradient.abs().max().item() + 1e-15, f"{what}: gradient off by {off:.1e}"


def draw_logits(n, c, dtype=torch.float64, seed=0, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(n, c, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()


blocks_are_fine = pytest.mark.filterwarnings("ignore:.*taking all pairs in blocks:UserWarning")


@blocks_are_fine
@pytest.mark.parametrize(
    ("activation", "dtype"),
    [("softmax", torch.float64), ("identity", torch.float64), ("sigmoid", torch.float32)],
    ids=["softmax-float64", "identity-float64", "sigmoid-float32"],
)
@every_loss
def test_equals_the_definition(loss, activation, dtype):
    surrogate, options, tolerance = loss
    if dtype == torch.float32:
        tolerance = max(1e-5, 5e-6 * options.get("alpha", 1.0))  # α times the rounding of a score
    for seed, (what, y, _, weight, pairs) in enumerate(settings("softmax", 4, n_samples=23)):
        logits = draw_logits(len(y), 4, dtype, seed)
        expected = oracle(logits, y, surrogate, options, activation, pairs, weight)
        got = pair_loss(
            logits,
            torch.tensor(y),
            surrogate=surrogate,
            activation=activation,
            pairs=pairs,
            weight=None if weight is None else torch.tensor(weight),
            **options,
        )
        assert got.dtype == dtype
        assert_equal(got, logits, expected, tolerance, what)


@pytest.mark.parametrize("case", SOME_CASES, ids=str)
def test_many_columns(case):
    surrogate, options, tolerance = case.surrogate, case.options, case.within("torch")
    rng = np.random.default_rng(50)
    y = draw_classes(301, np.arange(50), rng)
    logits = draw_logits(301, 50)
    weight = draw_weight("random", y, rng)
    pairs = draw_pairs("matrix", 50, rng)
    expected = oracle(logits, y, surrogate, options, "softmax", pairs, weight)
    got = pair_loss(logits, torch.tensor(y), surrogate=surrogate, pairs=pairs, weight=torch.tensor(weight), **options)
    assert_equal(got, logits, expected, tolerance)


@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "log_odds"])
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_chunks_of_rows_make_no_difference(surrogate, activation):
    """More scores than are taken at a time, against the form that takes all at once to be differentiated twice."""
    if (surrogate, activation) == ("hinge", "log_odds"):
        pytest.skip("no line on log-odds")
    logits, y = draw_logits(6001, 50), torch.arange(6001) % 50
    settings = {"surrogate": surrogate, "alpha": 1.0, "activation": activation, "log_loss": 0.5}
    loss = pair_loss(logits, y, **settings)
    (chunked,) = torch.autograd.grad(loss, logits, retain_graph=True)
    (whole,) = torch.autograd.grad(loss, logits, create_graph=True)
    torch.testing.assert_close(chunked, whole.detach(), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
@pytest.mark.parametrize(("n", "c"), [(65536, 2), (999, 100)])
def test_sums_in_single_precision_lose_no_digits(surrogate, n, c):
    logits, y = draw_logits(n, c, torch.float32), torch.arange(n) % c
    both = (logits, logits.detach().double().requires_grad_())
    got = [pair_loss(z, y, surrogate=surrogate, alpha=1.0) for z in both]
    slopes = [torch.autograd.grad(value, z)[0] for value, z in zip(got, both, strict=True)]
    assert got[0].item() == pytest.approx(got[1].item(), rel=2e-7)
    assert (slopes[0] - slopes[1]).norm() < 5e-7 * slopes[1].norm()


@pytest.mark.parametrize("settings", [{"activation": "log_odds"}, {"surrogate": "squared", "activation": "identity"}])
def test_an_offset_of_all_logits_costs_no_digits(settings):
    """In float32, whose numbers near 1e7 are a whole number apart; the logits are whole numbers."""
    logits = torch.randint(-3, 4, (30, 3), generator=torch.Generator().manual_seed(0)).float().requires_grad_()
    y = torch.arange(30) % 3
    (expected,) = torch.autograd.grad(pair_loss(logits, y, **settings), logits)
    for offset in (1e4, 1e6, 1e7):
        moved = (logits + offset).detach().requires_grad_()
        value = pair_loss(moved, y, **settings)
        torch.testing.assert_close(value, pair_loss(logits, y, **settings))
        torch.testing.assert_close(torch.autograd.grad(value, moved)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("offset", [-1000.0, 80.0, 1000.0])
def test_logits_far_from_zero(offset):
    """One row far from the others, whose exponentials alone are too large or too small."""
    logits, y = draw_logits(27, 5), torch.arange(27) % 4
    moved = logits.detach().clone()
    moved[7] += offset
    for z in (moved.requires_grad_(), logits):
        z.grad = None
        pair_loss(z, y, log_loss=0.3).backward()
    torch.testing.assert_close(moved.grad, logits.grad, rtol=1e-9, atol=1e-13)


def test_a_softmax_all_on_an_absent_class_is_left_to_logarithms():
    logits, y = draw_logits(12, 4), torch.arange(12) % 3
    with torch.no_grad():
        logits[3] = torch.tensor([0.0, 0.0, 0.0, 2000.0])
    counts = [1.0, 2.0, 3.0, 4.0]
    value = pair_loss(logits, y, log_loss=1.0, class_counts=counts) - pair_loss(logits, y)
    exact = torch.nn.functional.cross_entropy(logits + torch.tensor(counts).log(), y)
    torch.testing.assert_close(value, exact)


def test_logits_in_any_layout():
    logits, y = draw_logits(27, 5), torch.arange(27) % 4
    conjugated = torch.complex(logits.detach(), -logits.detach()).conj().imag
    assert conjugated.is_neg()
    for surrogate in ("squared", "exponential", "hinge"):
        expected = torch.autograd.grad(pair_loss(logits, y, surrogate=surrogate, log_loss=0.3), logits)
        for same in (logits.T.contiguous().T, torch.stack([logits, logits], 2)[:, :, 1], conjugated):
            leaf = same.detach().requires_grad_()
            found = torch.autograd.grad(pair_loss(leaf, y, surrogate=surrogate, log_loss=0.3), leaf)
            torch.testing.assert_close(found, expected)


@blocks_are_fine
@every_loss
def test_ignored_samples_are_not_there(loss):
    surrogate, options, _ = loss
    rng = np.random.default_rng(1)
    y = torch.tensor(draw_classes(30, np.arange(4), rng))
    keep = torch.tensor(rng.random(30) > 0.3)
    logits = draw_logits(30, 4)
    alone = logits.detach()[keep].requires_grad_()
    expected = pair_loss(alone, y[keep], surrogate=surrogate, **options)
    expected.backward()
    for ignored in (-100, 7):
        logits.grad = None
        target = torch.where(keep, y, ignored)
        got = pair_loss(logits, target, surrogate=surrogate, ignore_index=ignored, **options)
        got.backward()
        assert got.item() == pytest.approx(expected.item(), rel=1e-12)
        assert torch.allclose(logits.grad[keep], alone.grad, rtol=1e-9, atol=1e-13)
        assert not logits.grad[~keep].any()


def test_ignored_rows_may_hold_anything():
    logits = draw_logits(12, 3)
    with torch.no_grad():
        logits[4] = torch.nan
    y = torch.arange(12) % 3
    y[4] = -100
    loss = pair_loss(logits, y)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad.isfinite().all()


def test_an_ignored_class_of_the_batch():
    """ignore_index may be a class: its samples are then gone, and its column too."""
    logits, y = draw_logits(20, 4), torch.arange(20) % 4
    got = pair_loss(logits, y, ignore_index=2)
    rest = y != 2
    assert got.item() == pytest.approx(pair_loss(logits[rest], y[rest]).item(), rel=1e-12)


@blocks_are_fine
@pytest.mark.parametrize("activation", ["softmax", "identity"])
@every_loss
def test_no_pair_is_zero_with_zero_gradient(loss, activation):
    surrogate, options, _ = loss
    for y, pairs in (
        (torch.full((5,), 2), "ovo"),
        (torch.full((5,), 2), "ova"),
        (torch.full((5,), 2), np.ones((3, 3))),
        (torch.full((5,), -100), "ova"),
        (torch.full((5,), -100), "ovo"),
        (torch.zeros(0, dtype=torch.long), "ovo"),
    ):
        logits = draw_logits(len(y), 3)
        value = pair_loss(logits, y, surrogate=surrogate, activation=activation, pairs=pairs, **options)
        value.backward()
        assert value.item() == 0.0
        assert logits.grad.shape == logits.shape
        assert not logits.grad.any()


@blocks_are_fine
@pytest.mark.parametrize("activation", ["softmax", "identity"])
@every_loss
def test_a_logit_that_is_not_a_number_is_never_masked(loss, activation):
    surrogate, options, _ = loss
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    for row, column in ((0, 0), (0, 1), (5, 3)):
        logits = draw_logits(6, 4)
        with torch.no_grad():
            logits[row, column] = torch.nan
        value = pair_loss(logits, y, surrogate=surrogate, activation=activation, **options)
        value.backward()
        assert value.isnan()
        assert logits.grad.isnan().any()


@blocks_are_fine
@every_mild_loss
def test_gradcheck(loss):
    surrogate, options, tolerance = loss
    y = torch.tensor([0, 1, 2, 0, 1, 0, 3])
    weight = torch.rand(7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.1
    logits = draw_logits(7, 4, seed=3, scale=0.7)

    def value(z):
        return pair_loss(z, y, surrogate=surrogate, activation="softmax", weight=weight, pairs="ova", **options)

    # The value of an approximation jumps by its tolerance where two pieces meet: a longer step does not see it.
    exact = tolerance <= 1e-10
    assert torch.autograd.gradcheck(value, (logits,), eps=1e-6 if exact else 1e-4, atol=1e-6 if exact else 1e-2)


def test_backward_twice_and_scaled():
    logits, y = draw_logits(9, 3), torch.arange(9) % 3
    loss = pair_loss(logits, y)
    (once,) = torch.autograd.grad(loss, logits, retain_graph=True)
    (thrice,) = torch.autograd.grad(3.0 * loss, logits, retain_graph=True)
    assert torch.allclose(thrice, 3.0 * once)
    loss.backward(retain_graph=True)
    loss.backward()
    assert torch.allclose(logits.grad, 2.0 * once)
    (again,) = torch.autograd.grad(pair_loss(logits, y), logits)
    assert torch.equal(again, once)


def test_no_gradient_is_made_where_none_is_asked_for():
    logits = draw_logits(9, 3)
    with torch.no_grad():
        assert not pair_loss(logits, torch.arange(9) % 3).requires_grad
    assert not pair_loss(logits.detach(), torch.arange(9) % 3).requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge", "logistic"])
def test_half_precision_is_summed_in_float32(surrogate, dtype):
    options = {}
    y = draw_classes(400, np.arange(4), np.random.default_rng(0))
    logits = draw_logits(400, 4, dtype)
    value, gradient = oracle(logits, y, surrogate, options, "softmax")
    got = pair_loss(logits, torch.tensor(y), surrogate=surrogate, **options)
    got.backward()
    assert got.dtype == logits.grad.dtype == dtype
    rounding = torch.finfo(dtype).eps
    assert got.item() == pytest.approx(value, rel=rounding)
    assert (logits.grad.double() - gradient).abs().max() <= rounding * gradient.abs().max()


def test_half_precision_counts_do_not_overflow():
    logits, y = draw_logits(70_000, 2, torch.float16), torch.arange(70_000) % 2
    expected = pair_loss(logits.detach().double(), y)
    assert pair_loss(logits, y).item() == pytest.approx(expected.item(), rel=1e-3)


def test_autocast_is_float32():
    layer, x, y = torch.nn.Linear(5, 3), torch.randn(20, 5), torch.arange(20) % 3
    with torch.autocast("cpu", torch.bfloat16):
        logits = layer(x)
        loss = pair_loss(logits, y, surrogate="squared")
    assert logits.dtype == torch.bfloat16
    assert loss.dtype == torch.float32
    loss.backward()
    expected, _ = oracle(logits, y.numpy(), "squared", {}, "softmax")
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    assert layer.weight.grad.dtype == torch.float32


@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_huge_scores_do_not_cancel_or_overflow(surrogate):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(30) % 3
    for offset in (1e3, 1e6):
        logits = (offset + torch.randn(30, 3, generator=generator, dtype=torch.float64)).requires_grad_()
        expected = oracle(logits, y.numpy(), surrogate, {}, "identity")
        got = pair_loss(logits, y, surrogate=surrogate, activation="identity")
        assert_equal(got, logits, expected, 1e-9)


def test_class_counts_bring_back_the_training_sets_weights():
    """A batch that evens out the classes has the "ova" pair weights of the training set, only with class_counts."""
    logits, y, sizes = draw_logits(12, 3), torch.arange(12) % 3, np.array([60, 30, 10])
    expected = pair_loss(logits, y, pairs=ova_weights(sizes / 100)).item()
    assert pair_loss(logits, y, pairs="ova", class_counts=sizes).item() == pytest.approx(expected, rel=1e-12)
    assert abs(pair_loss(logits, y, pairs="ova").item() / expected - 1) > 1e-3


def test_class_counts_of_the_batch_change_nothing():
    logits, y = draw_logits(40, 5), torch.tensor(draw_classes(40, np.array([0, 1, 4]), np.random.default_rng(2)))
    expected = pair_loss(logits, y, pairs="ova").item()
    same = torch.where(torch.bincount(y, minlength=5) > 0, torch.bincount(y, minlength=5), 99)
    assert pair_loss(logits, y, pairs="ova", class_counts=same.tolist()).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("surrogate", ["hinge", "squared", "exponential"])
def test_closed_forms_ask_nothing_of_the_host(surrogate):
    """On a device without values: nothing is copied to it, and nothing is read."""
    logits = torch.empty(20, 4, device="meta", requires_grad=True)
    target = torch.empty(20, dtype=torch.int64, device="meta")
    copied = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if any(isinstance(x, torch.Tensor) and x.device.type == "cpu" for x in args):
                copied.append(str(function))
            return function(*args, **(kwargs or {}))

    with Watch():
        pair_loss(logits, target, surrogate=surrogate, alpha=1.0).backward()
    assert not copied


def test_own_functions_without_a_polynomial_go_pair_by_pair():
    rough = CustomSurrogate(
        lambda t: np.abs(np.sin(40.0 * t)) - t, lambda t: 40.0 * np.cos(40.0 * t) * np.sign(np.sin(40.0 * t)) - 1.0
    )
    logits, y = draw_logits(40, 3), np.arange(40) % 3
    with pytest.warns(UserWarning, match="taking all pairs in blocks"):
        got = pair_loss(logits, torch.tensor(y), surrogate=rough)
    assert_equal(got, logits, oracle(logits, y, rough, {}, "softmax"), 1e-10)


def test_target_may_be_any_kind_of_whole_number():
    logits, y = draw_logits(12, 3), torch.arange(12) % 3
    expected = pair_loss(logits, y).item()
    for dtype in (torch.int32, torch.int16, torch.uint8):
        assert pair_loss(logits, y.to(dtype)).item() == expected


LOGITS, TARGET = torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])
BAD = {
    "float target": ((LOGITS, TARGET.float()), {}, "target must be a tensor of whole numbers, got torch.float32"),
    "too large": ((LOGITS, TARGET + 1), {}, r"target must be from 0 to 2 or ignore_index=-100, got 3"),
    "negative": ((LOGITS, TARGET - 1), {}, r"got -1: number the classes"),
    "target shape": ((LOGITS, TARGET[:3]), {}, r"target must have the shape \(4,\), got shape \(3,\)"),
    "integer logits": ((LOGITS.long(), TARGET), {}, "logits must be a floating-point tensor, got torch.int64"),
    "surrogate": ((LOGITS, TARGET), {"surrogate": "cubic"}, "surrogate must be one of 'squared', .*got 'cubic'"),
    "object": ((LOGITS, TARGET), {"surrogate": 3}, r"surrogate must be a name or an object with the methods"),
    "alpha": ((LOGITS, TARGET), {"alpha": -1.0}, "alpha must be a finite number above 0, got -1.0"),
    "alpha of object": (
        (LOGITS, TARGET),
        {"surrogate": Quartic(), "alpha": 2.0},
        "alpha needs a surrogate given by name",
    ),
    "option": ((LOGITS, TARGET), {"q": 2.0}, "q is not an option of the exponential surrogate"),
    "pairs": ((LOGITS, TARGET), {"pairs": "all"}, "pairs must be one of 'ovo', 'ova', 'ovr', got 'all'"),
    "pairs shape": (
        (LOGITS, TARGET),
        {"pairs": np.ones((2, 2))},
        r"pairs must be 'ovo', 'ova', 'ovr' or a \(3, 3\) matrix",
    ),
    "pairs sign": ((LOGITS, TARGET), {"pairs": -torch.ones(3, 3)}, "pairs must be .* got the negative weight -1"),
    "weight shape": ((LOGITS, TARGET), {"weight": torch.ones(3)}, r"weight must be a tensor of shape \(4,\)"),
    "weight sign": ((LOGITS, TARGET), {"weight": -torch.ones(4)}, "weight must be finite and not negative, got -1"),
    "counts": (
        (LOGITS, TARGET),
        {"log_loss": 0.5, "class_counts": [1, 2]},
        r"class_counts must be 3 positive numbers, got shape \(2,\)",
    ),
    "sync": ((LOGITS, TARGET), {"sync": True}, "sync needs a process group, got sync=True without one: call torch"),
    "meta target": ((LOGITS, TARGET.to("meta")), {}, "target must be on the device of logits, cpu, got meta"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_has_a_clear_error(bad):
    positional, named, message = BAD[bad]
    with pytest.raises(ValueError, match=message):
        pair_loss(*positional, **named)


def test_equal_scores_far_from_zero():
    """The mean of equal scores may be rounded; their differences are 0 all the same."""
    logits = torch.full((7, 2), 1.25e29, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 0, 0, 1, 1, 1, 1])
    loss = pair_loss(logits, target, surrogate="squared", alpha=0.5, activation="identity")
    (slope,) = torch.autograd.grad(loss, logits, create_graph=True)
    assert loss.item() == pytest.approx(0.25, rel=1e-12)
    assert slope.abs().max() <= 1.0
    loss = pair_loss(logits, target, surrogate="exponential", alpha=0.5, activation="identity")
    (slope,) = torch.autograd.grad(loss, logits)
    assert loss.item() == pytest.approx(1.0, rel=1e-12)
    assert slope[0, 0].item() == pytest.approx(-0.25 / 3, rel=1e-12)


def test_ovr_is_another_name_of_ova():
    logits, target = torch.randn(12, 3, dtype=torch.float64), torch.tensor([0] * 7 + [1] * 3 + [2] * 2)
    assert torch.equal(pair_loss(logits, target, pairs="ovr"), pair_loss(logits, target, pairs="ova"))
    ovr, ova = (MAUCLoss([7, 3, 2], pairs=pairs)(logits, target) for pairs in ("ovr", "ova"))
    assert torch.equal(ovr, ova)
    assert torch.equal(mauc_score(logits, target, pairs="ovr"), mauc_score(logits, target, pairs="ova"))
