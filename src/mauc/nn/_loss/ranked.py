"""Ranked and polynomial losses through the NumPy kernels of :mod:`mauc._kernels`, for scores on any device.

The scores go to the host and the gradient comes back.
"""

import math
import warnings

import numpy as np
import torch
from torch import Tensor

from mauc._kernels.blocked import blocked_risk
from mauc._kernels.moments import polynomial_risk
from mauc._kernels.piecewise import ranked_risk
from mauc._kernels.tiles import Classes
from mauc.nn._loss.batch import Weights
from mauc.nn._loss.closed import Slope
from mauc.plan import TOLERANCES, needs_range, plan, radius_for
from mauc.surrogates import Surrogate

__all__ = ["numpy_risk"]


def numpy_risk(
    scores: Tensor, weights: Weights, surrogate: Surrogate, *, bounded: bool, gradient: bool
) -> tuple[Tensor, Slope | None]:
    """Return the risk of any surrogate and, on request, its gradient in the scores' dtype."""
    if len(scores) == 0:
        return scores.sum(), Slope(scores, None, None) if gradient else None
    ends = torch.stack(scores.aminmax(dim=0)).double()
    if not bool(ends.isfinite().all()):
        return scores.sum() * torch.nan, Slope(scores * torch.nan, None, None) if gradient else None
    span = float((ends[1] - ends[0]).max())
    radius = 1.0 if bounded else radius_for(span) if needs_range(surrogate) else math.inf
    tolerances = TOLERANCES["float64" if scores.dtype == torch.float64 else "float32"]
    # If a difference overflows, the loss of that pair is infinite. Computed pair by pair, all others stay right.
    overflows = math.isinf(span)
    found = None if overflows else plan(surrogate, radius, tolerances=tolerances, saturated=bounded)
    problem = _classes(weights, factored=found is not None).with_scores(scores.cpu().numpy())
    with np.errstate(over="ignore", invalid="ignore"):
        if found is None:
            if not overflows:
                name = surrogate.name
                what = f"no polynomial of the {name} surrogate on differences up to {radius:g} is close enough"
                warnings.warn(f"{what}: taking all pairs in blocks, O(N²) time", stacklevel=8)
            value, slope = blocked_risk(problem, surrogate.loss, surrogate.derivative, gradient=gradient)
        elif found.scheme == "ranked":
            value, slope = ranked_risk(problem, list(found.pieces), gradient=gradient, dtype=problem.scores.dtype)
        else:
            (piece,) = found.pieces
            assert piece.half_width is not None
            value, slope = polynomial_risk(problem, piece.matrix, piece.half_width, gradient=gradient)
    of_value = torch.tensor(value, dtype=torch.float64).to(weights.unit)
    return of_value, None if slope is None else Slope(torch.from_numpy(slope).to(scores), None, None)


def _classes(weights: Weights, *, factored: bool) -> Classes:
    """Return the class partition; ``factored`` saves the ``(C, C)`` weights, which only blocks of pairs need."""
    y, unit, row, column = (x.cpu().numpy() for x in (weights.y, weights.unit, weights.row, weights.column))
    n_classes = len(column)
    if weights.matrix is not None:
        return Classes(y, unit, n_classes, weights.matrix.T.cpu().numpy())
    if factored:
        return Classes(y, unit, n_classes, None, (row, column))
    v = np.outer(column, np.bincount(y, row, n_classes))
    np.fill_diagonal(v, 0.0)
    return Classes(y, unit, n_classes, v)
