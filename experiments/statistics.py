"""Compare several methods on several sets: ranks, Friedman's test, Nemenyi's critical difference, paired tests."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from mauc._typing import Floats
from mauc.metrics.uncertainty import holm

__all__ = ["RankTest", "friedman", "resampled_t_holm", "wilcoxon_holm"]


@dataclass(frozen=True)
class RankTest:
    """Result of :func:`friedman`."""

    mean_ranks: Floats
    """``(K,)`` mean rank of each method over the sets, 1 is best."""
    statistic: float
    pvalue: float
    critical_difference: float
    """Mean ranks that differ by more are different at the given level (Nemenyi)."""


def friedman(scores: Floats, *, level: float = 0.05) -> RankTest:
    """Run Friedman's test of ``(sets, methods)`` scores, higher being better, with Nemenyi's critical difference.

    ``CD = q √(K (K + 1) / (6 S))`` for K methods on S sets, ``q`` the quantile of the studentised range over √2
    (Demšar, JMLR 2006).
    """
    n_sets, n_methods = scores.shape
    ranks = stats.rankdata(-scores, axis=1)
    statistic, pvalue = stats.friedmanchisquare(*scores.T)
    q = float(stats.studentized_range.ppf(1.0 - level, n_methods, np.inf)) / np.sqrt(2.0)
    difference = q * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets))
    return RankTest(ranks.mean(axis=0), float(statistic), float(pvalue), float(difference))


def wilcoxon_holm(scores: Floats, reference: int) -> Floats:
    """Return ``(K,)`` two-sided p-values of one method against each other over the sets, after Holm; 1 for itself."""
    others = [k for k in range(scores.shape[1]) if k != reference]
    raw = []
    for k in others:
        difference = scores[:, reference] - scores[:, k]
        raw.append(float(stats.wilcoxon(difference).pvalue) if np.any(difference) else 1.0)
    corrected = np.ones(scores.shape[1])
    corrected[others] = holm(np.array(raw))
    return corrected


def resampled_t_holm(scores: Floats, reference: int, *, ratio: float) -> Floats:
    """Return ``(K,)`` two-sided p-values of one method against each other over random splits of one set, after Holm; 1
    for itself.

    ``t = mean d / √((1/S + ratio) · var d)`` for S splits whose test part is ``ratio`` times the training part: splits
    share rows, so their mean varies more than that of S independent ones (Nadeau, Bengio, Machine Learning 2003).
    """
    n_splits, n_methods = scores.shape
    others = [k for k in range(n_methods) if k != reference]
    difference = scores[:, others] - scores[:, [reference]]
    spread = np.sqrt((1.0 / n_splits + ratio) * difference.var(axis=0, ddof=1))
    mean = difference.mean(axis=0)
    t = np.divide(np.abs(mean), spread, out=np.where(mean == 0, 0.0, np.inf), where=spread > 0)
    corrected = np.ones(n_methods)
    corrected[others] = holm(2.0 * stats.t.sf(t, n_splits - 1))
    return corrected
