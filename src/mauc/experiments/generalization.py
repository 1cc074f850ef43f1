"""The gap between training and test risk over sample size and imbalance, beside ξ/√N; and which samples close it."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mauc._typing import Floats, Ints
from mauc.datasets.counts import imbalanced_counts
from mauc.datasets.known import KnownClasses
from mauc.datasets.simulated import load_simulated
from mauc.experiments.store import Cell
from mauc.linear import MAUCClassifier
from mauc.metrics import mauc_score
from mauc.risk import SurrogateRisk
from mauc.theory.bounds import for_estimator
from mauc.theory.imbalance import xi

__all__ = ["ADDED", "BASE", "RATIOS", "SIZES", "cells", "measure"]

N_CLASSES, N_FEATURES, SEPARATION = 3, 20, 2.0
SURROGATE, ALPHA, L2 = "squared", 1.0, 1e-3
SIZES = (150, 300, 600, 1200, 2400, 4800)
RATIOS = (1, 5, 25)
BASE = (400, 80, 16)
"""Class sizes that the advice starts from."""
ADDED = (0, 16, 48, 112, 240)
REPETITIONS = 40
TEST_PER_CLASS = 10_000
TRAIN, TEST = range(2)


def cells(*, quick: bool = False) -> list[Cell]:
    """One cell for each number of samples and imbalance, and for each number of samples added to one class."""
    repetitions = 5 if quick else REPETITIONS
    sizes = SIZES[:3] if quick else SIZES
    depth = "quick" if quick else "full"
    out = []
    for ratio in RATIOS:
        for n in sizes:
            counts = tuple(imbalanced_counts(n, N_CLASSES, float(ratio)).tolist())
            out.append(Cell((depth, "sizes", f"ratio-{ratio:03d}", f"{n:06d}"), measure, (counts, repetitions)))
    for name, grown in (("frequent", 0), ("rare", len(BASE) - 1)):
        for added in ADDED[:3] if quick else ADDED:
            counts = tuple(n + added * (k == grown) for k, n in enumerate(BASE))
            out.append(Cell((depth, "added", name, f"{added:06d}"), measure, (counts, repetitions)))
    return out


def measure(class_counts: tuple[int, ...], repetitions: int) -> dict[str, Any]:
    """Risks, test MAUC and bound on the gap of a linear model on each of several samples of these class sizes.

    A larger class holds the samples of a smaller one of the same repetition, so that what they add is not lost in the
    difference of two draws.
    """
    classes = problem()
    risk = SurrogateRisk(SURROGATE, alpha=ALPHA)
    train, test, mauc, bound = [], [], [], []
    for repetition in range(repetitions):
        X, y = draw(classes, np.array(class_counts), repetition, TRAIN)
        # Fresh ones each time: an error that all repetitions share would not show in their spread.
        X_test, y_test = draw(classes, np.full(N_CLASSES, TEST_PER_CLASS), repetition, TEST)
        model = MAUCClassifier(SURROGATE, alpha=ALPHA, l2=L2, tol=1e-5, max_iter=500)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        scores = model.predict_proba(X_test)
        train.append(risk.value(y, model.predict_proba(X)))
        test.append(risk.value(y_test, scores))
        mauc.append(mauc_score(y_test, scores))
        bound.append(for_estimator(model, X, y).gap)
    counts = np.array(class_counts, dtype=np.float64)
    return {
        "class_counts": list(class_counts),
        "rate": xi(counts) / float(np.sqrt(counts.sum())),
        "train": train,
        "test": test,
        "mauc": mauc,
        "bound": bound,
    }


def problem() -> KnownClasses:
    """Gaussian classes at equal distances; which of them is rare makes no difference."""
    data = load_simulated(class_counts=[2] * N_CLASSES, n_features=N_FEATURES, separation=SEPARATION, seed=N_FEATURES)
    known: KnownClasses = data.classes
    return known


def draw(classes: KnownClasses, class_counts: Ints, repetition: int, purpose: int) -> tuple[Floats, Ints]:
    """Samples of every class, of a stream for each purpose, repetition and class."""
    parts = []
    for k, n in enumerate(class_counts):
        rng = np.random.default_rng([purpose, repetition, k])
        parts.append(classes.draw(np.full(n, k), rng, np.dtype(np.float64)))
    return np.concatenate(parts), np.repeat(np.arange(len(class_counts)), class_counts)
