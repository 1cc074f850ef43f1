"""Small problems of every hostile kind: ties, outliers, singletons, absent classes, weights over many decades."""

from typing import Any, NamedTuple

import numpy as np


class Drawn(NamedTuple):
    y: np.ndarray
    """``(N,)`` class codes."""
    scores: np.ndarray
    weight: np.ndarray | None
    pairs: Any
    kind: str
    """Kind of the scores, a key of :data:`SCORES`."""


def classes(rng: np.random.Generator, most_samples: int, most_classes: int) -> tuple[np.ndarray, int]:
    """Draw codes of at least two classes; some classes may be absent, others have one sample."""
    n_classes = int(rng.integers(2, most_classes + 1))
    present = rng.permutation(n_classes)[: int(rng.integers(2, n_classes + 1))]
    share = rng.dirichlet(np.full(len(present), rng.choice([0.2, 1.0, 10.0])))
    n_samples = int(rng.integers(len(present), most_samples + 1))
    y = rng.choice(present, n_samples, p=share)
    y[: len(present)] = present
    return rng.permutation(y), n_classes


def _ties(rng, shape, y):
    return rng.integers(-4, 5, shape) / 8.0


def _normal(rng, shape, y):
    return rng.normal(size=shape) + rng.choice([0.0, 1.0, 4.0]) * np.eye(shape[1])[y]


def _softmax(rng, shape, y):
    logits = rng.choice([0.1, 1.0, 8.0]) * _normal(rng, shape, y)
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def _float32(rng, shape, y):
    return _softmax(rng, shape, y).astype(np.float32)


def _outlier(rng, shape, y):
    scores = rng.random(shape)
    where = int(rng.integers(shape[0])), int(rng.integers(shape[1]))
    scores[where] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(1.0, 12.0)
    return scores


def _integers(rng, shape, y):
    return rng.integers(-3, 4, shape)


def _magnitudes(rng, shape, y):
    return rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-300.0, 300.0, shape)


def _neighbours(rng, shape, y):
    return 1.0 + rng.integers(0, 4, shape) * np.finfo(np.float64).eps


def _denormal(rng, shape, y):
    return rng.integers(-3, 4, shape) * 5e-324


def _largest(rng, shape, y):
    return rng.choice([-1.7e308, -1.0, 0.0, 1.0, 1.7e308], shape)


SCORES = {
    f.__name__[1:]: f
    for f in (
        _ties,
        _normal,
        _softmax,
        _float32,
        _outlier,
        _integers,
        _magnitudes,
        _neighbours,
        _denormal,
        _largest,
    )
}


def weights(rng: np.random.Generator, y: np.ndarray) -> np.ndarray | None:
    """Draw None, or weights with a positive sum in every class; some are 0, some span 270 decades."""
    kind = rng.choice(["none", "none", "random", "zeros", "decades"])
    if kind == "none":
        return None
    if kind == "random":
        return rng.random(len(y)) + 1e-3
    if kind == "decades":
        return 10.0 ** rng.uniform(-135.0, 135.0, len(y))
    weight = rng.integers(0, 3, len(y)).astype(float)
    weight[np.unique(y, return_index=True)[1]] = 1.0
    return weight


def pair_weights(rng: np.random.Generator, n_classes: int) -> Any:
    """Draw ``"ovo"``, ``"ova"`` or a matrix that is neither symmetric nor normalised."""
    kind = rng.choice(["ovo", "ovo", "ova", "matrix", "huge"])
    if kind in ("ovo", "ova"):
        return str(kind)
    matrix = rng.integers(0, 4, (n_classes, n_classes)) + 1.0
    return matrix * 4e307 if kind == "huge" else matrix


def problem(rng: np.random.Generator, kinds: tuple[str, ...], most_samples: int = 24, most_classes: int = 5) -> Drawn:
    y, n_classes = classes(rng, most_samples, most_classes)
    kind = str(rng.choice(kinds))
    scores = SCORES[kind](rng, (len(y), n_classes), y)
    return Drawn(y, scores, weights(rng, y), pair_weights(rng, n_classes), kind)
