"""Fit AutoGluon in its own interpreter: ``python autogluon_process.py FOLDER``; needs AutoGluon and pandas alone.

``FOLDER/task.json`` has the budget in seconds, the cores, the number of classes and the columns of texts;
``train.csv`` and ``test.csv`` hold the features, ``target.csv`` the class codes of the training part. Writes
``scores.csv``, one column per class, and ``result.json``: seconds, version and the chosen model, or under ``failed``
why there is no model.
"""

import json
import os
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

TARGET = "mauc target"


def fit_and_score(train: Any, target: Any, test: Any, task: dict[str, Any], folder: Path) -> tuple[Any, dict[str, Any]]:
    """Fit ``best_quality`` for the metric, without dynamic stacking, folds one by one: a short budget must not go
    into starting processes. Keep rare classes; if that fails, use its own rule, which leaves them out.
    """
    from autogluon.tabular import TabularPredictor

    problem, metric = ("binary", "roc_auc") if task["n_classes"] == 2 else ("multiclass", "roc_auc_ovo")

    def fit(path: str, seconds: float, kept: dict[str, Any]) -> Any:
        predictor = TabularPredictor(
            TARGET, problem_type=problem, eval_metric=metric, path=path, verbosity=0, learner_kwargs=kept
        )
        return predictor.fit(
            train.assign(**{TARGET: target}),
            presets="best_quality",
            time_limit=seconds,
            dynamic_stacking=False,
            num_cpus=task["cores"],
            num_gpus=0,
            ag_args_ensemble={"fold_fitting_strategy": "sequential_local"},
            raise_on_no_models_fitted=True,
        )

    began, details = time.perf_counter(), {}
    try:
        predictor = fit(str(folder / "all"), task["seconds"], {"label_count_threshold": 1})
    except Exception as error:
        details = {"without_rare_classes": f"{type(error).__name__}: {error}"}
        left = max(5.0, task["seconds"] - (time.perf_counter() - began))
        predictor = fit(str(folder / "some"), left, {})
    fitted = time.perf_counter()
    scores = predictor.predict_proba(test, as_pandas=True)
    done = time.perf_counter()
    return scores, {
        **details,
        "chosen": predictor.model_best,
        "fit_seconds": fitted - began,
        "predict_seconds": done - fitted,
    }


def main(folder: Path) -> None:
    """Read the task, run AutoGluon, write its scores."""
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: task["cores"]])
    warnings.simplefilter("ignore")
    import pandas as pd

    texts = dict.fromkeys(task["texts"], str)
    train, test = (pd.read_csv(folder / f"{part}.csv", dtype=texts) for part in ("train", "test"))
    target = pd.read_csv(folder / "target.csv").iloc[:, 0]
    try:
        scores, result = fit_and_score(train, target, test, task, folder)
    except Exception as error:
        result = {"failed": f"{type(error).__name__}: {error}"}
    else:
        scores.columns = scores.columns.astype(int)
        scores = scores.reindex(columns=range(task["n_classes"]), fill_value=0.0)
        scores.to_csv(folder / "scores.csv", index=False)
        result["version"] = version("autogluon.tabular")
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
