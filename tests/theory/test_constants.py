"""Lipschitz constants and ranges against calculus."""

import numpy as np
import pytest
from cases import every_case

from mauc.theory.bounds import surrogate_constants


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("r", [0.3, 1.0, 5.0])
def test_against_calculus(alpha, r):
    def close(name, lipschitz, bound, **options):
        found = surrogate_constants(name, radius=r, **options)
        assert found.lipschitz == pytest.approx(lipschitz, rel=1e-12)
        assert found.bound == pytest.approx(bound, rel=1e-12)

    close("squared", 2 * (alpha + r), (alpha + r) ** 2, alpha=alpha)
    close("exponential", alpha * np.exp(alpha * r), np.exp(alpha * r), alpha=alpha)
    close("hinge", 1.0, alpha + r, alpha=alpha)
    close("q_hinge", 3 * (alpha + r) ** 2, (alpha + r) ** 3, alpha=alpha, q=3)
    close("logistic", alpha / (1 + np.exp(-alpha * r)), np.log1p(np.exp(alpha * r)), alpha=alpha)
    close("distance_weighted", 100.0, 20 + 100 * r, epsilon=0.1)


@every_case
def test_no_slope_and_no_value_exceeds_them(case):
    ell = case.build()
    found = surrogate_constants(ell)
    t = np.random.default_rng(0).uniform(-1, 1, 2000)
    value = ell.loss(t)
    assert (np.abs(value) <= found.bound * (1 + 1e-12)).all()
    slopes = np.abs(np.subtract.outer(value, value)) / np.maximum(np.abs(np.subtract.outer(t, t)), 1e-9)
    assert slopes.max() <= found.lipschitz * (1 + 1e-5)


def test_overflow_is_infinite():
    assert surrogate_constants("exponential", alpha=10, radius=1000).bound == np.inf


def test_bad_radius():
    with pytest.raises(ValueError, match="radius must be a finite number above 0, got -1"):
        surrogate_constants("hinge", radius=-1)
