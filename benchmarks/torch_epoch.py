"""One training epoch with the loss against the same epoch with cross-entropy: ``python -m benchmarks.torch_epoch``.

Random data of the sizes of the paper's deep experiments stay on the device; each epoch draws its batches anew, and the
losses take their turns. Prints seconds an epoch, the ratio to cross-entropy, and the paper's seconds. ``--mode``: a
step in eager mode ("eager"), network and loss compiled as one graph of torch, which launches its kernels one by one
("compiled") or replays them as CUDA graphs ("reduce-overhead"), or the whole step, optimiser included, as a
replayed CUDA graph ("recorded").
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mauc.nn import MAUCLoss

Loss = Callable[[Tensor, Tensor], Tensor]
COMPILED = ("compiled", "reduce-overhead")


@dataclass(frozen=True)
class Setting:
    """An experiment of the paper: training samples, features, classes, hidden layers, batch, optimiser."""

    name: str
    n: int
    d: int
    c: int
    hidden: tuple[int, ...]
    batch: int
    optimizer: str
    alphas: tuple[float, float, float]
    """Of squared, exponential and hinge."""
    paper: tuple[float, float, float]
    """Seconds an epoch of the paper's accelerated losses on a TITAN RTX, likewise."""

    @property
    def losses(self) -> list[tuple[str, float, float | None]]:
        """Return surrogate, α and the paper's seconds: the paper's three, and two that are curved on [−1, 1]."""
        theirs = zip(("squared", "exponential", "hinge"), self.alphas, self.paper, strict=True)
        return [*theirs, ("hinge", 0.5, None), ("logistic", 1.0, None)]


SETTINGS = (
    Setting("CIFAR-100-Imb", 18_680, 2048, 100, (1024, 256), 1000, "adam", (1.0, 4.0, 4.0), (0.95, 0.97, 0.83)),
    Setting("User-Imb", 19_520, 21_527, 12, (128, 64), 32, "sgd", (0.5, 2.0, 2.0), (8.59, 9.41, 8.42)),
    Setting("iNaturalist", 472_619, 2048, 5089, (1024, 1024), 8196, "adam", (1.0, 4.0, 4.0), (121.8, 117.4, 115.5)),
)


def network(setting: Setting, device: torch.device) -> nn.Sequential:
    """Return fully connected layers with batch normalisation and rectifiers."""
    layers: list[nn.Module] = []
    width = setting.d
    for following in setting.hidden:
        layers += [nn.Linear(width, following), nn.BatchNorm1d(following), nn.ReLU()]
        width = following
    return nn.Sequential(*layers, nn.Linear(width, setting.c)).to(device)


def epoch(setting: Setting, X: Tensor, y: Tensor, loss: Loss, mode: str) -> Callable[[], float]:
    """Return a function that trains for one epoch and returns its seconds."""
    torch.manual_seed(0)
    model = network(setting, X.device)
    kind = torch.optim.Adam if setting.optimizer == "adam" else torch.optim.SGD
    options = {"capturable": True} if mode == "recorded" and setting.optimizer == "adam" else {}
    optimizer = kind(model.parameters(), lr=1e-5, **options)

    def risk(x: Tensor, classes: Tensor) -> Tensor:
        return loss(model(x), classes)

    value = risk
    if mode in COMPILED:
        value = torch.compile(risk, fullgraph=True, mode=None if mode == "compiled" else mode)

    def step(rows: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        value(X[rows], y[rows]).backward()
        optimizer.step()

    take = Recorded(step, torch.arange(setting.batch, device=X.device)) if mode == "recorded" else step

    def run() -> float:
        _wait(X.device)
        begin = time.perf_counter()
        for rows in torch.randperm(len(y), device=X.device).split(setting.batch):
            # A graph is of one shape, and compiling another would be timed: the last, smaller batch is left out.
            if mode == "eager" or len(rows) == setting.batch:
                take(rows)
        _wait(X.device)
        return time.perf_counter() - begin

    return run


class Recorded:
    """A step as a CUDA graph that reads its rows from one place; it keeps the step, whose memory the graph uses."""

    def __init__(self, step: Callable[[Tensor], None], rows: Tensor) -> None:
        self.step, self.rows, self.graph = step, rows, torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step(rows)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph, stream=side):
            step(rows)

    def __call__(self, rows: Tensor) -> None:
        self.rows.copy_(rows)
        self.graph.replay()


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mode", choices=("eager", *COMPILED, "recorded"), default="eager")
    parser.add_argument("--share", type=float, default=1.0, help="of the samples, for slow devices")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, {arguments.share:.0%} of the samples, {arguments.mode}\n")
    print("| experiment | loss | epoch, s | cross-entropy, s | ratio | target | paper, s (TITAN RTX) |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for setting in SETTINGS:
        n = max(2 * setting.batch, int(setting.n * arguments.share))
        generator = torch.Generator(device).manual_seed(0)
        X = torch.randn(n, setting.d, generator=generator, device=device)
        y = torch.randint(0, setting.c, (n,), generator=generator, device=device)
        ours = [MAUCLoss(surrogate=kind, alpha=alpha, log_loss=0.0) for kind, alpha, _ in setting.losses]
        torch.compiler.reset()  # torch keeps eight graphs of one function at most
        runs = [epoch(setting, X, y, loss, arguments.mode) for loss in (cross_entropy, *ours)]
        for run in runs:
            run()
        seconds = [[run() for run in runs] for _ in range(arguments.rounds)]
        theirs, *mine = (statistics.median(column) for column in zip(*seconds, strict=True))
        for (kind, alpha, paper), value in zip(setting.losses, mine, strict=True):
            row = f"| {setting.name} | {kind} α={alpha:g} | {value:.3f} | {theirs:.3f} | {value / theirs:.2f} "
            print(f"{row}| ≤ 1.05 | {'' if paper is None else f'{paper:g}'} |", flush=True)
        del X, y, runs


if __name__ == "__main__":
    main()
