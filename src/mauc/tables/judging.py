"""Train, and judge by rows that were not trained on: one hold-out, or cross-validation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.model_selection import RareClassKFold
from mauc.report import Judgement, judge
from mauc.tables.candidates import Fold
from mauc.tables.errors import Failure
from mauc.tables.holdout import group_folds
from mauc.tables.training import CHOSEN, Round, Trainer

__all__ = ["Judged", "cross_validate", "cv_folds", "hold_out"]


@dataclass(frozen=True, eq=False)
class Judged:
    """A model to write, and what the likes of it are worth."""

    final: Round
    """The training whose model is written."""
    found: Judgement
    rows: Ints
    """Those judged by."""
    classes: NDArray[Any]
    """``(C,)``"""
    repeats: list[Floats]
    """``(n, C)`` scores of these rows by the model reported, one array for each repeat of cross-validation."""
    seen: Round
    """A training that did not see the rows ``unseen``; the final one, where it did not."""
    unseen: Ints
    lost: int
    """Rows that could not be judged: no training row has their class."""


def hold_out(trainer: Trainer, train: Ints, test: Ints, seconds: float) -> Judged:
    """Train on one part of the rows, judge by the other. The model judged is the one to write."""
    trained = trainer.train(train, seconds)
    scores = trained.scores(trainer.table.iloc[test])
    found = judge(trainer.labels[test], scores, labels=trained.classes, y_train=trainer.labels[train])
    lost = len(trainer.labels) - len(train) - len(test)
    return Judged(trained, found, test, trained.classes, [scores[trained.name]], trained, test, lost)


def cv_folds(labels: Any, groups: Any, n_folds: int, n_repeats: int, seed: int) -> list[list[Fold]]:
    """Folds of each repeat: stratified, with every class in every training part; or of whole groups."""
    if groups is None:
        return [list(RareClassKFold(n_folds, random_state=seed + k).split(labels, labels)) for k in range(n_repeats)]
    found = [group_folds(labels, groups, n_folds, seed + k) for k in range(n_repeats)]
    if not all(found):
        raise Failure("--cv needs two groups or more, and two classes in a group: add groups, or leave --group out")
    return found


def cross_validate(
    trainer: Trainer, repeats: Sequence[Sequence[Fold]], seconds: float, begins: Callable[[str], None]
) -> Judged:
    """Judge by the scores of every row, each by models that did not see it; then train on all rows.

    Where several models are compared, one is chosen in each fold by its training rows alone. The scores of that choice
    are what is reported; a model that some fold had no time for is left out.
    """
    labels, classes = trainer.labels, np.unique(trainer.labels)
    n_trainings = sum(map(len, repeats)) + 1
    share = seconds / n_trainings
    done: list[Round] = []
    scores: dict[str, list[Floats]] = {}
    for k, folds in enumerate(repeats):
        for train, test in folds:
            begins(f"training {len(done) + 1} of {n_trainings}: ")
            done.append(trainer.train(train, share))
            for name, values in _named(done[-1], trainer.table.iloc[test]).items():
                arrays = scores.setdefault(name, [np.full((len(labels), len(classes)), np.nan) for _ in repeats])
                arrays[k][test] = 0.0
                arrays[k][np.ix_(test, np.searchsorted(classes, done[-1].classes))] = values
    unknown = {name: np.any([np.isnan(array[:, 0]) for array in arrays], axis=0) for name, arrays in scores.items()}
    headline = next(iter(scores))
    rows = np.flatnonzero(~unknown[headline])
    complete = {name: arrays for name, arrays in scores.items() if not unknown[name][rows].any()}
    judged_by = {name: [array[rows] for array in arrays] for name, arrays in complete.items()}
    found = judge(labels[rows], judged_by, labels=classes, y_train=labels)
    begins(f"training {n_trainings} of {n_trainings}: ")
    final = trainer.train(np.arange(len(labels)), share)
    lost = len(labels) - len(rows)
    every = [(trained, test) for trained, (_, test) in zip(done, (f for folds in repeats for f in folds), strict=True)]
    seen, unseen = max(every, key=lambda fold: len(np.unique(labels[fold[1]])))
    return Judged(final, found, rows, classes, judged_by[headline], seen, unseen, lost)


def _named(trained: Round, table: Any) -> dict[str, Floats]:
    scores = trained.scores(table)
    return scores if trained.board is None else {CHOSEN: scores[trained.name], **scores}
