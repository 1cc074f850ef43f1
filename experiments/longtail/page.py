"""The page of the long-tail experiment: new runs join those in ``experiments/results/longtail.csv``."""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from experiments.longtail.stability import BASE as STEADY_BASE
from experiments.longtail.stability import LOSSES, RESULTS
from experiments.report_parts import folded, markdown_table
from experiments.store import Store, write_whole

__all__ = ["page", "read_runs", "write_report"]

PUBLISHED = RESULTS.parent / "longtail.csv"
KEY = ("set", "part", "method", "seed", "epochs", "batch", "optimizer", "rate", "decay", "blocks")
NUMBERS = ("mauc", "mauc_head", "mauc_middle", "mauc_tail", "mauc_adjusted", "accuracy", "accuracy_tail")
BASE = "adjusted:tau=1"
NAMES = {
    "mauc": "**`MAUCLoss(class_counts)`**",
    "adjusted": "adjusted cross-entropy",
    "weighted": "class-weighted cross-entropy",
    "vs": "VS loss",
    "cb-focal": "class-balanced focal loss",
    "ldam": "LDAM, deferred weights",
    "limited": "pair term, limited",
}
SETS = {
    "cifar10-lt": "CIFAR-10-LT", "cifar100-lt": "CIFAR-100-LT", "ham10000-part": "HAM10000",
    "letter-imb": "letter", "digits-imb": "digits", "kddcup99": "KDD Cup 99", "flowers102": "flowers102",
    "caltech101": "caltech101", "cifar100-imb": "CIFAR-100-Imb", "cifar100-imb-32px": "CIFAR-100-Imb, 32 px",
}  # fmt: skip
Run = dict[str, Any]


def write_report(store: Store, folder: Path, depth: str) -> list[Path]:
    """Write ``longtail.csv`` and ``longtail.md`` of the published and the new runs; of a quick run the new ones."""
    published = read_runs(PUBLISHED) if depth == "full" else []
    new = [_flat(json.loads(path.read_text())) for path in sorted((store.folder / depth).rglob("*.json"))]
    runs = {tuple(str(run[key]) for key in KEY): run for run in (*published, *new)}
    kept, text = [runs[key] for key in sorted(runs)], StringIO()
    writer = csv.DictWriter(text, [*KEY, *NUMBERS], lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    files = {folder / "longtail.csv": text.getvalue(), folder / "longtail.md": page(kept)}
    for path, content in files.items():
        write_whole(path, content)
    return list(files)


def _flat(line: Run) -> Run:
    """Return a result as a row of the table; empty where the network gave no finite scores."""
    out = {key: line[key] for key in KEY}
    mauc, accuracy = line.get("mauc_softmax", [""] * 4), line.get("accuracy_softmax", [""] * 4)
    out |= dict(zip(NUMBERS[:4], mauc, strict=True))
    out |= {"mauc_adjusted": line.get("mauc_adjusted", [""])[0], "accuracy": accuracy[0], "accuracy_tail": accuracy[3]}
    return {key: round(x, 6) if isinstance(x, float) and key in NUMBERS else x for key, x in out.items()}


def read_runs(path: Path) -> list[Run]:
    """Return the runs of a CSV file."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    whole = {"seed": int, "epochs": int, "batch": int, "rate": float, "decay": float, "blocks": int}
    numbers = dict.fromkeys(NUMBERS, lambda x: float(x) if x else "")
    return [{key: {**whole, **numbers}.get(key, str)(value) for key, value in row.items()} for row in rows]


def page(runs: Sequence[Run], steady: Path = RESULTS) -> str:
    """Return the page as Markdown."""
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    small = [r for r in runs if r["blocks"] == 1]
    for name, lines in {
        "SETS": sets_table([r for r in runs if r["blocks"] == 0]),
        "STEPS": steps_table(small),
        "SPLITS": splits_table([r for r in runs if r["part"] == "validation"]),
        "RIVALS": rivals_table([r for r in runs if r["blocks"] == 5 and r["part"] == "test"]),
        "STEADY": steady_tables(steady),
    }.items():
        text = text.replace(f"<!-- {name} -->", lines)
    return text


def _label(method: str) -> str:
    name, _, settings = method.partition(":")
    if method in (BASE, "adjusted:tau=0"):
        return NAMES["adjusted"] if method == BASE else "cross-entropy"
    words = settings.replace("alpha=", "α = ").replace("weight=", "weight ").replace("tau=", "τ = ")
    words = words.replace("rho=", "ρ = ").replace("gamma=", "γ = ").replace("beta=", "β = ").replace(",", ", ")
    words = words.replace("free=1", "not divided").replace("rows=1", "row by row")
    return NAMES[name] + (f", {words}" if words else "")


def _by(runs: Iterable[Run], *keys: str) -> dict[tuple[Any, ...], dict[int, Run]]:
    out: dict[tuple[Any, ...], dict[int, Run]] = defaultdict(dict)
    for run in runs:
        out[tuple(run[key] for key in keys)][run["seed"]] = run
    return out


def _points(run: Run, key: str = "mauc") -> float:
    return 100.0 * run[key] if run[key] != "" else 50.0


def _differences(own: dict[int, Run], base: dict[int, Run], key: str = "mauc") -> list[float]:
    return [_points(own[s], key) - _points(base[s], key) for s in sorted(own) if s in base]


def _spread(values: Sequence[float]) -> str:
    if not len(values):
        return "–"
    mean = f"{np.mean(values):+.2f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1) / len(values) ** 0.5:.2f}"


def _against_base(found: dict[tuple[Any, ...], dict[int, Run]], base: dict[int, Run], method: str) -> list[str]:
    """Return seeds, mean MAUC × 100, its difference to the base, accuracy and its difference."""
    own = found[method,]
    mean, accuracy = (np.mean([_points(run, key) for run in own.values()]) for key in ("mauc", "accuracy"))
    gains, right = ([] if own is base else _differences(own, base, key) for key in ("mauc", "accuracy"))
    return [str(len(own)), f"{mean:.2f}", _spread(gains), f"{accuracy:.1f}", _spread(right)]


COLUMNS = ("seeds", "MAUC", "difference", "accuracy", "difference")


def sets_table(runs: Sequence[Run]) -> str:
    """Tabulate the sets on which the recommended loss was trained, with its rivals on the same rows."""
    rows = []
    for (name, part), own in _by((r for r in runs if r["method"] == "mauc"), "set", "part").items():
        found = _by((r for r in runs if (r["set"], r["part"]) == (name, part) and r["seed"] in own), "method")
        for method in (BASE, "mauc", "adjusted:tau=0", "weighted"):
            if (method,) in found and (BASE,) in found:
                rows.append([SETS[name], part, _label(method), *_against_base(found, found[BASE,], method)])
    return markdown_table(["set", "rows", "loss", *COLUMNS], rows)


def steps_table(runs: Sequence[Run]) -> str:
    """Tabulate ResNet-8 on CIFAR-10-LT: losses and learning rates."""
    base = _by((r for r in runs if r["rate"] == 0.1), "method")[BASE,]
    rows = []
    for rate in sorted({r["rate"] for r in runs}):
        found = _by((r for r in runs if r["rate"] == rate), "method")
        each = [[_label(m), f"{rate:g}", *_against_base(found, base, m)] for (m,) in found]
        rows += sorted(each, key=lambda row: -float(row[3]))
    return markdown_table(["loss", "rate", *COLUMNS], rows)


def rivals_table(runs: Sequence[Run]) -> str:
    """Tabulate the CIFAR-LT sets by head, middle and tail."""
    keys = ("mauc", "mauc_head", "mauc_middle", "mauc_tail", "accuracy", "accuracy_tail")
    rows = []
    for (name, epochs, method), by_seed in _by(runs, "set", "epochs", "method").items():
        means = [np.mean([_points(r, key) for r in by_seed.values()]) for key in keys]
        numbers = [*(f"{x:.2f}" for x in means[:4]), *(f"{x:.1f}" for x in means[4:])]
        rows.append((name, -epochs, -means[0], [SETS[name], str(epochs), _label(method), str(len(by_seed)), *numbers]))
    names = ["set", "epochs", "loss", "runs", "MAUC", "head", "middle", "tail", "accuracy", "of the tail"]
    return markdown_table(names, [row for *_, row in sorted(rows)])


def splits_table(runs: Sequence[Run]) -> str:
    """Tabulate KDD Cup 99: the difference to adjusted cross-entropy on the same rows."""
    found = _by((r for r in runs if r["set"] == "kddcup99"), "method")
    rows = []
    for (method,), own in found.items():
        gains = _differences(own, found.get((BASE,), {}))
        if method != BASE and len(gains) >= 4:
            numbers = (np.median(gains), min(gains), max(gains))
            rows.append([_label(method), str(len(gains)), _spread(gains), *(f"{x:+.2f}" for x in numbers)])
    return markdown_table(["loss", "splits", "mean difference", "median", "lowest", "highest"], rows)


def steady_tables(path: Path) -> str:
    """Tabulate the settings of :mod:`experiments.longtail.stability`: by data and optimiser, then each."""
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    cells: dict[tuple[str, ...], dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    shown = ("data", "classes", "noise", "optimizer", "batch", "normalised", "dtype")
    for line in lines:
        cells[tuple(line[key] for key in shown)][line["loss"]].append((float(line["mauc"]), float(line["accuracy"])))
    rivals = [name for name in LOSSES if name != STEADY_BASE]
    gains = {
        key: {name: np.mean(by[name], 0) - np.mean(by[STEADY_BASE], 0) for name in rivals} for key, by in cells.items()
    }
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for key, gain in gains.items():
        groups[key[:4]].append(gain)
    by_group = []
    for (data, classes, noise, optimizer), each in groups.items():
        means = {name: np.mean([gain[name] for gain in each], 0) for name in rivals}
        worst = min(gain["MAUCLoss"][0] for gain in each)
        row = [f"{data}, {classes} classes, {100 * float(noise):g} % noise", optimizer, str(len(each))]
        by_group.append([*row, f"{worst:+.2f}", *(f"{means[name][0]:+.2f}, {means[name][1]:+.1f}" for name in rivals)])
    each_gain = np.array([gain["MAUCLoss"] for gain in gains.values()])
    lowest, (mean, right) = each_gain[:, 0].min(), each_gain.mean(0)
    above = (
        f"In {len(each_gain)} settings `MAUCLoss` is at worst {-lowest:.2f} below adjusted cross-entropy; the mean "
        f"difference is {mean:+.2f}, with {right:+.1f} points of accuracy."
    )
    summary = markdown_table(["data", "optimiser", "settings", "lowest of `MAUCLoss`", *rivals], by_group)
    whole = []
    for key, by in cells.items():
        base = np.mean(by[STEADY_BASE], 0)
        numbers = [f"{base[0]:.2f}, {base[1]:.1f}", *(f"{x[0]:+.2f}, {x[1]:+.1f}" for x in gains[key].values())]
        whole.append([*key, *numbers])
    table = markdown_table([*shown, STEADY_BASE, *rivals], whole)
    return f"{above}\n\n{summary}\n\n{folded(f'All {len(whole)} settings', table)}"
