"""The phases of :mod:`mauc.metrics.partial_counts` over partitions: what each task does, and which tasks there are.

Partitions are read once for their classes, once for the scores of their own columns, and once per block of columns for
the others. Only own-class scores and sums travel between workers. Phases are computed one after the other, so that a
worker holds one block of columns and a few partitions, never all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed
from numpy.typing import ArrayLike, NDArray

from mauc._typing import Floats, Ints
from mauc._validation import (
    check_choice,
    check_classes,
    check_labels,
    check_pairs,
    check_scored_classes,
    check_weights,
    invalid,
)
from mauc.dask._partitions import in_partition, keep, partitions, run, task, tree
from mauc.metrics import partial_counts as counts
from mauc.metrics.partial_counts import ClassTotals, Ladder, Landed, OwnScores, Placed
from mauc.metrics.scores import ABSENT, check_pair_weights, weighted_mean

__all__ = ["Ranking", "ScoredPartitions", "class_sizes", "codes_of"]

BLOCK_SCORES = 1 << 25
"""Own-class scores that a worker holds at once, 256 MiB of float64; a class alone may be more."""


class Rows(NamedTuple):
    """The clean rows of a partition."""

    codes: Ints
    scores: NDArray[np.floating]
    weight: Floats | None


@dataclass(frozen=True)
class Reader:
    """What turns a partition into clean rows: the checks of the metric in memory, with its number in the message."""

    labels: NDArray[Any]
    edges: Floats | None
    """Where scores are binned, the edges of the bins: the score becomes the number of its bin."""

    def __call__(self, parameter: str, number: int, y: Any, weight: Any, scores: Any) -> Rows:
        with in_partition(number):
            if len(y) == 0:
                return self._none(parameter, weight, scores)
            clean = check_scored_classes(y, scores, self.labels, None, parameter)
            if weight is not None:
                weight = check_weights(weight, clean.codes.shape)
        found = clean.scores
        if self.edges is not None:
            found = np.searchsorted(self.edges, found, side="right").astype(np.float64)
        return Rows(clean.codes, found, weight)

    def _none(self, parameter: str, weight: Any, scores: Any) -> Rows:
        """No row; the scores must have none either."""
        if len(scores):
            came = f"{len(scores)} rows for 0 true classes"
            raise invalid(
                parameter, "must have one row per sample", came, "pass scores and classes of the same samples"
            )
        # float32 leaves the scores of other partitions as they are.
        empty = np.zeros((0, len(self.labels)), dtype=np.float32)
        return Rows(np.zeros(0, dtype=np.int64), empty, None if weight is None else np.zeros(0))


class ScoredPartitions:
    """Partitions of classes, weights and scores of some models: phase one is done.

    ``scores`` maps the name of a parameter to its collection; ``edges`` bin them. What the user asks for is looked at
    before the first pass over the scores.
    """

    def __init__(
        self,
        y_true: Any,
        labels: ArrayLike | None,
        sample_weight: Any,
        scores: dict[str, Any],
        *,
        pairs: str | ArrayLike = "ovo",
        absent: str = "ignore",
        edges: Floats | None = None,
    ) -> None:
        check_choice("absent", absent, ABSENT)
        known = None if labels is None else check_labels(labels)
        names = list(scores)
        first = {names[0]: scores[names[0]]}
        others = {name: scores[name] for name in names[1:]}
        self.parts = partitions(**first, y_true=y_true, sample_weight=sample_weight, **others)
        classes, sizes = class_sizes([(p.number, p.parts[1]) for p in self.parts])
        self.labels = classes if known is None else known
        if known is not None:
            sizes = _by_label(classes, sizes, known)
        self.pairs, self.absent = check_pairs(pairs, len(self.labels)), absent
        if len(self.labels) < 2:
            self.totals = ClassTotals(sizes, np.zeros(1, dtype=np.int64), np.ones((3, 1)), False)
            self.rankings = []
            return
        self.reader = task(_itself, Reader(self.labels, edges), what="reader")
        columns = [0, *range(3, len(names) + 2)]
        inputs = [[(p.number, *p.parts[1:3], p.parts[c]) for p in self.parts] for c in columns]
        self.rankings = [
            Ranking(self, parameter, inputs[k], blocks_of(sizes, BLOCK_SCORES)) for k, parameter in enumerate(names)
        ]
        self.totals = self.rankings[0].totals
        for ranking in self.rankings:
            ranking.climb()

    def pair_weights(self) -> Floats | None:
        """The weights of the class pairs, as in memory."""
        return check_pair_weights(self.labels, self.totals.partition(), self.pairs, self.absent)

    def squares(self, influences: list[list[Delayed]], means: list[Floats]) -> list[Floats]:
        """The squares of the influences of each model about their means; of two models, of their difference too."""
        totals = task(_itself, self.totals, what="totals")
        each = [
            task(_squares, totals, means, *p.parts[1:3], self.labels, *hs)
            for p, *hs in zip(self.parts, *influences, strict=True)
        ]
        (found,) = run(tree(_sum, each, "sum-squares"))
        return list(found)


class Ranking:
    """The phases for the scores of one model."""

    def __init__(
        self, scored: ScoredPartitions, parameter: str, inputs: list[tuple[Any, ...]], blocks: list[tuple[int, int]]
    ) -> None:
        self.reader, self.parameter, self.inputs, self.blocks = scored.reader, parameter, inputs, blocks
        own = [self._task(_own_scores, *part) for part in inputs]
        merged = []
        for first, last in blocks:
            mine = [task(OwnScores.columns, part, first, last) for part in own]
            merged.append(tree(counts.merge, mine, "merge-own-scores"))
        self.own: list[Delayed] = keep(*merged)
        (self.totals,) = run(task(_totals, self.own[0]))
        counts.check_class_weights(self.totals, scored.labels)

    def climb(self) -> None:
        """From own scores to ladders, which stay on the workers."""
        ladders = [task(OwnScores.ladders, own) for own in self.own]
        self.ladders: list[Delayed] = keep(*ladders)
        self.own = []
        self.shared = task(_itself, self.totals, what="totals")

    def _task(self, function: Any, *args: Any) -> Delayed:
        return task(function, self.reader, self.parameter, *args)

    def matrix(self, lowered: float = 0.0) -> Floats:
        """The pair matrix, one block of columns after the other; all negatives lowered by that much."""
        lost: list[Floats] = []
        for (first, last), ladders in zip(self.blocks, self.ladders, strict=True):
            counted = [
                self._task(_count_lost, *part, ladders, self.shared, slice(first, last), lowered)
                for part in self.inputs
            ]
            lost += run(tree(_sum, counted, "sum-lost"))
        return counts.auc_of_lost(np.hstack(lost), self.totals)

    def influences(self, v: Floats) -> tuple[float, Floats, list[Delayed]]:
        """The score, the mean influence of each class, and the influences of each partition, kept on the workers."""
        weights = task(_itself, v, what="pair-weights")
        lost: list[Floats] = []
        won = []
        kept: Sequence[Delayed | None] = [None] * len(self.inputs)
        for (first, last), ladders in zip(self.blocks, self.ladders, strict=True):
            placed = [
                self._task(_place, *part, ladders, self.shared, weights, slice(first, last)) for part in self.inputs
            ]
            sums = [task(_sums_of_placed, each) for each in placed]
            summed = tree(_add_placed, sums, "sum-placed")
            negative = [task(_as_negative, each, before) for each, before in zip(placed, kept, strict=True)]
            of_rungs, found, *kept = keep(task(_won, ladders, summed), task(_lost, summed), *negative)
            won.append(of_rungs)
            lost += run(found)
        for (first, _), ladders, of_rungs in zip(self.blocks, self.ladders, won, strict=True):
            kept = keep(
                *(
                    self._task(_influence, *part, ladders, of_rungs, h, first)
                    for part, h in zip(self.inputs, kept, strict=True)
                )
            )
        matrix = counts.auc_of_lost(np.hstack(lost), self.totals)
        return weighted_mean(matrix, v), counts.mean_influence(matrix, v), list(kept)


def class_sizes(parts: list[tuple[int, Delayed]], parameter: str = "y_true") -> tuple[NDArray[Any], Ints]:
    """The classes in all partitions, sorted, and how many samples each has."""
    found = run(tree(_add_classes, [task(_classes, *part, parameter) for part in parts], "add-classes"))
    classes, sizes = found[0]
    if len(classes) == 0:
        raise invalid(parameter, "must not be empty", "no sample", "pass at least one sample of two classes")
    return classes, sizes


def blocks_of(sizes: Ints, most: int) -> list[tuple[int, int]]:
    """Ranges of columns with at most so many samples, one column at least."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    edges = [0]
    while edges[-1] < len(sizes):
        reach = int(np.searchsorted(offsets, offsets[edges[-1]] + most, side="right")) - 1
        edges.append(min(max(reach, edges[-1] + 1), len(sizes)))
    return list(pairwise(edges))


def _by_label(classes: NDArray[Any], sizes: Ints, labels: NDArray[Any]) -> Ints:
    """Sizes in the order of the labels; a class that they lack is told when its partition is read."""
    of = dict(zip(classes.tolist(), sizes.tolist(), strict=True))
    return np.array([of.get(label, 0) for label in labels.tolist()], dtype=np.int64)


def _check_present(y: Any, parameter: str = "y_true") -> None:
    """A missing class is named by its row: in memory the row is for the user to find, here it is far away."""
    values = np.asarray(y)
    if values.dtype.kind not in "OfMm":
        return
    for row, value in enumerate(values.ravel().tolist()):
        if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
            came = f"a missing value in row {row}"
            raise invalid(parameter, "must name the class of every sample", came, "drop the samples without a class")


# What the tasks do; the dashboard shows their names.


def _itself(x: Any) -> Any:
    return x


def _sum(parts: list[Floats]) -> Floats:
    return np.asarray(np.sum(parts, axis=0))


def _classes(number: int, y: Any, parameter: str) -> tuple[NDArray[Any], Ints]:
    if len(y) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    with in_partition(number):
        _check_present(y, parameter)
        classes, codes = check_classes(y, parameter)
    return classes, np.bincount(codes, minlength=len(classes))


def _add_classes(parts: list[tuple[NDArray[Any], Ints]]) -> tuple[NDArray[Any], Ints]:
    filled = [part for part in parts if len(part[0])]
    if not filled:
        return parts[0]
    kinds = {"number" if classes.dtype.kind in "biuf" else "other" for classes, _ in filled}
    together = [classes if len(kinds) == 1 else classes.astype(object) for classes, _ in filled]
    # Strings and numbers together are refused with the message of one array that mixes them.
    classes, codes = check_classes(np.concatenate(together))
    return classes, np.bincount(codes, np.concatenate([sizes for _, sizes in filled])).astype(np.int64)


def _own_scores(read: Reader, parameter: str, number: int, y: Any, weight: Any, scores: Any) -> OwnScores:
    rows = read(parameter, number, y, weight, scores)
    own = counts.own_scores(rows.codes, rows.scores)
    return OwnScores.of(rows.codes, own, len(read.labels), rows.weight)


def _totals(own: OwnScores) -> ClassTotals:
    return own.totals


def _count_lost(
    read: Reader, parameter: str, number: int, y: Any, weight: Any, scores: Any,
    ladders: list[Ladder], totals: ClassTotals, columns: slice, lowered: float,
) -> Floats:  # fmt: skip
    rows = read(parameter, number, y, weight, scores)
    found = rows.scores[:, columns]
    return counts.count_lost(ladders, totals, rows.codes, found - lowered if lowered else found, rows.weight)


def _place(
    read: Reader, parameter: str, number: int, y: Any, weight: Any, scores: Any,
    ladders: list[Ladder], totals: ClassTotals, v: Floats, columns: slice,
) -> Placed:  # fmt: skip
    rows = read(parameter, number, y, weight, scores)
    return counts.place(ladders, totals, v, rows.codes, rows.scores[:, columns], rows.weight, first=columns.start)


def _sums_of_placed(placed: Placed) -> tuple[Floats, tuple[Landed, ...]]:
    return placed.lost, placed.landed


def _add_placed(parts: list[tuple[Floats, tuple[Landed, ...]]]) -> tuple[Floats, tuple[Landed, ...]]:
    landed = zip(*(part[1] for part in parts), strict=True)
    return _sum([part[0] for part in parts]), tuple(counts.add_landed(each) for each in landed)


def _lost(summed: tuple[Floats, tuple[Landed, ...]]) -> Floats:
    return summed[0]


def _won(ladders: list[Ladder], summed: tuple[Floats, tuple[Landed, ...]]) -> list[Floats]:
    return [counts.won_by_rung(*each) for each in zip(ladders, summed[1], strict=True)]


def _as_negative(placed: Placed, before: Floats | None) -> Floats:
    return placed.as_negative if before is None else placed.as_negative + before


def _influence(
    read: Reader, parameter: str, number: int, y: Any, weight: Any, scores: Any,
    ladders: list[Ladder], won: list[Floats], so_far: Floats, first: int,
) -> Floats:  # fmt: skip
    rows = read(parameter, number, y, weight, scores)
    own = counts.own_scores(rows.codes, rows.scores)
    return counts.influence(ladders, won, rows.codes, own, so_far, first=first)


def _squares(
    totals: ClassTotals, means: list[Floats], y: Any, weight: Any, labels: NDArray[Any], *hs: Floats
) -> list[Floats]:
    """One row per model, and one for the difference of two."""
    codes = codes_of(y, labels)
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    pairs = list(zip(hs, means, strict=True))
    if len(pairs) == 2:
        pairs.append((hs[0] - hs[1], means[0] - means[1]))
    return [counts.influence_squares(mean, h, totals, codes, weight) for h, mean in pairs]


def codes_of(y: Any, labels: NDArray[Any]) -> Ints:
    """Codes of classes that are known to be among the labels."""
    if len(y) == 0:
        return np.zeros(0, dtype=np.int64)
    classes, inverse = check_classes(y)
    column = {name: k for k, name in enumerate(labels.tolist())}
    return np.array([column[c] for c in classes.tolist()], dtype=np.int64)[inverse]
