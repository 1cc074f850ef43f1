"""Scores that minimise the risk of a surrogate for a known distribution, and the α that suit scores in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog, minimize
from scipy.special import log_softmax

from mauc._typing import Floats
from mauc._validation import check_choice, check_not_negative, invalid
from mauc.activations import activate, pull_back
from mauc.surrogates import Surrogate, get_surrogate

__all__ = ["RiskMinimiser", "largest_alpha", "likelihoods", "risk_minimiser", "smallest_alpha"]

Scores = Literal["unbounded", "unit", "softmax", "sigmoid", "log_odds"]
SCORES = get_args(Scores)
OF_LOGITS = ("softmax", "sigmoid", "log_odds")
"""Scores that are made of logits, so that a log-loss is defined."""
# Scores closer than this part of their column's spread count as ties: the programmes are solved to about 1e-8 of it.
TIE = 1e-6
SOLVED = 1e-6
"""Largest duality gap, as a part of the risk, of a programme that counts as solved."""

# The smallest and the largest α for which [0, 1] holds the minimiser of every problem whose ratios are within a factor
# e^L; docs/theory.md proves that no other α does. For L → ∞ the squared loss has α <= ½.
ProvedSurrogate = Literal["exponential", "logistic", "squared"]
PROVED: dict[str, Callable[[float], tuple[float, float]]] = {
    "exponential": lambda log_ratio: (0.5 * log_ratio, math.inf),
    "logistic": lambda log_ratio: (log_ratio, math.inf),
    "squared": lambda log_ratio: (0.0, 0.5 / math.tanh(0.25 * log_ratio) if log_ratio > 0 else math.inf),
}


@dataclass(frozen=True, eq=False)
class RiskMinimiser:
    """The scores that minimise a risk, and how well they rank."""

    likelihoods: Floats
    """``(n, C)`` probability of each point in each class; columns sum to 1."""
    scores: Floats
    """``(n, C)``; unbounded columns are centred, as the risk depends on differences only."""
    mauc: float
    """Multiclass AUC (ovo) of the scores."""
    bayes_mauc: float
    """The highest multiclass AUC that any scores reach."""
    excess: float = 0.0
    """Duality gap of bounded scores: their risk is above the least one by at most this part of it. NaN if the risk
    is not convex in the scores: then the scores are the best of a few descents."""

    @property
    def gap(self) -> float:
        """The highest multiclass AUC minus that of the minimiser."""
        return self.bayes_mauc - self.mauc

    @property
    def optimal(self) -> bool:
        """True if the minimiser of the risk ranks as well as any scores."""
        return self.gap <= 1e-9

    @property
    def spread(self) -> float:
        """Length of the shortest interval that holds every column, up to a shift of each."""
        return float(np.ptp(self.scores, axis=0).max())

    def __str__(self) -> str:
        n, n_classes = self.likelihoods.shape
        lines = [
            f"{n} points, {n_classes} classes: MAUC {self.mauc:.6g} of the minimiser, {self.bayes_mauc:.6g} at best"
        ]
        for i in range(1 if n_classes == 2 else n_classes):
            others = np.delete(self.likelihoods, i, axis=1).mean(axis=1)
            pairs = zip(self.likelihoods[:, i] / others, self.scores[:, i], strict=True)
            lines.append(f"  ratio {i}: score  " + ", ".join(f"{r:.3g}: {s:.4g}" for r, s in pairs))
        return "\n".join(lines)


def likelihoods(ratios: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    r"""Return ``(n, 2)`` likelihoods of two classes with these likelihood ratios, up to a factor.

    :math:`g_0 \propto w\, r / (1 + r)` and :math:`g_1 \propto w / (1 + r)`, with P(x) ∝ w; equal weights by default.
    Where ratios and weights are symmetric about 1, as in the counterexamples of ``docs/theory.md``, the factor is 1.

    >>> likelihoods([0.25, 4.0])
    array([[0.2, 0.8],
           [0.8, 0.2]])
    """
    r = np.asarray(ratios, dtype=np.float64)
    if r.ndim != 1 or len(r) < 2 or not (np.isfinite(r).all() and (r > 0).all()):
        requirement = "must be two or more positive numbers, one for each point"
        raise invalid("ratios", requirement, repr(ratios), "pass the likelihood ratio of each point")
    w = np.ones_like(r) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != r.shape or not (np.isfinite(w).all() and (w > 0).all()):
        raise invalid("weights", "must be positive, one for each ratio", repr(weights), "pass the share of each point")
    both = np.column_stack([w * r / (1.0 + r), w / (1.0 + r)])
    return both / both.sum(axis=0)


def risk_minimiser(
    surrogate: Any,
    likelihoods: ArrayLike,
    scores: Scores = "unbounded",
    *,
    log_loss: float = 0.0,
    alpha: float | None = None,
    **options: float,
) -> RiskMinimiser:
    r"""Find the scores that minimise the ovo risk of ℓ, if x takes n values whose probability in each class is known.

    .. math:: \sum_i \sum_{j \ne i} \frac{1}{C (C - 1)} \sum_{x, x'} g_i(x)\, g_j(x')\, \ell(f_i(x) - f_i(x'))

    If ℓ is convex, this risk is convex in f. The scores f come from a convex set, so a local minimum is the global one.
    The columns are independent problems unless each row must sum to 1.

    ``log_loss`` = λ adds :math:`\lambda\, \frac 1 C \sum_i \sum_x g_i(x) [-\log \operatorname{softmax}(z(x))_i]`,
    the log-loss of balanced classes.

    Parameters
    ----------
    surrogate : str or object
        A convex ℓ: a name of :data:`mauc.surrogates.SURROGATES`, or an object with ``loss(t)`` and ``derivative(t)``.
    likelihoods : (n, C) array
        Probability of each of the n values of x in each class; positive. Columns are normalised.
    scores : {"unbounded", "unit", "sigmoid", "softmax", "log_odds"}, default="unbounded"
        f in :math:`\mathbb R`, in [0, 1], or in [0, 1] with rows that sum to 1. A sigmoid of free logits comes
        arbitrarily close to [0, 1], softmax to the simplex: the function finds the limit of their infimum. With
        ``"log_odds"``, and with sigmoids and a log-loss, the risk is not convex: the best of a few descents.
    log_loss : float >= 0, default=0.0
        Weight λ of the log-loss, for scores that are made of logits: softmax, sigmoid and log-odds.
    alpha, **options
        Parameters of a surrogate given by its name: ``alpha``, ``q``, ``epsilon``.

    Returns
    -------
    RiskMinimiser
        Meant for tens of points: O(n² C) an iteration.

    Examples
    --------
    Five points whose best scores have five levels; on [0, 1] the logistic loss ties two at each end:

    >>> from mauc import theory
    >>> found = theory.risk_minimiser("logistic", theory.likelihoods([0.2, 0.5, 1, 2, 5]), "unit", alpha=1)
    >>> found.scores[:, 0].round(3)
    array([0. , 0. , 0.5, 1. , 1. ])
    >>> round(found.mauc, 4), round(found.bayes_mauc, 4)
    (0.74, 0.7667)
    """
    check_choice("scores", scores, SCORES)
    g = np.asarray(likelihoods, dtype=np.float64)
    if g.ndim != 2 or min(g.shape) < 2 or not (np.isfinite(g).all() and (g > 0).all()):
        requirement = "must be positive, one row per point and one column per class, two of each at least"
        advice = "pass the probability of each point in each class"
        raise invalid("likelihoods", requirement, f"shape {g.shape}", advice)
    g = g / g.sum(axis=0)
    ell = get_surrogate(surrogate, alpha=alpha, **options)
    others = (g.sum(axis=1, keepdims=True) - g) / (g.shape[1] - 1)
    check_log_loss_scores(log_loss, scores)
    if scores == "softmax":
        f = _on_the_simplex(ell, g, others, log_loss)
        if log_loss > 0 and not _excess(ell, f, g, others, scores, log_loss) < SOLVED:
            f = _of_logits(ell, g, others, scores, log_loss)
    elif scores == "log_odds" or log_loss > 0:
        f = _of_logits(ell, g, others, scores, log_loss)
    else:
        bounded = scores != "unbounded"
        columns = [_column_minimiser(ell, *column, bounded) for column in zip(g.T, others.T, strict=True)]
        f = np.column_stack(columns if bounded else [column - column.mean() for column in columns])
    best = _mauc(np.log(g) - np.log(others), g, others)
    return RiskMinimiser(g, f, _mauc(f, g, others), best, _excess(ell, f, g, others, scores, log_loss))


def check_log_loss_scores(log_loss: Any, scores: str) -> float:
    """Return the weight of a log-loss, which needs scores that are made of logits."""
    if check_not_negative("log_loss", log_loss) > 0 and scores not in OF_LOGITS:
        advice = f"use scores of {', '.join(OF_LOGITS)}"
        raise invalid("log_loss", "needs scores that are made of logits", f"it with {scores!r}", advice)
    return float(log_loss)


def _risk(ell: Surrogate, pairs: Floats, f: Floats) -> tuple[float, Floats]:
    """Compute ``Σ pairs[x, x'] ℓ(f(x) − f(x'))`` and its gradient, for one column of scores or for all."""
    t = f[:, None] - f
    slope = pairs * ell.derivative(t)
    return float(np.sum(pairs * ell.loss(t))), slope.sum(axis=1) - slope.sum(axis=0)


def _mauc(f: Floats, g: Floats, others: Floats) -> float:
    """Compute the mean over columns of P(f(x) > f(x')) + ½ P(f(x) = f(x')), x of the class, x' of the others."""
    t = f[:, None] - f
    won = np.where(np.abs(t) <= TIE * np.ptp(f, axis=0), 0.5, (t > 0).astype(float))
    return float(np.einsum("xi,yi,xyi->", g, others, won) / g.shape[1])


def _excess(ell: Surrogate, f: Floats, g: Floats, others: Floats, scores: str, log_loss: float) -> float:
    """Compute the duality gap: a convex risk is at least its tangent at f, whose least value is at a corner."""
    if scores == "log_odds" or (scores == "sigmoid" and log_loss > 0):
        return float("nan")
    if scores == "unbounded" or not ell.smooth:
        return 0.0
    pairs = np.einsum("xi,yi->xyi", g, others)
    gradient = _risk(ell, pairs, f)[1]
    whole = float(np.sum(pairs * np.abs(ell.loss(f[:, None] - f))))
    if log_loss > 0:  # softmax: the log-loss is −log f, convex too
        gradient -= log_loss * g / f
        whole -= log_loss * float(np.sum(g * np.log(f)))
    corner = gradient.min(axis=1).sum() if scores == "softmax" else np.minimum(gradient, 0.0).sum()
    return float((np.sum(gradient * f) - corner) / whole)


def _column_minimiser(ell: Surrogate, g: Floats, h: Floats, bounded: bool) -> Floats:
    """Return ``(n,)`` scores that minimise ``Σ g(x) h(x') ℓ(f(x) − f(x'))``, within [0, 1] if ``bounded``."""
    if all(piece.coefficients is not None and len(piece.coefficients) <= 2 for piece in ell.pieces):
        return _of_lines(ell, g, h, bounded)
    # In units of its slope at 0 a loss of any α is as steep as another.
    pairs = np.outer(g, h) / _steepness(ell)
    # A rare point has a small gradient: in this unit all points count alike.
    unit = np.sqrt(g + h)

    def risk(u: Any) -> Any:
        value, gradient = _risk(ell, pairs, u / unit)
        return value, gradient / unit

    start = 0.5 if bounded else 0.0
    bounds: Any = [(0.0, s) for s in unit] if bounded else None
    options: Any = {"maxiter": 20_000, "maxfun": 50_000, "maxcor": 30, "ftol": 1e-17, "gtol": 1e-13}
    with np.errstate(over="ignore"):  # a trial step of a steep loss; the line search takes it back
        return minimize(risk, start * unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x / unit


def _steepness(ell: Surrogate) -> float:
    return float(np.abs(ell.derivative(np.zeros(1)))[0]) or 1.0


def _of_lines(ell: Surrogate, g: Floats, h: Floats, bounded: bool) -> Floats:
    """Solve the column of a convex ℓ of straight pieces, the largest of its lines, as a linear programme."""
    n = len(g)
    lines = [(*(piece.coefficients or ()), 0.0)[:2] for piece in ell.pieces]
    difference = np.repeat(np.eye(n), n, axis=0) - np.tile(np.eye(n), (n, 1))
    # intercept + slope (f(x) − f(x')) <= value
    upper = np.vstack([np.hstack([slope * difference, -np.eye(n * n)]) for _, slope in lines])
    limits = np.concatenate([np.full(n * n, -intercept) for intercept, _ in lines])
    cost = np.concatenate([np.zeros(n), np.outer(g, h).ravel()])
    scores = [(0.0, 1.0) if bounded else (None, None)] * n
    if not bounded:
        scores[0] = (0.0, 0.0)
    found = linprog(cost, upper, limits, bounds=scores + [(None, None)] * (n * n))
    if found.x is None:
        advice = "a straight line has no least risk on unbounded scores"
        raise invalid("surrogate", "must have a risk that is bounded below", ell.name, advice)
    return found.x[:n]


def _of_logits(ell: Surrogate, g: Floats, others: Floats, activation: str, log_loss: float) -> Floats:
    """Minimise both terms in the logits: the best of descents from 0 and from the optimum of the log-loss."""
    pairs = np.einsum("xi,yi->xyi", g, others)

    def risk(u: Any) -> Any:
        z = u.reshape(g.shape)
        f = activate(z.copy(), activation)
        value, gradient = _risk(ell, pairs, f)
        gradient = pull_back(f, gradient, activation)
        if log_loss > 0:
            log_q = log_softmax(z, axis=1)
            value -= log_loss * float(np.sum(g * log_q))
            gradient += log_loss * (np.exp(log_q) * g.sum(axis=1, keepdims=True) - g)
        return value, gradient.ravel()

    options: Any = {"maxiter": 1000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
    with np.errstate(over="ignore"):  # a trial step of a steep loss; the line search takes it back
        found = [
            minimize(risk, start.ravel(), jac=True, method="L-BFGS-B", options=options)
            for start in (np.zeros_like(g), np.log(g))
        ]
    best = min(found, key=lambda each: each.fun)
    return activate(np.asarray(best.x).reshape(g.shape), activation)


def _on_the_simplex(ell: Surrogate, g: Floats, others: Floats, log_loss: float) -> Floats:
    """Minimise over rows that sum to 1; the log-loss of softmax is −log f, so both terms are convex in f."""
    n, n_classes = g.shape
    unit = n_classes * _steepness(ell)
    pairs, logs = np.einsum("xi,yi->xyi", g, others) / unit, log_loss * g / unit

    def risk(u: Any) -> Any:
        f = u.reshape(n, n_classes)
        value, gradient = _risk(ell, pairs, f)
        if log_loss > 0:
            value -= float(np.sum(logs * np.log(f)))
            gradient -= logs / f
        return value, gradient.ravel()

    rows = np.kron(np.eye(n), np.ones(n_classes))
    sums: Any = {"type": "eq", "fun": lambda u: rows @ u - 1.0, "jac": lambda u: rows}
    found = minimize(
        risk,
        np.full(n * n_classes, 1.0 / n_classes),
        jac=True,
        method="SLSQP",
        bounds=[(1e-12 if log_loss > 0 else 0.0, 1.0)] * (n * n_classes),
        constraints=[sums],
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return np.asarray(found.x).reshape(n, n_classes)


def smallest_alpha(surrogate: ProvedSurrogate, ratio: float) -> float:
    r"""Return the smallest α for which [0, 1] holds the minimiser of the unbounded risk, for all distributions.

    With a smaller α, points whose likelihood ratios differ are tied at 0 or at 1. α must not exceed
    :func:`largest_alpha` either: the minimiser of the exponential and of the logistic loss shrinks with α, that of the
    squared loss, whose margin is α, grows with it.

    ===========  ==============  ==============================================
    surrogate    smallest α      largest α
    ===========  ==============  ==============================================
    exponential  ½ log(ratio)    ∞
    logistic     log(ratio)      ∞
    squared      0 (any above)   ½ / tanh(¼ log(ratio)), hence ½ for every ratio
    ===========  ==============  ==============================================

    Parameters
    ----------
    surrogate : {"exponential", "logistic", "squared"}
        No α is right for the hinge. For other surrogates none is proved: for one distribution, compare the ``spread``
        of :func:`risk_minimiser` with 1.
    ratio : float
        Largest by smallest likelihood ratio :math:`g_i / \operatorname{mean}_{j \ne i} g_j`, up to infinity.

    Examples
    --------
    >>> from mauc import theory
    >>> round(theory.smallest_alpha("exponential", 400), 3)
    2.996
    >>> theory.smallest_alpha("squared", 1e6), round(theory.largest_alpha("squared", 1e6), 4)
    (0.0, 0.501)
    """
    return _alpha_range(surrogate, ratio)[0]


def largest_alpha(surrogate: ProvedSurrogate, ratio: float) -> float:
    """Return the largest α for which [0, 1] holds the minimiser of the unbounded risk, for all distributions.

    Parameters and table are those of :func:`smallest_alpha`.

    Examples
    --------
    >>> from mauc import theory
    >>> theory.largest_alpha("squared", float("inf"))
    0.5
    """
    return _alpha_range(surrogate, ratio)[1]


def _alpha_range(surrogate: str, ratio: float) -> tuple[float, float]:
    return PROVED[check_choice("surrogate", surrogate, tuple(PROVED))](math.log(check_ratio(ratio)))


def check_ratio(ratio: Any) -> float:
    """Return a ratio of at least 1, up to infinity."""
    value = float(ratio) if not isinstance(ratio, bool | str) else math.nan
    if not value >= 1:
        raise invalid("ratio", "must be at least 1", repr(ratio), "pass the largest likelihood ratio by the smallest")
    return value
