"""Do intervals cover and tests keep their size, from two samples per class on? The tables of docs/results/intervals.md.

``python tests/interval_study.py`` writes them, in a quarter of an hour; ``--jobs 2`` takes two processes.

Scores are N(0, 1) with ``lead`` more in the own column, plus noise of each model's own: of deviation 1 for a and b, so
that they are equal, and 2 for c. Of a mislabelled row the raised column is that of another class, for all models.
"""

import argparse
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from mauc.metrics.inference import small_class_note
from mauc.metrics.uncertainty import Moments, Sample, comparison_of_moments, interval_of_moments
from mauc.partition import ClassPartition

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "intervals.md"
DRAWS = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class World:
    """How scores come about."""

    title: str
    lead: float
    wrong: float = 0.0
    """Share of mislabelled rows."""
    only_rarest: bool = False
    """Mislabelled are rows of the rarest class alone."""
    zero_or_one: bool = False
    """Scores are 1 above half of the lead, else 0."""

    def draw(self, rng: np.random.Generator, y: np.ndarray, rarest: int, draws: int) -> list[np.ndarray]:
        """``(draws, N, C)`` scores of the models a, b and c."""
        n_classes = int(y.max()) + 1
        wrong = rng.random((draws, len(y))) < self.wrong
        if self.only_rarest:
            wrong &= y == rarest
        raised = np.where(wrong, (y + rng.integers(1, n_classes, wrong.shape)) % n_classes, y)
        shared = rng.normal(size=(draws, len(y), n_classes)) + self.lead * np.eye(n_classes)[raised]
        models = [shared + noise * rng.normal(size=shared.shape) for noise in (1, 1, 2)]
        return [(m > self.lead / 2).astype(float) for m in models] if self.zero_or_one else models

    def truth(self, n_classes: int, rarest: int, noise: float) -> np.ndarray:
        """``(C, C)`` AUCs of the classes as they are labelled."""
        deviation = np.sqrt(1 + noise**2)
        if self.zero_or_one:
            return np.full((n_classes, n_classes), stats.norm.cdf(self.lead / 2 / deviation))
        right = stats.norm.cdf(self.lead / deviation / np.sqrt(2))
        wrong = np.full(n_classes, self.wrong)
        if self.only_rarest:
            wrong[np.arange(n_classes) != rarest] = 0.0
        raised, of_others = 1 - wrong[:, None], wrong / (n_classes - 1)
        alike = raised * of_others + (1 - raised) * (1 - of_others)
        return raised * (1 - of_others) * right + alike / 2 + (1 - raised) * of_others * (1 - right)


def lead_of(auc: float) -> float:
    """The lead that gives models a and b this AUC."""
    return float(2 * stats.norm.ppf(auc))


WORLDS = [
    World("Random scores", 0.0),
    World("Normal scores, MAUC .86", lead_of(0.86)),
    World("Normal scores, MAUC .98", lead_of(0.98)),
    World("A fifth of the rows mislabelled, the others at .98", lead_of(0.98), wrong=0.2),
    World("One row of twenty mislabelled, the others at .98", lead_of(0.98), wrong=0.05),
    World("A fifth of the rarest class alone mislabelled", lead_of(0.98), wrong=0.2, only_rarest=True),
    World("Scores of 0 and 1", 2 * np.sqrt(2), zero_or_one=True),
]
BALANCED = [(2, 2), (5, 5), (20, 20), (3, 3, 3), (20, 20, 20), (100, 100, 100)]
RARE = [(500, 2), (500, 5), (500, 15), (500, 20), (300, 30, 3), (500, 50, 5), (1000, 100, 2), (1000, 100, 10)]


@dataclass(frozen=True)
class Cell:
    """One line of a table; the second of two numbers is DeLong's."""

    sizes: str
    pairs: str
    truth: float
    coverage: tuple[float, float]
    width: tuple[float, float]
    size: tuple[float, float]
    coverage_of_difference: float
    noted: float
    """In how many draws a note of a small class without errors is given."""
    coverage_unless_noted: float
    smallest_p: float
    smallest_width: float

    def __str__(self) -> str:
        pairs = (self.coverage, self.width, self.size)
        columns = " | ".join(f"{ours:.3f} ({theirs:.3f})" for ours, theirs in pairs)
        return f"| {self.sizes} | {self.pairs} | {self.truth:.2f} | {columns} | {self._rest()} |"

    def _rest(self) -> str:
        unless = "–" if np.isnan(self.coverage_unless_noted) else f"{self.coverage_unless_noted:.3f}"
        return f"{self.coverage_of_difference:.3f} | {self.noted:.2f} | {unless}"


HEADINGS = "rows, pairs, MAUC, coverage, width, test size, coverage of a difference, noted, coverage unless noted"
HEADER = f"| {HEADINGS.replace(', ', ' | ')} |\n" + "|---" * len(HEADINGS.split(",")) + "|"


def influences(scores: np.ndarray, y: np.ndarray, of_pairs: list[np.ndarray]) -> list[np.ndarray]:
    """``(draws, N)`` influences for each matrix of pair weights.

    By ranks: in column i, among classes i and j, the scores below and half of those equal.
    """
    found = [np.zeros(scores.shape[:2]) for _ in of_pairs]
    members = [np.flatnonzero(y == k) for k in range(scores.shape[2])]
    for i, positives in enumerate(members):
        within = [stats.rankdata(scores[:, rows, i], axis=1) for rows in members]
        for j, negatives in enumerate(members):
            if i != j:
                both = stats.rankdata(scores[:, np.concatenate([positives, negatives]), i], axis=1)
                above, below = both[:, : len(positives)] - within[i], both[:, len(positives) :] - within[j]
                for influence, v in zip(found, of_pairs, strict=True):
                    influence[:, positives] += v[i, j] * above / len(negatives)
                    influence[:, negatives] += v[i, j] * (1 - below / len(positives))
    return found


def moments(influence: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(draws, C)`` means, and :attr:`Moments.squares`."""
    starts = np.r_[0, np.cumsum(counts)[:-1]]
    mean = np.add.reduceat(influence, starts, axis=1) / counts
    centred = influence - np.repeat(mean, counts, axis=1)
    centred[np.abs(centred) < 1e-13] = 0.0
    return mean, np.add.reduceat(centred**2, starts, axis=1) / counts**2


def simulate(world: World, counts: tuple[int, ...], draws: int = DRAWS) -> list[Cell]:
    """A line for ``"ovo"``, and one for ``"ova"`` where that is another thing."""
    n = np.array(counts)
    y, rarest = np.repeat(np.arange(len(n)), n), int(np.argmin(n))
    names = ("ovo", "ova") if len(n) > 2 and len(set(counts)) > 1 else ("ovo",)
    partition = ClassPartition(y, len(n))
    weights = [partition.pair_weights(pairs) for pairs in names]
    truths = [[float((v * world.truth(len(n), rarest, noise)).sum()) for noise in (1, 1, 2)] for v in weights]
    rows: list[list[Any]] = [[] for _ in names]
    rng = np.random.default_rng([len(n), *counts, *world.title.encode()])
    for some in _parts(draws, y):
        models = [influences(scores, y, weights) for scores in world.draw(rng, y, rarest, some)]
        for k, v in enumerate(weights):
            rows[k] += _judged([model[k] for model in models], n, Sample.of(partition, v), truths[k])
    return [_cell(np.array(rows[k], dtype=float), n, pairs, truths[k][0]) for k, pairs in enumerate(names)]


def _parts(draws: int, y: np.ndarray, scores_at_once: int = 1 << 20) -> Iterator[int]:
    step = max(1, scores_at_once // (len(y) * (int(y.max()) + 1)))
    yield from (min(step, draws - begin) for begin in range(0, draws, step))


def _judged(models: list[np.ndarray], n: np.ndarray, sizes: Sample, truths: list[float]) -> Iterator[list[Any]]:
    """For each draw what is averaged over all of them."""
    a, b, c = models
    of = [moments(influence, n) for influence in (a, b, c, a - b, a - c)]
    for k in range(len(a)):
        # Each pair is in the influence of two samples. Rounded, as mauc_score gives exactly 1 for a perfect ranking.
        one, two, three = ((round(float(m[k].sum()) / 2, 13), Moments(m[k], s[k])) for m, s in of[:3])
        ours = interval_of_moments(sizes, *one, LEVEL)
        equal = comparison_of_moments(sizes, one, two, Moments(of[3][0][k], of[3][1][k]), LEVEL)
        worse = comparison_of_moments(sizes, one, three, Moments(of[4][0][k], of[4][1][k]), LEVEL)
        low, high = delong_interval(one[0], of[0][1][k], n)
        stderr, freedom = delong(of[3][1][k], n)
        yield [
            ours.low <= truths[0] <= ours.high,
            low <= truths[0] <= high,
            ours.high - ours.low,
            high - low,
            equal.pvalue < 1 - LEVEL,
            abs(equal.difference) > special.stdtrit(freedom, 0.5 + LEVEL / 2) * stderr + 1e-12,
            worse.low <= truths[0] - truths[2] <= worse.high,
            small_class_note(sizes, a[k], range(len(sizes.size))) != "",
            min(equal.pvalue, worse.pvalue),
            min(ours.high - ours.low, equal.high - equal.low),
        ]


def delong(squares: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """DeLong's standard error, with Welch and Satterthwaite's degrees of freedom."""
    by_class = squares * counts / (counts - 1)
    total = by_class.sum()
    return np.sqrt(total), total**2 / np.sum(by_class**2 / (counts - 1)) if total > 0 else 1.0


def delong_interval(score: float, squares: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """On the logit scale with Student's t; without width where nothing varies."""
    stderr, freedom = delong(squares, counts)
    if stderr == 0.0 or not 0.0 < score < 1.0:
        return score, score
    reach = special.stdtrit(freedom, 0.5 + LEVEL / 2) * stderr / (score * (1.0 - score))
    return tuple(special.expit(special.logit(score) + np.array([-reach, reach])))


def _cell(x: np.ndarray, counts: np.ndarray, pairs: str, truth: float) -> Cell:
    mean, median = x.mean(axis=0), np.median(x, axis=0)
    unnoted = x[x[:, 7] == 0, 0]
    return Cell(
        sizes=f"{len(counts)} × {counts[0]}" if len(set(counts)) == 1 else ", ".join(map(str, counts)),
        pairs=pairs,
        truth=truth,
        coverage=(mean[0], mean[1]),
        width=(median[2], median[3]),
        size=(mean[4], mean[5]),
        coverage_of_difference=mean[6],
        noted=mean[7],
        # A rate of fewer than 50 draws says nothing.
        coverage_unless_noted=unnoted.mean() if len(unnoted) >= 50 else np.nan,
        smallest_p=x[:, 8].min(),
        smallest_width=x[:, 9].min(),
    )


def percent(x: float) -> str:
    return f"{100 * x:.1f} %"


def claim(tables: dict[str, list[Cell]], draws: int) -> str:
    """What the tables show, in sentences."""
    cells = [cell for table in tables.values() for cell in table]
    ours, theirs = (np.array([cell.coverage[k] for cell in cells]) for k in (0, 1))
    sizes, of_differences = [cell.size[0] for cell in cells], [cell.coverage_of_difference for cell in cells]
    unless = np.array([c.coverage_unless_noted for c in cells if not np.isnan(c.coverage_unless_noted)])
    said = [
        f"**{len(cells)} lines of {draws} draws. The interval of 95 % covers in {percent(ours.min())} to "
        f"{percent(ours.max())} of draws: in {np.sum(ours >= 0.93)} lines in 93 % or more, in {np.sum(ours < 0.9)} in "
        f"less than 90 %.** DeLong's covers in {percent(theirs.min())} to {percent(theirs.max())}: in "
        f"{np.sum(theirs >= 0.93)} lines in 93 % or more, in {np.sum(theirs < 0.9)} in less than 90 %. The test at 5 % "
        f"rejects equal models in {percent(min(sizes))} to {percent(max(sizes))} of draws. The interval of a "
        f"difference covers in {percent(min(of_differences))} or more. Without the note of a small class that may "
        f"hide errors, the interval covers in {percent(min(unless, default=1.0))} or more: in {np.sum(unless < 0.9)} "
        "lines in less than 90 %.",
        "",
        "| scores | least coverage | with | largest size of the test |",
        "|---|---|---|---|",
    ]
    for title, table in tables.items():
        low = min(table, key=lambda cell: cell.coverage[0])
        largest = max(cell.size[0] for cell in table)
        said.append(f"| {title} | {low.coverage[0]:.3f} | {low.sizes}, {low.pairs} | {largest:.3f} |")
    return "\n".join(said)


def write(tables: dict[str, list[Cell]], draws: int, page: Path) -> None:
    """Write the claim and all tables into the page."""
    parts = [claim(tables, draws)]
    parts += [f"## {title}\n\n{HEADER}\n" + "\n".join(map(str, table)) for title, table in tables.items()]
    write_between_marks(page, "tests/interval_study.py", "\n\n".join(parts))


def write_between_marks(page: Path, program: str, text: str) -> None:
    """Replace what stands between the two marks of the page: "written by" the program, and "end"."""
    marks = rf"(<!-- written by {re.escape(program)} -->\n).*?(<!-- end -->)"
    before = page.read_text(encoding="utf-8")
    found, count = re.subn(marks, lambda mark: f"{mark[1]}\n{text}\n\n{mark[2]}", before, flags=re.DOTALL)
    assert count == 1, "the page has lost its marks"
    page.write_text(found, encoding="utf-8")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--draws", type=int, default=DRAWS)
    given = parser.parse_args()
    tables: dict[str, list[Cell]] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for world in WORLDS:
            sizes = RARE if world.only_rarest else BALANCED + RARE
            found = pool.map(partial(simulate, world, draws=given.draws), sizes)
            tables[world.title] = [cell for cells in found for cell in cells]
            print(world.title, HEADER, *tables[world.title], sep="\n", flush=True)
    write(tables, given.draws, PAGE)


if __name__ == "__main__":
    main()
