"""Tables 2, 3 and 4 and the figure of the deep experiments, from the results that are on disk."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.deep.data import PAPER_SETS, split_sizes
from experiments.deep.methods import METHODS, recipe_of
from experiments.deep.paper import PAPER, PAPER_PAIRS, PAPER_SHARES
from experiments.deep.results import Results, depth_of, read_results, search_size
from experiments.deep.run import BAYES, SHARES
from experiments.deep.search import label
from experiments.plots import CEILING, COLORS, OTHERS, OURS, draw_bars, series
from experiments.report_parts import folded, machines, markdown_table, save_figure, spread
from experiments.statistics import resampled_t_holm, wilcoxon_holm
from experiments.store import Store, write_whole
from mauc._typing import Floats

__all__ = ["REFERENCE", "paired", "searched", "write_report"]

REFERENCE = "adjusted CE"
"""The method that the others are tested against: the best of those that do not rank."""
LARGE = "On the large test part:"
RANKS = ("1st", "2nd", "3rd", "4th", "5th")


def write_report(
    store: Store, folder: Path, name: str, device: str, *, quick: bool = False, tuned: bool = False
) -> list[Path]:
    """Write ``deep-NAME.md`` and ``deep-NAME.png``, of a search ``deep-NAME-tuned.*``; returns the files, none where no
    seed is complete.
    """
    results = read_results(store, name, device, quick=quick, tuned=tuned)
    if not results:
        return []
    depth = depth_of(quick=quick, tuned=tuned)
    stem = f"deep-{name}" if depth == "full" else f"deep-{name}-{depth}"
    page = folder / f"{stem}.md"
    tried = search_size(store, name, device, quick=quick) if tuned else None
    write_whole(page, _markdown(results, name, quick, tried))
    return [page, save_figure(_figure(results, name), folder / f"{stem}.png")]


def paper_column(name: str) -> int | None:
    """Return the column of a set in the paper's tables: its own name, or that with the hash of a file."""
    return next((k for k, known in enumerate(PAPER_SETS) if re.fullmatch(f"{known}(-[0-9a-f]{{8}})?", name)), None)


def searched(number: int, seeds: int) -> str:
    """Say how many settings were tried, and what chose among them."""
    return (
        f"Each method has {number} settings. The highest mean MAUC on the validation parts of {seeds} of the seeds "
        "chooses; the chosen setting is tested on all seeds."
    )


def _markdown(results: Results, name: str, quick: bool, tried: tuple[int, int] | None) -> str:
    runs, column = next(iter(results.values())), paper_column(name)
    split = "/".join(f"{100 * size:.0f}" for size in split_sizes(name))
    recipe = recipe_of(name if column is None else PAPER_SETS[column])
    layers = " and ".join(f"{width:,}" for width in recipe.hidden)
    settings = "the best setting of a search" if tried else "the paper's settings"
    intro = (
        f"This page follows the paper's Tables 2 to 4. The tables show test MAUC × 100 on `{name}`, with {settings}: "
        f"mean ± standard deviation over seeds ({len(runs)}). Each seed has its own stratified {split} split, initial "
        "weights and batches. The validation part chooses the epoch; the test part chooses nothing. All methods have "
        f"hidden layers of {layers} and the same number of steps per epoch."
    )
    if quick:
        intro += " This is a quick run with fewer rows and epochs: do not quote its numbers."
    parts = [intro, "\n".join(f"- {note}" for note in _notes(results))]
    large = _large(results) if any("large" in run for each in results.values() for run in each) else None
    parts += ["## All pairs of classes (Table 2)", _overall(results, name, large)]
    if REFERENCE in results and len(runs) > 2:
        parts += [f"## Against {REFERENCE}, seed by seed", _against(results, name)]
        parts += [LARGE, _differences(large, name)] if large else []
    if tried is not None:
        parts += ["## What was searched", searched(*tried), folded("Chosen settings", _settings(results))]
    parts += ["## The five rarest pairs (Table 3)", *_rare(results, name)]
    parts += [folded("The five rarest pairs, large test part", _by_column(*_directions(large)))] if large else []
    parts += ["## Pairs by rarity (Table 4)", *_shares(results, name)]
    return "\n\n".join([*parts, machines(run for each in results.values() for run in each)]) + "\n"


def _notes(results: Results) -> list[str]:
    """Return the notes of the runs, the ceiling of a simulated set, and the runs that diverged."""
    notes = list(dict.fromkeys(note for each in results.values() for run in each for note in run["notes"]))
    for run in results.get(BAYES, []):
        if "ceiling" in run:
            value, error = 100 * run["ceiling"], 100 * run["ceiling_stderr"]
            notes.append(f"The Bayes MAUC, which no scores exceed, is {value:.2f} ± {error:.2f}.")
    for method, runs in results.items():
        bad = [f"seed {k} in epoch {r['diverged']}" for k, r in enumerate(runs) if r.get("diverged")]
        if bad:
            notes.append(f"{method} diverged: {', '.join(bad)}; the table has the best epoch before.")
    return notes


def _large(results: Results) -> Results:
    """Return the same runs on the large test part."""
    return {m: [r["large"] for r in runs if r.get("large")] for m, runs in results.items()}


def _settings(results: Results) -> str:
    rows = [[m, label(runs[0]["params"])] for m, runs in results.items() if m in METHODS]
    return markdown_table(["method", "chosen setting"], rows)


def paired(results: Results, name: str) -> dict[str, tuple[float, int, float, float]]:
    """Return by method: mean difference to the reference × 100, seeds above it, and p of Wilcoxon's and of the
    corrected t-test, both after Holm; without methods that lack the score of a seed.
    """
    scores = {m: _known(_tests(runs)) for m, runs in results.items() if m != BAYES}
    n_seeds = len(scores.get(REFERENCE, ()))
    names = [m for m, values in scores.items() if len(values) == n_seeds]
    if REFERENCE not in names or n_seeds < 3:
        return {}
    table, at = np.column_stack([scores[m] for m in names]), names.index(REFERENCE)
    train, _, test = split_sizes(name)
    wilcoxon, corrected = wilcoxon_holm(table, at), resampled_t_holm(table, at, ratio=test / train)
    difference = table - table[:, [at]]
    return {
        m: (difference[:, k].mean(), int((difference[:, k] > 0).sum()), wilcoxon[k], corrected[k])
        for k, m in enumerate(names)
        if k != at
    }


def _against(results: Results, name: str) -> str:
    note = (
        f"The table shows the difference of the test MAUC × 100 to {REFERENCE} on the same seed, and two p-values "
        "after Holm: of Wilcoxon's signed-rank test, and of a t-test whose variance is corrected for splits that share "
        "rows (Nadeau and Bengio 2003)."
    )
    return f"{note}\n\n{_differences(results, name, corrected=True)}"


def _differences(results: Results, name: str, *, corrected: bool = False) -> str:
    """Tabulate :func:`paired`. The correction is for test parts that every seed draws anew, not for the large one."""
    number = len(next(iter(results.values())))
    head = ["method", "difference", "seeds above", "p, Wilcoxon", *(["p, corrected t"] if corrected else [])]
    tests = sorted(paired(results, name).items(), key=lambda item: -item[1][0])
    rows = [
        [m, f"{d:+.2f}", f"{wins} of {number}", f"{p:.3f}", *([f"{t:.3f}"] if corrected else [])]
        for m, (d, wins, p, t) in tests
    ]
    return markdown_table(head, rows)


def _overall(results: Results, name: str, large: Results | None) -> str:
    paper = paper_column(name)
    head = ["method", "test MAUC"] + (["large test part"] if large else [])
    head += ["validation", "epoch", "seconds a fit", "rows trained on", "diverged"]
    head += ["paper"] if paper is not None else []
    best = max((m for n in results if n != BAYES and (m := _mean(_tests(results[n]))) is not None), default=None)
    rows = []
    for method, runs in sorted(results.items(), key=lambda item: -(_mean(_tests(item[1])) or -1.0)):
        mean = _mean(_tests(runs))
        text = _spread(_tests(runs))
        row = [method, f"**{text}**" if method != BAYES and mean is not None and mean == best else text]
        row += [_spread(_tests(large[method]))] if large else []
        if method == BAYES:
            row += [""] * 5
        else:
            epochs = ", ".join("–" if r["epoch"] is None else str(r["epoch"]) for r in runs)
            gone = sum(r["diverged"] is not None for r in runs)
            row += [
                _spread([r["validation"] for r in runs]),
                f"{epochs} of {runs[0]['epochs']}",
                f"{np.median([r['fit_seconds'] + r['sample_seconds'] for r in runs]):.1f}",
                f"{runs[0]['train_rows']:,}",
                f"{gone} of {len(runs)}" if gone else "",
            ]
        if paper is not None:
            row.append(f"{PAPER[method][paper]:.2f}" if method in PAPER else "")
        rows.append(row)
    return markdown_table(head, rows)


def _rare(results: Results, name: str) -> list[str]:
    note = (
        "“i over j” is AUC_{i|j} × 100, the share of sample pairs in which column i ranks its class above class j. The "
        "table has both directions of the five class pairs with the smallest p_i p_j in the whole set, the rarest "
        "first."
    )
    columns, scores = _directions(results)
    column = paper_column(name)
    paper = {} if column is None else PAPER_PAIRS.get(PAPER_SETS[column], {})
    if paper:
        note += " The last columns are the paper's, which has one number per pair and does not name the pairs."
    return [note, folded("The five rarest pairs", _by_column(columns, scores, paper, RANKS))]


def _directions(results: Results) -> tuple[list[str], dict[str, list[list[Any]]]]:
    """Return the pairs in both directions, and the AUC of each in each run."""
    pairs: list[Any] = next((r["rare_pairs"] for runs in results.values() for r in runs if r["rare_pairs"]), [])
    columns = [title for i, j, *_ in pairs for title in (f"{i} over {j}", f"{j} over {i}")]
    scores = {
        m: [[value for pair in r["rare_pairs"] for value in pair[3:]] for r in runs if r["rare_pairs"]]
        for m, runs in results.items()
    }
    return columns, scores


def _shares(results: Results, name: str) -> list[str]:
    scores = {m: [r["shares"] for r in runs if r["shares"]] for m, runs in results.items()}
    columns = [f"{low}–{high} %" for low, high in SHARES]
    note = (
        "The table shows the mean AUC_{i|j} × 100 of the class pairs, both directions, sorted by p_i p_j in the whole "
        "set, the rarest first."
    )
    paper = PAPER_SHARES if paper_column(name) == PAPER_SETS.index("inaturalist") else {}
    if paper:
        note += " The last columns are the paper's; its row of the hinge is a copy of CBFOCAL's."
    return [note, folded("Pairs by rarity", _by_column(columns, scores, paper, columns))]


def _by_column(
    columns: Sequence[str],
    scores: dict[str, list[list[Any]]],
    paper: Mapping[str, Sequence[float]] | None = None,
    of_paper: Sequence[str] = (),
) -> str:
    """Tabulate one row per method and one score per column; the paper's numbers come last."""
    rows = [[m, *(_spread([run[k] for run in runs]) for k in range(len(columns)))] for m, runs in scores.items()]
    head = ["method", *columns]
    if paper:
        head += [f"paper, {title}" for title in of_paper]
        rows = [[*row, *(f"{v:.2f}" for v in paper.get(row[0], ()))] for row in rows]
        rows = [[*row, *[""] * (len(head) - len(row))] for row in rows]
    return markdown_table(head, rows)


def _tests(runs: Sequence[dict[str, Any]]) -> list[float | None]:
    return [r["test"] for r in runs]


def _known(values: Sequence[float | None]) -> Floats:
    return 100 * np.array([v for v in values if v is not None], dtype=np.float64)


def _mean(values: Sequence[float | None]) -> float | None:
    known = _known(values)
    return float(known.mean()) if len(known) else None


def _spread(values: Sequence[float | None]) -> str:
    return spread(_known(values))


def _figure(results: Results, name: str) -> Any:
    from matplotlib.figure import Figure

    shown = {m: _known(_tests(runs)) for m, runs in results.items()}
    figure = Figure(figsize=(10.0, 0.26 * len(shown) + 1.1), layout="constrained")
    left, right = figure.subplots(1, 2)
    order = draw_bars(left, shown, fontsize=7, color=_color)
    every = np.concatenate(list(shown.values()))
    if len(every):
        left.set_xlim(max(0.0, float(every.min()) - 2.0), min(100.4, float(every.max()) + 1.0))
    left.set_xlabel("test MAUC × 100 (bars: mean, points: seeds)")
    left.set_title(name, fontsize=9)
    _share_lines(right, results, [m for m in reversed(order) if len(shown[m])])
    return figure


def _color(method: str) -> str:
    if method == BAYES:
        return CEILING
    return OURS if METHODS[method].is_ours else OTHERS


def _share_lines(axes: Any, results: Results, order: Sequence[str]) -> None:
    """Draw the best few methods by rarity of the pairs: more lines would hide one another."""
    for k, method in enumerate(order[: len(COLORS)]):
        rows = [[np.nan if v is None else 100 * v for v in r["shares"]] for r in results[method] if r["shares"]]
        axes.plot(range(len(SHARES)), np.mean(rows, axis=0), label=method, **series(k))
    axes.set_xticks(range(len(SHARES)), [f"{low}–{high}" for low, high in SHARES])
    axes.set(xlabel="pairs of classes, % from the rarest", ylabel="AUC × 100")
    axes.grid(alpha=0.3)
    if order:
        axes.legend(frameon=False, fontsize=7)
