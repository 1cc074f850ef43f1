"""Summarise the scores of one model for a report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.auc import auc_influence
from mauc._typing import Floats, Ints
from mauc.metrics.measures import PairMeasure
from mauc.metrics.predictions import highest_score, in_own_class, predicted_as
from mauc.metrics.uncertainty import Moments, Sample, Sizes
from mauc.partition import ClassPartition

__all__ = ["ScoreSummary", "Spread", "difference_of_all", "spread_of_all", "summarise", "summarise_sample"]

EACH_OTHER = np.array([[0.0, 0.5], [0.5, 0.0]])
"""Pair weights of two classes."""


class Spread(NamedTuple):
    """The sums from which the interval of a multiclass AUC is computed."""

    sizes: Sizes
    moments: Moments


@dataclass(frozen=True, eq=False)
class ScoreSummary:
    """Sums over the N rows of the scores of one model for C classes.

    If the rows are a sample, ``influence`` and ``hits`` have its rows alone.
    """

    matrix: Floats
    """``(C, C)`` ``AUC_{i|j}``, NaN on the diagonal."""
    right: Floats
    """``(C,)`` number of correctly predicted rows of each class; ties count in equal parts."""
    constant: NDArray[np.bool_]
    """``(C,)``: True for a column with one score for all rows; AUCs by such columns are 0.5 on any rows."""
    spread: Mapping[str, Spread]
    """For the multiclass AUC with the pair weights ``"ovo"`` and ``"ova"``."""
    pair: Callable[[int, int], Spread]
    """For the mean of ``AUC_{i|j}`` and ``AUC_{j|i}``, over the rows of j and of i."""
    influence: NDArray[np.floating]
    """``(N,)`` influence of each row with ``"ovo"``."""
    difference: Callable[[NDArray[np.floating]], Moments]
    """Moments of the influences minus those of another model."""
    fingerprint: bytes
    """Equal for identical scores, if ``compared``."""
    hits: Floats
    """``(N,)`` share of each row that is predicted right: 1, 0, or a part of a tie."""


def summarise(
    partition: ClassPartition,
    scores: NDArray[np.floating],
    predicted: Ints | None = None,
    *,
    groups: Ints | None = None,
    overlap: float = 1.0,
    weights: Mapping[str, Floats] | None = None,
    compared: bool = False,
) -> ScoreSummary:
    """Summarise ``(N, C)`` scores.

    ``predicted`` are the predicted classes; default: the classes with the highest scores. ``groups`` has the group
    number of each row, ``overlap`` is that of :class:`Sizes`. ``weights`` are the pair weights ``"ovo"`` and ``"ova"``;
    default: those of the partition.
    ``compared`` keeps the fingerprint.
    """
    shares = highest_score(scores.T) if predicted is None else predicted_as(predicted, partition.n_classes)
    hits = in_own_class(shares, partition.codes)
    ovo, ova = ((weights or {}).get(kind, partition.pair_weights(kind)) for kind in ("ovo", "ova"))
    matrix, influence = PairMeasure().matrix_and_influence(partition.problem(scores, ovo, normalised=False))
    of_ova = auc_influence(partition.problem(scores, ova))
    sample, sample_of_ova = (Sample.of(partition, v, groups, overlap=overlap) for v in (ovo, ova))

    def pair(i: int, j: int) -> Spread:
        rows, two = partition.between(j, i)
        problem = two.problem(np.take(scores, rows, axis=0)[:, [j, i]], EACH_OTHER)
        of_two = Sample.of(two, EACH_OTHER, None if groups is None else groups[rows], overlap=overlap)
        return Spread(of_two, of_two.moments(auc_influence(problem)))

    return ScoreSummary(
        matrix=matrix,
        right=np.bincount(partition.codes, hits, partition.n_classes).astype(np.float64),
        constant=(scores == scores[0]).all(axis=0),
        spread={
            "ovo": Spread(sample, sample.moments(influence)),
            "ova": Spread(sample_of_ova, sample_of_ova.moments(of_ova)),
        },
        pair=pair,
        influence=influence,
        difference=lambda other: sample.moments(influence - other),
        fingerprint=_fingerprint(scores) if compared else b"",
        hits=hits,
    )


def summarise_sample(
    partition: ClassPartition,
    scores: NDArray[np.floating],
    *,
    counts: Ints,
    matrix: Floats,
    right: Floats,
    compared: bool = False,
) -> ScoreSummary:
    r"""Summarise a table from a sample of its rows: ``(M, C)`` scores of the rows of the partition.

    ``counts``, ``matrix`` and ``right`` are those of all rows. The variances of the influences are those of the sample,
    plus those of :func:`spread_of_all`.
    """
    sizes = ClassPartition.of_sizes(counts)
    weights = {kind: sizes.pair_weights(kind) for kind in ("ovo", "ova")}
    sample = summarise(partition, scores, weights=weights, compared=compared)
    sampled = partition.counts

    def of_all(spread: Spread, v: Floats, classes: Any) -> Spread:
        return spread_of_all(spread.moments, sampled[classes], counts[classes], v, matrix[np.ix_(classes, classes)])

    def difference(other: NDArray[np.floating]) -> Moments:
        return difference_of_all(sample.difference(other), sampled, counts, weights["ovo"])

    every = np.arange(len(counts))
    return replace(
        sample,
        matrix=matrix,
        right=right,
        constant=sample.constant & (np.nan_to_num(matrix, nan=0.5) == 0.5).all(axis=1),
        spread={kind: of_all(spread, weights[kind], every) for kind, spread in sample.spread.items()},
        pair=lambda i, j: of_all(sample.pair(i, j), EACH_OTHER, np.array([j, i])),
        difference=difference,
        fingerprint=sample.fingerprint + matrix.tobytes(),
    )


def spread_of_all(moments: Moments, sampled: Ints, counts: Ints, v: Floats, matrix: Floats) -> Spread:
    r"""Return the spread of all rows from the moments of a sample, and from the ``(C, C)`` AUCs of all rows.

    The variances of the influences are those of the sample, plus :math:`3 w_i^2 / m_i` for a class of which only
    :math:`m_i` rows are in the sample: rows that it does not have are less than a share of :math:`3 / m_i` (at a level
    of 95 %), and differ from the mean by at most :math:`w_i`. The variance of a score is at most
    :math:`\mu_i (w_i - \mu_i)`, with the mean of all rows.
    """
    sizes, aucs = Sizes.of_counts(counts, v), np.nan_to_num(matrix)
    mean = (v * aucs).sum(axis=1) + (v * aucs).sum(axis=0)
    variance = np.minimum(
        sampled * moments.squares + _unseen(sampled, counts) * sizes.weight**2, mean * (sizes.weight - mean)
    )
    return Spread(sizes, Moments(mean, variance / np.maximum(counts, 1)))


def difference_of_all(moments: Moments, sampled: Ints, counts: Ints, v: Floats) -> Moments:
    """Return the moments of a difference over all rows from those of a sample, as :func:`spread_of_all` does."""
    weight = v.sum(axis=0) + v.sum(axis=1)
    squares = sampled * moments.squares + _unseen(sampled, counts) * weight**2
    return Moments(moments.mean, squares / np.maximum(counts, 1))


def _unseen(sampled: Ints, counts: Ints) -> Floats:
    return np.where(sampled < counts, 3.0 / np.maximum(sampled, 1), 0.0)


def _fingerprint(scores: NDArray[np.floating]) -> bytes:
    """Return a hash of each column; -0.0 counts as the 0.0 that it equals."""
    return b"".join(hashlib.blake2b((x + x.dtype.type(0)).data, digest_size=16).digest() for x in scores.T)
