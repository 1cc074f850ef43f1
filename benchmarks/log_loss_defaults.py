"""How much log-loss a linear model wants: ``MAUCClassifier(log_loss=…)`` over the paper's nine tables.

Needs the data folder: ``MAUC_DATA_HOME=… python -m benchmarks.log_loss_defaults [splits]``. For every table and split
of the authors, each loss is fitted on the training part along a path of penalties. The validation part is cut in two
halves: settings are chosen on one and judged on the other, and the other way round, so that larger grids gain nothing
by chance. The test part is looked at in the last column alone, for settings chosen by the whole validation part.
"""

import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from mauc import MAUCClassifier, datasets, mauc_score
from mauc.experiments.report_parts import machine, markdown_table
from mauc.experiments.tuning import preprocess

SPLITS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
TABLES = (
    *("balance", "dermatology", "ecoli", "new-thyroid", "pageblocks"),
    *("segment-imb", "shuttle", "svmguide2", "yeast"),
)
ALPHAS = (1.0, 4.0, 8.0)
WEIGHTS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
L2S = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
LOSSES: list[tuple[float | str, float | None]] = [*product(WEIGHTS, ALPHAS), ("only", None)]
GRIDS: list[tuple[float | str, ...]] = [
    (0.0,),
    (0.0, "only"),
    (0.0, 1.0, "only"),
    (1.0, "only"),
    (0.0, 0.1, 1.0, "only"),
    (0.1, 1.0, "only"),
    (0.1, 0.3, 1.0, 3.0, "only"),
    (*WEIGHTS, "only"),
]
FIRST, SECOND, WHOLE, TEST = range(4)


def main() -> None:
    """Fit, choose, print."""
    scores = np.array([_scores(name, k) for name in TABLES for k in range(SPLITS)])
    out = Path(__file__).parent / "results"
    out.mkdir(exist_ok=True)
    np.save(out / "log_loss_defaults.npy", scores)
    text = report(scores)
    (out / "log_loss_defaults.md").write_text(text)
    print(text)


def _scores(name: str, k: int) -> Any:
    """``(losses, penalties, 4)`` MAUC on the halves of the validation part, on the whole of it, and on the test."""
    bunch = datasets.load(name)
    train, validation, test = bunch.splits[k]
    X = preprocess(np.asarray(bunch.X, dtype=np.float64), train, "standard")
    y = np.asarray(bunch.y)
    first, second = _halves(y, validation)
    parts = (first, second, validation, test)
    found = np.array([[_judge(model, X, y, parts) for model in _path(loss, X[train], y[train])] for loss in LOSSES])
    best = found[:, :, WHOLE].max(axis=1)
    print(f"{name} {k}: " + " ".join(f"{100 * v:.1f}" for v in best), flush=True)
    return found


def _halves(y: Any, rows: Any) -> tuple[Any, Any]:
    """Every second sample of each class, in the order of the file."""
    order = rows[np.argsort(y[rows], kind="stable")]
    place = np.concatenate([np.arange(n) for n in np.unique(y[rows], return_counts=True)[1]])
    return order[place % 2 == 0], order[place % 2 == 1]


def _path(loss: tuple[float | str, float | None], X: Any, y: Any) -> Any:
    model = MAUCClassifier(alpha=loss[1], log_loss=loss[0], warm_start=True)
    for l2 in L2S:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            yield model.set_params(l2=l2).fit(X, y)


def _judge(model: MAUCClassifier, X: Any, y: Any, parts: tuple[Any, ...]) -> list[float]:
    P = model.predict_proba(X)
    return [mauc_score(y[part], P[part], labels=model.classes_, absent="ignore") for part in parts]


def judged(scores: Any, losses: Any) -> tuple[Any, Any]:
    """``(tables × splits,)`` MAUC × 100 of the losses allowed: on the other half of validation, and on the test."""
    allowed = scores[:, losses].reshape(len(scores), -1, 4)
    rows = np.arange(len(scores))
    other = [allowed[rows, allowed[:, :, a].argmax(axis=1), b] for a, b in ((FIRST, SECOND), (SECOND, FIRST))]
    test = allowed[rows, allowed[:, :, WHOLE].argmax(axis=1), TEST]
    return 50 * (other[0] + other[1]), 100 * test


def report(scores: Any) -> str:
    """Tables of all losses, weights and grids."""
    weight = np.array([str(w) for w, _ in LOSSES])
    by_loss = {f"{w}, α = {a:g}" if a else f"{w}": [k] for k, (w, a) in enumerate(LOSSES)}
    by_weight = {str(w): np.flatnonzero(weight == str(w)) for w in (*WEIGHTS, "only")}
    by_grid = {", ".join(map(str, grid)): np.flatnonzero(np.isin(weight, [str(w) for w in grid])) for grid in GRIDS}
    parts = [
        _table(scores, "log_loss and α (the penalty is chosen)", by_loss),
        _table(scores, "log_loss (α and the penalty are chosen)", by_weight),
        _table(scores, "grid of log_loss (α and the penalty are chosen)", by_grid),
        _by_table(scores, by_weight),
    ]
    head = f"""MAUC × 100 of linear models, exponential, softmax, {SPLITS} splits of {len(TABLES)} tables;
l2 among {L2S}. "Validation": chosen on one half of it, judged by the other. The difference is to
log_loss = 0 with α and the penalty chosen, ± its standard error over the tables; ranks are over tables and splits.
{machine()}
"""
    return "\n".join([head, *parts])


def _table(scores: Any, what: str, groups: dict[str, Any]) -> str:
    found = {name: judged(scores, losses) for name, losses in groups.items()}
    validation = np.array([v for v, _ in found.values()])
    ranks = rankdata(-validation.round(6), axis=0).mean(axis=1)
    bare, _ = judged(scores, [k for k, (w, _) in enumerate(LOSSES) if w == 0])
    rows = [
        [name, f"{v.mean():.2f}", _difference(v - bare), f"{rank:.2f}", f"{t.mean():.2f}"]
        for (name, (v, t)), rank in zip(found.items(), ranks, strict=True)
    ]
    return markdown_table([what, "validation", "difference", "mean rank", "test"], rows) + "\n"


def _by_table(scores: Any, groups: dict[str, Any]) -> str:
    means = {name: judged(scores, losses)[0].reshape(len(TABLES), -1).mean(axis=1) for name, losses in groups.items()}
    rows = [[name, *(f"{v:.1f}" for v in values)] for name, values in means.items()]
    return markdown_table(["log_loss, validation", *TABLES], rows) + "\n"


def _difference(each: Any) -> str:
    by_table = each.reshape(len(TABLES), -1).mean(axis=1)
    return f"{each.mean():+.2f} ± {by_table.std(ddof=1) / np.sqrt(len(TABLES)):.2f}"


if __name__ == "__main__":
    main()
