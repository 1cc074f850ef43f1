"""Proportional odds: a model of ordered classes."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit, log_expit, logit
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_array

from mauc._estimators import HighestScoreClassifier, encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import invalid

GAP = 1e-3
"""Smallest distance between two thresholds: a class between equal thresholds would have probability 0."""


MOST_NUMBERS = 30
"""More numbers than these are taken for codes without an order."""


def class_order(ordinal: Any, y: Any, classes: NDArray[Any]) -> Ints | None:
    """Return the positions of the classes from the lowest to the highest.

    The order is the list ``ordinal``, or else that of an ordered data type of ``y``, or that of numbers. None: there is
    no order, ``ordinal`` is False, or there are only two classes.

    >>> class_order(["low", "mid", "high"], None, np.array(["high", "low", "mid"])).tolist()
    [1, 2, 0]
    """
    places = {name: place for place, name in enumerate(classes.tolist())}
    if len(places) < 3 or ordinal is False:
        return None
    kind = getattr(y, "dtype", None)
    if ordinal is None and getattr(kind, "ordered", False):
        return np.array([places[name] for name in getattr(kind, "categories", ()) if name in places])
    if ordinal is None:
        return np.arange(len(places)) if classes.dtype.kind in "iuf" and len(places) <= MOST_NUMBERS else None
    try:
        names = np.asarray(ordinal).tolist() if np.ndim(ordinal) == 1 else []
        names_all = len(names) == len(places) and set(names) == set(places)
    except (TypeError, ValueError):  # a list inside the list
        names_all = False
    if not names_all:
        requirement = "must be None, False or a list of all classes, the lowest first"
        raise invalid("ordinal", requirement, repr(ordinal), f"the classes are {', '.join(map(str, places))}")
    return np.array([places[name] for name in names])


class ProportionalOdds(HighestScoreClassifier, BaseEstimator):  # type: ignore[misc]
    r"""Fit one direction and C - 1 thresholds on it, for classes :math:`0 < 1 < \dots < C - 1`:

    .. math:: P(y > k) = \sigma(\beta^\top x - \theta_k), \qquad \theta_0 < \theta_1 < \dots < \theta_{C-2}

    by the class-balanced log-loss plus :math:`\tfrac{\lambda}{2} \lVert \beta \rVert^2`. A rare class shares the
    direction with all others.

    Parameters
    ----------
    order : list of classes, optional
        All classes from the lowest to the highest; default: sorted. Classes absent from ``y`` are skipped.
    l2 : float, default=1e-3
        The penalty :math:`\lambda`, for standardised columns.

    Attributes
    ----------
    classes_ : (C,) array
        Sorted.
    coef_ : (d,) array
        The direction :math:`\beta`.
    thresholds_ : (C - 1,) array
        Increasing.
    columns_ : (C,) array
        Place in ``classes_`` of each class from the lowest to the highest.

    Notes
    -----
    With :math:`a = \theta_k - \beta^\top x` and :math:`b = \theta_{k-1} - \beta^\top x`, class k has the probability

    .. math:: \sigma(a) - \sigma(b) = \sigma(a)\, \sigma(-b)\, (1 - e^{b - a}).

    The product does not cancel. With :math:`\theta_{-1} = -\infty` and :math:`\theta_{C-1} = \infty` it also holds for
    the lowest and the highest class. The loss is convex and costs O(N d) per evaluation.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(30.0)[:, None] / 10
    >>> grades = np.repeat(["low", "middle", "high"], 10)
    >>> model = ProportionalOdds(order=["low", "middle", "high"]).fit(x, grades)
    >>> model.predict([[0.0], [1.5], [3.0]]).tolist()
    ['low', 'middle', 'high']
    """

    def __init__(self, order: Sequence[Any] | None = None, l2: float = 1e-3) -> None:
        self.order = order
        self.l2 = l2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Floats | None = None) -> Self:
        """Fit the direction and the thresholds."""
        X = _columns(X)
        self.classes_, codes = encode_classes(y)
        order = list(self.classes_) if self.order is None else [c for c in self.order if c in self.classes_]
        self.columns_ = np.searchsorted(self.classes_, order)
        grades = np.argsort(self.columns_)[codes]
        weight = compute_sample_weight("balanced", y)
        weight = weight if sample_weight is None else weight * sample_weight
        d, n_thresholds = X.shape[1], len(order) - 1
        # The parameters are the direction, the first threshold and the steps to the next ones, which bounds keep
        # positive. At the start all classes have the same probability.
        start = np.append(np.zeros(d), np.diff(logit(np.arange(1, len(order)) / len(order)), prepend=0.0))
        found = optimize.minimize(
            _objective,
            start,
            args=(X, grades, weight / weight.sum(), n_thresholds, self.l2),
            jac=True,
            method="L-BFGS-B",
            bounds=[(None, None)] * (d + 1) + [(GAP, None)] * (n_thresholds - 1),
            options={"maxiter": 1000},
        )
        self.coef_, self.thresholds_ = found.x[:d], np.cumsum(found.x[d:])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return ``(N, C)`` probabilities."""
        projection = (_columns(X) @ self.coef_)[:, None]
        thresholds = _with_infinities(self.thresholds_)
        above, below, width = thresholds[1:] - projection, thresholds[:-1] - projection, np.diff(thresholds)
        scores = np.empty(above.shape)
        scores[:, self.columns_] = expit(above) * expit(-below) * -np.expm1(-width)
        return scores


def _columns(X: Any) -> Any:
    return check_array(X, accept_sparse=("csr", "csc"), dtype=np.float64)


def _with_infinities(thresholds: Floats) -> Floats:
    """Return the thresholds with one below the lowest class and one above the highest."""
    return np.concatenate([[-np.inf], thresholds, [np.inf]])


def _objective(
    parameters: Floats, X: Any, grades: Ints, weight: Floats, n_thresholds: int, l2: float
) -> tuple[float, Floats]:
    """Return the loss and its gradient in the direction, the first threshold and the steps to the next ones.

    ``by_…`` are derivatives of the weighted log-probabilities; those by the infinite thresholds are 0.
    """
    direction, steps = parameters[:-n_thresholds], parameters[-n_thresholds:]
    thresholds, projection = _with_infinities(np.cumsum(steps)), X @ direction
    above, below = thresholds[grades + 1] - projection, thresholds[grades] - projection
    width = np.diff(thresholds)[grades]
    log_p = log_expit(above) + log_expit(-below) + np.log(-np.expm1(-width))
    by_width = np.exp(-width) / -np.expm1(-width)
    by_above = weight * (expit(-above) + by_width)
    by_below = -weight * (expit(below) + by_width)
    by_threshold = np.bincount(grades, by_above, n_thresholds + 1)[:-1]
    by_threshold = by_threshold + np.bincount(grades, by_below, n_thresholds + 1)[1:]
    value = -weight @ log_p + 0.5 * l2 * direction @ direction
    by_direction = X.T @ (by_above + by_below) + l2 * direction
    by_steps = -np.cumsum(by_threshold[::-1])[::-1]
    return float(value), np.concatenate([by_direction, by_steps])
