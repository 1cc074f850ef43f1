"""Table and figure of the running times."""

from pathlib import Path
from typing import Any

from mauc.experiments.report_parts import markdown_table, save_figure
from mauc.experiments.runtime import CROSS_ENTROPY, LOSSES, PAPER, SETS, WAYS
from mauc.experiments.store import Store, write_whole

__all__ = ["write_report"]

Results = dict[tuple[str, str, str], dict[str, Any]]


def write_report(store: Store, folder: Path, device: str, *, quick: bool = False) -> list[Path]:
    """Write ``runtime-DEVICE.md`` and ``.png`` of what is on disk; returns the files."""
    depth = "quick" if quick else "full"
    results: Results = {}
    for name in SETS:
        for loss in (CROSS_ENTROPY, *LOSSES):
            for way in WAYS:
                key = (depth, device, name, loss, way)
                if key in store:
                    results[name, loss, way] = store.read(key)
    if not results:
        return []
    page = folder / f"runtime-{device}.md"
    write_whole(page, _markdown(results))
    return [page, save_figure(_figure(results), folder / f"runtime-{device}.png")]


def _markdown(results: Results) -> str:
    head = ["set", "loss", *(f"{way}, {whose}" for way in WAYS for whose in ("here", "paper"))]
    head += ["accelerated / cross-entropy", "naive / accelerated"]
    rows = []
    for name in dict.fromkeys(key[0] for key in results):
        for k, loss in enumerate((CROSS_ENTROPY, *LOSSES)):
            found = [results.get((name, loss, way)) for way in WAYS]
            if not any(found):
                continue
            row = [name, loss]
            for way, result in zip(WAYS, found, strict=True):
                theirs = PAPER[name][way] if loss != CROSS_ENTROPY else ("",)
                row += [_seconds(result), theirs[k - 1] if len(theirs) > 1 else theirs[0]]
            row += [_ratio(found[0], results.get((name, CROSS_ENTROPY, "accelerated"))), _ratio(found[2], found[0])]
            rows.append(row)
    note = (
        "Seconds an epoch: the paper's network and batches on random features, 80 % of its number of samples. "
        "“Accelerated” is the exact loss of this library; “selected” loops over pairs of classes and takes all "
        "differences of a pair at once; “naive” loops over pairs of samples; both by autograd. ≈: worked out from the "
        "part of the epoch that was timed; the loops always are. Paper: TITAN RTX, its own code; it gives one range "
        "for the three losses where the table repeats it. " + " ".join(sorted({r["machine"] for r in results.values()}))
    )
    return f"{note}\n\n{markdown_table(head, rows)}\n"


def _seconds(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    return f"{'' if result['share'] >= 1 else '≈ '}{result['seconds']:,.3g}".replace("e+0", "e")


def _ratio(over: dict[str, Any] | None, under: dict[str, Any] | None) -> str:
    return f"{over['seconds'] / under['seconds']:,.3g}x" if over and under else ""


def _figure(results: Results) -> Any:
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(key[0] for key in results))
    figure = Figure(figsize=(3.6 * len(names), 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for shift, color, way in zip((-0.27, 0.0, 0.27), ("#0072B2", "#E69F00", "#BBBBBB"), WAYS, strict=True):
            found = [(k, results[name, loss, way]) for k, loss in enumerate(LOSSES) if (name, loss, way) in results]
            axes.bar([k + shift for k, _ in found], [r["seconds"] for _, r in found], 0.25, color=color, label=way)
        axes.set(yscale="log", title=name, ylabel="seconds per epoch")
        axes.set_xticks(range(len(LOSSES)), LOSSES)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=len(WAYS), frameon=False)
    return figure
