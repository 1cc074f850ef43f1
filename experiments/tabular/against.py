"""Compare the stack with AutoML libraries: the same splits, cores and seconds for each."""

import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.report_parts import folded, machine, markdown_table
from experiments.score_tables import Results, points, read_common, splits, with_std
from experiments.store import Cell, Store, write_whole
from experiments.tabular import rival_process
from experiments.tabular.data import SETS, class_names, load_frame
from experiments.tabular.methods import OURS
from experiments.tabular.report import group_table, groups_of
from experiments.tabular.run import split_rows
from experiments.tuning import judge
from mauc._estimators import scores_by_class
from mauc._typing import Floats, Ints
from mauc.ensemble import MAUCStackingClassifier

__all__ = ["BUDGETS", "RIVALS", "Contest", "cells", "rival_scores", "write_report"]

RIVALS = {"autogluon": "AutoGluon", "flaml": "FLAML"}
BUDGETS = (30, 90, 300)


@dataclass(frozen=True)
class Contest:
    """Settings that all cells share."""

    data_home: str | None
    tables: str | None
    cores: int
    python: str
    """Interpreter that has the rivals installed."""
    grace: float = 60.0
    """Seconds after its budget when a rival that still runs is ended, and has failed."""


def method_names(rivals: Sequence[str], budget: int) -> list[str]:
    """Return the rows of the table of a budget, the stack first."""
    return [f"{name}, {budget} s" for name in (OURS, *(RIVALS[rival] for rival in rivals))]


def cells(
    contest: Contest, *, rivals: Sequence[str], budgets: Sequence[int], sets: Sequence[str] = SETS, n_splits: int = 3
) -> list[Cell]:
    """Return one cell per split, budget, set and library."""
    return [
        Cell(("against", name, row, f"{split:02d}"), _compute, (contest, name, split, who, budget))
        for split in range(n_splits)
        for budget in budgets
        for name in sets
        for who, row in zip((None, *rivals), method_names(rivals, budget), strict=True)
    ]


def _compute(contest: Contest, name: str, split: int, rival: str | None, budget: int) -> dict[str, Any]:
    frame, y = load_frame(name, contest.data_home, contest.tables)
    train, test = split_rows(y, split)
    n_classes = int(y.max()) + 1
    if rival is None:
        names = class_names(name, contest.data_home, contest.tables)
        scores, details = _ours(contest, budget, frame.iloc[train], y[train], frame.iloc[test], names)
    else:
        scores, details = rival_scores(contest, rival, budget, frame.iloc[train], y[train], frame.iloc[test], n_classes)
    if scores is None:
        # Without a model all scores are equal.
        scores = np.zeros((len(test), n_classes))
    return {
        **judge(y[test], scores),
        **details,
        "params": {},
        "cores": contest.cores,
        "train_counts": np.bincount(y[train], minlength=n_classes).tolist(),
    }


def _ours(
    contest: Contest, budget: int, X: Any, y: Ints, X_test: Any, names: NDArray[Any]
) -> tuple[Floats | None, dict[str, Any]]:
    """Fit the stack on class names, which may show an order; the other libraries get codes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model = MAUCStackingClassifier(time_limit=budget, n_jobs=contest.cores).fit(X, names[y])
        fitted = time.perf_counter()
        scores = scores_by_class(model, X_test, names)
    details = {"weights": model.weights_, "oof": model.oof_scores_}
    return scores, {**details, "fit_seconds": fitted - began, "predict_seconds": time.perf_counter() - fitted}


def rival_scores(
    contest: Contest, rival: str, budget: int, X: Any, y: Ints, X_test: Any, n_classes: int
) -> tuple[Floats | None, dict[str, Any]]:
    """Fit another library in a new process, because it may need other versions of packages."""
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        X.to_csv(place / "train.csv", index=False)
        X_test.to_csv(place / "test.csv", index=False)
        pd.Series(y, name="class").to_csv(place / "target.csv", index=False)
        texts = X.columns.difference(X.select_dtypes("number").columns).tolist()
        task = {"rival": rival, "seconds": budget, "cores": contest.cores, "n_classes": n_classes, "texts": texts}
        (place / "task.json").write_text(json.dumps(task), encoding="utf-8")
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        threads = {"OMP_NUM_THREADS": str(contest.cores)}
        began = time.perf_counter()
        try:
            done = subprocess.run(
                [contest.python, rival_process.__file__, folder],
                capture_output=True,
                text=True,
                cwd=folder,
                env=clean | threads,
                timeout=budget + contest.grace,
                check=False,
            )
        except subprocess.TimeoutExpired:
            failed = f"no end {contest.grace:.0f} s after its budget"
            return None, {"failed": failed, "fit_seconds": budget + contest.grace}
        if not (place / "result.json").exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return None, {"failed": f"exit {done.returncode}: {last}", "fit_seconds": time.perf_counter() - began}
        details = json.loads((place / "result.json").read_text(encoding="utf-8"))
        if "failed" in details:
            return None, {"fit_seconds": time.perf_counter() - began, **details}
        return pd.read_csv(place / "scores.csv").to_numpy(np.float64), details


def write_report(
    store: Store, folder: Path, *, sets: Sequence[str], rivals: Sequence[str], budgets: Sequence[int]
) -> list[Path]:
    """Write the page of all budgets that have results; return its file, or nothing."""
    parts, runs = [], []
    for budget in budgets:
        names = method_names(rivals, budget)
        there = [s for s in sets if ("against", s, names[0], "00") in store and _any(store, s, names[1:])]
        results = read_common(store, ("against",), there, names) if there else {}
        if len(results) < 2:
            continue
        runs += [(name, s, run) for name in results for s in there for run in results[name][s]]
        groups = groups_of(there).items()
        parts += [group_table(results, f"{budget} seconds: {title}", some, names[0]) for title, some in groups]
        parts.append(folded(f"Every set, {budget} s, {splits(results)}", _every_set(results, there)))
    if not parts:
        return []
    page = folder / "tabular-against.md"
    cores = sorted({run["cores"] for *_, run in runs})
    versions = sorted({f"{name.split(',')[0]} {run['version']}" for name, _, run in runs if "version" in run})
    intro = (
        f"# Against {' and '.join(RIVALS[rival] for rival in rivals)}\n\n"
        f"Test MAUC × 100, 60 % training. The same splits, cores ({' or '.join(map(str, cores))}) and seconds for "
        f"each; {', '.join(versions)}. "
        "AutoGluon: `best_quality` for `roc_auc_ovo`, rare classes kept, dynamic stacking off, folds one by one. "
        "FLAML: its own list of models, cross-validated by `roc_auc_ovo`. Rarest pairs: mean AUC × 100 of the quarter "
        "of the class pairs with the fewest training samples. Seconds: medians over the sets."
    )
    write_whole(page, "\n\n".join([intro, *parts, _troubles(runs), machine()]) + "\n")
    return [page]


def _any(store: Store, name: str, methods: Sequence[str]) -> bool:
    return any(("against", name, method, "00") in store for method in methods)


def _every_set(results: Results, sets: Sequence[str]) -> str:
    by_method, rows = points(results), []
    for s in sets:
        run = next(iter(results.values()))[s][0]
        sizes = np.add(run["train_counts"], run["test_counts"])
        best = max(by_method[name][s].mean() for name in results)
        rows.append([s, str(sizes.sum()), str(len(sizes)), *(with_std(by_method[name][s], best) for name in results)])
    return markdown_table(["set", "rows", "classes", *results], rows)


def _troubles(runs: Sequence[tuple[str, str, dict[str, Any]]]) -> str:
    """List the failures of the libraries; without a model all scores are equal, and each pair has an AUC of 50."""
    failed = [f"- {name} on {s}: no model ({run['failed']})" for name, s, run in runs if "failed" in run]
    rare = [
        f"- {name} on {s}: without the rare classes, after {run['without_rare_classes']}"
        for name, s, run in runs
        if "without_rare_classes" in run
    ]
    details = "\n".join([*failed, *rare]) or "Every library gave a model for every set and all of its classes."
    return f"## What could not be done\n\n{details}"
