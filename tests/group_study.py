"""Do intervals of grouped rows cover, and tests keep their size? The tables of docs/results/interval-groups.md.

``python tests/group_study.py`` writes them; ``--jobs 2`` takes two processes.

Scores are N(0, 1) with ``lead`` more in the own column. A part ``correlation`` of their variance, and of the noise of
each model, is common to all rows of a group.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from interval_study import influences, lead_of, percent, write_between_marks
from scipy import stats

from mauc.metrics.uncertainty import Sample, comparison, interval
from mauc.partition import ClassPartition

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "interval-groups.md"
DRAWS = 600
LEVEL = 0.95
KINDS = {
    "one": "Each group has one class; half, 30 % and 20 % of the groups",
    "mixed": "Each group has rows of all classes; half, 30 % and 20 % of the rows",
    "rare": "One class per group, the rarest in five groups of one row each",
}


@dataclass(frozen=True)
class Design:
    """Which rows there are."""

    kind: str
    groups: int
    rows: int
    """Rows of a group."""
    correlation: float
    auc: float

    def rows_and_groups(self) -> tuple[np.ndarray, np.ndarray]:
        """``(N,)`` classes and groups, the same in all draws."""
        share = np.array([0.5, 0.3, 0.2])
        group = np.repeat(np.arange(self.groups), self.rows)
        if self.kind == "mixed":
            y = np.searchsorted(np.cumsum(share), (np.arange(len(group)) + 0.5) / len(group))
            return np.random.default_rng(0).permutation(y), group
        if self.kind == "one":
            of_group = np.searchsorted(np.cumsum(share), (np.arange(self.groups) + 0.5) / self.groups)
            return of_group[group], group
        common = np.repeat(np.arange(self.groups - 5), self.rows)
        y = np.r_[common % 2, np.full(5, 2)]
        return y, np.r_[common, np.arange(self.groups - 5, self.groups)]

    def draw(self, rng: np.random.Generator, y: np.ndarray, group: np.ndarray, draws: int) -> list[np.ndarray]:
        """``(draws, N, 3)`` scores of the models a and b, which are equal, and of c, which is worse."""

        def noise() -> np.ndarray:
            common = rng.normal(size=(draws, group.max() + 1, 3))[:, group]
            own = rng.normal(size=common.shape)
            return np.sqrt(self.correlation) * common + np.sqrt(1 - self.correlation) * own

        shared = noise() + lead_of(self.auc) * np.eye(3)[y]
        return [shared + size * noise() for size in (1, 1, 2)]

    def truths(self, y: np.ndarray, group: np.ndarray, v: np.ndarray) -> list[float]:
        """Expected multiclass AUC of a, b and c: pairs of rows in the same group differ by less noise than others."""
        found = []
        for size in (1, 1, 2):
            ratio = lead_of(self.auc) / np.sqrt(2 * (1 + size**2))
            apart, together = (stats.norm.cdf(ratio / np.sqrt(1 - c)) for c in (0.0, self.correlation))
            counts = np.zeros((group.max() + 1, 3))
            np.add.at(counts, (group, y), 1)
            shares = counts / counts.sum(axis=0)
            found.append(float((v * (apart + (together - apart) * (shares.T @ shares))).sum()))
        return found

    def __str__(self) -> str:
        return f"{self.groups} | {self.rows} | {self.correlation:g} | {self.auc:.2f}"


@dataclass(frozen=True)
class Line:
    """One line of a table; the second of two numbers is that of rows taken as independent."""

    design: Design
    coverage: tuple[float, float]
    width: tuple[float, float]
    size: tuple[float, float]
    coverage_of_difference: float

    def __str__(self) -> str:
        pairs = (self.coverage, self.width, self.size)
        columns = " | ".join(f"{ours:.3f} ({theirs:.3f})" for ours, theirs in pairs)
        return f"| {self.design} | {columns} | {self.coverage_of_difference:.3f} |"


HEADINGS = ("groups", "rows of each", "correlation", "MAUC", "coverage", "width", "test size", "difference covered")
HEADER = f"| {' | '.join(HEADINGS)} |\n" + "|---" * len(HEADINGS) + "|"


def simulate(design: Design, draws: int = DRAWS) -> Line:
    """A line of a table."""
    y, group = design.rows_and_groups()
    partition = ClassPartition(y, 3)
    v = partition.pair_weights("ovo")
    samples = [Sample.of(partition, v, group), Sample.of(partition, v)]
    truths = design.truths(y, group, v)
    rng = np.random.default_rng([*design.kind.encode(), design.groups, design.rows, int(100 * design.correlation)])
    found = []
    for some in _parts(draws, len(y)):
        models = [influences(scores, y, [v])[0] for scores in design.draw(rng, y, group, some)]
        for a, b, c in zip(*models, strict=True):
            found.append(_judged(samples, a, b, c, truths))
    x = np.array(found, dtype=float)
    mean, median = x.mean(axis=0), np.median(x, axis=0)
    return Line(design, (mean[0], mean[1]), (median[2], median[3]), (mean[4], mean[5]), mean[6])


def _judged(samples: list[Sample], *of: np.ndarray | list[float]) -> list[float]:
    *influence, truths = of
    (a, b, c) = ((round(float(samples[0].partition.shares @ h) / 2, 13), h) for h in influence)
    ours, theirs = (interval(sample, *a, LEVEL) for sample in samples)
    equal = [comparison(sample, a, b, LEVEL) for sample in samples]
    worse = comparison(samples[0], a, c, LEVEL)
    return [
        *(found.low <= truths[0] <= found.high for found in (ours, theirs)),
        *(found.high - found.low for found in (ours, theirs)),
        *(found.pvalue < 1 - LEVEL for found in equal),
        worse.low <= truths[0] - truths[2] <= worse.high,
    ]


def _parts(draws: int, n_rows: int, scores_at_once: int = 1 << 20) -> Iterator[int]:
    step = max(1, scores_at_once // (3 * n_rows))
    yield from (min(step, draws - begin) for begin in range(0, draws, step))


def designs(kind: str) -> list[Design]:
    """From few groups to many, from small to large ones, from independent rows to nearly equal ones."""
    sizes = [(g, k) for g, k in product((10, 30, 100, 500), (2, 5, 20)) if g * k <= 2500]
    worlds = [(0.0, 0.86), (0.5, 0.86), (0.9, 0.86), (0.5, 0.98)]
    return [Design(kind, g, k, *world) for (g, k), world in product(sizes, worlds)]


def claim(tables: dict[str, list[Line]], draws: int) -> str:
    """What the tables show, in sentences."""
    lines = [line for table in tables.values() for line in table]
    few, many = (
        [each for each in lines if each.design.groups < 30],
        [each for each in lines if each.design.groups >= 30],
    )

    def range_of(some: list[Line], which: int) -> str:
        found = [line.coverage[which] for line in some]
        return f"{percent(min(found))} to {percent(max(found))}"

    sizes = [line.size[0] for line in many]
    differences = [line.coverage_of_difference for line in many]
    return (
        f"**{len(lines)} lines of {draws} draws. From 30 groups on, the interval of 95 % covers in "
        f"{range_of(many, 0)} of draws**, that of rows taken as independent in {range_of(many, 1)}. "
        f"The test at 5 % rejects equal models in {percent(min(sizes))} to {percent(max(sizes))}; "
        f"rows taken as independent in up to {percent(max(line.size[1] for line in many))}. The interval of a "
        f"difference covers in {percent(min(differences))} or more. With 10 groups, the interval covers in "
        f"{range_of(few, 0)}, and the test rejects in up to {percent(max(line.size[0] for line in few))}."
    )


def write(tables: dict[str, list[Line]], draws: int, page: Path) -> None:
    """Write the claim and all tables into the page."""
    parts = [claim(tables, draws)]
    parts += [f"## {KINDS[kind]}\n\n{HEADER}\n" + "\n".join(map(str, table)) for kind, table in tables.items()]
    write_between_marks(page, "tests/group_study.py", "\n\n".join(parts))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--draws", type=int, default=DRAWS)
    given = parser.parse_args()
    tables: dict[str, list[Line]] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for kind in KINDS:
            tables[kind] = list(pool.map(partial(simulate, draws=given.draws), designs(kind)))
            print(KINDS[kind], HEADER, *tables[kind], sep="\n", flush=True)
    write(tables, given.draws, PAGE)


if __name__ == "__main__":
    main()
