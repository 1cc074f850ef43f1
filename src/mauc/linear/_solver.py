"""The minimiser of the linear models: SciPy's L-BFGS."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from mauc._typing import Floats

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
    objective: Callable[[Floats], tuple[float, Floats]], theta: Floats, *, max_iter: int, tol: float
) -> Solution:
    """Minimise from ``theta``; converged when the largest entry of the gradient is at most ``tol``.

    It also stops when the objective no longer falls within floating-point accuracy.
    """
    curve: list[float] = []
    starts_finite = True

    def evaluate(theta: Floats) -> tuple[float, Floats]:
        nonlocal starts_finite
        value, gradient = objective(theta)
        finite = bool(np.isfinite(value) and np.isfinite(gradient).all())
        if not curve:
            curve.append(value)
            starts_finite = finite
        elif not finite:
            # SciPy's line search cannot continue from here; a value above the last one makes it take a shorter step.
            return curve[-1] + abs(curve[-1]) + 1.0, np.zeros_like(gradient)
        return value, gradient

    def note(intermediate_result: Any) -> None:
        curve.append(float(intermediate_result.fun))

    options: Any = {"maxiter": max_iter, "maxfun": 100 * max_iter, "gtol": tol, "ftol": FLAT, "maxls": 50}
    with np.errstate(over="ignore", invalid="ignore"):  # the line search may try points where the objective overflows
        found: Any = scipy_minimize(evaluate, theta, jac=True, method="L-BFGS-B", callback=note, options=options)
    if not starts_finite:
        converged, message = False, "objective or its gradient is not finite at the start"
    elif np.abs(found.jac).max(initial=0.0) <= tol:
        converged, message = True, "gradient within tol"
    elif found.nit >= max_iter:
        converged, message = False, "max_iter reached"
    else:
        converged, message = True, "objective no longer falls"
    return Solution(found.x, float(found.fun), np.array(curve), int(found.nit), converged, message)
