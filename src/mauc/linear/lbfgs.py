"""L-BFGS for smooth functions that need not be convex, sparing with evaluations.

SciPy's search asks for the strong Wolfe conditions. Where a risk of bounded scores bends downwards along the direction
they send it far out and back: 9 or 10 evaluations in single iterations on KDD Cup 99, 40 in 20 iterations with the
hinge. Here a step counts when the function falls enough; it is lengthened at most :data:`LONGER` times while the slope
has hardly changed, and the lowest point met is taken, with the gradient that was computed there.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mauc._typing import Floats

__all__ = ["FLAT", "lbfgs"]

Objective = Callable[[Floats], tuple[float, Floats]]

MEMORY = 10
SUFFICIENT = 1e-4
"""Share of the fall that the slope promises which a step must reach (Armijo)."""
STEEP = 0.9
"""Share of the slope at the start above which the slope has hardly changed (Wolfe)."""
LONGER = 2
SHORTER = 50
ROUNDING = float(np.finfo(np.float64).eps)
FLAT = 64 * ROUNDING
"""A fall by less than this, relative to the value or 1, is none."""


class Point(NamedTuple):
    """Where the function was evaluated."""

    theta: Floats
    value: float
    gradient: Floats


def lbfgs(objective: Objective, theta: Floats, max_iter: int, tol: float) -> tuple[Point, list[float], bool, str]:
    """Minimise from ``theta``: the last point, the values after each iteration, whether it converged, and why it ended.

    One evaluation per iteration where the unit step does; ``O(MEMORY)`` vectors of memory.
    """
    here = Point(theta, *objective(theta))
    values = [here.value]
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    reach = 1.0
    if not _is_finite(here):
        return here, values, False, "objective or its gradient is not finite at the start"
    while np.abs(here.gradient).max(initial=0.0) > tol:
        if len(values) > max_iter:
            return here, values, False, "max_iter reached"
        direction, first = -_times_inverse_hessian(pairs, here.gradient), reach
        if not pairs or not direction @ here.gradient < 0.0:
            pairs.clear()
            # A step of length 1. First by the largest entry: squares of very large or small ones are no floats.
            direction = here.gradient / -np.abs(here.gradient).max()
            direction, first = direction / np.linalg.norm(direction), 1.0
        found, step = _search(objective, here, direction, first)
        if found is None:
            if pairs:
                pairs.clear()  # the curvature kept is of no use here: once more, down the gradient
                continue
            return here, values, True, "objective no longer falls"
        move, change = found.theta - here.theta, found.gradient - here.gradient
        with np.errstate(over="ignore"):
            curvature = float(move @ change)
            bends_up = curvature > 1e-10 * float(np.linalg.norm(move) * np.linalg.norm(change))
        if bends_up:
            pairs.append((move, change, curvature))
        # Where the function bends down there is nothing to learn of its curvature but that steps may be as long again.
        reach = 1.0 if bends_up else step
        here, before = found, here
        values.append(here.value)
        if before.value - here.value <= FLAT * max(abs(before.value), abs(here.value), 1.0):
            return here, values, True, "objective no longer falls"
    return here, values, True, "gradient within tol"


def _is_finite(point: Point) -> bool:
    return bool(np.isfinite(point.value) and np.isfinite(point.gradient).all())


def _times_inverse_hessian(pairs: deque[tuple[Floats, Floats, float]], gradient: Floats) -> Floats:
    """The two-loop recursion of Nocedal."""
    if not pairs:
        return gradient
    q, factors = gradient.copy(), []
    for move, change, curvature in reversed(pairs):
        factor = float(move @ q) / curvature
        q -= factor * change
        factors.append(factor)
    _, change, curvature = pairs[-1]
    q *= curvature / float(change @ change)
    for (move, change, curvature), factor in zip(pairs, reversed(factors), strict=True):
        q += (factor - float(change @ q) / curvature) * move
    return q


def _search(objective: Objective, here: Point, direction: Floats, step: float) -> tuple[Point | None, float]:
    """A point along ``direction`` where the function has fallen enough, and its step; None where there is none."""
    slope = float(direction @ here.gradient)
    best: Point | None = None
    best_step, longer = 0.0, 0
    for _ in range(SHORTER):
        theta = here.theta + step * direction
        point = Point(theta, *objective(theta))
        falls = _is_finite(point) and point.value <= here.value + SUFFICIENT * step * slope
        if falls and (best is None or point.value < best.value):
            best, best_step = point, step
        if not falls:
            if best is not None or -step * slope <= ROUNDING * max(abs(here.value), 1.0):
                break
            step = _interpolated(here.value, slope, point, float(direction @ point.gradient), step)
            continue
        if float(direction @ point.gradient) >= STEEP * slope or longer == LONGER or point is not best:
            break
        longer += 1
        step *= 4.0
    return best, best_step


def _interpolated(value: float, slope: float, far: Point, slope_far: float, step: float) -> float:
    """The minimum of the cubic through both ends, kept within a tenth and a half of the step."""
    with np.errstate(all="ignore"):
        d = slope + slope_far - 3.0 * (far.value - value) / step
        root = np.sqrt(d * d - slope * slope_far)
        inner = step * (1.0 - (slope_far + root - d) / (slope_far - slope + 2.0 * root))
    return float(np.clip(inner, 0.1 * step, 0.5 * step)) if np.isfinite(inner) else 0.1 * step
