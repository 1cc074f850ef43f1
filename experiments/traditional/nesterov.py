"""The solver of the paper: a monotone accelerated gradient."""

from collections.abc import Callable

import numpy as np

from mauc._typing import Floats
from mauc.linear._solver import FLAT, Solution

__all__ = ["nesterov"]

Objective = Callable[[Floats], tuple[float, Floats]]


def nesterov(objective: Objective, theta: Floats, *, max_iter: int, tol: float) -> Solution:
    """Run Li and Lin's monotone accelerated gradient for non-convex functions (NIPS 2015, algorithm 1, line search).

    From the current point ``x`` one plain step, from the extrapolated point ``y`` one accelerated step; the better of
    the two is next. Both steps start from the Barzilai-Borwein length and are halved until the function falls enough.
    """
    x, x_previous, z = theta, theta, theta
    value, slope = objective(x)
    value_previous = value
    curve = [value]
    t_previous, t = 0.0, 1.0
    step_x = step_y = 1.0 / max(float(np.abs(slope).max()), 1e-12)
    iteration = 0
    message = "gradient within tol"
    while np.abs(slope).max() > tol:
        if iteration == max_iter:
            message = "max_iter reached"
            break
        iteration += 1
        y = x + (t_previous / t) * (z - x) + ((t_previous - 1.0) / t) * (x - x_previous)
        value_y, slope_y = objective(y)
        z, value_z, slope_z, step_y = _descend(objective, y, value_y, slope_y, step_y)
        v, value_v, slope_v, step_x = _descend(objective, x, value, slope, step_x)
        step_y = _barzilai_borwein(z - y, slope_z - slope_y, step_y)
        step_x = _barzilai_borwein(v - x, slope_v - slope, step_x)
        t_previous, t = t, (np.sqrt(4.0 * t * t + 1.0) + 1.0) / 2.0
        x_previous, value_previous = x, value
        x, value, slope = (z, value_z, slope_z) if value_z <= value_v else (v, value_v, slope_v)
        curve.append(value)
        if value_previous - value <= FLAT * max(abs(value), 1.0):
            message = "objective no longer falls"
            break
    return Solution(x, value, np.array(curve), iteration, message != "max_iter reached", message)


SUFFICIENT = 1e-4
"""Share of the fall that the gradient promises which a step must reach (Armijo)."""


def _descend(
    objective: Objective, x: Floats, value: float, slope: Floats, step: float
) -> tuple[Floats, float, Floats, float]:
    """Take the gradient step from ``x``, halved until the objective falls enough; return ``x`` if none does."""
    norm = float(slope @ slope)
    for _ in range(60):
        candidate = x - step * slope
        new_value, new_slope = objective(candidate)
        if new_value <= value - SUFFICIENT * step * norm:
            return candidate, new_value, new_slope, step
        step *= 0.5
    return x, value, slope, step


def _barzilai_borwein(move: Floats, change: Floats, fallback: float) -> float:
    """Return ``⟨s, s⟩ / ⟨s, r⟩`` for a move ``s`` that changed the gradient by ``r``, where that is positive."""
    curvature = float(move @ change)
    return float(move @ move) / curvature if curvature > 1e-300 else 2.0 * fallback
