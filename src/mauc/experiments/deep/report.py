"""Tables 2, 3 and 4 and the figure of the deep experiments, from the results that are on disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mauc._typing import Floats
from mauc.experiments.deep.data import CLIP, PAPER_SETS
from mauc.experiments.deep.methods import METHODS, PAPER
from mauc.experiments.deep.run import BAYES, SHARES
from mauc.experiments.plots import CEILING, COLORS, OTHERS, OURS, draw_bars, series
from mauc.experiments.report_parts import markdown_table, save_figure, spread
from mauc.experiments.score_tables import done
from mauc.experiments.store import Store, write_whole

__all__ = ["read_results", "write_report"]

Results = dict[str, list[dict[str, Any]]]


def read_results(store: Store, name: str, device: str, *, quick: bool = False) -> Results:
    """Results by method, in the order of the tables, for the seeds that all of them have."""
    prefix = ("quick" if quick else "full", name, device)
    seeds = {m: set(done(store, (*prefix, m))) for m in (BAYES, *METHODS)}
    seeds = {m: some for m, some in seeds.items() if some}
    common = sorted(set.intersection(*seeds.values())) if seeds else []
    return {m: [store.read((*prefix, m, seed)) for seed in common] for m in seeds if common}


def write_report(store: Store, folder: Path, name: str, device: str, *, quick: bool = False) -> list[Path]:
    """Write ``deep-NAME.md`` and ``deep-NAME.png``; returns the files, none where no seed is complete."""
    results = read_results(store, name, device, quick=quick)
    if not results:
        return []
    stem = f"deep-{name}-quick" if quick else f"deep-{name}"
    page = folder / f"{stem}.md"
    write_whole(page, _markdown(results, name, quick))
    return [page, save_figure(_figure(results, name), folder / f"{stem}.png")]


def _markdown(results: Results, name: str, quick: bool) -> str:
    runs = next(iter(results.values()))
    seeds = f"mean ± standard deviation over {len(runs)} seeds, each with its" if len(runs) > 1 else "one seed with its"
    intro = (
        f"Test MAUC × 100 on `{name}`, {seeds} own stratified 80/10/10 split, initial weights and batches. The "
        "epoch is the best on the validation part; the test part chooses nothing. Every method has the same network "
        "and, in an epoch, as many steps."
    )
    if quick:
        intro += " A quick run: fewer rows and epochs, no result to quote."
    notes = list(dict.fromkeys(note for each in results.values() for run in each for note in run["notes"]))
    parts = [intro, "\n".join(f"- {note}" for note in [*notes, *_remarks(results, name)])]
    parts += ["## All pairs of classes (Table 2)", _overall(results, name)]
    parts += ["## The five rarest pairs (Table 3)", _rare(results)]
    parts += ["## Pairs by rarity (Table 4)", _shares(results)]
    parts.append(" ".join(sorted({run["machine"] for each in results.values() for run in each if "machine" in run})))
    return "\n\n".join(parts) + "\n"


def _remarks(results: Results, name: str) -> list[str]:
    out = []
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
    if "LDAM" in results:
        out.append("LDAM has a last layer of cosines, as its authors have it.")
    searched = {n: METHODS[n].grid for n in results if n in METHODS and len(METHODS[n].grid) > 1}
    for method, grid in searched.items():
        shown = "; ".join(", ".join(f"{k} {v}" for k, v in choice.items()) for choice in grid)
        out.append(f"{method} is the best on validation of: {shown}. Its seconds are those of the chosen fit.")
    return out


def _overall(results: Results, name: str) -> str:
    paper = next((k for k, known in enumerate(PAPER_SETS) if name.startswith(f"{known}-")), None)
    head = ["method", "test MAUC", "validation", "epoch", "seconds a fit", "rows trained on", "diverged"]
    head += ["paper"] if paper is not None else []
    best = max((m for n in results if n != BAYES and (m := _mean(_tests(results[n]))) is not None), default=None)
    rows = []
    for method, runs in sorted(results.items(), key=lambda item: -(_mean(_tests(item[1])) or -1.0)):
        mean = _mean(_tests(runs))
        text = _spread(_tests(runs))
        row = [method, f"**{text}**" if method != BAYES and mean is not None and mean == best else text]
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


def _rare(results: Results) -> str:
    pairs: list[Any] = next((r["rare_pairs"] for runs in results.values() for r in runs if r["rare_pairs"]), [])
    scores = {
        m: [[auc for _, _, auc in r["rare_pairs"]] for r in runs if r["rare_pairs"]] for m, runs in results.items()
    }
    note = "AUC × 100 of the pairs whose class sizes have the smallest products, the rarest first."
    return f"{note}\n\n{_by_column([f'{i}, {j}' for i, j, _ in pairs], scores)}"


def _shares(results: Results) -> str:
    scores = {m: [r["shares"] for r in runs if r["shares"]] for m, runs in results.items()}
    note = "Mean AUC × 100 of the pairs of classes, sorted by the product of their sizes, from the rarest."
    return f"{note}\n\n{_by_column([f'{low}–{high} %' for low, high in SHARES], scores)}"


def _by_column(columns: Sequence[str], scores: dict[str, list[list[float | None]]]) -> str:
    """One row per method; its runs have one score per column."""
    rows = [[m, *(_spread([run[k] for run in runs]) for k in range(len(columns)))] for m, runs in scores.items()]
    return markdown_table(["method", *columns], rows)


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
