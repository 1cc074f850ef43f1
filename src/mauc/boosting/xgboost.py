"""Multiclass AUC in XGBoost, as a metric and as an objective. Nothing here imports XGBoost."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_choice
from mauc.boosting.objective import ACTIVATIONS, BoostingObjective, holds_labels, in_order, multiclass_auc

__all__ = ["XGBoostMetric", "xgboost_metric", "xgboost_objective"]


class XGBoostMetric:
    """Multiclass AUC for early stopping and model selection in XGBoost 2.1 and later.

    ``custom_metric=`` of ``xgboost.train`` and ``xgboost.cv``, or ``eval_metric=`` of ``XGBClassifier``. Set
    ``disable_default_eval_metric=True``, else the last metric of the list may be XGBoost's own.

    Parameters
    ----------
    activation : {"identity", "softmax"}, default="identity"
        XGBoost's own objectives pass probabilities, ours raw scores: an objective's ``metric`` has the right one.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting import xgboost_metric
    >>> xgboost_metric(np.array([0, 1, 2]), np.eye(3))
    1.0
    """

    # Early stopping maximises what begins with "auc" and minimises all else, unless it is told.
    __name__ = "auc_multiclass"

    def __init__(self, *, activation: str = "identity", pairs: str | ArrayLike = "ovo") -> None:
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        self.pairs = pairs

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> Any:
        """``(scores, DMatrix)`` to ``(name, value)``; ``(y_true, scores, sample_weight)`` to the value alone."""
        y, scores, weight = in_order(first, second, sample_weight)
        value = multiclass_auc(y, scores, weight, self.activation, self.pairs)
        return (self.__name__, value) if holds_labels(second) else value


xgboost_metric = XGBoostMetric()


class _XGBoostObjective(BoostingObjective):
    @property
    def metric(self) -> XGBoostMetric:
        """The metric of the scores that this objective trains."""
        return XGBoostMetric(activation=self.activation, pairs=self.risk.pairs)

    # XGBoost passes weights by this name.
    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
        """``(raw, DMatrix)`` or ``(y_true, raw, sample_weight)`` to gradient and curvature in the shape of ``raw``."""
        return super().__call__(*in_order(first, second, sample_weight))


def xgboost_objective(
    surrogate: str | Any = "exponential",
    alpha: float | None = None,
    *,
    log_loss: float | str = 0.0,
    activation: str = "softmax",
    pairs: str | ArrayLike = "ovo",
    **options: Any,
) -> _XGBoostObjective:
    """The surrogate risk as an objective: ``obj=`` of ``xgboost.train``, or ``XGBClassifier(objective=…)``.

    Set ``num_class`` for ``xgboost.train``, and stop by the objective's ``metric``, not by ``xgboost_metric``.
    ``Booster.predict(…, output_margin=True)`` gives raw scores: with ``activation="softmax"`` rank by their softmax
    over the row, else by the columns themselves. Without ``output_margin`` it gives classes.
    ``XGBClassifier.predict_proba`` has the softmax already.

    Parameters
    ----------
    surrogate : str or object, default="exponential"
        ``"squared"``, ``"exponential"``, ``"logistic"`` or another whose second derivative is bounded, by name or as an
        object with ``loss(t)`` and ``derivative(t)``.
    alpha : float, optional
        Margin or rate α of the surrogate. None: the surrogate's default (:mod:`mauc.surrogates`).
    log_loss : float >= 0 or "only", default=0.0
        Weight λ of the log-loss of the raw scores shifted by the class frequencies; ``"only"``: that alone.
    activation : {"softmax", "identity"}, default="softmax"
        Whether the risk is that of softmax scores or of the raw columns.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
        Weights of the class pairs.
    **options
        Further parameters of the surrogate: ``q``, ``epsilon``.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting import xgboost_objective
    >>> gradient, curvature = xgboost_objective()(np.array([0, 1, 2]), np.zeros((3, 3)))
    >>> gradient.shape, bool((curvature > 0).all())
    ((3, 3), True)
    """
    return _XGBoostObjective(surrogate, alpha, log_loss=log_loss, activation=activation, pairs=pairs, **options)
