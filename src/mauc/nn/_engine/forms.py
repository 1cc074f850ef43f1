"""What the losses of the CPU are computed from: the form of the surrogate, and the weights of the classes."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats
from mauc.kernels.tiles import sums_of_others
from mauc.surrogates import ClosedForm, Surrogate

__all__ = ["FAINT", "Array", "Form", "Line", "Weights", "form_of", "log1p_risk", "ones", "weights_of"]

Array = NDArray[np.floating]
FAINT = 1e-30
"""Below this a score, or ``ΣF r``, has lost digits in single precision, and so would its logarithm."""


class Line(NamedTuple):
    """``ℓ(t) = at_zero + slope · t`` on ``(−reach, reach)``."""

    at_zero: float
    slope: float
    reach: float

    @property
    def all_scores(self) -> bool:
        """Whether no softmax leaves the line; differences of ±1 come from saturated ones, which pass no gradient on."""
        return self.reach >= 1.0


Form = ClosedForm | Line


def form_of(surrogate: Surrogate) -> Form | None:
    """The closed form, or else the straight piece around 0, if ℓ has one."""
    try:
        return _form_of(surrogate)
    except TypeError:  # cannot be hashed
        return _form_of.__wrapped__(surrogate)


@lru_cache(maxsize=256)
def _form_of(surrogate: Surrogate) -> Form | None:
    if surrogate.closed_form is not None:
        return surrogate.closed_form
    for piece in surrogate.pieces:
        reach = min(-piece.low, piece.high)
        if reach > 0.0 and piece.coefficients is not None and len(piece.coefficients) == 2:
            return Line(*piece.coefficients, reach)
    return None


class Weights(NamedTuple):
    """As in :class:`mauc.nn._engine.batch.Batch`, but ``(C,)``, where all samples of a class weigh the same.

    ``unit`` and ``row`` mean nothing for a class that is absent; ``total`` is that of every other.
    """

    unit: Floats
    row: Floats
    column: Floats
    total: float


def weights_of(size: Floats, pairs: str, class_counts: Floats | None) -> Weights:
    """From the classes' sizes in the batch."""
    count, unit = int(np.count_nonzero(size)), 1.0 / np.maximum(size, 1.0)
    total = 1.0 / count if count > 1 else 0.0
    if pairs == "ovo":
        # The smaller of a class's size and a number below 1: that number, or 0 for a class that is absent.
        return Weights(unit, unit, np.minimum(size, total / max(count - 1, 1)), total)
    here = np.sign(size)
    mass = size if class_counts is None else here * class_counts
    others = sums_of_others(mass)
    column = np.divide(total * here, others, out=np.zeros(len(mass)), where=others > 0)
    return Weights(unit, unit * mass, column, total)


def log1p_risk(risks: Floats, weight: float) -> tuple[float, Floats]:
    """As :func:`mauc.nn._engine.moments.log1p_risk`, where all classes weigh the same; 0 for one that is absent."""
    means = risks / (weight or 1.0)
    return weight * float(np.log1p(means).sum()), 1.0 / (1.0 + means)


@lru_cache(maxsize=64)
def ones(n: int, dtype: str = "d") -> Array:
    """``(n,)`` ones, to be read."""
    return np.ones(n, dtype)
