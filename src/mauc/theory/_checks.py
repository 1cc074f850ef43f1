"""Checks of arguments that several functions of the theory take."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_real, invalid

__all__ = ["check_class_counts", "check_delta", "check_p", "check_priors"]

# Priors and posteriors come from divisions, some of them in float32.
ROUNDING = 1e-5


def check_priors(priors: ArrayLike, parameter: str = "priors") -> Floats:
    """``(C,)`` positive numbers that sum to 1, for two classes or more."""
    try:
        p = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError):
        p = np.empty(0)
    if p.ndim != 1 or len(p) < 2:
        advice = "pass the share of each class, e.g. np.bincount(y) / len(y)"
        raise invalid(parameter, "must be two or more numbers, one for each class", repr(priors), advice)
    if not (p > 0).all():
        k = int(np.flatnonzero(~(p > 0))[0])
        advice = "drop the classes without samples"
        raise invalid(parameter, "must be positive", f"{p[k]:g} for class {k}", advice)
    if not abs(p.sum() - 1.0) <= ROUNDING:
        raise invalid(parameter, "must sum to 1", f"the sum {p.sum():g}", "divide by the sum")
    return p / p.sum()


def check_class_counts(counts: ArrayLike, parameter: str = "class_counts") -> Floats:
    """``(C,)`` finite class sizes of at least 1, for two classes or more."""
    advice = "pass the number of samples of each class, e.g. np.bincount(y)"
    try:
        n = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        n = np.empty(0)
    if n.ndim != 1 or len(n) < 2 or not np.isfinite(n).all():
        raise invalid(parameter, "must be two or more finite numbers, one for each class", repr(counts), advice)
    if n.min() < 1:
        k = int(n.argmin())
        came = f"{n[k]:g} for class {k}"
        raise invalid(parameter, "must be at least 1 in every class", came, "drop the classes without samples")
    return n


def check_delta(delta: Any) -> float:
    """The probability with which a bound may fail."""
    return check_real("delta", delta, low=0, high=1)


def check_p(p: Any) -> float:
    """Exponent of a norm, above 1 and at most 2."""
    return check_real("p", p, low=1, high=2, closed="right", advice="use p=2, or p close to 1 in place of the 1-norm")
