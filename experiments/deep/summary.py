"""All sets at once: every method's scores and ranks, and the tests against adjusted cross-entropy."""

from collections.abc import Sequence
from pathlib import Path

from experiments.deep.report import REFERENCE, paired, searched, write_report
from experiments.deep.results import Results, found, read_results, search_size
from experiments.deep.run import BAYES
from experiments.report_parts import markdown_table
from experiments.score_tables import friedman_sentence, rank_test, score_table
from experiments.store import Store, write_whole

__all__ = ["write_all", "write_summary"]


def write_all(store: Store, folder: Path) -> list[Path]:
    """Write the pages of all sets that have results, on whichever device, and one over all searches."""
    files = []
    for depth, name, device in found(store):
        kinds = {"quick": depth.endswith("quick"), "tuned": depth.startswith("tuned")}
        files += write_report(store, folder, name, device, **kinds)
    return [*files, *write_summary(store, folder)]


def write_summary(store: Store, folder: Path) -> list[Path]:
    """Write ``deep-summary-tuned.md`` of the searches on real sets; none of fewer than two sets.

    A set that was run on several devices is taken from the last, CUDA before the CPU.
    """
    devices = {
        name: device for depth, name, device in found(store) if depth == "tuned" and not name.startswith("simulated")
    }
    by_set = {name: read_results(store, name, device, tuned=True) for name, device in devices.items()}
    by_set = {name: results for name, results in by_set.items() if results}
    if len(by_set) < 2:
        return []
    page = folder / "deep-summary-tuned.md"
    sizes = [search_size(store, name, devices[name]) for name in by_set]
    write_whole(page, _markdown(by_set, sizes))
    return [page]


def _markdown(by_set: dict[str, Results], sizes: Sequence[tuple[int, int]]) -> str:
    sets = list(by_set)
    everywhere = [m for m in by_set[sets[0]] if m != BAYES and all(_is_whole(by_set[s], m) for s in sets)]
    results = {m: {s: by_set[s][m] for s in sets} for m in everywhere}
    some = list(dict.fromkeys(m for s in sets for m in by_set[s] if m not in results and m != BAYES))
    seeds = ", ".join(f"{len(by_set[s][everywhere[0]])} on {s}" for s in sets) if everywhere else "none"
    parts = [
        f"The table shows the test MAUC × 100 of every method on {len(sets)} real sets, tuned on validation: mean ± "
        f"standard deviation over seeds ({seeds}), and the mean of the ranks on the sets, 1 being best."
    ]
    if some:
        parts.append(f"Methods that lack the score of a set or a seed are left out: {'; '.join(some)}.")
    if results:
        parts.append(score_table(results, sets, "s", 1.0))
    test = rank_test(results, sets)
    parts += [friedman_sentence(test)] if test else []
    parts += [f"## Against {REFERENCE}", _tests(by_set)]
    parts += ["## What was searched", searched(*min(sizes))]
    return "\n\n".join(parts) + "\n"


def _is_whole(results: Results, method: str) -> bool:
    return all(run["test"] is not None for run in results.get(method, [{"test": None}]))


def _tests(by_set: dict[str, Results]) -> str:
    """Tabulate the tests: one row per method, one column per set."""
    tests = {s: paired(results, s) for s, results in by_set.items()}
    names = list(dict.fromkeys(m for by_method in tests.values() for m in by_method))
    rows = []
    for m in names:
        row = [m]
        for s, by_method in tests.items():
            if m not in by_method:
                row.append("–")
                continue
            difference, wins, wilcoxon, corrected = by_method[m]
            number = len(by_set[s][m])
            row.append(f"{difference:+.2f} ({wins} of {number}; {wilcoxon:.3f}, {corrected:.3f})")
        rows.append(row)
    note = (
        f"Each cell has the mean difference to {REFERENCE} on the same seed, the number of seeds above 0, and two "
        "p-values after Holm within the set: Wilcoxon's signed-rank test, and the t-test corrected for splits that "
        "share rows."
    )
    return f"{note}\n\n{markdown_table(['method', *tests], rows)}"
