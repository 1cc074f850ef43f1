"""Surrogate → form: every form is the loss and its slopes."""

import numpy as np
from cases import CASES
from numpy.polynomial.chebyshev import chebval2d

from mauc.nn._loss.forms import Closed, bilinear_form, closed_form, truncated_powers
from mauc.surrogates import get_surrogate


def test_closed_forms():
    assert closed_form(get_surrogate("squared", alpha=0.5)) == Closed("squared", 0.5)
    assert closed_form(get_surrogate("exponential", alpha=2.0), bounded=False) == Closed("exponential", 2.0)
    assert closed_form(get_surrogate("hinge", alpha=2.0)) == Closed("line", 2.0)
    assert closed_form(get_surrogate("hinge", alpha=2.0), bounded=False) is None
    assert closed_form(get_surrogate("hinge", alpha=0.5)) is None
    assert closed_form(get_surrogate("generalized_hinge", alpha=2.0)) == Closed("line", 2.0)
    assert closed_form(get_surrogate("logistic")) is None


def test_truncated_powers_are_the_loss():
    t = np.linspace(-2.0, 2.0, 401)
    taken = {str(case): (case.build(), truncated_powers(case.build())) for case in CASES}
    for surrogate, form in taken.values():
        if form is not None:
            distance = np.array(form.ends)[:, None] - t
            powers = (
                np.maximum(distance, 0.0)[:, None] ** np.arange(form.degree + 1)[:, None] * (distance > 0.0)[:, None]
            )
            assert np.allclose(
                np.einsum("bk,bkt->t", np.array(form.coefficients), powers), surrogate.loss(t), atol=1e-9
            )
    names = {name.split("-alpha")[0] for name, (_, form) in taken.items() if form is not None}
    assert names == {"hinge", "q_hinge", "generalized_hinge", "custom-pieces"}
    assert truncated_powers(get_surrogate("q_hinge", alpha=1e-3, q=5)) is None  # its digits would be lost in the sums
    rounded = get_surrogate("generalized_hinge", alpha=0.5)
    assert truncated_powers(rounded) is not None
    # Large slopes of both signs cancel.
    assert truncated_powers(rounded, bounded=False) is None
    assert truncated_powers(get_surrogate("generalized_hinge", alpha=0.5, epsilon=0.01)) is None


def test_bilinear_forms_are_the_loss_and_its_slopes():
    p, q = np.meshgrid(np.linspace(0.0, 1.0, 33), np.linspace(0.0, 1.0, 33))
    taken = set()
    for case in CASES:
        form, surrogate = bilinear_form(case.build()), case.build()
        if form is None:
            continue
        taken.add(str(case).split("-alpha")[0])
        loss, in_q, in_p = (chebval2d(2.0 * p - 1.0, 2.0 * q - 1.0, np.array(m)) for m in form.numbers)
        at_zero = abs(surrogate.loss(np.zeros(1))[0])
        # At a corner on the edge of the range the slope is one-sided.
        inside = np.abs(p - q) < 1.0
        assert np.abs(loss - surrogate.loss(p - q)).max() <= 2e-7 * at_zero, str(case)
        slope = surrogate.derivative(p - q)
        size = abs(surrogate.derivative(np.zeros(1))[0])
        assert np.abs(in_p - slope)[inside].max() <= 2e-7 * size, str(case)
        assert np.abs(in_q + slope)[inside].max() <= 2e-7 * size, str(case)
    assert {"logistic", "custom-smooth", "custom-polynomial"} <= taken
