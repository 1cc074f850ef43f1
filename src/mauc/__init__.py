"""Train and judge classifiers by multiclass AUC.

scores + labels  →  ClassPartition (partition.py): who is in which class, what each pair of classes counts
                 →  Surrogate × scheme (surrogates.py, kernels/): the pair loss and how its sum is computed
                 →  SurrogateRisk (risk.py): value and gradient
                 →  MAUCClassifier (linear/), MAUCPluginClassifier (plugin.py), MAUCStackingClassifier (ensemble/),
                    MAUCBoostingClassifier (boosting/): scikit-learn estimators
                 →  MAUCDecision (decision/): from their scores to decisions
                 →  mauc_score, pairwise_auc, mauc_interval, compare_mauc, multiclass_auc_report (metrics/):
                    the judgement
                 →  PairwiseAUCDisplay, MinorityPairsDisplay (metrics/display/): the pictures
"""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING

from mauc._lazy import lazily

if TYPE_CHECKING:
    from mauc.decision import MAUCDecision
    from mauc.ensemble import MAUCStackingClassifier
    from mauc.linear import MAUCClassifier, MAUCClassifierCV
    from mauc.metrics import (
        Comparison,
        Interval,
        MinorityPairsDisplay,
        MulticlassROCDisplay,
        PairwiseAUCDisplay,
        compare_mauc,
        mauc_interval,
        mauc_score,
        multiclass_auc_report,
        pairwise_auc,
    )
    from mauc.model_selection import mauc_scorer
    from mauc.plugin import MAUCPluginClassifier
    from mauc.risk import SurrogateRisk
    from mauc.tables.fit import FittedTable, fit_table

__version__ = _version("mauc")

_HOME = {
    "Comparison": "mauc.metrics",
    "FittedTable": "mauc.tables.fit",
    "Interval": "mauc.metrics",
    "MAUCClassifier": "mauc.linear",
    "MAUCClassifierCV": "mauc.linear",
    "MAUCDecision": "mauc.decision",
    "MAUCPluginClassifier": "mauc.plugin",
    "MAUCStackingClassifier": "mauc.ensemble",
    "MinorityPairsDisplay": "mauc.metrics",
    "MulticlassROCDisplay": "mauc.metrics",
    "PairwiseAUCDisplay": "mauc.metrics",
    "SurrogateRisk": "mauc.risk",
    "compare_mauc": "mauc.metrics",
    "fit_table": "mauc.tables.fit",
    "mauc_interval": "mauc.metrics",
    "mauc_score": "mauc.metrics",
    "mauc_scorer": "mauc.model_selection",
    "multiclass_auc_report": "mauc.metrics",
    "pairwise_auc": "mauc.metrics",
}

__all__ = [
    "Comparison",
    "FittedTable",
    "Interval",
    "MAUCClassifier",
    "MAUCClassifierCV",
    "MAUCDecision",
    "MAUCPluginClassifier",
    "MAUCStackingClassifier",
    "MinorityPairsDisplay",
    "MulticlassROCDisplay",
    "PairwiseAUCDisplay",
    "SurrogateRisk",
    "compare_mauc",
    "fit_table",
    "mauc_interval",
    "mauc_score",
    "mauc_scorer",
    "multiclass_auc_report",
    "pairwise_auc",
]


__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
