"""What the log-loss is worth to boosting: validation MAUC on some of the paper's tables.

Needs the data folder and LightGBM: ``MAUC_DATA_HOME=… python -m benchmarks.log_loss_boosting [splits]``. All models
have the trees of ``MAUCBoostingClassifier`` and stop by its five-fold multiclass AUC inside the training part. Each is
judged on the validation part of the authors' splits; the test parts are not touched.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from scipy.stats import rankdata
from sklearn.utils.class_weight import compute_sample_weight

from experiments import datasets
from experiments.report_parts import machine, markdown_table
from mauc import mauc_score
from mauc.boosting import MAUCBoostingClassifier, lightgbm_metric
from mauc.model_selection import RareClassKFold

SPLITS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
TABLES = ("balance", "dermatology", "ecoli", "svmguide2", "yeast")


def ours(log_loss: float | str, rate: float, X: Any, y: Any) -> Any:
    """Scores of the rows of a model trained with both terms, as a function of them."""
    return MAUCBoostingClassifier(log_loss=log_loss, learning_rate=rate).fit(X, y).predict_proba


def theirs(balanced: bool, rate: float, X: Any, y: Any) -> Any:
    """The same trees by LightGBM's own log-loss, stopped by multiclass AUC."""
    like = MAUCBoostingClassifier(learning_rate=rate)
    params = like._params(int(y.max()) + 1) | {"objective": "multiclass"}
    weight = compute_sample_weight("balanced", y) if balanced else None
    data = lightgbm.Dataset(X, y, weight=weight, params={"verbosity": -1, "feature_pre_filter": False})
    folds = [part for part in RareClassKFold(5, random_state=0).split(X, y) if len(np.unique(y[part[1]])) > 1]
    stop = lightgbm.early_stopping(like.early_stopping_rounds, verbose=False)
    found = lightgbm.cv(params, data, like.n_estimators, folds=folds, feval=lightgbm_metric, callbacks=[stop])
    return lightgbm.train(params, data, int(np.argmax(found["valid mauc-mean"])) + 1).predict


MODELS = {
    "log-loss, rate 0.1": partial(theirs, False, 0.1),
    "class-balanced log-loss, rate 0.1": partial(theirs, True, 0.1),
    "shifted log-loss alone, rate 0.1": partial(ours, "only", 0.1),
    "shifted log-loss alone, rate 0.3": partial(ours, "only", 0.3),
    "exponential (the default)": partial(ours, 0.0, 0.3),
    "exponential + 0.3 log-loss": partial(ours, 0.3, 0.3),
    "exponential + log-loss": partial(ours, 1.0, 0.3),
    "exponential + 3 log-loss": partial(ours, 3.0, 0.3),
}


def main() -> None:
    """Fit, judge, print."""
    scores = np.array([_scores(name, k) for name in TABLES for k in range(SPLITS)])
    ranks = rankdata(-scores.round(6), axis=1).mean(axis=0)
    by_table = scores.reshape(len(TABLES), SPLITS, -1).mean(axis=1).T
    rows = [
        [name, *(f"{v:.1f}" for v in by_table[k]), f"{scores[:, k].mean():.2f}", f"{ranks[k]:.2f}"]
        for k, name in enumerate(MODELS)
    ]
    text = f"""Validation MAUC × 100, {SPLITS} splits of each table. {machine()}

{markdown_table(["loss", *TABLES, "mean", "mean rank"], rows)}
"""
    out = Path(__file__).parent / "results"
    out.mkdir(exist_ok=True)
    (out / "log_loss_boosting.md").write_text(text)
    print(text)


def _scores(name: str, k: int) -> list[float]:
    bunch = datasets.load(name)
    train, validation, _ = bunch.splits[k]
    X, y = np.asarray(bunch.X, dtype=np.float64), np.asarray(bunch.y)
    labels = np.arange(y.max() + 1)
    found = []
    for fit in MODELS.values():
        scores = fit(X[train], y[train])(X[validation])
        found.append(100 * mauc_score(y[validation], scores, labels=labels, absent="ignore"))
    print(f"{name} {k}: " + " ".join(f"{v:.1f}" for v in found), flush=True)
    return found


if __name__ == "__main__":
    main()
