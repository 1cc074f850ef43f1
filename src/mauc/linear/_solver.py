"""The minimiser of the linear models: SciPy's L-BFGS."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from mauc._typing import Floats
from mauc._validation import invalid

FLAT = 64 * float(np.finfo(np.float64).eps)
"""Smallest relative decrease of the objective that counts."""


@dataclass(frozen=True)
class Solution:
    """The point at which the minimiser stopped, and why."""

    theta: Floats
    objective: float
    curve: Floats
    """``(n_iter + 1,)`` objective at the start and after each iteration."""
    n_iter: int
    converged: bool
    message: str


def minimize(
    objective: Callable[[Floats], tuple[float, Floats]],
    theta: Floats,
    *,
    max_iter: int,
    tol: float,
    steepest: float = 1e20,
) -> Solution:
    """Minimise from ``theta``; converged when the largest entry of the gradient is at most ``tol``.

    It also stops when the objective no longer falls within floating-point accuracy. A gradient above ``steepest`` at
    the start is an error: the first step has the length 1, and the line search does not find one of 1e-30.
    """
    curve: list[float] = []

    def evaluate(theta: Floats) -> tuple[float, Floats]:
        value, gradient = objective(theta)
        finite = bool(np.isfinite(value) and np.isfinite(gradient).all())
        if not curve:
            slope = float(np.abs(gradient).max(initial=0.0))
            if not finite or slope > steepest:
                advice = "divide the features by a common number, such as the largest of them"
                requirement = f"must lead to a finite objective and a gradient of at most {steepest:g} at the start"
                raise invalid("X", requirement, f"the value {value:.3g} and the gradient {slope:.3g}", advice)
            curve.append(value)
        elif not finite:
            # SciPy's line search cannot continue from here; a value above the last one makes it take a shorter step.
            return curve[-1] + abs(curve[-1]) + 1.0, np.zeros_like(gradient)
        return value, gradient

    def note(intermediate_result: Any) -> None:
        curve.append(float(intermediate_result.fun))

    options: Any = {"maxiter": max_iter, "maxfun": 100 * max_iter, "gtol": tol, "ftol": FLAT, "maxls": 50}
    with np.errstate(over="ignore", invalid="ignore"):  # the line search may try points where the objective overflows
        found: Any = scipy_minimize(evaluate, theta, jac=True, method="L-BFGS-B", callback=note, options=options)
    if np.abs(found.jac).max(initial=0.0) <= tol:
        converged, message = True, "gradient within tol"
    elif found.nit >= max_iter:
        converged, message = False, "max_iter reached"
    else:
        converged, message = True, "objective no longer falls"
    return Solution(found.x, float(found.fun), np.array(curve), int(found.nit), converged, message)
