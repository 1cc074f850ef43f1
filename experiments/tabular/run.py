"""Fit single models, competitors and combinations on every set that can be loaded."""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from experiments import datasets
from experiments.store import Cell
from experiments.tabular.data import SETS, load_set
from experiments.tabular.methods import Task, entries
from experiments.tuning import judge, preprocess
from mauc._typing import Ints

__all__ = ["N_SPLITS", "cells", "split_rows", "task_of"]

TRAINING_SHARE = 0.6
N_SPLITS = 3


def split_rows(y: Ints, split: int) -> tuple[Ints, Ints]:
    """Return the rows of the training part, 60 %, and of the test part."""
    rest = (1.0 - TRAINING_SHARE) / 2.0
    *_, (train, validation, test) = datasets.stratified_splits(y, split + 1, (TRAINING_SHARE, rest, rest))
    return train, np.union1d(validation, test)


@lru_cache(maxsize=2)
def task_of(name: str, data_home: str | None, split: int, quick: bool, tables: str | None = None) -> tuple[Task, Ints]:
    """Return one split of a set, 60 % training, and the classes of its test part."""
    X, y = load_set(name, data_home, tables)
    train, test = split_rows(y, split)
    # Missing numbers become the mean of the training part.
    standard = np.nan_to_num(preprocess(X, train, "standard"))
    return Task(standard[train], y[train], standard[test], int(y.max()) + 1, quick), y[test]


def _compute(
    name: str, data_home: str | None, tables: str | None, split: int, method: str, quick: bool
) -> dict[str, Any]:
    task, y_test = task_of(name, data_home, split, quick, tables)
    with warnings.catch_warnings():
        # Fits that have not converged and folds without a class are tested as they are.
        warnings.simplefilter("ignore")
        outcome = next(e for e in entries(quick=quick) if e.name == method).run(task)
    return {
        **judge(y_test, outcome.scores),
        "params": outcome.params,
        "fit_seconds": outcome.fit_seconds,
        "train_counts": np.bincount(task.y_train, minlength=task.n_classes).tolist(),
    }


def cells(
    data_home: str | None,
    *,
    tables: str | None = None,
    sets: Sequence[str] = SETS,
    n_splits: int = N_SPLITS,
    quick: bool = False,
    only: Sequence[str] | None = None,
) -> list[Cell]:
    """Return one cell per set, method and split, split by split, so that every set has numbers early."""
    depth = "quick" if quick else "full"
    return [
        Cell(
            (depth, name, entry.name, f"{split:02d}"),
            _compute,
            (name, data_home, tables, split, entry.name, quick),
            (name, split) if entry.of_one_stack else None,
        )
        for split in range(n_splits)
        for name in sets
        for entry in entries(quick=quick)
        if only is None or entry.name in only
    ]
