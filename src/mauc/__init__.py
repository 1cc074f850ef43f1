"""Train and evaluate classifiers by multiclass AUC, in which every pair of classes counts the same.

Evaluate scores
    ``mauc_score(y_true, y_score)`` is the multiclass AUC, ``pairwise_auc`` its matrix over class pairs.
    ``BinnedMAUC`` adds up counts over batches, files and machines, in constant memory.
    ``mauc_interval`` gives a confidence interval, ``compare_mauc`` a test of models on the same rows,
    ``compare_cv_scores`` a test over cross-validation splits, ``mauc_sample_size`` the rows that a study needs,
    ``multiclass_auc_report`` a text report, ``mauc_importance`` the importance of each feature.
    ``PairwiseAUCDisplay``, ``MinorityPairsDisplay`` and ``MulticlassROCDisplay`` plot the scores.

Train a model
    ``fit_table("table.csv", target="column")`` trains a stack of models on a table in a given time;
    ``load_model`` loads a saved stack.
    ``MAUCClassifier()`` is linear, ``MAUCClassifierCV`` chooses its parameters, ``MAUCStackingClassifier`` combines
    models, ``MAUCPluginClassifier(estimator)`` turns the probabilities of any classifier into optimal scores.
    ``MAUCDecision(estimator)`` turns scores into decisions. All are scikit-learn estimators.
    ``mauc.nn.MAUCLoss(class_counts)`` is a loss for torch, ``mauc.boosting`` has metrics and objectives for LightGBM
    and XGBoost, ``mauc.dask`` trains and evaluates on a cluster.

Choose a model
    ``scoring=mauc_scorer`` goes into ``cross_val_score`` and ``GridSearchCV``; ``RareClassKFold`` keeps every class in
    every training part.

Build your own
    ``SurrogateRisk(surrogate)`` gives value and gradient of a differentiable surrogate of 1 − MAUC,
    ``mauc.surrogates`` the losses, ``mauc.theory`` bounds and optimal scores, ``mauc.report`` the HTML report.
"""

from typing import TYPE_CHECKING, Any

from mauc._lazy import lazily

if TYPE_CHECKING:
    from mauc._tables.fit import FittedTable, fit_table
    from mauc._tables.model_file import load_model
    from mauc.decision import MAUCDecision
    from mauc.ensemble import MAUCStackingClassifier
    from mauc.linear import MAUCClassifier, MAUCClassifierCV
    from mauc.metrics import (
        BinnedMAUC,
        Comparison,
        Interval,
        MinorityPairsDisplay,
        MulticlassROCDisplay,
        PairwiseAUCDisplay,
        SampleSize,
        compare_cv_scores,
        compare_mauc,
        mauc_importance,
        mauc_interval,
        mauc_sample_size,
        mauc_score,
        multiclass_auc_report,
        pairwise_auc,
    )
    from mauc.model_selection import RareClassKFold, mauc_scorer
    from mauc.plugin import MAUCPluginClassifier
    from mauc.risk import SurrogateRisk

__version__: str

__all__ = [
    "BinnedMAUC",
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
    "RareClassKFold",
    "SampleSize",
    "SurrogateRisk",
    "compare_cv_scores",
    "compare_mauc",
    "fit_table",
    "load_model",
    "mauc_importance",
    "mauc_interval",
    "mauc_sample_size",
    "mauc_score",
    "mauc_scorer",
    "multiclass_auc_report",
    "pairwise_auc",
]

_HOME = dict.fromkeys(__all__, "mauc.metrics") | {
    "FittedTable": "mauc._tables.fit",
    "MAUCClassifier": "mauc.linear",
    "MAUCClassifierCV": "mauc.linear",
    "MAUCDecision": "mauc.decision",
    "MAUCPluginClassifier": "mauc.plugin",
    "MAUCStackingClassifier": "mauc.ensemble",
    "RareClassKFold": "mauc.model_selection",
    "SurrogateRisk": "mauc.risk",
    "fit_table": "mauc._tables.fit",
    "load_model": "mauc._tables.model_file",
    "mauc_scorer": "mauc.model_selection",
}


_find = lazily(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # 30 ms, which nothing else needs

        return version("mauc")
    return _find(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
