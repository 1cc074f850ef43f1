"""Collect the data of classes and decisions that the page draws, in a bounded number of bytes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.metrics import precision_recall_curve

from mauc.report.further import Bin, reliability, roc, tenths
from mauc.report.judgement import Judgement
from mauc.report.pairs import thinned_curve

CELLS = 20_000
"""Largest number of cells of a confusion matrix on the page; those with most rows are kept."""


def class_data(judgement: Judgement, first: int) -> dict[str, Any]:
    """Return JSON data of the classes from ``first`` on, as in :func:`mauc.report.pairs.pair_data`."""
    further, model = judgement.further, judgement.headline
    if further is None:
        return {"by_class": None, "decisions": None, "calibration": None}
    codes, counts, level = judgement.codes, judgement.counts, judgement.level
    by_class = []
    for k in range(first, len(counts)):
        column, found = model.scores[:, k], further.classes[k]
        bins = None if further.calibration is None else reliability(column, codes == k, level, judgement.groups)
        by_class.append(
            {
                "auc": _three(found.auc),
                "recall": _three(found.recall),
                "precision": None if np.isnan(found.precision.score) else _three(found.precision),
                "average_precision": found.average_precision,
                "roc": thinned_curve(*roc(column, codes, counts, k)),
                "pr": _precision_recall(column, codes == k),
                "reliability": None if bins is None else _bins(bins),
            }
        )
    return {
        "rows": len(codes),
        "z": float(special.ndtri(0.5 + 0.5 * level)),
        "by_class": by_class,
        "decisions": [
            {"name": each.name, "text": each.text, "cells": _cells(each.confusion[first:, first:])}
            for each in further.decisions
        ],
        "calibration": None if further.calibration is None else _bins(further.calibration.bins),
    }


def _three(of: Any) -> list[float]:
    return [round(value, 4) for value in (of.score, of.low, of.high)]


@np.errstate(over="ignore", invalid="ignore")  # scikit-learn adds and subtracts scores
def _precision_recall(column: NDArray[Any], own: NDArray[np.bool_]) -> list[list[int]]:
    precision, recall, _ = precision_recall_curve(own, column)
    return thinned_curve(recall[-2::-1], precision[-2::-1])


def _bins(bins: tuple[Bin, ...]) -> list[list[int]]:
    """Return the rows of each bin and, in thousandths, its mean score and its share of right rows with the interval."""
    return [[b.rows, *(round(1000 * x) for x in (b.mean, b.right.score, b.right.low, b.right.high))] for b in bins]


def _cells(confusion: Any) -> list[float]:
    """Return position and rows of each cell that is not empty, in one flat list."""
    flat = confusion.ravel()
    filled = np.flatnonzero(flat)
    most = filled[np.argsort(-flat[filled], kind="stable")[:CELLS]]
    return [number for cell in most.tolist() for number in (cell, tenths(flat[cell]))]
