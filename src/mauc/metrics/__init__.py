"""Multiclass AUC: the score, its pair matrix, its uncertainty, its text and pictures."""

from mauc.metrics.binned import BinnedMAUC
from mauc.metrics.cross_validation import compare_cv_scores
from mauc.metrics.display import MinorityPairsDisplay, MulticlassROCDisplay, PairwiseAUCDisplay
from mauc.metrics.importance import Importance, mauc_importance
from mauc.metrics.inference import Comparison, Interval, ModelComparison, compare_mauc, mauc_interval
from mauc.metrics.sample_size import SampleSize, mauc_sample_size
from mauc.metrics.scores import mauc_score, pairwise_auc
from mauc.metrics.text_report import multiclass_auc_report

__all__ = [
    "BinnedMAUC",
    "Comparison",
    "Importance",
    "Interval",
    "MinorityPairsDisplay",
    "ModelComparison",
    "MulticlassROCDisplay",
    "PairwiseAUCDisplay",
    "SampleSize",
    "compare_cv_scores",
    "compare_mauc",
    "mauc_importance",
    "mauc_interval",
    "mauc_sample_size",
    "mauc_score",
    "multiclass_auc_report",
    "pairwise_auc",
]
