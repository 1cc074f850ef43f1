"""Every pair of classes in a bounded number of bytes: AUCs, histograms of scores, ROC curves.

All pairs get histograms while they fit the budget, then only those of the first model, then only the pairs listed. From
histograms the page can draw a coarse ROC; exact ones, thinned, are kept for as many pairs as is reasonable.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.report.judgement import Judgement

__all__ = ["MOST_CLASSES", "pair_data"]

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
        return np.clip(((t - self.low) / (self.high - self.low) * bins).astype(np.int64), 0, bins - 1)


def pair_data(judgement: Judgement) -> dict[str, Any]:
    """What the page needs to draw any pair, ready for JSON; arrays are base64."""
    n_classes = len(judgement.labels)
    first = max(0, n_classes - MOST_CLASSES)
    shown = n_classes - first
    n_models = max(1, min(len(judgement.models), MATRIX_CELLS // shown**2))
    bins, with_histograms = _resolution(shown, n_models)
    listed = [
        (a - first, b - first)
        for pair in (*judgement.worst, *judgement.rarest)
        for a, b in ((pair.i, pair.j), (pair.j, pair.i))
        if min(a, b) >= first
    ]
    in_view = judgement.codes >= first
    codes = judgement.codes[in_view] - first
    models = []
    for m, model in enumerate(judgement.models[:n_models]):
        scores = model.scores[in_view][:, first:]
        every = [(i, j) for i in range(shown) for j in range(shown) if i != j]
        curves = every if len(every) * n_models <= CURVES else listed if m == 0 else []
        full = m < with_histograms
        axes, histograms = _histograms(codes, scores, shown, bins) if full or curves else ([], None)
        models.append(
            {
                "name": model.name,
                "auc": _encoded_matrix(model.matrix[first:, first:]),
                "axes": [[axis.low, axis.high, int(axis.log_odds)] for axis in axes],
                "histograms": _base64(histograms) if full and histograms is not None else None,
                "some": {} if full or histograms is None else _some(histograms, curves),
                "roc": {f"{i},{j}": curve for (i, j), curve in _curves(codes, scores, curves).items()},
            }
        )
    return {
        "classes": list(judgement.labels[first:]),
        "counts": judgement.counts[first:].tolist(),
        "left_out": first,
        "bins": bins,
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
        scale = 255.0 / np.maximum(counts.max(axis=1, keepdims=True), 255)
        found[i] = np.ceil(counts * scale - 1e-9)  # a bin with one row is not drawn empty
        axes.append(axis)
    return axes, found


def _axis(column: NDArray[Any], weight: Floats) -> _Axis:
    low, high = float(column.min()), float(column.max())
    if low == high:
        return _Axis(low - 0.5, high + 0.5, False)
    axis = _Axis(low, high, False)
    if low >= 0.0 and high <= 1.0:
        shares = np.bincount(axis.place(column, 20), weight) / weight.sum()
        if shares.max() > CROWDED:
            ends = _log_odds(np.array([low, high]))
            if ends[0] < ends[1]:
                return _Axis(float(ends[0]), float(ends[1]), True)
    return axis


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
    """Sorted; of very many values, as many at even ranks."""
    ordered = np.sort(values)
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
