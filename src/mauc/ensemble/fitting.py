"""Fit the members of a stack on folds and on all rows: in this process, or in children that a deadline stops."""

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from mauc._estimators import HighestScoreClassifier
from mauc._typing import Floats, Ints
from mauc.ensemble.bases import class_scores, fit_base
from mauc.ensemble.planner import Member
from mauc.ensemble.workers import LATE, Answer, Task, Workers
from mauc.model_selection import some_of_each


class FoldAverage(HighestScoreClassifier, BaseEstimator):  # type: ignore[misc]
    """Average the scores of models that were fitted on folds.

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
        """Return ``(N, C)`` scores."""
        return np.asarray(np.mean([class_scores(each, X, self.n_classes) for each in self.estimators], axis=0))


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The rows that all fits share."""

    X: Any
    codes: Ints
    n_classes: int
    weight: Floats | None
    groups: Ints | None
    used_rows: Ints
    """Rows whose weight is not 0."""
    folds: list[tuple[Ints, Ints]]
    extra: Any = None
    """Test rows that every member scores, or None."""
    seed: int = 0
    fold_rows: int = 10**9
    """Largest number of rows in a fit on a fold."""

    @property
    def held_out(self) -> Ints:
        """``(n,)`` rows that a fold holds out, sorted. Not cached: other threads pickle this object meanwhile."""
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(test for _, test in self.folds)]))

    @property
    def shares(self) -> Floats:
        """``(C,)`` share of each class, by weight."""
        counts = np.bincount(self.codes, self.weight, self.n_classes)
        return counts / counts.sum()


@dataclass(frozen=True, eq=False)
class Fit:
    """One fit of a member: its model, if it is kept, and its scores of held-out rows and of test rows."""

    model: Any
    held_out: Floats | None
    extra: Floats | None


@dataclass(eq=False)
class Fits:
    """The finished fits, by name of the member."""

    folds: dict[str, list[Fit]] = field(default_factory=dict)
    """Members that have all their folds, in the order of the plan."""
    held_out: dict[str, Floats] = field(default_factory=dict)
    """``(n, C)`` mean scores of the rows in :attr:`TrainingData.held_out`."""
    full: dict[str, Fit] = field(default_factory=dict)
    """Fits on all rows."""
    seconds: dict[str, float] = field(default_factory=dict)
    cut: dict[str, str] = field(default_factory=dict)
    """The reason why a member is missing, or is not fitted on all rows."""
    members: dict[str, Member] = field(default_factory=dict)
    """The members in ``folds``, not fitted."""

    def add(self, others: "Fits") -> None:
        """Add the fits of other members."""
        for name in ("folds", "held_out", "full", "seconds", "members"):
            getattr(self, name).update(getattr(others, name))
        self.cut = {name: reason for name, reason in self.cut.items() if name not in others.folds}

    def drop(self, name: str) -> None:
        """Remove the fits of a member."""
        for fits in (self.folds, self.held_out, self.full, self.members):
            fits.pop(name, None)

    def model(self, name: str, n_classes: int) -> Any:
        """Return the model of all rows, or else the average of the models that were kept of the folds."""
        if name in self.full:
            return self.full[name].model
        return FoldAverage([fit.model for fit in self.folds[name] if fit.model is not None], n_classes)

    def extra(self, name: str) -> Floats:
        """Return the scores of the test rows by that model."""
        fits = [self.full[name]] if name in self.full else self.folds[name]
        return np.asarray(np.mean([fit.extra for fit in fits if fit.extra is not None], axis=0))


class Watch:
    """Receives the progress of a training, and ignores it; subclasses show it."""

    prefix = ""
    """Text before the name of each step."""

    def step(self, text: str) -> None:
        """Note that a step other than a fit begins."""

    def begins(self, name: str, step: str) -> None:
        """Note that a fit of a member begins."""

    def ends(self, name: str, score: float, seconds: float) -> None:
        """Note that a member has all its folds, with its multiclass AUC on held-out rows."""


class InProcess:
    """Run tasks in this process or by joblib, with the interface of :class:`~mauc.ensemble.workers.Workers`.

    A deadline stops no running task. Errors are raised.
    """

    late = LATE
    n_workers = 1
    stopped = False

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def run(self, tasks: Sequence[Task], deadline: float, shared: Any = None) -> Iterator[Answer]:
        """Yield the answers in the order of the tasks."""
        if effective_n_jobs(self.n_jobs) > 1:
            # joblib takes a task from the iterator when a worker is free, so none starts after the deadline.
            in_time = (each for each in enumerate(tasks) if time.monotonic() <= deadline)
            parallel = Parallel(n_jobs=self.n_jobs, pre_dispatch="n_jobs")
            yield from parallel(delayed(_run)(index, task, shared) for index, task in in_time)
            return
        for index, task in enumerate(tasks):
            if time.monotonic() > deadline:
                return
            yield _run(index, task, shared)


Runner = InProcess | Workers


def _run(index: int, task: Task, shared: Any) -> Answer:
    began = time.monotonic()
    with threadpool_limits(1):
        value = task() if shared is None else task(shared)
        return Answer(index, value, None, time.monotonic() - began)


@contextmanager
def ctrl_c_stops(workers: Workers, say: Callable[[], None]) -> Iterator[None]:
    """Go on after the first Ctrl-C without the tasks that are not ready; the second raises ``KeyboardInterrupt``.

    The first raises nothing, for it may come between two runs, when all work would be lost. ``say`` tells of it.
    """

    def stop(*_: object) -> None:
        if workers.stopped:
            raise KeyboardInterrupt
        workers.stop()
        # In a thread: the main thread may be writing to the terminal.
        threading.Thread(target=say).start()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def fit_folds(
    members: Sequence[Member],
    data: TrainingData,
    runner: Runner,
    deadline: float,
    refitted: set[str],
    score: Callable[[Floats], float],
    watch: Watch,
    early: Sequence[str] = (),
) -> Fits:
    """Fit every member on every fold; a member without all its folds at the deadline is noted in ``cut``.

    Members named in ``refitted`` are fitted on all rows as well: those in ``early`` here, before any other member
    starts, so that a deadline cuts the others; the rest later by :func:`fit_all_rows`. Of these members only the model
    of the first fold is kept, in case there is no time for the fit on all rows.
    """
    done, n_folds = Fits(), len(data.folds)
    first = sorted((each for each in members if each.name in early), key=lambda each: early.index(each.name))
    late = [member for member in members if member.name not in early]
    work: list[tuple[Member, int | None]] = [(member, fold) for member in first for fold in range(n_folds)]
    work += [(member, None) for member in first if member.name in refitted]
    work += [(member, fold) for member in late for fold in range(n_folds)]
    tasks = [
        partial(fit_one, member=member, fold=fold, keep=fold in (None, 0) or member.name not in refitted)
        for member, fold in work
    ]
    fits: dict[str, dict[int, Fit]] = {member.name: {} for member in members}
    means: dict[str, Floats] = {}
    done.seconds = {member.name: 0.0 for member in members}
    errors: list[Exception] = []
    watch.begins([*first, *late][0].name, _step(0, n_folds))
    for answer in runner.run(tasks, deadline, data):
        member, fold = work[answer.index]
        name = member.name
        done.seconds[name] += answer.seconds
        if answer.error is not None:
            errors.append(answer.error)
            done.cut[name] = f"failed: {answer.error}"
        elif fold is None:
            done.full[name] = answer.value
        else:
            fits[name][fold] = answer.value
            if len(fits[name]) == n_folds:
                means[name] = _mean_held_out(fits[name], data)
                watch.ends(name, score(means[name]), done.seconds[name])
            following = work[min(answer.index + 1, len(work) - 1)]
            watch.begins(following[0].name, _step(following[1], n_folds))
    if errors and len(errors) == len(tasks):
        raise errors[0]
    for member in members:
        name = member.name
        if len(fits[name]) == n_folds:
            done.folds[name] = [fits[name][k] for k in range(n_folds)]
            done.held_out[name] = means.get(name, np.zeros((0, data.n_classes)))
            done.members[name] = member
        else:
            done.cut.setdefault(name, runner.late)
    return done


def fit_all_rows(
    members: Sequence[Member],
    data: TrainingData,
    done: Fits,
    runner: Runner,
    deadline: float,
    watch: Watch,
    instead: str = "trained on the rows of a fold",
) -> None:
    """Fit members on all rows; a member that is not ready keeps the model of its first fold and is noted in ``cut``.

    ``instead`` says which model that is.
    """
    if members:
        watch.begins(members[0].name, _step(None, 0))
    tasks = [partial(fit_one, member=member, fold=None, keep=True) for member in members]
    for answer in runner.run(tasks, deadline, data):
        name = members[answer.index].name
        done.seconds[name] = done.seconds.get(name, 0.0) + answer.seconds
        if answer.error is None:
            done.full[name] = answer.value
        else:
            done.cut[name] = f"failed on all rows: {answer.error}"
    for member in members:
        if member.name not in done.full:
            done.cut.setdefault(member.name, f"{runner.late} with all rows: {instead}")


def fit_one(data: TrainingData, member: Member, fold: int | None, keep: bool) -> Fit:
    """Fit a member on the training rows of a fold, or on all if None; score the held-out and the test rows."""
    train, test = (data.used_rows, None) if fold is None else data.folds[fold]
    max_rows = member.rows if test is None else min(member.rows, data.fold_rows)
    train = train[some_of_each(data.codes[train], max_rows, data.seed)]
    X = data.X if test is None and len(train) == len(data.codes) else _safe_indexing(data.X, train)
    weight = None if data.weight is None else data.weight[train]
    # Warn once per model, in the fit on all rows. Threads share the warning filters: only the main thread sets them.
    quiet = test is not None and threading.current_thread() is threading.main_thread()
    with warnings.catch_warnings() if quiet else nullcontext():
        if quiet:
            warnings.simplefilter("ignore")
        model = fit_base(clone(member.model), X, data.codes[train], weight)
        held_out = None if test is None else class_scores(model, _safe_indexing(data.X, test), data.n_classes)
    extra = None if data.extra is None or not keep else class_scores(model, data.extra, data.n_classes)
    return Fit(model if keep else None, held_out, extra)


def _mean_held_out(fits: dict[int, Fit], data: TrainingData) -> Floats:
    """Return ``(n, C)``: the mean if a row was held out more than once."""
    held_out = data.held_out
    places = [np.searchsorted(held_out, test) for _, test in data.folds]
    times = np.bincount(np.concatenate(places))
    mean = np.zeros((len(held_out), data.n_classes))
    for k, place in enumerate(places):
        mean[place] += fits[k].held_out / times[place, None]  # type: ignore[operator]
    return mean


def _step(fold: int | None, n_folds: int) -> str:
    if fold is None:
        return "all rows"
    return f"fold {fold + 1} of {n_folds}" if n_folds > 1 else "one held-out part"
