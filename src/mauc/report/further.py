"""What a report says of its first model besides pairs: classes, decisions, calibration, what more rows would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.partition import ClassPartition
from mauc.report.by_class import ClassScore, class_scores
from mauc.report.calibration import Calibration, calibration
from mauc.report.collect import Gain, gains
from mauc.report.decisions import Decision, Mistake, are_probabilities, decide, mistakes

__all__ = ["Further", "look_further"]


@dataclass(frozen=True)
class Further:
    """Classes are by falling frequency. Of repeated scores, decisions and calibration are of the first."""

    classes: tuple[ClassScore, ...]
    decisions: tuple[Decision, ...]
    """The first is what the model predicts, where that was given, else the highest score."""
    mistakes: tuple[Mistake, ...]
    """Of the first decision."""
    calibration: Calibration | None
    """None of scores that are no probabilities."""
    gains: tuple[Gain, ...]


def look_further(
    partition: ClassPartition,
    repeats: tuple[NDArray[Any], ...],
    matrix: Floats,
    influence: Floats,
    priors: Floats | None,
    *,
    level: float,
    listed: int,
    predicted: Ints | None = None,
    groups: Ints | None = None,
) -> Further:
    """Of the model with these scores, AUCs and influences; ``priors`` are the ``(C,)`` shares of the classes in
    training, ``predicted`` the ``(N,)`` classes that the model predicts, -1 for a class without test rows. What more
    rows would bring is not said of rows in groups: it depends on whose they are."""
    scores, codes, counts = repeats[0], partition.codes, partition.counts
    decisions = decide(scores, codes, counts, priors, level, predicted, groups)
    v = partition.pair_weights("ovo")
    return Further(
        classes=class_scores(partition, repeats, np.nanmean(matrix, axis=1), decisions[0].predicted, level, groups),
        decisions=tuple(decisions),
        mistakes=tuple(mistakes(decisions[0], codes, counts, listed, level, groups)),
        calibration=calibration(scores, codes, level, groups) if are_probabilities(scores) else None,
        gains=() if groups is not None else gains(counts, v.sum(axis=0) + v.sum(axis=1), influence, codes),
    )
