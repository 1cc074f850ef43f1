"""Multiclass AUC inside tools that search for models: AutoGluon, FLAML, Optuna.

None of them is a dependency, nor an extra: install the tool, and it is imported when first used.
"""

from typing import TYPE_CHECKING

from mauc._lazy import lazily

if TYPE_CHECKING:
    from mauc.integrations.autogluon import autogluon_scorer
    from mauc.integrations.flaml import FlamlMetric, flaml_metric
    from mauc.integrations.optuna import OptunaObjective, optuna_objective

_HOME = {
    "FlamlMetric": "mauc.integrations.flaml",
    "OptunaObjective": "mauc.integrations.optuna",
    "autogluon_scorer": "mauc.integrations.autogluon",
    "flaml_metric": "mauc.integrations.flaml",
    "optuna_objective": "mauc.integrations.optuna",
}

__all__ = ["FlamlMetric", "OptunaObjective", "autogluon_scorer", "flaml_metric", "optuna_objective"]


__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
