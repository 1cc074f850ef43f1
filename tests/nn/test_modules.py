"""The module: conventions of torch.nn losses, torch.compile, state."""

import copy
import pickle
import shutil

import numpy as np
import pytest
import torch
from cases import SIGMOID
from pair_loss import PairLoss, pair_loss

from mauc.nn import MAUCLoss
from mauc.surrogates import SURROGATES

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")


def data(n=30, c=4, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, c, generator=generator, dtype=dtype).requires_grad_(), torch.arange(n) % c


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"surrogate": "hinge", "alpha": 0.5, "activation": "sigmoid"},
        {"surrogate": "q_hinge", "q": 3.0, "pairs": "ova", "class_counts": [5, 6, 7, 8]},
        {"surrogate": "squared", "pairs": np.arange(16.0).reshape(4, 4), "ignore_index": 3},
        {"log_loss": 2.0, "class_counts": [5, 6, 7, 8]},
    ],
    ids=str,
)
def test_equals_the_function(settings):
    logits, y = data()
    weight = torch.rand(30)
    assert torch.equal(PairLoss(**settings)(logits, y, weight), pair_loss(logits, y, weight=weight, **settings))


def test_trains():
    """A few steps on separable data bring the risk down to what it can be."""
    torch.manual_seed(0)
    y = torch.arange(60) % 3
    x = torch.nn.functional.one_hot(y).float() + 0.1 * torch.randn(60, 3)
    layer, criterion = torch.nn.Linear(3, 3), PairLoss("squared")
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.3)
    for _ in range(60):
        optimiser.zero_grad()
        loss = criterion(layer(x), y)
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.02


def test_copies_and_pickles():
    criterion = PairLoss("generalized_hinge", alpha=0.5, epsilon=0.2, pairs=np.ones((4, 4)), class_counts=[1, 2, 3, 4])
    logits, y = data()
    expected = criterion(logits, y)
    for other in (copy.deepcopy(criterion), pickle.loads(pickle.dumps(criterion))):
        assert torch.equal(other(logits, y), expected)


def test_settings_are_not_state_and_keep_their_digits():
    """.half() of a model must not turn class sizes above 65504 into infinity."""
    criterion = PairLoss(pairs="ova", class_counts=[100_001, 3, 4])
    assert criterion.state_dict() == {}
    criterion.half()
    assert criterion.class_counts.dtype == torch.float64
    assert criterion.class_counts[0] == 100_001
    assert criterion.to("meta").class_counts.device.type == "meta"


def test_repr_names_the_settings():
    assert repr(PairLoss("hinge", alpha=0.5)) == (
        "MAUCLoss(Hinge(alpha=0.5), log_loss=0, activation='softmax', pairs='ovo')"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"surrogate": "nope"}, "surrogate must be one of"),
        ({"activation": "relu"}, "activation must be one of"),
        ({"pairs": "each"}, "pairs must be one of"),
        ({"pairs": [[1.0, 2.0]]}, "pairs must be"),
        ({"class_counts": [1, -2], "log_loss": 1.0}, "class_counts must be two or more positive numbers, got -2 at 1"),
        (
            {"class_counts": [0.01, 0.2], "log_loss": 1.0},
            "must be sizes or shares of the classes, not weights",
        ),
        ({"beta": 2.0}, "beta is not an option"),
        ({"reduction": "mean"}, "reduction is an option of CrossEntropyLoss, not of MAUCLoss, got 'mean': leave it"),
    ],
)
def test_bad_settings_are_refused_at_once(settings, message):
    with pytest.raises(ValueError, match=message):
        PairLoss(**settings)


def test_logits_of_other_shapes_are_refused_with_advice():
    loss = MAUCLoss([5, 3, 2])
    MAUCLoss([0.33, 0.33, 0.33])  # rounded shares
    with pytest.raises(ValueError, match=r"^class_counts must be 2 positive numbers, got shape \(3,\)"):
        loss(torch.zeros(3, 2), torch.tensor([0, 1, 2]))


@needs_compiler
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_compiles_to_one_graph(surrogate):
    logits, y = data()
    criterion = PairLoss(surrogate, pairs="ova", class_counts=[9, 8, 7, 6])
    expected = criterion(logits, y)
    (gradient,) = torch.autograd.grad(expected, logits)
    compiled = torch.compile(criterion, fullgraph=True)
    got = compiled(logits, y)
    (compiled_gradient,) = torch.autograd.grad(got, logits)
    assert torch.allclose(got, expected, rtol=1e-5)
    assert torch.allclose(compiled_gradient, gradient, rtol=1e-4, atol=1e-8)


@needs_compiler
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")  # Dynamo's own
@pytest.mark.slow
def test_compiles_with_a_break():
    """An object cannot be told by its name and numbers: it stays outside the graph, and works."""
    logits, y = data()
    criterion = PairLoss(SIGMOID)
    expected = criterion(logits, y)
    (gradient,) = torch.autograd.grad(expected, logits)
    got = torch.compile(lambda z: 2.0 * criterion(z, y))(logits)
    (compiled_gradient,) = torch.autograd.grad(got, logits)
    assert torch.allclose(got, 2.0 * expected, rtol=1e-5)
    assert torch.allclose(compiled_gradient, 2.0 * gradient, rtol=1e-4, atol=1e-8)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(("surrogate", "log_loss"), [*((name, 0.0) for name in SURROGATES), ("hinge", 0.5)])
def test_traces_to_one_graph(surrogate, log_loss):
    """The graph alone, without a compiler: the moments path operation by operation, the others as one operation."""
    logits, y = data()
    criterion = PairLoss(surrogate, pairs="ova", log_loss=log_loss, class_counts=[5, 6, 7, 8] if log_loss else None)
    expected = criterion(logits, y)
    (gradient,) = torch.autograd.grad(expected, logits)
    torch.compiler.reset()  # the graphs of other criteria count against a limit
    got = torch.compile(criterion, fullgraph=True, backend="aot_eager")(logits, y)
    (traced_gradient,) = torch.autograd.grad(got, logits)
    assert torch.allclose(got, expected, rtol=1e-5)
    assert torch.allclose(traced_gradient, gradient, rtol=1e-4, atol=1e-8)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`:UserWarning")
@pytest.mark.parametrize("surrogate", ["squared", "hinge"])
def test_the_function_traces_to_one_graph_too(surrogate):
    logits, y = data()
    torch.compiler.reset()
    traced = torch.compile(
        lambda z: pair_loss(z, y, surrogate=surrogate, alpha=0.5), fullgraph=True, backend="aot_eager"
    )
    torch.testing.assert_close(traced(logits), pair_loss(logits, y, surrogate=surrogate, alpha=0.5))
