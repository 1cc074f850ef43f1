"""Tabulate many methods on many sets: results, means, ranks, scores, the rarest class pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from experiments.report_parts import markdown_table, spread
from experiments.statistics import RankTest, friedman
from experiments.store import Store
from mauc._typing import Floats, Ints

__all__ = ["Results", "done", "pairs_by_rarity", "points", "rank_test", "rare_pairs_of", "read_common", "score_table"]

Results = dict[str, dict[str, list[dict[str, Any]]]]
"""Runs by method and set, one per split."""


def done(store: Store, prefix: Sequence[str]) -> list[str]:
    """Return the last parts of the keys under ``prefix`` that have a result, sorted."""
    stems = (path.stem for path in store.folder.joinpath(*prefix).glob("*.json"))
    return sorted(stem for stem in stems if (*prefix, stem) in store)


def read_common(store: Store, prefix: Sequence[str], sets: Sequence[str], names: Sequence[str]) -> Results:
    """Return results under ``prefix/set/method/split``, for the splits that all methods have.

    Methods that lack a set are left out, and all of them where a set has no split in common.
    """
    found = {name: {s: set(done(store, (*prefix, s, name))) for s in sets} for name in names}
    whole = {name: by_set for name, by_set in found.items() if all(by_set.values())}
    common = {s: sorted(set.intersection(*(by_set[s] for by_set in whole.values()))) for s in sets} if whole else {}
    if not all(common.values()):
        return {}
    return {name: {s: [store.read((*prefix, s, name, k)) for k in common[s]] for s in sets} for name in whole}


def splits(results: Results) -> str:
    """Describe how many splits the sets have."""
    numbers = sorted({len(runs) for by_set in results.values() for runs in by_set.values()})
    if numbers == [1]:
        return "1 split"
    return f"{numbers[0]} splits" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} splits"


def points(results: Results) -> dict[str, dict[str, Floats]]:
    """Return the test scores of the splits, times 100."""
    return {
        name: {s: 100 * np.array([run["test"] for run in runs]) for s, runs in by_set.items()}
        for name, by_set in results.items()
    }


def means(results: Results, sets: Sequence[str]) -> Floats:
    """Return ``(sets, methods)`` mean test scores, times 100; equal where they differ by rounding alone."""
    by_method = points(results)
    return np.array([[by_method[name][s].mean() for name in results] for s in sets]).round(9)


def rank_test(results: Results, sets: Sequence[str]) -> RankTest | None:
    """Run Friedman's test, which needs three methods and three sets."""
    return friedman(means(results, sets)) if len(results) > 2 and len(sets) > 2 else None


def friedman_sentence(test: RankTest) -> str:
    """Describe the test."""
    return (
        f"Friedman: χ² = {test.statistic:.1f}, p = {test.pvalue:.1e}; mean ranks further apart than "
        f"{test.critical_difference:.1f} differ at 5 % (Nemenyi)."
    )


def median_seconds(results: Results, name: str, sets: Sequence[str], time: str = "fit_seconds") -> float:
    """Return the median over the sets and their splits; a failed run may lack the time."""
    return float(np.median([run[time] for s in sets for run in results[name][s] if time in run]))


def with_std(scores: Floats, best: float) -> str:
    """Format mean ± standard deviation, bold where it is the best."""
    text = spread(scores)
    return f"**{text}**" if scores.mean() >= best - 1e-9 else text


def score_table(results: Results, sets: Sequence[str], unit: str, seconds_of_unit: float) -> str:
    """Tabulate mean ± standard deviation by method and set, mean, mean rank and median fit time; highest mean first."""
    names, by_method, mean = list(results), points(results), means(results, sets)
    test = rank_test(results, sets)
    best = mean.max(axis=1)
    rows = []
    for k in np.argsort(-mean.mean(axis=0), kind="stable"):
        row = [names[k]]
        for s, name in enumerate(sets):
            row.append(with_std(by_method[names[k]][name], best[s]))
        digits = 0 if seconds_of_unit < 1 else 2
        seconds = f"{median_seconds(results, names[k], sets) / seconds_of_unit:.{digits}f}"
        rows.append([*row, f"{mean[:, k].mean():.2f}", f"{test.mean_ranks[k]:.1f}" if test else "", seconds])
    return markdown_table(["method", *sets, "mean", "rank", f"fit {unit}"], rows)


def classes_by_rarity(sizes: ArrayLike) -> tuple[Ints, Ints]:
    """Return the two classes of each pair, the smallest product of sizes first, pairs without a sample last."""
    counts = np.asarray(sizes, dtype=np.float64)
    i, j = np.triu_indices(len(counts), 1)
    product = counts[i] * counts[j]
    order = np.argsort(np.where(product > 0, product, np.inf), kind="stable")
    return i[order], j[order]


def pairs_by_rarity(matrix: Floats, sizes: ArrayLike) -> tuple[Ints, Ints, Floats]:
    """Return the pairs of :func:`classes_by_rarity`, and the mean AUC of their two columns, NaN where there is none.

    ``matrix`` is that of :func:`mauc.pairwise_auc`.
    """
    i, j = classes_by_rarity(sizes)
    return i, j, 0.5 * (matrix[i, j] + matrix[j, i])


def rare_pairs_of(run: dict[str, Any], counts: str) -> Floats:
    """Return the AUC of each class pair of a run, the rarest by its ``counts`` first, NaN where there is none."""
    return pairs_by_rarity(_matrix_of(run), run[counts])[2]


def directions_of(run: dict[str, Any], counts: str, k: int) -> Floats:
    """Return ``AUC_{i|j}, AUC_{j|i}`` of each of the ``k`` rarest pairs of a run, one after the other."""
    matrix = _matrix_of(run)
    i, j = (side[:k] for side in classes_by_rarity(run[counts]))
    return np.column_stack([matrix[i, j], matrix[j, i]]).ravel()


def direction_sizes(counts: Sequence[int], k: int) -> list[tuple[int, int]]:
    """Return the sizes of the classes i and j of each value of :func:`directions_of`."""
    pairs = zip(*(side[:k] for side in classes_by_rarity(counts)), strict=True)
    return [sizes for i, j in pairs for sizes in ((counts[i], counts[j]), (counts[j], counts[i]))]


def _matrix_of(run: dict[str, Any]) -> Floats:
    return np.array([[np.nan if v is None else v for v in row] for row in run["matrix"]])
