"""Collect the data of class pairs that the page draws, in a bounded number of bytes: AUCs, histograms, ROC curves.

The first k models get histograms of all pairs, with k as large as the budget allows; if k is 0, only the listed pairs
get them. The page draws a coarse ROC curve from histograms. If all pairs fit, each also gets a curve computed from its
scores; otherwise only the listed pairs of the first model do.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mauc._typing import Floats, Ints
from mauc.metrics.curves import thinned
from mauc.report.judgement import Judgement, PairScore

MOST_CLASSES = 400
"""With more classes, the page draws the rarest ones."""
BINS = (12, 40)
CURVE_POINTS = 48
STEPS = 10_000
NOTHING = 65_535
# Above this share of the scores in one bin of twenty, the histogram is drawn over log-odds.
PILED_UP = 0.5
CLIP = 1e-4


@dataclass(frozen=True)
class _Axis:
    """The axis of the histograms of a column."""

    low: float
    high: float
    log_odds: bool

    def edges(self, bins: int) -> Floats:
        """Return the inner edges of the bins."""
        # Halve both ends first, because high - low can overflow.
        inner = 2.0 * np.linspace(0.5 * self.low, 0.5 * self.high, bins + 1)[1:-1]
        return np.asarray(special.expit(inner) if self.log_odds else inner)


@dataclass(frozen=True)
class Layout:
    """The classes, models and curves that a page has room for."""

    first: int
    """The first class that is drawn; classes are ordered by falling frequency."""
    shown: int
    """Number of classes that are drawn."""
    n_models: int
    bins: int
    with_histograms: int
    """Number of models whose pairs all get histograms."""
    all_curves: bool
    """True if there is room for the ROC curves of all pairs of all models."""

    @classmethod
    def of(
        cls,
        n_classes: int,
        n_models: int,
        *,
        most_classes: int = MOST_CLASSES,
        histogram_bytes: int = 800_000,
        matrix_cells: int = 400_000,
        curves: int = 1_000,
    ) -> Self:
        first = max(0, n_classes - most_classes)
        shown = n_classes - first
        n_models = max(1, min(n_models, matrix_cells // shown**2))
        bins, with_histograms = _resolution(shown, n_models, histogram_bytes)
        all_curves = shown * (shown - 1) * n_models <= curves
        return cls(first, shown, n_models, bins, with_histograms, all_curves)

    def curves(self, m: int, listed: Iterable[PairScore]) -> list[tuple[int, int]]:
        """Return the pairs of model ``m`` that get an exact ROC: all, or those that are listed."""
        if self.all_curves:
            return [(i, j) for i in range(self.shown) for j in range(self.shown) if i != j]
        places = [(p.i - self.first, p.j - self.first) for p in (listed if m == 0 else ())]
        return [pair for i, j in places if min(i, j) >= 0 for pair in ((i, j), (j, i))]


@dataclass(eq=False)
class _ColumnCounts:
    """Number of scores of each class between the edges that the histograms and curves of a column need."""

    linear: _Axis
    over_log_odds: _Axis | None
    """None if the scores are not probabilities."""
    thresholds: Floats
    """Distinct positives, ascending, at which the curves are computed; empty without curves."""
    edges: Floats
    counts: Ints
    """``(C, E + 1)`` scores of each class below the first edge, between edges, and above the last."""

    @classmethod
    def of(
        cls, layout: Layout, i: int, codes: Ints, x: NDArray[Any], with_curves: bool, most_thresholds: int = 500
    ) -> Self:
        """Count the scores ``x`` of the shown class ``i``; thresholds are at even ranks of its rows' scores."""
        low, high = float(x.min()), float(x.max())
        axis = _Axis(low, high, False) if low < high else _Axis(low - 0.5, low + 0.5, False)
        ends = special.logit(np.clip([low, high], CLIP, 1.0 - CLIP)) if low >= 0.0 and high <= 1.0 else np.zeros(2)
        log_odds = _Axis(float(ends[0]), float(ends[1]), True) if ends[0] < ends[1] else None
        thresholds = np.zeros(0)
        if with_curves:
            positives = np.sort(x[codes == layout.first + i])
            if len(positives) > most_thresholds:
                positives = positives[np.linspace(0, len(positives) - 1, most_thresholds).astype(np.int64)]
            thresholds = np.unique(positives).astype(np.float64)
        edges = [axis.edges(layout.bins), axis.edges(20), thresholds, np.nextafter(thresholds, np.inf)]
        if log_odds is not None:
            edges.append(log_odds.edges(layout.bins))
        every = np.unique(np.concatenate(edges))
        shown = codes >= layout.first
        between = np.searchsorted(every, x[shown], side="right")
        between += (codes[shown] - layout.first) * (len(every) + 1)
        counts = np.bincount(between, minlength=layout.shown * (len(every) + 1))
        return cls(axis, log_odds, thresholds, every, counts.reshape(layout.shown, -1))

    def below(self, at: Floats, classes: Any = slice(None)) -> Ints:
        """Return ``(C, E)`` numbers of scores of these classes below some of the edges."""
        return np.asarray(np.cumsum(self.counts[classes], axis=1)[:, np.searchsorted(self.edges, at)])

    def histogram(self, axis: _Axis, bins: int) -> Ints:
        """Return ``(C, bins)`` counts."""
        n = self.counts.sum(axis=1, keepdims=True)
        return np.diff(self.below(axis.edges(bins)), axis=1, prepend=0 * n, append=n)

    @property
    def axis(self) -> _Axis:
        """The axis that is drawn: over log-odds if probabilities pile up."""
        if self.over_log_odds is None:
            return self.linear
        share = self.histogram(self.linear, 20) / self.counts.sum(axis=1, keepdims=True)
        return self.over_log_odds if share.mean(axis=0).max() > PILED_UP else self.linear

    def curve(self, i: int, j: int) -> list[list[int]]:
        """Return false and true positive rates in thousandths, from (0, 0) to (1, 1); a tie gives a sloped segment."""
        n = self.counts[[j, i]].sum(axis=1, keepdims=True)
        at_least, above = (
            1.0 - self.below(edges, [j, i]) / n for edges in (self.thresholds, np.nextafter(self.thresholds, np.inf))
        )
        # From the highest threshold down: without the positives at it, then with them.
        false, true = np.stack([at_least, above], axis=2).reshape(2, -1)[:, ::-1]
        return _thinned_corners(np.concatenate([[0.0], false, [1.0]]), np.concatenate([[0.0], true, [1.0]]))


def pair_data(judgement: Judgement) -> dict[str, Any]:
    """Return JSON data from which the page draws any pair; arrays are in base64."""
    layout = Layout.of(len(judgement.labels), len(judgement.models))
    first = layout.first
    models = []
    for m, model in enumerate(judgement.models[: layout.n_models]):
        curves = layout.curves(m, (*judgement.worst, *judgement.rarest))
        full, auc = m < layout.with_histograms, model.matrix[first:, first:]
        axes: list[_Axis] = []
        histograms, roc = None, {}
        if full or curves:
            with_curves = {i for i, _ in curves}
            columns = [
                _ColumnCounts.of(layout, i, judgement.codes, model.scores[:, first + i], i in with_curves)
                for i in range(layout.shown)
            ]
            axes = [column.axis for column in columns]
            # [i, j] is the histogram of column i over the rows of class j, with heights up to 255.
            levels = [_levels(column.histogram(axis, layout.bins)) for column, axis in zip(columns, axes, strict=True)]
            histograms = np.stack(levels).astype(np.uint8)
            roc = {(i, j): columns[i].curve(i, j) for i, j in curves}
        models.append(
            {
                "name": model.name,
                "auc": _base64(np.where(np.isnan(auc), NOTHING, np.rint(np.nan_to_num(auc) * STEPS)).astype("<u2")),
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


def _resolution(n_classes: int, n_models: int, histogram_bytes: int) -> tuple[int, int]:
    """Return the number of bins, and the number of models whose pairs all get histograms."""
    for models in range(n_models, 0, -1):
        bins = histogram_bytes // (n_classes**2 * models)
        if bins >= BINS[0]:
            return min(bins, BINS[1]), models
    return 24, 0


def _levels(counts: Ints) -> Ints:
    """Scale ``(C, bins)`` counts to heights up to 255."""
    scale = 255.0 / np.maximum(counts.max(axis=1, keepdims=True), 255)
    return np.ceil(counts * scale - 1e-9).astype(np.int64)  # a bin with one row is not drawn empty


def thinned_curve(x: Floats, y: Floats) -> list[list[int]]:
    """Return a curve in thousandths, at most :data:`CURVE_POINTS` points at even steps along it."""
    points = thinned(x, y, CURVE_POINTS)
    return [np.rint(1000 * rate[points]).astype(int).tolist() for rate in (x, y)]


def _thinned_corners(false: Floats, true: Floats) -> list[list[int]]:
    """Return :func:`thinned_curve` of the corners of a curve."""
    moved = np.r_[True, (np.diff(false) != 0) | (np.diff(true) != 0)]
    false, true = false[moved], true[moved]
    turns = np.abs(np.diff(false)[1:] * np.diff(true)[:-1] - np.diff(false)[:-1] * np.diff(true)[1:]) > 0
    corners = np.r_[True, turns, True]
    return thinned_curve(false[corners], true[corners])


def _some(histograms: NDArray[np.uint8], pairs: Sequence[tuple[int, int]]) -> dict[str, str]:
    wanted = {*pairs, *((i, i) for i, _ in pairs)}
    return {f"{i},{j}": _base64(histograms[i, j]) for i, j in sorted(wanted)}


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
