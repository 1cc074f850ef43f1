"""Multiclass AUC of Dask collections: the phases of :mod:`mauc.metrics.partial_counts`, over partitions.

Phases are computed one after the other, so that a worker holds own-class scores and a few partitions, never all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed
from numpy.typing import ArrayLike, NDArray

from mauc._typing import Floats, Ints
from mauc._validation import (
    check_choice,
    check_labels,
    check_pairs,
    check_real,
    check_scored_classes,
    check_weights,
    invalid,
)
from mauc.dask._partitions import class_sizes, in_partition, keep, partitions, run, shared, task, tree
from mauc.metrics import Comparison, Interval
from mauc.metrics import partial_counts as counts
from mauc.metrics.inference import NO_DIFFERENCE, warn_of_singles
from mauc.metrics.partial_counts import ClassTotals, Ladder, OwnScores, Placed
from mauc.metrics.scores import ABSENT, check_pair_weights, weighted_mean
from mauc.metrics.uncertainty import Moments, comparison_of_moments, interval_of_moments, squares_about

__all__ = ["compare_mauc", "mauc_interval", "mauc_score", "pairwise_auc"]


def pairwise_auc(y_true: Any, y_score: Any, *, labels: ArrayLike | None = None, sample_weight: Any = None) -> Floats:
    """:func:`mauc.pairwise_auc` of Dask collections.

    Parameters
    ----------
    y_true : Dask array or series of classes
    y_score : Dask array or data frame of scores, one column per class
        A data frame's columns that are named as the classes are taken by name. Partitions of unknown size are fine.
    labels, sample_weight
        As in :func:`mauc.pairwise_auc`; the weights are a Dask array or series.

    Returns
    -------
    (C, C) array
        A NumPy array, equal to that of :func:`mauc.pairwise_auc` but for the last digits of float64.

    Notes
    -----
    Each partition is read three times: its classes, its scores in their own columns, its other scores. Persist what is
    costly to make. Every worker receives the N own-class scores once, 8 N bytes in float64, 4 N in float32.
    An error in a partition names it and the row in it.

    Examples
    --------
    >>> import dask.array as da
    >>> from mauc.dask import pairwise_auc
    >>> y = da.from_array(["cat", "cat", "dog", "fox"], chunks=2)
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> pairwise_auc(y, da.from_array(scores, chunks=(2, 3)))
    array([[ nan, 0.5 , 1.  ],
           [0.75,  nan, 1.  ],
           [1.  , 1.  ,  nan]])
    """
    scored = _Scored(y_true, {"y_score": y_score}, labels, sample_weight, "ovo", "ignore")
    return scored.matrix()


def mauc_score(
    y_true: Any,
    y_score: Any,
    *,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: Any = None,
    absent: str = "raise",
) -> float:
    """:func:`mauc.mauc_score` of Dask collections; parameters as there, input and cost as in :func:`pairwise_auc`.

    Examples
    --------
    >>> import dask.array as da
    >>> from mauc.dask import mauc_score
    >>> y = da.from_array(["cat", "cat", "dog", "fox"], chunks=2)
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> mauc_score(y, da.from_array(scores, chunks=(2, 3)))
    0.875
    """
    scored = _Scored(y_true, {"y_score": y_score}, labels, sample_weight, pairs, absent)
    v = scored.pair_weights()
    return float(np.nan) if v is None else weighted_mean(scored.matrix(), v)


def mauc_interval(
    y_true: Any,
    y_score: Any,
    *,
    level: float = 0.95,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: Any = None,
    absent: str = "raise",
) -> Interval:
    """:func:`mauc.mauc_interval` of Dask collections; parameters as there, input as in :func:`pairwise_auc`.

    One pass more than the score. A partition of n rows sends back where its negatives stand among the own-class scores,
    at most 32 n bytes per class, and each worker receives them once more; 8 N bytes stay on the workers meanwhile.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from mauc.dask import mauc_interval
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * np.eye(3)[y]
    >>> result = mauc_interval(da.from_array(y, chunks=50), da.from_array(scores, chunks=(50, 3)))
    >>> print(f"{result.score:.3f} [{result.low:.3f}, {result.high:.3f}]")
    0.871 [0.797, 0.921]
    """
    level = check_real("level", level, low=0, high=1)
    scored = _Scored(y_true, {"y_score": y_score}, labels, sample_weight, pairs, absent)
    v = scored.pair_weights()
    if v is None:
        return Interval(np.nan, np.nan, np.nan, np.nan)
    warn_of_singles(scored.totals.sizes(v), scored.labels)
    (judged,), _ = scored.moments(v)
    return interval_of_moments(scored.totals.sizes(v), *judged, level)


def compare_mauc(
    y_true: Any,
    score_a: Any,
    score_b: Any,
    *,
    level: float = 0.95,
    pairs: str | ArrayLike = "ovo",
    labels: ArrayLike | None = None,
    sample_weight: Any = None,
    absent: str = "raise",
) -> Comparison:
    """:func:`mauc.compare_mauc` of Dask collections; parameters as there, input and cost as in :func:`mauc_interval`,
    for both models.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from mauc.dask import compare_mauc
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], [150, 40, 10])
    >>> good = rng.normal(size=(200, 3)) + 1.5 * np.eye(3)[y]
    >>> bad = good + 2 * rng.normal(size=(200, 3))
    >>> y, good, bad = (da.from_array(x, chunks=(50, 3)[: x.ndim]) for x in (y, good, bad))
    >>> result = compare_mauc(y, good, bad)
    >>> print(f"{result.difference:.3f} [{result.low:.3f}, {result.high:.3f}], p = {result.pvalue:.1g}")
    0.193 [0.118, 0.265], p = 3e-05
    """
    level = check_real("level", level, low=0, high=1)
    scored = _Scored(y_true, {"score_a": score_a, "score_b": score_b}, labels, sample_weight, pairs, absent)
    v = scored.pair_weights()
    if v is None:
        return Comparison(np.nan, np.nan, np.nan, np.nan, np.nan)
    warn_of_singles(scored.totals.sizes(v), scored.labels)
    (a, b), squares = scored.moments(v)
    if not squares.any() and tokenize(score_a) == tokenize(score_b):
        return NO_DIFFERENCE
    return comparison_of_moments(scored.totals.sizes(v), a, b, squares, level)


class _Rows(NamedTuple):
    """The clean rows of a partition."""

    codes: Ints
    scores: NDArray[np.floating]
    weight: Floats | None


class _Scored:
    """Partitions of classes, weights and the scores of some models: the first phase is done.

    What the user asks for is looked at before the first pass over the scores.
    """

    def __init__(
        self,
        y_true: Any,
        scores: dict[str, Any],
        labels: ArrayLike | None,
        sample_weight: Any,
        pairs: str | ArrayLike,
        absent: str,
    ) -> None:
        check_choice("absent", absent, ABSENT)
        known = None if labels is None else check_labels(labels)
        (name, first), *others = scores.items()
        parts = partitions(**{name: first}, y_true=y_true, sample_weight=sample_weight, **dict(others))
        classes, sizes = class_sizes([part[1] for part in parts], "y_true")
        self.labels = classes if known is None else known
        self.pairs, self.absent = check_pairs(pairs, len(self.labels)), absent
        self.totals = ClassTotals(sizes, np.zeros(1, dtype=np.int64), np.ones((3, 1)))
        if len(self.labels) < 2:
            return
        # The rows of each model, partition by partition: read anew in every phase.
        self.rows: list[list[Delayed]] = [
            [task(_rows, self.labels, name, k, part[1], part[2], part[column]) for k, part in enumerate(parts)]
            for name, column in zip(scores, (0, 3), strict=False)
        ]
        each = [[task(_own_scores, rows, len(self.labels)) for rows in of_model] for of_model in self.rows]
        own = keep(*(tree(counts.merge, of_model) for of_model in each))
        self.ladders: list[Delayed] = keep(*(task(OwnScores.ladders, of_model) for of_model in own))
        (self.totals,) = run(task(getattr, own[0], "totals"))
        counts.check_class_weights(self.totals, self.labels)

    def pair_weights(self) -> Floats | None:
        """The weights of the class pairs, as in memory."""
        return check_pair_weights(self.labels, self.totals.partition(), self.pairs, self.absent)

    def _placed(self, model: int, v: Floats | None) -> list[Delayed]:
        known = shared((self.totals, v))
        return [task(_place, self.ladders[model], known, rows) for rows in self.rows[model]]

    def matrix(self) -> Floats:
        """The pair matrix of the first model."""
        if len(self.labels) < 2:
            return np.full((1, 1), np.nan)
        (whole,) = run(tree(counts.add_placed, self._placed(0, None)))
        return counts.auc_of_lost(whole.lost, self.totals)

    def moments(self, v: Floats) -> tuple[list[tuple[float, Moments]], Floats]:
        """Score and moments of each model, and the squares of the difference of two."""
        found, means, landed, negative = [], [], [], []
        for model in range(len(self.rows)):
            placed = self._placed(model, v)
            of_negatives = [task(getattr, each, "as_negative") for each in placed]
            whole, *as_negative = keep(tree(counts.add_placed, placed), *of_negatives)
            (lost,) = run(task(getattr, whole, "lost"))
            matrix = counts.auc_of_lost(lost, self.totals)
            found.append(weighted_mean(matrix, v))
            means.append(counts.mean_influence(matrix, v))
            landed.append(task(getattr, whole, "landed"))
            negative.append(as_negative)
        known = shared((self.totals, means))
        on_ladders = list(zip(self.ladders, landed, strict=True))
        parts = zip(zip(*self.rows, strict=True), zip(*negative, strict=True), strict=True)
        squares = [task(_squares, known, on_ladders, list(rows), list(each)) for rows, each in parts]
        (summed,) = run(tree(_sum, squares))
        judged = [(score, Moments(mean, of)) for score, mean, of in zip(found, means, summed[:-1], strict=True)]
        return judged, summed[-1]


# What the tasks do; the dashboard shows their names.


def _sum(parts: list[Floats]) -> Floats:
    return np.asarray(np.sum(parts, axis=0))


def _rows(labels: NDArray[Any], parameter: str, number: int, y: Any, weight: Any, scores: Any) -> _Rows:
    """The checks of the metric in memory, with the partition's number in the message."""
    with in_partition(number):
        if len(y) == 0 and len(scores):
            came, advice = f"{len(scores)} rows for 0 true classes", "pass scores and classes of the same samples"
            raise invalid(parameter, "must have one row per sample", came, advice)
        if len(y) == 0:  # float32 leaves the scores of other partitions as they are
            none = np.zeros((0, len(labels)), dtype=np.float32)
            return _Rows(np.zeros(0, dtype=np.int64), none, None if weight is None else np.zeros(0))
        clean = check_scored_classes(y, scores, labels, None, parameter)
        if weight is not None:
            weight = check_weights(weight, clean.codes.shape)
    return _Rows(clean.codes, clean.scores, weight)


def _own_scores(rows: _Rows, n_classes: int) -> OwnScores:
    return OwnScores.of(rows.codes, rows.scores, n_classes, rows.weight)


def _place(ladders: list[Ladder], known: tuple[ClassTotals, Floats | None], rows: _Rows) -> Placed:
    totals, v = known
    return counts.place(ladders, totals, *rows, v)


def _squares(
    known: tuple[ClassTotals, list[Floats]], on_ladders: list[Any], models: list[_Rows], as_negative: list[Floats]
) -> Floats:
    """``(K + 1, C)`` squares of the influences of each model about their means, and of the difference of two."""
    (totals, means), (codes, _, weight) = known, models[0]
    share = totals.shares(codes, weight)
    influences = [
        counts.influence(ladders, landed, codes, rows.scores, negative)
        for (ladders, landed), rows, negative in zip(on_ladders, models, as_negative, strict=True)
    ]
    pairs = [*zip(influences, means, strict=True), (influences[0] - influences[-1], means[0] - means[-1])]
    return np.stack([squares_about(mean, h, codes, share) for h, mean in pairs])
