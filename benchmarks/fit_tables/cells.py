"""One cell is one command on one table; the store keeps what it gave, one JSON object per line."""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score

from benchmarks.fit_tables.process import Measured, busy, measured
from benchmarks.fit_tables.rivals import default_split, labels_of
from experiments.report_parts import machine
from mauc import mauc_score

__all__ = ["AUTOGLUON", "BASELINES", "DEFAULT_LIMIT", "OURS", "Cell", "Store", "compute"]

OURS, AUTOGLUON = "mauc fit", "AutoGluon"
BASELINES = ("random forest", "histogram boosting")
DEFAULT_LIMIT = 60.0
"""Default time limit of ``mauc fit`` in seconds."""


@dataclass(frozen=True)
class Cell:
    """One command to run; two runs of a cell should give the same scores."""

    table: str
    method: str
    limit: float | None = None
    """Seconds that the method was given; None for one without a limit."""
    load: int = 0
    """Busy processes beside it."""
    seed: int = 0
    """Seed of the split, and of ``mauc fit``."""


class Store:
    """Results by cell, in a file that only grows: a run that was stopped goes on where it was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        results = [json.loads(line) for line in lines]
        self.results = {Cell(**{name: r[name] for name in Cell.__dataclass_fields__ if name in r}): r for r in results}

    def add(self, cell: Cell, result: dict[str, Any]) -> None:
        """Append a result."""
        result = asdict(cell) | result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        self.results[cell] = result

    def scores_of(self, cell: Cell) -> Path:
        """Return the file of a cell's held-out scores: ``labels``, and ``scores`` with classes in sorted order."""
        limit = "" if cell.limit is None else f", {cell.limit:g} s"
        seed = f", seed {cell.seed}" if cell.seed else ""
        name = f"{cell.table}, {cell.method}{limit}, load {cell.load}{seed}.npz"
        return self.path.with_suffix(".scores") / name

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells without a result."""
        return [cell for cell in cells if cell not in self.results]


def compute(
    cell: Cell, table: Path, target: str, keep: Path, *, cores: int = 2, rival_python: str | None = None
) -> dict[str, Any]:
    """Run the cell in its own processes; evaluate its scores of the test rows, and keep them."""
    # A relative path would be looked up in the temporary folder.
    table = table.resolve()
    with tempfile.TemporaryDirectory() as name, busy(cell.load):
        folder = Path(name)
        if cell.method == OURS:
            command = [sys.executable, "-m", "mauc", "fit", str(table), "--target", target, "--json"]
            if cell.limit not in (None, DEFAULT_LIMIT):
                command += ["--time-limit", f"{cell.limit:g}"]
            if cell.seed:
                command += ["--seed", str(cell.seed)]
            scores = folder / "model.scores.npz"
        else:
            scores = folder / "scores.npz"
            task = {"rival": cell.method, "table": str(table), "target": target, "out": str(scores), "seed": cell.seed}
            task |= {"python": rival_python, "seconds": cell.limit, "cores": cores}
            (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
            command = [sys.executable, "-m", "benchmarks.fit_tables.rivals", str(folder / "task.json")]
        done = measured(command, folder, most_seconds=120.0 + 3.0 * (cell.limit or 300.0))
        result: dict[str, Any] = {"seconds": done.seconds, "peak_mib": done.peak_mib, "machine": machine()}
        if done.returncode != 0 or not scores.exists():
            return result | {"failed": _reason(done)}
        evaluated = _evaluate(scores, labels_of(pd.read_parquet(table)[target]), cell.seed, keep)
        return result | _details(cell.method, json.loads(done.stdout)) | evaluated


def _reason(done: Measured) -> str:
    if done.returncode is None:
        return f"stopped after {done.seconds:.0f} s"
    return f"exit {done.returncode}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"


def _details(method: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the printed JSON that is stored."""
    if method == OURS:
        decided = {name: said["models"][0][name] for name in ("accuracy", "balanced_accuracy")}
        return {"model": said["model"], "cut": said.get("cut", []), "decided": decided}
    return {"model": said.get("chosen", method), "cut": [], "fit_seconds": said["fit_seconds"]}


def _evaluate(path: Path, labels: Any, seed: int, keep: Path) -> dict[str, Any]:
    """Evaluate the scores on the test rows; the prediction is the class with the largest score.

    A time limit of a few seconds allows some of the test rows only.
    """
    with np.load(path, allow_pickle=False) as arrays:
        rows, names, scores = arrays["rows"], arrays["classes"], arrays["scores"]
    if not np.isin(rows, default_split(labels, seed)[1]).all():
        return {"failed": "tested on other rows than the rivals"}
    classes, scores = np.sort(names), np.ascontiguousarray(scores[:, np.argsort(names)])
    y, predicted = labels[rows], classes[scores.argmax(axis=1)]
    keep.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(keep, rows=rows, labels=y, scores=scores)
    return {
        "mauc": float(mauc_score(y, scores, labels=classes)),
        "accuracy": float(np.mean(predicted == y)),
        "balanced_accuracy": float(balanced_accuracy_score(y, predicted)),
        "majority": float(np.unique(y, return_counts=True)[1].max() / len(y)),
        "scores": hashlib.sha256(scores).hexdigest()[:16],
    }
