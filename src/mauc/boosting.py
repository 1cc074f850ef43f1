r"""Multiclass AUC as a metric and as an objective of LightGBM and XGBoost. Neither library is imported here.

The objective returns gradient and curvature of ``R(activation(Z))`` for raw scores Z, multiplied by

.. math:: \frac{U (C - 1)}{C \, |\ell'(0)|} \quad \text{(raw columns)}, \qquad
    \frac{U (C - 1)}{|\ell'(0)|} \quad \text{(softmax)}

with the summed weight U. At Z = 0 the gradient is that of the multiclass log-loss with balanced class weights, so that
learning rate, ``min_child_weight`` and ``lambda`` have their usual meaning. For the same reason ``R + λ · log-loss`` is
divided by 1 + λ.

Boosting libraries take one second derivative for each score. With the diagonal of the Hessian H a step would overshoot,
because the scores of a pair move together. Here D is diagonal and ``D − H`` is positive semidefinite, so that a Newton
step with D decreases the risk if the Hessian changes little along it.

1. **Scores.** A pair adds :math:`w \ell''(t) (a_m - a_n)^2 \le 2 w \ell''(t) (a_m^2 + a_n^2)` along a direction a.
   With :math:`h_{nc} \ge \sum w \ell''` over the pairs of a score, ``2 h`` is above the Hessian. For the exponential
   :math:`\ell'' = -\alpha \ell'`, and the gradients of all pairs of a score have one sign: :math:`h = \alpha |G|`.
   For others ``h`` is a bound of :math:`\ell''` times the weight of the pairs, or, if smaller, κ times the gradient if
   :math:`\ell'' \le -\kappa \ell'`.
2. **Softmax.** With :math:`J = \operatorname{diag}(f) - f f^\top` and the gradient :math:`g = J G`, the Hessian of a
   row is below :math:`J \operatorname{diag}(2 h) J + M`, where :math:`M_{ij} = \delta_{ij} g_i - f_j g_i - f_i g_j`.
   The sums of the absolute values of their rows bound both, as XGBoost's ``2 p (1 − p)`` does for the log-loss.

Everything costs O(N·C).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mauc._kernels.tiles import Classes, Problem, column_range
from mauc._typing import Floats, Pairs
from mauc._validation import check_choice, check_codes, check_pairs, check_sample_weight, check_scores, invalid
from mauc.activations import activate, pull_back
from mauc.log_loss import check_log_loss, log_term
from mauc.metrics import mauc_score
from mauc.partition import ClassPartition
from mauc.risk import SurrogateRisk
from mauc.surrogates import Surrogate, get_surrogate

__all__ = ["lightgbm_metric", "lightgbm_objective", "xgboost_metric", "xgboost_objective"]

BoostingActivation = Literal["softmax", "identity"]


class _Metric:
    def __init__(self, activation: BoostingActivation = "identity", pairs: Pairs = "ovo") -> None:
        self.activation, self.pairs = activation, pairs

    def _value(self, first: Any, second: Any, weight: Any) -> float:
        """Compute the multiclass AUC of the library's scores; ``(N,)`` scores are those of class 1."""
        y, scores, weight = _in_order(first, second, weight)
        columns = np.asarray(scores, dtype=np.float64)
        if columns.ndim == 1:
            _check_two_classes(y)
            columns = np.column_stack([-columns, columns])
        elif self.activation == "softmax":
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
        self,
        surrogate: str | Any,
        alpha: float | None,
        log_loss: float,
        activation: BoostingActivation,
        pairs: Pairs,
        metric: type[_LightGBMMetric | _XGBoostMetric],
    ) -> None:
        self.metric = metric(activation, pairs)
        """The metric of the scores that this objective trains."""
        self.risk = SurrogateRisk(_check_curvature(get_surrogate(surrogate, alpha=alpha)), pairs=pairs)
        check_choice("activation", activation, ("softmax", "identity"))
        self.activation: BoostingActivation = activation
        self.log_loss = check_log_loss(log_loss)

    # LightGBM counts the parameters and passes the weights as the third. XGBoost passes weights by this name.
    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
        """Map ``(raw, Dataset or DMatrix)`` or ``(y_true, raw, sample_weight)`` to gradient and curvature."""
        return self.gradient_and_curvature(*_in_order(first, second, sample_weight))

    def gradient_and_curvature(
        self, y: ArrayLike, raw: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Return both in the shape of ``raw``: ``(N, C)``, or ``(N,)`` for the log-odds of two classes."""
        scores = np.asarray(raw, dtype=np.float64)
        if scores.ndim == 1:
            _check_two_classes(y)
            # z means the columns (−z/2, z/2); a curvature above the Hessian of both is above that along z.
            half = 0.5 * scores[:, None]
            gradient, curvature = self.gradient_and_curvature(y, np.hstack([-half, half]), sample_weight)
            return 0.5 * (gradient[:, 1] - gradient[:, 0]), 0.25 * curvature.sum(axis=1)
        clean = check_scores(scores, "raw").astype(np.float64, copy=False)
        codes, n_classes = check_codes(y, *clean.shape), clean.shape[1]
        partition = ClassPartition(codes, n_classes, check_sample_weight(sample_weight, codes, n_classes))
        pairs = check_pairs(self.risk.pairs, n_classes)
        classes = partition.classes(partition.pair_weights(pairs))
        _, gradient, curvature = _gradient_and_bound(self.risk, classes, clean, self.activation)
        term = log_term(self.log_loss, pairs, codes, partition.weights, partition.shares)
        if term is not None:
            of_logs = term.of_logits(clean, slice(None))[1]
            gradient += of_logs
            curvature += term.curvature_above(of_logs)
        scale = self._scale(partition) / (1.0 + self.log_loss)
        # Leaves divide by sums of curvatures: for an absent class that would be 0 / 0 without a penalty.
        return scale * gradient, np.maximum(scale * curvature, 1e-16)

    def _scale(self, partition: ClassPartition) -> float:
        slope = abs(float(self.risk.surrogate.derivative(np.zeros(1))[0]))
        n_here = int(partition.present.sum())
        # At 0 softmax scales the gradient by 1 / C.
        shrunk = partition.n_classes if self.activation == "softmax" else 1
        return float(partition.weights.sum()) * shrunk * (n_here - 1) / (n_here * slope)


def lightgbm_objective(
    surrogate: str | Any = "exponential",
    alpha: float | None = None,
    *,
    log_loss: float = 0.0,
    activation: BoostingActivation = "softmax",
    pairs: Pairs = "ovo",
) -> _Objective:
    """Return the surrogate risk as an objective: ``params={"objective": …}`` or ``LGBMClassifier(objective=…)``.

    For early stopping use its ``metric``, not ``lightgbm_metric``. Predictions, also those of
    ``LGBMClassifier.predict_proba``, are raw scores: with ``activation="softmax"`` rank by their softmax.

    Parameters
    ----------
    surrogate : str or object, default="exponential"
        ``"squared"``, ``"exponential"``, ``"logistic"`` or another whose second derivative is bounded, by name or as an
        object such as ``mauc.surrogates.QHinge(q=3.0)``.
    alpha : float, optional
        Margin or rate α of a surrogate given by name. None: the surrogate's default (:mod:`mauc.surrogates`).
    log_loss : float >= 0, default=0.0
        Weight λ of the log-loss of the raw scores shifted by the class frequencies.
    activation : {"softmax", "identity"}, default="softmax"
        Compute the risk of softmax scores or of the raw columns.
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
    return _Objective(surrogate, alpha, log_loss, activation, pairs, _LightGBMMetric)


def xgboost_objective(
    surrogate: str | Any = "exponential",
    alpha: float | None = None,
    *,
    log_loss: float = 0.0,
    activation: BoostingActivation = "softmax",
    pairs: Pairs = "ovo",
) -> _Objective:
    """Return the surrogate risk as an objective: ``obj=`` of ``xgboost.train``, or ``XGBClassifier(objective=…)``.

    Set ``num_class`` for ``xgboost.train``, and for early stopping use its ``metric``, not ``xgboost_metric``.
    ``Booster.predict(…, output_margin=True)`` returns raw scores: with ``activation="softmax"`` rank by their softmax.
    Without ``output_margin`` it returns classes. ``XGBClassifier.predict_proba`` returns the softmax. The parameters
    are those of :func:`lightgbm_objective`.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting import xgboost_objective
    >>> gradient, curvature = xgboost_objective()(np.array([0, 1, 2]), np.zeros((3, 3)))
    >>> gradient.shape, bool((curvature > 0).all())
    ((3, 3), True)
    """
    return _Objective(surrogate, alpha, log_loss, activation, pairs, _XGBoostMetric)


def _check_curvature(surrogate: Surrogate) -> Surrogate:
    """Check that the second derivative is bounded and that the surrogate falls at 0."""
    if not min(surrogate.curvature_per_slope, surrogate.curvature(1.0)) < np.inf:
        requirement = "must have a bounded second derivative for boosting"
        advice = "use exponential, squared, logistic, generalized_hinge (a rounded hinge), or q_hinge with q >= 2"
        raise invalid("surrogate", requirement, repr(surrogate), advice)
    if not float(surrogate.derivative(np.zeros(1))[0]) < 0:
        raise invalid("surrogate", "must fall at 0", repr(surrogate), "pass a larger alpha")
    return surrogate


def _gradient_and_bound(
    risk: SurrogateRisk, classes: Classes, raw: Floats, activation: str
) -> tuple[float, Floats, Floats]:
    """Return the risk of ``activation(raw)``, its gradient in ``raw``, and the diagonal above its Hessian."""
    scores = activate(raw, activation)
    problem = classes.with_scores(scores)
    value, gradient = risk.compute(problem, gradient=True, bounded=activation == "softmax")
    assert gradient is not None
    curvature = _score_curvature(risk.surrogate, problem, gradient)
    if activation == "identity":
        return value, gradient, 2.0 * curvature
    gradient = pull_back(scores, gradient, activation)
    return value, gradient, _softmax_bound(scores, gradient, curvature)


def _score_curvature(surrogate: Surrogate, problem: Problem, gradient: Floats) -> Floats:
    r"""Return the ``(N, C)`` bound ``h`` of :math:`\sum w \ell''` over the pairs of each score."""
    per_slope, form = surrogate.curvature_per_slope, surrogate.closed_form
    of_slope = per_slope * np.abs(gradient) if per_slope < np.inf else np.inf
    if form is not None and form.kind == "exponential":
        return np.asarray(of_slope)
    low, high = column_range(problem)
    steepest = surrogate.curvature(float((high - low).max()))
    of_mass = steepest * _pair_mass(problem.classes) if steepest < np.inf else np.inf
    return np.minimum(of_slope, of_mass)


def _pair_mass(classes: Classes) -> Floats:
    """Return the ``(N, C)`` summed weight of the pairs of each score.

    It is ``a_m Σ_j v_ij`` in the column i of a sample's own class, ``a_n v_ij`` in the others.
    """
    y, unit = classes.y, classes.unit
    mass = unit[:, None] * classes.of_negative[y]
    mass[np.arange(len(y)), y] = unit * classes.v.sum(axis=1)[y]
    return mass


def _softmax_bound(f: Floats, g: Floats, h: Floats) -> Floats:
    """Return the row sums of ``|J diag(2h) J|`` and of ``|M|``; see the module docstring."""
    others = 1.0 - f
    q = f * f * others * h
    through_scores = 4.0 * (others * q + f * (q.sum(axis=1, keepdims=True) - q))
    size = np.abs(g)
    own = np.abs(1.0 - 2.0 * f) + others
    return through_scores + own * size + f * (size.sum(axis=1, keepdims=True) - size)


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
