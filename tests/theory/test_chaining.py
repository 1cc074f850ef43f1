"""Chaining: a bound of the complexity by covering numbers."""

import math

import numpy as np
import pytest

from mauc.theory import bounds


def test_chaining_is_its_integral():
    """√log N = 1/ε² has integrals, hence the best α, in closed form."""
    counts = np.array([500, 300, 200])
    xi = math.sqrt(sum(1000 / n for n in counts))
    rate = 24 * 2 * xi / math.sqrt(1000)
    alpha = math.sqrt(rate / (8 * 6))  # where the derivative 8 C (C − 1) − rate / α² is 0
    top = 2.0 * alpha
    expected = 8 * 6 * alpha + rate * (1 / alpha - 1 / top)
    found = bounds.chaining(lambda e: e**-4, counts, radius=2 * top)
    assert expected <= found <= 1.02 * expected
    assert bounds.chaining(lambda e: e**-4, counts, radius=2 * top, lipschitz=3.0) == pytest.approx(3 * found)
    assert bounds.chaining(lambda e: 0.0, counts) < 1e-9


def test_chaining_of_a_finite_class_is_massarts_lemma_up_to_a_constant():
    counts, n_models = (400, 400), 50
    found = bounds.chaining(lambda e: math.log(n_models), counts)
    # The largest of n values of variance proxy s² D² is at most s D √(2 log n), with s = 2 φ (C − 1) ξ / √N.
    massart = 2 * math.sqrt(4 / 800) * 0.5 * math.sqrt(2 * math.log(n_models))
    assert massart <= found <= 10 * massart


@pytest.mark.parametrize("factor", [2, 10])
def test_chaining_falls_with_the_size(factor):
    def cover(e):
        return 20 * math.log1p(1 / e)

    counts = np.array([30_000, 20_000, 10_000])
    assert bounds.chaining(cover, counts * factor) == pytest.approx(
        bounds.chaining(cover, counts) / math.sqrt(factor), rel=0.05
    )
    assert bounds.chaining(cover, [3, 2, 1]) <= 8 * 6 * 0.25, "never above the trivial one"


def test_bad_arguments():
    with pytest.raises(ValueError, match="log_covering_number must be at least 0, got -1"):
        bounds.chaining(lambda e: -1.0, [3, 3])
    with pytest.raises(ValueError, match="log_covering_number must not increase"):
        bounds.chaining(lambda e: e, [3, 3])
    with pytest.raises(ValueError, match="class_counts must be at least 1 in every class, got 0 for class 1: drop"):
        bounds.chaining(lambda e: 1.0, [3, 0])
