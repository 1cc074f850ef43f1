"""Proportional odds: a model of ordered classes."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit, log_expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_array

from mauc._typing import Floats, Ints
from mauc._validation import invalid

__all__ = ["ProportionalOdds", "class_order"]

GAP = 1e-3
"""Smallest distance between two thresholds: a class between equal thresholds would have probability 0."""


def class_order(ordinal: Any, y: Any, classes: NDArray[Any]) -> Ints | None:
    """Return the positions of the classes from the lowest to the highest.

    The order is the list ``ordinal``, or else that of an ordered data type of ``y``. None: there is no order, or there
    are only two classes.

    >>> class_order(["low", "mid", "high"], None, np.array(["high", "low", "mid"])).tolist()
    [1, 2, 0]
    """
    kind = getattr(y, "dtype", None)
    if ordinal is None and not getattr(kind, "ordered", False):
        return None
    given = getattr(kind, "categories", ()) if ordinal is None else ordinal
    names = [] if isinstance(given, str) or np.ndim(given) != 1 else np.asarray(given).tolist()
    places = {name: place for place, name in enumerate(classes.tolist())}
    if ordinal is None:
        names = [name for name in names if name in places]
    if len(names) != len(places) or set(names) != set(places):
        requirement = "must be None or a list of all classes, the lowest first"
        raise invalid("ordinal", requirement, repr(ordinal), f"the classes are {', '.join(map(str, places))}")
    return np.array([places[name] for name in names]) if len(places) > 2 else None


class ProportionalOdds(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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

    Notes
    -----
    With the thresholds a and b above and below a class,
    :math:`\log(\sigma(a) - \sigma(b)) = \log \sigma(a) + \log \sigma(-b) + \log(1 - e^{b - a})`, which neither
    underflows nor cancels; infinite thresholds drop out. The loss is convex and costs O(N d) per evaluation.

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
        X, self.classes_ = _columns(X), np.unique(y)
        order = list(self.classes_) if self.order is None else [c for c in self.order if c in self.classes_]
        # Column of each class, the lowest first.
        self.columns_ = np.searchsorted(self.classes_, order)
        grades = np.argsort(self.columns_)[np.searchsorted(self.classes_, y)]
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
        above = expit((_columns(X) @ self.coef_)[:, None] - self.thresholds_)
        bounds = np.hstack([np.ones((len(above), 1)), above, np.zeros((len(above), 1))])
        scores = np.empty((len(above), len(self.classes_)))
        scores[:, self.columns_] = bounds[:, :-1] - bounds[:, 1:]
        return scores

    def predict(self, X: Any) -> Any:
        """Return the class with the highest score."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _columns(X: Any) -> Any:
    return check_array(X, accept_sparse=("csr", "csc"), dtype=np.float64)


def _objective(
    parameters: Floats, X: Any, grades: Ints, weight: Floats, n_thresholds: int, l2: float
) -> tuple[float, Floats]:
    """Return the loss and its gradient in the direction, the first threshold and the steps to the next ones.

    ``by_…`` are derivatives of the weighted log-probabilities. The lowest class has no threshold below it, the highest
    none above it.
    """
    direction, steps = parameters[:-n_thresholds], parameters[-n_thresholds:]
    thresholds, projection = np.cumsum(steps), X @ direction
    has_above, has_below = grades < n_thresholds, grades > 0
    above = np.append(thresholds, 0.0)[grades] - projection
    below = np.append(0.0, thresholds)[grades] - projection
    inner = has_above & has_below
    width = np.where(inner, above - below, 1.0)
    log_p = np.where(has_above, log_expit(above), 0.0) + np.where(has_below, log_expit(-below), 0.0)
    log_p += np.where(inner, np.log(-np.expm1(-width)), 0.0)
    by_width = np.where(inner, np.exp(-width) / -np.expm1(-width), 0.0)
    by_above = weight * np.where(has_above, expit(-above) + by_width, 0.0)
    by_below = -weight * np.where(has_below, expit(below) + by_width, 0.0)
    by_threshold = np.bincount(grades, by_above, n_thresholds + 1)[:-1]
    by_threshold = by_threshold + np.bincount(grades, by_below, n_thresholds + 1)[1:]
    value = -weight @ log_p + 0.5 * l2 * direction @ direction
    by_direction = X.T @ (by_above + by_below) + l2 * direction
    by_steps = -np.cumsum(by_threshold[::-1])[::-1]
    return float(value), np.concatenate([by_direction, by_steps])
