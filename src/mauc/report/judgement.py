"""Judge the scores of models: all numbers of a report."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._labels import names_of, positions
from mauc._typing import Floats, Ints
from mauc._validation import (
    ScoredClasses,
    check_classes,
    check_groups,
    check_model_names,
    check_predicted,
    check_real,
    check_scored_classes,
    invalid,
    listing,
)
from mauc.metrics.inference import NO_DIFFERENCE, ModelComparison, small_class_note
from mauc.metrics.out_of_core import ScoredRows, read_all, score_rows
from mauc.metrics.scores import weighted_mean
from mauc.metrics.subgroups import Subgroup, subgroup_notes, subgroup_scores
from mauc.metrics.summary import ScoreSummary, summarise, summarise_sample
from mauc.metrics.uncertainty import (
    Interval,
    Sample,
    comparison_of_moments,
    holm,
    interval_of_moments,
    wilson,
)
from mauc.partition import ClassPartition
from mauc.report.further import Further, look_further
from mauc.report.proportions import independent_rows

LISTED = 30
CONSTANT = Interval(0.5, 0.5, 0.5, 0.0)
"""Of constant scores: their AUC is 0.5 on any rows, so the interval has no width."""


@dataclass(frozen=True, eq=False)
class ModelScore:
    """One model on the test rows."""

    name: str
    mauc: Interval
    ova: Interval
    accuracy: float
    """Accuracy of the predicted classes if they were given, else of the highest scores; ties count in equal parts."""
    balanced_accuracy: float
    matrix: Floats
    """``(C, C)`` with ``[i, j]`` = AUC of class i against class j, classes by falling frequency."""
    scores: NDArray[Any]
    """``(N, C)`` scores, columns in the same order."""
    influence: Floats
    """``(N,)`` influence of each row on the multiclass AUC."""
    rows: float | None = None
    """Effective number of independent rows for the accuracy, if rows are in groups."""


@dataclass(frozen=True)
class PairScore:
    """Two classes, the rarer one first, and how the first model ranks them."""

    i: int
    j: int
    auc_ij: float
    auc_ji: float
    interval: Interval
    """Interval of the mean of both."""


@dataclass(frozen=True)
class Guess:
    """Score of always guessing the largest class of the training rows."""

    label: str
    accuracy: float
    balanced_accuracy: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """All numbers of a report. Classes are ordered by falling frequency everywhere.

    If the scores were too many for memory, ``codes``, scores and influences are those of a sample of the rows.
    """

    labels: tuple[str, ...]
    counts: Ints
    codes: Ints
    models: tuple[ModelScore, ...]
    tests: tuple[ModelComparison, ...]
    """Each model minus the first one, with Holm's correction for the number of models compared."""
    rarest: tuple[PairScore, ...]
    worst: tuple[PairScore, ...]
    """The weakest pairs, by the upper end of their intervals, so that small pairs are not listed by chance."""
    absent: tuple[str, ...]
    """Classes that have scores and no row."""
    level: float
    notes: tuple[str, ...]
    """Notes on the limits of these numbers."""
    training_counts: dict[str, int] | None = None
    """Training rows of each class; None if they were not given."""
    further: Further | None = None
    """Results of the first model by class; None if the rows are a sample."""
    groups: Ints | None = None
    """``(N,)`` number of the group of each row; None if all rows are independent."""
    subgroups: tuple[Subgroup, ...] = ()
    """The first model on the rows of each level of a column."""

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def headline(self) -> ModelScore:
        return self.models[0]

    @property
    def guess(self) -> Guess:
        """Score of always guessing the largest of these classes in the training rows, else in the test rows."""
        training = self.training_counts
        largest = self.labels[0] if training is None else max(self.labels, key=lambda label: training.get(label, 0))
        right = np.array(self.labels) == largest
        return Guess(largest, float(self.counts[right].sum() / self.counts.sum()), float(right.mean()))

    @property
    def level_text(self) -> str:
        """The level in percent with all its digits, so that it is never rounded up to 100."""
        return f"{(100 * Decimal(str(float(self.level)))).normalize():f} %"

    @property
    def class_auc(self) -> Floats:
        """``(C,)`` mean AUC of each class against all others, for the first model."""
        return np.asarray(np.nanmean(self.headline.matrix, axis=1))


def judge(
    y_true: ArrayLike,
    y_score: ArrayLike | Mapping[str, ArrayLike],
    *,
    labels: ArrayLike | None = None,
    y_train: ArrayLike | None = None,
    y_pred: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    subgroups: ArrayLike | None = None,
    level: float = 0.95,
    listed: int = LISTED,
) -> Judgement:
    """Judge one model or several on the same test rows.

    Parameters
    ----------
    y_true : (N,) classes
    y_score : (N, C) array, or dict of name -> (N, C) array
        The report describes the first model and compares the others with it.
    labels : (C,) array, optional
        The class of each column. Default: the sorted classes of ``y_true``. Classes without a row are left out.
    y_train : (M,) classes, optional
        Classes of the training rows, for the largest class and for advice. Default: ``y_true``.
    y_pred : (N,) classes, optional
        Predictions of the first model. Default: the class with the highest score. A row whose highest score is shared
        by k classes, its own among them, counts 1/k in the accuracy and in the confusion matrix.
    groups : (N,) array, optional
        Group of each row, such as the patient of an image. Rows of a group may depend on each other; intervals and
        tests allow for that, see :func:`mauc.mauc_interval`.
    subgroups : (N,) array, optional
        Level of each row, such as the sex. The first model is judged on the rows of each level and tested against the
        other rows.
    level : float, default=0.95
        Level of all intervals.
    listed : int, default=30
        Number of the rarest pairs and of the weakest pairs to list.

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
    model_names = check_model_names(given, "y_score")
    level = check_real("level", level, low=0, high=1)
    clean = _checked(y_true, given, labels)
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
    predicted = check_predicted(y_pred, first.labels, len(codes))
    training_counts = None
    if y_train is not None:
        trained, trained_codes = check_classes(y_train, "y_train")
        known, spelled = positions(trained, first.labels), names_of(first.labels)
        named = [spelled[k] if k >= 0 else name for k, name in zip(known, names_of(trained), strict=True)]
        training_counts = dict(zip(named, np.bincount(trained_codes).tolist(), strict=True))
    return _judge_in_memory(
        model_names,
        [np.ascontiguousarray(each.scores[:, order]) for each in clean],
        codes=codes,
        labels=tuple(names_of(first.labels[order])),
        absent=tuple(names_of(first.labels[counts == 0])),
        predicted=None if predicted is None else np.where(predicted >= 0, place[predicted], -1),
        groups=groups,
        subgroups=subgroups,
        level=level,
        listed=listed,
        training_counts=training_counts,
    )


def _judge_in_memory(
    names: Sequence[str],
    scores: Sequence[NDArray[Any]],
    *,
    codes: Ints,
    labels: tuple[str, ...],
    predicted: NDArray[Any] | None,
    groups: ArrayLike | None,
    subgroups: ArrayLike | None,
    level: float,
    listed: int,
    **known: Any,
) -> Judgement:
    """Judge models by checked scores, whose columns and ``labels`` are the classes by falling frequency."""
    partition = ClassPartition(codes, len(labels))
    group_codes = check_groups(groups, len(codes))
    summaries = [
        summarise(partition, each, None if k else predicted, groups=group_codes, compared=len(scores) > 1)
        for k, each in enumerate(scores)
    ]
    further = look_further(
        partition,
        scores[0],
        summaries[0].matrix,
        level=level,
        listed=listed,
        predicted=predicted,
        groups=group_codes,
    )
    by_level: list[Subgroup] = []
    if subgroups is not None:
        by_level = subgroup_scores(partition, scores[0], np.asarray(labels), subgroups, groups=group_codes, level=level)
    return _judgement(
        names,
        scores,
        summaries,
        listed,
        labels=labels,
        counts=partition.counts,
        codes=codes,
        level=level,
        further=further,
        groups=group_codes,
        subgroups=tuple(by_level),
        **known,
    )


def judge_rows(
    models: Mapping[str, ScoredRows],
    labels: Sequence[str],
    absent: Sequence[str] = (),
    *,
    predicted: NDArray[Any] | None = None,
    groups: ArrayLike | None = None,
    subgroups: ArrayLike | None = None,
    level: float = 0.95,
    listed: int = LISTED,
    most_rows: int = 1_000_000,
    most_scores: int = 1 << 25,
) -> Judgement:
    """Judge rows that can be read several times and that all models share.

    Up to ``most_rows`` rows, and ``most_scores`` scores of all models, are held in memory, as by :func:`judge`, and so
    are all rows if there are groups or subgroups. Otherwise intervals, tests and pictures come from a sample of that
    size, and ``further`` is None.

    Parameters
    ----------
    models : name -> rows whose classes are those of ``labels``, by falling frequency
    labels : classes of the columns
    absent : classes without a row, which are not among the labels
    predicted : (N,) array, optional
        Predictions of the first model, as positions among the labels, -1 for other classes. Default: the class with the
        highest score.
    groups, subgroups, level, listed
        As in :func:`judge`.
    most_rows, most_scores : most that is held in memory
    """
    rows = next(iter(models.values()))
    n_sample, n_rows = min(most_rows, most_scores // (len(labels) * len(models))), len(rows.codes)
    known: dict[str, Any] = {"labels": tuple(labels), "absent": tuple(absent), "level": level, "listed": listed}
    if n_rows <= n_sample or groups is not None or subgroups is not None:
        scores = [np.ascontiguousarray(read_all(each)) for each in models.values()]
        known |= {"groups": groups, "subgroups": subgroups, "predicted": predicted}
        return _judge_in_memory(list(models), scores, codes=rows.codes.astype(np.int64), **known)
    scored = {name: score_rows(each, n_sample) for name, each in models.items()}
    right = [each.right for each in scored.values()]
    if predicted is not None:
        right[0] = np.bincount(rows.codes[predicted == rows.codes], minlength=len(labels)).astype(np.float64)
    codes = next(iter(scored.values())).codes.astype(np.int64)
    partition = ClassPartition(codes, len(labels))
    summaries = [
        summarise_sample(
            partition,
            each.scores,
            counts=rows.counts,
            matrix=each.matrix,
            right=n_right,
            compared=len(models) > 1,
        )
        for each, n_right in zip(scored.values(), right, strict=True)
    ]
    judged = _judgement(
        list(scored),
        [each.scores for each in scored.values()],
        summaries,
        counts=rows.counts,
        codes=codes,
        **known,
    )
    note = (
        f"The table has {n_rows:,} rows. AUCs and accuracies count all of them; the intervals of AUCs, tests and "
        f"curves come from a sample of {len(codes):,} rows."
    )
    return replace(judged, notes=(*judged.notes, note))


def _judgement(
    names: Sequence[str],
    scores: Sequence[NDArray[Any]],
    summaries: Sequence[ScoreSummary],
    listed: int,
    *,
    counts: Ints,
    level: float,
    groups: Ints | None = None,
    **known: Any,
) -> Judgement:
    """Return the judgement of models, with their paired tests, listed pairs and notes."""
    models = [
        _model(name, each, summary, counts, groups, level)
        for name, each, summary in zip(names, scores, summaries, strict=True)
    ]
    rarest, worst = listed_pairs(counts, summaries[0], level, listed)
    found = Judgement(
        models=tuple(models),
        tests=_tests(models, summaries, level),
        rarest=rarest,
        worst=worst,
        counts=counts,
        level=level,
        groups=groups,
        notes=(),
        **known,
    )
    return replace(found, notes=notes_of(found))


def _checked(y_true: ArrayLike, given: Mapping[str, Any], labels: ArrayLike | None) -> list[ScoredClasses]:
    """Check the scores of each model."""
    if not given:
        raise invalid("y_score", "must hold at least one model", "an empty dict", "pass name -> scores")
    clean = []
    for name, scores in given.items():
        try:
            clean.append(check_scored_classes(y_true, scores, labels, None))
        except ValueError as error:
            raise ValueError(f"model {name!r}: {error}" if len(given) > 1 else str(error)) from None
    return clean


def _model(
    name: str, scores: NDArray[Any], summary: ScoreSummary, counts: Ints, groups: Ints | None, level: float
) -> ModelScore:
    """Return the scores of a model."""
    partition = ClassPartition.of_sizes(counts)
    intervals = {
        kind: CONSTANT
        if summary.constant.all()
        else interval_of_moments(
            spread.sizes, weighted_mean(summary.matrix, partition.pair_weights(kind)), spread.moments, level
        )
        for kind, spread in summary.spread.items()
    }
    return ModelScore(
        name=name,
        mauc=intervals["ovo"],
        ova=intervals["ova"],
        accuracy=float(summary.right.sum() / counts.sum()),
        balanced_accuracy=float((summary.right / counts).mean()),
        matrix=summary.matrix,
        scores=scores,
        influence=np.asarray(summary.influence, dtype=np.float64),
        rows=None if groups is None else independent_rows(summary.hits, groups),
    )


def _tests(
    models: Sequence[ModelScore], summaries: Sequence[ScoreSummary], level: float
) -> tuple[ModelComparison, ...]:
    """Test each model against the first; identical scores differ by exactly 0."""
    (one, of_one), *others = zip(models, summaries, strict=True)
    sizes, moments = of_one.spread["ovo"]
    found = []
    for model, summary in others:
        if summary.fingerprint == of_one.fingerprint:
            found.append(NO_DIFFERENCE)
            continue
        a, b = (model.mauc.score, summary.spread["ovo"].moments), (one.mauc.score, moments)
        found.append(comparison_of_moments(sizes, a, b, summary.difference(of_one.influence), level))
    corrected = holm(np.array([c.pvalue for c in found]))
    return tuple(
        ModelComparison(**vars(comparison), a=model.name, b=one.name, holm=float(p))
        for model, comparison, p in zip(models[1:], found, corrected, strict=True)
    )


def listed_pairs(
    counts: Ints, summary: ScoreSummary, level: float, listed: int, *, searched: int = 300
) -> tuple[tuple[PairScore, ...], tuple[PairScore, ...]]:
    """Return the rarest pairs, by the product of their class sizes, and the weakest, by the high end of their interval.

    Intervals are computed in the order of an estimate of their high end. An interval never ends below its mean: once
    all means left are above the last high end listed, no later pair can be listed. With many pairs the search stops
    after ``searched``: searching all pairs of 200 classes took seconds and changed at most one of thirty.
    """
    j, i = np.triu_indices(len(counts), 1)  # counts fall, so the later class is the rarer one
    n_i, n_j = counts[i].astype(np.float64), counts[j].astype(np.float64)
    means = (summary.matrix[i, j] + summary.matrix[j, i]) / 2

    @cache
    def score(k: int) -> PairScore:
        one, other = int(i[k]), int(j[k])
        if summary.constant[[one, other]].all():
            return PairScore(one, other, 0.5, 0.5, CONSTANT)
        sizes, moments = summary.pair(one, other)
        found = interval_of_moments(sizes, float(means[k]), moments, level)
        return PairScore(one, other, float(summary.matrix[one, other]), float(summary.matrix[other, one]), found)

    # With the variance of random scores, θ(1 − θ)/3 (1/n_i + 1/n_j), and a quantile of 2.
    _, high = wilson(means, 4.0 * (1.0 / n_i + 1.0 / n_j) / 3.0)
    order = np.argsort(high, kind="stable")[: max(listed, searched)]
    least_left = np.minimum.accumulate(means[order][::-1])[::-1]
    worst: list[PairScore] = []
    for k, least in zip(order, least_left, strict=True):
        if len(worst) == listed and (listed == 0 or least > worst[-1].interval.high):
            break
        insort(worst, score(int(k)), key=lambda pair: (pair.interval.high, pair.interval.score, pair.interval.low))
        del worst[listed:]
    rarest = np.argsort(n_i * n_j, kind="stable")[:listed]
    return tuple(score(int(k)) for k in rarest), tuple(worst)


def notes_of(judgement: Judgement, *, few: int = 5) -> tuple[str, ...]:
    """Return notes on the limits of these numbers."""
    model, guess = judgement.headline, judgement.guess
    notes = [*_of_groups(judgement), *_of_few_rows(judgement, few), *_of_hidden_errors(judgement)]
    notes += [f"{note[0].upper()}{note[1:]}." for note in subgroup_notes(judgement.subgroups)]
    if model.mauc.low <= 0.5 <= model.mauc.high:
        notes.append("The interval of the MAUC contains 0.5: these scores may rank no better than chance.")
    if model.mauc.score == 1.0:
        notes.append("Every pair is ranked perfectly: the interval says how much worse new rows may be ranked.")
    if model.accuracy < guess.accuracy:
        notes.append(
            f"Accuracy {model.accuracy:.3f} is below {guess.accuracy:.3f}, that of always guessing {guess.label}: the "
            "predictions do not aim at accuracy (mauc fit --decide accuracy does), or the scores are not calibrated."
        )
    return tuple(notes)


def _of_groups(judgement: Judgement, *, few: int = 30) -> list[str]:
    """Say that rows are in groups."""
    if judgement.groups is None:
        return []
    n_groups = len(np.unique(judgement.groups))
    found = f"The {len(judgement.groups)} test rows are in {n_groups} groups: intervals and tests allow for that."
    return [f"{found} With fewer than {few} groups they are rough." if n_groups < few else found]


def _of_hidden_errors(judgement: Judgement) -> list[str]:
    """Name a small class that decides the interval although none of its rows is ranked wrong."""
    partition = ClassPartition(judgement.codes, len(judgement.labels))
    sample = Sample.of(partition, partition.pair_weights("ovo"), judgement.groups)
    found = small_class_note(sample, judgement.headline.influence, judgement.labels)
    return [f"{found[0].upper()}{found[1:]}."] if found else []


def _of_few_rows(judgement: Judgement, few: int) -> list[str]:
    """Name classes with too few test rows, and say what to do about it."""
    sizes = dict(zip(judgement.labels, map(int, judgement.counts), strict=True))
    rare = [name for name, n in sizes.items() if n < few]
    if not rare:
        return []
    shown = listing(rare, 5)
    if len(rare) == 1:
        rows = "a single test row" if sizes[rare[0]] == 1 else f"{sizes[rare[0]]} test rows"
        found = f"Class {shown} has {rows}: its AUCs and their intervals are rough."
    else:
        found = f"{len(rare)} classes have fewer than {few} test rows ({shown}): their AUCs and "
        found += "intervals are rough."
    training = judgement.training_counts
    # In cross-validation every training row is a test row as well.
    more = training is not None and any(training.get(name, 0) > sizes[name] for name in rare)
    return [f"{found} Cross-validation (mauc fit --cv 5) tests on all rows." if more else found]
