"""A trained perceptron as plain arrays: a model file holds no torch objects, and predicting needs no torch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

__all__ = ["ArrayMLP", "as_arrays"]

Layer = tuple[NDArray[np.float32], NDArray[np.float32]]


class ArrayMLP:
    """Linear layers with rectifiers between them; softmax scores out.

    Parameters
    ----------
    classes : (C,) classes
    layers : sequence of (weights, bias)
        Of shapes ``(out, in)`` and ``(out,)``.
    """

    def __init__(self, classes: NDArray[Any], layers: Sequence[Layer]) -> None:
        self.classes_ = classes
        self.layers = list(layers)

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """``(N, C)`` scores."""
        hidden = np.asarray(X, dtype=np.float32)
        *inner, (weights, bias) = self.layers
        for w, b in inner:
            hidden = np.maximum(hidden @ w.T + b, 0.0)
        return np.asarray(softmax(hidden @ weights.T + bias, axis=1), dtype=np.float32)

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """The class with the highest score."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def as_arrays(classifier: Any) -> ArrayMLP:
    """A fitted :class:`mauc.nn.MAUCMLPClassifier`; its batch normalisations become part of the layers before them."""
    from torch import nn

    layers: list[Layer] = []
    for module in classifier.model_:
        if isinstance(module, nn.Linear):
            layers.append((_array(module.weight), _array(module.bias)))
        elif isinstance(module, nn.BatchNorm1d):
            weights, bias = layers.pop()
            scale = _array(module.weight) / np.sqrt(_array(module.running_var) + np.float32(module.eps))
            layers.append(
                (weights * scale[:, None], (bias - _array(module.running_mean)) * scale + _array(module.bias))
            )
    return ArrayMLP(classifier.classes_, layers)


def _array(tensor: Any) -> NDArray[np.float32]:
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)
