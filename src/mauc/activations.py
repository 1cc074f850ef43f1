"""What makes scores of logits: softmax, sigmoid, or nothing; and the chain rule back through it."""

from __future__ import annotations

import numpy as np
from scipy import special

from mauc._typing import Floats

__all__ = ["ACTIVATIONS", "activate", "pull_back"]

ACTIVATIONS = ("softmax", "sigmoid", "identity")


def activate(logits: Floats, activation: str) -> Floats:
    """Scores of logits: ``softmax`` over the row, ``sigmoid`` of each, or themselves."""
    if activation == "softmax":
        scores = logits - logits.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return scores
    if activation == "sigmoid":
        return special.expit(logits)
    return logits


def pull_back(scores: Floats, gradient: Floats, activation: str) -> Floats:
    """Gradient with respect to the logits, in place of the one with respect to the scores.

    Softmax, row by row: ``dZ = F ⊙ (G − Σ_i F_i G_i)``; sigmoid: ``dZ = F (1 − F) G``.
    """
    if activation == "softmax":
        gradient -= np.einsum("nc,nc->n", scores, gradient)[:, None]
        gradient *= scores
    elif activation == "sigmoid":
        gradient *= scores
        gradient *= 1.0 - scores
    return gradient
