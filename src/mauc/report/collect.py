"""Estimate how much narrower the interval of the MAUC would be with more test rows of a class.

The variance of the multiclass AUC is a sum over the classes, ``V = Σ_k σ_k² / n_k``, with ``σ_k²`` the variance of the
influences within the class. Twice as many rows of a class halve its part. The test rows determine that part only
roughly; its range is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mauc._typing import Floats, Ints

__all__ = ["Gain", "gains"]

DRAWS = 2_000
RANGE = 0.9
PRIOR_ROWS = 2.0
"""Rows of average variance that are added to each class to stabilise its variance. The coverage in :func:`gains` was
measured with two; intervals add three."""
LISTED = 8


@dataclass(frozen=True)
class Gain:
    """Reduction of the width of the interval with twice as many rows of a class."""

    k: int
    rows: int
    """Number of rows to add."""
    part: float
    """Share of the class in the variance."""
    narrower: float
    """Reduction of the width as a share of it, ``1 − √(1 − part / 2)``."""
    low: float
    high: float
    """Ends of the range that holds nine of ten simulations."""


def gains(counts: Ints, weight: Floats, influence: Floats, codes: Ints, seed: int = 0) -> tuple[Gain, ...]:
    """Return the classes that help most, for a model with these ``(N,)`` influences.

    ``weight`` is the range of the influences of each class. The influences of a model that is nearly always right have
    heavy tails: a class of ``n_k`` rows determines its variance as ``f (n_k − 1)`` normal values would, with
    ``f = 2 / (κ − 1)`` and the kurtosis κ of all classes together. With :data:`PRIOR_ROWS` rows of average variance
    added, ``σ_k²`` is known up to a ``χ²`` variable with that many degrees of freedom. With 3 to 200 rows per class of
    similar variance, the range held the truth in at least 92 % of samples.
    """
    n = counts.astype(np.float64)
    centred = influence - (np.bincount(codes, influence, len(n)) / n)[codes]
    squares, fourth = (np.bincount(codes, (centred / weight[codes]) ** k, len(n)) for k in (2, 4))
    average = float(squares.sum()) / max(1.0, float((n - 1.0).sum()))
    if average < 1e-20:
        return ()
    kurtosis = float(fourth.sum()) / float(n.sum()) / average**2
    fewer = min(1.0, 2.0 / max(kurtosis - 1.0, 1e-9))
    freedom = fewer * (n - 1.0) + PRIOR_ROWS
    variance = weight**2 * (fewer * squares + PRIOR_ROWS * average) / freedom / n
    chi2 = np.random.default_rng(seed).chisquare(freedom, (DRAWS, len(n)))
    part, draws = _parts(variance), _parts(variance * chi2 / freedom)
    low, high = np.quantile(_narrower(draws), [0.5 - 0.5 * RANGE, 0.5 + 0.5 * RANGE], axis=0)
    return tuple(
        Gain(int(k), int(counts[k]), float(part[k]), float(_narrower(part[k])), float(low[k]), float(high[k]))
        for k in np.argsort(-part, kind="stable")[:LISTED]
    )


def _parts(variance: Floats) -> Floats:
    return np.asarray(variance / variance.sum(axis=-1, keepdims=True))


def _narrower(part: Floats) -> Floats:
    return np.asarray(1.0 - np.sqrt(1.0 - 0.5 * part))
