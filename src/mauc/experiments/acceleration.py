"""The paper's acceleration figure: loops over all pairs against the exact schemes, loss and gradient apart."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc.experiments.store import Cell
from mauc.risk import SurrogateRisk

__all__ = ["LARGE_SIZES", "LOSSES", "PRIORS", "SIZES", "cells"]

PRIORS = (0.2, 0.1, 0.2, 0.4, 0.1)
SIZES = (32, 64, 128, 256, 512, 1024)
LARGE_SIZES = (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
REPETITIONS = 30

Scalar = Callable[[float], float]
LOSSES: dict[str, tuple[Scalar, Scalar]] = {
    "squared": (lambda t: (1.0 - t) ** 2, lambda t: -2.0 * (1.0 - t)),
    "exponential": (lambda t: math.exp(-t), lambda t: -math.exp(-t)),
    "hinge": (lambda t: max(1.0 - t, 0.0), lambda t: -1.0 if t < 1.0 else 0.0),
}


def naive_value(y: NDArray[np.int64], scores: NDArray[np.float64], loss: Scalar) -> float:
    """The risk as its definition: a loop over all pairs of samples."""
    n_classes = scores.shape[1]
    sizes = np.bincount(y, minlength=n_classes)
    value = 0.0
    for m in range(len(y)):
        for n in range(len(y)):
            if y[m] != y[n]:
                weight = 1.0 / (n_classes * (n_classes - 1) * sizes[y[m]] * sizes[y[n]])
                value += weight * loss(scores[m, y[m]] - scores[n, y[m]])
    return value


def naive_gradient(y: NDArray[np.int64], scores: NDArray[np.float64], derivative: Scalar) -> NDArray[np.float64]:
    """Its gradient, likewise."""
    n_classes = scores.shape[1]
    sizes = np.bincount(y, minlength=n_classes)
    gradient = np.zeros_like(scores)
    for m in range(len(y)):
        for n in range(len(y)):
            if y[m] != y[n]:
                weight = 1.0 / (n_classes * (n_classes - 1) * sizes[y[m]] * sizes[y[n]])
                slope = weight * derivative(scores[m, y[m]] - scores[n, y[m]])
                gradient[m, y[m]] += slope
                gradient[n, y[m]] -= slope
    return gradient


def cells(*, quick: bool = False) -> list[Cell]:
    """One cell for each loss and number of samples."""
    repetitions = 3 if quick else REPETITIONS
    small = SIZES[:4] if quick else SIZES
    large = LARGE_SIZES[:3] if quick else LARGE_SIZES
    depth = "quick" if quick else "full"
    out = []
    for n in (*small, *large):
        for loss in LOSSES:
            out.append(Cell((depth, loss, f"{n:07d}"), measure, (loss, n, repetitions, n in small)))
    return out


def measure(name: str, n: int, repetitions: int, with_loops: bool) -> dict[str, Any]:
    """Seconds of each repetition, ours and, for few samples, those of the loops; and how far the results are apart."""
    rng = np.random.default_rng(n)
    y = np.repeat(np.arange(len(PRIORS)), _sizes(n))
    scores = rng.dirichlet(np.ones(len(PRIORS)), n)
    loss, derivative = LOSSES[name]
    risk = SurrogateRisk(name)
    value, gradient = risk.value_and_gradient(y, scores)
    out: dict[str, Any] = {
        "n": n,
        "scheme": risk.scheme_,
        "value": _time(lambda: risk.value(y, scores), repetitions),
        "gradient": _time(lambda: risk.value_and_gradient(y, scores), repetitions),
    }
    if with_loops:
        out["naive_value"] = _time(lambda: naive_value(y, scores, loss), repetitions)
        out["naive_gradient"] = _time(lambda: naive_gradient(y, scores, derivative), repetitions)
        slow = naive_gradient(y, scores, derivative)
        out["error"] = max(
            abs(value - naive_value(y, scores, loss)) / abs(value),
            float(np.abs(gradient - slow).max() / np.abs(slow).max()),
        )
    return out


def _sizes(n: int) -> NDArray[np.int64]:
    """Class sizes in the proportions of the paper that sum to n."""
    sizes = np.floor(np.array(PRIORS) * n).astype(np.int64)
    sizes[np.argsort(PRIORS)[: n - sizes.sum()]] += 1
    return sizes


def _time(function: Callable[[], Any], repetitions: int) -> list[float]:
    seconds = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)
    return seconds
