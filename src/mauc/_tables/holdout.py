"""Training rows and test rows: rare classes stay in both parts where they can."""

from typing import Any

import numpy as np

from mauc import model_selection
from mauc._tables.errors import Failure
from mauc._typing import Floats, Ints
from mauc.model_selection import some_of_each

__all__ = ["by_group", "by_time", "group_folds", "places", "some_of_each", "stratified"]

Parts = tuple[Ints, Ints]


def stratified(labels: Any, share: float, seed: int) -> Parts:
    """Training and held-out rows, at random within each class; a class of two rows or more is in both.

    >>> import numpy as np
    >>> train, test = stratified(np.repeat(["a", "b", "c"], [20, 3, 2]), 0.25, seed=0)
    >>> [int(np.sum(test < 20)), int(np.sum((test >= 20) & (test < 23))), int(np.sum(test >= 23))]
    [5, 1, 1]
    """
    rng = np.random.default_rng(seed)
    held = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        wanted = int(np.clip(np.rint(share * len(members)), 1, max(1, len(members) - 1)))
        if len(members) > 1:
            held[members[:wanted]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def places(codes: Ints, share: float, seed: int) -> Floats:
    """``(N,)`` place of each row between 0 and 1, at random within its class: rows below ``share`` are held out.

    Any stretch of places from 0 or from ``share`` on holds each class in its share, and at least one row of it; a
    class of one row is trained on. The random numbers are from a seed sequence of their own: with those of
    ``default_rng(seed)``, the split of a table that was simulated with the same seed would depend on its values.

    >>> import numpy as np
    >>> codes = np.repeat([0, 1, 2], [20, 3, 1])
    >>> np.bincount(codes[places(codes, 0.25, seed=0) < 0.25], minlength=3).tolist()
    [5, 1, 0]
    """
    rng = np.random.default_rng([*b"places", seed])
    place = np.empty(len(codes))
    for code in np.flatnonzero(np.bincount(codes)):
        members = np.flatnonzero(codes == code)
        rng.shuffle(members)
        held = int(np.clip(np.rint(share * len(members)), 1, len(members) - 1)) if len(members) > 1 else 0
        place[members[:held]] = np.arange(held) / max(held, 1) * share
        trained = np.arange(len(members) - held)
        place[members[held:]] = share + trained / len(trained) * (1.0 - share)
    return place


def by_time(labels: Any, times: Any, share: float) -> Parts:
    """The latest rows are held out; rows of one moment stay together."""
    order = np.argsort(times, kind="stable")
    cut = times[order[min(len(times) - 1, int(np.ceil((1.0 - share) * len(times))))]]
    held = times >= cut
    if held.all():
        raise Failure(
            "the rows of --time-column cannot be cut into earlier and later ones: use more rows, or leave it out"
        )
    return _checked(labels, held, "earlier than the hold-out; use --holdout to move the cut")


def by_group(labels: Any, groups: Any, share: float, seed: int) -> Parts:
    """Whole groups are held out; a class that occurs in two groups or more is in both parts where that can be."""
    rng = np.random.default_rng(seed)
    _, codes = np.unique(labels, return_inverse=True)
    names, of_row = np.unique(groups, return_inverse=True)
    table = np.zeros((len(names), codes.max() + 1), dtype=np.int64)
    np.add.at(table, (of_row, codes), 1)
    in_groups = (table > 0).sum(axis=0)
    held = np.zeros(len(names), dtype=bool)

    def free(group: int) -> bool:
        """Every class of the group stays in training without it."""
        return not held[group] and bool(
            np.all(table[~held].sum(axis=0)[table[group] > 0] > table[group][table[group] > 0])
        )

    for label in np.argsort(in_groups, kind="stable"):
        if in_groups[label] > 1 and not table[held, label].any():
            those = [g for g in rng.permutation(np.flatnonzero(table[:, label])) if free(int(g))]
            if those:
                held[min(those, key=lambda g: table[g].sum())] = True
    for group in rng.permutation(len(names)):
        rows = table.sum(axis=1)
        if rows[held].sum() + rows[group] / 2 <= share * len(labels) and free(int(group)):
            held[group] = True
    return _checked(labels, held[of_row], "in two groups or more; add groups, or leave --group out")


def group_folds(labels: Any, groups: Any, n_folds: int, seed: int) -> list[Parts]:
    """Those of :func:`mauc.model_selection.group_folds` whose test part can be judged: it has two classes.

    >>> import numpy as np
    >>> labels, groups = np.array(list("aabbaabb")), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> sorted((train.tolist(), test.tolist()) for train, test in group_folds(labels, groups, 5, seed=0))
    [([0, 1, 2, 3], [4, 5, 6, 7]), ([4, 5, 6, 7], [0, 1, 2, 3])]
    """
    folds = model_selection.group_folds(labels, groups, n_folds, seed)
    return [(train, test) for train, test in folds if len(np.unique(labels[test])) > 1]


def _checked(labels: Any, held: Any, advice: str) -> Parts:
    """Both parts hold two classes that the training part knows."""
    known = np.unique(labels[~held])
    judged = np.isin(labels, known) & held
    if len(known) < 2 or len(np.unique(labels[judged])) < 2:
        raise Failure(f"the hold-out leaves fewer than two classes to train or judge by: two classes must be {advice}")
    return np.flatnonzero(~held), np.flatnonzero(judged)
