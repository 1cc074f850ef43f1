"""From scores that rank to a posterior: one scale for all columns, one offset for each."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from mauc._typing import Floats, Ints

__all__ = ["fit_posterior", "log_scores", "lowest_probability", "posterior_of"]

LEAST = 1e-9
DEEPEST = 60.0
"""Classes this much less likely, in logs, are all as unlikely: weights must bring them back without overflow."""
LEAST_SCALE = 1e-3


def lowest_probability(scores: Floats) -> Floats:
    """``(C,)`` what a probability of 0 is taken for: half of the least above 0 in its column."""
    positive = np.where(scores > 0, scores, np.inf).min(axis=0)
    return np.where(np.isfinite(positive), np.maximum(LEAST, 0.5 * positive), LEAST)


def log_scores(scores: Floats, lowest: Floats | None) -> Floats:
    """Logs of probabilities; scores of other kinds, which have no lowest, as they are."""
    return scores if lowest is None else np.log(np.maximum(scores, lowest))


def posterior_of(logs: Floats, scale: float, offsets: Floats) -> Floats:
    """``(N, C)`` numbers in proportion to ``exp(scale · logs + offsets)``, the largest of each row 1."""
    logits = scale * logs + offsets
    return np.exp(np.maximum(logits - logits.max(axis=1, keepdims=True), -DEEPEST))


def fit_posterior(
    logs: Floats, codes: Ints, weight: Floats, scale: float, centres: list[Floats]
) -> tuple[float, Floats]:
    r"""Scale a and offsets b of :math:`q_i \propto e^{a u_i + b_i}` by maximum likelihood.

    .. math:: \min_{a, b} \; -\sum_n w_n \log q_{n y_n} + \tfrac12 (a / a_0 - 1)^2 + \tfrac12 \lVert b - b_0 \rVert^2

    The penalties weigh as much as one row: they keep the scale of scores that make no mistake, and the offset of a
    class of few rows, in bounds. Of the centres :math:`b_0` the one that fits better is taken. Convex, smooth, and of
    C + 1 parameters.

    Parameters
    ----------
    logs : (N, C) array
    codes : (N,) array
    weight : (N,) array
        Its mean is 1.
    scale : float
        The scale :math:`a_0` that is expected.
    centres : list of (C,) arrays
    """
    rows = np.arange(len(codes))
    standard = logs * scale

    def loss(x: Floats, centre: Floats) -> tuple[float, Floats]:
        a, b = x[0], x[1:]
        logs_q = log_softmax(a * standard + b, axis=1)
        residual = np.exp(logs_q)
        residual[rows, codes] -= 1.0
        residual *= weight[:, None]
        value = -float(weight @ logs_q[rows, codes]) + 0.5 * (a - 1.0) ** 2 + 0.5 * float(((b - centre) ** 2).sum())
        slope = np.append((residual * standard).sum() + a - 1.0, residual.sum(axis=0) + b - centre)
        return value, slope

    bounds = [(LEAST_SCALE, None), *[(None, None)] * logs.shape[1]]
    found = [
        minimize(loss, np.append(1.0, centre), (centre,), method="L-BFGS-B", jac=True, bounds=bounds)
        for centre in centres
    ]
    best = min(found, key=lambda result: float(result.fun))
    return float(best.x[0] * scale), best.x[1:]
