r"""Multiclass AUC as a metric and as an objective of LightGBM and XGBoost. Neither library is imported here.

The objective returns gradient and curvature of ``R(softmax(Z))`` for raw scores Z, multiplied by

.. math:: \frac{U (C - 1)}{|\ell'(0)|}

with the summed weight U. At Z = 0 the gradient is that of the multiclass log-loss with balanced class weights, so that
learning rate, ``min_child_weight`` and ``lambda`` have their usual meaning.

Boosting libraries divide by one second derivative for each score. With f = softmax(Z) and the gradient g of a row, the
curvature of the softmax adds to the Hessian of the row

.. math:: M_{ij} = \delta_{ij} g_i - f_j g_i - f_i g_j.

The curvature returned is twice the sum of the absolute values of each row of M. It is at least :math:`|g|`, so no step
is longer than the learning rate, and it needs no second derivative of the surrogate. Against a bound of the whole
Hessian it has −0.2 to +0.1 points of test MAUC × 100 (standard error 0.2) on ecoli, segment-imb and yeast, where it was
chosen among eleven forms, and −0.2 to +0.7 (standard error 0.3) on svmguide2 and dermatology, which took no part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats, Pairs
from mauc._validation import check_codes, check_pairs, check_sample_weight, check_scores, invalid
from mauc.activations import activate, pull_back
from mauc.metrics import mauc_score
from mauc.partition import ClassPartition
from mauc.risk import SurrogateRisk

__all__ = ["lightgbm_metric", "lightgbm_objective", "xgboost_metric", "xgboost_objective"]


class _Metric:
    def __init__(self, *, of_raw_scores: bool = False, pairs: Pairs = "ovo") -> None:
        self.of_raw_scores, self.pairs = of_raw_scores, pairs

    def _value(self, first: Any, second: Any, weight: Any) -> float:
        """Compute the multiclass AUC of the library's scores; ``(N,)`` scores are those of class 1."""
        y, scores, weight = _in_order(first, second, weight)
        columns = np.asarray(scores, dtype=np.float64)
        if columns.ndim == 1:
            _check_two_classes(y)
            columns = np.column_stack([-columns, columns])
        elif self.of_raw_scores:
            columns = activate(columns, "softmax")
        labels, codes = np.arange(columns.shape[1]), check_codes(y, *columns.shape)
        return mauc_score(codes, columns, pairs=self.pairs, labels=labels, sample_weight=weight, absent="ignore")


class _LightGBMMetric(_Metric):
    """Multiclass AUC for early stopping and model selection in LightGBM 4.

    Pass it as ``feval=`` to ``lightgbm.train`` and ``lightgbm.cv``, or as ``eval_metric=`` to ``LGBMClassifier.fit``.
    Absent classes are ignored. Set ``metric="none"`` in the model, else its own loss stops it too.

    LightGBM's own objectives pass probabilities, ours raw scores: with ours, use the ``metric`` of the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting import lightgbm_metric
    >>> lightgbm_metric(np.array([0, 1, 2]), np.eye(3))
    ('mauc', 1.0, True)
    """

    def __call__(self, first: Any, second: Any, weight: Any = None) -> tuple[str, float, bool]:
        """Map ``(scores, Dataset)`` or ``(y_true, scores, weight)`` to ``("mauc", value, True)``."""
        return "mauc", self._value(first, second, weight), True


class _XGBoostMetric(_Metric):
    """Multiclass AUC for early stopping and model selection in XGBoost 2.1 and later.

    Pass it as ``custom_metric=`` to ``xgboost.train`` and ``xgboost.cv``, or as ``eval_metric=`` to ``XGBClassifier``.
    Set ``disable_default_eval_metric=True``, else the last metric of the list may be XGBoost's own.

    XGBoost's own objectives pass probabilities, ours raw scores: with ours, use the ``metric`` of the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting import xgboost_metric
    >>> xgboost_metric(np.array([0, 1, 2]), np.eye(3))
    1.0
    """

    # Early stopping maximises a metric whose name begins with "auc" and minimises others.
    __name__ = "auc_multiclass"

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> Any:
        """Map ``(scores, DMatrix)`` to ``(name, value)``, and ``(y_true, scores, sample_weight)`` to the value."""
        value = self._value(first, second, sample_weight)
        return (self.__name__, value) if hasattr(second, "get_label") else value


lightgbm_metric = _LightGBMMetric()
xgboost_metric = _XGBoostMetric()


class _Objective:
    """Compute gradient and curvature of the risk of raw scores, in the units of the log-loss."""

    def __init__(
        self, surrogate: str | Any, alpha: float | None, pairs: Pairs, metric: type[_LightGBMMetric | _XGBoostMetric]
    ) -> None:
        self.metric = metric(of_raw_scores=True, pairs=pairs)
        """The metric of the scores that this objective trains."""
        self.risk = SurrogateRisk(surrogate, alpha=alpha, pairs=pairs)
        self.slope = -float(self.risk.surrogate.derivative(np.zeros(1))[0])
        if not self.slope > 0:
            raise invalid("surrogate", "must fall at 0", repr(self.risk.surrogate), "pass a larger alpha")

    # LightGBM counts the parameters and passes the weights as the third. XGBoost passes weights by this name.
    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
        """Map ``(raw, Dataset or DMatrix)`` or ``(y_true, raw, sample_weight)`` to gradient and curvature."""
        return self.gradient_and_curvature(*_in_order(first, second, sample_weight))

    def gradient_and_curvature(
        self, y: ArrayLike, raw: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Return both in the shape of ``raw``: ``(N, C)``, or ``(N,)`` for the log-odds of two classes; O(N·C)."""
        scores = np.asarray(raw, dtype=np.float64)
        if scores.ndim == 1:
            _check_two_classes(y)
            # z means the columns (−z/2, z/2).
            half = 0.5 * scores[:, None]
            gradient, curvature = self.gradient_and_curvature(y, np.hstack([-half, half]), sample_weight)
            return 0.5 * (gradient[:, 1] - gradient[:, 0]), 0.25 * curvature.sum(axis=1)
        clean = check_scores(scores, "raw").astype(np.float64, copy=False)
        codes, n_classes = check_codes(y, *clean.shape), clean.shape[1]
        partition = ClassPartition(codes, n_classes, check_sample_weight(sample_weight, codes, n_classes))
        classes = partition.classes(partition.pair_weights(check_pairs(self.risk.pairs, n_classes)))
        f = activate(clean, "softmax")
        _, of_scores = self.risk.compute(classes.with_scores(f), gradient=True, bounded=True)
        assert of_scores is not None
        n_here = int(partition.present.sum())
        # At 0 softmax scales the gradient by 1 / C.
        scale = float(partition.weights.sum()) * n_classes * (n_here - 1) / (n_here * self.slope)
        gradient = scale * pull_back(f, of_scores, "softmax")
        # Twice the row sums of |M|; see the module docstring.
        size = np.abs(gradient)
        own = np.abs(1.0 - 2.0 * f) + 1.0 - f
        curvature = 2.0 * (own * size + f * (size.sum(axis=1, keepdims=True) - size))
        # Leaves divide by sums of curvatures: for an absent class that would be 0 / 0 without a penalty.
        return gradient, np.maximum(curvature, 1e-16)


def lightgbm_objective(
    surrogate: str | Any = "exponential", alpha: float | None = None, *, pairs: Pairs = "ovo"
) -> _Objective:
    """Return the surrogate risk as an objective: ``params={"objective": …}`` or ``LGBMClassifier(objective=…)``.

    For early stopping use its ``metric``, not ``lightgbm_metric``. Predictions, also those of
    ``LGBMClassifier.predict_proba``, are raw scores: rank by their softmax.

    Parameters
    ----------
    surrogate : str or object, default="exponential"
        By name or as an object such as ``mauc.surrogates.QHinge(q=3.0)``; it must fall at 0.
    alpha : float, optional
        Margin or rate α of a surrogate given by name. None: the surrogate's default (:mod:`mauc.surrogates`).
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        Weights of the class pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting import lightgbm_objective
    >>> gradient, curvature = lightgbm_objective("squared", 1.0)(np.array([0, 1, 2]), np.zeros((3, 3)))
    >>> gradient.round(3)[0], bool((curvature > 0).all())
    (array([-0.667,  0.333,  0.333]), True)
    """
    return _Objective(surrogate, alpha, pairs, _LightGBMMetric)


def xgboost_objective(
    surrogate: str | Any = "exponential", alpha: float | None = None, *, pairs: Pairs = "ovo"
) -> _Objective:
    """Return the surrogate risk as an objective: ``obj=`` of ``xgboost.train``, or ``XGBClassifier(objective=…)``.

    Set ``num_class`` for ``xgboost.train``, and for early stopping use its ``metric``, not ``xgboost_metric``.
    ``Booster.predict(…, output_margin=True)`` returns raw scores: rank by their softmax. Without ``output_margin`` it
    returns classes. ``XGBClassifier.predict_proba`` returns the softmax. The parameters are those of
    :func:`lightgbm_objective`.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting import xgboost_objective
    >>> gradient, curvature = xgboost_objective()(np.array([0, 1, 2]), np.zeros((3, 3)))
    >>> gradient.shape, bool((curvature > 0).all())
    ((3, 3), True)
    """
    return _Objective(surrogate, alpha, pairs, _XGBoostMetric)


def _in_order(first: Any, second: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return classes, scores and weights from ``(y_true, scores, weight)`` or ``(scores, Dataset or DMatrix)``."""
    if not hasattr(second, "get_label"):
        return first, second, weight
    labels, weight = second.get_label(), second.get_weight()
    if labels is None or len(labels) == 0:
        raise invalid("data", "must have labels", "none", "pass label= to the Dataset or DMatrix")
    empty = weight is None or len(weight) == 0
    return np.asarray(labels), first, None if empty else np.asarray(weight)


def _check_two_classes(y: ArrayLike) -> None:
    most = np.max(np.asarray(y), initial=0)
    if most > 1:
        came = f"one column of scores, class {most:g} in y"
        advice = f"set num_class, here {int(most) + 1} or more"
        raise invalid("num_class", "must be the number of classes", came, advice)
