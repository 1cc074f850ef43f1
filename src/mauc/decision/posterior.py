"""Turn ranking scores into a posterior: one scale for all columns, one offset for each."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from mauc._typing import Floats, Ints


def lowest_probability(scores: Floats, least: float = 1e-9) -> Floats:
    """Return the ``(C,)`` replacement of a probability of 0: half of the smallest positive one in its column."""
    positive = np.where(scores > 0, scores, np.inf).min(axis=0)
    return np.where(np.isfinite(positive), np.maximum(least, 0.5 * positive), least)


def log_scores(scores: Floats, lowest: Floats | None) -> Floats:
    """Return logs of probabilities; decision values, which have no lowest, are unchanged."""
    return scores if lowest is None else np.log(np.maximum(scores, lowest))


def posterior_of(logs: Floats, scale: float, offsets: Floats, deepest: float = 60.0) -> Floats:
    """Return ``(N, C)`` numbers in proportion to ``exp(scale · logs + offsets)``; the largest of each row is 1.

    None is below ``exp(-deepest)``, so that shifts can raise it again without overflow.
    """
    logits = scale * logs + offsets
    return np.exp(np.maximum(logits - logits.max(axis=1, keepdims=True), -deepest))


def fit_posterior(
    logs: Floats, codes: Ints, weight: Floats, scale: float, centres: list[Floats]
) -> tuple[float, Floats]:
    r"""Fit the scale a and offsets b of :math:`q_i \propto e^{a u_i + b_i}` by maximum likelihood.

    .. math:: \min_{a, b} \; -\sum_n w_n \log q_{n y_n} + \tfrac12 (a / a_0 - 1)^2 + \tfrac12 \lVert b - b_0 \rVert^2

    The penalties weigh as much as one row. They bound the scale of scores without mistakes, and the offset of a class
    of few rows. Of the centres :math:`b_0` the one that fits better is used. The problem is convex and smooth.

    Parameters
    ----------
    logs : (N, C) array
    codes : (N,) array
    weight : (N,) array
        Sample weights of mean 1.
    scale : float
        The expected scale :math:`a_0`.
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

    bounds = [(1e-3, None), *[(None, None)] * logs.shape[1]]
    found = [
        minimize(loss, np.append(1.0, centre), (centre,), method="L-BFGS-B", jac=True, bounds=bounds)
        for centre in centres
    ]
    best = min(found, key=lambda result: float(result.fun))
    return float(best.x[0] * scale), best.x[1:]
