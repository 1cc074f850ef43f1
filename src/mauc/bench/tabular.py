"""What wins on real tables: every set that can be loaded, single models, competitors and combinations."""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.preprocessing import OneHotEncoder

from mauc import datasets
from mauc._validation import check_choice, invalid
from mauc.bench.store import Cell
from mauc.bench.tabular_methods import Task, entries
from mauc.bench.tuning import preprocess
from mauc.kernels.problem import Floats, Ints
from mauc.metrics import mauc_score, pairwise_auc

__all__ = ["DEVELOPMENT", "JUDGED", "OPENML", "QUICK_SETS", "SETS", "cells", "load_set", "set_names", "task_of"]

# Declared before any number was looked at: every choice of form and default was made on these five alone.
DEVELOPMENT = ("balance", "ecoli", "svmguide2", "segment-imb", "wine-imb")
JUDGED = ("dermatology", "new-thyroid", "pageblocks", "shuttle", "yeast", "digits-imb", "kddcup99")
SETS = (*DEVELOPMENT, *JUDGED)
QUICK_SETS = ("balance", "new-thyroid", "ecoli", "wine-imb")
# On line only, and all of them judged.
OPENML = {
    "openml-glass": 41,
    "openml-vehicle": 54,
    "openml-page-blocks": 30,
    "openml-cmc": 23,
    "openml-zoo": 62,
    "openml-anneal": 2,
    "openml-car": 40975,
    "openml-satimage": 182,
    "openml-vowel": 307,
    "openml-wine-quality-red": 40691,
    "openml-wine-quality-white": 40498,
    "openml-thyroid-ann": 40497,
    "openml-autos": 9,
    "openml-lymph": 10,
    "openml-flags": 285,
}
TRAINING_SHARE = 0.6
# Of each class of KDD Cup 99 and of OpenML's sets at most so many samples: every model on every fold, many times.
MOST_OF_A_CLASS = 200
N_SPLITS = 10


def set_names(*, openml: bool = False, quick: bool = False) -> tuple[str, ...]:
    """The sets of a run."""
    if quick:
        return QUICK_SETS
    return (*SETS, *OPENML) if openml else SETS


@lru_cache(maxsize=64)
def load_set(name: str, data_home: str | None) -> tuple[Floats, Ints]:
    """Features and class codes; large sets as a fixed subsample that keeps all of the rare classes."""
    check_choice("set", name, (*SETS, *OPENML))
    if name in OPENML:
        X, y = _fetch_openml(name)
    else:
        bunch = datasets.load(name, data_home)
        X, y = bunch.X, bunch.y
    if name in OPENML or name == "kddcup99":
        kept = _at_most(y, MOST_OF_A_CLASS)
        X, y = X[kept], y[kept]
    # A class of one sample cannot be in both parts.
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    enough = counts[codes] > 1
    codes = np.unique(codes[enough], return_inverse=True)[1]
    X = X[enough]
    return np.ascontiguousarray(X[:, X.min(axis=0) < X.max(axis=0)], dtype=np.float64), codes.astype(np.int64)


def _at_most(y: Ints, most: int) -> Ints:
    rng = np.random.default_rng(0)
    parts = [rng.permutation(np.flatnonzero(y == c))[:most] for c in np.unique(y)]
    return np.sort(np.concatenate(parts))


def _fetch_openml(name: str) -> tuple[Floats, Ints]:
    """Numbers as they are, with missing ones at the mean; categories as one column each."""
    data_id = OPENML[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fetched = sklearn_datasets.fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff")
    called = fetched.details["name"]
    if f"openml-{called}" != name:
        raise invalid(name, f"must be OpenML's data set {data_id}", repr(called), "correct the number in OPENML")
    values = np.array(fetched.data, dtype=np.float64)
    nominal = np.array([name in (fetched.categories or {}) for name in fetched.feature_names])
    numbers = values[:, ~nominal]
    known = ~np.isnan(numbers)
    means = np.where(known, numbers, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    columns = [np.where(known, numbers, means)]
    if nominal.any():
        columns.append(OneHotEncoder(sparse_output=False).fit_transform(values[:, nominal]))
    y = np.unique(np.asarray(fetched.target).astype(str), return_inverse=True)[1]
    return np.hstack(columns), y.astype(np.int64)


@lru_cache(maxsize=2)
def task_of(name: str, data_home: str | None, split: int, quick: bool) -> tuple[Task, Ints]:
    """One split of a set, 60 % training, and the classes of its test part."""
    X, y = load_set(name, data_home)
    rest = (1.0 - TRAINING_SHARE) / 2.0
    *_, (train, validation, test) = datasets.stratified_splits(y, split + 1, (TRAINING_SHARE, rest, rest))
    test = np.union1d(validation, test)
    standard = preprocess(X, train, "standard")
    return Task(standard[train], y[train], standard[test], int(y.max()) + 1, quick), y[test]


def _compute(name: str, data_home: str | None, split: int, method: str, quick: bool) -> dict[str, Any]:
    task, y_test = task_of(name, data_home, split, quick)
    entry = next(e for e in entries(quick=quick) if e.name == method)
    with warnings.catch_warnings():
        # Fits that have not converged and folds without a class are judged as they are.
        warnings.simplefilter("ignore")
        outcome = entry.run(task)
    labels = np.arange(task.n_classes)
    matrix = pairwise_auc(y_test, outcome.scores, labels=labels)
    return {
        "test": mauc_score(y_test, outcome.scores, labels=labels, absent="ignore"),
        "params": outcome.params,
        "fit_seconds": outcome.fit_seconds,
        "matrix": [[None if np.isnan(v) else float(v) for v in row] for row in matrix],
        "test_counts": np.bincount(y_test, minlength=task.n_classes).tolist(),
        "train_counts": np.bincount(task.y_train, minlength=task.n_classes).tolist(),
    }


def cells(
    data_home: str | Path | None,
    *,
    sets: Sequence[str] = SETS,
    n_splits: int = N_SPLITS,
    quick: bool = False,
    only: Sequence[str] | None = None,
) -> list[Cell]:
    """One cell a set, method and split; split by split, so that every set has numbers early."""
    home = None if data_home is None else str(data_home)
    depth = "quick" if quick else "full"
    return [
        Cell((depth, name, entry.name, f"{split:02d}"), _compute, (name, home, split, entry.name, quick))
        for split in range(n_splits)
        for name in sets
        for entry in entries(quick=quick)
        if only is None or entry.name in only
    ]
