"""What the floor of the stack's scores costs where they are small: ``python -m benchmarks.stack_floor``, half a minute.

Simulated classes, three models, weights learnt from their out-of-fold scores; test MAUC × 100, mean of four seeds.
"""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from mauc import SurrogateRisk, mauc_score
from mauc.ensemble.combination import OutOfFold, fit_combination
from mauc.model_selection import RareClassKFold

CASES = {
    "100 classes of 10, balancing models": ((10,) * 100, 8, 0.5, "balanced", 20),
    "classes of 2000, 600 and 12, plain models": ((2000, 600, 12), 4, 0.6, None, 1000),
}
SEEDS = range(4)


def blobs(sizes: tuple[int, ...], n_features: int, shift: float, seed: int) -> tuple[Any, Any]:
    """Normal classes around centres that every seed shares."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = shift * np.random.default_rng(99).normal(size=(len(sizes), n_features))
    return rng.normal(size=(len(y), n_features)) + centres[y], y


def one(sizes: tuple[int, ...], n_features: int, shift: float, class_weight: str | None, judged: int, seed: int) -> Any:
    """Floor of 0.01 for all classes, floor of 0.03 times the frequency, and the best model."""
    X, y = blobs(sizes, n_features, shift, seed)
    Z, truth = blobs((judged,) * len(sizes), n_features, shift, seed + 50)
    models = [
        LogisticRegression(class_weight=class_weight),
        ExtraTreesClassifier(100, min_samples_leaf=3, class_weight=class_weight, random_state=0),
        RandomForestClassifier(100, class_weight=class_weight, random_state=0),
    ]
    held_out = np.zeros((len(models), len(y), len(sizes)))
    for train, test in RareClassKFold(5).split(X, y):
        for k, model in enumerate(models):
            held_out[k, test] = clone(model).fit(X[train], y[train]).predict_proba(X[test])
    fresh = np.stack([model.fit(X, y).predict_proba(Z) for model in models])
    scores = []
    for floor in (np.full(len(sizes), 0.01), 0.03 * np.bincount(y) / len(y)):
        data = OutOfFold(np.log(np.maximum(held_out, floor)), y, None)
        (found,) = fit_combination(data, SurrogateRisk(alpha=6.0), "ovo")
        scores.append(mauc_score(truth, found.scores(np.log(np.maximum(fresh, floor)))))
    return 100 * np.array([*scores, *(mauc_score(truth, each) for each in fresh)])


if __name__ == "__main__":
    for name, case in CASES.items():
        constant, relative, *alone = np.mean([one(*case, seed) for seed in SEEDS], axis=0)
        print(
            f"{name}: floor 0.01 {constant:.1f}, 0.03 times the frequency {relative:.1f}, best model {max(alone):.1f}"
        )
