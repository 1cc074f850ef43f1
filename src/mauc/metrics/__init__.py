"""Multiclass AUC: the score, its pair matrix, its uncertainty, its text and pictures."""

from mauc.metrics.any_measure import MulticlassAUC, compare_measure, compare_samples, measure_interval
from mauc.metrics.binned import BinnedMAUC
from mauc.metrics.calibration import Calibration
from mauc.metrics.centres import Centres, measure_by_centre
from mauc.metrics.cross_validation import compare_cv_scores
from mauc.metrics.display import MinorityPairsDisplay, MulticlassROCDisplay, PairwiseAUCDisplay
from mauc.metrics.importance import Importance, mauc_importance
from mauc.metrics.inference import Comparison, Interval, ModelComparison, compare_mauc, mauc_interval
from mauc.metrics.pdi import PDI
from mauc.metrics.probability_error import ProbabilityError
from mauc.metrics.sample_size import SampleSize, mauc_sample_size
from mauc.metrics.scores import mauc_score, pairwise_auc
from mauc.metrics.text_report import multiclass_auc_report
from mauc.metrics.thresholds import AtThreshold

__all__ = [
    "PDI",
    "AtThreshold",
    "BinnedMAUC",
    "Calibration",
    "Centres",
    "Comparison",
    "Importance",
    "Interval",
    "MinorityPairsDisplay",
    "ModelComparison",
    "MulticlassAUC",
    "MulticlassROCDisplay",
    "PairwiseAUCDisplay",
    "ProbabilityError",
    "SampleSize",
    "compare_cv_scores",
    "compare_mauc",
    "compare_measure",
    "compare_samples",
    "mauc_importance",
    "mauc_interval",
    "mauc_sample_size",
    "mauc_score",
    "measure_by_centre",
    "measure_interval",
    "multiclass_auc_report",
    "pairwise_auc",
]
