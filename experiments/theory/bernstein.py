"""Bernstein polynomials, and bounds on their derivatives (Theorem 10)."""

import math
from collections.abc import Callable

import numpy as np
from scipy.interpolate import BPoly

from mauc._typing import Floats
from mauc._validation import check_whole

__all__ = ["bernstein", "bernstein_factor"]


def bernstein(function: Callable[[Floats], Floats], begin: float, end: float, degree: int) -> tuple[BPoly, BPoly]:
    """Return ``B(t) = Σ_k f(t_k) C(K, k) s^k (1 − s)^(K−k)``, ``s = (t − begin)/(end − begin)``, and its derivative.

    It keeps convexity and monotonicity, hence the consistency condition; its error falls only like 1/K.
    ``CustomSurrogate(*bernstein(ell.loss, -1, 1, K))`` is a surrogate.
    """
    nodes = np.linspace(begin, end, degree + 1)
    polynomial = BPoly(function(nodes)[:, None], [begin, end])
    return polynomial, polynomial.derivative()


def bernstein_factor(degree: int, order: int) -> float:
    r"""Return the factor :math:`c_k` of Theorem 10, which the paper does not print.

    If :math:`m \le f^{(k)} \le M` on [0, 1], the Bernstein polynomial of degree K has

    .. math:: c_k\, m \le B_K^{(k)} \le c_k\, M, \qquad c_k = \prod_{i < k} \Bigl(1 - \frac i K\Bigr) ,

    because its k-th derivative is :math:`K! / (K - k)!` times a mean of k-th differences of f at steps of 1/K, each of
    which is :math:`K^{-k}` times a value of :math:`f^{(k)}`. So the signs of the derivatives, hence monotonicity and
    convexity, are kept, and Corollary 2 follows as far as Theorem 3 holds. Of degree 1 it is a straight line, whose
    second derivative is 0: :math:`c_2 = 0`.

    Examples
    --------
    >>> from experiments.theory import bernstein_factor
    >>> [bernstein_factor(4, order) for order in (0, 1, 2, 5)]
    [1.0, 1.0, 0.75, 0.0]
    """
    K, k = check_whole("degree", degree, least=1), check_whole("order", order, least=0)
    return float(math.prod(1.0 - i / K for i in range(min(k, K + 1))))
