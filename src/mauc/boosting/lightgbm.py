"""Multiclass AUC in LightGBM, as a metric and as an objective. Nothing here imports LightGBM."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_choice
from mauc.boosting.objective import ACTIVATIONS, BoostingObjective, in_order, multiclass_auc

__all__ = ["LightGBMMetric", "lightgbm_metric", "lightgbm_objective"]


class LightGBMMetric:
    """Multiclass AUC for early stopping and model selection in LightGBM 4.

    ``feval=`` of ``lightgbm.train`` and ``lightgbm.cv``, or ``eval_metric=`` of ``LGBMClassifier.fit``: both orders of
    the arguments are understood. Classes absent from the part that is scored drop out. Give ``metric="none"`` to the
    model, else its own loss stops it.

    Parameters
    ----------
    activation : {"identity", "softmax"}, default="identity"
        LightGBM's own objectives pass probabilities, ours raw scores: an objective's ``metric`` has the right one.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting import lightgbm_metric
    >>> name, value, higher_is_better = lightgbm_metric(np.array([0, 1, 2]), np.eye(3))
    >>> name, value, higher_is_better
    ('mauc', 1.0, True)
    """

    def __init__(self, *, activation: str = "identity", pairs: str | ArrayLike = "ovo") -> None:
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        self.pairs = pairs

    def __call__(self, first: Any, second: Any, weight: Any = None) -> tuple[str, float, bool]:
        """``(scores, Dataset)`` or ``(y_true, scores, weight)`` to ``("mauc", value, True)``."""
        y, scores, weight = in_order(first, second, weight)
        return "mauc", multiclass_auc(y, scores, weight, self.activation, self.pairs), True


lightgbm_metric = LightGBMMetric()


class _LightGBMObjective(BoostingObjective):
    @property
    def metric(self) -> LightGBMMetric:
        """The metric of the scores that this objective trains."""
        return LightGBMMetric(activation=self.activation, pairs=self.risk.pairs)

    # LightGBM counts the parameters: with a third it passes the weights.
    def __call__(self, first: Any, second: Any, weight: Any = None) -> tuple[Floats, Floats]:
        """``(raw, Dataset)`` or ``(y_true, raw, weight)`` to gradient and curvature in the shape of ``raw``."""
        y, raw, weight = in_order(first, second, weight)
        return super().__call__(y, raw, weight)


def lightgbm_objective(
    surrogate: str | Any = "exponential",
    alpha: float | None = None,
    *,
    log_loss: float | str = 0.0,
    activation: str = "softmax",
    pairs: str | ArrayLike = "ovo",
    **options: Any,
) -> _LightGBMObjective:
    """The surrogate risk as an objective: ``params={"objective": …}`` or ``LGBMClassifier(objective=…)``.

    Stop by its ``metric``, not by ``lightgbm_metric``.
    Predictions, those of ``LGBMClassifier.predict_proba`` too, are raw scores: with ``activation="softmax"`` rank by
    their softmax over the row, else by the columns themselves.

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
    >>> from mauc.boosting import lightgbm_objective
    >>> gradient, curvature = lightgbm_objective("squared", 1.0)(np.array([0, 1, 2]), np.zeros((3, 3)))
    >>> gradient.shape, bool((curvature > 0).all())
    ((3, 3), True)
    """
    return _LightGBMObjective(surrogate, alpha, log_loss=log_loss, activation=activation, pairs=pairs, **options)
