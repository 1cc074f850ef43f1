"""Checks of arguments that several functions of the theory take."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_not_negative, check_numbers, check_real, invalid

# Priors and posteriors come from divisions, some of them in float32.
ROUNDING = 1e-5


def check_priors(priors: ArrayLike) -> Floats:
    """Return ``(C,)`` positive numbers that sum to 1, for two classes or more."""
    p = _numbers(priors, "priors", "share", "np.bincount(y) / len(y)")
    if not (p > 0).all():
        k = int(np.flatnonzero(~(p > 0))[0])
        raise invalid("priors", "must be positive", f"{p[k]:g} for class {k}", "drop the classes without samples")
    if not abs(p.sum() - 1.0) <= ROUNDING:
        raise invalid("priors", "must sum to 1", f"the sum {p.sum():g}", "divide by the sum")
    return p / p.sum()


def check_class_counts(counts: ArrayLike) -> Floats:
    """Return ``(C,)`` class sizes of at least 1, for two classes or more."""
    n = _numbers(counts, "class_counts", "number of samples", "np.bincount(y)")
    if n.min() < 1:
        k = int(n.argmin())
        came = f"{n[k]:g} for class {k}"
        raise invalid("class_counts", "must be at least 1 in every class", came, "drop the classes without samples")
    return n


def _numbers(values: ArrayLike, parameter: str, what: str, example: str) -> Floats:
    requirement = "must be two or more finite numbers, one for each class"
    advice = f"pass the {what} of each class, e.g. {example}"
    array = check_numbers(values, parameter, requirement, advice)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise invalid(parameter, requirement, repr(values), advice)
    return array


def check_p(p: Any) -> float:
    """Return the exponent of a norm, above 1 and at most 2."""
    return check_real("p", p, low=1, high=2, closed="right", advice="use p=2, or p close to 1 instead of the 1-norm")


def check_product(**factors: Any) -> float:
    """Return the product of numbers that are at least 0."""
    return float(np.prod([check_not_negative(name, value) for name, value in factors.items()]))
