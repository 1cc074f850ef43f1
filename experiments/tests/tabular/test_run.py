"""Splits and cells of the tabular experiment."""

import numpy as np
import pytest

from experiments.store import Store, run_cells
from experiments.tabular import run as tabular
from experiments.tabular.data import (
    QUICK_SETS,
    SETS,
    load_set,
)
from experiments.tabular.methods import OURS, entries
from experiments.tabular.report import write_report
from experiments.tabular.run import cells, task_of

NAMES = [entry.name for entry in entries()]


def test_missing_numbers_are_those_of_the_training_part(tmp_path):
    rows = [f"{k if k % 5 else ''},{'ab'[k % 2]}" for k in range(1, 41)]
    (tmp_path / "gaps.csv").write_text("\n".join(["x,class", *rows]))
    task, y_test = task_of("gaps", None, 0, True, str(tmp_path))
    assert np.isfinite(task.X_train).all()
    assert np.isfinite(task.X_test).all()
    assert ((task.X_train == 0).sum() + (task.X_test == 0).sum()) == 8
    assert len(y_test) == len(task.X_test)


def test_splits(made_up_data):
    task, y_test = task_of("ecoli", str(made_up_data), 1, True)
    X, y = load_set("ecoli", str(made_up_data))
    assert len(task.y_train) + len(y_test) == len(y) == 336
    assert len(task.y_train) == pytest.approx(0.6 * 336, abs=3)
    assert set(task.y_train) == set(y_test) == set(range(8))
    np.testing.assert_allclose(task.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(task.X_train.std(axis=0), 1.0)
    again, _ = task_of("ecoli", str(made_up_data), 0, True)
    assert len(again.X_train) == len(task.X_train)
    assert not np.array_equal(again.X_train, task.X_train)
    assert X.shape[1] == task.X_test.shape[1]


def test_cells(made_up_data, tmp_path):
    work = cells(made_up_data, sets=["balance", "ecoli"], n_splits=2, only=["LR", "ET"])
    assert [cell.key for cell in work[:4]] == [
        ("full", "balance", "LR", "00"),
        ("full", "balance", "ET", "00"),
        ("full", "ecoli", "LR", "00"),
        ("full", "ecoli", "ET", "00"),
    ]
    assert len(cells(made_up_data)) == len(SETS) * len(NAMES) * tabular.N_SPLITS
    store = Store(tmp_path / "cells")
    quick = cells(str(made_up_data), sets=["new-thyroid"], n_splits=1, quick=True, only=["LR", "MAUC linear", OURS])
    assert {cell.key[2]: cell.together for cell in quick} == {
        "LR": None,
        "MAUC linear": None,
        OURS: ("new-thyroid", 0),
    }, "what reuses one stack runs together"
    some = [cell for cell in quick if cell.together is None]
    assert run_cells(some, store) == 2
    assert run_cells(some, store) == 0
    run = store.read(("quick", "new-thyroid", "MAUC linear", "00"))
    assert 0.5 < run["test"] <= 1.0
    assert sum(run["test_counts"]) + sum(run["train_counts"]) == 215
    files = write_report(store, tmp_path, sets=QUICK_SETS, depth="quick")
    assert [file.name for file in files] == ["tabular.md", "tabular.csv"], "ranks need three sets"
    assert "| ecoli |" not in files[0].read_text(), "sets without results are left out"
