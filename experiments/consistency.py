"""More and more samples of a problem whose Bayes MAUC is known: which losses approach it."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from experiments import datasets
from experiments.deep.fit import Batches, Features, InOrder, Schedule, Shuffled, fit, scores_of
from experiments.deep.networks import network
from experiments.plots import series
from experiments.registry import Experiment
from experiments.report_parts import machine, machines, markdown_table, save_figure, spread
from experiments.score_tables import done
from experiments.store import Cell, Store, write_whole
from mauc._typing import Floats, Ints
from mauc.metrics import mauc_score
from mauc.nn import LogitAdjustedLoss
from mauc.nn.modules import MAUCLoss
from mauc.nn.samplers import ClassCoverageBatchSampler

__all__ = ["METHODS", "SIZES", "cells", "experiment", "measure", "write_report"]

SIZES = (300, 1_000, 3_000, 10_000, 30_000)
QUICK_SIZES = (300, 1_000, 3_000)
SEEDS = 3
PROBLEM: dict[str, Any] = {"n_classes": 5, "imbalance": 20.0, "n_features": 10, "separation": 2.0}
HIDDEN = (64, 64)
BATCH = 250
STEPS = 2_000
"""Of every fit, whatever its samples."""
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
"""Options of the surrogates; all fall on [−1, 1], where the differences of softmax scores are."""
ADJUSTED = "adjusted cross-entropy"
BOTH = f"MAUC exponential + {ADJUSTED}"
COVERED = f"{ADJUSTED}, covered batches"
METHODS = (*(f"MAUC {name}" for name in OPTIONS), BOTH, ADJUSTED, COVERED, "cross-entropy", "plug-in on cross-entropy")
BAYES = "Bayes scores"


def experiment(*, quick: bool = False) -> Experiment:
    """Plan the experiment."""
    return Experiment(cells(quick=quick), partial(write_report, quick=quick))


def cells(*, quick: bool = False) -> list[Cell]:
    """Return one cell for each size, method and seed; a quick run has one seed."""
    depth = "quick" if quick else "full"
    steps = STEPS // 4 if quick else STEPS
    return [
        Cell((depth, method, f"{n:06d}", f"{seed:02d}"), measure, (method, n, seed, steps))
        for n in (QUICK_SIZES if quick else SIZES)
        for seed in range(1 if quick else SEEDS)
        for method in (BAYES, *METHODS)
    ]


def measure(method: str, n: int, seed: int, steps: int, per_class: int = PER_CLASS) -> dict[str, Any]:
    """Return the test MAUC of a method trained on ``n`` samples; a quarter as many again choose the epoch.

    Every seed and size has its own samples of one problem, and the same test samples.
    """
    known = datasets.load_simulated(n_samples=1000, **PROBLEM, seed=0)
    X_test, y_test = known.sample(np.full(len(known.priors), per_class), seed=0)
    if method == BAYES:
        return {"test": mauc_score(y_test, known.bayes_scores(X_test)), "diverged": None, "machine": machine()}
    counts = np.maximum(np.rint(n * known.priors).astype(np.int64), 4)
    X, y = known.sample(counts, seed=1 + 2 * (1000 * seed + n))
    X_held, y_held = known.sample(np.maximum(counts // 4, 4), seed=2 + 2 * (1000 * seed + n))
    where = torch.device("cpu")
    rows = np.arange(len(y))
    order: Shuffled | ClassCoverageBatchSampler = Shuffled(len(y), BATCH, seed)
    if method.startswith("MAUC ") or method == COVERED:
        order = ClassCoverageBatchSampler(y, BATCH, min_per_class=4, seed=seed)
    loss = _loss(method, order.class_visits if isinstance(order, ClassCoverageBatchSampler) else counts)
    prior = torch.from_numpy(np.log(counts / counts.sum())) if method.startswith("plug-in") else None
    features = Features(X.astype(np.float32), where)
    train = Batches(features, torch.from_numpy(y), rows, order, steps // EPOCHS)
    held_out = InOrder(Features(X_held.astype(np.float32), where), np.arange(len(y_held)))
    schedule = Schedule("adam", RATE, 1e-6, 0.7, 1, BATCH, EPOCHS)
    model = network(X.shape[1], HIDDEN, len(counts), seed=seed)
    result = fit(model, loss, schedule, train, held_out, y_held, log_prior=prior)
    out: dict[str, Any] = {
        "diverged": result.diverged,
        "epoch": result.best_epoch,
        "fit_seconds": result.seconds,
        "machine": machine(),
    }
    if not result.scores:
        return {**out, "test": None}
    test = InOrder(Features(X_test.astype(np.float32), where), np.arange(len(y_test)))
    return {**out, "test": mauc_score(y_test, scores_of(model, test, prior))}


def _loss(method: str, counts: Ints | Floats) -> nn.Module:
    """Return the loss; ``counts`` adjust the logits: those of the sample, or of covered batches."""
    if method == BOTH:
        return MAUCLoss(counts, **OPTIONS["exponential"], log_loss=1.0, log1p=False, limit=None)
    if method in (ADJUSTED, COVERED):
        return LogitAdjustedLoss(counts)
    if method.startswith("MAUC "):
        name = method.removeprefix("MAUC ")
        return MAUCLoss(surrogate=name, **OPTIONS[name], log_loss=0.0)
    return nn.CrossEntropyLoss()


def write_report(store: Store, folder: Path, *, quick: bool = False) -> list[Path]:
    """Write ``consistency.md`` and ``consistency.png`` of the results on disk; return the files."""
    depth, sizes = ("quick", QUICK_SIZES) if quick else ("full", SIZES)
    runs: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for method in (BAYES, *METHODS):
        for n in sizes:
            prefix = (depth, method, f"{n:06d}")
            found = [store.read((*prefix, seed)) for seed in done(store, prefix)]
            if found:
                runs.setdefault(method, {})[n] = found
    if BAYES not in runs or len(runs) < 2:
        return []
    ceiling = next(iter(runs.pop(BAYES).values()))[0]["test"]
    gaps = {m: {n: _gaps(found, ceiling) for n, found in by_size.items()} for m, by_size in runs.items()}
    lost = {
        m: sum(r["diverged"] is not None for found in by_size.values() for r in found) for m, by_size in runs.items()
    }
    page = folder / "consistency.md"
    measured_on = machines(run for by_size in runs.values() for found in by_size.values() for run in found)
    write_whole(page, _markdown(gaps, lost, ceiling, sizes, measured_on))
    return [page, save_figure(_figure(gaps), folder / "consistency.png")]


def _gaps(found: list[dict[str, Any]], ceiling: float) -> Floats:
    return 100 * np.array([ceiling - r["test"] for r in found if r["test"] is not None], dtype=np.float64)


def _markdown(
    gaps: dict[str, dict[int, Floats]], lost: dict[str, int], ceiling: float, sizes: tuple[int, ...], measured_on: str
) -> str:
    shown = [n for n in sizes if any(n in by_size for by_size in gaps.values())]
    rows = []
    for method, by_size in gaps.items():
        row = [method, *(spread(by_size.get(n, np.empty(0))) for n in shown)]
        rows.append([*row, str(lost[method]) if lost[method] else ""])
    note = (
        "The table shows Bayes MAUC × 100 minus test MAUC × 100 after training on N samples: mean ± standard deviation "
        f"over the seeds. The problem has {PROBLEM['n_classes']} Gaussian classes, the largest "
        f"{PROBLEM['imbalance']:g} times the smallest, and {PROBLEM['n_features']} features. The exact posteriors "
        f"reach {100 * ceiling:.2f} on the same test samples. All methods have the same network and number of steps; "
        "the rows “MAUC …” and “covered batches” have at least four samples of every class in each batch. "
        + measured_on
    )
    head = ["method", *(f"N = {n:,}" for n in shown), "diverged"]
    return f"{note}\n\n{markdown_table(head, rows)}\n"


def _figure(gaps: dict[str, dict[int, Floats]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    for k, (method, by_size) in enumerate(gaps.items()):
        points = {n: values.mean() for n, values in by_size.items() if len(values)}
        line = "-" if method.startswith("MAUC") else "--"
        axes.plot(list(points), list(points.values()), line, label=method, **series(k))
    axes.set(xscale="log", yscale="log", xlabel="training samples", ylabel="Bayes MAUC − MAUC, × 100")
    sizes = sorted({n for by_size in gaps.values() for n in by_size})
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.set_xticks([], minor=True)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=7)
    return figure
