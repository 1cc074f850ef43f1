"""Coverage of intervals and size of tests, by simulation: one table for every kind of inference besides the plain ones.

Beside most rates is that of a simple method on the same draws. The plain interval and the plain paired test have pages
of their own (``tests/interval_study.py``, ``tests/group_study.py``).
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats
from sklearn.linear_model import LogisticRegression

from experiments.registry import Experiment
from experiments.report_parts import markdown_table
from experiments.store import Cell, Store, write_whole
from mauc._typing import Floats, Ints
from mauc.metrics import (
    PDI,
    AtThreshold,
    Calibration,
    MulticlassAUC,
    ProbabilityError,
    compare_mauc,
    compare_measure,
    compare_samples,
    mauc_importance,
    mauc_interval,
    mauc_sample_size,
    mauc_score,
    measure_by_centre,
    measure_interval,
    multiclass_auc_report,
)
from mauc.metrics.curves import band, curves_of, simultaneous_quantile
from mauc.model_selection import RareClassKFold
from mauc.report import judge

__all__ = ["LINES", "cells", "experiment", "simulate", "write_report"]

Draw = tuple[bool, bool | None]
"""Of one draw: whether the interval covers, or the test rejects; and that of the simple method."""
Draws = Iterator[Draw]


def experiment(*, quick: bool = False) -> Experiment:
    """Plan the experiment."""
    return Experiment(cells(quick=quick), partial(write_report, quick=quick))


def cells(*, quick: bool = False) -> list[Cell]:
    """Return one cell for each line of the table."""
    depth, most = ("quick", 20) if quick else ("full", 10_000)
    return [Cell((depth, f"{k:02d}"), simulate, (k, min(most, line.draws))) for k, line in enumerate(LINES)]


def simulate(place: int, draws: int) -> dict[str, Any]:
    """Return the rate of a line, and that of the simple method, over so many draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(islice(LINES[place].source(np.random.default_rng(place)), draws))
    rate, simple = ([one[k] for one in found] for k in (0, 1))
    of_simple = None if simple[0] is None else float(np.mean(np.array(simple, dtype=float)))
    return {"rate": float(np.mean(np.array(rate, dtype=float))), "simple": of_simple, "draws": draws}


def lead_of(auc: float) -> float:
    """Return the lead of N(0, 1) scores in their own column that gives this AUC."""
    return float(np.sqrt(2.0) * stats.norm.ppf(auc))


def scores_of(rng: np.random.Generator, y: Ints, lead: float | Floats = 1.5) -> Floats:
    """Return N(0, 1) scores with a lead in the own column."""
    n_classes = int(y.max()) + 1
    return rng.normal(size=(len(y), n_classes)) + np.reshape(lead, (-1, 1)) * np.eye(n_classes)[y]


def rows_of(counts: tuple[int, ...]) -> Ints:
    """Return the classes of the rows."""
    return np.repeat(np.arange(len(counts)), counts)


def margins(counts: tuple[int, ...], auc_a: float, auc_b: float, rng: np.random.Generator) -> Draws:
    """Test non-inferiority of a model that is worse by exactly the margin. Simple: the difference over its error."""
    y, margin = rows_of(counts), auc_b - auc_a
    while True:
        shared = rng.normal(size=(len(y), len(counts)))
        a, b = (
            np.sqrt(0.5) * (shared + rng.normal(size=shared.shape)) + lead_of(auc) * np.eye(len(counts))[y]
            for auc in (auc_a, auc_b)
        )
        found = compare_mauc(y, a, b, margin=margin)
        assert not isinstance(found, list)
        yield found.pvalue < 0.025, bool((found.difference + margin) / found.stderr > special.ndtri(0.975))


def centres_of_equal_auc(
    n_levels: int, rows: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Floats, Ints, Any]]:
    """Yield classes, scores that are shifted in each level, levels, and the report by level."""
    level = np.repeat(np.arange(n_levels), rows)
    while True:
        y = rng.choice(3, size=len(level), p=[0.5, 0.3, 0.2])
        scores = scores_of(rng, y) + rng.normal(size=(n_levels, 3))[level]
        yield y, scores, level, multiclass_auc_report(y, scores, subgroups=level, output_dict=True)


def subgroups(n_levels: int, rows: int, rng: np.random.Generator) -> Draws:
    """Test levels of equal AUC and shifted scores. Simple: the level against all other rows as one sample."""
    for y, scores, level, found in centres_of_equal_auc(n_levels, rows, rng):
        own = level == 0
        pooled = compare_samples(MulticlassAUC(), y[own], scores[own], y[~own], scores[~own])
        yield found["subgroups"]["0"]["pvalue"] < 0.05, pooled.pvalue < 0.05


def any_level(n_levels: int, rows: int, rng: np.random.Generator) -> Draws:
    """Test whether levels of equal AUC and shifted scores differ at all."""
    for *_, found in centres_of_equal_auc(n_levels, rows, rng):
        yield found["subgroups_pvalue"] < 0.05, None


def bands(counts: tuple[int, ...], means: tuple[float, ...], kind: str, rng: np.random.Generator) -> Draws:
    """Cover the curve of class 0; ``kind`` is simultaneous, groups (of five independent rows), or a rate."""
    x, y, threshold = np.linspace(0.005, 0.995, 199), rows_of(counts), np.linspace(-8, 8, 20001)
    fpr = np.mean([stats.norm.sf(threshold - mean) for mean in means[1:]], axis=0)
    truth = np.interp(x, fpr[::-1], stats.norm.sf(threshold - means[0])[::-1])
    while True:
        scores = rng.normal(size=(len(y), len(counts))) + np.array(means)[y][:, None]
        groups = rng.permutation(len(y)) // 5 if kind == "groups" else None
        (curve,), *_ = curves_of(y, scores, classes=[0], groups=groups)
        whole = kind in ("simultaneous", "groups")
        low, high = band(curve, x, simultaneous_quantile(curve, x, 0.95) if whole else 1.96)
        covered = (low <= truth) & (truth <= high)
        yield bool(covered.all() if whole else covered[np.argmin(np.abs(x - float(kind)))]), None


def pilots(rng: np.random.Generator) -> Draws:
    """Bound the size of a study from pilots of 150, 40 and 10 rows; the truth is that of a pilot of 20,000."""

    def size(counts: tuple[int, ...], draws: int) -> Any:
        y = rows_of(counts)
        scores = scores_of(rng, y)
        return mauc_sample_size(y, scores, width=0.08, n_draws=draws)

    needed = size((15_000, 4_000, 1_000), 50).rows
    while True:
        found = size((150, 40, 10), 30)
        yield found.low <= needed <= found.high, None


def weakest(n_classes: int, rows: int, rng: np.random.Generator) -> Draws:
    """Cover the AUC of the first weakest pair, all pairs being at .85. Simple: the interval of this pair alone."""
    y, lead = np.repeat(np.arange(n_classes), rows), lead_of(0.85)
    while True:
        scores = scores_of(rng, y, lead)
        pair = judge(y, scores, listed=1).worst[0]
        two = np.isin(y, (i := int(pair.i), j := int(pair.j)))
        alone = mauc_interval(y[two], scores[two][:, sorted((i, j))])
        yield pair.interval.low <= 0.85 <= pair.interval.high, alone.low <= 0.85 <= alone.high


def folds(counts: tuple[int, ...], what: str, rng: np.random.Generator) -> Draws:
    """Pool five folds: cover the mean MAUC of their models, or test equal ones. Simple: as one fixed model."""
    means = np.zeros((3, 10))
    means[1, 0] = means[2, 1] = 1.2
    y, of_test = rows_of(counts), rows_of((1500, 1500, 1500))
    test = rng.normal(size=(len(of_test), 10)) + means[of_test]
    while True:
        X, pooled, aucs = rng.normal(size=(len(y), 10)) + means[y], np.zeros((2, len(y), 3)), []
        for train, held in RareClassKFold(5, random_state=0).split(X, y):
            for k, columns in enumerate(([0, 1, 2, 3, 4, 5], [0, 1, 6, 7, 8, 9])):
                model = LogisticRegression(max_iter=200).fit(X[train][:, columns], y[train])
                pooled[k, held] = model.predict_proba(X[held][:, columns])
                if k == 0:
                    aucs.append(mauc_score(of_test, model.predict_proba(test[:, columns])))
        both = [judge(y, {"a": pooled[0], "b": pooled[1]}, folds=n, listed=0) for n in (5, None)]
        truth = float(np.mean(aucs))
        rejects = [one.tests[0].pvalue < 0.05 for one in both]
        covers = [one.headline.mauc.low <= truth <= one.headline.mauc.high for one in both]
        ours, simple = rejects if what == "size" else covers
        yield ours, simple


def importance(rng: np.random.Generator) -> Draws:
    """Cover the importance of a column of signs, of which a tenth is negative."""

    def rows(n: int) -> tuple[Floats, Ints]:
        y, sign = rows_of((n, n)), np.where(rng.random(2 * n) < 0.1, -1.0, 1.0)
        return np.column_stack([sign, sign * (rng.normal(size=2 * n) + 1.5 * y)]), y

    def importance_of(X: Floats, y: Ints, repeats: int) -> Any:
        (found,) = mauc_importance(lambda X: X[:, [0]] * X[:, [1]], X, y, columns=["0"], n_repeats=repeats)
        return found

    truth = importance_of(*rows(50_000), 5).drop
    while True:
        found = importance_of(*rows(40), 10)
        yield found.low <= truth <= found.high, None


def probabilities_of(rng: np.random.Generator, n: int) -> tuple[Ints, Floats]:
    """Return calibrated probabilities of three classes, and classes drawn from them."""
    p = np.exp(rng.normal(size=(n, 3)) + np.array([1.0, 0.0, -1.0]))
    p /= p.sum(axis=1, keepdims=True)
    return (p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), p


def classes_measure(measure: Any, counts: tuple[int, ...], what: str, rng: np.random.Generator) -> Draws:
    """Cover the measure with independent rows or pairs of dependent ones ("groups"), or test two equal models."""
    y = rows_of(counts)
    large = rows_of(tuple(40_000 * n // sum(counts) for n in counts))
    noise = 1.0 if what != "size" else 2.0
    truth = measure_interval(measure, large, scores_of(rng, large)).score
    while True:
        if what == "size":
            shared = scores_of(rng, y)
            a, b = (shared + noise * rng.normal(size=shared.shape) for _ in range(2))
            yield compare_measure(measure, y, a, b).pvalue < 0.05, None
            continue
        scores, groups = scores_of(rng, y), None
        if what == "groups":
            scores, groups = np.repeat(scores, 2, axis=0), np.repeat(np.arange(len(y)), 2)
        copies = np.repeat(y, len(scores) // len(y))
        found = [measure_interval(measure, copies, scores, groups=g) for g in (groups, None)]
        covers = [one.low <= truth <= one.high for one in found]
        yield covers[0], covers[1] if what == "groups" else None


def rows_measure(measure: Any, n: int, what: str, rng: np.random.Generator) -> Draws:
    """The same for measures whose rows are one sample."""
    truth = measure_interval(measure, *probabilities_of(rng, 200_000)).score
    if isinstance(measure, Calibration):
        truth = 1.0 if measure.kind == "slope" else 0.0
    while True:
        y, p = probabilities_of(rng, n)
        if what == "coverage":
            found = measure_interval(measure, y, p)
            yield found.low <= truth <= found.high, None
        else:
            a, b = (p * np.exp(0.7 * rng.normal(size=p.shape)) for _ in range(2))
            a, b = (each / each.sum(axis=1, keepdims=True) for each in (a, b))
            yield compare_measure(measure, y, a, b).pvalue < 0.05, None


def two_samples(counts: tuple[int, ...], rng: np.random.Generator) -> Draws:
    """Test the MAUC of two samples of the same population."""
    y = rows_of(counts)
    while True:
        yield compare_samples(MulticlassAUC(), y, scores_of(rng, y), y, scores_of(rng, y)).pvalue < 0.05, None


def centres(what: str, rng: np.random.Generator) -> Draws:
    """Eight centres of 150 rows with leads N(1.5, 0.3²). Simple: the interval of all rows as one sample."""
    y, centre = np.tile(rows_of((60, 50, 40)), 8), np.repeat(np.arange(8), 150)
    leads = 1.5 + 0.3 * rng.normal(size=100_000)
    middle = float(special.expit(np.mean(special.logit(stats.norm.cdf(leads / np.sqrt(2.0))))))
    while True:
        scores = scores_of(rng, y, (1.5 + 0.3 * rng.normal(size=8))[centre])
        found, new = measure_by_centre(MulticlassAUC(), y, scores, centre), 1.5 + 0.3 * rng.normal()
        pooled = mauc_interval(y, scores)
        if what == "mean":
            yield found.mean.low <= middle <= found.mean.high, pooled.low <= middle <= pooled.high
        else:
            next_one = float(stats.norm.cdf(new / np.sqrt(2.0)))
            yield found.prediction[0] <= next_one <= found.prediction[1], pooled.low <= next_one <= pooled.high


class Line(NamedTuple):
    """A line of the table."""

    name: str
    rate: str
    """Coverage or size."""
    nominal: float
    source: Callable[[np.random.Generator], Draws]
    draws: int


def _covers(name: str, source: Callable[..., Draws], *arguments: Any, draws: int = 1000) -> Line:
    return Line(name, "coverage", 0.95, partial(source, *arguments), draws)


def _rejects(
    name: str, source: Callable[..., Draws], *arguments: Any, draws: int = 1000, nominal: float = 0.05
) -> Line:
    return Line(name, "size", nominal, partial(source, *arguments), draws)


HARD = (1.5, -1.5, 0.0)
LINES = [
    _rejects("non-inferiority, 3 × 20, AUC .88 and .98", margins, (20, 20, 20), 0.88, 0.98, nominal=0.025),
    _rejects("non-inferiority, 300, 60, 15, AUC .90 and .95", margins, (300, 60, 15), 0.9, 0.95, nominal=0.025),
    _rejects("non-inferiority, 300, 60, 15, AUC .93 and .98", margins, (300, 60, 15), 0.93, 0.98, nominal=0.025),
    _rejects("a level against the others, 3 × 300", subgroups, 3, 300, draws=400),
    _rejects("a level against the others, 8 × 150", subgroups, 8, 150, draws=400),
    _rejects("any difference, 3 × 300", any_level, 3, 300, draws=400),
    _rejects("any difference, 8 × 150", any_level, 8, 150, draws=400),
    _covers("ROC band of 300 against 300, 10", bands, (300, 300, 10), HARD, "simultaneous", draws=200),
    _covers("ROC band of 1000 against 5000, 100", bands, (1000, 5000, 100), HARD, "simultaneous", draws=200),
    _covers("ROC band of 50 against 50, 50", bands, (50, 50, 50), (1.5, 0.0, 0.0), "simultaneous", draws=200),
    _covers("the same, 300 against 300, 10, at the rate .01", bands, (300, 300, 10), HARD, "0.01", draws=400),
    _covers("the same, 300 against 300, 10, at the rate .05", bands, (300, 300, 10), HARD, "0.05", draws=400),
    _covers("ROC band of 150 against 150, groups of 5", bands, (150, 150), (1.5, 0.0), "groups", draws=200),
    _covers("rows for a width, pilots of 150, 40, 10", pilots, draws=200),
    _covers("weakest of 45 pairs, 30 rows of each class", weakest, 10, 30, draws=400),
    _covers("weakest of 190 pairs, 20 rows of each class", weakest, 20, 20, draws=200),
    _covers("cross-validation, 50, 30, 20", folds, (50, 30, 20), "coverage", draws=400),
    _rejects("cross-validation, 50, 30, 20", folds, (50, 30, 20), "size", draws=400),
    _covers("importance, 2 × 40", importance),
    _covers("PDI, 3 × 20", classes_measure, PDI(), (20, 20, 20), "coverage"),
    _covers("PDI, 150, 40, 10", classes_measure, PDI(), (150, 40, 10), "coverage"),
    _covers("PDI of the rarest class, 150, 40, 10", classes_measure, PDI(2), (150, 40, 10), "coverage"),
    _covers("PDI, pairs of equal rows, 50, 30, 20", classes_measure, PDI(), (50, 30, 20), "groups"),
    _rejects("PDI of two models, 150, 40, 10", classes_measure, PDI(), (150, 40, 10), "size"),
    *(
        line
        for name, measure in (
            ("sensitivity, 200 rows", AtThreshold("sensitivity", 1, 0.3)),
            ("PPV, 200 rows", AtThreshold("ppv", 1, 0.3)),
            ("net benefit, 200 rows", AtThreshold("net_benefit", 1, 0.3)),
            ("Brier score, 200 rows", ProbabilityError()),
            ("log-loss, 200 rows", ProbabilityError("log_loss")),
            ("calibration intercept, 200 rows", Calibration("intercept", 1, 0)),
            ("calibration slope, 200 rows", Calibration("slope", 1, 0)),
        )
        for line in (
            _covers(name, rows_measure, measure, 200, "coverage"),
            _rejects(f"{name}, two models", rows_measure, measure, 200, "size"),
        )
    ),
    _rejects("two samples of 100, 60, 20", two_samples, (100, 60, 20)),
    _covers("mean of 8 centres", centres, "mean", draws=400),
    _covers("a new centre after 8", centres, "new", draws=400),
]


def write_report(store: Store, folder: Path, *, quick: bool = False) -> list[Path]:
    """Write ``inference.md``; return the file."""
    rows = []
    for cell, line in zip(cells(quick=quick), LINES, strict=True):
        found = store.read(cell.key)
        error = np.sqrt(line.nominal * (1.0 - line.nominal) / found["draws"])
        simple = "–" if found["simple"] is None else f"{found['simple']:.3f}"
        rate = f"{found['rate']:.3f} ± {error:.3f}"
        rows.append([line.name, line.rate, f"{line.nominal:g}", rate, simple, str(found["draws"])])
    head = ["inference", "rate", "should be", "is", "simple method", "draws"]
    page = folder / "inference.md"
    write_whole(page, f"{BEGIN}\n{markdown_table(head, rows)}\n\n{END}")
    return [page]


BEGIN = """# Coverage and size of everything else

The [interval of one score and the paired test](intervals.md) have pages of their own, also for
[grouped rows](interval-groups.md). This page has one line for every other interval and test.
`python -m experiments inference` computes it, in a quarter of an hour.

*Coverage* is the share of draws in which an interval holds the true value, *size* the share in which a test rejects a
true hypothesis. The *simple method* has the same draws: the difference over its standard error; a level against all
other rows as one sample; the interval of the weakest pair alone; cross-validation as one fixed model; grouped rows as
independent; all centres as one.
"""
END = """## What it does not promise

- **Non-inferiority with AUCs near 1 and a class of 15 rows** rejects more often than it should: few rows say little
  about how often the better model errs.
- **ROC bands** are wider than needed at low false positive rates, where there may be no negative row at all.
- **Importance** of a column whose rare values decide the score is skewed, and its interval is symmetric.
- **The size of a study** is known to a factor of about two from a pilot whose rarest class has ten rows.
- **Cross-validation** has a heuristic factor, which is too large for models that hardly depend on their training rows.
- **Net benefit, Brier score, log-loss and calibration** have intervals of Student's t, which need some dozens of rows
  of the class.
"""
