"""Train the stack on some rows of a table, and evaluate it on others.

The model to write is chosen on validation rows, which are part of the training rows. The test rows play no part in the
choice, so the score on them is not too good.
"""

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mauc._tables.data import Data, Split, by_time, stratified
from mauc._tables.decide import Decision, decisions_of, learn_decision
from mauc._tables.errors import Failure, Usage, option_name
from mauc._tables.options import Options
from mauc._typing import Floats, Ints
from mauc.ensemble import MAUCStackingClassifier, TableColumns
from mauc.ensemble.combination import Combination, OutOfFold
from mauc.ensemble.fitting import Fits, InProcess, TrainingData, Watch, fit_all_rows
from mauc.ensemble.planner import Member
from mauc.ensemble.workers import LATE, STOPPED, Workers
from mauc.model_selection import RareClassKFold, group_folds, of_some_classes, some_of_each
from mauc.report import Judgement, judge

FREQUENCIES = "class frequencies"
STACK = "stack of models"
NAMES = {
    "starter": "small forest",
    "et": "extra trees",
    "lr": "logistic regression",
    "hgb": "boosted trees",
    "hgb_deep": "deep boosted trees",
    "rf": "random forest",
    "rf_deep": "deep random forest",
    "mauc": "linear MAUC model",
    "kernel": "kernel MAUC model",
    "et_deep": "deep extra trees",
    "mlp": "perceptron",
    "lr_strong": "logistic regression with a strong penalty",
    "odds": "proportional odds",
    "odds_kernel": "proportional odds on a kernel",
    "combination": "combination of the models",
}


def full_name(name: str) -> str:
    """Return the name of a member of the stack as people read it."""
    return NAMES.get(name, name)


@dataclass(frozen=True)
class Entry:
    """A model of the leaderboard."""

    name: str
    validation: float
    """Multiclass AUC on training rows that were held out from it; NaN if there is none."""
    seconds: float
    """Time of all its fits."""
    weight: float = math.nan
    """Weight in the stack."""


@dataclass(frozen=True)
class Leaderboard:
    """The models that were trained, which one is written, and what the time limit cut."""

    entries: tuple[Entry, ...]
    """The winner first, then by falling validation score."""
    winner: str
    about: str
    """The winner in words, with the members that it uses."""
    chosen_by: str
    """How the winner was chosen, in words."""
    cut: tuple[str, ...] = ()
    """What the time limit cut, or what failed, in words; if empty, another machine gives the same model."""


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of one training."""

    classifier: Any
    """The model to write, which takes tables."""
    test_scores: dict[str, Floats]
    """``(n, C)`` scores of the test rows by name of the model, in the order of the leaderboard."""
    decision: Decision
    board: Leaderboard
    members: tuple[Member, ...]
    """The models that the classifier uses, not fitted."""
    n_rows: int
    """Rows that it was trained on."""

    @property
    def classes(self) -> NDArray[Any]:
        """``(C,)``, the same for all models."""
        return np.asarray(self.classifier.classes_)


@dataclass(frozen=True, eq=False)
class Trainer:
    """Train on some rows of the data, and score others."""

    data: Data
    options: Options
    costs: Floats | None
    """``(C, C)`` for all classes of the table."""
    progress: Watch
    workers: Workers

    def train(self, rows: Ints, test: Ints, deadline: float, alike: Trained | None = None) -> Trained:
        """Train on these rows until a deadline, in the seconds of :func:`time.monotonic`; score the test rows.

        Whether scores are divided by their row sum is chosen on validation rows, or is as in the training ``alike``.
        """
        data, options, began = self.data, self.options, time.monotonic()
        labels, table = data.labels[rows], data.features.iloc[rows]
        if not table.notna().to_numpy().any():
            raise Failure("every column is empty in the training rows: a model needs one that holds values")
        self.progress.step(f"preparing {table.shape[1]} columns")
        groups = self._groups(rows)
        n_enough = int((np.unique(labels, return_counts=True)[1] > 1).sum())
        if groups is None and n_enough < 2:
            requirement = f"at least two classes of {option_name('target')} {data.target!r} need two training rows each"
            raise Failure(f"{requirement}, got {n_enough} such classes: add rows to each class")
        split, known = self._split(rows, groups), set(np.unique(labels).tolist())
        stack = MAUCStackingClassifier(
            effort=options.effort,
            columns=TableColumns(options.seed),
            calibrate=True if alike is None else alike.classifier.calibrate,
            random_state=options.seed,
            cv=split,
            ordinal=None if data.order is None else [name for name in data.order if name in known],
        )
        fits = stack._train(
            table,
            labels,
            groups=groups,
            extra=data.features.iloc[test],
            deadline=deadline,
            workers=self.workers,
            watch=self.progress,
        )
        held_out, oof_scores = stack._oof_combination()
        codes = np.searchsorted(stack.classes_, labels[held_out])
        if alike is None:
            _choose_calibration(stack, oof_scores, codes)
        names = list(stack.named_estimators_)
        scores = {name: fits.extra(name) for name in names}
        combined = stack._probabilities(stack._combination.scores(np.array(list(scores.values()))))
        used = [name for name, needed in zip(names, stack._combination.used, strict=True) if needed]
        winner = STACK if len(used) > 1 else full_name(used[0])
        shares = np.unique(labels, return_counts=True)[1] / len(labels)
        out_of_fold = stack._probabilities(oof_scores)
        places = np.searchsorted(np.unique(data.labels), stack.classes_)
        costs = None if self.costs is None else self.costs[np.ix_(places, places)]
        # A tenth of the time more: the rest is for the test, importance and the fit on all rows.
        until = deadline + 0.1 * (deadline - began)
        learn = partial(learn_decision, out_of_fold, codes, shares, options.decide, costs, seed=options.seed)
        decision = self._decision(stack, until, learn)
        source = "the latest fifth of the training rows"
        if data.times is None or split is None:
            rows_or_groups = "training rows" if groups is None else "whole groups of training rows"
            source = f"{rows_or_groups}, scored by models that were not trained on them"
        board = _leaderboard(stack, used, winner, f"{len(held_out):,} validation rows ({source})")
        test_scores = {full_name(name): values for name, values in scores.items()}
        test_scores |= {winner: combined, FREQUENCIES: np.tile(shares, (len(test), 1))}
        test_scores = {entry.name: test_scores[entry.name] for entry in board.entries}
        members = tuple(fits.members[name] for name in used)
        return Trained(_stripped(stack), test_scores, decision, board, members, len(rows))

    def _decision(
        self, stack: MAUCStackingClassifier, deadline: float, learn: Callable[..., Decision], most_classes: int = 40
    ) -> Decision:
        """Learn how to decide, by :func:`learn_decision`; at the deadline a rule from the probabilities decides."""
        few_seconds, n_classes = self.options.few_seconds, len(stack.classes_)
        learn = partial(learn, most_rows=500 if few_seconds else None)
        # Up to half a second of work stays in this process; a child can be ended.
        quick = few_seconds or n_classes > most_classes or len(stack.oof_rows_) * n_classes**3 < 2e6
        runner = InProcess() if quick else self.workers
        if not (few_seconds and n_classes > 10):
            for answer in runner.run([partial(learn, most_classes=most_classes)], deadline):
                if answer.error is not None:
                    raise answer.error
                return cast(Decision, answer.value)
        reason = STOPPED if runner.stopped else LATE
        stack.cut_["the choice of predicted classes"] = f"{reason}: a rule from the probabilities alone decides"
        return learn(most_classes=0)

    def fit_again(self, trained: Trained, deadline: float) -> Trained:
        """Fit the models of the stack again on all rows, until a deadline; columns, weights and decision stay.

        Rows of a class that the training rows do not have are left out. A model that is not ready stays as it is.
        """
        stack = copy.copy(trained.classifier)
        rows = np.flatnonzero(np.isin(self.data.labels, stack.classes_))
        data = TrainingData(
            X=stack.columns_.transform(self.data.features.iloc[rows]),
            codes=np.searchsorted(stack.classes_, self.data.labels[rows]),
            n_classes=len(stack.classes_),
            weight=None,
            groups=None,
            used_rows=np.arange(len(rows)),
            folds=[],
            seed=self.options.seed,
        )
        # A member that got a sample of the training rows gets a sample of the same size.
        members = [replace(each, rows=len(rows)) if each.rows >= trained.n_rows else each for each in trained.members]
        fits = Fits()
        fit_all_rows(members, data, fits, self.workers, deadline, self.progress, "kept as it was tested")
        models = {name: fit.model for name, fit in fits.full.items()}
        stack.named_estimators_ = stack.named_estimators_ | models
        board = replace(trained.board, cut=_cut_in_words(fits.cut))
        return replace(trained, classifier=stack, board=board, n_rows=len(rows) if models else trained.n_rows)

    def _groups(self, rows: Ints) -> NDArray[Any] | None:
        """Return the groups of the rows; None if fewer than two classes are in two groups."""
        if self.data.groups is None:
            return None
        groups = self.data.groups[rows]
        groups_of_class = pd.Series(groups).groupby(self.data.labels[rows]).nunique()
        return groups if (groups_of_class > 1).sum() > 1 else None

    def _split(self, rows: Ints, groups: NDArray[Any] | None, many_rows: int = 500) -> list[Split] | None:
        """Return one split, by time or within a few seconds; None for the folds of the planner."""
        labels, times = self.data.labels[rows], self.data.times
        if times is not None:
            try:
                return [by_time(labels, times[rows], 0.2)]
            except Failure:
                return None  # too few times
        if self.options.few_seconds and groups is None and len(rows) > many_rows:
            train, test = stratified(labels, 0.25, self.options.seed)
            return [(train, test[of_some_classes(labels[test], self.options.seed)])]
        return None


def _choose_calibration(stack: MAUCStackingClassifier, oof_scores: Floats, codes: Ints) -> None:
    """Divide the scores by their row sum if this ranks the validation rows better, by a standard error.

    Probabilities among all classes favour frequent classes. Measured by hand on 21 splits of 19 development tables, on
    which this rule was also chosen: divided scores lose 0.2 points of test MAUC x 100 on average, and 2.3 at most. The
    rule divides on four of them, which gain 0.06 to 0.24. More than 500 classes are not calibrated.
    """
    if len(stack.classes_) > 500:
        return
    by_class = stack._probabilities(oof_scores)
    by_row = by_class / by_class.sum(axis=1, keepdims=True)
    found = OutOfFold(by_class[None], codes, None, np.zeros(len(stack.classes_)))
    if found.is_ahead(by_row, by_class, "ovo", 1.0):
        stack.set_params(calibrate="normalized")


def _leaderboard(stack: MAUCStackingClassifier, used: list[str], winner: str, chosen_by: str) -> Leaderboard:
    members = [
        Entry(full_name(name), stack.oof_scores_[name], stack.seconds_[name], stack.weights_[name])
        for name in stack.named_estimators_
        if full_name(name) != winner
    ]
    members.append(Entry(FREQUENCIES, 0.5, 0.0))
    seconds = sum(stack.seconds_.values()) if winner == STACK else stack.seconds_[used[0]]
    # A single model has one validation score, here and while it was trained.
    validation = stack.oof_scores_["combination" if winner == STACK else used[0]]
    members.sort(key=lambda entry: -1.0 if math.isnan(entry.validation) else entry.validation, reverse=True)
    about = f"MAUCStackingClassifier: {', '.join(map(full_name, used))}"
    cut = _cut_in_words(stack.cut_)
    return Leaderboard((Entry(winner, validation, seconds), *members), winner, about, chosen_by, cut)


def _cut_in_words(cut: dict[str, str]) -> tuple[str, ...]:
    """Return one sentence for each reason, with the models that it holds for."""
    reasons: dict[str, list[str]] = {}
    for name, reason in cut.items():
        reasons.setdefault(reason, []).append(full_name(name))
    return tuple(
        f"{names[0]} {reason}" if len(names) == 1 else f"{', '.join(names)} {reason.replace('was ', 'were ', 1)}"
        for reason, names in reasons.items()
    )


def _stripped(stack: MAUCStackingClassifier) -> MAUCStackingClassifier:
    """Remove what predictions do not need, in place: unused models and the scores of training rows."""
    used = np.flatnonzero(stack._combination.used)
    names = [list(stack.named_estimators_)[k] for k in used]
    stack.named_estimators_ = {name: stack.named_estimators_[name] for name in names}
    stack.weights_ = {name: stack.weights_[name] for name in names}
    before = stack._combination
    stack._combination = Combination(before.weights[used], before.floors, before.share)
    for name in ("oof_rows_", "oof_model_scores_", "oof_combination_", "seconds_", "cut_"):
        delattr(stack, name)
    return stack.set_params(cv=None)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The model to save, and test scores: its own (hold-out), or those of the fold models (cross-validation)."""

    final: Trained
    """The training whose model is written."""
    judgement: Judgement
    rows: Ints
    """The test rows."""
    classes: NDArray[Any]
    """``(C,)``"""
    scores: Floats
    """``(n, C)`` scores of the model reported."""
    predicted: NDArray[Any]
    """``(n,)`` classes that it predicts."""
    probe: Trained
    """A model that was not trained on ``probe_rows``; permutation importance uses it."""
    probe_rows: Ints
    n_untested: int
    """Held-out rows that were not tested."""


def evaluate_holdout(
    trainer: Trainer, train: Ints, test: Ints, deadline: float, n_unknown: int = 0, most_scores: float = 4_000_000
) -> Evaluation:
    """Train on one part of the rows, and test the model to write on the other.

    ``n_unknown`` is the number of rows that no part has, because their class is in no training row.

    With hundreds of classes or more, only the rows of some classes, drawn at random, are tested: class pairs are many,
    and every row has a score for every class.
    """
    data, seed = trainer.data, trainer.options.seed
    labels = data.labels
    some = test[of_some_classes(labels[test], seed)]
    most_scores = min(most_scores, 1e5 * trainer.options.time_limit)  # their evaluation has no deadline of its own
    some = some[some_of_each(labels[some], max(1_000, int(most_scores) // len(np.unique(labels))), seed)]
    trained = trainer.train(train, some, deadline)
    trainer.progress.step("scoring the test rows")
    scores, classes = trained.test_scores, trained.classes
    own = scores[trained.board.winner]
    predicted = classes[decisions_of(own, trained.decision)]
    groups = None if data.groups is None else data.groups[some]
    found = judge(labels[some], scores, labels=classes, y_train=labels[train], y_pred=predicted, groups=groups)
    n_untested = n_unknown + len(test) - len(some)
    return Evaluation(trained, found, some, classes, own, predicted, trained, some, n_untested)


def cv_folds(labels: Any, groups: Any, n_folds: int, seed: int) -> list[Split]:
    """Return folds of whole groups, or stratified ones with every class in every training part."""
    if groups is None:
        counts = np.unique(labels, return_counts=True)[1]
        most = int(counts[counts > 1].sum())  # the only row of a class is never held out
        if n_folds > most:
            raise Usage(
                f"{option_name('cv')} must be at most {most:,}, the number of rows to test on, got {n_folds:,}: use "
                "fewer folds"
            )
        return list(RareClassKFold(n_folds, random_state=seed).split(labels, labels))
    folds = group_folds(labels, groups, n_folds, seed)
    tested = {label for _, test in folds for label in labels[test]}
    if len(tested) < 2:
        raise Failure(
            f"{option_name('cv')} needs two classes that are in two groups or more: add groups, or leave "
            f"{option_name('group')} out"
        )
    return folds


def cross_validate(trainer: Trainer, folds: Sequence[Split], deadline: float) -> Evaluation:
    """Score every row by models that did not see it; then train on all rows.

    All trainings share the time. Each fold contributes the model it would write; a model that is not in every fold is
    left out of the comparison. The first fold chooses whether scores are divided by their row sum, for scores of both
    kinds cannot be ranked together. After Ctrl-C only finished folds count, and the model of the first is the result.
    """
    data, labels, progress = trainer.data, trainer.data.labels, trainer.progress
    classes = np.unique(labels)
    n_trainings = len(folds) + 1
    chosen = np.full((len(labels), len(classes)), np.nan)
    others: dict[str, Floats] = {}
    predicted = np.zeros(len(labels), dtype=np.int64)
    done: list[tuple[Trained, Ints]] = []
    cut: list[str] = []

    def stopped() -> bool:
        tested = {label for _, each in done for label in labels[each]}
        return trainer.workers.stopped and len(tested) > 1

    for train, test in folds:
        if stopped():
            break
        progress.prefix = f"training {len(done) + 1} of {n_trainings}: "
        first = done[0][0] if done else None
        trained = trainer.train(train, test, _next_deadline(deadline, n_trainings - len(done)), first)
        if stopped():
            break  # this fold has not all models
        columns = np.searchsorted(classes, trained.classes)
        own = trained.test_scores[trained.board.winner]
        predicted[test] = columns[decisions_of(own, trained.decision)]
        cut += [f"in fold {len(done) + 1}, {reason}" for reason in trained.board.cut]
        pairs = [
            (others.setdefault(name, np.full_like(chosen, np.nan)), each) for name, each in trained.test_scores.items()
        ]
        for array, values in [*pairs, (chosen, own)]:
            array[test] = 0.0
            array[np.ix_(test, columns)] = values
        done.append((trained, test))
    others[FREQUENCIES][:] = 0.5  # constant scores; those of different folds would not be
    rows = np.flatnonzero(~np.isnan(chosen[:, 0]))
    winners = {trained.board.winner for trained, _ in done}
    name = winners.pop() if len(winners) == 1 else "the model chosen in each fold"
    scores = {name: chosen[rows]}
    scores |= {
        other: array[rows] for other, array in others.items() if other != name and not np.isnan(array[rows]).any()
    }
    groups = None if data.groups is None else data.groups[rows]
    decided = classes[predicted[rows]]
    found = judge(labels[rows], scores, labels=classes, y_train=labels, y_pred=decided, groups=groups)
    progress.prefix = f"training {n_trainings} of {n_trainings}: "
    probe, probe_rows = max(done, key=lambda fold: len(np.unique(labels[fold[1]])))
    final = done[0][0]
    if not trainer.workers.stopped:
        last = trainer.train(np.arange(len(labels)), probe_rows, _next_deadline(deadline, 1), final)
    if trainer.workers.stopped:
        cut.append(f"Ctrl-C left {len(done)} of {len(folds)} folds, and the model of fold 1 as the result")
    else:
        final, cut = last, [*cut, *last.board.cut]
    final = replace(final, board=replace(final.board, cut=tuple(cut)))
    return Evaluation(final, found, rows, classes, chosen[rows], decided, probe, probe_rows, len(labels) - len(rows))


def _next_deadline(deadline: float, n_trainings: int) -> float:
    """Return the deadline of the next training: an equal share of the time left."""
    now = time.monotonic()
    return now + (deadline - now) / n_trainings
