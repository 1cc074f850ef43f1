"""A scorer for scikit-learn's model selection by multiclass AUC, and folds that keep rare classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator, StratifiedGroupKFold, check_cv
from sklearn.utils import check_random_state

from mauc._estimators import mauc_of_known
from mauc._typing import Ints, Pairs
from mauc._validation import check_classes, check_whole, invalid, scores_of

__all__ = ["MAUCScorer", "RareClassKFold", "mauc_scorer"]


def folds_of(
    cv: Any,
    X: Any,
    y: NDArray[Any],
    counted: NDArray[np.bool_],
    random_state: int = 0,
    groups: Ints | None = None,
) -> list[tuple[Ints, Ints]]:
    """Return training and test rows, of those that are ``counted``: rows of weight 0 are not.

    A number gives :class:`RareClassKFold`, or :func:`group_folds` with groups; else ``cv`` is a splitter, or a list of
    pairs of rows or masks.
    """
    rows = np.arange(len(y))
    if isinstance(cv, int | np.integer):
        kept = rows[counted]
        if groups is not None:
            check_whole("cv", cv, least=2, advice="pass the number of folds")
            folds = group_folds(y[counted], groups[counted], int(cv), random_state)
            if not folds:
                came, advice = "groups that share no class", "pass a class that is in two groups, or no groups"
                raise invalid("groups", "must leave a class to train on when one is held out", came, advice)
            return [(kept[a], kept[b]) for a, b in folds]
        splitter = RareClassKFold(int(cv), random_state=random_state)
        return [(kept[a], kept[b]) for a, b in splitter.split(kept, y[counted])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class has fewer samples than there are folds
        try:
            folds = list(check_cv(cv, y, classifier=True).split(X, y, groups))
        except ValueError as error:
            if "groups" not in str(error) or groups is not None:
                raise
            advice = "pass cv=list(splitter.split(X, y, groups))"
            raise invalid("cv", "must split without groups", repr(cv), advice) from None
    if not folds:
        raise invalid("cv", "must give a fold", repr(cv), "pass a number of folds or a splitter")
    by_row = [(rows[train], rows[test]) for train, test in folds]
    return [(train[counted[train]], test[counted[test]]) for train, test in by_row]


def group_folds(y: NDArray[Any], groups: NDArray[Any], n_folds: int, random_state: int = 0) -> list[tuple[Ints, Ints]]:
    """Return training and test rows: groups are held out as a whole, and classes are spread evenly over the folds.

    Of a held-out group, rows of a class that is missing from the training part are left out. There are at most as many
    folds as groups, and none if no class is in two groups.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.model_selection import group_folds
    >>> y, patients = np.array(list("aabbaabbc")), np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    >>> sorted((train.tolist(), test.tolist()) for train, test in group_folds(y, patients, 5))
    [([0, 1, 2, 3], [4, 5, 6, 7]), ([4, 5, 6, 7, 8], [0, 1, 2, 3])]
    """
    most = min(n_folds, len(np.unique(groups)), int(np.unique(y, return_counts=True)[1].max()))
    if most < 2:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class has fewer samples than there are folds
        folds = list(StratifiedGroupKFold(most, shuffle=True, random_state=random_state).split(y, y, groups))
    kept = [(train, test[np.isin(y[test], y[train])]) for train, test in folds]
    return [(train, test) for train, test in kept if len(test)]


def some_of_each(labels: NDArray[Any], most: int, seed: int, at_least: int = 100) -> Ints:
    """Draw about ``most`` rows, in their order: of every class its share, but ``at_least`` if there are few classes.

    >>> import numpy as np
    >>> np.bincount(np.repeat([0, 1, 2], [900, 90, 10])[some_of_each(np.repeat([0, 1, 2], [900, 90, 10]), 100, 0, 20)])
    array([90, 20, 10])
    """
    if len(labels) <= most:
        return np.arange(len(labels))
    rng = np.random.default_rng(seed)
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    least = max(1, min(at_least, most // len(counts)))
    quota = np.maximum(least, (most * counts / len(labels)).astype(np.int64))
    order = rng.permutation(len(labels))
    order = order[np.argsort(codes[order], kind="stable")]
    place = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[place < np.repeat(quota, counts)])


def of_some_classes(labels: NDArray[Any], seed: int, most: int = 300) -> Ints:
    """Return the rows of some classes, drawn at random: of at most ``most`` classes.

    The number of class pairs grows with the square of the classes; the mean over pairs of a sample is unbiased.

    >>> import numpy as np
    >>> of_some_classes(np.repeat(np.arange(1000), 2), seed=0, most=2)
    array([412, 413, 918, 919])
    """
    names = np.unique(labels)
    if len(names) <= most:
        return np.arange(len(labels))
    drawn = np.random.default_rng(seed).permutation(names)[:most]
    return np.flatnonzero(np.isin(labels, drawn))


class MAUCScorer(BaseEstimator):  # type: ignore[misc]
    """Score an estimator by the multiclass AUC of ``predict_proba``, or else of ``decision_function``.

    Pass ``scoring=mauc_scorer`` to scikit-learn's tools: ``mauc_scorer`` is ``MAUCScorer()``. For other weights of the
    pairs, pass ``scoring=MAUCScorer(pairs="ova")``. Classes of the model that are absent from the test rows are
    ignored. Samples of a class that the model does not know are ignored with a warning; :class:`RareClassKFold` keeps
    every class in every training part.

    Parameters
    ----------
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        ``"ovo"``: every pair of classes counts the same. ``"ova"``: one-vs-rest. A matrix: ``[i, j]`` is the weight of
        column i on class i against class j.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from mauc import mauc_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=mauc_scorer).round(3)
    array([0.993, 1.   , 0.995, 0.993, 1.   ])
    """

    def __init__(self, pairs: Pairs = "ovo") -> None:
        self.pairs = pairs

    def score(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the multiclass AUC of a fitted estimator."""
        return mauc_of_known(y, scores_of(estimator, X), estimator.classes_, self.pairs, sample_weight)

    __call__ = score


mauc_scorer = MAUCScorer()


class RareClassKFold(BaseCrossValidator):  # type: ignore[misc]
    """Split into stratified folds that keep every class in every training part.

    A class of ``n`` samples is spread over ``min(n, n_splits)`` folds; the only sample of a class is never held out.
    scikit-learn's ``StratifiedKFold`` warns of such classes and holds the only sample out.

    Parameters
    ----------
    n_splits : int, default=5
    random_state : int, RandomState or None, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.model_selection import RareClassKFold
    >>> y = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2])
    >>> for train, test in RareClassKFold(3).split(y, y):
    ...     print(np.bincount(y[train], minlength=3), np.bincount(y[test], minlength=3))
    [4 1 1] [2 1 0]
    [4 1 1] [2 1 0]
    [4 2 1] [2 0 0]
    """

    def __init__(self, n_splits: int = 5, *, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def _iter_test_masks(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[NDArray[np.bool_]]:
        check_whole("n_splits", self.n_splits, least=2, advice="pass the number of folds")
        if y is None:
            raise invalid("y", "is required", None, "pass the class of each sample")
        codes = check_classes(y, "y")[1] if np.size(y) else np.empty(0, dtype=np.int64)
        random_state = check_random_state(self.random_state)
        fold, next_fold = np.full(len(codes), -1), 0  # the only sample of a class stays at -1
        # Each class continues at the fold where the last class ended, so that the folds have equal sizes.
        for c in np.argsort(-np.bincount(codes), kind="stable"):
            members = random_state.permutation(np.flatnonzero(codes == c))
            if len(members) > 1:
                fold[members] = (next_fold + np.arange(len(members))) % self.n_splits
                next_fold = (next_fold + len(members)) % self.n_splits
        for k in range(self.n_splits):
            yield fold == k
