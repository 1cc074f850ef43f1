"""Every kernel, with the arguments it is called with, compiles for a device: no device is needed, only Triton.

The interpreter takes much that the compiler does not.
"""

import os

import pytest
import torch
from pair_loss import pair_loss

from mauc.nn._engine import fused, fused_tiny
from mauc.nn._engine.launch import Kernel

triton = pytest.importorskip("triton")
pytestmark = [
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="interpreted kernels are not compiled"),
    pytest.mark.slow,
]

TYPES = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.int32: "*i32",
    torch.int64: "*i64",
    int: "i32",
    float: "fp32",
}


@pytest.fixture
def compiled(monkeypatch):
    """Names of the kernels that were compiled in place of being launched."""
    from triton.backends.compiler import GPUTarget

    names = []

    def compile_for_hopper(self, *inputs):
        kinds = [TYPES[x.dtype] if isinstance(x, torch.Tensor) else TYPES[type(x)] for x in inputs]
        kinds += ["constexpr"] * len(self.constants)
        attributes = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(kinds) if kind.startswith("*")}
        signature = dict(zip(self.kernel.arg_names, kinds, strict=True))
        source = triton.compiler.ASTSource(self.kernel, signature, self.constants, attributes)
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options=self.options)
        names.append(self.kernel.fn.__name__)

    monkeypatch.setattr(Kernel, "__call__", compile_for_hopper)
    monkeypatch.setattr(fused, "runs_kernels", lambda _: True)
    for module in ("moments", "ranked", "bilinear", "tiny"):
        monkeypatch.setattr(f"mauc.nn._engine.fused_{module}._RECIPES", {})
    return names


LOSSES = {
    "hinge": ("hinge", {"alpha": 0.5}),
    "q_hinge": ("q_hinge", {"alpha": 0.5, "q": 3.0}),
    "generalized_hinge": ("generalized_hinge", {"alpha": 0.5}),
    "logistic": ("logistic", {"alpha": 1.0}),
    "exponential": ("exponential", {"alpha": 4.0}),
    "squared": ("squared", {"alpha": 1.0}),
}
BILINEAR = ["slopes_of_negatives", "sums_of", "slopes_of_positives", "own_slopes", "gradient_of"]
KERNELS = {
    "hinge": ["survey", "rank", "tabulate", "columns_of", "collect", "gradient_of"],
    "logistic": ["survey", *BILINEAR],
    "raw": ["survey", "positives_of", *BILINEAR],
    "exponential": ["statistics", "gradient"],
}
FAMILY = {"q_hinge": "hinge", "generalized_hinge": "hinge", "squared": "exponential"}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "identity"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_compiles(loss, activation, dtype, compiled, monkeypatch):
    monkeypatch.setattr(fused_tiny, "MOST_SAMPLES", 0)
    name, options = LOSSES[loss]
    if (name, activation) == ("logistic", "identity"):
        pytest.skip("needs the range of the scores: plain operations")
    family = FAMILY.get(loss, loss)
    if activation == "identity" and family == "exponential":
        family = "raw"
    y = torch.arange(40) % 5
    weight, counts = torch.ones(40), torch.ones(5)
    for settings in ({}, {"pairs": "ova", "weight": weight, "class_counts": counts, "log_loss": 0.5}):
        logits = torch.zeros(40, 5, dtype=dtype, requires_grad=True)
        pair_loss(logits, y, surrogate=name, **options, activation=activation, **settings).backward()
    assert compiled == 2 * KERNELS[family]
    pair_loss(logits.detach(), y, surrogate=name, **options, activation=activation, pairs=torch.ones(5, 5))
    assert len(compiled) > 2 * len(KERNELS[family])
    compiled.clear()
    wide = torch.zeros(3, 2100, dtype=dtype, requires_grad=True)
    pair_loss(wide, y[:3], surrogate=name, **options, activation=activation, log_loss=0.5).backward()
    assert compiled == KERNELS[family]


def test_compiles_the_order_within_classes(compiled, monkeypatch):
    monkeypatch.setattr(fused_tiny, "MOST_SAMPLES", 0)
    monkeypatch.setattr("mauc.nn._engine.fused_ranked.FEW", 0)
    pair_loss(torch.zeros(40, 5), torch.arange(40) % 5, surrogate="hinge", alpha=0.5)
    assert compiled == ["survey", "group", "rank_in_class", "tabulate", "columns_of"]


@pytest.mark.parametrize("loss", ["generalized_hinge", "logistic", "steep", "exponential"])
def test_compiles_one_kernel_for_tiny_batches(loss, compiled):
    name, options = ("logistic", {"alpha": 4.0}) if loss == "steep" else LOSSES[loss]
    y, weight, counts = torch.arange(40) % 5, torch.ones(40), torch.ones(5)
    own = {"pairs": torch.ones(5, 5)}
    others = {"pairs": "ova", "weight": weight, "class_counts": counts, "log_loss": 0.5, "activation": "sigmoid"}
    calls = [own] if name == "exponential" else [own, others]
    for settings in calls:
        for dtype in (torch.float32, torch.bfloat16):
            logits = torch.zeros(40, 5, dtype=dtype, requires_grad=True)
            pair_loss(logits, y, surrogate=name, **options, **settings).backward()
    assert compiled == 2 * len(calls) * ["tiny"]
    if name != "logistic":
        pair_loss(torch.zeros(40, 5), y, surrogate=name, **options, activation="identity")
        assert compiled == (2 * len(calls) + 1) * ["tiny"]
