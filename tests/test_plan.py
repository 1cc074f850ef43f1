"""Polynomials that approximate a loss: their errors, the facts they keep, and the forms that the kernels sum."""

import numpy as np
import pytest
from cases import CASES, EACH_KIND, Case, each_kind
from numpy.polynomial import Polynomial
from numpy.polynomial import chebyshev as cheb

from mauc.plan import Plan, difference_matrix, plan, radius_for
from mauc.surrogates import (
    CustomSurrogate,
    DistanceWeighted,
    Logistic,
    QHinge,
    Squared,
)

APPROXIMATED = [case for case in EACH_KIND if not case.exact]
reached = pytest.mark.parametrize("case", [case for case in APPROXIMATED if case.linear], ids=str)


def evaluate(approximation: Plan, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate the form that the kernels sum, ``Σ_kl A_kl φ_k(p) φ_l(q)``, and its ``∂/∂p``, pair by pair."""
    value, slope = np.zeros(len(p)), np.zeros(len(p))
    for low, high, matrix, half_width in approximation.pieces:
        inside = (p - q >= low) & (p - q < high)
        if half_width is None:
            of_distance = Polynomial(matrix[:, 0])
            distance = high - (p - q)
            values, slopes = of_distance(distance), -of_distance.deriv()(distance)
        else:
            values = cheb.chebval2d(p / half_width, q / half_width, matrix)
            slopes = cheb.chebval2d(p / half_width, q / half_width, cheb.chebder(matrix)) / half_width
        value += np.where(inside, values, 0.0)
        slope += np.where(inside, slopes, 0.0)
    return value, slope


def errors(case: Case, approximation: Plan, radius: float) -> tuple[float, float]:
    """Return the largest errors of ℓ and ℓ′ over scores of that range, relative to ``|ℓ(0)|`` and ``|ℓ′(0)|``."""
    surrogate = case.build()
    score = np.linspace(-radius / 2, radius / 2, 61)
    p, q = (a.ravel() for a in np.meshgrid(score, score))
    value, slope = evaluate(approximation, p, q)
    zero = np.zeros(1)
    return (
        np.abs(value - surrogate.loss(p - q)).max() / abs(surrogate.loss(zero)[0]),
        np.abs(slope - surrogate.derivative(p - q)).max() / abs(surrogate.derivative(zero)[0]),
    )


@pytest.mark.parametrize("half_width", [1e-12, 3.0])
@pytest.mark.parametrize("degree", [0, 1, 24])
def test_difference_matrix_is_the_polynomial_of_the_difference(degree, half_width):
    rng = np.random.default_rng(degree)
    polynomial = Polynomial(rng.normal(size=degree + 1), domain=[-2 * half_width, 2 * half_width])
    matrix = difference_matrix(polynomial, degree, half_width)
    x, z = rng.uniform(-1.0, 1.0, (2, 500))
    expected = polynomial(half_width * (x - z))
    np.testing.assert_allclose(cheb.chebval2d(x, z, matrix), expected, atol=1e-12 * np.abs(expected).max())
    above = np.add.outer(np.arange(degree + 1), np.arange(degree + 1)) > degree
    assert np.all(matrix[above] == 0.0)


@pytest.mark.parametrize(("radius", "tolerance"), [(0.25, 1e-6), (1.0, 1e-3), (1.0, 1e-8), (2.0, 1e-6)])
@pytest.mark.parametrize("case", [case for case in CASES if case.linear and not case.exact], ids=str)
def test_tolerance_is_kept_by_loss_and_derivative(case, radius, tolerance):
    found = plan(case.build(), radius, tolerances=(tolerance,))
    if found is None:
        assert tolerance == 1e-8, "all of these reach the default tolerance"
        return
    assert max(errors(case, found, radius)) <= 1.1 * tolerance


@reached
def test_a_smaller_tolerance_never_costs_less(case):
    degrees = [plan(case.build(), 1.0, tolerances=(tolerance,)) for tolerance in (1e-2, 1e-4, 1e-6)]
    cost = [sum(len(piece.matrix) for piece in found.pieces) for found in degrees]
    assert cost == sorted(cost)


@each_kind
@pytest.mark.parametrize("radius", [0.5, np.inf])
def test_exact_pieces_are_exact(case, radius):
    if not case.exact or (case.scheme == "moments" and np.isinf(radius)) or case.surrogate == "exponential":
        assert case.scheme == "moments" or not case.exact
        return
    found = plan(case.build(), radius)
    assert max(errors(case, found, min(radius, 4.0))) < 1e-12


def test_pieces_out_of_reach_are_left_out():
    assert len(plan(DistanceWeighted(0.5), 0.25).pieces) == 1
    assert len(plan(QHinge(2.0, 2.5), 1.0).pieces) == 1
    assert plan(Squared(), 1.0).degree == 2


@pytest.mark.parametrize(
    ("surrogate", "radius"),
    [(Logistic(1.0), 1e3), (Logistic(1e6), 1.0), (QHinge(0.5, 1.1), 1.0), (CustomSurrogate(np.abs, np.sign), 1.0)],
    ids=str,
)
def test_none_where_the_tolerance_is_out_of_reach(surrogate, radius):
    assert plan(surrogate, radius) is None


@pytest.mark.parametrize("exponent", [-100, -10])
@reached
def test_a_small_range_is_not_harder_than_a_large_one(case, exponent):
    # ℓ is all but a line there; differences of its rounded values must not be taken for its slope.
    found = plan(case.build(), 2.0**exponent)
    assert found is not None
    assert max(errors(case, found, 2.0**exponent)) <= 1e-6


@pytest.mark.parametrize("radius", [2.0**k for k in (5, 27, 100)])
def test_no_polynomial_is_better_than_a_wrong_one(radius):
    # 1/t is steep only next to ε: an error measured on points that miss it is no error.
    surrogate = DistanceWeighted(0.1)
    found = plan(surrogate, radius)
    t = np.geomspace(0.1, radius / 2, 400)
    if found is not None:
        value = evaluate(found, t, np.zeros_like(t))[0]
        assert np.abs(value - surrogate.loss(t)).max() <= 2e-6 * surrogate.loss(np.zeros(1))[0]
    else:
        assert radius > 4.0


@pytest.mark.parametrize(
    ("span", "radius"), [(0.0, 1.0), (0.3, 1.0), (1.0, 1.0), (1.01, 2.0), (2.0, 2.0), (1e300, 2.0**997)]
)
def test_the_radius_is_one_for_bounded_scores_and_else_a_power_of_two(span, radius):
    assert radius_for(span) == radius


def test_a_range_beyond_all_floats_has_no_polynomial():
    assert radius_for(1.7e308) == np.inf
    assert plan(Logistic(), np.inf) is None


def test_a_piece_that_covers_bounded_scores_needs_no_search():
    assert plan(QHinge(1.0, 3.0), 1.0).scheme == "ranked", "at t = 1 the slope is that on the right"
    found = plan(QHinge(1.0, 3.0), 1.0, saturated=True)
    assert (found.scheme, found.degree) == ("moments", 3)
    assert plan(QHinge(0.5, 3.0), 1.0, saturated=True).scheme == "ranked"
