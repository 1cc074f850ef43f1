"""Tables 2, 3 and 4 and the figure of the deep experiments, from the results that are on disk."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mauc._typing import Floats
from mauc.experiments.deep.data import CLIP, PAPER_SETS, split_sizes
from mauc.experiments.deep.methods import METHODS, PAPER, PAPER_PAIRS
from mauc.experiments.deep.results import Results, depth_of, read_results, search_size
from mauc.experiments.deep.run import BAYES, SHARES
from mauc.experiments.deep.search import in_words, label
from mauc.experiments.plots import CEILING, COLORS, OTHERS, OURS, draw_bars, series
from mauc.experiments.report_parts import markdown_table, save_figure, spread
from mauc.experiments.statistics import resampled_t_holm, wilcoxon_holm
from mauc.experiments.store import Store, write_whole

__all__ = ["REFERENCE", "paired", "write_report"]

REFERENCE = "adjusted CE"
"""What the others are tested against: the best of the methods that do not rank."""
LARGE = "On the large test part:"


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


def _markdown(results: Results, name: str, quick: bool, tried: tuple[int, int] | None) -> str:
    runs = next(iter(results.values()))
    seeds = f"mean ± standard deviation over {len(runs)} seeds, each with its" if len(runs) > 1 else "one seed with its"
    split = "/".join(f"{100 * size:.0f}" for size in split_sizes(name))
    intro = (
        f"Test MAUC × 100 on `{name}`, {seeds} own stratified {split} split, initial weights and batches. The "
        "epoch is the best on the validation part; the test part chooses nothing. Every method has the same network "
        "and, in an epoch, as many steps."
    )
    if quick:
        intro += " A quick run: fewer rows and epochs, no result to quote."
    notes = list(dict.fromkeys(note for each in results.values() for run in each for note in run["notes"]))
    parts = [intro, "\n".join(f"- {note}" for note in [*notes, *_remarks(results, name, tried is not None)])]
    large = _large(results) if any("large" in run for each in results.values() for run in each) else None
    parts += ["## All pairs of classes (Table 2)", _overall(results, name, large)]
    if REFERENCE in results and len(runs) > 2:
        parts += [f"## Against {REFERENCE}, seed by seed", _against(results, name)]
        parts += [LARGE, _differences(large, name)] if large else []
    if tried is not None:
        parts += ["## What was searched", in_words(results, *tried), _settings(results)]
    parts += ["## The five rarest pairs (Table 3)", _rare(results, name)]
    parts += [LARGE, _by_column(*_directions(large))] if large else []
    parts += ["## Pairs by rarity (Table 4)", _shares(results)]
    parts.append(" ".join(sorted({run["machine"] for each in results.values() for run in each if "machine" in run})))
    return "\n\n".join(parts) + "\n"


def _paper_column(name: str) -> int | None:
    """Of the paper's tables, where the set is the paper's: its own name, or that with the hash of a file."""
    return next((k for k, known in enumerate(PAPER_SETS) if re.fullmatch(f"{known}(-[0-9a-f]{{8}})?", name)), None)


def _large(results: Results) -> Results:
    """The same runs, judged on the large test part."""
    return {m: [r["large"] for r in runs if r.get("large")] for m, runs in results.items()}


def _settings(results: Results) -> str:
    rows = [[m, label(runs[0]["params"])] for m, runs in results.items() if m in METHODS]
    return markdown_table(["method", "chosen setting"], rows)


def paired(results: Results, name: str) -> dict[str, tuple[float, int, float, float]]:
    """By method: mean difference to the reference × 100, seeds above it, and p of Wilcoxon's and of the corrected
    t-test, both after Holm; without methods that have a seed without score.
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
        f"Difference of the test MAUC × 100 to {REFERENCE} on the same seed; p of Wilcoxon's signed ranks, and of a "
        "t-test whose variance is corrected for splits that share their rows (Nadeau and Bengio 2003); both after Holm."
    )
    return f"{note}\n\n{_differences(results, name, corrected=True)}"


def _differences(results: Results, name: str, *, corrected: bool = False) -> str:
    """Of all seeds; the correction is for parts that every seed draws anew, which most of a large test part is not."""
    number = len(next(iter(results.values())))
    head = ["method", "difference", "seeds above", "p, Wilcoxon", *(["p, corrected t"] if corrected else [])]
    tests = sorted(paired(results, name).items(), key=lambda item: -item[1][0])
    rows = [
        [m, f"{d:+.2f}", f"{wins} of {number}", f"{p:.3f}", *([f"{t:.3f}"] if corrected else [])]
        for m, (d, wins, p, t) in tests
    ]
    return markdown_table(head, rows)


def _remarks(results: Results, name: str, tuned: bool) -> list[str]:
    out = []
    if _paper_column(name) == 0 and "CE" in results:
        out.append(
            f"The paper has {PAPER['CE'][0]:.1f} for CE and {max(row[0] for row in PAPER.values()):.1f} at best. Such "
            "numbers cannot be had from sound features of these images: here plain CE reaches "
            f"{_spread(_tests(results['CE']))}. Its column shows an order, not a level to compare with."
        )
    ceiling = next((r for r in results.get(BAYES, []) if "ceiling" in r), None)
    if ceiling:
        value, error = 100 * ceiling["ceiling"], 100 * ceiling["ceiling_stderr"]
        out.append(
            f"No scores reach more than {value:.2f} ± {error:.2f}, the Bayes MAUC. The row “{BAYES}” is what the exact "
            "posteriors reach on these test parts."
        )
    for method, runs in results.items():
        bad = [f"seed {k} in epoch {r['diverged']}" for k, r in enumerate(runs) if r.get("diverged")]
        if bad:
            out.append(
                f"{method} diverged (loss or logits not finite): {', '.join(bad)}; what is shown is the best before."
            )
    if not name.endswith("user-imb"):
        out.append(f"Features are standardised by the training part and cut at ±{CLIP:g} deviations.")
    if "LDAM" in results or "LDAM-DRW" in results:
        out.append(
            "LDAM has a last layer of cosines, as its authors have it; LDAM-DRW also weighs the classes anew in the "
            "last fifth of the epochs."
        )
    grids = {n: METHODS[n].grid for n in results if n in METHODS and len(METHODS[n].grid) > 1 and not tuned}
    for method, grid in grids.items():
        shown = "; ".join(", ".join(f"{k} {v}" for k, v in choice.items()) for choice in grid)
        out.append(f"{method} is the best on validation of: {shown}. Its seconds are those of the chosen fit.")
    return out


def _overall(results: Results, name: str, large: Results | None) -> str:
    paper = _paper_column(name)
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


def _rare(results: Results, name: str) -> str:
    note = (
        "AUC × 100 of the pairs whose class sizes have the smallest products, the rarest first, of equal ones those "
        "that come first: AUC_{i|j} / AUC_{j|i}, column i ranking its class above class j, and the other way round."
    )
    columns, scores = _directions(results)
    if _paper_column(name) != 0:
        return f"{note}\n\n{_by_column(columns, scores)}"
    note += " In the last five columns the paper's, which has one number for each of its pairs and does not name them."
    ranks = [f"paper, {rank}" for rank in ("1st", "2nd", "3rd", "4th", "5th")]
    rows = [
        [
            m,
            *_row(runs, len(columns)),
            *(f"{v:.2f}" for v in PAPER_PAIRS.get(m, ())),
            *([""] * (5 - len(PAPER_PAIRS.get(m, ())))),
        ]
        for m, runs in scores.items()
    ]
    return f"{note}\n\n{markdown_table(['method', *columns, *ranks], rows)}"


def _directions(results: Results) -> tuple[list[str], dict[str, list[list[Any]]]]:
    """Pairs, and of each run both directions of each."""
    pairs: list[Any] = next((r["rare_pairs"] for runs in results.values() for r in runs if r["rare_pairs"]), [])
    scores = {
        m: [[pair[3:] for pair in r["rare_pairs"]] for r in runs if r["rare_pairs"]] for m, runs in results.items()
    }
    return [f"{i}, {j}" for i, j, *_ in pairs], scores


def _shares(results: Results) -> str:
    scores = {m: [r["shares"] for r in runs if r["shares"]] for m, runs in results.items()}
    note = "Mean AUC × 100 of the pairs of classes, sorted by the product of their sizes, from the rarest."
    return f"{note}\n\n{_by_column([f'{low}–{high} %' for low, high in SHARES], scores)}"


def _by_column(columns: Sequence[str], scores: dict[str, list[list[Any]]]) -> str:
    """One row per method; its runs have one score per column, or several."""
    return markdown_table(["method", *columns], [[m, *_row(runs, len(columns))] for m, runs in scores.items()])


def _row(runs: Sequence[Sequence[Any]], n_columns: int) -> list[str]:
    cells = []
    for k in range(n_columns):
        values = [run[k] if isinstance(run[k], list) else [run[k]] for run in runs]
        cells.append(" / ".join(_spread(each) for each in zip(*values, strict=True)) or "–")
    return cells


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
    """The best few by rarity of the pairs: more lines would hide one another."""
    for k, method in enumerate(order[: len(COLORS)]):
        rows = [[np.nan if v is None else 100 * v for v in r["shares"]] for r in results[method] if r["shares"]]
        axes.plot(range(len(SHARES)), np.mean(rows, axis=0), label=method, **series(k))
    axes.set_xticks(range(len(SHARES)), [f"{low}–{high}" for low, high in SHARES])
    axes.set(xlabel="pairs of classes, % from the rarest", ylabel="AUC × 100")
    axes.grid(alpha=0.3)
    if order:
        axes.legend(frameon=False, fontsize=7)
