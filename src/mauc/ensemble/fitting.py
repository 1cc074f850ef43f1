"""Fits the models of a stack on folds and on all data, within a time where there is one."""

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from mauc._typing import Floats, Ints
from mauc.ensemble.bases import class_scores, fit_base
from mauc.ensemble.columns import rows_of

__all__ = ["Fits", "FoldAverage", "Samples", "fit_models", "is_refitted"]

MANY = 50_000
"""Samples from which the models get threads of their own."""
TRIED = 2000
"""Samples from which a model is tried on an eighth of them before it may use the time that is left."""
FEWEST_FOLDS = 4
"""With fewer, a model of one fold has seen too little, and the fit on all data is used."""


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
        return self.mean_scores([X] * len(self.estimators))

    def mean_scores(self, by_fold: Sequence[Any]) -> Floats:
        """``(N, C)`` of samples as the model of each fold takes them."""
        scores = [class_scores(m, X, self.n_classes) for m, X in zip(self.estimators, by_fold, strict=True)]
        return np.asarray(np.mean(scores, axis=0))

    def predict(self, X: Any) -> Ints:
        """Code of the class of the highest score."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


@dataclass(frozen=True, eq=False)
class Samples:
    """What all fits share."""

    parts: list[Any]
    """X for each fold, and last for all data."""
    codes: Ints
    n_classes: int
    weight: Floats | None
    counted: Ints
    """Rows whose weight is not 0."""
    folds: list[tuple[Ints, Ints]]


@dataclass(eq=False)
class Fits:
    """What is done so far, model by model."""

    models: dict[str, Any] = field(default_factory=dict)
    """By name: fitted on all data, or the average over the folds."""
    held_out: list[Floats] = field(default_factory=list)
    """``(N, C)`` of each: mean of the scores of held-out samples, NaN where one never was."""
    left_out: list[str] = field(default_factory=list)
    """Names of those that there was no time for."""


Result = tuple[Any, Floats | None]


def is_refitted(model: Any, refit: bool | str, n_folds: int) -> bool:
    """Whether a model is fitted on all data, rather than averaged over the folds. A forest is an average already, and
    five of them take five times as long to predict.
    """
    if isinstance(refit, bool | np.bool_):
        return bool(refit) or n_folds == 0
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return n_folds < FEWEST_FOLDS or isinstance(last, ExtraTreesClassifier | RandomForestClassifier)


def fit_models(
    named: Sequence[tuple[str, Any]],
    samples: Samples,
    *,
    refit: bool | str,
    n_jobs: int | None,
    deadline: float | None = None,
    before: Callable[[str, int | None], None] | None = None,
    after: Callable[[str, Floats], None] | None = None,
) -> Fits:
    """Fit every model on every fold, and on all data where it is refitted.

    With a ``deadline``, in the seconds of :func:`time.perf_counter`, models are fitted one by one, and one that would
    end after it is left out: by the time of its first fold, from 2,000 samples on by that of an eighth of it first. The
    first model is fitted in any case. ``before`` each fit, and ``after`` each model with its held-out scores, a
    function is called.
    """
    done = Fits()
    n_folds = len(samples.folds)
    work = {name: [*range(n_folds), *([None] if is_refitted(model, refit, n_folds) else [])] for name, model in named}
    pool = _Pool(dict(named), samples, n_jobs, refit, lazy=before is not None or after is not None)
    tasks = [(name, fold) for name, folds in work.items() for fold in folds]

    def keep(name: str, results: list[Result]) -> None:
        done.models[name] = (
            results[-1][0] if None in work[name] else FoldAverage([m for m, _ in results], samples.n_classes)
        )
        done.held_out.append(_held_out([scores for _, scores in results[:n_folds]], samples))
        if after is not None:
            after(name, done.held_out[-1])

    if deadline is None:
        results = _announced(tasks, pool.run(tasks), before)
        for name, folds in work.items():
            keep(name, [next(results) for _ in folds])
        next(results, None)  # the end of joblib's generator, which it cleans up at
        return done
    for name, folds in work.items():
        own = [(name, fold) for fold in folds]
        if done.models and pool.too_long(name, len(folds), deadline):
            done.left_out.append(name)
            continue
        began = time.perf_counter()
        first = list(_announced(own[:1], pool.run(own[:1]), before))
        needed = (time.perf_counter() - began) * (len(folds) - 1) / pool.n_jobs
        if done.models and time.perf_counter() + needed > deadline:
            done.left_out.append(name)
            continue
        keep(name, [*first, *_announced(own[1:], pool.run(own[1:]), before)])
    return done


def _announced(
    tasks: Sequence[tuple[str, int | None]],
    results: Iterable[Result],
    before: Callable[[str, int | None], None] | None,
) -> Iterator[Result]:
    def told() -> Iterator[None]:
        for task in tasks:
            if before is not None:
                before(*task)
            yield

    for _, result in zip(told(), results, strict=True):
        yield result


class _Pool:
    """Runs fits, each with the threads that are its share."""

    def __init__(
        self, models: dict[str, Any], samples: Samples, n_jobs: int | None, refit: bool | str, *, lazy: bool
    ) -> None:
        self.models, self.samples, self.refit = models, samples, refit
        self.n_jobs = effective_n_jobs(n_jobs)
        self.inner = _inner_threads(len(samples.codes), self.n_jobs)
        # Not every backend of joblib has generators, which only progress needs.
        self.parallel = Parallel(n_jobs=n_jobs, return_as="generator" if lazy else "list")

    def run(self, tasks: Sequence[tuple[str, int | None]]) -> Iterable[Result]:
        """Fits of models on folds, None being all data."""
        s = self.samples
        results: Iterable[Result] = self.parallel(
            delayed(_fit_one)(
                self.inner,
                clone(self.models[name]),
                s.parts[-1 if f is None else f],
                s.codes,
                s.n_classes,
                s.weight,
                *((s.counted, None) if f is None else s.folds[f]),
                not is_refitted(self.models[name], self.refit, len(s.folds)),
            )
            for name, f in tasks
        )
        return results

    def too_long(self, name: str, n_fits: int, deadline: float) -> bool:
        """Whether so many fits would end after the deadline, by one on an eighth of the rows of the first fold."""
        s = self.samples
        if time.perf_counter() > deadline:
            return True
        if len(s.codes) < TRIED or not s.folds:
            return False
        train = s.folds[0][0]
        some = np.zeros(len(train), dtype=bool)
        some[::8] = True
        some[np.unique(s.codes[train], return_index=True)[1]] = True
        rows = train[some]
        X = rows_of(s.parts[0], train, train=True)
        began = time.perf_counter()
        weight = None if s.weight is None else s.weight[rows]
        with threadpool_limits(self.inner), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_base(clone(self.models[name]), rows_of(X, np.flatnonzero(some), train=True), s.codes[rows], weight)
        now = time.perf_counter()
        return now + (now - began) * 8 * n_fits / self.n_jobs > deadline


def _held_out(scores: Sequence[Floats | None], samples: Samples) -> Floats:
    """``(N, C)``: the mean where a sample was held out more than once, NaN where it never was."""
    total = np.zeros((len(samples.codes), samples.n_classes))
    times = np.zeros((len(samples.codes), 1))
    for (_, test), own in zip(samples.folds, scores, strict=True):
        assert own is not None
        total[test] += own
        times[test] += 1
    return np.divide(total, times, out=np.full_like(total, np.nan), where=times > 0)


def _inner_threads(n_samples: int, n_processes: int) -> int:
    """Threads for each model: the cores that its process may have; one on few samples, where threads wait more than
    they work. Boosted trees on two threads of two busy cores took 2.5 minutes of the processor instead of 22 s.
    """
    return max(1, cpu_count() // n_processes) if n_samples >= MANY else 1


def _fit_one(inner: int, *work: Any) -> Result:
    """:func:`_fit_part` on so many threads."""
    with threadpool_limits(inner):
        return _fit_part(*work)


def _fit_part(
    model: Any,
    X: Any,
    codes: Ints,
    n_classes: int,
    weight: Floats | None,
    train: Ints,
    test: Ints | None,
    kept: bool,
) -> Result:
    """The model fitted on the rows ``train``, and its scores of the rows ``test``; one of a fold only if it is kept."""
    part = rows_of(X, None if test is None and len(train) == len(codes) else train, train=True)
    own = None if weight is None else weight[train]
    if test is None:
        return fit_base(model, part, codes[train], own), None
    # One warning per model, from the fit on all data, not one per fold. Filters belong to the whole process, so that
    # threads, which would leave them changed, leave them alone.
    alone = threading.current_thread() is threading.main_thread()
    with warnings.catch_warnings() if alone else nullcontext():
        if alone:
            warnings.simplefilter("ignore")
        fitted = fit_base(model, part, codes[train], own)
        return fitted if kept else None, class_scores(fitted, rows_of(X, test, train=False), n_classes)
