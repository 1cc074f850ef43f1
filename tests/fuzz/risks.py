"""Every surrogate by every scheme against the definition in extended precision."""

import warnings

import numpy as np
from cases import CASES

from fuzz import definitions
from fuzz.draw import problem
from mauc import SurrogateRisk
from mauc.plan import MOST_CANCELLED

KINDS = ("ties", "normal", "softmax", "float32", "outlier", "integers", "neighbours")
# Only losses that NumPy evaluates in extended precision.
CHOICES = [case for case in CASES if not case.label or case.label == "custom-pieces"]


def run(rng: np.random.Generator) -> None:
    case = CHOICES[int(rng.integers(len(CHOICES)))]
    drawn = problem(rng, KINDS, most_samples=12, most_classes=4)
    y, scores, weight, pairs, _ = drawn
    surrogate = case.build()
    schemes = ["auto", "blocked", "pairwise"]
    if case.linear and drawn.kind in ("ties", "softmax", "float32"):
        schemes.append(case.scheme)
    with np.errstate(over="ignore", invalid="ignore"):
        value, gradient, magnitude = definitions.risk(y, scores, weight, pairs, surrogate.loss, surrogate.derivative)
    tolerance = 1e-10 if case.exact else 2e-6
    # Differences of scores are rounded.
    reach = float(np.abs(scores).max()) + max(case.options.values(), default=1.0)
    rounding = 16.0 * float(np.finfo(np.float64).eps) * reach * float(magnitude.sum())
    # The same for the slope, where it is nearly 0; an outlier must not excuse the others.
    curvature = 0.0 if drawn.kind == "outlier" else _steepest_slope(surrogate, 2.0 * reach)
    bent = 16.0 * float(np.finfo(np.float64).eps) * reach * (curvature if np.isfinite(curvature) else 1.0)
    # Approximations are relative to ℓ and ℓ′ at 0.
    at_zero, slope_at_zero = (abs(float(f(np.zeros(1))[0])) for f in (surrogate.loss, surrogate.derivative))
    of_loss, of_slope = (0.0, 0.0) if case.exact else (at_zero, slope_at_zero)
    for scheme in schemes:
        risk = SurrogateRisk(case.build(), pairs=pairs, scheme=scheme)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*taking all pairs in blocks", category=UserWarning)
            found, slope = risk.value_and_gradient(y, scores, weight)
        what = f"{case}, {scheme} ({risk.scheme_}), {drawn.kind}"
        # Moments of a polynomial piece cancel down to a risk far below ℓ(0), by up to MOST_CANCELLED times ℓ(0).
        moments = risk.scheme_ == "moments" and surrogate.closed_form is None
        cancelled = 16.0 * MOST_CANCELLED * float(np.finfo(np.float64).eps) * at_zero if moments else 0.0
        _close(f"{what}: value", found, value, tolerance * (abs(float(value)) + of_loss) + rounding + cancelled)
        # The slope jumps at a kink: where rounding moves a difference across it, nothing is checked.
        if not _near_a_kink(case, y, scores, reach):
            room = tolerance * (float(magnitude.max()) + of_slope) + bent + 16.0 * cancelled
            for got, true in zip(slope.ravel(), gradient.ravel(), strict=True):
                _close(f"{what}: gradient", got, true, room)


def _steepest_slope(surrogate, radius):
    """Return about the largest ``ℓ″`` on ``[−radius, radius]``; infinite at a kink. The grid is finer near 0."""
    if not surrogate.smooth:
        return np.inf
    side = np.geomspace(1e-4 * min(1.0, radius), radius, 4_000)
    t = np.concatenate([-side[::-1], side])
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.nan_to_num(np.abs(np.diff(surrogate.derivative(t)) / np.diff(t)), nan=np.inf).max())


def _near_a_kink(case, y, scores, reach):
    wide = scores.astype(np.longdouble)
    differences = (wide[np.arange(len(y)), y][:, None] - wide[:, y].T).ravel()
    near = 4.0 * float(np.finfo(np.float64).eps) * reach
    return any(((np.abs(differences - kink) <= near) & (differences != kink)).any() for kink in case.kinks)


def _close(what, found, true, room):
    if not room < 1e290:
        assert not np.isnan(found), f"{what} is NaN, by definition {true!r}"
    else:
        assert abs(found - float(true)) <= room + 1e-290, (
            f"{what} {found!r}, by definition {float(true)!r} ± {room:.1e}"
        )
