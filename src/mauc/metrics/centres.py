"""A measure in several centres: each centre, a random-effects mean, a prediction interval, heterogeneity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from mauc._typing import Floats
from mauc._validation import check_real, check_row_values, invalid
from mauc.metrics.any_measure import Measure, Normal, Scored, check_scored, estimate
from mauc.metrics.uncertainty import Estimate, Interval
from mauc.partition import ClassPartition

__all__ = ["Centres", "measure_by_centre"]


@dataclass(frozen=True)
class Centres:
    """A measure in several centres."""

    centres: dict[str, Interval]
    """The centres that have every class, each with its own interval."""
    mean: Interval
    """Mean of the centres from which these were drawn, with the interval of Hartung and Knapp."""
    prediction: tuple[float, float]
    """Interval of the true value in a new centre."""
    deviation: float
    """Standard deviation between the true values of centres, on the scale of the model (log-odds for shares)."""
    i_squared: float
    """Share of the variance between the observed values that is not sampling error."""
    pvalue: float
    """Of Cochran's test that all centres have the same true value."""
    left_out: tuple[str, ...]
    """Centres that lack a class."""


def measure_by_centre(
    measure: Measure,
    y_true: ArrayLike,
    y_score: ArrayLike,
    centres: ArrayLike,
    *,
    level: float = 0.95,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Centres:
    r"""Compute a measure within each centre, and summarise the centres by a random-effects model (TRIPOD-Cluster).

    The values :math:`x_k` of the centres, log-odds if the measure is a share, have the sampling variances
    :math:`s_k^2` and true values of variance :math:`\tau^2` between centres:

    .. math:: x_k \sim N(\mu, \tau^2 + s_k^2) , \qquad w_k = \frac{1}{\tau^2 + s_k^2} , \qquad
        \hat\mu = \frac{\sum w_k x_k}{\sum w_k} , \qquad
        \widehat{\operatorname{Var}}(\hat\mu) = \frac{\sum w_k (x_k - \hat\mu)^2}{(K - 1) \sum w_k} .

    :math:`\tau^2` solves :math:`\sum_k w_k (x_k - \hat\mu)^2 = K - 1` (Paule and Mandel). The interval of the mean has
    Student's t with K − 1 degrees of freedom (Hartung and Knapp); its variance is at least
    :math:`1 / \sum w_k`. That of a new centre adds :math:`\tau^2` and has K − 2 degrees of freedom.
    :math:`I^2 = \max(0, 1 - (K - 1) / Q)` with Cochran's Q.

    Two or more centres need rows of every class; the others are left out. Rows of different centres are taken as
    independent; ``groups`` are within a centre. The other parameters are as in :func:`measure_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.metrics import MulticlassAUC, measure_by_centre
    >>> rng = np.random.default_rng(0)
    >>> y, centre = np.arange(900) % 3, np.repeat(list("abcdef"), 150)
    >>> lead = np.repeat([1.0, 1.2, 1.5, 1.5, 1.8, 2.0], 150)[:, None]
    >>> scores = rng.normal(size=(900, 3)) + lead * np.eye(3)[y]
    >>> found = measure_by_centre(MulticlassAUC(), y, scores, centre)
    >>> print(f"{found.mean.score:.3f} [{found.mean.low:.3f}, {found.mean.high:.3f}]")
    0.856 [0.780, 0.909]
    >>> print(f"a new centre: {found.prediction[0]:.3f} to {found.prediction[1]:.3f}, p = {found.pvalue:.1g}")
    a new centre: 0.592 to 0.961, p = 2e-09
    """
    level = check_real("level", level, low=0, high=1)
    whole = check_scored(y_true, y_score, labels, sample_weight, groups)
    advice = "pass the centre of each row, such as the hospital"
    names, of_row = check_row_values(centres, len(whole.scores), "centres", advice)
    found: dict[str, Estimate | Normal] = {}
    for k, name in enumerate(names):
        rows = np.flatnonzero(of_row == k)
        weight = None if sample_weight is None else whole.shares[rows]
        part = ClassPartition(whole.partition.codes[rows], whole.partition.n_classes, weight)
        if part.weights.min() > 0.0:
            of_groups = None if whole.groups is None else whole.groups[rows]
            scored = Scored(part, whole.scores[rows], whole.labels, of_groups)
            found[name] = estimate(scored, measure.evaluate(scored))
    left_out = tuple(name for name in names if name not in found)
    if len(found) < 2:
        came, advice = f"{len(found)} such centres", "pass fewer classes or larger centres"
        raise invalid("centres", "must have rows of every class in two centres or more", came, advice)
    are_shares = all(isinstance(one, Estimate) for one in found.values())
    x, variance = np.array([_on_scale(one) for one in found.values()]).T
    tau_squared = _between(x, variance)
    weights = 1.0 / (tau_squared + variance)
    n, mean = len(x), float(np.average(x, weights=weights))
    of_mean = max(float(weights @ (x - mean) ** 2) / (n - 1), 1.0) / float(weights.sum())
    reach = float(special.stdtrit(n - 1, 0.5 + 0.5 * level)) * math.sqrt(of_mean)
    further = float(special.stdtrit(max(n - 2, 1), 0.5 + 0.5 * level)) * math.sqrt(tau_squared + of_mean)
    q = _q(0.0, x, variance)

    def back(value: float) -> float:
        return float(special.expit(value)) if are_shares else value

    slope = back(mean) * (1.0 - back(mean)) if are_shares else 1.0  # of the scale
    return Centres(
        centres={name: one.interval(level) for name, one in found.items()},
        mean=Interval(back(mean), back(mean - reach), back(mean + reach), slope * math.sqrt(of_mean)),
        prediction=(back(mean - further), back(mean + further)),
        deviation=math.sqrt(tau_squared),
        i_squared=max(0.0, 1.0 - (n - 1) / q) if q > 0.0 else 0.0,
        pvalue=float(special.chdtrc(n - 1, q)),
        left_out=left_out,
    )


def _on_scale(one: Any) -> tuple[float, float]:
    """Return the value and its variance; of a share, those of its log-odds with a row of random scores added."""
    if isinstance(one, Normal):
        return one.score, max(one.stderr**2, float(np.finfo(np.float64).tiny))
    share = (one.score * one.size + 0.5) / (one.size + 1.0)
    return float(special.logit(share)), 1.0 / (one.size * share * (1.0 - share))


def _q(tau_squared: float, x: Floats, variance: Floats) -> float:
    """Return the weighted sum of squares about the weighted mean."""
    weights = 1.0 / (tau_squared + variance)
    return float(weights @ (x - np.average(x, weights=weights)) ** 2)


def _between(x: Floats, variance: Floats) -> float:
    """Return Paule and Mandel's variance between centres."""
    n = len(x)
    if _q(0.0, x, variance) <= n - 1:
        return 0.0
    most = float(np.sum((x - x.mean()) ** 2))
    return float(optimize.brentq(lambda t: _q(t, x, variance) - (n - 1), 0.0, most))
