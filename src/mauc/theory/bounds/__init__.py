"""Generalisation bounds: the risk on unseen data, from that on the training data, with probability 1 − δ.

From plain numbers: :func:`abstract` (Theorem 4), :func:`linear` (Theorem 7), :func:`dnn` (Theorem 8), :func:`cnn`
(Theorem 9). From a fitted model and its data: :func:`for_estimator`. The complexity of any class of models, from its
covering numbers: :func:`chaining` (Theorem 5).
"""

from mauc.theory.bounds.estimator import for_estimator
from mauc.theory.bounds.networks import NetworkNorms, conv_spectral_norm, network_norms
from mauc.theory.bounds.theorems import (
    Bound,
    SurrogateConstants,
    abstract,
    chaining,
    cnn,
    dnn,
    linear,
    surrogate_constants,
)

__all__ = [
    "Bound",
    "NetworkNorms",
    "SurrogateConstants",
    "abstract",
    "chaining",
    "cnn",
    "conv_spectral_norm",
    "dnn",
    "for_estimator",
    "linear",
    "network_norms",
    "surrogate_constants",
]
