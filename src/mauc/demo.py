"""What ``mauc demo`` shows: logistic regression on digits made imbalanced, judged by multiclass AUC."""

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc import mauc_interval, mauc_score, pairwise_auc

__all__ = ["run_demo"]

CLASS_SIZES = (170, 120, 85, 60, 42, 30, 21, 15, 11, 8)
WORST = 5


def imbalanced_digits(
    sizes: tuple[int, ...] = CLASS_SIZES, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """So many samples of each digit, chosen at random."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    kept = np.concatenate(
        [rng.choice(np.flatnonzero(y == digit), size, replace=False) for digit, size in enumerate(sizes)]
    )
    return X[kept], y[kept]


def run_demo(console: Console | None = None) -> None:
    """Train, judge, and print MAUC with its interval, ova beside it, and the worst pairs of classes."""
    console = console or Console()
    X, y = imbalanced_digits()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X_train, y_train)
    scores = model.predict_proba(X_test)

    sizes = np.bincount(y_test)
    console.print(f"Digits made imbalanced: {len(y_train)} to train on, {len(y_test)} to judge by")
    console.print("Test samples of each digit: " + ", ".join(f"{d}: {n}" for d, n in enumerate(sizes)))
    console.print(f"scikit-learn LogisticRegression: accuracy {model.score(X_test, y_test):.3f}\n")
    interval = mauc_interval(y_test, scores)
    console.print(f"MAUC (ovo, every pair of classes counts the same)  {interval.score:.4f}", end="")
    console.print(f"   95 % interval {interval.low:.4f} to {interval.high:.4f}")
    console.print(f"MAUC (ova, frequent classes count more)            {mauc_score(y_test, scores, pairs='ova'):.4f}\n")
    console.print(_worst_pairs(pairwise_auc(y_test, scores), sizes))


def _worst_pairs(matrix: NDArray[np.float64], sizes: NDArray[np.int64]) -> Table:
    table = Table(title=f"The {WORST} worst pairs of classes", title_justify="left")
    for heading in ("digit", "test samples", "ranked against", "test samples", "AUC"):
        table.add_column(heading, justify="right")
    for flat in np.argsort(np.nan_to_num(matrix, nan=np.inf), axis=None, kind="stable")[:WORST]:
        i, j = np.unravel_index(flat, matrix.shape)
        table.add_row(str(i), str(sizes[i]), str(j), str(sizes[j]), f"{matrix[i, j]:.4f}")
    return table
