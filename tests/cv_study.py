"""How often compare_cv_scores finds a difference between two equal ways of training, by simulation.

``python tests/cv_study.py`` prints a table in about five minutes. Two equal models are trained on columns of their own
that say equally much: whatever the rows, neither way of training is better. A test at the level 0.05 should reject in
5 % of the draws.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from mauc import compare_cv_scores, mauc_score


@dataclass(frozen=True)
class Design:
    """How the rows are split, and how two models are compared."""

    name: str
    n_folds: int
    repeats: int = 1
    rows: int = 120
    metric: str = "mauc"
    trained_by: str = "centroids"

    def splits(self, rng: np.random.Generator, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield training and test rows of repeated, stratified folds."""
        for _ in range(self.repeats):
            order = rng.permutation(len(y))
            fold = np.empty(len(y), dtype=int)
            fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % self.n_folds
            for k in range(self.n_folds):
                yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


DESIGNS = (
    Design("5 folds", 5),
    Design("10 folds", 10),
    Design("5 folds, 30 rows", 5, rows=30),
    Design("5 folds, 600 rows", 5, rows=600),
    Design("5 x 2 folds", 2, 5),
    Design("5 x 5 folds", 5, 5),
    Design("10 x 10 folds", 10, 10),
    Design("10 folds, accuracy", 10, metric="accuracy"),
    Design("10 x 10 folds, accuracy", 10, 10, metric="accuracy"),
    Design("10 folds, nearest neighbour", 10, trained_by="neighbour"),
    Design("10 x 10 folds, nearest neighbour", 10, 10, trained_by="neighbour"),
    Design("10 folds, distances", 10, trained_by="distances"),
    Design("5 x 2 folds, distances", 2, 5, trained_by="distances"),
    Design("10 x 10 folds, distances", 10, 10, trained_by="distances"),
)


def scores_of(design: Design, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return the ``(n, 3)`` probabilities of the test rows, from the squared distances to the centres of the classes.

    With ``neighbour``, the distances are those to the nearest row of each class. With ``distances``, minus the squared
    distances are the scores: a column ranks badly by them, and the more so, the worse the centres are learned.
    """
    classes = [X[train[y[train] == k]] for k in range(3)]
    if design.trained_by == "neighbour":
        squares = [((X[test][:, None] - rows) ** 2).sum(axis=2).min(axis=1) for rows in classes]
    else:
        squares = [((X[test] - rows.mean(axis=0)) ** 2).sum(axis=1) for rows in classes]
    scores = -0.5 * np.stack(squares, axis=1)
    return scores if design.trained_by == "distances" else special.softmax(scores, axis=1)


def value_of(design: Design, y: np.ndarray, scores: np.ndarray) -> float:
    """Return the metric."""
    if design.metric == "accuracy":
        return float(np.mean(scores.argmax(axis=1) == y))
    return mauc_score(y, scores)


def rejections(design: Design, draws: int, seed: int = 0, level: float = 0.05) -> tuple[float, float]:
    """Return the shares of draws in which the corrected and the uncorrected paired t-test reject."""
    rng = np.random.default_rng(seed)
    found = np.zeros(2)
    y = np.repeat(np.arange(3), design.rows // 3)
    for _ in range(draws):
        X = rng.normal(size=(len(y), 6)) + np.tile(np.eye(3), 2)[y]
        values: list[list[float]] = [[], []]
        for train, test in design.splits(rng, y):
            for model in (0, 1):
                scores = scores_of(design, X[:, 3 * model : 3 * model + 3], y, train, test)
                values[model].append(value_of(design, y[test], scores))
        corrected = compare_cv_scores(*values, test_size=1.0 / design.n_folds).pvalue
        found += np.array([corrected, stats.ttest_rel(*values).pvalue]) < level
    return tuple(found / draws)


def main(draws: int = 1000) -> None:
    """Print the table."""
    print("| splits | corrected t-test | plain t-test |\n|---|---:|---:|")
    for design in DESIGNS:
        n = draws if design.n_folds * design.repeats <= 25 else draws // 4
        corrected, plain = rejections(design, n)
        print(f"| {design.name} | {100 * corrected:.1f} % | {100 * plain:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
