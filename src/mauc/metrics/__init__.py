"""Multiclass AUC: the score, its pair matrix, its uncertainty, its pictures."""

from mauc.metrics.display import MinorityPairsDisplay, PairwiseAUCDisplay
from mauc.metrics.importance import Importance, mauc_importance
from mauc.metrics.inference import Comparison, Interval, compare_mauc, mauc_interval
from mauc.metrics.scores import mauc_score, pairwise_auc

__all__ = [
    "Comparison",
    "Importance",
    "Interval",
    "MinorityPairsDisplay",
    "PairwiseAUCDisplay",
    "compare_mauc",
    "mauc_importance",
    "mauc_interval",
    "mauc_score",
    "pairwise_auc",
]
