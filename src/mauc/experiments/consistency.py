"""More and more samples of a problem whose Bayes MAUC is known: which losses come to it."""

from typing import Any

import numpy as np
import torch
from torch import nn

from mauc import datasets
from mauc.experiments.deep.fit import Batches, Features, InOrder, Schedule, Shuffled, fit, scores_of
from mauc.experiments.deep.networks import network
from mauc.experiments.deep.run import check_device
from mauc.experiments.store import Cell
from mauc.metrics import mauc_score
from mauc.nn.modules import MAUCLoss
from mauc.nn.samplers import ClassCoverageBatchSampler

__all__ = ["METHODS", "SIZES", "cells", "measure"]

SIZES = (300, 1_000, 3_000, 10_000, 30_000)
QUICK_SIZES = (300, 1_000, 3_000)
PROBLEM: dict[str, Any] = {"n_classes": 5, "imbalance": 20.0, "n_features": 10, "separation": 2.0}
HIDDEN = (64, 64)
BATCH = 250
STEPS = 2_000
"""Of every fit: what more samples change is not how long is trained."""
EPOCHS = 10
RATE = 2e-3
PER_CLASS = 2_000
"""Fresh test samples of each class."""

OPTIONS: dict[str, dict[str, Any]] = {
    "squared": {"alpha": 1.0},
    "exponential": {"alpha": 4.0},
    "hinge": {"alpha": 1.0},
    "q_hinge": {"alpha": 1.0, "q": 3.0},
    "generalized_hinge": {"alpha": 1.0, "epsilon": 0.4},
    "logistic": {"alpha": 4.0},
    "distance_weighted": {},
}
"""Of the surrogates, such that they fall on all of [−1, 1], where the differences of softmax scores are."""
METHODS = (*(f"MAUC {name}" for name in OPTIONS), "cross-entropy", "plug-in on cross-entropy")
BAYES = "Bayes scores"


def cells(*, seeds: int = 3, device: str = "cpu", quick: bool = False) -> list[Cell]:
    """One cell for each size, method and seed."""
    place = check_device(device).type
    depth = "quick" if quick else "full"
    steps = STEPS // 4 if quick else STEPS
    return [
        Cell((depth, place, method, f"{n:06d}", f"{seed:02d}"), measure, (method, n, seed, place, steps))
        for n in (QUICK_SIZES if quick else SIZES)
        for seed in range(seeds)
        for method in (BAYES, *METHODS)
    ]


def measure(method: str, n: int, seed: int, place: str, steps: int) -> dict[str, Any]:
    """Test MAUC of a method trained on ``n`` samples; a quarter as many again choose the epoch.

    Every seed and size has its own samples of one problem, and the same test samples.
    """
    known = datasets.load_simulated(n_samples=1000, **PROBLEM, seed=0)
    X_test, y_test = known.sample(np.full(len(known.priors), PER_CLASS), seed=0)
    if method == BAYES:
        return {"test": mauc_score(y_test, known.bayes_scores(X_test)), "diverged": None}
    counts = np.maximum(np.rint(n * known.priors).astype(np.int64), 4)
    X, y = known.sample(counts, seed=1 + 2 * (1000 * seed + n))
    X_held, y_held = known.sample(np.maximum(counts // 4, 4), seed=2 + 2 * (1000 * seed + n))
    where = torch.device(place)
    rows = np.arange(len(y))
    order: Shuffled | ClassCoverageBatchSampler
    loss: nn.Module
    if method.startswith("MAUC "):
        name = method.removeprefix("MAUC ")
        loss = MAUCLoss(name, **OPTIONS[name])
        order = ClassCoverageBatchSampler(y, BATCH, min_per_class=4, seed=seed)
    else:
        loss, order = nn.CrossEntropyLoss(), Shuffled(len(y), BATCH, seed)
    prior = torch.from_numpy(np.log(counts / counts.sum())).to(where) if method.startswith("plug-in") else None
    features = Features(X.astype(np.float32), where)
    train = Batches(features, torch.from_numpy(y).to(where), rows, order, steps // EPOCHS)
    held_out = InOrder(Features(X_held.astype(np.float32), where), np.arange(len(y_held)))
    schedule = Schedule("adam", RATE, 1e-6, 0.7, 1, BATCH, EPOCHS)
    model = network(X.shape[1], HIDDEN, len(counts), seed=seed)
    result = fit(model, loss, schedule, train, held_out, y_held, log_prior=prior)
    out: dict[str, Any] = {"diverged": result.diverged, "epoch": result.best_epoch, "fit_seconds": result.seconds}
    if not result.scores:
        return {**out, "test": None}
    test = InOrder(Features(X_test.astype(np.float32), where), np.arange(len(y_test)))
    return {**out, "test": mauc_score(y_test, scores_of(model, test, prior))}
