"""Train, and judge by rows that were not trained on: one hold-out, or cross-validation."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.decide import decisions_of
from mauc._tables.errors import Failure
from mauc._tables.holdout import group_folds
from mauc._tables.training import Round, Trainer
from mauc._typing import Floats, Ints
from mauc.model_selection import RareClassKFold, of_some_classes, some_of_each
from mauc.report import Judgement, judge

__all__ = ["Decided", "Judged", "cross_validate", "cv_folds", "hold_out"]

Fold = tuple[Ints, Ints]


@dataclass(frozen=True)
class Decided:
    """What the decisions on the test rows are worth, beside always deciding for the largest class."""

    decide: str
    accuracy: float
    balanced_accuracy: float
    largest: str
    """The class that most training rows have."""
    accuracy_of_largest: float
    balanced_accuracy_of_largest: float

    @classmethod
    def of(cls, decide: str, true: NDArray[Any], decided: NDArray[Any], trained: NDArray[Any]) -> "Decided":
        """Of true and decided classes of test rows, and the classes of training rows."""
        names, counts = np.unique(trained, return_counts=True)
        largest = names[counts.argmax()]
        there = np.unique(true)
        recalls = [float(np.mean(decided[true == c] == c)) for c in there]
        right, of_largest = float(np.mean(decided == true)), float(np.mean(true == largest))
        return cls(decide, right, float(np.mean(recalls)), str(largest), of_largest, 1.0 / len(there))


@dataclass(frozen=True, eq=False)
class Judged:
    """A model to write, and what the likes of it are worth."""

    final: Round
    """The training whose model is written."""
    found: Judgement
    rows: Ints
    """The test rows."""
    classes: NDArray[Any]
    """``(C,)``"""
    repeats: list[Floats]
    """``(n, C)`` scores of these rows by the model reported, one array for each repeat of cross-validation."""
    scores: dict[str, Any]
    """Of all models, as they were judged."""
    decided: Decided
    seen: Round
    """A training that did not see the rows ``unseen``; the final one, where it did not."""
    unseen: Ints
    lost: int
    """Rows that could not be judged: no training row has their class."""


def hold_out(trainer: Trainer, train: Ints, test: Ints, deadline: float, most_scores: int = 4_000_000) -> Judged:
    """Train on one part of the rows, judge by the other. The model judged is the one to write.

    Of hundreds of classes or more, the rows of some classes drawn at random are judged: pairs of classes are many, and
    every row has a score for every class.
    """
    labels = trainer.labels
    some = test[of_some_classes(labels[test], trainer.seed)]
    some = some[some_of_each(labels[some], max(1_000, most_scores // len(np.unique(labels))), trainer.seed)]
    trained = trainer.train(train, some, deadline)
    trainer.watch.does("judging by the test rows")
    scores = trained.test_scores
    decided = trained.classes[decisions_of(scores[trained.name], trained.decision)]
    groups = None if trainer.groups is None else trainer.groups[some]
    found = judge(labels[some], scores, labels=trained.classes, y_train=labels[train], y_pred=decided, groups=groups)
    lost = len(labels) - len(train) - len(some)
    worth = Decided.of(trainer.decide, labels[some], decided, labels[train])
    repeats = [scores[trained.name]]
    return Judged(trained, found, some, trained.classes, repeats, scores, worth, trained, some, lost)


def cv_folds(labels: Any, groups: Any, n_folds: int, n_repeats: int, seed: int) -> list[list[Fold]]:
    """Folds of each repeat: stratified, with every class in every training part; or of whole groups."""
    if groups is None:
        return [list(RareClassKFold(n_folds, random_state=seed + k).split(labels, labels)) for k in range(n_repeats)]
    found = [group_folds(labels, groups, n_folds, seed + k) for k in range(n_repeats)]
    if not all(found):
        raise Failure("--cv needs two groups or more, and two classes in a group: add groups, or leave --group out")
    return found


def cross_validate(trainer: Trainer, repeats: Sequence[Sequence[Fold]], deadline: float) -> Judged:
    """Judge by the scores of every row, each by models that did not see it; then train on all rows.

    The time is shared by all trainings. What is judged is what each fold would write; a model that is not in every fold
    is left out of the comparison.
    """
    labels, classes = trainer.labels, np.unique(trainer.labels)
    n_trainings = sum(map(len, repeats)) + 1
    done: list[tuple[Round, Ints]] = []
    kept = _Kept(len(labels), classes, len(repeats))
    for k, folds in enumerate(repeats):
        for train, test in folds:
            trainer.watch.under(f"training {len(done) + 1} of {n_trainings}: ")
            trained = trainer.train(train, test, _share(deadline, n_trainings - len(done)))
            done.append((trained, test))
            kept.add(k, test, trained)
    rows, scores = kept.complete()
    decided = classes[kept.decided[0][rows]]
    groups = None if trainer.groups is None else trainer.groups[rows]
    found = judge(labels[rows], scores, labels=classes, y_train=labels, y_pred=decided, groups=groups)
    name = next(iter(scores))
    trainer.watch.under(f"training {n_trainings} of {n_trainings}: ")
    seen, unseen = max(done, key=lambda fold: len(np.unique(labels[fold[1]])))
    final = trainer.train(np.arange(len(labels)), unseen, _share(deadline, 1))
    worth = Decided.of(trainer.decide, labels[rows], decided, labels)
    lost = len(labels) - len(rows)
    return Judged(final, found, rows, classes, scores[name], scores, worth, seen, unseen, lost)


def _share(deadline: float, n_trainings: int) -> float:
    """When the next of so many trainings must end."""
    now = time.monotonic()
    return now + (deadline - now) / n_trainings


class _Kept:
    """Scores of all rows by models that did not see them."""

    def __init__(self, n_rows: int, classes: NDArray[Any], n_repeats: int) -> None:
        self.classes, self.shape, self.n_repeats = classes, (n_rows, len(classes)), n_repeats
        self.scores: dict[str, list[Floats]] = {}
        self.decided = [np.full(n_rows, -1) for _ in range(n_repeats)]
        self.winners: set[str] = set()

    def add(self, repeat: int, test: Ints, trained: Round) -> None:
        """What one training says of the rows that it did not see."""
        columns = np.searchsorted(self.classes, trained.classes)
        self.winners.add(trained.name)
        chosen = {"": trained.test_scores[trained.name]}
        for name, values in {**chosen, **trained.test_scores}.items():
            arrays = self.scores.setdefault(name, [np.full(self.shape, np.nan) for _ in range(self.n_repeats)])
            arrays[repeat][test] = 0.0
            arrays[repeat][np.ix_(test, columns)] = values
        self.decided[repeat][test] = columns[decisions_of(trained.test_scores[trained.name], trained.decision)]

    def complete(self) -> tuple[Ints, dict[str, list[Floats]]]:
        """The rows that were scored, and the scores of models that scored all of them, those of the choice first."""
        unknown = {
            name: np.any([np.isnan(array[:, 0]) for array in arrays], axis=0) for name, arrays in self.scores.items()
        }
        rows = np.flatnonzero(~unknown[""])
        (name,) = self.winners if len(self.winners) == 1 else ["the model chosen in each fold"]
        chosen = {name: [array[rows] for array in self.scores[""]]}
        others = {
            other: [array[rows] for array in arrays]
            for other, arrays in self.scores.items()
            if other not in ("", name) and not unknown[other][rows].any()
        }
        return rows, {**chosen, **others}
