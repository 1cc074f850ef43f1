"""``MAUCClassifier`` on KDD Cup 99 against scikit-learn's logistic regression: time, memory, MAUC, rarest pairs.

Needs the data folder: ``MAUC_DATA_HOME=… python -m benchmarks.kddcup99 [iterations]``. Prints a table and writes it to
``results``. "Balanced" models get balanced class weights. Time is processor time, with one thread each
(``OMP_NUM_THREADS=1``), which does not count other processes.
"""

import sys
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from experiments import datasets
from experiments.report_parts import machine, markdown_table
from experiments.score_tables import pairs_by_rarity
from mauc import MAUCClassifier, MAUCPluginClassifier, mauc_score, pairwise_auc

RARE = 5


def main(iterations: int = 20) -> None:
    """Time the fits on all rows; test fits on four fifths of each class on the rest."""
    bunch = datasets.load("kddcup99")
    y = bunch.y
    X = StandardScaler().fit_transform(bunch.X)
    train, test = split(y)
    X_train, X_test = X[train], X[test]
    del bunch["X"]
    print(f"X: {X.shape}, {X.nbytes / 2**20:.0f} MiB", flush=True)
    models: dict[str, Any] = {
        "LR": LogisticRegression(max_iter=iterations),
        "LR, balanced": LogisticRegression(max_iter=iterations),
        "plug-in on LR": MAUCPluginClassifier(LogisticRegression(max_iter=iterations)),
        "MAUCClassifier()": MAUCClassifier(max_iter=iterations),
        "MAUC exponential, α = 4": MAUCClassifier("exponential", alpha=4.0, log_loss=0.0, max_iter=iterations),
        "MAUC squared": MAUCClassifier("squared", log_loss=0.0, max_iter=iterations),
        "MAUC hinge": MAUCClassifier("hinge", alpha=1.0, log_loss=0.0, max_iter=iterations),
    }
    rows, base = [], 0.0
    for name, model in models.items():
        balanced = "balanced" in name
        seconds = _fit(model, X, y, balanced)
        base = base or seconds
        memory = _memory(model, X, y, balanced)
        _fit(model, X_train, y[train], balanced)
        scores = model.predict_proba(X_test)
        row = [name, f"{seconds:.1f}", f"{seconds / base:.2f}", f"{memory:.2f}"]
        row += [f"{100 * mauc_score(y[test], scores):.2f}", f"{100 * _rarest(y[test], scores):.2f}"]
        rows.append(row)
        print(row, flush=True)
    head = ["model", "CPU s of the fit", "ratio", "peak memory / X", "test MAUC × 100", f"{RARE} rarest pairs × 100"]
    shape = f"{X.shape[0]:,} × {X.shape[1]}, {len(np.unique(y))} classes"
    text = f"""KDD Cup 99, {shape}, {iterations} iterations each. Time and memory are of a fit on all rows;
MAUC is of a fit on four fifths of each class, tested on the rest. {machine()}

{markdown_table(head, rows)}
"""
    out = Path(__file__).parent / "results" / f"kddcup99-{iterations}.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text(text)
    print(text)


def _fit(model: Any, X: np.ndarray, y: np.ndarray, balanced: bool) -> float:
    """Return the processor seconds of a fit."""
    weight = {"sample_weight": compute_sample_weight("balanced", y)} if balanced else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.process_time()
        model.fit(X, y, **weight)
        return time.process_time() - begin


def _memory(model: Any, X: np.ndarray, y: np.ndarray, balanced: bool) -> float:
    """Return the peak memory during two iterations, X included, over that of X."""
    inner = clone(model)
    inner.set_params(**{k: 2 for k in inner.get_params() if k.endswith("max_iter")})
    tracemalloc.start()
    _fit(inner, X, y, balanced)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak + X.nbytes) / X.nbytes


def split(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return training rows, four fifths of each class, and test rows."""
    rng = np.random.default_rng(0)
    first = np.zeros(len(y), dtype=bool)
    for c in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == c))
        first[members[: max(1, len(members) * 4 // 5)]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)


def _rarest(y: np.ndarray, scores: np.ndarray) -> float:
    return float(pairs_by_rarity(pairwise_auc(y, scores), np.bincount(y))[2][:RARE].mean())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
