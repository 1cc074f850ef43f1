"""The torch loss, forward and backward, against cross-entropy on the same logits: ``python -m benchmarks.torch_loss``.

Prints for each shape the error against float64, the time, its ratio to cross-entropy in the same mode (eager, as a
replayed CUDA graph, which is the device's own time), and the fraction of the bandwidth floor: two reads and one write
of the logits at the device's measured copy bandwidth. On the CPU one thread is timed by its own clock, so that
neighbours do not count.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mauc.nn import MAUCLoss
from mauc.nn._loss.closed import closed_form
from mauc.surrogates import get_surrogate

SHAPES = {
    "cpu": [(32, 12), (128, 100), (1000, 100), (4096, 100), (4096, 1000)],
    "cuda": [(32, 12), (1000, 100), (4096, 1000), (8196, 5089), (65536, 1000)],
}
RECOMMENDED: list[dict[str, Any]] = [
    {},
    {"activation": "sigmoid"},
    {"activation": "log_odds"},
    {"activation": "identity"},
]
"""Settings of the recommended loss, beside its class counts."""
PAIRS: list[dict[str, Any]] = [
    {"surrogate": "squared", "alpha": 1.0},
    {"surrogate": "exponential", "alpha": 1.0},
    {"surrogate": "exponential", "alpha": 4.0},
    {"surrogate": "hinge", "alpha": 1.0},
    {"surrogate": "hinge", "alpha": 0.5},
    {"surrogate": "q_hinge", "alpha": 0.5},
    {"surrogate": "generalized_hinge", "alpha": 0.5},
    {"surrogate": "logistic", "alpha": 1.0},
]
"""Pair losses without a log-loss."""


def target_of(device: str, n: int, settings: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return the targets of the eager ratio and of the replayed graph's."""
    if "surrogate" not in settings:
        if device == "cpu":
            return {32: None, 128: 5.0}.get(n, 3.0), None
        return (1.0, 1.0) if n > 5000 else (1.6, 1.0)
    if device == "cpu" or not is_closed(settings):
        return None, None
    return (1.0, 1.0) if n > 5000 else (None, 1.0)


def is_closed(settings: dict[str, Any]) -> bool:
    """Return whether kernels compute the loss; the others read the device, so no graph can hold them."""
    pair_loss = get_surrogate(settings.get("surrogate", "exponential"), alpha=settings.get("alpha"))
    return closed_form(pair_loss) is not None


@dataclass(frozen=True)
class Data:
    """Some batches of one shape, more than the caches hold, used in turn."""

    logits: list[Tensor]
    target: Tensor

    @classmethod
    def draw(cls, n: int, c: int, device: torch.device) -> "Data":
        generator = torch.Generator().manual_seed(0)
        target = torch.randint(0, c, (n,), generator=generator).to(device)
        count = max(1, min(16, (256 << 20) // (4 * n * c))) if device.type == "cuda" else 1
        logits = []
        for seed in range(count):
            generator = torch.Generator(device).manual_seed(seed)
            x = torch.randn(n, c, generator=generator, device=device)
            logits.append(x.requires_grad_())
        return cls(logits, target)


def error(data: Data, loss_of: Callable[[Tensor, Tensor], Tensor]) -> float:
    """Return the larger relative error of value and gradient (in norm) against float64 on the same device."""
    x = data.logits[0]
    x.grad = None
    loss = loss_of(x, data.target)
    loss.backward()
    wide = x.detach().double().requires_grad_()
    exact = loss_of(wide, data.target)
    exact.backward()
    assert x.grad is not None
    assert wide.grad is not None
    off = (x.grad - wide.grad).norm().item() / (wide.grad.norm().item() or 1.0)
    x.grad = None
    return max(off, abs(loss.item() - exact.item()) / (abs(exact.item()) or 1.0))


def in_turns(functions: list[Callable[[int], None]], device: torch.device, budget: float) -> list[float]:
    """Return the shortest seconds per call of each, timed in turns because hosts are shared and uneven."""
    rounds: list[list[float]] = [[] for _ in functions]
    for function in functions:
        for k in range(3):
            function(k)
    inner = _calibrate(functions[0], device, budget / 60)
    for _ in range(15):
        for kept, function in zip(rounds, functions, strict=True):
            kept.append(_seconds(function, device, inner))
    return [min(kept) for kept in rounds]


def _calibrate(function: Callable[[int], None], device: torch.device, seconds: float) -> int:
    return max(1, min(200, int(seconds / max(1e-7, _seconds(function, device, 3)))))


def _seconds(function: Callable[[int], None], device: torch.device, inner: int) -> float:
    if device.type == "cpu":
        begin = time.process_time()
        for k in range(inner):
            function(k)
        return (time.process_time() - begin) / inner
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    for k in range(inner):
        function(k)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3 / inner


def step(data: Data, loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[int], None]:
    """Return a function that runs forward and backward on one of the batches."""

    def run(k: int) -> None:
        x = data.logits[k % len(data.logits)]
        x.grad = None
        loss(x, data.target).backward()

    return run


def graph_of(run: Callable[[int], None]) -> Callable[[int], None]:
    """Return the same step as a replayed CUDA graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        run(0)
    return lambda _: graph.replay()


def copy_bandwidth(device: torch.device) -> float:
    """Measure the bytes read and written per second by a large copy."""
    source = torch.randn((256 if device.type == "cuda" else 16) << 20, device=device)
    target = torch.empty_like(source)
    (seconds,) = in_turns([lambda _: _copy(source, target)], device, 0.5)
    return 2 * source.numel() * source.element_size() / seconds


def _copy(source: Tensor, target: Tensor) -> None:
    target.copy_(source)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for a shape and a loss")
    parser.add_argument("--recommended", action="store_true", help="the recommended loss alone")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
        table("CPU, one thread", device, arguments)
    else:
        table(torch.cuda.get_device_name(device), device, arguments)


def table(name: str, device: torch.device, arguments: argparse.Namespace) -> None:
    """Measure and print the rows."""
    bandwidth = copy_bandwidth(device)
    print(f"{name}, torch {torch.__version__}, copy bandwidth {bandwidth / 1e9:.0f} GB/s\n")
    modes = "eager | target | graph | target"
    print(f"| shape | loss | error | time, µs | cross-entropy, µs | {modes} | of the floor |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for n, c in SHAPES[device.type]:
        data = Data.draw(n, c, device)
        floor = 3 * 4 * n * c / bandwidth
        counts = torch.bincount(data.target.cpu(), minlength=c).clamp(min=1)
        for settings in [*RECOMMENDED, *([] if arguments.recommended else PAIRS)]:
            pairs_alone = "surrogate" in settings
            ours = MAUCLoss(**settings, log_loss=0.0) if pairs_alone else MAUCLoss(counts, **settings)
            ours = ours.to(device)
            off = error(data, ours)
            mine, theirs = in_turns([step(data, ours), step(data, cross_entropy)], device, arguments.budget)
            graph = None
            if device.type == "cuda" and is_closed(settings):
                graph = ratio([graph_of(step(data, loss)) for loss in (ours, cross_entropy)], device, arguments.budget)
            of_eager, of_graph = target_of(device.type, n, settings)
            name = f"recommended, {settings.get('activation', 'softmax')}"
            if pairs_alone:
                name = f"{settings['surrogate']} α={settings['alpha']:g}"
            print(
                f"| ({n}, {c}) | {name} | {off:.1e} | {mine * 1e6:.1f} | {theirs * 1e6:.1f} "
                f"| {mine / theirs:.2f} | {shown(of_eager, '≤ ')} | {shown(graph)} | {shown(of_graph, '≤ ')} "
                f"| {floor / mine:.2f} |",
                flush=True,
            )


def ratio(pair: list[Callable[[int], None]], device: torch.device, budget: float) -> float:
    """Time of the first over that of the second."""
    mine, theirs = in_turns(pair, device, budget)
    return mine / theirs


def shown(x: float | None, before: str = "") -> str:
    """Format a number, or nothing."""
    return "" if x is None else f"{before}{x:.2f}"


if __name__ == "__main__":
    main()
