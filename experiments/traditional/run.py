"""The paper's traditional experiments: nine tables, fifteen splits, all linear methods and what a user would take
instead.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from experiments import datasets
from experiments.baselines import BASELINES
from experiments.report_parts import machine
from experiments.store import Cell
from experiments.traditional.nesterov import nesterov
from experiments.tuning import Method, Parts, combinations, preprocess, run_method
from mauc._typing import Floats
from mauc.linear import MAUCClassifier
from mauc.linear._solver import Solution
from mauc.plugin import MAUCPluginClassifier

__all__ = ["AUTHORS_SETTINGS", "PROTOCOLS", "TABLES", "authors_l2", "cells", "methods", "plugin_lr", "resampled_once"]

TABLES = (
    "balance",
    "dermatology",
    "ecoli",
    "new-thyroid",
    "pageblocks",
    "segment-imb",
    "shuttle",
    "svmguide2",
    "yeast",
)
PROTOCOLS = ("authors", "80-10-10")
N_SPLITS = 15

# λ and α that the paper found best, for squared, exponential and hinge (its appendix).
AUTHORS_SETTINGS: dict[str, tuple[tuple[float, float], ...]] = {
    "balance": ((1e-4, 0.9), (1e-4, 0.9), (1e-4, 0.7)),
    "dermatology": ((1e-4, 0.9), (1e-4, 0.9), (1e-4, 0.3)),
    "ecoli": ((6e-4, 0.6), (4e-4, 0.9), (1e-4, 0.2)),
    "new-thyroid": ((1e-4, 0.9), (1e-4, 0.5), (1e-4, 0.9)),
    "pageblocks": ((6e-4, 0.8), (2e-4, 0.9), (6e-4, 0.5)),
    "segment-imb": ((2e-4, 0.9), (4e-4, 0.9), (1e-4, 0.3)),
    "shuttle": ((2e-4, 0.8), (1e-4, 0.7), (1e-4, 0.5)),
    "svmguide2": ((1e-4, 0.9), (1e-4, 0.9), (2e-4, 0.4)),
    "yeast": ((6e-4, 0.3), (9e-3, 0.1), (1e-4, 0.2)),
}
LOSSES = ("squared", "exponential", "hinge")
ALPHAS = {"squared": (0.5, 1.0, 2.0), "exponential": (1.0, 4.0, 10.0), "hinge": (0.2, 0.5, 1.0)}
L2S = tuple(10.0**-k for k in range(1, 8))
CS = tuple(10.0**k for k in range(-3, 6))
TREE_GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "HGB": {"learning_rate": (0.03, 0.1), "min_samples_leaf": (2, 20)},
    "BRF": {"min_samples_leaf": (1, 2, 5)},
    "ET": {"min_samples_leaf": (1, 2, 5)},
}


def methods(table: str, *, quick: bool = False) -> list[Method]:
    """Return every row of the table of results."""
    return [*_ours(table, quick), *_plugins(quick), *_competitors(quick)]


def _ours(table: str, quick: bool) -> list[Method]:
    out = []
    for loss, (penalty, alpha) in zip(LOSSES, AUTHORS_SETTINGS[table], strict=True):
        grid = combinations(alpha=ALPHAS[loss], l2=L2S[::3] if quick else L2S)
        out.append(Method(f"MAUC {loss}", partial(MAUCClassifier, loss, log_loss=0.0), grid))
        theirs = partial(with_authors_penalty, loss, penalty, alpha)
        out.append(Method(f"MAUC {loss}, authors' settings", theirs, ({"max_iter": 100},)))
    both = partial(MAUCClassifier, "exponential", alpha=4.0, log_loss=1.0, balanced=False)
    out.append(Method("MAUC and log-loss, l2 tuned", both, combinations(l2=L2S[::3] if quick else L2S)))
    out.append(Method("MAUCClassifier(), not tuned", MAUCClassifier, ({},)))
    return out


def authors_l2(loss: str, penalty: float, n_classes: int) -> float:
    """Return their λ in our normalised objective: ``λ / (C (C − 1))``, twice that for their halved squared loss."""
    return penalty * (2.0 if loss == "squared" else 1.0) / (n_classes * (n_classes - 1))


def with_authors_penalty(loss: str, penalty: float, alpha: float, max_iter: int) -> Any:
    """Return the classifier at the authors' λ and α, with their solver and without intercept."""
    fixed: dict[str, Any] = {"log_loss": 0.0, "fit_intercept": False}
    return _AuthorsClassifier(loss, alpha=alpha, l2=penalty, max_iter=max_iter, **fixed)


class _AuthorsClassifier(MAUCClassifier):
    """The penalty is given in the authors' terms and turned into ours when the number of classes is known; the solver
    is theirs.
    """

    def _minimize(self, objective: Any, start: Floats) -> Solution:
        return nesterov(objective, start, max_iter=self.max_iter, tol=self.tol)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "_AuthorsClassifier":
        theirs = self.l2
        assert theirs is not None
        self.l2 = authors_l2(self.surrogate, theirs, len(np.unique(y)))
        try:
            super().fit(X, y, sample_weight)
        finally:
            self.l2 = theirs
        return self


def _plugins(quick: bool) -> list[Method]:
    leaves = (1,) if quick else (1, 2, 5)
    return [
        Method("plug-in on LR", plugin_lr, combinations(C=CS[::3] if quick else CS)),
        Method("plug-in on forest", _plugin_forest, combinations(min_samples_leaf=leaves)),
        Method("forest", _forest, combinations(min_samples_leaf=leaves)),
    ]


def plugin_lr(C: float) -> Any:
    """Return the plug-in classifier on logistic regression."""
    return MAUCPluginClassifier(LogisticRegression(C=C, max_iter=10_000))


def _forest(min_samples_leaf: int) -> Any:
    return RandomForestClassifier(300, min_samples_leaf=min_samples_leaf, random_state=0)


def _plugin_forest(min_samples_leaf: int) -> Any:
    return MAUCPluginClassifier(_forest(min_samples_leaf))


def _competitors(quick: bool) -> list[Method]:
    """Return each of the paper's with scikit-learn's default C and with C tuned; the others tuned."""
    out = []
    for name, entry in BASELINES.items():
        if entry.is_logistic:
            tuned = combinations(C=CS[::3] if quick else CS)
            out.append(Method(f"{name}, C=1", entry.make, ({},)))
            out.append(Method(f"{name}, tuned", resampled_once(name), tuned))
        else:
            out.append(Method(name, entry.make, ({},) if quick else combinations(**TREE_GRIDS[name])))
    return out


def resampled_once(name: str) -> Callable[..., Any]:
    """Return a maker of the baseline; its sampler, which does not depend on C, runs once per training part."""
    entry = BASELINES[name]
    if entry.sampler is None:
        return entry.make
    kept = _KeptSample(entry.sampler(0))
    return lambda **params: entry.make(**params).set_params(sampler=kept)


class _KeptSample:
    """A sampler that keeps what it made of the last training part.

    In memory: the ``memory=`` of the pipeline writes to disk, which would count as the fit's time.
    """

    def __init__(self, sampler: Any) -> None:
        self.sampler, self.last_X, self.made = sampler, None, None

    def fit_resample(self, X: Any, y: Any) -> Any:
        """Resample, or return the cached sample."""
        if self.last_X is not X:
            self.last_X, self.made = X, self.sampler.fit_resample(X, y)
        return self.made


@lru_cache(maxsize=4)
def _load(table: str, data_home: str | None) -> Any:
    return datasets.load(table, data_home)


def parts_of(table: str, data_home: str | None, protocol: str, preprocessing: str, split: int) -> Parts:
    """Return one split of a table, preprocessed."""
    bunch = _load(table, data_home)
    splits = bunch.splits if protocol == "authors" else datasets.stratified_splits(bunch.y, N_SPLITS)
    train, validation, test = splits[split]
    X: NDArray[np.float64] = preprocess(bunch.X, train, preprocessing)
    y = bunch.y
    return Parts(X[train], y[train], X[validation], y[validation], X[test], y[test])


def _compute(
    table: str, data_home: str | None, protocol: str, preprocessing: str, split: int, name: str, quick: bool
) -> dict[str, Any]:
    method = next(m for m in methods(table, quick=quick) if m.name == name)
    result = run_method(method, parts_of(table, data_home, protocol, preprocessing, split))
    return {**result, "counts": np.bincount(_load(table, data_home).y).tolist(), "machine": machine()}


def cells(
    data_home: str | None,
    *,
    protocol: str = "authors",
    preprocessings: Sequence[str] = ("rows", "standard"),
    tables: Sequence[str] = TABLES,
    n_splits: int = N_SPLITS,
    quick: bool = False,
    only: Sequence[str] | None = None,
) -> list[Cell]:
    """Return all fits, split by split, so that every table has numbers early."""
    depth = "quick" if quick else "full"
    return [
        Cell(
            (depth, protocol, preprocessing, table, method.name, f"{split:02d}"),
            _compute,
            (table, data_home, protocol, preprocessing, split, method.name, quick),
        )
        for split in range(n_splits)
        for preprocessing in preprocessings
        for table in tables
        for method in methods(table, quick=quick)
        if only is None or method.name in only
    ]
