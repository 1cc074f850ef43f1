"""What both boosting libraries are told: gradient and curvature of the risk in the units of the log-loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_choice, check_codes, check_pairs, check_sample_weight, check_scores, invalid
from mauc.activations import activate
from mauc.boosting.hessian import check_curvature, gradient_and_bound
from mauc.log_loss import LogTerm, log_term, read_log_loss
from mauc.metrics import mauc_score
from mauc.partition import ClassPartition
from mauc.risk import SurrogateRisk
from mauc.surrogates import get_surrogate

__all__ = ["ACTIVATIONS", "BoostingObjective", "holds_labels", "in_order", "multiclass_auc"]

ACTIVATIONS = ("softmax", "identity")
# Leaves divide by sums of these: 0 for a class that is absent would be 0 / 0 without a penalty.
SMALLEST = 1e-16


class BoostingObjective:
    r"""Gradient and curvature of ``R(activation(Z))`` for raw scores Z, scaled like the class-balanced log-loss.

    Multiplied by

    .. math:: \frac{U (C - 1)}{C \, |\ell'(0)|} \quad \text{(raw columns)}, \qquad
        \frac{U (C - 1)}{|\ell'(0)|} \quad \text{(softmax)}

    with the summed weight U. At Z = 0 the gradient then is that of the multiclass log-loss with balanced class weights,
    entry by entry, so that learning rate, ``min_child_weight`` and ``lambda`` mean what they usually mean. For the same
    reason ``R + λ · log-loss`` is divided by 1 + λ, and the log-loss alone is multiplied by U.

    Parameters
    ----------
    surrogate : str or object, default="exponential"
        ``"squared"``, ``"exponential"``, ``"logistic"`` or another whose second derivative is bounded, by name or as an
        object with ``loss(t)`` and ``derivative(t)``.
    alpha : float, optional
        Margin or rate α of the surrogate. None: the surrogate's default (:mod:`mauc.surrogates`).
    log_loss : float >= 0 or "only", default=0.0
        Weight λ of the log-loss of Z shifted by the class frequencies; ``"only"``: that alone.
    activation : {"softmax", "identity"}, default="softmax"
        Whether the risk is that of softmax scores or of the raw columns.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
        Weights of the class pairs.
    **options
        Further parameters of the surrogate: ``q``, ``epsilon``.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.boosting.objective import BoostingObjective
    >>> gradient, curvature = BoostingObjective()(np.array([0, 1, 2]), np.zeros((3, 3)))
    >>> gradient.round(3)[0]
    array([-0.667,  0.333,  0.333])
    """

    def __init__(
        self,
        surrogate: str | Any = "exponential",
        alpha: float | None = None,
        *,
        log_loss: float | str = 0.0,
        activation: str = "softmax",
        pairs: str | ArrayLike = "ovo",
        **options: Any,
    ) -> None:
        chosen = get_surrogate(surrogate, alpha=alpha, **options)
        self.risk = SurrogateRisk(chosen, pairs=pairs)
        check_curvature(self.risk.surrogate)
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        self.log_loss = log_loss
        read_log_loss(log_loss)

    def __call__(self, y: ArrayLike, raw: ArrayLike, sample_weight: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Gradient and curvature in the shape of ``raw``: ``(N, C)``, or ``(N,)`` for the log-odds of two classes."""
        scores = np.asarray(raw, dtype=np.float64)
        if scores.ndim == 1:
            _check_two_classes(y)
            # z stands for the columns (−z/2, z/2); a curvature above the Hessian of both is above that along z.
            half = 0.5 * scores[:, None]
            gradient, curvature = self(y, np.hstack([-half, half]), sample_weight)
            return 0.5 * (gradient[:, 1] - gradient[:, 0]), 0.25 * curvature.sum(axis=1)
        clean = check_scores(scores, "raw").astype(np.float64, copy=False)
        n_classes = clean.shape[1]
        codes = check_codes(y, *clean.shape)
        weight = check_sample_weight(sample_weight, codes, n_classes)
        partition = ClassPartition(codes, n_classes, weight)
        pairs = check_pairs(self.risk.pairs, n_classes)
        term = log_term(self.log_loss, pairs, codes, partition.weights, partition.shares)
        if term is not None and not term.ranks:
            gradient, curvature = _of_logs(term, clean)
            scale = float(partition.weights.sum())
        else:
            classes = partition.classes(partition.pair_weights(pairs))
            _, gradient, curvature = gradient_and_bound(self.risk, classes, clean, self.activation)
            scale = self._scale(partition)
        if term is not None and term.ranks:
            of_logs = _of_logs(term, clean)
            gradient += of_logs[0]
            curvature += of_logs[1]
            scale /= 1.0 + float(self.log_loss)
        return scale * gradient, np.maximum(scale * curvature, SMALLEST)

    def _scale(self, partition: ClassPartition) -> float:
        slope = abs(float(self.risk.surrogate.derivative(np.zeros(1))[0]))
        n_here = int(partition.present.sum())
        # Softmax of 0 shrinks the gradient by its value there, 1 / C.
        shrunk = partition.n_classes if self.activation == "softmax" else 1
        return float(partition.weights.sum()) * shrunk * (n_here - 1) / (n_here * slope)


def _of_logs(term: LogTerm, raw: Floats) -> tuple[Floats, Floats]:
    _, gradient = term.of_logits(raw, slice(None))
    return gradient, term.curvature_above(gradient.copy())


def holds_labels(data: Any) -> bool:
    """Whether this is a LightGBM Dataset or an XGBoost DMatrix."""
    return hasattr(data, "get_label")


def in_order(first: Any, second: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Classes, scores and weights, from ``(y_true, scores, weight)`` or from ``(scores, Dataset or DMatrix)``."""
    if not holds_labels(second):
        return first, second, weight
    labels, weight = second.get_label(), second.get_weight()
    if labels is None or len(labels) == 0:
        raise invalid("data", "must have labels", "none", "pass label= to the Dataset or DMatrix")
    empty = weight is None or len(weight) == 0
    return np.asarray(labels), first, None if empty else np.asarray(weight)


def _check_two_classes(y: ArrayLike) -> None:
    most = np.max(np.asarray(y), initial=0)
    if most > 1:
        advice = f"set num_class, here {int(most) + 1} or more"
        raise invalid(
            "num_class", "must be the number of classes", f"one column of scores, class {most:g} in y", advice
        )


def multiclass_auc(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None, activation: str, pairs: str | ArrayLike
) -> float:
    """Multiclass AUC of the library's scores over the classes present; ``(N,)`` scores are those of class 1."""
    columns = np.asarray(scores, dtype=np.float64)
    if columns.ndim == 1:
        _check_two_classes(y)
        columns = np.column_stack([-columns, columns])
    elif activation == "softmax":
        columns = activate(columns, "softmax")
    labels = np.arange(columns.shape[1])
    codes = check_codes(y, *columns.shape)
    return mauc_score(codes, columns, pairs=pairs, labels=labels, sample_weight=sample_weight, absent="ignore")
