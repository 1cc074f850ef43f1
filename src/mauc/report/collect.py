"""What would help: how much surer the judgement would be with more rows of a class.

The variance of the multiclass AUC is a sum over the classes, ``V = Σ_k σ_k² / n_k``, with ``σ_k²`` the variance of the
influences within the class. Twice as many rows halve the part of their class. How large that part is, the present rows
tell only roughly: it is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mauc._typing import Floats, Ints

__all__ = ["Gain", "gains"]

DRAWS = 2_000
RANGE = 0.9
BORROWED = 2.0
"""Rows of average spread that steady the variance of a class, as in the intervals."""
LISTED = 8


@dataclass(frozen=True)
class Gain:
    """What twice as many rows of a class would take off the width of the interval."""

    k: int
    rows: int
    """How many more."""
    part: float
    """Of the class in the variance."""
    narrower: float
    """Part of the present width, ``1 − √(1 − part / 2)``."""
    low: float
    high: float
    """It lies between these in nine of ten simulations."""


def gains(counts: Ints, weight: Floats, influence: Floats, codes: Ints, seed: int = 0) -> tuple[Gain, ...]:
    """The classes that help most, of a model with these ``(N,)`` influences.

    ``weight`` is how much each class counts, the range of its influences. The sum of squares of the ``n_k`` influences
    about their mean and :data:`BORROWED` rows of average spread gives ``σ_k²`` as that sum divided by a ``χ²``
    variable, which says how far it may be off. Where few rows make most of the squares, as in a model that is nearly
    always right, its degrees of freedom are fewer than rows: by ``2 / (κ − 1)`` with the kurtosis κ of all classes
    together. At 8 to 200 rows per class the range holds the truth in 84 to 97 % of samples.
    """
    n = counts.astype(np.float64)
    mean = np.bincount(codes, influence, len(n)) / n
    squares = np.bincount(codes, (influence - mean[codes]) ** 2, len(n))
    average = weight**2 * np.sum(squares / weight**2) / max(1.0, float((n - 1.0).sum()))
    freedom = n - 1.0 + BORROWED
    steadied = squares + BORROWED * average
    if not steadied.any():
        return ()
    variance = steadied / freedom
    fourth = np.bincount(codes, (influence - mean[codes]) ** 4, len(n))
    kurtosis = max(3.0, float(np.sum(fourth / weight**4) / np.sum(n * (variance / weight**2) ** 2)))
    fewer = 2.0 / (kurtosis - 1.0)
    chi2 = np.random.default_rng(seed).chisquare(fewer * freedom, (DRAWS, len(n)))
    part, draws = _parts(variance / n), _parts(variance * fewer * freedom / chi2 / n)
    low, high = np.quantile(_narrower(draws), [0.5 - 0.5 * RANGE, 0.5 + 0.5 * RANGE], axis=0)
    return tuple(
        Gain(int(k), int(counts[k]), float(part[k]), float(_narrower(part[k])), float(low[k]), float(high[k]))
        for k in np.argsort(-part, kind="stable")[:LISTED]
    )


def _parts(variance: Floats) -> Floats:
    return np.asarray(variance / variance.sum(axis=-1, keepdims=True))


def _narrower(part: Floats) -> Floats:
    return np.asarray(1.0 - np.sqrt(1.0 - 0.5 * part))
