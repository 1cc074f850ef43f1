"""Studies of Optuna that maximise the cross-validated multiclass AUC, and stop a trial as soon as it cannot win."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing, indexable

from mauc._estimators import encode_classes, scores_by_class
from mauc._lazy import needing
from mauc._typing import Floats, Ints
from mauc._validation import check_pairs, check_real, check_sample_weight, invalid
from mauc.ensemble.bases import fit_base, weight_argument
from mauc.metrics import compare_mauc, mauc_interval, mauc_score
from mauc.model_selection import folds_of

__all__ = ["OptunaObjective", "optuna_objective"]


def optuna_objective(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    space: Callable[[Any], Mapping[str, Any]],
    *,
    cv: Any = 5,
    pairs: str | ArrayLike = "ovo",
    level: float | None = 0.95,
    sample_weight: ArrayLike | None = None,
) -> OptunaObjective:
    r"""The cross-validated multiclass AUC as the objective of a study of Optuna.

    After each fold the MAUC of all rows held out so far is reported. A trial is pruned when it is sure to end behind
    the best one: both have scored the same rows, so that what is hard for both cancels
    (:func:`~mauc.compare_mauc`), and the interval of the difference need only cover what the folds to come may bring,

    .. math:: \Delta + (\Delta_\mathrm{high} - \Delta) \sqrt{1 - f} < 0

    with f the part of its rows that the least seen class has had held out; the factor is that of a sample from a
    finite population. Nothing is pruned before two rows of each class have been held out.

    Parameters
    ----------
    estimator : classifier or pipeline
        Scored by ``predict_proba``, else by ``decision_function``.
    X : (N, d) array, sparse matrix or data frame
    y : (N,) classes
    space : function of a trial
        Returns the parameters that are set on the estimator: ``lambda trial: {"C": trial.suggest_float("C", 1e-3,
        1e3, log=True)}``.
    cv : int, splitter or list of folds, default=5
        A number gives :class:`~mauc.model_selection.RareClassKFold`. All trials see the same folds.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
        ``"ovo"``: every pair of classes counts the same. ``"ova"``: each class against all others together. A matrix:
        ``[i, j]`` is the weight of column i on class i against class j.
    level : float or None, default=0.95
        A trial that would have ended level with the best is pruned with a probability of about ``(1 - level) / 2``,
        all folds together. None: the pruner of the study decides.
    sample_weight : (N,) weights >= 0, optional
        For training and for the score.

    Returns
    -------
    OptunaObjective
        For ``study.optimize``; ``objective.build(study.best_trial)`` is the estimator with the best parameters, not
        fitted. A trial that is not pruned has the user attributes ``low``, ``high`` (95 %) and ``stderr``.

    Notes
    -----
    The best trial is the best of those that this object has run in the same study: processes that share a storage
    prune by their own trials. Threads (``study.optimize(n_jobs=…)``) share them.

    Examples
    --------
    >>> import optuna  # doctest: +SKIP
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import LogisticRegression
    >>> from mauc.integrations import optuna_objective
    >>> X, y = load_wine(return_X_y=True)
    >>> objective = optuna_objective(
    ...     LogisticRegression(max_iter=5000), X[:, :4], y,
    ...     lambda trial: {"C": trial.suggest_float("C", 1e-4, 1e2, log=True)},
    ... )  # doctest: +SKIP
    >>> study = optuna.create_study(direction="maximize")  # doctest: +SKIP
    >>> study.optimize(objective, n_trials=20)  # doctest: +SKIP
    >>> model = objective.build(study.best_trial).fit(X[:, :4], y)  # doctest: +SKIP
    """
    return OptunaObjective(estimator, X, y, space, cv=cv, pairs=pairs, level=level, sample_weight=sample_weight)


@dataclass(frozen=True, eq=False)
class _Best:
    """The best finished trial of a study."""

    score: float
    parts: list[Floats]
    """Its scores of the rows that each fold holds out."""


class OptunaObjective:
    """What :func:`optuna_objective` makes: called with a trial, it returns the MAUC of all rows held out."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        space: Callable[[Any], Mapping[str, Any]],
        *,
        cv: Any = 5,
        pairs: str | ArrayLike = "ovo",
        level: float | None = 0.95,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        with needing(None, "optuna_objective", package="optuna"):
            from optuna import TrialPruned
        if not callable(space):
            advice = "pass e.g. lambda trial: {'C': trial.suggest_float('C', 1e-3, 1e3, log=True)}"
            raise invalid("space", "must be a function of a trial", repr(space), advice)
        self._pruned = TrialPruned
        self._estimator, self._space = estimator, space
        self._classes, codes = encode_classes(y)
        self._X, self._codes = indexable(X, codes)
        self._weight = check_sample_weight(sample_weight, self._codes, len(self._classes), self._classes)
        self._pairs = check_pairs(pairs, len(self._classes))
        self._level = None if level is None else check_real("level", level, low=0, high=1)
        weight_argument(estimator, self._weight)
        counted = np.ones(len(self._codes), dtype=bool) if self._weight is None else self._weight > 0
        # Few rows leave some of many folds empty.
        folds = folds_of(cv, self._X, self._classes[self._codes], counted)
        self._folds = [(train, test) for train, test in folds if len(test)]
        if not self._folds:
            raise invalid("y", "must have two samples of a class", "single ones", "no sample could be held out")
        held_out = [np.bincount(self._codes[test], minlength=len(self._classes)) for _, test in self._folds]
        self._seen = np.cumsum(held_out, axis=0)
        self._best: dict[str, _Best] = {}
        self._lock = threading.Lock()

    def build(self, trial: Any) -> Any:
        """The estimator, not fitted, with the parameters of a trial, such as ``study.best_trial``."""
        return clone(self._estimator).set_params(**self._space(trial))

    def __call__(self, trial: Any) -> float:
        """Multiclass AUC over all folds; raises ``optuna.TrialPruned`` where the trial cannot be the best."""
        study = getattr(trial, "study", None)  # a FixedTrial has none
        if study is not None and [direction.name for direction in study.directions] != ["MAXIMIZE"]:
            came = ", ".join(direction.name.lower() for direction in study.directions)
            raise invalid("study", "must maximise one value", came, "optuna.create_study(direction='maximize')")
        best = None if study is None else self._best.get(study.study_name)
        model, labels = self.build(trial), self._classes[self._codes]
        parts: list[Floats] = []
        for done, (train, test) in enumerate(self._folds, start=1):
            weight = None if self._weight is None else self._weight[train]
            fitted = fit_base(clone(model), _safe_indexing(self._X, train), labels[train], weight)
            parts.append(scores_by_class(fitted, _safe_indexing(self._X, test), self._classes))
            if done == len(self._folds):
                break
            if np.count_nonzero(self._seen[done - 1]) > 1:
                rows, scores = self._pooled(parts)
                trial.report(mauc_score(self._codes[rows], scores, **self._how(rows)), done)
            if trial.should_prune() if self._level is None else self._cannot_win(parts, best):
                raise self._pruned(f"after {done} of {len(self._folds)} folds")
        rows, scores = self._pooled(parts)
        found = mauc_interval(self._codes[rows], scores, **self._how(rows))
        trial.report(found.score, len(parts))
        for name in ("low", "high", "stderr"):
            trial.set_user_attr(name, getattr(found, name))
        if study is not None:
            self._remember(study.study_name, _Best(found.score, parts))
        return found.score

    def _remember(self, study: str, finished: _Best) -> None:
        with self._lock:
            best = self._best.get(study)
            if best is None or finished.score > best.score:
                self._best[study] = finished

    def _pooled(self, parts: list[Floats]) -> tuple[Ints, Floats]:
        """The rows that these folds hold out, and their scores: the mean where one was held out more than once."""
        total, times = np.zeros((len(self._codes), len(self._classes))), np.zeros((len(self._codes), 1))
        for (_, test), part in zip(self._folds, parts, strict=False):
            total[test] += part
            times[test] += 1
        rows = np.flatnonzero(times)
        return rows, total[rows] / times[rows]

    def _how(self, rows: Ints) -> dict[str, Any]:
        """What the metrics are told of some rows."""
        weight = None if self._weight is None else self._weight[rows]
        labels = np.arange(len(self._classes))
        return {"pairs": self._pairs, "labels": labels, "sample_weight": weight, "absent": "ignore"}

    def _cannot_win(self, parts: list[Floats], best: _Best | None) -> bool:
        """Whether the upper end of the interval of what the difference to the best will be is below 0."""
        seen, whole = self._seen[len(parts) - 1], self._seen[-1]
        if best is None or self._level is None or seen[whole > 0].min() < 2:
            return False
        # As many looks as there are folds but the last share the probability of a mistake.
        level = 1.0 - (1.0 - self._level) / (len(self._folds) - 1)
        (rows, own), (_, others) = self._pooled(parts), self._pooled(best.parts[: len(parts)])
        found = compare_mauc(self._codes[rows], own, others, level=level, **self._how(rows))
        unseen = 1.0 - float((seen / np.maximum(whole, 1))[whole > 0].min())
        return found.difference + (found.high - found.difference) * math.sqrt(unseen) < 0
