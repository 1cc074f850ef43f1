"""Activations, which make scores of logits, and the chain rule back through them."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy import special

from mauc._typing import Floats

Activation = Literal["softmax", "sigmoid", "identity", "log_odds"]
ACTIVATIONS = get_args(Activation)
"""The choices of every loss and linear model."""
BOUNDED = ("softmax", "sigmoid")
"""Activations whose scores lie in [0, 1]."""
TINY = 1e-290
"""A sum of the other exponentials below this has lost digits, or is 0."""
LARGEST_LOG_ODD = 700.0
"""Above this the odds exceed the largest float."""


def activate(logits: Floats, activation: str) -> Floats:
    r"""Return scores of logits: ``softmax`` over the row, ``sigmoid`` of each, ``log_odds``, or the logits.

    The log-odds of class i are :math:`u_i = z_i - \log \sum_{j \ne i} e^{z_j} = \log \frac{p_i}{1 - p_i}` with
    p = softmax(z). They rank each column as softmax does, and do not round to ties where p is near 0 or 1.

    >>> import numpy as np
    >>> activate(np.log([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1]]), "log_odds").round(4)
    array([[ 0.    , -1.0986, -1.0986],
           [ 1.3863, -2.1972, -2.1972]])
    """
    if activation == "softmax":
        scores = logits - logits.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return scores
    if activation == "sigmoid":
        return special.expit(logits)
    if activation == "log_odds":
        return _log_odds(logits)
    return logits


def _log_odds(logits: Floats) -> Floats:
    """Compute ``z_i − log Σ_{j≠i} e^{z_j}``, for the largest logit without a difference, which would cancel."""
    rows, top = np.arange(len(logits)), logits.argmax(axis=1)
    scores = logits - logits[rows, top][:, None]
    power = np.exp(scores)
    power[rows, top] = 0.0
    others = power.sum(axis=1)
    np.subtract((1.0 + others)[:, None], power, out=power)
    power[rows, top] = others
    with np.errstate(divide="ignore"):
        scores -= np.log(power, out=power)
    lost = np.flatnonzero(others < TINY)
    if len(lost):
        rest = logits[lost]
        rest[np.arange(len(lost)), top[lost]] = -np.inf
        scores[lost, top[lost]] = logits[lost, top[lost]] - special.logsumexp(rest, axis=1)
    return scores


def pull_back(scores: Floats, gradient: Floats, activation: str) -> Floats:
    r"""Turn the gradient in the scores into the gradient in the logits, in place.

    Softmax, row by row: ``dZ = F ⊙ (G − Σ_i F_i G_i)``; sigmoid: ``dZ = F (1 − F) G``; log-odds, with
    ``p = sigmoid(u)``: ``dZ_k = G_k − Σ_{i≠k} G_i p_k / (1 − p_i)``.
    """
    if activation == "softmax":
        gradient -= np.einsum("nc,nc->n", scores, gradient)[:, None]
        gradient *= scores
    elif activation == "sigmoid":
        gradient *= scores
        gradient *= 1.0 - scores
    elif activation == "log_odds":
        _through_log_odds(scores, gradient)
    return gradient


def _through_log_odds(scores: Floats, gradient: Floats) -> None:
    """Handle the largest score of a row separately: only there ``1 − p`` may be 0. All others are at most 0."""
    rows, top = np.arange(len(scores)), scores.argmax(axis=1)
    highest, of_top = scores[rows, top], gradient[rows, top]
    far = np.flatnonzero(highest > LARGEST_LOG_ODD)
    # Where e^u overflows, the other p equal e^u, and p_k / (1 − p) is the exponential of a sum.
    beyond = gradient[far] - np.exp(np.minimum(scores[far] + highest[far, None], 0.0)) * of_top[far, None]
    p = np.exp(np.minimum(scores, 0.0))
    rest = 1.0 + p
    p /= rest
    rest *= gradient  # G / (1 − p)
    rest[rows, top] = 0.0
    total = rest.sum(axis=1)
    np.subtract((total + of_top * (1.0 + np.exp(np.minimum(highest, LARGEST_LOG_ODD))))[:, None], rest, out=rest)
    rest *= p
    gradient -= rest
    gradient[far] = beyond
    gradient[rows, top] = of_top - special.expit(highest) * total
