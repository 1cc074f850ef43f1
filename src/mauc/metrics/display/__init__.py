"""Pictures of multiclass AUC in scikit-learn's Display convention; matplotlib is imported when one is drawn."""

from mauc.metrics.display.minority import MinorityPairsDisplay
from mauc.metrics.display.pairwise import PairwiseAUCDisplay
from mauc.metrics.display.roc import MulticlassROCDisplay

__all__ = ["MinorityPairsDisplay", "MulticlassROCDisplay", "PairwiseAUCDisplay"]
