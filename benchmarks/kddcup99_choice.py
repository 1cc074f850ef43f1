"""Which α and which weight of the log-loss for KDD Cup 99? Chosen on training rows alone, those of `kddcup99`.

``MAUC_DATA_HOME=… python -m benchmarks.kddcup99_choice``: eight times at most 800 rows of each class are drawn from the
training rows; two thirds of them train, the others judge. The penalty is that of ``LogisticRegression``.
"""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from benchmarks.kddcup99 import split
from experiments import datasets
from experiments.report_parts import markdown_table
from mauc import MAUCClassifier, mauc_score

ROWS, SPLITS, SHARE = 800, 8, 0.65
ITERATIONS = (20, 100)


def main() -> None:
    """Print validation MAUC × 100 after 20 and 100 iterations, less that of balanced logistic regression."""
    bunch = datasets.load("kddcup99")
    train, _ = split(bunch.y)
    X, y = StandardScaler().fit_transform(bunch.X)[train], bunch.y[train]
    parts = [_draw(y, np.random.default_rng(seed)) for seed in range(SPLITS)]
    l2 = 1.0 / len(y)
    models: dict[str, Callable[[int], Any]] = {"LR, balanced": lambda n: LogisticRegression(max_iter=n)}
    for alpha, log_loss in product((4.0, 8.0), (0.03, 0.1, 0.3, 1.0)):
        options = {"alpha": alpha, "log_loss": log_loss, "l2": l2}
        models[f"α = {alpha:g}, log-loss {log_loss:g}, balanced"] = lambda n, options=options: MAUCClassifier(
            max_iter=n, **options
        )
    rows, base = [], None
    for name, make in models.items():
        found = np.array([[_score(make(n), X, y, *part) for part in parts] for n in ITERATIONS])
        base = found if base is None else base
        gain = found - base
        rows.append([name])
        for k in range(len(ITERATIONS)):
            spread = gain[k].std(ddof=1) / SPLITS**0.5
            rows[-1] += [f"{found[k].mean():.2f}", f"{gain[k].mean():+.2f} ± {spread:.2f}"]
        print(rows[-1], flush=True)
    head = ["model", *(f"{n} iterations{more}" for n in ITERATIONS for more in ("", ", against LR"))]
    print(markdown_table(head, rows))


def _draw(y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    fit, rest = [], []
    for c in np.unique(y):
        drawn = rng.permutation(np.flatnonzero(y == c))[:ROWS]
        n_fit = int(np.ceil(SHARE * len(drawn)))
        fit.append(drawn[:n_fit])
        rest.append(drawn[n_fit:])
    return np.concatenate(fit), np.concatenate(rest)


def _score(model: Any, X: np.ndarray, y: np.ndarray, fit: np.ndarray, rest: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = model.fit(X[fit], y[fit], compute_sample_weight("balanced", y[fit])).predict_proba(X[rest])
    return 100.0 * mauc_score(y[rest], scores, labels=model.classes_, absent="ignore")


if __name__ == "__main__":
    main()
