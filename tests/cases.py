"""The one list of losses that drives the suite: a new surrogate is one entry, and every contract then runs on it.

:data:`CASES` drives the facts of the surrogates, the planner and the comparison of every scheme with the definition;
:data:`EACH_KIND`, one of each kind of pieces, the other contracts of the risk, the torch loss, the fused kernels,
several processes and boosting.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from mauc import SurrogateRisk
from mauc.surrogates import CustomSurrogate, Piece, Surrogate, get_surrogate

INF = float("inf")

PATHS = {"numpy": (1e-10, 1e-6), "torch": (1e-10, 1e-8), "processes": (1e-8, 1e-6)}
"""Tolerance of each path against the definition: where it is exact, and where it approximates."""


@dataclass(frozen=True)
class Case:
    """A loss, and the facts that tests check."""

    surrogate: Any
    options: dict[str, float] = field(default_factory=dict)
    condition: bool = True
    """Theorem 3's sufficient condition is met."""
    scheme: str = "ranked"
    """The linear scheme of spec §4."""
    exact: bool = True
    """That scheme is exact, not an approximation."""
    linear: bool = True
    """That scheme reaches the default tolerance on softmax scores; where not, pairs are taken in blocks."""
    kinks: tuple[float, ...] = ()
    """Where some derivative of ℓ jumps."""
    tolerances: dict[str, float] = field(default_factory=dict)
    """Where a path differs from :data:`PATHS`."""
    label: str = ""

    def __str__(self) -> str:
        name = self.label or self.surrogate
        return "-".join([name, *(f"{key}{value:g}" for key, value in self.options.items())])

    def within(self, path: str) -> float:
        exact, approximated = PATHS[path]
        return self.tolerances.get(path, exact if self.exact else approximated)

    @property
    def tolerance(self) -> float:
        return self.within("numpy")

    def build(self) -> Surrogate:
        return get_surrogate(self.surrogate, **self.options)

    def risk(self, **settings: Any) -> SurrogateRisk:
        return SurrogateRisk(self.build(), **settings)


class Bent:
    """Not a Surrogate, only shaped like one: the logistic loss cut off at ¼, where its slope jumps."""

    breakpoints = (0.25,)

    def loss(self, t):
        return np.maximum(np.logaddexp(0.0, -t) - np.logaddexp(0.0, -0.25), 0.0)

    def derivative(self, t):
        return np.where(t < 0.25, -np.exp(-np.logaddexp(0.0, t)), 0.0)


@dataclass(frozen=True)
class Quartic(Surrogate):
    """(1 − t)⁴: one polynomial piece that is neither squared nor approximated."""

    name: ClassVar[str] = "quartic"

    def loss(self, t):
        return (1.0 - t) ** 4

    def derivative(self, t):
        return -4.0 * (1.0 - t) ** 3

    @property
    def pieces(self):
        return (Piece(-INF, INF, (1.0, -4.0, 6.0, -4.0, 1.0)),)


@dataclass(frozen=True)
class Ramp(Surrogate):
    """min(max(½ − t, 0), 1): not convex, and with a piece of degree 0 that is not 0."""

    name: ClassVar[str] = "ramp"
    convex = False
    smooth = False

    def loss(self, t):
        return np.clip(0.5 - t, 0.0, 1.0)

    def derivative(self, t):
        return np.where((t >= -0.5) & (t < 0.5), -1.0, 0.0)

    @property
    def pieces(self):
        return (Piece(-INF, -0.5, (1.0,)), Piece(-0.5, 0.5, (0.5, -1.0)), Piece(0.5, INF, (0.0,)))


def sigmoid_loss(t):
    return 0.5 - 0.5 * np.tanh(0.5 * t)


def sigmoid_derivative(t):
    return -0.25 / np.cosh(0.5 * np.clip(t, -700.0, 700.0)) ** 2


SIGMOID = CustomSurrogate(sigmoid_loss, sigmoid_derivative, smooth=True, decreasing=True)
# The kink is not declared: no polynomial can follow it, so this one must fall back to blocks, and stay exact.
UNDECLARED = CustomSurrogate(Bent().loss, Bent().derivative, convex=True, decreasing=True)

# Dyadic parameters and dyadic scores meet exactly: P − Q = α, and every kink, occurs.
CASES = [
    *(Case("squared", {"alpha": a}, condition=a >= 1, scheme="moments") for a in (0.5, 1.0, 2.0)),
    *(Case("exponential", {"alpha": a}, scheme="moments") for a in (0.5, 1.0, 4.0)),
    *(Case("hinge", {"alpha": a}, condition=False, kinks=(a,)) for a in (0.25, 1.0, 2.0)),
    *(Case("q_hinge", {"alpha": a, "q": q}, kinks=(a,)) for a, q in ((1.0, 2.0), (0.5, 3.0), (2.0, 5.0))),
    Case("q_hinge", {"alpha": 0.5, "q": 2.5}, exact=False, kinks=(0.5,), tolerances={"torch": 1e-6}),
    Case("q_hinge", {"alpha": 1.0, "q": 1.5}, exact=False, linear=False, kinks=(1.0,)),
    *(
        Case("generalized_hinge", {"alpha": a, "epsilon": e}, kinks=(a - e, a + e))
        for a, e in ((1.0, 0.25), (0.5, 0.125), (0.3, 0.49), (1.0, 0.01))
    ),
    *(
        Case("logistic", {"alpha": a}, scheme="moments", exact=False, tolerances={"processes": 1e-8})
        for a in (0.5, 1.0, 4.0, 8.0)
    ),
    *(Case("distance_weighted", {"epsilon": e}, exact=False, kinks=(e,)) for e in (0.1, 0.5, 0.9)),
    Case("distance_weighted", {"epsilon": 0.01}, exact=False, linear=False, kinks=(0.01,)),
    Case(SIGMOID, condition=False, scheme="moments", exact=False, label="custom-smooth"),
    Case(Bent(), condition=False, exact=False, kinks=(0.25,), label="custom-breakpoints"),
    Case(
        UNDECLARED,
        condition=False,
        scheme="moments",
        exact=False,
        linear=False,
        kinks=(0.25,),
        label="custom-undeclared",
    ),
    Case(Quartic(), scheme="moments", label="custom-polynomial"),
    Case(Ramp(), condition=False, kinks=(-0.5, 0.5), label="custom-pieces"),
]


def one_of_each_kind(cases: list[Case]) -> list[Case]:
    """Return the first case of each loss, scheme and kind of approximation: others differ only in a number."""
    first: dict[Any, Case] = {}
    for case in cases:
        first.setdefault((case.label or case.surrogate, case.scheme, case.exact, case.linear), case)
    return list(first.values())


EACH_KIND = one_of_each_kind(CASES)

every_case = pytest.mark.parametrize("case", CASES, ids=str)
each_kind = pytest.mark.parametrize("case", EACH_KIND, ids=str)
SOME_CASES = [
    Case("squared"),
    Case("exponential", {"alpha": 1.0}),
    Case("hinge", {"alpha": 1.0}),
    Case("q_hinge", {"q": 3.0}),
    Case("logistic", {"alpha": 1.0}, exact=False, tolerances={"torch": 1e-10}),
]
some_cases = pytest.mark.parametrize("case", SOME_CASES, ids=str)

KINDS = ("ties", "softmax", "logits", "float32")


def draw_scores(kind: str, n_samples: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Draw scores of one kind: a dyadic grid full of ties, softmax, raw logits far from 0, or float32."""
    if kind == "ties":
        return rng.integers(-8, 9, (n_samples, n_classes)) / 8.0
    logits = rng.normal(0.0, 2.0, (n_samples, n_classes))
    if kind == "logits":
        return logits + 10.0 * np.arange(n_classes)
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return softmax.astype(np.float32) if kind == "float32" else softmax


def draw_classes(n_samples: int, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw imbalanced classes, each with a sample; the last of them has only one."""
    share = 1.0 / np.arange(1, len(classes))
    y = rng.choice(classes[:-1], n_samples, p=share / share.sum())
    y[: len(classes)] = classes
    return rng.permutation(y)


def draw_weight(kind: str, y: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    if kind == "none":
        return None
    if kind == "random":
        return rng.random(len(y)) + 0.01
    weight = rng.integers(0, 3, len(y)).astype(float)
    weight[np.unique(y, return_index=True)[1]] = 1.0
    return weight


def draw_pairs(kind: str, n_classes: int, rng: np.random.Generator) -> Any:
    if kind != "matrix":
        return kind
    # Not symmetric, not normalised, with zeros, and with a diagonal that must not matter.
    return rng.integers(0, 4, (n_classes, n_classes)) + np.eye(n_classes, k=1) + 5.0 * np.eye(n_classes)


def settings(kind: str, n_classes: int, n_samples: int = 40, seed: int = 0) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Yield ``(what, y, scores, sample_weight, pairs)``: each kind of weights and of pairs with and without an absent
    class, but not their product."""
    rng = np.random.default_rng([seed, n_classes, KINDS.index(kind)])
    for absent in (False, True) if n_classes > 2 else (False,):
        classes = np.arange(n_classes)
        if absent:
            classes = rng.permutation(np.delete(classes, n_classes // 2))
        pairings = ("matrix", "ovo", "ova") if absent else ("ovo", "ova", "matrix")
        for weighting, pairing in zip(("none", "random", "zeros"), pairings, strict=True):
            y = draw_classes(n_samples, classes, rng)
            scores = draw_scores(kind, n_samples, n_classes, rng)
            weight = draw_weight(weighting, y, rng)
            what = f"weights {weighting}, pairs {pairing}, {'a class absent' if absent else 'all classes'}"
            yield what, y, scores, weight, draw_pairs(pairing, n_classes, rng)


def evaluate(risk: SurrogateRisk, y: Any, scores: Any, weight: Any = None) -> tuple[float, np.ndarray]:
    """Return value and gradient, without the warning that pairs are taken in blocks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*taking all pairs in blocks", category=UserWarning)
        return risk.value_and_gradient(y, scores, weight)


def assert_close(
    got: tuple[float, np.ndarray], expected: tuple[float, np.ndarray], tolerance: float, what: str = ""
) -> None:
    """Compare values relative to the value, gradients relative to the largest entry."""
    assert got[1].shape == expected[1].shape, what
    assert got[1].dtype == np.float64, what
    assert got[0] == pytest.approx(expected[0], rel=tolerance, abs=1e-14), what
    off = np.abs(got[1] - expected[1]).max()
    largest = np.abs(expected[1]).max()
    assert off <= tolerance * largest + 1e-15, f"{what}: gradient off by {off / (largest or 1.0):.1e}"
