"""The page of the long-tail experiment: new runs join those published in ``docs/results/longtail.csv``."""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from experiments.report_parts import folded, markdown_table
from experiments.store import Store, write_whole

__all__ = ["page", "read_runs", "write_report"]

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "longtail.csv"
KEY = ("set", "part", "method", "seed", "epochs", "batch", "optimizer", "rate", "decay")
NUMBERS = ("mauc", "mauc_head", "mauc_middle", "mauc_tail", "mauc_adjusted", "accuracy", "accuracy_tail")
BASE = "adjusted:tau=1"
NAMES = {
    "mauc": "**`MAUCLoss(class_counts)`**",
    "adjusted": "adjusted cross-entropy",
    "vs": "VS loss",
    "cb-focal": "class-balanced focal loss",
    "ldam": "LDAM, deferred weights",
    "exponential": "exponential",
    "growing": "exponential, α grows",
    "logistic": "logistic",
    "squared": "squared",
    "log-odds": "logistic of log-odds",
    "sigmoid": "exponential of sigmoid scores",
    "log-risk": "log R_i, mean over classes",
    "log-risk-pair": "log R_ij, mean over pairs",
    "log-risk-whole": "log R",
    "soft-class": "log(1 + R_i), mean over classes",
    "soft-whole": "log(1 + R)",
    "soft-fixed": "log(1 + R_i), divided by all classes",
    "soft-share": "log(1 + R_i), weighed by the share of classes expected",
    "soft-shrunk": "log(1 + R_i), classes weighed by n_i / (n_i + rows)",
    "soft-odds": "log(1 + R_i) of log-odds",
    "soft-rows": "logistic against the soft maximum",
    "soft-odds-rows": "logistic of log-odds against the soft maximum",
    "huber": "exponential, straight where t < 0",
    "scaled": "exponential, gradient scaled to cross-entropy's",
    "limited": "log(1 + R_i), slope limited",
    "weighted": "class-weighted cross-entropy",
}
SETS = {
    "cifar100-lt": "CIFAR-100-LT", "cifar10-lt": "CIFAR-10-LT", "ham10000-part": "HAM10000",
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
    whole = {"seed": int, "epochs": int, "batch": int, "rate": float, "decay": float}
    numbers = dict.fromkeys(NUMBERS, lambda x: float(x) if x else "")
    return [{key: {**whole, **numbers}.get(key, str)(value) for key, value in row.items()} for row in rows]


def page(runs: Sequence[Run]) -> str:
    """Return the page as Markdown."""
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    search = [
        r for r in runs if r["part"] == "validation" and not (r["set"] == "letter-imb" and r["optimizer"] == "sgd")
    ]
    stress = [r for r in runs if r["part"] == "validation" and r["set"] == "letter-imb" and r["optimizer"] == "sgd"]
    longest = {
        r["set"]: max(s["epochs"] for s in runs if s["set"] == r["set"] and s["part"] == "test")
        for r in runs
        if r["part"] == "test"
    }
    tested = [r for r in runs if r["part"] == "test"]
    judged = [r for r in tested if r["epochs"] == longest[r["set"]]]
    for name, lines in {
        "JUDGED": judged_table(judged), "PARTS": parts_table(tested), "SEARCH": search_table(search),
        "STRESS": stress_table(stress), "SPLITS": splits_table(search),
    }.items():  # fmt: skip
        text = text.replace(f"<!-- {name} -->", lines)
    return text


def _label(method: str) -> str:
    name, _, settings = method.partition(":")
    words = settings.replace("alpha=", "α = ").replace("weight=", "weight ").replace("tau=", "τ = ")
    words = words.replace("rows=", "rows = ").replace("gamma=", "γ = ").replace("beta=", "β = ").replace(",", ", ")
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
    mean = f"{np.mean(values):+.2f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1) / len(values) ** 0.5:.2f}"


def judged_table(runs: Sequence[Run]) -> str:
    """Tabulate test MAUC × 100 and accuracy of the default beside adjusted cross-entropy, set by set."""
    found = _by(runs, "set", "method")
    rows = []
    for name, shown in SETS.items():
        own, base = found.get((name, "mauc")), found.get((name, BASE))
        if not own or not base:
            continue
        gains = _differences(own, base)
        means = [np.mean([_points(each[s]) for s in sorted(own) if s in base]) for each in (base, own)]
        row = [shown, str(len(gains)), *(f"{mean:.2f}" for mean in means), _spread(gains)]
        rows.append([*row, str(sum(g > 0 for g in gains)), _spread(_differences(own, base, "accuracy"))])
    names = ["adjusted cross-entropy", "`MAUCLoss(class_counts)`"]
    return markdown_table(["set", "seeds", *names, "difference", "seeds above", "accuracy"], rows)


def parts_table(runs: Sequence[Run]) -> str:
    """Tabulate the CIFAR sets by head, middle and tail, with the competitors."""
    images = ("cifar100-lt", "cifar10-lt")
    found = _by((r for r in runs if r["set"] in images), "set", "epochs", "method")
    keys = ("mauc", "mauc_head", "mauc_middle", "mauc_tail", "accuracy", "accuracy_tail")
    rows = []
    for (name, epochs, method), by_seed in found.items():
        means = [np.mean([_points(r, key) for r in by_seed.values()]) for key in keys]
        numbers = [*(f"{x:.2f}" for x in means[:4]), *(f"{x:.1f}" for x in means[4:])]
        row = [SETS[name], str(epochs), _label(method), str(len(by_seed)), *numbers]
        rows.append((images.index(name), -epochs, -means[0], row))
    names = ["set", "epochs", "loss", "runs", "MAUC", "head", "middle", "tail", "accuracy", "of the tail"]
    return markdown_table(names, [row for *_, row in sorted(rows)])


def search_table(runs: Sequence[Run]) -> str:
    """Tabulate all candidates on validation rows: the difference to adjusted cross-entropy on the same rows."""
    found = _by(runs, "set", "method")
    sets = ("cifar100-lt", "letter-imb", "ham10000-part")
    rows = []
    for method in dict.fromkeys(run["method"] for run in runs):
        gains = [_differences(found.get((s, method), {}), found.get((s, BASE), {})) for s in sets]
        if all(gains):
            row = [_label(method), *(f"{_spread(g)} ({len(g)})" for g in gains)]
            rows.append((float(np.mean([np.mean(g) for g in gains])), row))
    best_first = [[*row, f"{mean:+.2f}"] for mean, row in sorted(rows, reverse=True)]
    table = markdown_table(["loss", "CIFAR-100-LT", "letter", "HAM10000", "mean"], best_first)
    return folded(f"All {len(rows)} losses", table)


def splits_table(runs: Sequence[Run]) -> str:
    """Tabulate KDD Cup 99 on other splits: the difference to adjusted cross-entropy on the same rows."""
    found = _by((r for r in runs if r["set"] == "kddcup99"), "method")
    rows = []
    for (method,), own in found.items():
        gains = _differences(own, found.get((BASE,), {}))
        if method != BASE and len(gains) >= 4:
            numbers = (np.median(gains), min(gains), max(gains))
            rows.append([_label(method), str(len(gains)), _spread(gains), *(f"{x:+.2f}" for x in numbers)])
    return markdown_table(["loss", "splits", "mean difference", "median", "lowest", "highest"], rows)


def stress_table(runs: Sequence[Run]) -> str:
    """Tabulate letters with SGD at a rate of 0.1."""
    found = _by(runs, "batch", "method")
    rows = []
    for method in dict.fromkeys(run["method"] for run in runs):
        both = [found.get((batch, method), {}).values() for batch in (32, 128)]
        if all(both):
            rows.append([_label(method), *(f"{np.mean([_points(r) for r in own]):.2f}" for own in both)])
    return markdown_table(["loss", "batches of 32", "batches of 128"], rows)
