"""Several classifiers combined so that the combination has the highest multiclass AUC."""

from mauc.ensemble.bases import default_estimators
from mauc.ensemble.classifier import MAUCStackingClassifier
from mauc.ensemble.columns import TableColumns

__all__ = ["MAUCStackingClassifier", "TableColumns", "default_estimators"]
