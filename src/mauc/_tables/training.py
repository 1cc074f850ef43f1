"""Train on some rows of a table: the stack, or one linear model that the user names."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mauc._tables.decide import Decision, learn_decision
from mauc._tables.errors import Failure
from mauc._tables.features import make_features
from mauc._tables.holdout import by_time, group_folds
from mauc._tables.leaderboard import FREQUENCIES, STACK, Entry, Leaderboard, Moment, Silent, in_full
from mauc._tables.models import Choice, describe, make_classifier
from mauc._tables.read import Table
from mauc._typing import Floats, Ints
from mauc.ensemble import MAUCStackingClassifier, TableColumns
from mauc.ensemble.combination import Combination
from mauc.ensemble.fitting import Fits
from mauc.ensemble.workers import Workers

__all__ = ["Round", "Trainer"]


@dataclass(frozen=True, eq=False)
class Round:
    """What one training gave."""

    features: Any
    """From a table to numbers, fitted."""
    classifier: Any
    """The model to write."""
    about: str
    """It in a few words, with its parameters."""
    test_scores: dict[str, Floats]
    """``(n, C)`` of each model by name, that to write first, for the test rows."""
    decision: Decision | None = None
    board: Leaderboard | None = None

    @property
    def name(self) -> str:
        """Of the model to write."""
        return next(iter(self.test_scores))

    @property
    def classes(self) -> NDArray[Any]:
        """``(C,)``, the same for all models."""
        return np.asarray(self.classifier.classes_)


@dataclass(frozen=True, eq=False)
class Trainer:
    """The rows of a table, and what to train on them."""

    table: Table
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    times: NDArray[Any] | None
    choice: Choice | None
    """None: the stack."""
    effort: Literal["quick", "normal", "best"]
    decide: str
    costs: Floats | None
    seed: int
    watch: Silent
    workers: Workers | None
    order: tuple[str, ...] | None = None
    """The classes from the lowest to the highest, where they have an order."""

    def train(self, rows: Ints, test: Ints, deadline: float) -> Round:
        """On these rows alone, until a deadline in the seconds of :func:`time.monotonic`; the test rows are scored."""
        if self.choice is not None:
            return self._one(rows, test, self.choice)
        labels = self.labels[rows]
        features = TableColumns(self.seed)
        self.watch.does(f"making numbers of {self.table.shape[1]} columns")
        X = features.fit_transform(self.table.iloc[rows])
        if X.shape[1] == 0:
            raise Failure("every column is empty in the training rows: a model needs one that holds values")
        stack = MAUCStackingClassifier(
            effort=self.effort,
            columns=None,
            calibrate="normalized",
            random_state=self.seed,
            cv=self._cv(rows),
            ordinal=None if self.order is None else [name for name in self.order if name in set(labels)],
        )
        extra = features.transform(self.table.iloc[test])
        told = _Told(self.watch)
        fits = stack._train(
            X,
            labels,
            groups=self._groups(rows),
            extra=extra,
            layout=features.layout(),
            deadline=deadline,
            workers=self.workers,
            watch=told,
        )
        return self._round(stack, fits, features, labels, rows)

    def _round(
        self, stack: MAUCStackingClassifier, fits: Fits, features: Any, labels: NDArray[Any], rows: Ints
    ) -> Round:
        names = list(stack.named_estimators_)
        shares = np.array([np.mean(labels == c) for c in stack.classes_])
        own = {name: fits.extra(name) for name in names}
        scores = stack._probabilities(stack._combination.scores(np.array(list(own.values()))))
        used = [name for name, needed in zip(names, stack._combination.used, strict=True) if needed]
        winner = STACK if len(used) > 1 else in_full(used[0])
        test_scores = {winner: scores}
        test_scores |= {in_full(name): values for name, values in own.items() if in_full(name) != winner}
        test_scores[FREQUENCIES] = np.tile(shares, (len(scores), 1))
        board = _board(stack, used, winner, self._how(rows))
        held_out = np.flatnonzero(~np.isnan(stack.oof_combination_[:, 0]))
        codes = np.searchsorted(stack.classes_, labels[held_out])
        out_of_fold = stack._probabilities(stack.oof_combination_[held_out])
        decision = learn_decision(out_of_fold, codes, shares, self.decide, self.costs, seed=self.seed)
        return Round(features, _shipped(stack), board.tried[0].about, test_scores, decision, board)

    def _one(self, rows: Ints, test: Ints, choice: Choice) -> Round:
        """The linear model that the user named: its scores rank, and are no probabilities."""
        features = make_features(self.seed)
        X = np.asarray(features.fit_transform(self.table.iloc[rows]), dtype=np.float64)
        classifier, labels = make_classifier(choice), self.labels[rows]
        n_folds = getattr(classifier, "cv", None)
        groups = self._groups(rows)
        if n_folds is not None and groups is not None:
            classifier.set_params(cv=group_folds(labels, groups, n_folds, self.seed))
        classifier.fit(X, labels)
        if n_folds is not None:
            # Rows of the training table have no place in the model's file.
            classifier.set_params(cv=n_folds)
        about = describe(classifier)
        scores = np.asarray(classifier.predict_proba(features.transform(self.table.iloc[test])))
        return Round(features, classifier, about, {about.partition(":")[0]: scores})

    def _groups(self, rows: Ints) -> NDArray[Any] | None:
        """Those of the rows, unless no class is in two of them."""
        if self.groups is None or not group_folds(self.labels[rows], self.groups[rows], 3, self.seed):
            return None
        return self.groups[rows]

    def _cv(self, rows: Ints) -> Any:
        """The latest rows hold out where the table has times; else what the planner wants."""
        if self.times is None:
            return None
        try:
            return [by_time(self.labels[rows], self.times[rows], 0.2)]
        except Failure:
            return None  # too few moments: any rows will do

    def _how(self, rows: Ints) -> str:
        """By which rows the winner is chosen, in words."""
        if self._cv(rows) is not None:
            return "the latest fifth of the training rows"
        return "whole groups of the training rows" if self._groups(rows) is not None else "the training rows"


def _board(stack: MAUCStackingClassifier, used: list[str], winner: str, how: str) -> Leaderboard:
    members = [
        Entry(in_full(name), _about(stack, name), stack.oof_scores_[name], stack.seconds_[name], stack.weights_[name])
        for name in stack.named_estimators_
        if in_full(name) != winner
    ]
    seconds = sum(stack.seconds_.values()) if winner == STACK else stack.seconds_[used[0]]
    about = f"MAUCStackingClassifier: {', '.join(used)}"
    ship = Entry(winner, about, stack.oof_scores_["combination"], seconds)
    rows = int((~np.isnan(stack.oof_combination_[:, 0])).sum())
    cut = tuple(f"{in_full(name)} {why}" for name, why in stack.cut_.items())
    frequencies = Entry(FREQUENCIES, "the share of each class", 0.5, 0.0)
    return Leaderboard((frequencies, *members, ship), winner, f"{rows} validation rows, held out from {how}", cut)


def _about(stack: MAUCStackingClassifier, name: str) -> str:
    model = stack.named_estimators_[name]
    first = model.estimators[0] if hasattr(model, "estimators") else model
    return type(first.steps[-1][1] if hasattr(first, "steps") else first).__name__


def _shipped(stack: MAUCStackingClassifier) -> MAUCStackingClassifier:
    """As a model file has it: without scores and numbers of training rows, and without models that have no say."""
    kept = np.flatnonzero(stack._combination.used)
    names = [list(stack.named_estimators_)[k] for k in kept]
    stack.named_estimators_ = {name: stack.named_estimators_[name] for name in names}
    stack.weights_ = {name: stack.weights_[name] for name in names}
    before = stack._combination
    stack._combination = Combination(before.weights[kept], before.floors, before.share)
    for name in ("oof_model_scores_", "oof_combination_", "seconds_", "cut_"):
        delattr(stack, name)
    return stack.set_params(cv=None)


class _Told:
    """Passes on what the stack tells."""

    def __init__(self, watch: Silent) -> None:
        self.watch, self.done = watch, list[Entry]()

    def begins(self, name: str, step: str) -> None:
        """A fit begins."""
        best = max(self.done, key=lambda entry: np.nan_to_num(entry.validation), default=None)
        self.watch.begins(Moment(in_full(name), step, best))

    def ends(self, name: str, score: float, seconds: float) -> None:
        """A model is complete."""
        self.done.append(Entry(in_full(name), "", score, seconds))
        self.watch.ends(self.done[-1])
