"""Multiclass AUC of Dask collections: the phases of :mod:`mauc.metrics.partial_counts`, over partitions.

Phases run one after the other, so that a worker holds own-class scores and a few partitions, never all. The influences
of all rows come to the client, where intervals and tests are those of rows in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.base import tokenize
from numpy.typing import ArrayLike

from mauc._typing import Floats, Ints
from mauc._validation import (
    check_choice,
    check_groups,
    check_labels,
    check_pairs,
    check_real,
    check_scored_classes,
    check_whole,
    invalid,
)
from mauc.dask._partitions import (
    ClassTotals,
    Task,
    class_totals,
    in_partition,
    keep,
    partitions,
    run,
    shared,
    task,
    tree,
)
from mauc.metrics import BinnedMAUC, Comparison, Interval
from mauc.metrics import partial_counts as counts
from mauc.metrics.inference import score_and_influence, warn_of_singles
from mauc.metrics.out_of_core import class_shares
from mauc.metrics.scores import ABSENT, check_pair_weights, weighted_mean
from mauc.metrics.summary import Spread, difference_of_all, spread_of_all
from mauc.metrics.uncertainty import (
    NO_DIFFERENCE,
    Moments,
    Sample,
    comparison,
    comparison_of_moments,
    interval,
    interval_of_moments,
)
from mauc.partition import ClassPartition

__all__ = ["binned_mauc", "compare_mauc", "mauc_interval", "mauc_score", "pairwise_auc"]


def pairwise_auc(y_true: Any, y_score: Any, *, labels: ArrayLike | None = None, sample_weight: Any = None) -> Floats:
    """Return :func:`mauc.pairwise_auc` of Dask collections.

    Parameters
    ----------
    y_true : Dask array or series of classes
    y_score : Dask array or data frame of scores, one column per class
        The columns of a data frame are matched by class name. Partitions may have unknown sizes.
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
    An error in a partition names the partition and the row in it.

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
    """Return :func:`mauc.mauc_score` of Dask collections; input and cost are those of :func:`pairwise_auc`.

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
    groups: Any = None,
    most_rows: int = 1_000_000,
) -> Interval:
    """Return :func:`mauc.mauc_interval` of Dask collections; input is that of :func:`pairwise_auc`.

    The score counts all rows. With more than ``most_rows`` rows, the standard error comes from a sample of that size,
    as in ``mauc evaluate``: all rows of each small class, and about equally many of each large class. It allows for
    rows that the sample may lack. The client holds the sample, and at most 33 million scores.

    With ``groups`` or weights, or up to ``most_rows`` rows, the standard error counts all rows. That takes one pass
    more than the score, or several over partitions of millions of scores. A partition of n rows sends back the weight
    of its negatives at the positions of the own-class scores, added up by position: at most 32 n bytes per class, 16 N
    bytes for all, and 64 MiB at a time. Every worker receives their sum, 8 N bytes. The client receives the influence
    and the class of every row, 9 N bytes or more, and ``groups`` if they are given.

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
    scored = _Scored(y_true, {"y_score": y_score}, labels, sample_weight, pairs, absent, groups)
    v = scored.pair_weights()
    if v is None:
        return Interval(np.nan, np.nan, np.nan, np.nan)
    if scored.is_large(most_rows):
        (score,), (one,), _ = scored.sampled(v, most_rows)
        return interval_of_moments(one.sizes, score, one.moments, level)
    sample, (found,) = scored.influences(v)
    warn_of_singles(sample, scored.labels)
    return interval(sample, *found, level)


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
    groups: Any = None,
    most_rows: int = 1_000_000,
) -> Comparison:
    """Return :func:`mauc.compare_mauc` of two Dask collections; input and cost are those of :func:`mauc_interval`.

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
    0.193 [0.119, 0.267], p = 3e-05
    """
    level = check_real("level", level, low=0, high=1)
    scored = _Scored(y_true, {"score_a": score_a, "score_b": score_b}, labels, sample_weight, pairs, absent, groups)
    v = scored.pair_weights()
    if v is None:
        return Comparison(np.nan, np.nan, np.nan, np.nan, np.nan)
    if tokenize(score_a) == tokenize(score_b):
        return NO_DIFFERENCE
    if scored.is_large(most_rows):
        (score_of_a, score_of_b), (one, two), between = scored.sampled(v, most_rows)
        of_a, of_b = (score_of_a, one.moments), (score_of_b, two.moments)
        return NO_DIFFERENCE if scored.are_equal else comparison_of_moments(one.sizes, of_a, of_b, between, level)
    sample, (a, b) = scored.influences(v)
    warn_of_singles(sample, scored.labels)
    return NO_DIFFERENCE if scored.are_equal else comparison(sample, a, b, level)


def binned_mauc(y_true: Any, y_score: Any, like: BinnedMAUC, *, sample_weight: Any = None) -> BinnedMAUC:
    """Count Dask collections in bins, in one pass: see :class:`mauc.BinnedMAUC` for the score, its bound and interval.

    Each partition is read once. Partitions send ``8 C² bins`` bytes, which are added up in a tree; no scores travel.

    Parameters
    ----------
    y_true, y_score, sample_weight : Dask collections, as in :func:`pairwise_auc`
    like : BinnedMAUC
        A state with the bins and the classes, such as ``BinnedMAUC(3)`` for probabilities of classes 0, 1, 2; it is not
        changed. Its rows are not counted.

    Examples
    --------
    >>> import dask.array as da
    >>> from mauc import BinnedMAUC
    >>> from mauc.dask import binned_mauc
    >>> y = da.from_array(["cat", "cat", "dog", "fox"], chunks=2)
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> binned_mauc(y, da.from_array(scores, chunks=(2, 3)), BinnedMAUC(3, labels=["cat", "dog", "fox"])).score()
    0.875
    """
    if not isinstance(like, BinnedMAUC):
        raise invalid("like", "must be a BinnedMAUC", type(like).__name__, "pass BinnedMAUC(n_classes)")
    parts, empty = partitions(y_score=y_score, y_true=y_true, sample_weight=sample_weight), shared(like.empty())
    found = [task(_count_bins, empty, number, *part) for number, part in enumerate(parts)]
    return run(tree(sum, found))[0].copy()


class _Scored:
    """Partitions of classes, weights and the scores of some models, with the sorted own-class scores of each model.

    Options are checked before the first pass over the scores.
    """

    def __init__(
        self,
        y_true: Any,
        scores: dict[str, Any],
        labels: ArrayLike | None,
        sample_weight: Any,
        pairs: str | ArrayLike,
        absent: str,
        groups: Any = None,
    ) -> None:
        check_choice("absent", absent, ABSENT)
        known = None if labels is None else check_labels(labels)
        (name, first), *others = scores.items()
        collections = {name: first, "y_true": y_true, "sample_weight": sample_weight, "groups": groups}
        parts = partitions(**collections, **dict(others))
        self.groups = None if groups is None else [part[3] for part in parts]
        found = class_totals([part[1:3] for part in parts], "y_true")
        self.labels = found.classes if known is None else known
        self.pairs, self.absent = check_pairs(pairs, len(self.labels), self.labels), absent
        self.totals = found.of_labels(self.labels)
        if len(self.labels) < 2:
            return
        sums = shared(self.totals)
        # The rows of each model, partition by partition; they are read again in every phase.
        self.rows: list[list[Task]] = [
            [task(_rows, sums, name, k, *part[1:3], part[column]) for k, part in enumerate(parts)]
            for name, column in zip(scores, (0, 4), strict=False)
        ]
        own = [[task(counts.own_scores, rows) for rows in of_model] for of_model in self.rows]
        self.positives: list[Task] = keep(*(task(counts.sort_positives, of_model) for of_model in own))
        run(*(task(len, each) for each in self.positives))  # errors in the rows come first

    def pair_weights(self) -> Floats | None:
        """Return the weights of the class pairs, as in memory."""
        return check_pair_weights(self.labels, self.totals.partition(), self.pairs, self.absent)

    def matrix(self, model: int = 0) -> Floats:
        """Return the pair matrix of a model."""
        if len(self.labels) < 2:
            return np.full((1, 1), np.nan)
        lost = [task(counts.lost_in_part, self.positives[model], rows) for rows in self.rows[model]]
        return counts.pair_matrix(run(tree(sum, lost))[0], self.totals.units)

    def is_large(self, most_rows: int) -> bool:
        """Return whether standard errors come from a sample: there are many rows, without weights and groups."""
        check_whole("most_rows", most_rows, least=1000)
        return self.totals.counts.sum() > most_rows and self.groups is None and self.totals.weights is None

    def sampled(
        self, v: Floats, most_rows: int, most_scores: int = 1 << 25
    ) -> tuple[list[float], list[Spread], Moments]:
        """Return the score of each model, its spread from a sample of the rows, and the moments of their difference.

        Afterwards ``are_equal`` says whether all models have the same scores.
        """
        sizes, n_models = self.totals.counts, len(self.rows)
        share = shared(class_shares(sizes, min(most_rows, most_scores // (len(sizes) * n_models))))
        of_parts = list(zip(*self.rows, strict=True))
        drawn = [task(_draw, share, number, *of_models) for number, of_models in enumerate(of_parts)]
        equal = tree(all, [task(_are_equal, *of_models) for of_models in of_parts])
        found, self.are_equal = run(drawn, equal)
        codes = np.concatenate([codes for codes, _ in found]).astype(np.int64)
        partition = ClassPartition(codes, len(sizes))
        sample, scores, spreads, influences = Sample.of(partition, v), [], [], []
        for model in range(n_models):
            matrix = self.matrix(model)
            of_model = np.concatenate([scores_of_part[model] for _, scores_of_part in found])
            influences.append(score_and_influence(partition, of_model, v)[1])
            scores.append(weighted_mean(matrix, v))
            spreads.append(spread_of_all(sample.moments(influences[-1]), partition.counts, sizes, v, matrix))
        between = sample.moments(influences[0] - influences[-1])
        return scores, spreads, difference_of_all(between, partition.counts, sizes, v)

    def influences(self, v: Floats) -> tuple[Sample, list[tuple[float, Floats]]]:
        """Return the sample of all rows, and the score and the ``(N,)`` influences of each model.

        Afterwards ``are_equal`` says whether all models have the same scores.
        """
        scores, each = [], []
        totals, weights = shared(self.totals.units), shared(v)
        for positives, rows in zip(self.positives, self.rows, strict=True):
            wins, as_negative = [], [task(_nothing, part) for part in rows]
            lost = np.zeros_like(v)
            for columns in counts.column_groups(self.totals.largest, self.totals.counts):
                counted = [task(counts.count_part, positives, totals, part, weights, columns) for part in rows]
                total = tree(counts.add_counts, counted)
                as_negative = [task(_as_negative, *of) for of in zip(as_negative, counted, strict=True)]
                sums = [task(getattr, total, "lost"), task(counts.wins_of_positives, total, positives, columns)]
                in_columns, won, *as_negative = keep(*sums, *as_negative)
                wins.append(won)
                lost += run(in_columns)[0]
            scores.append(weighted_mean(counts.pair_matrix(lost, self.totals.units), v))
            every = task(_joined, wins)
            each.append([task(counts.influence, positives, every, *of) for of in zip(rows, as_negative, strict=True)])
        known = [task(_codes_and_unit, part, len(self.labels)) for part in self.rows[0]]
        equal = [task(_are_equal, *of_models) for of_models in zip(*self.rows, strict=True)]
        codes_and_units, found, groups, self.are_equal = run(known, each, self.groups, tree(all, equal))
        codes, units = zip(*codes_and_units, strict=True)
        unit = None if self.totals.weights is None else np.concatenate(units)
        partition = ClassPartition(np.concatenate(codes).astype(np.int64), len(self.labels), unit)
        together = None if groups is None else check_groups(np.concatenate(groups), len(partition.codes))
        influences = [np.concatenate(of_model) for of_model in found]
        return Sample.of(partition, v, together), list(zip(scores, influences, strict=True))


# The tasks; the dashboard shows their names.


def _rows(totals: ClassTotals, parameter: str, number: int, y: Any, weight: Any, scores: Any) -> counts.Rows:
    """Check the rows of a partition as the metric in memory does; errors name the number of the partition."""
    labels = totals.classes
    with in_partition(number):
        if len(y) == 0 and len(scores):
            came, advice = f"{len(scores)} rows for 0 true classes", "pass scores and classes of the same samples"
            raise invalid(parameter, "must have one row per sample", came, advice)
        if len(y) == 0:  # float32, so that the scores of other partitions keep their type
            none = np.zeros((len(labels), 0), dtype=np.float32)
            return counts.Rows(np.zeros(0, dtype=np.int64), list(none), None if weight is None else np.zeros(0))
        checked = check_scored_classes(y, scores, labels, None, parameter)
    return counts.Rows(checked.codes, list(checked.scores.T), totals.unit(checked.codes, weight))


def _count_bins(like: BinnedMAUC, number: int, scores: Any, y: Any, weight: Any) -> BinnedMAUC:
    with in_partition(number):
        return like.empty().update(y, scores, weight)


def _draw(share: Floats, number: int, *of_models: counts.Rows) -> tuple[Ints, list[Floats]]:
    """Return the classes of a sample of a partition, and their scores by each model."""
    codes = of_models[0].codes
    rows = np.flatnonzero(np.random.default_rng([0x6D617563, number]).random(len(codes)) < share[codes])
    return codes[rows], [np.column_stack([x[rows] for x in rows_of.columns]) for rows_of in of_models]


def _nothing(rows: counts.Rows) -> Floats:
    return np.zeros(len(rows.codes))


def _as_negative(so_far: Floats, counted: counts.PartCounts) -> Floats:
    return so_far + counted.as_negative


def _joined(groups: list[list[Floats]]) -> list[Floats]:
    return [each for some in groups for each in some]


def _are_equal(first: counts.Rows, *others: counts.Rows) -> bool:
    """Return whether models have the same scores in a partition."""
    return all(np.array_equal(x, y) for rows in others for x, y in zip(first.columns, rows.columns, strict=True))


def _codes_and_unit(rows: counts.Rows, n_classes: int) -> tuple[Ints, Floats | None]:
    return rows.codes.astype(np.min_scalar_type(n_classes)), rows.unit
