"""Pictures of multiclass AUC in scikit-learn's Display convention; matplotlib is imported when one is drawn."""

from mauc.metrics.display.minority import MinorityPairsDisplay
from mauc.metrics.display.pairwise import PairwiseAUCDisplay

__all__ = ["MinorityPairsDisplay", "PairwiseAUCDisplay"]
