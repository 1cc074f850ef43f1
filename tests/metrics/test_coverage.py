"""Do intervals cover and tests keep their size, from two samples per class on? Simulated; the table is in the docs.

Scores are N(0, 1) with ``sep`` more in the own column, plus noise of each model's own: of deviation 1 for a and b, so
that they are equal, and 2 for c. Every AUC_{i|j} of a model with noise σ is Φ(sep / √(2 + 2σ²)).
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special, stats

from mauc.kernels.auc import auc_influence
from mauc.metrics.uncertainty import Sample, comparison, interval
from mauc.partition import ClassPartition

DRAWS = 1000
MAUCS = (0.5, 0.86, 0.98)
SIZES = [
    *([n] * n_classes for n_classes in (2, 3, 5, 10) for n in (2, 3, 5, 20)),
    [500, 2],
    [500, 500, 2],
    [100, 100, 100, 2],
    [100, 5, 5],
    [100] * 3,
    [1000] * 3,
]


@dataclass(frozen=True)
class Cell:
    """One line of the table; the second of two numbers is DeLong's."""

    sizes: str
    score: float
    coverage: tuple[float, float]
    width: tuple[float, float]
    size: tuple[float, float]
    width_of_difference: tuple[float, float]
    coverage_of_difference: tuple[float, float]
    smallest_p: float
    smallest_width: float

    def __str__(self) -> str:
        pairs = (self.coverage, self.width, self.size, self.coverage_of_difference, self.width_of_difference)
        columns = " | ".join(f"{ours:.3f} ({theirs:.3f})" for ours, theirs in pairs)
        return f"| {self.sizes} | {self.score:.2f} | {columns} |"


HEADER = """
| rows | MAUC | coverage | width | size of the test | coverage of a difference | width of a difference |
|---|---|---|---|---|---|---|"""


def delong_interval(score, variances, counts):
    """On the logit scale with Student's t, as it was; without width where nothing varies."""
    stderr, freedom = delong_stderr(variances, counts)
    if stderr == 0.0 or not 0.0 < score < 1.0:
        return score, score
    reach = special.stdtrit(freedom, 0.975) * stderr / (score * (1.0 - score))
    return tuple(special.expit(special.logit(score) + np.array([-reach, reach])))


def delong_stderr(variances, counts):
    by_class = variances / counts
    total = by_class.sum()
    return np.sqrt(total), total**2 / np.sum(by_class**2 / (counts - 1)) if total > 0 else 1.0


def simulate(counts, score, draws=DRAWS):
    counts = np.array(counts)
    n_classes = len(counts)
    y = np.repeat(np.arange(n_classes), counts)
    starts = np.r_[0, np.cumsum(counts)[:-1]]
    partition = ClassPartition(y, n_classes)
    v = partition.pair_weights("ovo")
    sample = Sample.of(partition, v)
    sep = stats.norm.ppf(score) * 2.0
    worse = stats.norm.cdf(sep / np.sqrt(10.0))
    rng = np.random.default_rng([n_classes, *counts, round(100 * score)])

    def judged(scores):
        influence = auc_influence(partition.problem(scores, v))
        # Each pair is in the influence of two samples. Rounded, as mauc_score gives exactly 1 for a perfect ranking.
        return round(float(partition.shares @ influence) / 2, 14), influence

    def variances(influence):
        means = np.add.reduceat(influence, starts) / counts
        return np.add.reduceat((influence - means[y]) ** 2, starts) / (counts - 1)

    found = []
    for _ in range(draws):
        shared = rng.normal(size=(len(y), n_classes)) + sep * np.eye(n_classes)[y]
        a, b, c = (judged(shared + noise * rng.normal(size=shared.shape)) for noise in (1, 1, 2))
        ours, equal, unequal = (
            interval(sample, *a, 0.95),
            comparison(sample, a, b, 0.95),
            comparison(sample, a, c, 0.95),
        )
        theirs = delong_interval(a[0], variances(a[1]), counts)
        row = [ours.low <= score <= ours.high, theirs[0] <= score <= theirs[1]]
        row += [ours.high - ours.low, theirs[1] - theirs[0]]
        row += [equal.pvalue < 0.05, equal.high - equal.low]
        row += [unequal.low <= score - worse <= unequal.high]
        for other in (b, c):
            stderr, freedom = delong_stderr(variances(a[1] - other[1]), counts)
            reach = special.stdtrit(freedom, 0.975) * stderr
            truth = 0.0 if other is b else score - worse
            row += [abs(a[0] - other[0] - truth) > reach + 1e-12, 2 * reach]
        found.append([*row, min(equal.pvalue, unequal.pvalue)])
    x = np.array(found, dtype=float)
    mean, median = x.mean(axis=0), np.median(x, axis=0)
    return Cell(
        sizes=f"{n_classes} × {counts[0]}" if len(set(counts)) == 1 else ", ".join(map(str, counts)),
        score=score,
        coverage=(mean[0], mean[1]),
        width=(median[2], median[3]),
        size=(mean[4], mean[7]),
        width_of_difference=(median[5], median[8]),
        coverage_of_difference=(mean[6], 1 - mean[9]),
        smallest_p=x[:, 11].min(),
        smallest_width=x[:, [2, 5]].min(),
    )


def check(cell):
    assert cell.coverage[0] >= 0.90, cell
    assert cell.coverage_of_difference[0] >= 0.90, cell
    assert cell.size[0] <= 0.07, cell
    assert cell.smallest_p > 0, cell
    assert cell.smallest_width > 0, cell


@pytest.mark.slow
def test_table(capsys):
    with capsys.disabled():
        print(HEADER)
        for score in MAUCS:
            for counts in SIZES:
                draws = DRAWS if sum(counts) < 3000 else DRAWS // 2
                cell = simulate(counts, score, draws)
                print(cell, flush=True)
                check(cell)


@pytest.mark.parametrize(("counts", "score"), [([2, 2], 0.5), ([3, 3, 3], 0.86), ([5, 5], 0.98), ([60, 60, 2], 0.86)])
def test_few_samples(counts, score):
    check(simulate(counts, score, draws=300))
