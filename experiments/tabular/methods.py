"""The rows of the tabular experiment: single models tuned inside the training part, and combinations of models."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from experiments.baselines import BASELINES
from experiments.traditional.run import plugin_lr, resampled_once
from experiments.tuning import combinations
from mauc._estimators import scores_by_code
from mauc._typing import Floats, Ints
from mauc.activations import activate
from mauc.boosting import lightgbm_metric, lightgbm_objective
from mauc.ensemble import MAUCStackingClassifier
from mauc.ensemble.bases import KernelColumns, class_scores, default_estimators
from mauc.linear import MAUCClassifier
from mauc.metrics import mauc_score
from mauc.model_selection import RareClassKFold
from mauc.plugin import MAUCPluginClassifier

__all__ = ["OURS", "Entry", "Outcome", "Task", "entries"]

OURS = "MAUC stacking"
FOLDS = 3
CS = tuple(10.0**k for k in range(-2, 4))
Params = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """A split of a set, standardised by its training part."""

    X_train: Floats
    y_train: Ints
    X_test: Floats
    n_classes: int
    quick: bool


@dataclass(frozen=True)
class Outcome:
    """Scores of the test part, the chosen parameters, and the time of the fit."""

    scores: Floats
    """``(n, C)``, a column for every class of the set."""
    params: dict[str, Any]
    fit_seconds: float
    """Time of the final fit; for a combination, of all its fits."""


@dataclass(frozen=True)
class Entry:
    """A row of the table."""

    name: str
    run: Callable[[Task], Outcome]
    of_one_stack: bool = False
    """Whether the row reuses the fits of the stack."""


def entries(*, quick: bool = False) -> list[Entry]:
    """Return all rows of the table."""
    return [*_linear(quick), *_trees(quick), *_recipes(quick), *_combinations()]


def _tuned(make: Callable[..., Any], grid: tuple[Params, ...], task: Task) -> Outcome:
    """Fit the combination with the highest mean multiclass AUC over three folds of the training part on all of it."""
    best = grid[0] if len(grid) == 1 else grid[int(np.argmax(_cross_validated(make, grid, task)))]
    began = time.perf_counter()
    model = make(**best).fit(task.X_train, task.y_train)
    seconds = time.perf_counter() - began
    return Outcome(scores_by_code(model, task.X_test, task.n_classes), dict(best), seconds)


def _cross_validated(make: Callable[..., Any], grid: tuple[Params, ...], task: Task) -> Floats:
    """Return the mean over the folds of each combination; a sampler runs once per fold."""
    labels, by_fold = np.arange(task.n_classes), [np.zeros(len(grid))]
    for train, test in RareClassKFold(FOLDS).split(task.y_train, task.y_train):
        X, y, X_test, y_test = task.X_train[train], task.y_train[train], task.X_train[test], task.y_train[test]
        if len(np.unique(y_test)) > 1:
            models = (make(**params).fit(X, y) for params in grid)
            scores = [scores_by_code(model, X_test, task.n_classes) for model in models]
            by_fold.append(np.array([mauc_score(y_test, s, labels=labels, absent="ignore") for s in scores]))
    return np.mean(by_fold, axis=0)


def _single(name: str, make: Callable[..., Any], grid: tuple[Params, ...]) -> Entry:
    return Entry(name, partial(_tuned, make, grid))


def _linear(quick: bool) -> list[Entry]:
    cs = CS[1::3] if quick else CS
    l2s = (1e-2, 1e-4) if quick else tuple(10.0**-k for k in range(1, 6))
    alphas = (4.0,) if quick else (1.0, 4.0)
    rows = [_single("MAUC linear", _mauc_linear, combinations(alpha=alphas, l2=l2s))]
    for name, entry in BASELINES.items():
        if entry.is_logistic:
            rows.append(_single(name, resampled_once(name), combinations(C=cs)))
    return rows


def _mauc_linear(alpha: float, l2: float) -> Any:
    return MAUCClassifier(alpha=alpha, l2=l2, max_iter=500, tol=1e-5)


def _trees(quick: bool) -> list[Entry]:
    n_trees = 30 if quick else 300
    rounds = 30 if quick else 300
    leaves = combinations(min_samples_leaf=(1,) if quick else (1, 3, 10))
    children = combinations(min_samples=(10,) if quick else (5, 20))
    # Rate and leaves as the libraries have them, or as the models of the stack do.
    trees = combinations(min_samples=(10,) if quick else (5, 20), gentle=(False,) if quick else (False, True))
    return [
        _single("ET", partial(BASELINES["ET"].make, n_estimators=n_trees), leaves),
        _single("RF-balanced", partial(_forest, n_trees, "balanced"), leaves),
        _single("BRF", partial(BASELINES["BRF"].make, n_estimators=n_trees), leaves),
        _single("HGB", partial(_boosting, min(rounds, 100)), trees),
        _single("LightGBM", partial(_lightgbm, min(rounds, 100)), trees),
        _single("LightGBM, stopped by MAUC", partial(_StoppedLightGBM, rounds, ours=False), children),
        _single("MAUC boosting", partial(_StoppedLightGBM, rounds, ours=True), children),
    ]


def _forest(n_trees: int, class_weight: str | None, min_samples_leaf: int) -> Any:
    return RandomForestClassifier(
        n_trees, class_weight=class_weight, min_samples_leaf=min_samples_leaf, random_state=0, n_jobs=1
    )


def _boosting(rounds: int, min_samples: int, gentle: bool) -> Any:
    slow: dict[str, Any] = {"learning_rate": 0.05, "max_leaf_nodes": 8, "l2_regularization": 1.0} if gentle else {}
    return BASELINES["HGB"].make(max_iter=rounds, min_samples_leaf=min_samples, **slow)


def _lightgbm(rounds: int, min_samples: int, gentle: bool) -> Any:
    from lightgbm import LGBMClassifier

    slow: dict[str, Any] = {"learning_rate": 0.05, "num_leaves": 8, "reg_lambda": 1.0} if gentle else {}
    return LGBMClassifier(
        **slow,
        n_estimators=rounds,
        class_weight="balanced",
        min_child_samples=min_samples,
        n_jobs=1,
        verbosity=-1,
        random_state=0,
    )


class _StoppedLightGBM:
    """Boosting whose number of trees is chosen by cross-validated multiclass AUC, with LightGBM's loss or ours.

    With the class-balanced log-loss and otherwise equal settings, it shows the gain of our objective.
    """

    def __init__(self, rounds: int, min_samples: int, *, ours: bool) -> None:
        self.rounds, self.min_samples, self.ours = rounds, min_samples, ours

    def fit(self, X: Floats, y: NDArray[Any]) -> "_StoppedLightGBM":
        """Choose the number of rounds, then train on all data."""
        import lightgbm

        self.classes_, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        objective = lightgbm_objective(alpha=2.0)
        params: dict[str, Any] = {
            "objective": objective if self.ours else "multiclass",
            "num_class": len(counts),
            # 0.1 is usual for the log-loss; our objective returns larger curvatures, and takes longer steps.
            "learning_rate": 0.3 if self.ours else 0.1,
            "num_leaves": 7,
            "min_data_in_leaf": self.min_samples,
            "bagging_fraction": 0.7,
            "bagging_freq": 1,
            "feature_fraction_bynode": 0.5,
            "lambda_l2": 1.0,
            "metric": "none",
            "feature_pre_filter": False,
            "num_threads": 1,
            "seed": 0,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        weight = None if self.ours else (len(y) / (len(counts) * counts))[codes]
        fixed = {"verbosity": -1, "feature_pre_filter": False}
        data = lightgbm.Dataset(X, codes, weight=weight, params=fixed, free_raw_data=False)
        folds = [f for f in RareClassKFold(FOLDS).split(X, codes) if len(np.unique(codes[f[1]])) > 1]
        stop = lightgbm.early_stopping(50, verbose=False)
        metric = objective.metric if self.ours else lightgbm_metric
        results: dict[str, Any] = lightgbm.cv(params, data, self.rounds, folds=folds, feval=metric, callbacks=[stop])
        self.booster_ = lightgbm.train(params, data, int(np.argmax(results["valid mauc-mean"])) + 1)
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probabilities of LightGBM, or the softmax of the scores of our objective."""
        scores = np.asarray(self.booster_.predict(X, num_threads=1), dtype=np.float64)
        if not self.ours:
            return scores
        return activate(np.column_stack([-scores / 2, scores / 2]) if scores.ndim == 1 else scores, "softmax")


def _recipes(quick: bool) -> list[Entry]:
    cs = combinations(C=CS[1::3] if quick else CS)
    leaves = combinations(min_samples_leaf=(3,) if quick else (1, 3, 10))
    kernels = combinations(gamma=(0.3,) if quick else (0.1, 0.3, 1.0), l2=(1e-4,) if quick else (1e-3, 1e-4, 1e-5))
    children = combinations(min_samples=(10,) if quick else (5, 20))
    return [
        _single("plug-in on LR", plugin_lr, cs),
        _single("plug-in on forest", partial(_plugin_forest, 30 if quick else 300), leaves),
        _single("plug-in on calibrated boosting", partial(_plugin_boosting, 30 if quick else 100), children),
        _single("MAUC Nystroem", _nystroem, kernels),
    ]


def _plugin_forest(n_trees: int, min_samples_leaf: int) -> Any:
    return MAUCPluginClassifier(_forest(n_trees, None, min_samples_leaf))


def _plugin_boosting(rounds: int, min_samples: int) -> Any:
    boosting = HistGradientBoostingClassifier(
        max_iter=rounds, min_samples_leaf=min_samples, early_stopping=False, random_state=0
    )
    return MAUCPluginClassifier(boosting, cv=FOLDS)


def _nystroem(gamma: float, l2: float) -> Any:
    return make_pipeline(KernelColumns(gamma), _mauc_linear(4.0, l2))


def _bases(quick: bool) -> list[tuple[str, Any]]:
    named = default_estimators(n_trees=30) if quick else default_estimators()
    return [(name, model.set_params(max_iter=30) if quick and name == "hgb" else model) for name, model in named]


@lru_cache(maxsize=1)
def _stack(task: Task) -> tuple[MAUCStackingClassifier, float]:
    """Return the cached stack of a split, whose fits several rows use."""
    began = time.perf_counter()
    model = MAUCStackingClassifier(_bases(task.quick)).fit(task.X_train, task.y_train)
    return model, time.perf_counter() - began


def _combinations() -> list[Entry]:
    scikit_learn = {
        "scikit-learn stacking": LogisticRegression(max_iter=10_000),
        "scikit-learn stacking, balanced": LogisticRegression(max_iter=10_000, class_weight="balanced"),
    }
    return [
        Entry(OURS, _stacked, of_one_stack=True),
        Entry(f"{OURS}, ordered", _ordered),
        Entry(f"{OURS}, weights alone", _weights_alone, of_one_stack=True),
        Entry("average", _average, of_one_stack=True),
        Entry("best by CV", _best_by_cv, of_one_stack=True),
        *(Entry(name, partial(_sklearn_stack, final)) for name, final in scikit_learn.items()),
    ]


def _stacked(task: Task) -> Outcome:
    model, seconds = _stack(task)
    params = {"weights": model.weights_, "weighted_share": model.weighted_share_}
    return Outcome(scores_by_code(model, task.X_test, task.n_classes), params, seconds)


def _ordered(task: Task) -> Outcome:
    """Fit a stack that uses the order of the class codes."""
    began = time.perf_counter()
    order = np.unique(task.y_train)
    model = MAUCStackingClassifier(_bases(task.quick), ordinal=order).fit(task.X_train, task.y_train)
    seconds = time.perf_counter() - began
    return Outcome(scores_by_code(model, task.X_test, task.n_classes), {"weights": model.weights_}, seconds)


def _model_scores(stack: MAUCStackingClassifier, X: Any) -> Floats:
    """Return the ``(K, N, C)`` scores of all models of a stack."""
    return np.stack([class_scores(model, X, len(stack.classes_)) for model in stack.estimators_])


def _weights_alone(task: Task) -> Outcome:
    model, seconds = _stack(task)
    found = replace(model._combination, share=1.0)
    return Outcome(found.scores(_model_scores(model, task.X_test)), {"weights": model.weights_}, seconds)


def _average(task: Task) -> Outcome:
    model, seconds = _stack(task)
    return Outcome(_model_scores(model, task.X_test).mean(axis=0), {}, seconds)


def _best_by_cv(task: Task) -> Outcome:
    model, seconds = _stack(task)
    best = max(model.named_estimators_, key=lambda name: np.nan_to_num(model.oof_scores_[name]))
    part = model.named_estimators_[best]
    return Outcome(scores_by_code(part, task.X_test, task.n_classes), {"model": best}, seconds)


def _sklearn_stack(final: Any, task: Task) -> Outcome:
    began = time.perf_counter()
    # A number of folds, as a user would: scikit-learn refuses folds that never hold out the only sample of a class.
    model = StackingClassifier(_bases(task.quick), clone(final), cv=5).fit(task.X_train, task.y_train)
    return Outcome(scores_by_code(model, task.X_test, task.n_classes), {}, time.perf_counter() - began)
