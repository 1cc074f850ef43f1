"""The judgement of scores that are read in parts: the same numbers and the same page as of scores in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mauc._typing import Floats, Ints
from mauc.metrics.inference import NO_DIFFERENCE
from mauc.metrics.scores import weighted_mean
from mauc.metrics.streamed import BUDGET, ScoredRows, StreamedAUC, sorted_columns, stream_auc
from mauc.metrics.uncertainty import Moments, Sizes, comparison_of_moments, interval_of_moments
from mauc.partition import ClassPartition
from mauc.report.judgement import LISTED, Judgement, ModelScore, PairedTest, Pairs, PairScore, holm, notes_of
from mauc.report.pairs import Drawn, Layout
from mauc.theory.imbalance import imbalance_of_counts

__all__ = ["judge_streamed"]

CHUNK = 1 << 20
EACH_OTHER = np.array([[0.0, 0.5], [0.5, 0.0]])


def judge_streamed(
    models: Mapping[str, ScoredRows],
    labels: Sequence[str],
    absent: Sequence[str] = (),
    *,
    level: float = 0.95,
    listed: int = LISTED,
    budget: float = BUDGET,
) -> Judgement:
    """As :func:`mauc.report.judge`, of rows that all models share.

    Parameters
    ----------
    models : name -> rows whose classes are those of ``labels``, by falling frequency
    labels : classes of the columns; ``absent`` are those without a row, which are not among them
    level, listed
        As in :func:`mauc.report.judge`.
    budget : bytes of memory to stay within, see :func:`mauc.metrics.streamed.stream_auc`
    """
    rows = next(iter(models.values()))
    # One row per class that stands for all of them: pair weights know classes by their sizes alone.
    partition = ClassPartition(np.arange(len(labels)), len(labels), rows.counts.astype(np.float64))
    weights = [partition.pair_weights(kind) for kind in ("ovo", "ova")]
    layout = Layout.of(len(labels), len(models))
    streams, scored = [], []
    for name, each in models.items():
        drawn = Drawn(layout)
        found = stream_auc(each, weights, budget=budget, seen=drawn.add_column, keep_losses=len(models) > 1)
        streams.append(found)
        scored.append(_model(name, rows.counts, found, weights, drawn, level))
    pairs = Pairs(rows.counts, streams[0].matrix, lambda i, j: _pair(rows.counts, streams[0], i, j, level))
    rarest, worst = pairs.rarest(listed), pairs.worst(listed)
    _draw_curves(rows, scored[0].drawn, layout, (*worst, *rarest), budget)
    in_order = np.argsort(labels)
    judged = Judgement(
        labels=tuple(labels),
        counts=rows.counts,
        codes=rows.codes,
        models=tuple(scored),
        tests=_tests(models, scored, streams, weights[0], level),
        rarest=rarest,
        worst=worst,
        imbalance=imbalance_of_counts(np.asarray(labels)[in_order], rows.counts[in_order]),
        of_training=False,
        absent=tuple(absent),
        level=level,
        notes=(),
    )
    return replace(judged, notes=notes_of(judged))


def _sizes(counts: Ints, v: Floats) -> Sizes:
    return Sizes.of_shares(counts > 0, 1.0 / counts, 1.0 / counts.astype(np.float64) ** 2, v)


def _moments(counts: Ints, lost: Floats, squares: Floats, v: Floats) -> Moments:
    """Of the influences, which are what the pairs of a class weigh less what the row takes off."""
    return Moments(v.sum(axis=0) + v.sum(axis=1) - lost, squares / counts.astype(np.float64) ** 2)


def _model(
    name: str, counts: Ints, found: StreamedAUC, weights: Sequence[Floats], drawn: Drawn, level: float
) -> ModelScore:
    mauc, ova = (
        interval_of_moments(
            _sizes(counts, v),
            weighted_mean(found.matrix, v),
            _moments(counts, found.lost.mean[:, k], found.lost.squares[:, k], v),
            level,
        )
        for k, v in enumerate(weights)
    )
    return ModelScore(
        name=name,
        mauc=mauc,
        ova=ova,
        accuracy=float(found.right.sum() / counts.sum()),
        balanced_accuracy=float((found.right / counts).mean()),
        matrix=found.matrix,
        scores=np.empty((0, len(counts))),
        influence=np.empty(0),
        drawn=drawn,
    )


def _pair(counts: Ints, found: StreamedAUC, i: int, j: int, level: float) -> PairScore:
    auc_ij, auc_ji = float(found.matrix[i, j]), float(found.matrix[j, i])
    here, there = [j, i], [i, j]
    lost, squares = found.lost_in_pair.mean[here, there], found.lost_in_pair.squares[here, there]
    moments = _moments(counts[here], lost, squares, EACH_OTHER)
    score = 0.5 * (auc_ij + auc_ji)
    return PairScore(i, j, auc_ij, auc_ji, interval_of_moments(_sizes(counts[here], EACH_OTHER), score, moments, level))


def _draw_curves(
    rows: ScoredRows, drawn: Drawn | None, layout: Layout, listed: Sequence[PairScore], budget: float
) -> None:
    """One more reading for the listed pairs, where there were too many pairs to keep the curves of all."""
    wanted: dict[int, list[int]] = {}
    for i, j in layout.curves(0, listed):
        if drawn is not None and (i, j) not in drawn.order_statistics:
            wanted.setdefault(i + layout.first, [i + layout.first]).append(j + layout.first)
    if wanted and drawn is not None:
        sorted_columns(rows, wanted, drawn.keep_order, budget=budget)


def _tests(
    read: Mapping[str, ScoredRows],
    models: Sequence[ModelScore],
    streams: Sequence[StreamedAUC],
    v: Floats,
    level: float,
) -> tuple[PairedTest, ...]:
    first, *others = read.values()
    sizes = _sizes(first.counts, v)
    judged = [
        (m.mauc.score, _moments(first.counts, s.lost.mean[:, 0], s.lost.squares[:, 0], v))
        for m, s in zip(models, streams, strict=True)
    ]
    found = []
    for k, other in enumerate(others, 1):
        squares = _squares_of_difference(first, streams[k], streams[0])
        same = not squares.any() and _same(first, other)
        found.append(NO_DIFFERENCE if same else comparison_of_moments(sizes, judged[k], judged[0], squares, level))
    corrected = holm(np.array([c.pvalue for c in found]))
    return tuple(
        PairedTest(model.name, comparison, float(p))
        for model, comparison, p in zip(models[1:], found, corrected, strict=True)
    )


def _same(a: ScoredRows, b: ScoredRows) -> bool:
    """Whether two models have identical scores: one more reading, only of models that rank all rows alike."""
    columns = range(len(a.counts))
    batches = zip(a.scan(columns, CHUNK), b.scan(columns, CHUNK), strict=False)
    return all(np.array_equal(x, y) for (_, xs), (_, ys) in batches for x, y in zip(xs, ys, strict=True))


def _squares_of_difference(rows: ScoredRows, a: StreamedAUC, b: StreamedAUC) -> Floats:
    """``(C,)`` sums of squares of ``(h_a − h_b) / n_i`` about their mean."""
    assert a.losses is not None
    assert b.losses is not None
    mean = a.lost.mean[:, 0] - b.lost.mean[:, 0]
    total = np.zeros(len(rows.counts))
    for begin in range(0, len(rows.codes), CHUNK):
        part = slice(begin, begin + CHUNK)
        codes = rows.codes[part]
        centred = a.losses[part].astype(np.float64) - b.losses[part] - mean[codes]
        centred[np.abs(centred) < 1e-14] = 0.0  # as of scores in memory: equal models come out equal
        total += np.bincount(codes, centred**2, len(total))
    return total / rows.counts.astype(np.float64) ** 2
