"""Fits the members of a stack on folds and on all data: here, or in child processes that a deadline ends."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from mauc._typing import Floats, Ints
from mauc.ensemble.bases import class_scores, fit_base
from mauc.ensemble.planner import Member, many_trees
from mauc.ensemble.workers import Answer, Task
from mauc.model_selection import some_of_each

__all__ = ["Fit", "Fits", "FoldAverage", "Here", "Runner", "Samples", "Watch", "fit_folds", "fit_whole", "is_refitted"]


class FoldAverage(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The mean of the scores of models that were fitted on folds.

    Parameters
    ----------
    estimators : list of classifiers, fitted on codes
    n_classes : int
    """

    def __init__(self, estimators: list[Any], n_classes: int) -> None:
        self.estimators = estimators
        self.n_classes = n_classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> Ints:
        """Codes of all classes."""
        return np.arange(self.n_classes)

    def predict_proba(self, X: Any) -> Floats:
        """``(N, C)``"""
        return np.asarray(np.mean([class_scores(each, X, self.n_classes) for each in self.estimators], axis=0))

    def predict(self, X: Any) -> Ints:
        """Code of the class of the highest score."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


@dataclass(frozen=True, eq=False)
class Samples:
    """What all fits share."""

    X: Any
    codes: Ints
    n_classes: int
    weight: Floats | None
    counted: Ints
    """Rows whose weight is not 0."""
    folds: list[tuple[Ints, Ints]]
    extra: Any = None
    """Further rows that every member scores, or None."""
    seed: int = 0
    fold_rows: int = 10**9
    """Most rows that a fit on a fold gets."""


@dataclass(frozen=True, eq=False)
class Fit:
    """One member on one fold, or on all data."""

    model: Any
    """None where it is not needed."""
    held_out: Floats | None
    """Scores of the rows that the fold holds out."""
    extra: Floats | None


@dataclass(eq=False)
class Fits:
    """What is done so far, member by member."""

    folds: dict[str, list[Fit]] = field(default_factory=dict)
    """By name, of the members that are complete."""
    held_out: dict[str, Floats] = field(default_factory=dict)
    """``(N, C)`` of each: mean of the scores of held-out samples, NaN where one never was."""
    whole: dict[str, Fit] = field(default_factory=dict)
    """The fits on all data."""
    seconds: dict[str, float] = field(default_factory=dict)
    """What each took, its fits added up."""
    cut: dict[str, str] = field(default_factory=dict)
    """Why a member is not there, or not fitted on all data."""

    def start_over(self, other: "Fits") -> None:
        """With the members of others, where there are none."""
        self.folds, self.held_out = other.folds, other.held_out
        self.seconds |= other.seconds
        self.cut = {name: why for name, why in self.cut.items() if name not in other.folds}

    def model(self, name: str, n_classes: int) -> Any:
        """Fitted on all data, or the average over the folds."""
        if name in self.whole:
            return self.whole[name].model
        return FoldAverage([fit.model for fit in self.folds[name] if fit.model is not None], n_classes)

    def extra(self, name: str) -> Floats:
        """Scores of the further rows by that model."""
        if name in self.whole:
            found = self.whole[name].extra
            assert found is not None
            return found
        return np.asarray(np.mean([fit.extra for fit in self.folds[name] if fit.extra is not None], axis=0))


class Watch(Protocol):
    """Is told of the training as it goes."""

    def begins(self, name: str, step: str) -> None:
        """The fits of a member begin."""

    def ends(self, name: str, score: float, seconds: float) -> None:
        """A member is complete; its multiclass AUC on held-out rows."""


class Runner(Protocol):
    """Runs tasks and gives their answers as they come."""

    late: str
    """Why there is no answer."""
    n_workers: int
    """Processes that run tasks; with 0 there are no answers."""

    def run(self, tasks: Sequence[Task], deadline: float) -> Iterator[Answer]: ...
    def stop(self) -> bool:
        """Whether Ctrl-C ends the tasks and no more."""


class Here(AbstractContextManager["Here"]):
    """Runs tasks in this process, or by joblib; a deadline ends nothing that runs. Errors are raised.

    Parameters
    ----------
    shared : object
        First argument of every task.
    n_jobs : int, optional
        As in joblib.
    """

    late = "was not ready in time"
    n_workers = 1

    def __init__(self, shared: Any, n_jobs: int | None = None) -> None:
        self.shared, self.n_jobs = shared, n_jobs

    def stop(self) -> bool:
        """Ctrl-C ends all."""
        return False

    def __exit__(self, *_: object) -> None:
        """Nothing is left open."""

    def run(self, tasks: Sequence[Task], deadline: float) -> Iterator[Answer]:
        """Answers in the order of the tasks."""
        if effective_n_jobs(self.n_jobs) > 1:
            done = Parallel(n_jobs=self.n_jobs)(delayed(_timed)(task, self.shared) for task in tasks)
            yield from (Answer(place, value, None, took) for place, (value, took) in enumerate(done))
            return
        for place, task in enumerate(tasks):
            if time.monotonic() > deadline:
                return
            value, took = _timed(task, self.shared)
            yield Answer(place, value, None, took)


def _timed(task: Task, shared: Any) -> tuple[Any, float]:
    began = time.monotonic()
    function, arguments = task
    with threadpool_limits(1):
        return function(shared, *arguments), time.monotonic() - began


def is_refitted(model: Any, refit: bool | str, n_folds: int, fewest: int, n_classes: int) -> bool:
    """Whether a model is fitted on all data, rather than averaged over the folds. A forest is an average already, and
    five of them take five times as long to predict; a model of one of fewer than the ``fewest`` folds has seen too
    little; boosting may have too many trees for a model file.
    """
    if isinstance(refit, bool | np.bool_):
        return bool(refit) or n_folds == 0
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    is_forest = isinstance(last, ExtraTreesClassifier | RandomForestClassifier)
    return n_folds < fewest or is_forest or many_trees(last, n_classes, n_folds)


def fit_folds(
    members: Sequence[Member],
    samples: Samples,
    runner: Runner,
    deadline: float,
    again: Callable[[Member], bool],
    score: Callable[[Floats], float],
    watch: Watch,
    first: int = 0,
) -> Fits:
    """Fit every member on every fold; one that is not complete at the deadline is left out, and why is noted.

    ``again`` says which members are fitted on all data as well: the ``first`` ones here, before any other begins, so
    that a deadline cuts the others; the rest later (:func:`fit_whole`), if they have a weight. Of these the model of
    the first fold is kept alone: it takes their place if there is no time.
    """
    done, n_folds = Fits(), len(samples.folds)
    parts: dict[str, dict[int, Fit]] = {member.name: {} for member in members}
    work = _in_order(members, n_folds, first, again)
    tasks = [(fit_one, (member, fold, fold in (None, 0) or not again(member))) for member, fold in work]
    errors: list[Exception] = []
    if not n_folds:
        nothing = np.full((len(samples.codes), samples.n_classes), np.nan)
        return Fits(
            {m.name: [] for m in members}, {m.name: nothing for m in members}, seconds={m.name: 0.0 for m in members}
        )
    if members:
        watch.begins(members[0].name, _of_folds(0, n_folds))
    try:
        for answer in runner.run(tasks, deadline):
            member, fold = work[answer.place]
            done.seconds[member.name] = done.seconds.get(member.name, 0.0) + answer.seconds
            if answer.error is not None:
                errors.append(answer.error)
                done.cut[member.name] = f"failed: {answer.error}"
                continue
            if fold is None:
                done.whole[member.name] = answer.value
                continue
            parts[member.name][fold] = answer.value
            if len(parts[member.name]) == n_folds:
                done.folds[member.name] = [parts[member.name][k] for k in range(n_folds)]
                done.held_out[member.name] = _held_out(done.folds[member.name], samples)
                watch.ends(member.name, score(done.held_out[member.name]), done.seconds[member.name])
            following = work[min(answer.place + 1, len(work) - 1)]
            watch.begins(following[0].name, _of_folds(following[1], n_folds))
    except KeyboardInterrupt:
        if not runner.stop():
            raise
    for member in members:
        if member.name not in done.folds:
            done.cut.setdefault(member.name, runner.late)
    if errors and len(errors) == len(tasks):
        raise errors[0]
    # In the order of the plan, whichever was ready first.
    done.folds = {member.name: done.folds[member.name] for member in members if member.name in done.folds}
    done.held_out = {name: done.held_out[name] for name in done.folds}
    return done


def _in_order(
    members: Sequence[Member], n_folds: int, first: int, again: Callable[[Member], bool]
) -> list[tuple[Member, int | None]]:
    """Members and folds, None being all rows: the folds of the first ones, all rows of these, the folds of the rest."""
    early, rest = members[:first], members[first:]
    fits: list[tuple[Member, int | None]] = [(member, fold) for member in early for fold in range(n_folds)]
    fits += [(member, None) for member in early if again(member)]
    return fits + [(member, fold) for member in rest for fold in range(n_folds)]


def fit_whole(
    members: Sequence[Member], done: Fits, samples: Samples, runner: Runner, deadline: float, watch: Watch
) -> None:
    """Fit members on all data; one that is not ready stays the model of its fold, and that is noted."""
    if members:
        watch.begins(members[0].name, "all training rows")
    tasks = [(fit_one, (member, None, True)) for member in members]
    try:
        for answer in runner.run(tasks, deadline):
            name = members[answer.place].name
            done.seconds[name] += answer.seconds
            if answer.error is None:
                done.whole[name] = answer.value
            else:
                done.cut[name] = f"failed on all rows: {answer.error}"
    except KeyboardInterrupt:
        if not runner.stop():
            raise
    for member in members:
        if member.name not in done.whole:
            done.cut.setdefault(member.name, f"{runner.late} with all rows: it is trained on those of a fold")


def fit_one(samples: Samples, member: Member, fold: int | None, kept: bool) -> Fit:
    """A member fitted on the training rows of a fold, None being all, with its scores of the rows held out and of the
    further ones.
    """
    train, test = (samples.counted, None) if fold is None else samples.folds[fold]
    most = member.rows if test is None else min(member.rows, samples.fold_rows)
    train = train[some_of_each(samples.codes[train], most, samples.seed)]
    part = samples.X if test is None and len(train) == len(samples.codes) else _safe_indexing(samples.X, train)
    weight = None if samples.weight is None else samples.weight[train]
    # One warning per model, from the fit on all data, not one per fold.
    with warnings.catch_warnings() if _alone() and test is not None else nullcontext():
        if _alone() and test is not None:
            warnings.simplefilter("ignore")
        fitted = fit_base(clone(member.model), part, samples.codes[train], weight)
        held_out = None if test is None else class_scores(fitted, _safe_indexing(samples.X, test), samples.n_classes)
    extra = None if samples.extra is None or not kept else class_scores(fitted, samples.extra, samples.n_classes)
    return Fit(fitted if kept else None, held_out, extra)


def _alone() -> bool:
    """Filters of warnings belong to the whole process: threads, which would leave them changed, leave them alone."""
    import threading

    return threading.current_thread() is threading.main_thread()


def _held_out(fits: Sequence[Fit], samples: Samples) -> Floats:
    """``(N, C)``: the mean where a sample was held out more than once, NaN where it never was."""
    total = np.zeros((len(samples.codes), samples.n_classes))
    times = np.zeros((len(samples.codes), 1))
    for (_, test), fit in zip(samples.folds, fits, strict=True):
        assert fit.held_out is not None
        total[test] += fit.held_out
        times[test] += 1
    return np.divide(total, times, out=np.full_like(total, np.nan), where=times > 0)


def _of_folds(k: int | None, n: int) -> str:
    if k is None:
        return "all training rows"
    return f"fold {k + 1} of {n}" if n > 1 else "a part held out"
