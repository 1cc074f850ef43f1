"""Scores that minimise the risk of a surrogate where the distribution is known: a convex programme over few points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog, minimize
from scipy.special import log_softmax

from mauc._typing import Floats
from mauc._validation import check_choice, check_not_negative, invalid
from mauc.activations import activate, pull_back
from mauc.surrogates import Surrogate, get_surrogate

__all__ = ["OF_LOGITS", "SCORES", "RiskMinimiser", "column_minimiser", "likelihoods", "risk_minimiser"]

SCORES = ("unbounded", "unit", "softmax", "sigmoid", "log_odds")
OF_LOGITS = ("softmax", "sigmoid", "log_odds")
"""Scores made of logits, which a log-loss can stand beside."""
# Scores closer than this part of their column's spread are ties: the programmes are solved to about 1e-8 of it.
TIE = 1e-6
SOLVED = 1e-6
"""Duality gap, as a part of the risk, from which on a programme of both terms is solved again in the logits."""


@dataclass(frozen=True, eq=False)
class RiskMinimiser:
    """The scores that minimise a risk, and how well they rank."""

    likelihoods: Floats
    """``(n, C)`` probability of each point in each class; columns sum to 1."""
    scores: Floats
    """``(n, C)``; unbounded columns are centred, as the risk sees differences only."""
    mauc: float
    """Their multiclass AUC (ovo)."""
    bayes_mauc: float
    """The highest that any scores reach."""
    excess: float = 0.0
    """Of bounded scores: their risk is above the least one by at most this part of it (the duality gap). NaN where the
    risk is not convex in the scores: then they are the best of a few descents."""

    @property
    def gap(self) -> float:
        """What the minimiser loses: the highest multiclass AUC less its own."""
        return self.bayes_mauc - self.mauc

    @property
    def optimal(self) -> bool:
        """The minimiser of the risk ranks as well as any scores."""
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
        columns = range(1 if n_classes == 2 else n_classes)
        for i in columns:
            others = np.delete(self.likelihoods, i, axis=1).mean(axis=1)
            pairs = zip(self.likelihoods[:, i] / others, self.scores[:, i], strict=True)
            lines.append(f"  ratio {i}: score  " + ", ".join(f"{r:.3g}: {s:.4g}" for r, s in pairs))
        return "\n".join(lines)


def likelihoods(ratios: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    r"""``(n, 2)`` likelihoods of two classes, of these ratios up to a factor, with P(x) ∝ ``weights``.

    :math:`g_0 \propto w\, r / (1 + r)` and :math:`g_1 \propto w / (1 + r)`, with equal weights by default. Where the
    ratios and weights are symmetric about 1, as in the counterexamples of ``docs/theory.md``, the factor is 1.

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
    scores: str = "unbounded",
    *,
    log_loss: float = 0.0,
    alpha: float | None = None,
    **options: float,
) -> RiskMinimiser:
    r"""The scores that minimise the ovo risk of ℓ where x takes n values of known probability in each class.

    .. math:: \sum_i \sum_{j \ne i} \frac{1}{C (C - 1)} \sum_{x, x'} g_i(x)\, g_j(x')\, \ell(f_i(x) - f_i(x'))

    is convex in f where ℓ is, and so are the sets that f comes from, so a local minimum is the global one. Columns are
    apart unless they sum to 1. ``log_loss`` = λ adds :math:`\lambda\, \frac 1 C \sum_i \sum_x g_i(x)
    [-\log \operatorname{softmax}(z(x))_i]`, the log-loss of balanced classes.

    Parameters
    ----------
    surrogate : str or object
        A convex ℓ: ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``, ``"generalized_hinge"``,
        ``"logistic"``, ``"distance_weighted"``, or an object with ``loss(t)`` and ``derivative(t)``.
    alpha : float, optional
        Margin or rate α of the surrogate; None is the surrogate's own.
    **options
        Further parameters of the surrogate: ``q``, ``epsilon``.
    likelihoods : (n, C) array
        Probability of each of the n values of x in each class: positive, and normalised column by column here.
    scores : {"unbounded", "unit", "sigmoid", "softmax", "log_odds"}, default="unbounded"
        f in :math:`\mathbb R`, in [0, 1], or in [0, 1] with rows that sum to 1. A sigmoid of free logits comes as
        close to [0, 1] as one likes, softmax to the simplex: what is found is what their infimum tends to. With
        ``"log_odds"``, and with sigmoids beside a log-loss, the risk is not convex: the best of a few descents.
    log_loss : float >= 0, default=0.0
        Weight λ of the log-loss, for scores that are made of logits: softmax, sigmoid and log-odds.

    Returns
    -------
    RiskMinimiser
        For tens of points: O(n² C) an iteration.

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
    g = _checked(likelihoods)
    ell = get_surrogate(surrogate, alpha=alpha, **options)
    others = (g.sum(axis=1, keepdims=True) - g) / (g.shape[1] - 1)
    if check_not_negative("log_loss", log_loss) > 0 and scores not in OF_LOGITS:
        advice = f"use scores of {', '.join(OF_LOGITS)}"
        raise invalid("log_loss", "needs scores that are made of logits", f"it with {scores!r}", advice)
    if scores == "softmax":
        f = _on_the_simplex(ell, g, others, log_loss)
        if log_loss > 0 and not _excess(ell, f, g, others, scores, log_loss) < SOLVED:
            f = _of_logits(ell, g, others, scores, log_loss)
    elif scores == "log_odds" or log_loss > 0:
        f = _of_logits(ell, g, others, scores, log_loss)
    else:
        interval = None if scores == "unbounded" else (0.0, 1.0)
        f = np.column_stack([column_minimiser(ell, g[:, i], others[:, i], interval) for i in range(g.shape[1])])
    best = _mauc(np.log(g) - np.log(others), g, others)
    return RiskMinimiser(g, f, _mauc(f, g, others), best, _excess(ell, f, g, others, scores, log_loss))


def _excess(ell: Surrogate, f: Floats, g: Floats, others: Floats, scores: str, log_loss: float) -> float:
    """A convex risk is at least its tangent at f, and that is least at a corner of the set."""
    if scores == "log_odds" or (scores == "sigmoid" and log_loss > 0):
        return float("nan")
    if scores == "unbounded" or not ell.smooth:
        return 0.0
    pairs = np.einsum("xi,yi->xyi", g, others)
    t = f[:, None] - f[None]
    slope = pairs * ell.derivative(t)
    gradient = slope.sum(axis=1) - slope.sum(axis=0)
    whole = float(np.sum(pairs * np.abs(ell.loss(t))))
    if log_loss > 0:  # softmax: the log-loss is −log f, convex too
        gradient -= log_loss * g / f
        whole -= log_loss * float(np.sum(g * np.log(f)))
    corner = gradient.min(axis=1).sum() if scores == "softmax" else np.minimum(gradient, 0.0).sum()
    return float((np.sum(gradient * f) - corner) / whole)


def _checked(likelihoods: ArrayLike) -> Floats:
    g = np.asarray(likelihoods, dtype=np.float64)
    if g.ndim != 2 or min(g.shape) < 2 or not (np.isfinite(g).all() and (g > 0).all()):
        requirement = "must be positive, one row per point and one column per class, two of each at least"
        raise invalid(
            "likelihoods", requirement, f"shape {g.shape}", "pass the probability of each point in each class"
        )
    return g / g.sum(axis=0)


def _mauc(f: Floats, g: Floats, others: Floats) -> float:
    """Mean over the columns of P(f(x) > f(x')) + ½ P(f(x) = f(x')), x of the class, x' of the mean of the others."""
    t = f[:, None] - f[None]
    won = np.where(np.abs(t) <= TIE * np.ptp(f, axis=0), 0.5, (t > 0).astype(float))
    return float(np.einsum("xi,yi,xyi->", g, others, won) / g.shape[1])


def column_minimiser(ell: Surrogate, g: Floats, h: Floats, interval: tuple[float, float] | None) -> Floats:
    """``(n,)`` scores that minimise ``Σ g(x) h(x') ℓ(f(x) − f(x'))``, all or those in the interval."""
    if all(piece.coefficients is not None and len(piece.coefficients) <= 2 for piece in ell.pieces):
        return _of_lines(ell, g, h, interval)
    # In units of its slope a loss of any α is as steep as another.
    pairs = np.outer(g, h) / _steepness(ell)
    # A point that is rare has a small gradient: in this unit all of them count alike.
    unit = np.sqrt(g + h)

    def risk(u: Any) -> Any:
        f = u / unit
        t = f[:, None] - f
        slope = pairs * ell.derivative(t)
        return float(np.sum(pairs * ell.loss(t))), (slope.sum(axis=1) - slope.sum(axis=0)) / unit

    start = 0.0 if interval is None else 0.5 * sum(interval)
    bounds: Any = None if interval is None else [(interval[0] * s, interval[1] * s) for s in unit]
    options: Any = {"maxiter": 20_000, "maxfun": 50_000, "maxcor": 30, "ftol": 1e-17, "gtol": 1e-13}
    with np.errstate(over="ignore"):  # a trial step of a steep loss; it is taken back
        found = minimize(risk, start * unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    f = found.x / unit
    return f if interval is not None else f - f.mean()


def _steepness(ell: Surrogate) -> float:
    return float(np.abs(ell.derivative(np.zeros(1)))[0]) or 1.0


def _of_lines(ell: Surrogate, g: Floats, h: Floats, interval: tuple[float, float] | None) -> Floats:
    """The same for a convex ℓ of straight pieces, the largest of its lines: a linear programme."""
    n = len(g)
    lines = [(*(piece.coefficients or ()), 0.0)[:2] for piece in ell.pieces]
    first, second = (k.ravel() for k in np.indices((n, n)))
    rows = np.arange(n * n)
    difference = np.zeros((n * n, n))
    np.add.at(difference, (rows, first), 1.0)
    np.add.at(difference, (rows, second), -1.0)
    # intercept + slope (f(x) − f(x')) <= value
    upper = np.vstack([np.hstack([slope * difference, -np.eye(n * n)]) for _, slope in lines])
    limits = np.concatenate([np.full(n * n, -intercept) for intercept, _ in lines])
    cost = np.concatenate([np.zeros(n), np.outer(g, h).ravel()])
    scores = [interval or (None, None)] * n
    if interval is None:
        scores[0] = (0.0, 0.0)
    found = linprog(cost, upper, limits, bounds=scores + [(None, None)] * (n * n))
    if found.x is None:
        advice = "a straight line has no least risk on unbounded scores"
        raise invalid("surrogate", "must have a risk that is bounded below", ell.name, advice)
    f = found.x[:n]
    return f if interval is not None else f - f.mean()


def _of_logits(ell: Surrogate, g: Floats, others: Floats, activation: str, log_loss: float) -> Floats:
    """``(n, C)`` scores of the logits that minimise both terms: the best of descents from 0 and from the optimum of
    the log-loss.
    """
    pairs = np.einsum("xi,yi->xyi", g, others)

    def risk(u: Any) -> Any:
        z = u.reshape(g.shape)
        f = activate(z.copy(), activation)
        t = f[:, None] - f[None]
        slope = pairs * ell.derivative(t)
        gradient = pull_back(f, slope.sum(axis=1) - slope.sum(axis=0), activation)
        value = float(np.sum(pairs * ell.loss(t)))
        if log_loss > 0:
            log_q = log_softmax(z, axis=1)
            value -= log_loss * float(np.sum(g * log_q))
            gradient += log_loss * (np.exp(log_q) * g.sum(axis=1, keepdims=True) - g)
        return value, gradient.ravel()

    options: Any = {"maxiter": 1000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
    with np.errstate(over="ignore"):  # a trial step of a steep loss; it is taken back
        found = [
            minimize(risk, start.ravel(), jac=True, method="L-BFGS-B", options=options)
            for start in (np.zeros_like(g), np.log(g))
        ]
    best = min(found, key=lambda each: each.fun)
    return activate(np.asarray(best.x).reshape(g.shape), activation)


def _on_the_simplex(ell: Surrogate, g: Floats, others: Floats, log_loss: float) -> Floats:
    """``(n, C)`` scores with rows that sum to 1; the log-loss of softmax is −log f, so that the sum is convex too."""
    n, n_classes = g.shape
    unit = n_classes * _steepness(ell)
    pairs, logs = np.einsum("xi,yi->xyi", g, others) / unit, log_loss * g / unit

    def risk(u: Any) -> Any:
        f = u.reshape(n, n_classes)
        t = f[:, None] - f[None]
        slope = pairs * ell.derivative(t)
        value, gradient = float(np.sum(pairs * ell.loss(t))), slope.sum(axis=1) - slope.sum(axis=0)
        if log_loss > 0:
            value -= float(np.sum(logs * np.log(f)))
            gradient -= logs / f
        return value, gradient.ravel()

    rows = np.kron(np.eye(n), np.ones(n_classes))
    sums: Any = {"type": "eq", "fun": lambda u: rows @ u - 1.0, "jac": lambda u: rows}
    start = np.full(n * n_classes, 1.0 / n_classes)
    found = minimize(
        risk,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(1e-12 if log_loss > 0 else 0.0, 1.0)] * len(start),
        constraints=[sums],
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return np.asarray(found.x).reshape(n, n_classes)
