"""What a judgement needs of the scores of one model, wherever they are: in memory, or in files larger than it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.auc import auc_influence, auc_matrix_and_influence
from mauc.metrics.partial_counts import mean_influence
from mauc.metrics.uncertainty import Moments, squares_about
from mauc.partition import ClassPartition

__all__ = ["EACH_OTHER", "ScoreSummary", "difference_squares", "fingerprint", "mean_of", "summarise"]

EACH_OTHER = np.array([[0.0, 0.5], [0.5, 0.0]])
"""Pair weights of two classes."""


@dataclass(frozen=True, eq=False)
class ScoreSummary:
    """The scores of one model on N rows of C classes, in sums over the rows.

    :func:`summarise` makes it of scores in memory, :class:`mauc.metrics.out_of_core.StreamedScores` of files.
    """

    matrix: Floats
    """``(C, C)`` ``AUC_{i|j}``, NaN on the diagonal."""
    right: Floats
    """``(C,)`` rows of each class that are predicted right."""
    moments: Mapping[str, Moments]
    """Of the influences on the multiclass AUC, for each kind of pair weights: ``"ovo"`` and ``"ova"``."""
    pair: Callable[[int, int], Moments]
    """Of the influences on the mean of ``AUC_{i|j}`` and ``AUC_{j|i}``, over the rows of j and of i."""
    influence: NDArray[np.floating]
    """``(N,)`` influence of each row with ``"ovo"``, up to a constant of its class; empty where not asked for."""
    fingerprint: bytes
    """Equal for identical scores; empty where it was not asked for."""


def summarise(
    partition: ClassPartition,
    repeats: Sequence[NDArray[np.floating]],
    predicted: Ints | None = None,
    *,
    compared: bool = False,
) -> ScoreSummary:
    """Of ``(N, C)`` scores in memory; of several repeats, the means over them.

    ``predicted`` are the classes that the model predicts, where these are not those of the highest scores;
    ``compared`` says whether to keep the fingerprint.
    """
    highest = [scores.argmax(axis=1) for scores in repeats] if predicted is None else [predicted]
    right = np.mean([each == partition.codes for each in highest], axis=0)
    ovo, ova = partition.pair_weights("ovo"), partition.pair_weights("ova")
    both = [auc_matrix_and_influence(partition.problem(scores, ovo, normalised=False)) for scores in repeats]
    matrix, influence = (mean_of(each) for each in zip(*both, strict=True))
    of_ova = mean_of(auc_influence(partition.problem(scores, ova)) for scores in repeats)

    def pair(i: int, j: int) -> Moments:
        rows = np.flatnonzero((partition.codes == i) | (partition.codes == j))
        two = ClassPartition((partition.codes[rows] == i).astype(np.int64), 2)
        columns = (np.take(scores, rows, axis=0)[:, [j, i]] for scores in repeats)
        h = mean_of(auc_influence(two.problem(each, EACH_OTHER)) for each in columns)
        return _moments(two.codes, two.counts, h, matrix[np.ix_([j, i], [j, i])], EACH_OTHER)

    return ScoreSummary(
        matrix=matrix,
        right=np.bincount(partition.codes, right, partition.n_classes).astype(np.float64),
        moments={
            "ovo": _moments(partition.codes, partition.counts, influence, matrix, ovo),
            "ova": _moments(partition.codes, partition.counts, of_ova, matrix, ova),
        },
        pair=pair,
        influence=influence,
        fingerprint=b"".join(fingerprint(scores.T) for scores in repeats if compared),
    )


def mean_of(arrays: Iterable[Floats]) -> Floats:
    """Of one array itself, to the last bit."""
    first, *others = arrays
    return np.asarray(np.mean([first, *others], axis=0)) if others else first


def fingerprint(columns: Iterable[NDArray[np.floating]]) -> bytes:
    """Of the columns of scores; -0.0 counts as the 0.0 that it equals."""
    return b"".join(hashlib.blake2b((x + x.dtype.type(0)).data, digest_size=16).digest() for x in columns)


def difference_squares(
    codes: NDArray[Any],
    counts: Ints,
    a: NDArray[np.floating],
    b: NDArray[np.floating],
    rows: int = 1 << 20,
) -> Floats:
    """``(C,)`` :attr:`Moments.squares` of ``a − b``, about the means of the classes; so many rows at a time."""
    parts = [slice(begin, begin + rows) for begin in range(0, len(codes), rows)]

    def difference(part: slice) -> Floats:
        return a[part].astype(np.float64) - b[part]

    mean = np.sum([np.bincount(codes[part], difference(part), len(counts)) for part in parts], axis=0) / counts
    squares = [squares_about(mean, difference(part), codes[part], 1.0 / counts[codes[part]]) for part in parts]
    return np.asarray(np.sum(squares, axis=0))


def _moments(codes: Ints, counts: Ints, influence: Floats, matrix: Floats, v: Floats) -> Moments:
    mean = mean_influence(matrix, v)
    return Moments(mean, squares_about(mean, influence, codes, 1.0 / counts[codes]))
