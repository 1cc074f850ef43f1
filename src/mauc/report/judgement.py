"""True classes and the scores of models → the numbers of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._typing import Floats, Ints
from mauc._validation import check_real, check_scored_classes, invalid
from mauc.kernels.auc import auc_influence, auc_matrix_and_influence
from mauc.metrics.scores import weighted_mean
from mauc.metrics.uncertainty import Comparison, Interval, Sample, comparison, interval
from mauc.partition import ClassPartition
from mauc.theory import Imbalance, imbalance

__all__ = ["Judgement", "ModelScore", "PairScore", "PairedTest", "judge"]

LISTED = 30


@dataclass(frozen=True, eq=False)
class ModelScore:
    """One model on the held-out rows."""

    name: str
    mauc: Interval
    ova: Interval
    accuracy: float
    balanced_accuracy: float
    matrix: Floats
    """``(C, C)`` with ``[i, j]`` = AUC of class i against class j, classes by falling frequency."""
    scores: NDArray[Any]
    """``(N, C)``, columns in the same order."""
    influence: Floats
    """``(N,)`` share of each row in the multiclass AUC."""


@dataclass(frozen=True)
class PairedTest:
    """A model against the first one, on the same rows."""

    name: str
    comparison: Comparison
    holm: float
    """The p-value, corrected by Holm for the number of models compared."""


@dataclass(frozen=True)
class PairScore:
    """Two classes, the rarer one first, and how the first model tells them apart."""

    i: int
    j: int
    auc_ij: float
    auc_ji: float
    interval: Interval
    """Of the mean of both."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """All that a report says, before it is drawn. Classes are by falling frequency everywhere."""

    labels: tuple[str, ...]
    counts: Ints
    codes: Ints
    models: tuple[ModelScore, ...]
    tests: tuple[PairedTest, ...]
    rarest: tuple[PairScore, ...]
    worst: tuple[PairScore, ...]
    imbalance: Imbalance
    """Of the training classes where they were given, else of those judged by."""
    of_training: bool
    absent: tuple[str, ...]
    """Classes that have scores and no row."""
    level: float
    notes: tuple[str, ...]
    """What the reader must know of these numbers, in plain words."""

    @property
    def headline(self) -> ModelScore:
        return self.models[0]

    @property
    def level_text(self) -> str:
        """The level in percent, with all its digits and never rounded up to 100."""
        return f"{(100 * Decimal(str(float(self.level)))).normalize():f} %"

    @property
    def class_auc(self) -> Floats:
        """``(C,)`` mean AUC of each class against all others, of the first model."""
        return np.asarray(np.nanmean(self.headline.matrix, axis=1))


def judge(
    y_true: ArrayLike,
    y_score: ArrayLike | Mapping[str, ArrayLike],
    *,
    labels: ArrayLike | None = None,
    y_train: ArrayLike | None = None,
    level: float = 0.95,
    listed: int = LISTED,
) -> Judgement:
    """Judge one model or several on the same rows.

    Parameters
    ----------
    y_true : (N,) classes
    y_score : (N, C) array, or dict of name -> (N, C) array
        The first model is the one reported; the others are compared with it.
    labels : (C,) array, optional
        The class of each column. Default: the sorted classes of ``y_true``. Classes without a row are left out.
    y_train : (M,) classes, optional
        Those of the training rows, for ξ and χ. Default: ``y_true``.
    level : float, default=0.95
    listed : int, default=30
        How many of the rarest pairs, and of the worst, to list.

    Returns
    -------
    Judgement

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.report import judge
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["oak", "elm", "yew"], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * (y[:, None] == ["elm", "oak", "yew"])
    >>> found = judge(y, scores)
    >>> found.labels, round(found.headline.mauc.score, 3)
    (('oak', 'elm', 'yew'), 0.877)
    """
    given = y_score if isinstance(y_score, Mapping) else {"model": y_score}
    if not given:
        raise invalid("y_score", "must hold at least one model", "an empty dict", "pass name -> scores")
    level = check_real("level", level, low=0, high=1)
    clean = []
    for name, scores in given.items():
        try:
            clean.append(check_scored_classes(y_true, scores, labels, None))
        except ValueError as error:
            raise ValueError(f"model {name!r}: {error}" if len(given) > 1 else str(error)) from None
    first = clean[0]
    counts = np.bincount(first.codes, minlength=len(first.labels))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    if len(order) < 2:
        came = f"only the class {first.labels[order[0]]}"
        raise invalid(
            "y_true", "must hold two classes or more", came, "multiclass AUC compares classes; check the rows"
        )
    place = np.full(len(counts), -1)
    place[order] = np.arange(len(order))
    codes = place[first.codes]
    names = tuple(str(first.labels[k]) for k in order)
    partition = ClassPartition(codes, len(order))
    models = [
        _model(str(name), partition, np.ascontiguousarray(checked.scores[:, order]), level)
        for name, checked in zip(given, clean, strict=True)
    ]
    pairs = _pairs(partition.counts, models[0].matrix)
    rarest, worst = pairs.rarest[:listed], pairs.worst[:listed]
    found = {pair: _pair(partition, models[0], *pair, level) for pair in dict.fromkeys((*rarest, *worst))}
    train = None if y_train is None else np.asarray(y_train)
    return Judgement(
        labels=names,
        counts=partition.counts,
        codes=codes,
        models=tuple(models),
        tests=_tests(partition, models, level),
        rarest=tuple(found[pair] for pair in rarest),
        worst=tuple(found[pair] for pair in worst),
        imbalance=imbalance(first.labels[first.codes] if train is None else train),
        of_training=train is not None,
        absent=tuple(str(label) for label in first.labels[counts == 0]),
        level=level,
        notes=_notes(names, partition.counts, models[0]),
    )


def _model(name: str, partition: ClassPartition, scores: NDArray[Any], level: float) -> ModelScore:
    right = scores.argmax(axis=1) == partition.codes
    recalls = np.bincount(partition.codes, right) / partition.counts
    ovo, ova = partition.pair_weights("ovo"), partition.pair_weights("ova")
    matrix, influence = auc_matrix_and_influence(partition.problem(scores, ovo, normalised=False))
    of_ova = auc_influence(partition.problem(scores, ova))
    return ModelScore(
        name=name,
        mauc=interval(Sample.of(partition, ovo), weighted_mean(matrix, ovo), influence, level),
        ova=interval(Sample.of(partition, ova), weighted_mean(matrix, ova), of_ova, level),
        accuracy=float(right.mean()),
        balanced_accuracy=float(recalls.mean()),
        matrix=matrix,
        scores=scores,
        influence=influence,
    )


def _tests(partition: ClassPartition, models: list[ModelScore], level: float) -> tuple[PairedTest, ...]:
    sample = Sample.of(partition, partition.pair_weights("ovo"))
    judged = [(model.mauc.score, model.influence) for model in models]
    found = [comparison(sample, other, judged[0], level) for other in judged[1:]]
    corrected = holm(np.array([c.pvalue for c in found]))
    return tuple(
        PairedTest(model.name, comparison, float(p))
        for model, comparison, p in zip(models[1:], found, corrected, strict=True)
    )


def holm(pvalues: Floats) -> Floats:
    """Holm's correction: the k-th smallest of K times K − k + 1, made monotone; NaN stays NaN."""
    order = np.argsort(pvalues)
    factor = np.count_nonzero(~np.isnan(pvalues)) - np.arange(len(pvalues))
    corrected = np.empty_like(pvalues)
    corrected[order] = np.minimum(np.maximum.accumulate(pvalues[order] * factor), 1.0)
    return corrected


@dataclass(frozen=True)
class _Pairs:
    rarest: list[tuple[int, int]]
    worst: list[tuple[int, int]]


def _pairs(counts: Ints, matrix: Floats) -> _Pairs:
    """All pairs of classes, the rarer class first, in the two orders of interest."""
    j, i = np.triu_indices(len(counts), 1)  # counts fall, so the later class is the rarer one
    mean = (matrix[i, j] + matrix[j, i]) / 2
    product = counts[i].astype(np.float64) * counts[j]

    def listing(key: Floats) -> list[tuple[int, int]]:
        return [(int(i[k]), int(j[k])) for k in np.argsort(key, kind="stable")]

    return _Pairs(rarest=listing(product), worst=listing(mean))


def _pair(partition: ClassPartition, model: ModelScore, i: int, j: int, level: float) -> PairScore:
    rows = np.flatnonzero((partition.codes == i) | (partition.codes == j))
    two = ClassPartition((partition.codes[rows] == i).astype(np.int64), 2)
    scores = np.take(model.scores, rows, axis=0)[:, [j, i]]
    v = two.pair_weights("ovo")
    auc_ij, auc_ji = float(model.matrix[i, j]), float(model.matrix[j, i])
    influence = auc_influence(two.problem(scores, v))
    return PairScore(i, j, auc_ij, auc_ji, interval(Sample.of(two, v), 0.5 * (auc_ij + auc_ji), influence, level))


def _notes(labels: tuple[str, ...], counts: Ints, model: ModelScore) -> tuple[str, ...]:
    share = counts.max() / counts.sum()
    if model.accuracy >= share:
        return _of_interval(labels, counts, model.mauc)
    return (
        *_of_interval(labels, counts, model.mauc),
        f"Accuracy {model.accuracy:.4f} is below the share of the largest class, {share:.4f}: it takes the class with "
        "the highest score, and scores made for ranking are not calibrated.",
    )


def _of_interval(labels: tuple[str, ...], counts: Ints, mauc: Interval) -> tuple[str, ...]:
    single = [label for label, n in zip(labels, counts, strict=True) if n == 1]
    if single:
        shown = ", ".join(single[:5]) + (", …" if len(single) > 5 else "")
        words = "Class {} has" if len(single) == 1 else "Classes {} have"
        return (
            f"{words.format(shown)} a single row, whose spread is unknown: intervals and tests take it from the other "
            "classes.",
        )
    if mauc.score == 1.0:
        return ("Every pair is ranked perfectly: the interval says how far from perfect these rows still allow.",)
    if counts.min() < 5:
        return (f"The rarest class has {counts.min()} rows: take its pairs as hints, and the interval as a rough one.",)
    return ()
