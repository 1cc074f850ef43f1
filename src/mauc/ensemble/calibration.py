r"""Turn scores that rank into probabilities, class by class, without changing the ranking.

Column c of the scores F becomes the probability of class c against all others,

.. math:: g_c(F_c) = (1 - \varepsilon)\, \sigma(a_c \operatorname{logit} F_c + b_c) + \varepsilon F_c, \qquad a_c > 0.

The map increases strictly, so that the ranking inside a column, and every AUC, stays the same. The share
:math:`\varepsilon = 1 / (N + 2)` of the score itself separates scores that the sigmoid rounds to the same number, if
they differ by more than about :math:`10^{-16} / \varepsilon`.

Rows sum to 1 for two classes; with more, the sum of a row can be far from 1. ``calibrate="normalized"`` divides each
row by its sum. If increasing maps of single columns keep every row sum at 1, they are :math:`a F_c + b_c` with one
slope for all (Cauchy's equation). Such maps cannot undo the class balancing.

The maps minimise the log-loss of scores that neither the models nor the combination was trained on. First all classes
share one slope; the slope of a single class is pulled to it by :math:`\tfrac{\tau}{2} (\log a_c - \log a)^2`, because a
class of five samples is not reliable. The intercept makes the mean of the sigmoid, without the small share
:math:`\varepsilon` of the score, the share of the class in the training data. A class without held-out samples has the
common slope.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit, logit

from mauc._typing import Floats, Ints
from mauc._validation import invalid

PULL = 20.0
"""The penalty τ; it counts as much as 20 samples."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Fitted maps of the columns."""

    slopes: Floats
    """``(C,)`` above 0."""
    intercepts: Floats
    """``(C,)``"""
    rest: float
    """Share ε of the score itself."""

    def probabilities(self, scores: Floats) -> Floats:
        """Return ``(N, C)`` probabilities; each column is ranked as that of the scores."""
        sigmoid = expit(self.slopes * _logits(scores) + self.intercepts)
        return np.asarray((1.0 - self.rest) * sigmoid + self.rest * scores)


def fit_calibration(scores: Floats, codes: Ints, weight: Floats | None, shares: Floats) -> Calibration:
    """Learn the maps from ``(N, C)`` softmax scores of held-out samples; O(N·C) for each of some dozen evaluations.

    Parameters
    ----------
    scores : (N, C) array
    codes : (N,) array
        Class of each sample.
    weight : (N,) array of positive weights, or None
    shares : (C,) array
        Share of each class among all training samples, by weight; above 0.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[0.7, 0.3], [0.6, 0.4], [0.6, 0.4], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]])
    >>> codes = np.array([0, 0, 0, 1, 1, 1])
    >>> maps = fit_calibration(scores, codes, None, np.array([0.5, 0.5]))
    >>> p = maps.probabilities(scores)
    >>> bool(np.allclose(p.sum(axis=1), 1)), bool(np.allclose(p.mean(axis=0), 0.5, atol=0.02))
    (True, True)
    """
    n_samples, n_classes = scores.shape
    if len(np.unique(codes)) < 2:
        came, advice = "fewer", "pass more samples of each class, other folds, or calibrate=False"
        raise invalid("calibrate", "needs held-out samples of two classes", came, advice)
    # A mean of 1, so that the pull does not depend on the unit of the weights.
    unit = np.ones(n_samples) if weight is None else weight / weight.mean()
    logits = _logits(scores)
    is_class = codes[:, None] == np.arange(n_classes)
    common, intercepts = _fit_sigmoid(logits, is_class, unit, shares, 0.0, 1.0, logit(shares))
    slopes = np.full(n_classes, common)
    for c in range(n_classes):
        own = is_class[:, [c]]
        slopes[c], intercepts[[c]] = _fit_sigmoid(
            logits[:, [c]], own, unit, shares[[c]], common, PULL, intercepts[[c]], fixed_slope=not own.any()
        )
    return Calibration(np.exp(slopes), intercepts, 1.0 / (n_samples + 2))


def _logits(scores: Floats) -> Floats:
    return np.asarray(logit(np.clip(scores, np.finfo(np.float64).tiny, 1.0 - 2.0**-53)))


def _fit_sigmoid(
    logits: Floats,
    is_class: NDArray[np.bool_],
    weight: Floats,
    shares: Floats,
    centre: float,
    pull: float,
    intercepts: Floats,
    fixed_slope: bool = False,
) -> tuple[float, Floats]:
    r"""Fit the logarithm of one slope for all columns, pulled to ``centre``, and an intercept for each, by log-loss.

    The loss has :math:`b_c` as :math:`-b_c n_c`. Here :math:`n_c` is the expected number of positives, so that at the
    minimum the mean of the sigmoid is the share of the class.
    """
    expected = shares * weight.sum()
    positive = weight @ np.where(is_class, logits, 0.0)

    def objective(parameters: Floats) -> tuple[float, Floats]:
        slope, away = np.exp(parameters[0]), parameters[0] - centre
        u = slope * logits + parameters[1:]
        value = weight @ np.logaddexp(0.0, u) - slope * positive - parameters[1:] * expected
        p = weight[:, None] * expit(u)
        by_slope = slope * (float(np.sum(p * logits)) - positive.sum()) + pull * away
        return float(value.sum()) + 0.5 * pull * away**2, np.append(by_slope, p.sum(axis=0) - expected)

    bounds = [(centre, centre) if fixed_slope else (-6.0, 6.0), *[(None, None)] * len(intercepts)]
    found = optimize.minimize(objective, np.append(centre, intercepts), jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.x[0]), np.asarray(found.x[1:])
