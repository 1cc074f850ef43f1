"""Every surrogate by every scheme against the definition in extended precision."""

import warnings

import numpy as np
from cases import CASES

from fuzz import definitions
from fuzz.draw import problem
from mauc import SurrogateRisk

KINDS = ("ties", "normal", "softmax", "float32", "outlier", "integers", "neighbours")
# The NumPy definition of a custom loss is taken at its word; ours are evaluated in extended precision.
CHOICES = [case for case in CASES if not case.label or case.label == "custom-pieces"]


def run(rng: np.random.Generator) -> None:
    case = CHOICES[int(rng.integers(len(CHOICES)))]
    drawn = problem(rng, KINDS, most_samples=12, most_classes=4)
    y, scores, weight, pairs, _ = drawn
    surrogate = case.build()
    schemes = ["auto", "blocked", "pairwise"]
    if case.linear and drawn.kind in ("ties", "softmax", "float32"):
        schemes.append(case.scheme)
    with np.errstate(over="ignore", invalid="ignore"):
        value, gradient, magnitude = definitions.risk(y, scores, weight, pairs, surrogate.loss, surrogate.derivative)
    tolerance = 1e-10 if case.exact else 2e-6
    for scheme in schemes:
        risk = SurrogateRisk(case.surrogate, **case.options, pairs=pairs, scheme=scheme)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*taking all pairs in blocks", category=UserWarning)
            found, slope = risk.value_and_gradient(y, scores, weight)
        _close(f"{case}, {scheme} ({risk.scheme_}), {drawn.kind}: value", found, value, abs(value), tolerance, case)
        largest = magnitude.max()
        for got, true in zip(slope.ravel(), gradient.ravel(), strict=True):
            _close(f"{case}, {scheme} ({risk.scheme_}), {drawn.kind}: gradient", got, true, largest, tolerance, case)


def _close(what, found, true, scale, tolerance, case):
    if float(scale) > 1e300:
        assert not np.isnan(found), f"{what} is NaN, by definition {true!r}"
        return
    # What is approximated is so relative to ℓ at 0, which is of size 1.
    room = tolerance * (float(scale) + (0.0 if case.exact else 1.0)) + 1e-290
    assert abs(found - float(true)) <= room, f"{what} {found!r}, by definition {float(true)!r}, allowed {room:.1e}"
