"""How a compiled kernel is launched, with a stand-in for Triton's."""

import numpy as np
import pytest
import torch

from mauc.nn._engine.launch import Kernel


class HookChain:
    """As Triton's: called at every launch, even if empty."""

    def __init__(self):
        self.calls = []


class Launcher:
    """The part in C: it records what it is given."""

    global_scratch_size = 0

    def __init__(self):
        self.given = []

    def launch(self, *arguments):
        self.given.append(arguments)


class Compiled:
    def __init__(self, hooks=None, extra=()):
        self.run, self.hooks, self.extra, self.asked = Launcher(), hooks or HookChain(), extra, 0

    def __getitem__(self, grid):
        def runner(*arguments, stream):
            self.asked += 1
            self.run.launch(*grid, stream, 4711, (4, 1, 0), *self.extra, self.hooks, *arguments)

        return runner


class Jitted:
    """What ``triton.jit`` makes of a function."""

    arg_names = ("x", "n", "C", "BLOCK")

    def __init__(self, compiled):
        self.compiled = compiled

    def __getitem__(self, grid):
        return lambda *inputs, **options: self.compiled


@pytest.fixture
def call(monkeypatch):
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7, raising=False)

    def run(compiled, times, number=9):
        kernel, x = Kernel(Jitted(compiled), (3,), 4, {"C": 5, "BLOCK": 16}), torch.ones(2)
        for _ in range(times):
            kernel(x, number)
        return x.data_ptr()

    return run


def test_later_calls_reach_the_launcher_by_themselves(call):
    for number in (9, np.float64(0.5)):
        compiled = Compiled()
        address = call(compiled, 4, number)
        assert compiled.asked == 1
        through_triton, *directly = compiled.run.given
        assert through_triton[:6] == (3, 1, 1, 7, 4711, (4, 1, 0))
        assert directly == 2 * [(3, 1, 1, 7, 4711, (4, 1, 0), None, address, number, 5, 16)]


@pytest.mark.parametrize("reason", ["hook", "memory", "unknown"])
def test_triton_is_asked_where_a_call_is_not_like_the_last(call, reason):
    hooks = HookChain()
    if reason == "hook":
        hooks.calls.append(print)
    compiled = Compiled(hooks, extra=(object(),) if reason == "unknown" else ())
    if reason == "memory":
        compiled.run.global_scratch_size = 64
    call(compiled, 4)
    assert compiled.asked == len(compiled.run.given) == 3
