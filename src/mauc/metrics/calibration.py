"""Calibration intercept and slope of a class, by multinomial logistic recalibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy import optimize, special

from mauc._typing import Floats
from mauc._validation import check_choice, class_position, invalid
from mauc.metrics.any_measure import Scored, Value

__all__ = ["Calibration"]

Kind = Literal["intercept", "slope"]


@dataclass(frozen=True)
class Calibration:
    r"""Calibration intercept or slope of a class against a reference (Van Hoorde et al., Statistics in Medicine 33).

    With the reference class r and the linear predictors :math:`L_{nk} = \log (p_{nk} / p_{nr})`, the probabilities are
    recalibrated by

    .. math:: \log \frac{P(y_n = k)}{P(y_n = r)} = \alpha_k + \beta_k L_{nk} , \qquad k \ne r .

    The slopes are the :math:`\beta_k` of largest likelihood; below 1, the probabilities are too extreme. The
    intercepts are the :math:`\alpha_k` of largest likelihood with :math:`\beta_k = 1`; above 0, the class is more
    frequent than its probabilities say. Calibrated probabilities have the slope 1 and the intercept 0.

    The influences of the rows are :math:`H^{-1} s_n`, with the gradient :math:`s_n` of the log-likelihood of a row and
    the mean H of minus the second derivatives, so the variance is the sandwich of Huber and White.

    ``kind`` is ``"intercept"`` or ``"slope"``, ``of`` the class and ``against`` the reference class.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.metrics import Calibration, measure_interval
    >>> rng = np.random.default_rng(0)
    >>> p = np.exp(rng.normal(size=(500, 3)))
    >>> p /= p.sum(axis=1, keepdims=True)
    >>> y = (p.cumsum(axis=1) < rng.random(500)[:, None]).sum(axis=1)
    >>> extreme = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> for scores in (p, extreme):
    ...     found = measure_interval(Calibration("slope", 1, 0), y, scores)
    ...     print(f"{found.score:.2f} [{found.low:.2f}, {found.high:.2f}]")
    1.02 [0.82, 1.21]
    0.51 [0.41, 0.61]
    """

    kind: Kind
    of: Any
    against: Any

    def evaluate(self, scored: Scored) -> Value:
        """Return the intercept or the slope."""
        kind = check_choice("kind", self.kind, get_args(Kind))
        k, reference = (class_position(name, getattr(self, name), scored.labels) for name in ("of", "against"))
        if k == reference:
            raise invalid("against", "must be another class than of", repr(self.against), "pass a reference class")
        p = scored.probabilities()
        if p.min() <= 0.0:
            came, advice = f"{np.sum(p <= 0)} of 0", "clip the probabilities: their logarithm is used"
            raise invalid("y_score", "must hold probabilities above 0", came, advice)
        others = [j for j in range(p.shape[1]) if j != reference]
        predictors = np.log(p[:, others]) - np.log(p[:, [reference]])
        found, influence = _recalibrated(
            predictors, scored.partition.codes[:, None] == others, scored.shares, slopes=kind == "slope"
        )
        place = others.index(k) + (len(others) if kind == "slope" else 0)
        return Value(float(found[place]), influence[:, place])


def _recalibrated(predictors: Floats, own: Any, shares: Floats, *, slopes: bool) -> tuple[Floats, Floats]:
    """Return the intercepts, then the slopes if asked for, and the ``(N, K)`` influences of the rows.

    ``predictors`` and ``own`` are ``(N, C − 1)``: without the reference class.
    """
    n, c = predictors.shape
    free = slice(0, 2 * c if slopes else c)
    design = np.stack([np.ones_like(predictors), predictors], axis=1)  # (N, 2, C - 1)

    def fit(at: Floats) -> tuple[float, Floats, Floats]:
        """Return minus the mean log-likelihood, its ``(K, K)`` second derivatives, and the ``(N, K)`` gradients."""
        logits = np.einsum("npc,pc->nc", design, np.r_[at, np.ones(2 * c - len(at))].reshape(2, c))
        log_total = special.logsumexp(np.column_stack([np.zeros(n), logits]), axis=1)
        q = np.exp(logits - log_total[:, None])
        weighted = (design * q[:, None]).reshape(n, -1)
        same_class = np.tile(np.eye(c), (2, 2))
        second = same_class * ((shares[:, None] * weighted).T @ design.reshape(n, -1))
        second -= (shares[:, None] * weighted).T @ weighted
        gradients = (design * (own - q)[:, None]).reshape(n, -1)
        return -float(shares @ ((own * logits).sum(axis=1) - log_total)), second[free, free], gradients[:, free]

    start = np.r_[np.zeros(c), np.ones(c)][free]
    settings: dict[str, Any] = {"method": "trust-exact", "options": {"gtol": 1e-9}}
    settings |= {"jac": lambda at: -(shares @ fit(at)[2]), "hess": lambda at: fit(at)[1]}

    def surprise(at: Floats) -> float:
        return fit(at)[0]

    best = np.asarray(optimize.minimize(surprise, start, **settings).x, dtype=np.float64)
    _, second, gradients = fit(best)
    if np.linalg.eigvalsh(second)[0] < 1e-8:
        came, advice = "probabilities that separate the classes", "use more rows: the largest likelihood is at infinity"
        raise invalid("y_score", "must have a finite recalibration", came, advice)
    return best, np.asarray(np.linalg.solve(second, gradients.T).T, dtype=np.float64)
