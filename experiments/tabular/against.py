"""Compare the stack with AutoGluon: the same splits and seconds, one core for each."""

import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.report_parts import folded, machine
from experiments.score_tables import read_common, splits
from experiments.store import Cell, Store, write_whole
from experiments.tabular import autogluon_process
from experiments.tabular.data import load_frame
from experiments.tabular.methods import OURS
from experiments.tabular.report import every_set, group_table, groups_of
from experiments.tabular.run import split_rows
from experiments.tuning import judge
from mauc._estimators import scores_by_code
from mauc._typing import Floats, Ints
from mauc.ensemble import MAUCStackingClassifier

__all__ = ["BUDGETS", "autogluon_scores", "cells", "write_report"]

AUTOGLUON = "AutoGluon"
BUDGETS = (30, 90, 300)


def cells(
    python: str,
    data_home: str | None,
    tables: str | None,
    *,
    budgets: Sequence[int],
    sets: Sequence[str],
    n_splits: int,
) -> list[Cell]:
    """Return one cell per split, budget, set and library; ``python`` is an interpreter that has AutoGluon."""
    return [
        Cell(
            ("against", name, f"{method}, {budget} s", f"{split:02d}"),
            _compute,
            (method, python, data_home, tables, name, split, budget),
        )
        for split in range(n_splits)
        for budget in budgets
        for name in sets
        for method in (OURS, AUTOGLUON)
    ]


def _compute(
    method: str, python: str, data_home: str | None, tables: str | None, name: str, split: int, budget: int
) -> dict[str, Any]:
    frame, y = load_frame(name, data_home, tables)
    train, test = split_rows(y, split)
    n_classes = int(y.max()) + 1
    X, X_test = frame.iloc[train], frame.iloc[test]
    if method == OURS:
        scores, details = _ours(budget, X, y[train], X_test, n_classes)
    else:
        found, details = autogluon_scores(python, budget, X, y[train], X_test, n_classes)
        # Without a model all scores are equal.
        scores = np.zeros((len(test), n_classes)) if found is None else found
    return {
        **judge(y[test], scores),
        **details,
        "params": {},
        "train_counts": np.bincount(y[train], minlength=n_classes).tolist(),
    }


def _ours(budget: int, X: Any, y: Ints, X_test: Any, n_classes: int) -> tuple[Floats, dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model = MAUCStackingClassifier(time_limit=budget, n_jobs=1).fit(X, y)
        fitted = time.perf_counter()
        scores = scores_by_code(model, X_test, n_classes)
    details = {"weights": model.weights_, "oof": model.oof_scores_}
    return scores, {**details, "fit_seconds": fitted - began, "predict_seconds": time.perf_counter() - fitted}


def autogluon_scores(
    python: str, budget: float, X: Any, y: Ints, X_test: Any, n_classes: int, *, cores: int = 1, grace: float = 60.0
) -> tuple[Floats | None, dict[str, Any]]:
    """Fit AutoGluon in a new process of another interpreter, because it may need other versions of packages.

    A process that still runs ``grace`` seconds after its budget is ended. The scores are None where AutoGluon has no
    model; the details then say why under ``failed``.
    """
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        X.to_csv(place / "train.csv", index=False)
        X_test.to_csv(place / "test.csv", index=False)
        pd.Series(y, name="class").to_csv(place / "target.csv", index=False)
        texts = X.columns.difference(X.select_dtypes("number").columns).tolist()
        task = {"seconds": budget, "cores": cores, "n_classes": n_classes, "texts": texts}
        (place / "task.json").write_text(json.dumps(task), encoding="utf-8")
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        began = time.perf_counter()
        try:
            done = subprocess.run(
                # The process runs in another folder, so a relative path would not be found.
                [os.path.abspath(python), autogluon_process.__file__, folder],
                capture_output=True,
                text=True,
                cwd=folder,
                env={**clean, "OMP_NUM_THREADS": str(cores)},
                timeout=budget + grace,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, {"failed": f"no end {grace:.0f} s after its budget", "fit_seconds": budget + grace}
        if not (place / "result.json").exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return None, {"failed": f"exit {done.returncode}: {last}", "fit_seconds": time.perf_counter() - began}
        details = json.loads((place / "result.json").read_text(encoding="utf-8"))
        if "failed" in details:
            return None, {"fit_seconds": time.perf_counter() - began, **details}
        return pd.read_csv(place / "scores.csv").to_numpy(np.float64), details


def write_report(store: Store, folder: Path, *, sets: Sequence[str], budgets: Sequence[int]) -> list[Path]:
    """Write the page of all budgets that have results; return its file, or nothing."""
    parts, runs = [], []
    for budget in budgets:
        names = [f"{method}, {budget} s" for method in (OURS, AUTOGLUON)]
        there = [s for s in sets if all(("against", s, name, "00") in store for name in names)]
        if not there:
            continue
        results = read_common(store, ("against",), there, names)
        runs += [(name, s, run) for name in results for s in there for run in results[name][s]]
        groups = groups_of(there).items()
        parts += [group_table(results, f"{budget} seconds: {title}", some, names[0]) for title, some in groups]
        parts.append(folded(f"Every set, {budget} s, {splits(results)}", every_set(results, there)))
    if not parts:
        return []
    page = folder / "tabular-against.md"
    versions = sorted({run["version"] for *_, run in runs if "version" in run})
    intro = (
        f"# Against AutoGluon\n\nTest MAUC × 100, 60 % training. The same splits, one core and the same seconds for "
        f"each. AutoGluon {', '.join(versions)}: `best_quality` for `roc_auc_ovo`, rare classes kept, dynamic stacking "
        "off, folds one by one. Rarest pairs: mean AUC × 100 of the quarter of the class pairs with the fewest "
        "training samples. Seconds: medians over the sets."
    )
    write_whole(page, "\n\n".join([intro, *parts, _troubles(runs), machine()]) + "\n")
    return [page]


def _troubles(runs: Sequence[tuple[str, str, dict[str, Any]]]) -> str:
    """List the failures; without a model all scores are equal, and each pair has an AUC of 50."""
    failed = [f"- {name} on {s}: no model ({run['failed']})" for name, s, run in runs if "failed" in run]
    rare = [
        f"- {name} on {s}: without the rare classes, after {run['without_rare_classes']}"
        for name, s, run in runs
        if "without_rare_classes" in run
    ]
    details = "\n".join([*failed, *rare]) or "Both gave a model for every set and all of its classes."
    return f"## What could not be done\n\n{details}"
