"""The models that ``mauc fit`` compares, each trained together with scores of training rows that were held out from it.

class frequencies → balanced logistic regression → the linear model of multiclass AUC → a stack of models

Each says beforehand about how long it takes: first results first, and no start without a chance to finish.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.ensemble import MAUCStackingClassifier
from mauc.linear import MAUCClassifier, MAUCClassifierCV
from mauc.tables.durations import ROWS_OF_ONE_FOLD, Size, StackPlan, parts_of_stack, seconds_of
from mauc.tables.holdout import some_of_each

__all__ = ["CANDIDATES", "Candidate", "Fold", "LeftOut", "Part", "Trained"]

Fold = tuple[Ints, Ints]
FEW_ROWS = 5_000  # for the search of the linear model's parameters where there are more
SMALL_GRID: dict[str, Any] = {"alphas": (4.0,), "log_losses": (0.1, 1.0, 10.0), "l2s": (1e-1, 1e-2, 1e-3, 1e-4)}
GRID_SIZES = {"full": 54, "small": 12}


class LeftOut(Exception):
    """There is no such model, and why."""

    @classmethod
    def takes(cls, seconds: float) -> "LeftOut":
        return cls(f"would take about {max(1.0, seconds):.0f} s")


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to train on, and how they are split to validate."""

    X: Floats
    labels: NDArray[Any]
    folds: Sequence[Fold]
    """Rows to fit and rows to hold out, two classes at least in each; none where there are too few rows."""
    seed: int
    seconds: float
    """What is left for this model."""
    step: Callable[[str], None]
    """Told what is fitted next; may raise to stop the training."""
    slowness: float = 1.0
    """Of this machine."""

    @property
    def size(self) -> Size:
        return Size(self.X.shape[0], self.X.shape[1], len(np.unique(self.labels)))

    def scores(self, make: Callable[[int], Any]) -> Floats:
        """``(N, C)`` held-out scores of the models that ``make`` gives for each fold; NaN for rows never held out."""
        classes = np.unique(self.labels)
        held_out = np.full((len(self.labels), len(classes)), np.nan)
        for k, (train, test) in enumerate(self.folds):
            self.step(_of_folds(k, len(self.folds)))
            model = make(k).fit(self.X[train], self.labels[train])
            held_out[test] = 0.0
            held_out[np.ix_(test, np.searchsorted(classes, model.classes_))] = model.predict_proba(self.X[test])
        return held_out


@dataclass(frozen=True, eq=False)
class Trained:
    """A model of all training rows, and what its like said of rows that were held out."""

    classifier: Any
    held_out: Floats
    """``(N, C)``; NaN for rows that never were."""
    remark: str = ""
    """What else there is to know of it."""


@dataclass(frozen=True)
class Candidate:
    """A model to try."""

    name: str
    train: Callable[[Part], Trained]


def _frequencies(part: Part) -> Trained:
    from sklearn.dummy import DummyClassifier

    part.step("all training rows")
    classifier = DummyClassifier(strategy="prior").fit(part.X, part.labels)
    # Of all rows, not of those of the fold: a fold that holds more of a class leaves less of it to train on, and the
    # multiclass AUC would be below 1/2.
    held_out = np.full((len(part.labels), len(classifier.classes_)), np.nan)
    for _, test in part.folds:
        held_out[test] = classifier.class_prior_
    return Trained(classifier, held_out)


def _logistic(part: Part) -> Trained:
    from sklearn.linear_model import LogisticRegression

    return _plain(part, lambda: LogisticRegression(class_weight="balanced", max_iter=1000, random_state=part.seed))


def _plain(part: Part, make: Callable[[], Any]) -> Trained:
    held_out = part.scores(lambda _: make())
    part.step("all training rows")
    return Trained(make().fit(part.X, part.labels), held_out)


def _linear(part: Part) -> Trained:
    """Its parameters are chosen by cross-validation; those of the models that score a fold, without that fold."""
    if not part.folds:
        return _plain(part, MAUCClassifier)
    one_fit = part.slowness * seconds_of("mauc", part.size)
    if len(part.folds) == 1:
        return _linear_of_one_fold(part, one_fit)
    n_folds = len(part.folds)
    needs = {grid: one_fit * n_folds * size for grid, size in GRID_SIZES.items()}
    if needs["small"] > part.seconds:
        raise LeftOut.takes(needs["small"])
    grid = {} if needs["full"] < 0.2 * part.seconds else SMALL_GRID
    part.step("choosing its parameters")
    search = MAUCClassifierCV(cv=list(part.folds), **grid).fit(part.X, part.labels)
    by_fold = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(n_folds)])

    def without(k: int) -> MAUCClassifier:
        others = np.nanmean(np.delete(by_fold, k, axis=0), axis=0)
        return _with_parameters(search.cv_results_["params"][int(np.nanargmax(others))])

    held_out = part.scores(without)
    # Rows of the training table have no place in the model's file.
    return Trained(search.set_params(cv=n_folds), held_out)


def _linear_of_one_fold(part: Part, one_fit: float) -> Trained:
    train = part.folds[0][0]
    some = train[some_of_each(part.labels[train], FEW_ROWS, part.seed)]
    in_search = part.slowness * seconds_of("mauc", part.size._replace(rows=len(some)))
    needs = 2 * one_fit + 3 * GRID_SIZES["small"] * in_search
    if needs > part.seconds:
        raise LeftOut.takes(needs)
    part.step(f"choosing its parameters by {len(some)} rows")
    search = MAUCClassifierCV(cv=3, **SMALL_GRID).fit(part.X[some], part.labels[some])
    best = search.cv_results_["params"][int(np.argmin(search.cv_results_["rank_test_score"]))]
    return _plain(part, lambda: _with_parameters(best))


def _with_parameters(found: dict[str, Any]) -> MAUCClassifier:
    return MAUCClassifier(found["surrogate"], alpha=found["alpha"], log_loss=found["log_loss"], l2=found["l2"])


def _stack(part: Part) -> Trained:
    """As many models, folds and rows as time allows; the combination that scores a row is learnt without it."""
    if not part.folds:
        raise LeftOut("needs a second training row of two classes")
    # A machine that others use as well may become slower on the way, and what is not ready in time is lost.
    seconds = 0.7 * part.seconds / part.slowness
    plan = parts_of_stack(part.size, seconds, len(part.folds), part.seed)
    if plan.seconds > seconds:
        raise LeftOut.takes(plan.seconds * part.slowness)
    rows, folds = _rows_and_folds(part, plan)

    def step(name: str, fold: int | None) -> None:
        part.step(f"{name}, " + ("all training rows" if fold is None else _of_folds(fold, len(folds))))

    stack = MAUCStackingClassifier(list(plan.models), cv=folds, random_state=part.seed, verbose=step)
    stack.fit(part.X[rows], part.labels[rows])
    stack.set_params(cv=max(2, len(folds)), verbose=0)
    held_out = np.full((len(part.labels), len(stack.classes_)), np.nan)
    held_out[rows] = stack.oof_combination_
    some = [f"{len(rows)} of {len(part.labels)} rows"] if len(rows) < len(part.labels) else []
    return Trained(stack, held_out, ", ".join([*stack.named_estimators_, *some]))


def _rows_and_folds(part: Part, plan: StackPlan) -> tuple[Ints, list[Fold]]:
    """The rows to train on, and folds by their place among these."""
    everything = np.arange(len(part.labels))
    if plan.n_folds > 1:
        return everything, list(part.folds)
    train, test = part.folds[0]
    few = train[some_of_each(part.labels[train], min(ROWS_OF_ONE_FOLD, int(0.7 * plan.rows)), part.seed)]
    if plan.rows == len(part.labels):
        return everything, [(few, test)]
    held = test[some_of_each(part.labels[test], int(0.3 * plan.rows), part.seed)]
    # A class of neither part, such as one of the held-out group alone, is a class all the same.
    others = np.flatnonzero(~np.isin(part.labels, part.labels[np.concatenate([few, held])]))
    rows = np.sort(np.concatenate([few, held, others]))
    return rows, [(np.searchsorted(rows, few), np.searchsorted(rows, held))]


def _of_folds(k: int, n: int) -> str:
    return f"fold {k + 1} of {n}" if n > 1 else "validation rows held out"


CANDIDATES = (
    Candidate("class frequencies", _frequencies),
    Candidate("logistic regression", _logistic),
    Candidate("linear MAUC model", _linear),
    Candidate("stack of models", _stack),
)
