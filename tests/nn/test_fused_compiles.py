"""Every kernel, with the arguments it is called with, compiles for a device: no device is needed, only Triton.

The interpreter takes much that the compiler does not.
"""

import os

import pytest
import torch
from pair_loss import pair_loss

triton = pytest.importorskip("triton")
pytestmark = [
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="interpreted kernels are not compiled"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION:UserWarning"),  # of Triton 3.9
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

    def compile_for_hopper(self, *inputs, grid, warmup, **options):
        arguments = dict(zip(self.arg_names, inputs, strict=False)) | options
        constants = {
            parameter.name: arguments[parameter.name]
            for parameter in self.params
            if parameter.is_constexpr or arguments[parameter.name] is None
        }
        kinds = {
            name: "constexpr"
            if name in constants
            else TYPES[arguments[name].dtype if isinstance(arguments[name], torch.Tensor) else type(arguments[name])]
            for name in self.arg_names
        }
        attributes = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(kinds.values()) if kind.startswith("*")}
        source = triton.compiler.ASTSource(self, kinds, constants, attributes)
        compiled = {name: x for name, x in options.items() if name in ("num_warps", "maxnreg")}
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options=compiled)
        names.append(self.fn.__name__)

    monkeypatch.setattr(triton.JITFunction, "run", compile_for_hopper)
    monkeypatch.setattr("mauc.nn._triton.launch.has_triton", lambda _: True)
    return names


SHIFTED = ["extremes", "statistics", "gradient_of"]
FLAT = ["statistics", "gradient_of"]


@pytest.mark.parametrize("surrogate", ["exponential", "squared"])
@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "identity", "log_odds"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_compiles(surrogate, activation, dtype, compiled):
    unbounded = activation in ("identity", "log_odds")
    if unbounded and surrogate != "exponential":
        pytest.skip("plain operations compute these scores of this loss")
    kernels = SHIFTED if unbounded else FLAT
    y = torch.arange(40) % 5
    weight, counts = torch.ones(40), torch.ones(5)
    for settings in ({}, {"pairs": "ova", "weight": weight, "class_counts": counts, "log_loss": 0.5}):
        logits = torch.zeros(40, 5, dtype=dtype, requires_grad=True)
        pair_loss(logits, y, surrogate=surrogate, activation=activation, **settings).backward()
    assert compiled == 2 * kernels
    compiled.clear()
    pair_loss(logits.detach(), y, surrogate=surrogate, activation=activation, pairs=torch.ones(5, 5))
    assert not compiled
    wide = torch.zeros(3, 2100, dtype=dtype, requires_grad=True)
    pair_loss(wide, y[:3], surrogate=surrogate, activation=activation, log_loss=0.5).backward()
    assert compiled == kernels


def test_compiles_the_count_of_classes(compiled):
    pair_loss(torch.zeros(5000, 5), torch.arange(5000) % 5)
    assert compiled == ["count", "statistics"]
