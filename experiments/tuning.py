"""Fit a method over its grid, choose by multiclass AUC on the validation part, test on the test part."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler, normalize

from mauc._estimators import scores_by_code
from mauc.metrics import mauc_score, pairwise_auc

__all__ = ["PREPROCESSINGS", "Method", "Parts", "combinations", "judge", "preprocess", "run_method"]

PREPROCESSINGS = ("rows", "standard")

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Parts:
    """Training, validation and test part of a set, ready to fit."""

    X_train: NDArray[np.float64]
    y_train: NDArray[np.int64]
    X_validation: NDArray[np.float64]
    y_validation: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def preprocess(X: NDArray[np.float64], train: NDArray[np.int64], kind: str) -> NDArray[np.float64]:
    """Scale each row to unit length, as the authors do (``rows``), or columns by the training part (``standard``)."""
    if kind == "rows":
        return np.asarray(normalize(X))
    return np.asarray(StandardScaler().fit(X[train]).transform(X))


@dataclass(frozen=True)
class Method:
    """A competitor of the tables."""

    name: str
    make: Callable[..., Any]
    """From one combination of parameters to an unfitted classifier."""
    grid: tuple[Params, ...]
    """What the validation part chooses from."""


def combinations(**values: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """Return all combinations, the last name running fastest."""
    return tuple(dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


def run_method(method: Method, parts: Parts) -> dict[str, Any]:
    """Choose parameters on the validation part, test them, and return the numbers of the tables."""
    classes = np.arange(max(parts.y_train.max(), parts.y_validation.max(), parts.y_test.max()) + 1)
    best_score, best_params, best_seconds = -np.inf, {}, 0.0
    best_scores = np.zeros((len(parts.y_test), len(classes)))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for params in method.grid:
            model = method.make(**params)
            start = time.perf_counter()
            model.fit(parts.X_train, parts.y_train)
            seconds = time.perf_counter() - start
            held_out = scores_by_code(model, parts.X_validation, len(classes))
            validation = mauc_score(parts.y_validation, held_out, labels=classes, absent="ignore")
            if validation > best_score:
                best_score, best_params, best_seconds = validation, dict(params), seconds
                best_scores = scores_by_code(model, parts.X_test, len(classes))
    return {
        **judge(parts.y_test, best_scores),
        "validation": float(best_score),
        "params": best_params,
        "fit_seconds": best_seconds,
        "search_seconds": time.perf_counter() - began,
    }


def judge(y_test: NDArray[np.int64], scores: NDArray[np.float64]) -> dict[str, Any]:
    """Return test score, AUC of each pair of classes and class sizes for JSON; classes may be absent."""
    labels = np.arange(scores.shape[1])
    matrix = pairwise_auc(y_test, scores, labels=labels)
    return {
        "test": mauc_score(y_test, scores, labels=labels, absent="ignore"),
        "matrix": [[None if np.isnan(v) else float(v) for v in row] for row in matrix],
        "test_counts": np.bincount(y_test, minlength=len(labels)).tolist(),
    }
