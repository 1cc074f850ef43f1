"""Every pair of classes in a bounded number of bytes: AUCs, histograms of scores, ROC curves.

All pairs get histograms while they fit the budget, then only those of the first model, then only the pairs listed. From
histograms the page can draw a coarse ROC; exact ones, thinned, are kept for as many pairs as is reasonable.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.report.judgement import Judgement, PairScore

__all__ = ["MOST_CLASSES", "Drawn", "Layout", "pair_data"]

MOST_CLASSES = 400
"""Of more classes, the rarest ones are drawn."""
HISTOGRAM_BYTES = 800_000
MATRIX_CELLS = 400_000
BINS = (12, 40)
CURVES = 1_000
CURVE_POINTS = 48
ORDER_STATISTICS = 2_000
STEPS = 10_000
NOTHING = 65_535
# Probabilities crowd at 0: beyond this share in one bin of twenty, their histogram is drawn over the log-odds.
CROWDED = 0.5
CLIP = 1e-4


@dataclass(frozen=True)
class _Axis:
    """Of one column's histograms."""

    low: float
    high: float
    log_odds: bool

    def place(self, scores: NDArray[Any], bins: int) -> Ints:
        t = _log_odds(scores) if self.log_odds else scores.astype(np.float64)
        # By halves: the range of all floats is twice the largest.
        along = (0.5 * t - 0.5 * self.low) / (0.5 * self.high - 0.5 * self.low)
        return np.clip((along * bins).astype(np.int64), 0, bins - 1)


@dataclass(frozen=True)
class Layout:
    """What a page has room for."""

    first: int
    """Of the classes by falling frequency, the first that is drawn."""
    shown: int
    """How many classes are drawn."""
    n_models: int
    bins: int
    with_histograms: int
    """Models of which all pairs get their histograms."""

    @classmethod
    def of(cls, n_classes: int, n_models: int) -> "Layout":
        first = max(0, n_classes - MOST_CLASSES)
        shown = n_classes - first
        n_models = max(1, min(n_models, MATRIX_CELLS // shown**2))
        return cls(first, shown, n_models, *_resolution(shown, n_models))

    def curves(self, m: int, listed: Iterable[PairScore]) -> list[tuple[int, int]]:
        """The pairs of model ``m`` whose ROC is drawn from its scores: all, or those that are listed."""
        every = [(i, j) for i in range(self.shown) for j in range(self.shown) if i != j]
        if len(every) * self.n_models <= CURVES:
            return every
        both = [
            pair
            for p in listed
            for pair in ((p.i - self.first, p.j - self.first), (p.j - self.first, p.i - self.first))
        ]
        return [pair for pair in both if min(pair) >= 0] if m == 0 else []


class Drawn:
    """What a page draws of one model: histograms of each column within each class, and ROC curves."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.axes: list[_Axis] = []
        self.histograms = np.zeros((layout.shown, layout.shown, layout.bins), dtype=np.uint8)
        """``[i, j]`` = histogram of column i over the rows of class j, 255 at most."""
        self.order_statistics: dict[tuple[int, int], NDArray[Any]] = {}

    def add_column(self, i: int, by_class: Sequence[NDArray[Any]]) -> None:
        """The scores of column ``i``, sorted within each class; columns come in order."""
        layout = self.layout
        if i < layout.first:
            return
        shown = by_class[layout.first :]
        axis = _axis_of_sorted(shown)
        self.axes.append(axis)
        counts = np.stack([_counts_of_sorted(axis, x, layout.bins) for x in shown])
        self.histograms[i - layout.first] = _levels(counts)
        if layout.shown * (layout.shown - 1) * layout.n_models <= CURVES:
            self.keep_order(i, by_class)

    def keep_order(self, i: int, by_class: Sequence[NDArray[Any]]) -> None:
        """What the ROC curves of column ``i`` against these classes need; those that are empty are passed over."""
        first = self.layout.first
        for j, x in enumerate(by_class[first:]):
            if len(x):
                self.order_statistics[i - first, j] = _thinned(x).copy()

    def curve(self, i: int, j: int) -> list[list[int]]:
        """ROC of column i, class i against class j."""
        return _curve(self.order_statistics[i, i], self.order_statistics[i, j])


def pair_data(judgement: Judgement) -> dict[str, Any]:
    """What the page needs to draw any pair, ready for JSON; arrays are base64."""
    layout = Layout.of(len(judgement.labels), len(judgement.models))
    first = layout.first
    in_view = judgement.codes >= first if first else slice(None)
    codes = judgement.codes[in_view] - first
    models = []
    for m, model in enumerate(judgement.models[: layout.n_models]):
        curves = layout.curves(m, (*judgement.worst, *judgement.rarest))
        full = m < layout.with_histograms
        axes: list[_Axis] = []
        histograms = None
        if model.drawn is not None:
            if full or curves:
                axes, histograms = model.drawn.axes, model.drawn.histograms
            roc = {pair: model.drawn.curve(*pair) for pair in curves}
        else:
            scores = model.scores[in_view][:, first:]
            if full or curves:
                axes, histograms = _histograms(codes, scores, layout.shown, layout.bins)
            roc = _curves(codes, scores, curves)
        models.append(
            {
                "name": model.name,
                "auc": _encoded_matrix(model.matrix[first:, first:]),
                "axes": [[axis.low, axis.high, int(axis.log_odds)] for axis in axes],
                "histograms": _base64(histograms) if full and histograms is not None else None,
                "some": {} if full or histograms is None else _some(histograms, curves),
                "roc": {f"{i},{j}": curve for (i, j), curve in roc.items()},
            }
        )
    return {
        "classes": list(judgement.labels[first:]),
        "counts": judgement.counts[first:].tolist(),
        "left_out": first,
        "bins": layout.bins,
        "models": models,
    }


def _resolution(n_classes: int, n_models: int) -> tuple[int, int]:
    """Bins of a histogram, and for how many models all pairs get one."""
    for models in range(n_models, 0, -1):
        bins = HISTOGRAM_BYTES // (n_classes**2 * models)
        if bins >= BINS[0]:
            return min(bins, BINS[1]), models
    return 24, 0


def _histograms(codes: Ints, scores: NDArray[Any], n_classes: int, bins: int) -> tuple[list[_Axis], NDArray[np.uint8]]:
    """``(C, C, bins)`` with ``[i, j]`` = histogram of column i over the rows of class j, 255 at most."""
    weight = 1.0 / np.bincount(codes, minlength=n_classes)[codes]
    axes, found = [], np.empty((n_classes, n_classes, bins), dtype=np.uint8)
    for i in range(n_classes):
        axis = _axis(scores[:, i], weight)
        places = codes * bins + axis.place(scores[:, i], bins)
        counts = np.bincount(places, minlength=n_classes * bins).reshape(n_classes, bins)
        found[i] = _levels(counts)
        axes.append(axis)
    return axes, found


def _levels(counts: Ints) -> Ints:
    """``(C, bins)`` counts as heights up to 255."""
    scale = 255.0 / np.maximum(counts.max(axis=1, keepdims=True), 255)
    return np.ceil(counts * scale - 1e-9).astype(np.int64)  # a bin with one row is not drawn empty


def _axis(column: NDArray[Any], weight: Floats) -> _Axis:
    return _axis_between(
        float(column.min()),
        float(column.max()),
        lambda axis, bins: np.bincount(axis.place(column, bins), weight) / weight.sum(),
    )


def _axis_of_sorted(by_class: Sequence[NDArray[Any]]) -> _Axis:
    """The same axis, of the scores of a column that are sorted within each class."""
    return _axis_between(
        float(min(x[0] for x in by_class)),
        float(max(x[-1] for x in by_class)),
        lambda axis, bins: np.mean([_counts_of_sorted(axis, x, bins) / len(x) for x in by_class], axis=0),
    )


def _axis_between(low: float, high: float, shares: Callable[[_Axis, int], Floats]) -> _Axis:
    """``shares(axis, bins)`` is the part of each bin where all classes count the same."""
    if low == high:
        return _Axis(low - 0.5, high + 0.5, False)
    axis = _Axis(low, high, False)
    if low >= 0.0 and high <= 1.0 and shares(axis, 20).max() > CROWDED:
        ends = _log_odds(np.array([low, high]))
        if ends[0] < ends[1]:
            return _Axis(float(ends[0]), float(ends[1]), True)
    return axis


def _counts_of_sorted(axis: _Axis, x: NDArray[Any], bins: int) -> Ints:
    """``(bins,)`` how many of the sorted scores lie in each bin: its first one is found by halving."""
    bin_ = np.arange(1, bins)
    low, high = np.zeros(bins - 1, dtype=np.int64), np.full(bins - 1, len(x))
    while (low < high).any():
        middle = (low + high) >> 1
        below = (axis.place(x.take(middle, mode="clip"), bins) < bin_) & (low < high)
        low, high = np.where(below, middle + 1, low), np.where(below | (low >= high), high, middle)
    return np.diff(low, prepend=0, append=len(x))


def _log_odds(p: NDArray[Any]) -> Floats:
    inside = np.clip(p.astype(np.float64), CLIP, 1.0 - CLIP)
    return np.log(inside / (1.0 - inside))


def _curves(
    codes: Ints, scores: NDArray[Any], pairs: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], list[list[int]]]:
    members = {k: np.flatnonzero(codes == k) for k in {k for pair in pairs for k in pair}}
    return {
        (i, j): _curve(_order_statistics(scores[members[i], i]), _order_statistics(scores[members[j], i]))
        for i, j in pairs
    }


def _order_statistics(values: NDArray[Any]) -> NDArray[Any]:
    return _thinned(np.sort(values))


def _thinned(ordered: NDArray[Any]) -> NDArray[Any]:
    """Of very many sorted values, as many at even ranks."""
    if len(ordered) <= ORDER_STATISTICS:
        return ordered
    return ordered[np.linspace(0, len(ordered) - 1, ORDER_STATISTICS).astype(np.int64)]


def _curve(positives: NDArray[Any], negatives: NDArray[Any]) -> list[list[int]]:
    """False and true positive rates of the ROC, in thousandths, from (0, 0) to (1, 1); ties are slanted."""
    thresholds = np.unique(np.concatenate([positives, negatives]))[::-1]
    true = 1.0 - np.searchsorted(positives, thresholds, side="left") / len(positives)
    false = 1.0 - np.searchsorted(negatives, thresholds, side="left") / len(negatives)
    false, true = np.concatenate([[0.0], false]), np.concatenate([[0.0], true])
    turns = np.r_[True, np.abs(np.diff(false)[1:] * np.diff(true)[:-1] - np.diff(false)[:-1] * np.diff(true)[1:]) > 0]
    kept = np.flatnonzero(np.r_[turns, True])
    if len(kept) > CURVE_POINTS:
        along = false[kept] + true[kept]
        wanted = np.linspace(0.0, 2.0, CURVE_POINTS)
        kept = kept[np.unique(np.minimum(np.searchsorted(along, wanted), len(kept) - 1))]
    return [np.rint(1000 * rate[kept]).astype(int).tolist() for rate in (false, true)]


def _some(histograms: NDArray[np.uint8], pairs: Sequence[tuple[int, int]]) -> dict[str, str]:
    wanted = {*pairs, *((i, i) for i, _ in pairs)}
    return {f"{i},{j}": _base64(histograms[i, j]) for i, j in sorted(wanted)}


def _encoded_matrix(matrix: Floats) -> str:
    return _base64(np.where(np.isnan(matrix), NOTHING, np.rint(np.nan_to_num(matrix) * STEPS)).astype("<u2"))


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
