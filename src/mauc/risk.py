"""The surrogate risk: the sum of a surrogate over all pairs of samples, and its gradient."""

from __future__ import annotations

import warnings
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from mauc._kernels.blocked import blocked_risk
from mauc._kernels.moments import exponential_risk, polynomial_risk, squared_risk
from mauc._kernels.pairwise import pairwise_risk
from mauc._kernels.piecewise import ranked_risk
from mauc._kernels.threads import threads
from mauc._kernels.tiles import Problem, column_range
from mauc._typing import Floats, Pairs
from mauc._validation import (
    check_choice,
    check_codes,
    check_n_jobs,
    check_pairs,
    check_sample_weight,
    check_scores,
    invalid,
)
from mauc.partition import ClassPartition
from mauc.plan import DEFAULT_TOLERANCE, Plan, needs_range, plan, radius_for
from mauc.surrogates import get_surrogate

__all__ = ["SurrogateRisk"]

HUGE = 2.0**1000
"""Above this size, differences of scores may overflow when they are multiplied by α."""
Scheme = Literal["auto", "moments", "ranked", "blocked", "pairwise"]
CLOSED_FORMS = {"squared": squared_risk, "exponential": exponential_risk}


class SurrogateRisk:
    r"""Compute the risk of scores under a surrogate of the multiclass AUC, and its gradient.

    .. math:: R(F) = \sum_i \sum_{j \ne i} v_{ij} \,
        \operatorname{mean}_{m \in N_i,\, n \in N_j} \ell(F_{mi} - F_{ni})

    Parameters
    ----------
    surrogate : str or object, default="exponential"
        ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``, ``"generalized_hinge"``, ``"logistic"``,
        ``"distance_weighted"``, or an object: one of :mod:`mauc.surrogates` such as ``QHinge(q=3.0)``, or one of your
        own with ``loss(t)`` and ``derivative(t)``.
    alpha : float, optional
        Margin or rate α of a surrogate given by name. None: the surrogate's default (:mod:`mauc.surrogates`).
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        Weights :math:`v_{ij}` of the class pairs.
    scheme : {"auto", "moments", "ranked", "blocked", "pairwise"}, default="auto"
        Method that sums over the pairs: ``"moments"`` costs O(N·C), ``"ranked"`` too after a sort, the others O(N²).
        ``"auto"`` chooses the fast method that fits the surrogate, or blocks if no polynomial is accurate enough.
    n_jobs : int, optional
        Number of threads for half a million scores or more; -1 is one per core. None: one per core, at most
        eight, and at most ``OMP_NUM_THREADS``. Value and gradient do not depend on it.

    Attributes
    ----------
    scheme_ : str
        The scheme of the last call.
    degree_ : int or None
        Degree of the polynomials in the last call; None if there were none.

    Notes
    -----
    A surrogate that is smooth but not a polynomial (logistic, distance_weighted, q_hinge with fractional q, custom
    ones) is approximated by Chebyshev polynomials. The errors of ℓ and ℓ′ are at most 1e-6 of their values at 0. If
    these are 0, the errors are at most 1e-6 of the largest values that occur: if such a surrogate has a steep tail,
    use ``scheme="blocked"``.

    All others have rounding errors alone. These are relative to the value for the closed forms, ``"ranked"`` and
    ``"blocked"``; with the moments of other polynomials they are about 1e-14 of ℓ(0), the risk of constant scores.

    A class without samples is left out, and the weights of the other pairs are renormalised. With fewer than two
    classes the risk and its gradient are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import SurrogateRisk
    >>> y = np.array([0, 0, 1, 2])
    >>> scores = np.array([[0.8, 0.1, 0.1], [0.4, 0.4, 0.2], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    >>> risk = SurrogateRisk("squared", alpha=1.0)
    >>> value, gradient = risk.value_and_gradient(y, scores)
    >>> round(value, 4), gradient.shape, risk.scheme_
    (0.3917, (4, 3), 'moments')
    """

    def __init__(
        self,
        surrogate: str | Any = "exponential",
        *,
        alpha: float | None = None,
        pairs: Pairs = "ovo",
        scheme: Scheme = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.surrogate = get_surrogate(surrogate, alpha=alpha)
        self.pairs = pairs
        self.scheme: str = check_choice("scheme", scheme, get_args(Scheme))
        self.n_jobs = check_n_jobs(n_jobs)
        self._linear = "moments" if len(self.surrogate.pieces) == 1 else "ranked"
        fitting = (self._linear, "blocked", "pairwise")
        if self.scheme not in ("auto", *fitting):
            advice = f"use 'auto' or one of {', '.join(fitting)}"
            raise invalid("scheme", f"must fit the {self.surrogate.name} surrogate", repr(scheme), advice)
        self._warned = False
        self.degree_: int | None = None

    def value(self, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the risk.

        Parameters
        ----------
        y : (N,) class codes 0..C-1
        scores : (N, C) scores; column i ranks "is class i"
        sample_weight : (N,) weights >= 0, optional
        """
        return self._evaluate(y, scores, sample_weight, gradient=False)[0]

    def value_and_gradient(
        self, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[float, Floats]:
        """Return the risk and its ``(N, C)`` gradient with respect to the scores.

        Parameters
        ----------
        y : (N,) class codes 0..C-1
        scores : (N, C) scores; column i ranks "is class i"
        sample_weight : (N,) weights >= 0, optional
        """
        value, gradient = self._evaluate(y, scores, sample_weight, gradient=True)
        assert gradient is not None
        return value, gradient

    def __repr__(self) -> str:
        return f"SurrogateRisk({self.surrogate!r}, pairs={self.pairs!r}, scheme={self.scheme!r})"

    def _evaluate(
        self, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None, *, gradient: bool
    ) -> tuple[float, Floats | None]:
        clean = check_scores(scores, "scores")
        codes = check_codes(y, *clean.shape)
        n_classes = clean.shape[1]
        weight = check_sample_weight(sample_weight, codes, n_classes)
        partition = ClassPartition(codes, n_classes, weight)
        v = partition.pair_weights(check_pairs(self.pairs, n_classes))
        problem = partition.problem(clean, v)
        if self.scheme != "pairwise" and float(np.abs(clean).max()) > HUGE and self.surrogate.name != "squared":
            # Differences may overflow, and the loss of such a pair is infinite. Pair by pair, all other losses are
            # right. The squared risk rescales its scores itself.
            self.scheme_, self.degree_ = "blocked", None
            return blocked_risk(problem, self.surrogate.loss, self.surrogate.derivative, gradient=gradient)
        with threads(self.n_jobs):
            return self.compute(problem, gradient=gradient)

    def compute(self, problem: Problem, *, gradient: bool, bounded: bool = False) -> tuple[float, Floats | None]:
        """Compute value, and gradient if wanted, of clean input, without checks: for training loops.

        ``bounded``: the scores come from a softmax or sigmoid, so that their differences lie in ``[−1, 1]``.
        """
        surrogate, form = self.surrogate, self.surrogate.closed_form
        self.scheme_ = self._linear if self.scheme == "auto" else self.scheme
        self.degree_ = None
        if self.scheme_ == "pairwise":
            return pairwise_risk(problem, surrogate.loss, surrogate.derivative)
        if self.scheme_ != "blocked":
            if form is not None:
                return CLOSED_FORMS[form.kind](problem, form.alpha, gradient=gradient)
            found = self._plan(problem, bounded)
            if found is not None:
                self.scheme_, self.degree_ = found.scheme, found.degree
                return planned_risk(problem, found, gradient=gradient)
            self.scheme_ = "blocked"
        return blocked_risk(problem, surrogate.loss, surrogate.derivative, gradient=gradient)

    def _plan(self, problem: Problem, bounded: bool) -> Plan | None:
        """Return polynomial pieces for the differences that occur; None if the risk must be summed pair by pair."""
        radius = np.inf
        if needs_range(self.surrogate):
            low, high = (np.zeros(1), np.ones(1)) if bounded else column_range(problem)
            with np.errstate(over="ignore"):
                radius = radius_for(float((high - low).max()))
        found = plan(self.surrogate, radius)
        if found is not None:
            return found
        name, error = self.surrogate.name, f"the error {DEFAULT_TOLERANCE:g}"
        what = f"no polynomial of the {name} surrogate on differences up to {radius:g} has at most {error}"
        if self.scheme != "auto":
            advice = "use scheme='auto' or 'blocked', or scores of a smaller range"
            raise invalid("scheme", "must be accurate enough", f"{self.scheme!r}, but {what}", advice)
        if not self._warned:
            self._warned = True
            warnings.warn(f"{what}: taking all pairs in blocks, O(N²) time", stacklevel=5)
        return None


def planned_risk(problem: Problem, found: Plan, *, gradient: bool) -> tuple[float, Floats | None]:
    """Compute value, and gradient if wanted, by the polynomials of a plan."""
    if found.scheme == "ranked":
        return ranked_risk(problem, found.pieces, gradient=gradient)
    (piece,) = found.pieces
    assert piece.half_width is not None
    return polynomial_risk(problem, piece.matrix, piece.half_width, gradient=gradient)
