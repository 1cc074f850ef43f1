"""Ranks and tests over several sets, against SciPy, published tables and examples worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from experiments.statistics import friedman, resampled_t_holm, wilcoxon_holm


def test_ranks_by_hand():
    scores = np.array([[0.9, 0.8, 0.7], [0.6, 0.9, 0.5], [0.5, 0.5, 0.1], [0.3, 0.2, 0.1]])
    test = friedman(scores)
    np.testing.assert_allclose(test.mean_ranks, [(1 + 2 + 1.5 + 1) / 4, (2 + 1 + 1.5 + 2) / 4, 3.0])


def test_friedman_without_ties_by_hand():
    """χ² = 12 S / (K (K + 1)) · (Σ R² − K (K + 1)² / 4)"""
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [3.0, 2.0, 1.0], [2.0, 3.0, 1.0]])
    ranks = np.array([5, 8, 11]) / 4
    expected = 12 * 4 / (3 * 4) * ((ranks**2).sum() - 3 * 16 / 4)
    test = friedman(scores)
    np.testing.assert_allclose(test.mean_ranks, ranks)
    assert test.statistic == pytest.approx(expected)
    assert test.pvalue == pytest.approx(stats.chi2.sf(expected, 2))


@pytest.mark.parametrize(
    ("n_methods", "level", "q"),
    # Demšar, JMLR 2006, table 5(a).
    [(3, 0.05, 2.343), (4, 0.05, 2.569), (5, 0.05, 2.728), (10, 0.05, 3.164), (3, 0.1, 2.052), (10, 0.1, 2.920)],
)
def test_critical_difference_of_the_published_tables(n_methods, level, q):
    scores = np.random.default_rng(0).random((10, n_methods))
    expected = q * np.sqrt(n_methods * (n_methods + 1) / 60)
    assert friedman(scores, level=level).critical_difference == pytest.approx(expected, rel=5e-4)


def test_holm_by_hand():
    """Six sets; exact p-values: all six in favour 2/64, all but the smallest 4/64, none different 1."""
    step = np.arange(1.0, 7.0)
    reference = np.zeros(6)
    against = -step
    mixed = np.where(step == 1, step, -step)
    scores = np.column_stack([mixed, reference, against, reference])
    np.testing.assert_allclose(wilcoxon_holm(scores, 1), [2 * 4 / 64, 1.0, 3 * 2 / 64, 1.0])


def test_splits_that_share_rows_are_less_sure():
    """With no shared rows it is the paired t-test; with a tenth tested and eight trained on, 1/S becomes 1/S + 1/8."""
    scores = np.random.default_rng(0).normal([0.0, 0.5, 1.0], size=(10, 3))
    scores = np.column_stack([scores, scores[:, 0]])
    raw = [stats.ttest_rel(scores[:, k], scores[:, 0]).pvalue for k in (1, 2)]
    found = resampled_t_holm(scores, 0, ratio=0.0)
    low, high = sorted(raw)
    np.testing.assert_allclose(sorted(found), sorted([1.0, 1.0, 3 * low, max(3 * low, 2 * high)]))
    assert (found[0], found[3]) == (1.0, 1.0), "itself, and its double"
    t = stats.ttest_rel(scores[:, 2], scores[:, 0]).statistic / np.sqrt(1 + 10 / 8)
    assert resampled_t_holm(scores[:, [0, 2]], 0, ratio=1 / 8)[1] == pytest.approx(2 * stats.t.sf(t, 9))
