"""The exact score on a GPU against the one of NumPy on the same machine: ``python -m benchmarks.gpu_metric``.

Prints for each shape the difference of the two scores, both times, their ratio, the target, and the memory that the
score takes on the device beside its input. Scores are float32 with ties; class sizes fall as 1 / rank.
"""

import argparse
import statistics
import time

import numpy as np
import torch

from mauc import mauc_score as on_host
from mauc.nn.functional import mauc_score

SHAPES: list[tuple[int, int, float | None, float | None]] = [
    # rows, classes, ratio to reach, seconds to stay under
    (10_000, 100, None, None),
    (100_000, 100, 10.0, None),
    (65_536, 1000, 30.0, None),
    (100_000, 5089, None, 1.0),
]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    place = torch.device("cuda")
    print("| rows | classes | difference | NumPy, s | device, s | ratio | target | device memory / input |")
    print("|---:|---:|---:|---:|---:|---:|---|---:|")
    for n, c, ratio, seconds in SHAPES:
        generator = torch.Generator(place).manual_seed(0)
        shares = 1.0 / torch.arange(1, c + 1, device=place)
        y = torch.multinomial(shares, n, replacement=True, generator=generator)
        y[:c] = torch.arange(c, device=place)
        scores = torch.randn(n, c, generator=generator, device=place).mul_(1000).round_().div_(1000)
        value, peak = _with_memory(y, scores)
        device = statistics.median(_seconds(y, scores) for _ in range(options.repeat))
        target, given = y.cpu().numpy(), scores.cpu().numpy()
        began = time.perf_counter()
        expected = on_host(target, given, labels=np.arange(c))
        host = time.perf_counter() - began
        aim = f"≥ {ratio:g}x" if ratio else f"≤ {seconds:g} s" if seconds else ""
        difference = abs(value - expected)
        memory = f"{peak / (4 * n * c):.2f}"
        print(
            f"| {n} | {c} | {difference:.1e} | {host:.3f} | {device:.4f} | {host / device:.0f}x | {aim} | {memory} |",
            flush=True,
        )


def _seconds(y: torch.Tensor, scores: torch.Tensor) -> float:
    began = time.perf_counter()
    mauc_score(scores, y).item()  # waits for the device
    return time.perf_counter() - began


def _with_memory(y: torch.Tensor, scores: torch.Tensor) -> tuple[float, int]:
    """Return the score and its memory on the device in bytes; the first call warms up."""
    mauc_score(scores, y)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    value = mauc_score(scores, y).item()
    return value, torch.cuda.max_memory_allocated() - before


if __name__ == "__main__":
    main()
