"""How many samples each class of a simulated set has: the paper's lists, and imbalance of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Ints
from mauc._validation import invalid

__all__ = ["CIFAR100_IMB", "INATURALIST", "USER_IMB", "imbalanced_counts", "shrunk"]

# The lists of the paper's appendix. They sum to 16 550 and 32 400, where its table of data sets says 23 350 and 24 400:
# one of the two is a mistake. The class sizes define the problem, so we use the lists.
# fmt: off
CIFAR100_IMB = (
    100, 50, 360, 20, 20, 300, 420, 20, 100, 200,
    100, 100, 600, 50, 100, 50, 50, 100, 100, 100,
    50, 100, 600, 100, 50, 600, 100, 20, 200, 20,
    600, 100, 100, 300, 50, 100, 20, 600, 100, 600,
    20, 600, 100, 300, 20, 300, 420, 600, 480, 100,
    20, 20, 50, 100, 20, 420, 600, 50, 20, 100,
    50, 100, 200, 360, 100, 100, 100, 50, 100, 50,
    50, 150, 600, 50, 300, 20, 150, 20, 20, 100,
    20, 480, 50, 50, 100, 20, 50, 20, 300, 50,
    50, 360, 100, 150, 20, 100, 100, 20, 100, 50,
)
USER_IMB = (800, 400, 400, 800, 1600, 400, 1600, 8000, 800, 1600, 8000, 8000)
# fmt: on

KEPT = 3
"""Samples that a shrunk class keeps at least, one each for training, validation and test."""


def imbalanced_counts(n_samples: int, n_classes: int, ratio: float) -> Ints:
    """Return class sizes that fall geometrically, ``n_i ∝ ratio^(−i / (C − 1))``."""
    return _rounded(ratio ** (-np.arange(n_classes) / (n_classes - 1)), n_samples, np.ones(n_classes))


def long_tail(n_samples: int, n_classes: int, ratio: float, exponent: float) -> Ints:
    """Return class sizes after Zipf and Mandelbrot, ``n_i ∝ (i + q)^−exponent``, the first ``ratio`` times the last."""
    q = (n_classes - 1) / (ratio ** (1 / exponent) - 1)
    return _rounded((np.arange(n_classes) + q) ** -exponent, n_samples, np.ones(n_classes))


def shrunk(counts: Ints, max_samples: int) -> Ints:
    """Return at most ``max_samples`` in proportion to ``counts``; no class falls below three, unless it had fewer."""
    if counts.sum() <= max_samples:
        return counts
    least = np.minimum(counts, KEPT)
    if max_samples < least.sum():
        requirement = f"must leave every class {KEPT} samples, so at least {least.sum()}"
        raise invalid("max_samples", requirement, str(max_samples), "pass more, or take fewer classes by class_counts")
    return _rounded(counts.astype(np.float64), max_samples, least)


def _rounded(shares: NDArray[np.floating], total: int, least: NDArray[Any]) -> Ints:
    """Return whole numbers in proportion to ``shares`` that sum to ``total``, none below ``least``."""
    # Where the least is more than the share, the others have that much less to divide.
    fixed = np.zeros(len(shares), dtype=bool)
    while True:
        scale = (total - least[fixed].sum()) / shares[~fixed].sum()
        below = ~fixed & (shares * scale < least)
        if not below.any():
            break
        fixed |= below
        if fixed.all():
            break
    exact = np.where(fixed, least, shares * scale)
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    return counts


# iNaturalist 2017 has 675 170 samples of 5089 classes; the paper gives the ratio of the largest to the smallest, 276.4,
# and no list. This tail is ours: of the exponents the one with 14 to 3870, so that the rarest class has 10 samples to
# train on; a plain 1 / (i + q) would have 23 to 6469, far above the largest of that challenge.
INATURALIST = tuple(long_tail(675_170, 5089, 276.4, 1.3403).tolist())
