"""Linear classifiers trained by multiclass AUC."""

from mauc.linear.classifier import MAUCClassifier
from mauc.linear.search import MAUCClassifierCV

__all__ = ["MAUCClassifier", "MAUCClassifierCV"]
