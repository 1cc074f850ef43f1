"""The complexity of a class of models from its covering numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats
from mauc._validation import check_not_negative, check_real, invalid
from mauc.theory._checks import check_class_counts
from mauc.theory.imbalance import xi

__all__ = ["chaining"]


def chaining(
    log_covering_number: Callable[[float], float],
    class_counts: ArrayLike,
    *,
    lipschitz: float = 1.0,
    radius: float = 0.5,
) -> float:
    r"""Bound the Rademacher complexity of any class of scores by its covering numbers (Theorem 5).

    The complexity (Definition 2) says how far the class can follow random signs of the samples.

    .. math:: \hat{\mathfrak R} \le \inf_{\alpha > 0} \left\{ 8 \varphi C (C - 1)\, \alpha + 24 \varphi (C - 1)
        \frac{\xi}{\sqrt N} \int_\alpha^{D/2} \sqrt{\log \mathcal N(\varepsilon)}\, d\varepsilon \right\}

    where :math:`\mathcal N(\varepsilon)` scores are enough for every member of the class to be within ε of one of them,
    in every column of every sample. ``docs/theory.md`` proves these constants.

    Parameters
    ----------
    log_covering_number : function of ε
        :math:`\log \mathcal N(\varepsilon)`, not increasing.
    class_counts : (C,) class sizes
    lipschitz : float, default=1.0
        φ, Lipschitz constant of ℓ.
    radius : float, default=0.5
        D: every member of the class is within D of one score; ½ for scores in [0, 1].

    Returns
    -------
    float
        The integral is an upper sum over 2000 scales, at most 1.4 % too large.

    Examples
    --------
    >>> from math import log
    >>> from mauc.theory import bounds
    >>> round(bounds.chaining(lambda eps: 10 * log(1 + 1 / eps), [5000, 3000, 2000]), 2)
    1.9
    """
    n = check_class_counts(class_counts)
    C = len(n)
    phi = check_not_negative("lipschitz", lipschitz)
    top = 0.5 * check_real("radius", radius, low=0)
    scales, integral = upper_sums(log_covering_number, top)
    values = 8.0 * C * (C - 1) * scales + 24.0 * (C - 1) * xi(n) / np.sqrt(n.sum()) * integral
    return float(phi * values.min())


def upper_sums(log_covering_number: Callable[[float], float], top: float) -> tuple[Floats, Floats]:
    """Return scales α up to ``top``, and for each an upper sum of the integral of √log N from α to ``top``."""
    scales = top * np.geomspace(1e-12, 1.0, 2001)
    logs = log_covering_numbers(log_covering_number, scales)
    # log N does not increase, so its value at the left end of each step makes an upper sum.
    steps = np.diff(scales) * np.sqrt(logs[:-1])
    return scales, np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])


def log_covering_numbers(log_covering_number: Callable[[float], float], scales: Floats) -> Floats:
    """Return log N at ascending scales."""
    logs = np.array([float(log_covering_number(float(epsilon))) for epsilon in scales])
    if not (logs >= 0).all():
        k = int(np.flatnonzero(~(logs >= 0))[0])
        came = f"{logs[k]:g} at {scales[k]:.3g}"
        advice = "return the logarithm of a number of scores, at least 1"
        raise invalid("log_covering_number", "must be at least 0", came, advice)
    if (np.diff(logs) > 1e-9 * (1.0 + logs[:-1])).any():
        k = int(np.argmax(np.diff(logs)))
        came = f"{logs[k]:.6g} at {scales[k]:.3g} and {logs[k + 1]:.6g} at {scales[k + 1]:.3g}"
        raise invalid("log_covering_number", "must not increase", came, "larger balls cover with fewer of them")
    return logs
