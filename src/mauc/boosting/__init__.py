"""Multiclass AUC in LightGBM and XGBoost: metrics, objectives, and a classifier. The libraries are imported when
a model is trained.
"""

from mauc.boosting.classifier import MAUCBoostingClassifier
from mauc.boosting.lightgbm import LightGBMMetric, lightgbm_metric, lightgbm_objective
from mauc.boosting.objective import BoostingObjective
from mauc.boosting.xgboost import XGBoostMetric, xgboost_metric, xgboost_objective

__all__ = [
    "BoostingObjective",
    "LightGBMMetric",
    "MAUCBoostingClassifier",
    "XGBoostMetric",
    "lightgbm_metric",
    "lightgbm_objective",
    "xgboost_metric",
    "xgboost_objective",
]
