"""Measure a pair of classes: AUC of one column or of a difference of two, over all or part of the ROC curve."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from mauc._kernels.auc import auc_matrix
from mauc._kernels.pair_auc import pair_matrix
from mauc._kernels.tiles import Problem
from mauc._typing import By, Floats
from mauc._validation import check_choice, check_real, invalid, listing
from mauc.metrics.uncertainty import Sample

FEW = 10
"""With fewer samples in its region, a partial AUC is biased upwards: the lowest of few samples lie above the lowest
share of the population."""


@dataclass(frozen=True)
class PairMeasure:
    """The AUC of class i against class j.

    A region of high sensitivity uses only the lowest share of class i, and a region of high specificity only the
    highest share of class j. The second equals the first with the classes exchanged and the scores reversed.
    """

    difference: bool = False
    """Rank by column i minus column j, instead of column i."""
    share: float = 1.0
    """Share of a class in the region."""
    of_negatives: bool = False
    """The region is a share of class j, instead of class i."""

    @classmethod
    def checked(cls, by: Any, min_sensitivity: Any, min_specificity: Any) -> PairMeasure:
        """Check the arguments of a metric, and return the measure that they describe."""
        difference = check_choice("by", by, get_args(By)) == "difference"
        if min_sensitivity is not None and min_specificity is not None:
            advice = "pass one of the two: a region of the ROC curve is bounded on one axis here"
            raise invalid("min_specificity", "must be None beside min_sensitivity", repr(min_specificity), advice)
        for name, value in (("min_sensitivity", min_sensitivity), ("min_specificity", min_specificity)):
            if value is not None:
                share = 1.0 - check_real(name, value, low=0, high=1, closed="left")
                return cls(difference, share, of_negatives=name == "min_specificity" and share < 1.0)
        return cls(difference)

    def matrix(self, problem: Problem, influence: Floats | None = None) -> Floats:
        """Return the ``(C, C)`` AUCs; NaN on the diagonal and for classes without samples.

        The influence of each sample on ``Σ v_ij AUC_ij`` is added to ``influence`` if it is given.
        """
        if not self.difference and not self.of_negatives:
            return auc_matrix(problem, self.share, influence)
        ranked = self._ranked(problem)
        matrix = pair_matrix(ranked, difference=self.difference, share=self.share, influence=influence)
        return matrix.T.copy() if self.of_negatives else matrix

    def matrix_and_influence(self, problem: Problem) -> tuple[Floats, Floats]:
        """Return the matrix and the ``(N,)`` influences."""
        influence = np.zeros(len(problem.classes.y))
        return self.matrix(problem, influence), influence

    def effective(self, sample: Sample, v: Floats) -> Sample:
        """Return the sample with the effective sizes of the classes for this measure.

        Only the share ``c`` of the ``n`` samples of a class is in the region, so the variance of their mean is
        ``1 / (c n)`` instead of ``1 / n``. If a class has the weight ``a`` in pairs with a region and ``b`` in others,
        its effective size is ``n (a + b)² / (a / √c + b)²``.
        """
        cut, whole = self._weights(v)
        deviation = cut / np.sqrt(self.share) + whole
        part = np.divide(cut + whole, deviation, out=np.ones(len(v)), where=deviation > 0)
        return replace(sample, size=sample.size * part**2)

    def warn_of_few(self, sample: Sample, v: Floats, labels: NDArray[Any], stacklevel: int) -> None:
        """Warn of the classes of which a region holds too few samples."""
        cut, _ = self._weights(v)
        few = labels[(cut > 0) & (self.share * sample.size < FEW - 1e-9)]
        if self.share < 1.0 and len(few):
            name = "min_specificity" if self.of_negatives else "min_sensitivity"
            warnings.warn(
                f"{name}={1.0 - self.share:.4g} leaves fewer than {FEW} samples of class {listing(few)} in its region: "
                "the score is biased upwards, and its interval is rough",
                UndefinedMetricWarning,
                stacklevel=stacklevel,
            )

    def _weights(self, v: Floats) -> tuple[Floats, Floats]:
        """Return the ``(C,)`` weights of the pairs in which a class is cut to its share, and in which it is whole."""
        as_positive, as_negative = v.sum(axis=1), v.sum(axis=0)
        return (as_negative, as_positive) if self.of_negatives else (as_positive, as_negative)

    def _ranked(self, problem: Problem) -> Problem:
        """Return the problem seen from the class whose region it is, with scores whose differences are finite."""
        classes, scores = problem.classes, problem.scores
        if self.of_negatives and classes.pair_weights is not None:
            classes = replace(classes, pair_weights=classes.pair_weights.T)
        if self.difference and max(float(scores.max()), -float(scores.min())) > 0.5 * np.finfo(np.float64).max:
            scores = scores * 0.5
        return replace(problem, classes=classes, scores=scores)
