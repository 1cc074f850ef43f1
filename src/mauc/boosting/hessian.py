r"""A diagonal matrix above the Hessian of the risk, in closed form: what a boosting library divides gradients by.

Boosting libraries take one second derivative for each score. The exact diagonal would be too small: scores of a pair
move together, and a step that ignores it overshoots. Here ``D − H`` is positive semidefinite, so that ``D`` is above
the exact diagonal, and a Newton step with it goes down wherever the Hessian changes little along it.

1. **Scores.** A pair adds :math:`w \ell''(t) (a_m - a_n)^2 \le 2 w \ell''(t) (a_m^2 + a_n^2)` along a direction a.
   With :math:`h_{nc} \ge \sum w \ell''` over the pairs of a score, ``2 h`` is above the Hessian, and at most twice its
   diagonal where ``h`` is exact. For the exponential it is: :math:`\ell'' = -\alpha \ell'`, and all pairs of a score
   pull it the same way, hence :math:`h = \alpha |G|`. For others ``h`` is a bound of :math:`\ell''` times the weight
   of the pairs, or, if smaller, κ times the gradient where :math:`\ell'' \le -\kappa \ell'`.
2. **Softmax.** With :math:`J = \operatorname{diag}(f) - f f^\top` and the gradient :math:`g = J G`, the Hessian
   of a row is below :math:`J \operatorname{diag}(2 h) J + M`, where
   :math:`M_{ij} = \delta_{ij} g_i - f_j g_i - f_i g_j`. The sums of the absolute values of their rows bound both, as
   XGBoost's ``2 p (1 − p)`` does for the log-loss.

Everything costs O(N·C).
"""

import numpy as np

from mauc._typing import Floats
from mauc._validation import invalid
from mauc.activations import activate, pull_back
from mauc.kernels.tiles import TILE_ELEMENTS, Classes, Problem, column_range
from mauc.risk import SurrogateRisk
from mauc.surrogates import Surrogate

__all__ = ["check_curvature", "gradient_and_bound", "is_curved", "pair_mass", "score_curvature"]


def is_curved(surrogate: Surrogate) -> bool:
    """Whether its second derivative has a known bound."""
    return min(surrogate.curvature_per_slope, surrogate.curvature(1.0)) < np.inf


def check_curvature(surrogate: Surrogate) -> Surrogate:
    """A surrogate whose second derivative is bounded and whose slope at 0 is downwards."""
    if not is_curved(surrogate):
        requirement = "must have a bounded second derivative for boosting"
        advice = "use exponential, squared, logistic, generalized_hinge (a rounded hinge), or q_hinge with q >= 2"
        raise invalid("surrogate", requirement, repr(surrogate), advice)
    if not float(surrogate.derivative(np.zeros(1))[0]) < 0:
        raise invalid("surrogate", "must fall at 0", repr(surrogate), "pass a larger alpha")
    return surrogate


def pair_mass(classes: Classes) -> Floats:
    """``(N, C)`` summed weight of the pairs that each score takes part in.

    ``a_m Σ_j v_ij`` in the column i of a sample's own class, ``a_n v_ij`` in the others.
    """
    y, unit, v = classes.y, classes.unit, classes.v
    mass = unit[:, None] * classes.of_negative[y]
    mass[np.arange(len(y)), y] = unit * v.sum(axis=1)[y]
    return mass


def score_curvature(surrogate: Surrogate, problem: Problem, gradient: Floats) -> Floats:
    r"""``(N, C)`` bound ``h`` of :math:`\sum w \ell''` over the pairs of each score; exact for exponential and squared.

    ``gradient`` is that of the risk with respect to the scores, whose pairs all have one sign.
    """
    per_slope, form = surrogate.curvature_per_slope, surrogate.closed_form
    of_slope = per_slope * np.abs(gradient) if per_slope < np.inf else np.inf
    if form is not None and form.kind == "exponential":
        return np.asarray(of_slope)
    low, high = column_range(problem)
    steepest = surrogate.curvature(float((high - low).max()))
    of_mass = steepest * pair_mass(problem.classes) if steepest < np.inf else np.inf
    return np.minimum(of_slope, of_mass)


def gradient_and_bound(
    risk: SurrogateRisk, classes: Classes, raw: Floats, activation: str
) -> tuple[float, Floats, Floats]:
    """Risk of ``activation(raw)``, its gradient with respect to ``raw``, and the diagonal above its Hessian.

    Parameters
    ----------
    risk : SurrogateRisk
    classes : Classes
    raw : (N, C) array
    activation : {"softmax", "identity"}

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import SurrogateRisk
    >>> from mauc.boosting.hessian import gradient_and_bound
    >>> from mauc.partition import ClassPartition
    >>> partition = ClassPartition(np.array([0, 0, 1, 2]), 3)
    >>> classes = partition.classes(partition.pair_weights("ovo"))
    >>> value, gradient, bound = gradient_and_bound(SurrogateRisk(), classes, np.zeros((4, 3)), "identity")
    >>> gradient.round(3).tolist()[0], bound.round(3).tolist()[0]
    ([-0.667, 0.333, 0.333], [5.333, 2.667, 2.667])
    """
    scores = activate(raw, activation)
    here = classes.with_scores(scores)
    value, gradient = risk.compute(here, gradient=True, bounded=activation == "softmax")
    assert gradient is not None
    curvature = score_curvature(risk.surrogate, here, gradient)
    if activation == "identity":
        return value, gradient, 2.0 * curvature
    gradient = pull_back(scores, gradient, activation)
    step = max(1, TILE_ELEMENTS // scores.shape[1])
    for begin in range(0, len(scores), step):
        rows = slice(begin, begin + step)
        curvature[rows] = _softmax_bound(scores[rows], gradient[rows], curvature[rows])
    return value, gradient, curvature


def _softmax_bound(f: Floats, g: Floats, h: Floats) -> Floats:
    """Row sums of ``|J diag(2h) J|`` and of ``|M|``; see the head of the module."""
    others = 1.0 - f
    q = f * f * others * h
    through_scores = 4.0 * (others * q + f * (q.sum(axis=1, keepdims=True) - q))
    size = np.abs(g)
    own = np.abs(1.0 - 2.0 * f) + others
    return through_scores + own * size + f * (size.sum(axis=1, keepdims=True) - size)
