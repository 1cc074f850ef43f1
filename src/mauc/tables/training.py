"""Train what was asked for on any part of the rows of a table: one model, or all that are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.model_selection import RareClassKFold
from mauc.tables.candidates import CANDIDATES, Fold
from mauc.tables.durations import Size, seconds_of
from mauc.tables.errors import Failure
from mauc.tables.features import make_features
from mauc.tables.holdout import by_time, group_folds, some_of_each
from mauc.tables.leaderboard import Leaderboard, Silent, compare_candidates
from mauc.tables.models import Choice, describe, make_classifier
from mauc.tables.read import Table

__all__ = ["CHOSEN", "Round", "Trainer"]

CHOSEN = "the model chosen in each fold"
N_FOLDS = 5
MOST_ROWS_FOR_FOLDS = 10_000
MOST_VALIDATION_ROWS = 20_000
VALIDATION_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Round:
    """What one training gave: columns as numbers, and models by name, the chosen one first."""

    features: Any
    models: dict[str, Any]
    about: str
    """The chosen one in a few words, with its parameters."""
    board: Leaderboard | None = None

    @property
    def name(self) -> str:
        """Of the chosen model."""
        return next(iter(self.models))

    @property
    def classifier(self) -> Any:
        """The chosen model."""
        return self.models[self.name]

    @property
    def classes(self) -> NDArray[Any]:
        """``(C,)``, the same for all models."""
        return np.asarray(self.classifier.classes_)

    def scores(self, table: Table) -> dict[str, Floats]:
        """``(N, C)`` of each model, columns in the order of its classes."""
        X = self.features.transform(table)
        return {name: np.asarray(model.predict_proba(X)) for name, model in self.models.items()}


@dataclass(frozen=True, eq=False)
class Trainer:
    """The rows of a table, and what to train on them."""

    table: Table
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    times: NDArray[Any] | None
    choice: Choice | None
    """None: compare the candidates."""
    seed: int
    watch: Silent

    def train(self, rows: Ints, seconds: float, only: str | None = None) -> Round:
        """On these rows alone; ``seconds`` limit the comparison of candidates, of which ``only`` names a single one."""
        labels = self.labels[rows]
        groups = None if self.groups is None else self.groups[rows]
        features = make_features(self.seed)
        X = np.asarray(features.fit_transform(self.table.iloc[rows]), dtype=np.float64)
        if self.choice is not None:
            classifier = _fitted(make_classifier(self.choice), X, labels, groups, self.seed)
            about = describe(classifier)
            return Round(features, {about.partition(":")[0]: storable(classifier)}, about)
        times = None if self.times is None else self.times[rows]
        folds, how = _validation_folds(X, labels, groups, times, self.seed, seconds)
        candidates = [each for each in CANDIDATES if only in (None, each.name)]
        board, models = compare_candidates(
            X, labels, folds, seconds=seconds, seed=self.seed, chosen_by=how, watch=self.watch, candidates=candidates
        )
        if not models:
            raise Failure(f"the {only} {board.entries[0].left_out}: raise --time-limit, or leave --refit out")
        kept = {name: storable(model) for name, model in models.items()}
        return Round(features, kept, board.tried[0].about, board)


def _fitted(classifier: Any, X: Floats, labels: NDArray[Any], groups: NDArray[Any] | None, seed: int) -> Any:
    n_folds = getattr(classifier, "cv", None)
    folds = [] if groups is None or n_folds is None else group_folds(labels, groups, n_folds, seed)
    if not folds:
        return classifier.fit(X, labels)
    # Rows of the training table have no place in the model's file.
    return classifier.set_params(cv=folds).fit(X, labels).set_params(cv=n_folds)


def storable(classifier: Any) -> Any:
    """As a model file has it: without torch, and without scores of training rows."""
    if type(classifier).__name__ == "MAUCMLPClassifier":
        from mauc.tables.array_mlp import as_arrays

        return as_arrays(classifier)
    for name in ("oof_model_scores_", "oof_combination_"):
        vars(classifier).pop(name, None)
    return classifier


def _validation_folds(
    X: Floats, labels: NDArray[Any], groups: Any, times: Any, seed: int, seconds: float
) -> tuple[list[Fold], str]:
    """Rows to fit and to hold out, within the training rows, and how, in words.

    The latest rows where the table has times; whole groups where it has groups; five folds where that is quick, else
    the first of them.
    """
    if times is not None:
        try:
            return [by_time(labels, times, VALIDATION_SHARE)], "the latest fifth of the training rows"
        except Failure:
            pass  # too few moments: any rows will do
    folds = [] if groups is None else group_folds(labels, groups, N_FOLDS, seed)
    kind = "whole groups of the training rows" if folds else "the training rows"
    if not folds:
        folds = list(RareClassKFold(N_FOLDS, random_state=seed).split(X, labels))
    folds = [(a, b) for a, b in folds if len(np.unique(labels[a])) > 1 and len(np.unique(labels[b])) > 1]
    size = Size(X.shape[0], X.shape[1], len(np.unique(labels)))
    if folds and (len(labels) > MOST_ROWS_FOR_FOLDS or (len(folds) + 1) * seconds_of("lr", size) > 0.2 * seconds):
        train, test = max(folds, key=lambda fold: len(np.unique(labels[fold[1]])))
        some = test[some_of_each(labels[test], MOST_VALIDATION_ROWS, seed)]
        return [(train, some)], f"held out from {kind.removeprefix('whole groups of ')}"
    return folds, f"cross-validation of {kind}"
