"""Estimators and metrics in the processes and threads of joblib."""

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.model_selection import GridSearchCV, cross_val_score

from mauc import MAUCClassifier, RareClassKFold, mauc_score, mauc_scorer

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("loky", "multiprocessing")]


@pytest.mark.parametrize("backend", ["sequential", "threading", *SLOW])
def test_every_backend_gives_the_same_scores(backend):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 300, p=[0.7, 0.2, 0.1])
    X = rng.normal(size=(300, 4)) + (y[:, None] == ["a", "b", "c", "c"])
    many, scores = rng.integers(0, 3, 200_000), rng.normal(size=(200_000, 3))
    model, options = MAUCClassifier(n_jobs=2), {"scoring": mauc_scorer, "cv": RareClassKFold(3)}
    alone = cross_val_score(model, X, y, **options), mauc_score(many, scores, n_jobs=1)
    with parallel_config(backend=backend, n_jobs=2):
        found = cross_val_score(model, X, y, **options)
        best = GridSearchCV(model, {"l2": [1e-3, 1e-2]}, **options).fit(X, y)
        values = Parallel()(delayed(mauc_score)(many, scores, n_jobs=2) for _ in range(4))
    np.testing.assert_array_equal(found, alone[0])
    assert set(values) == {alone[1]}
    assert best.best_score_ > 0.5
