"""ξ, χ and the value of one more sample."""

from fractions import Fraction

import numpy as np
import pytest

from mauc import theory


def of(*counts):
    return theory.imbalance(np.repeat(np.arange(len(counts)), counts))


@pytest.mark.parametrize("counts", [(3, 3), (90, 9, 1), (7, 5, 3, 2), (100000, 2), (1, 1, 1, 1, 50)])
def test_values_are_the_formulas(counts):
    found = of(*counts)
    rho = [Fraction(n, sum(counts)) for n in counts]
    xi2 = sum(1 / r for r in rho)
    chi2 = sum(1 / (a * b) for i, a in enumerate(rho) for j, b in enumerate(rho) if i != j)
    assert found.xi == pytest.approx(float(xi2) ** 0.5, rel=1e-12)
    assert found.chi == pytest.approx(float(chi2) ** 0.5, rel=1e-12)
    assert found.ratio == max(counts) / min(counts)
    np.testing.assert_allclose(found.priors, [float(r) for r in rho], rtol=1e-15)
    assert found.effective_size == pytest.approx(float(sum(counts) / xi2), rel=1e-12)
    assert found.effective_size <= min(counts)
    harmonic = len(counts) / sum(Fraction(1, n) for n in counts)
    assert found.effective_size_per_class == pytest.approx(float(harmonic), rel=1e-12)
    np.testing.assert_allclose(found.shares, [float(1 / r / xi2) for r in rho], rtol=1e-12)
    assert found.shares.sum() == pytest.approx(1.0)


def test_marginal_values_are_what_one_more_sample_does():
    counts = np.array([50, 7, 2])
    found = of(*counts)
    for k in range(3):
        more = of(*(counts + (np.arange(3) == k)))
        assert found.marginal_values[k] == pytest.approx(1 - more.rate / found.rate, rel=1e-9)
    assert (np.diff(found.marginal_values) > 0).all(), "the rarer, the more"
    assert of(10**6, 3).marginal_values[0] > 0


def test_balanced_classes():
    found = of(20, 20, 20, 20)
    assert found.xi == pytest.approx(4.0)
    assert found.chi == pytest.approx(4 * np.sqrt(12))
    assert found.ratio == 1
    assert found.effective_size_per_class == pytest.approx(20)
    assert "one more sample is worth the same in each" in str(found)


def test_xi_and_chi_grow_with_imbalance_and_are_ordered():
    rates = [of(100 - k, 100, 100 + k) for k in (0, 20, 50, 90, 99)]
    for name in ("xi", "chi", "ratio"):
        values = [getattr(r, name) for r in rates]
        assert values == sorted(values)
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 6):
        for _ in range(50):
            found = of(*rng.integers(1, 200, n_classes))
            # Newton's inequalities; with equality for two classes and for equal sizes.
            assert found.chi >= np.sqrt(n_classes * (n_classes - 1)) * found.xi * (1 - 1e-12)


def test_summary():
    text = str(theory.imbalance(["frequent"] * 60 + ["rare"] * 3 + ["some"] * 20))
    lines = text.splitlines()
    assert lines[0] == "83 samples, 3 classes of 3 to 60 (ratio 20)"
    assert lines[5].split()[:2] == ["rare", "3"]
    assert lines[7].split()[:2] == ["frequent", "60"]
    assert "lower xi/sqrt(N) by" in text.splitlines()[-1]
    assert "One more sample of class rare is worth" in text
    many = str(of(*range(1, 31)))
    assert "and 18 more\n" in many
    assert "and 1 more\n" in str(of(*[5] * 13)), "equal classes are not larger"
    assert len(many.splitlines()) < 22


def test_bad_classes():
    with pytest.raises(ValueError, match="y must hold two classes or more"):
        theory.imbalance([1, 1, 1])
    with pytest.raises(ValueError, match="y"):
        theory.imbalance(None)
