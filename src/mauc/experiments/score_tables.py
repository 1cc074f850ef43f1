"""What the experiments with many methods on many sets share: reading results, means, ranks, the table of scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mauc._typing import Floats
from mauc.experiments.report_parts import markdown_table
from mauc.experiments.statistics import RankTest, friedman
from mauc.experiments.store import Store

__all__ = [
    "Results",
    "fit_seconds",
    "means",
    "pair_scores",
    "points",
    "rank_test",
    "read_common",
    "score_table",
    "splits",
    "with_std",
]

Results = dict[str, dict[str, list[dict[str, Any]]]]
"""Runs by method and set, one per split."""


def read_common(store: Store, prefix: Sequence[str], sets: Sequence[str], names: Sequence[str]) -> Results:
    """Results under ``prefix/set/method/split``, for the splits that all methods have; methods that lack a set, and
    all of them where a set has no split in common, are left out.
    """
    stems: dict[str, dict[str, set[str]]] = {}
    for name in names:
        folders = {s: store.folder.joinpath(*prefix, s, name) for s in sets}
        done = {s: {path.stem for path in folder.glob("*.json")} for s, folder in folders.items()}
        if all(done.values()):
            stems[name] = done
    common = {s: sorted(set.intersection(*(done[s] for done in stems.values()))) for s in sets} if stems else {}
    if not all(common.values()):
        return {}
    return {name: {s: [store.read((*prefix, s, name, k)) for k in common[s]] for s in sets} for name in stems}


def splits(results: Results) -> str:
    """How many splits the sets have, as words."""
    numbers = sorted({len(runs) for by_set in results.values() for runs in by_set.values()})
    if numbers == [1]:
        return "1 split"
    return f"{numbers[0]} splits" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} splits"


def points(results: Results) -> dict[str, dict[str, Floats]]:
    """Test scores of the splits, times 100."""
    return {
        name: {s: 100 * np.array([run["test"] for run in runs]) for s, runs in by_set.items()}
        for name, by_set in results.items()
    }


def means(results: Results, sets: Sequence[str]) -> Floats:
    """``(sets, methods)`` mean test scores, times 100; equal where they differ by rounding alone."""
    by_method = points(results)
    return np.array([[by_method[name][s].mean() for name in results] for s in sets]).round(9)


def rank_test(results: Results, sets: Sequence[str]) -> RankTest | None:
    """Friedman's test, which takes three methods and three sets."""
    return friedman(means(results, sets)) if len(results) > 2 and len(sets) > 2 else None


def fit_seconds(results: Results, name: str, sets: Sequence[str]) -> float:
    """Median over the sets and their splits."""
    return float(np.median([run["fit_seconds"] for s in sets for run in results[name][s]]))


def with_std(scores: Floats, best: float) -> str:
    """Mean ± standard deviation, bold where it is the best."""
    text = f"{scores.mean():.2f} ± {scores.std():.2f}"
    return f"**{text}**" if scores.mean() >= best - 1e-9 else text


def score_table(results: Results, sets: Sequence[str], unit: str, seconds_of_unit: float) -> str:
    """Mean ± standard deviation by method and set, mean, mean rank and median fit time; highest mean first."""
    names, by_method, mean = list(results), points(results), means(results, sets)
    test = rank_test(results, sets)
    best = mean.max(axis=1)
    rows = []
    for k in np.argsort(-mean.mean(axis=0), kind="stable"):
        row = [names[k]]
        for s, name in enumerate(sets):
            row.append(with_std(by_method[names[k]][name], best[s]))
        digits = 0 if seconds_of_unit < 1 else 2
        seconds = f"{fit_seconds(results, names[k], sets) / seconds_of_unit:.{digits}f}"
        rows.append([*row, f"{mean[:, k].mean():.2f}", f"{test.mean_ranks[k]:.1f}" if test else "", seconds])
    return markdown_table(["method", *sets, "mean", "rank", f"fit {unit}"], rows)


def pair_scores(run: dict[str, Any], counts: str) -> tuple[Floats, Floats]:
    """AUC of each unordered pair of classes, NaN where there is none, and the product of the pair's class sizes."""
    matrix = np.array([[np.nan if v is None else v for v in row] for row in run["matrix"]])
    sizes = np.array(run[counts], dtype=float)
    i, j = np.triu_indices(len(sizes), 1)
    return 0.5 * (matrix[i, j] + matrix[j, i]), sizes[i] * sizes[j]
