"""One fit of the paper's linear model: the authors' published code against ours, time and objective.

``MAUC_DATA_HOME=… MAUC_AUTHORS_CODE=… python -m benchmarks.authors_code``, where the second folder is
``AUC_Traditional`` of their repository ``joshuaas/Learning-with-Multiclass-AUC-Theory-and-Algorithms``. Their compiled
helper does not build as published; without it their hinge runs its Python twin. Prints a table and writes it to
``results``.
"""

import contextlib
import importlib
import io
import os
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from experiments.report_parts import machine, markdown_table
from experiments.traditional.run import AUTHORS_SETTINGS, LOSSES, TABLES, authors_l2, parts_of
from mauc import MAUCClassifier, SurrogateRisk

THEIRS = {"squared": "LSAUCMLin", "exponential": "expAUCMLin", "hinge": "HingeAUCMLin"}
ITERATIONS, INNER, STEP = 100, 30, 0.5  # of their grid: most iterations, their inner steps, the larger first step
SPLITS, REPEATS = 3, 3


def main() -> None:
    """Fit both on the same rows, with their λ and α, without intercept."""
    code, home = os.environ.get("MAUC_AUTHORS_CODE"), os.environ.get("MAUC_DATA_HOME")
    if not code or not home:
        raise SystemExit("set MAUC_AUTHORS_CODE to the authors' folder AUC_Traditional and MAUC_DATA_HOME to the data")
    sys.path.insert(0, code)
    sys.modules.setdefault("cfunc", types.ModuleType("cfunc"))
    auvm = importlib.import_module("AUVM")
    rows = []
    for table in TABLES:
        for loss, (penalty, alpha) in zip(LOSSES, AUTHORS_SETTINGS[table], strict=True):
            rows.append(_row(table, loss, penalty, alpha, getattr(auvm, THEIRS[loss]), home))
            print(rows[-1], flush=True)
    head = ["table", "loss", "theirs ms", "ours ms", "to their objective ms", "ratio", "ratio to their objective"]
    head += ["their objective", "our objective"]
    text = f"""Mean over {SPLITS} splits of one fit at the authors' λ and α: {ITERATIONS} of their iterations,
{ITERATIONS} of ours with L-BFGS, and ours until its objective is no higher than theirs. Objective: the
normalised risk with its penalty. Their hinge fails on a class of one sample without its compiled helper; such splits
are left out.
{machine()}

{markdown_table(head, rows)}
"""
    out = Path(__file__).parent / "results" / "authors-code.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text(text)
    print(text)


def _row(table: str, loss: str, penalty: float, alpha: float, theirs: Any, home: str) -> list[str]:
    """Return the times of their fit, of ours, and of ours stopped as soon as its objective is no higher than theirs."""
    seconds, objectives = [], []
    for split in range(SPLITS):
        parts = parts_of(table, home, "authors", "rows", split)
        X, y = parts.X_train, np.unique(parts.y_train, return_inverse=True)[1]
        l2 = authors_l2(loss, penalty, int(y.max()) + 1)
        reference = theirs(penalty, ITERATIONS, INNER, alpha, STEP)
        try:
            their_seconds = _seconds(reference, X, y[:, None], 1)
        except IndexError:  # their hinge without its compiled helper: a class of one sample
            continue
        their_objective = _objective(X, y, loss, alpha, l2)(reference.W.T)
        settings: dict[str, Any] = {"alpha": alpha, "l2": l2, "log_loss": 0.0, "fit_intercept": False}
        ours = MAUCClassifier(loss, **settings, max_iter=ITERATIONS)
        our_seconds = _seconds(ours, X, y, REPEATS)
        objectives.append((their_objective, ours.objective_))
        enough = max(1, int(np.argmax(ours.objective_curve_ <= their_objective)))
        seconds.append((their_seconds, our_seconds, _seconds(ours.set_params(max_iter=enough), X, y, REPEATS)))
    if not seconds:
        return [table, loss, *["fails"] * 3, *["-"] * 4]
    a, b, c = 1e3 * np.mean(seconds, axis=0)
    times = [f"{a:.0f}", f"{b:.1f}", f"{c:.1f}", f"{a / b:.0f}", f"{a / c:.0f}"]
    return [table, loss, *times, *(f"{v:.5f}" for v in np.mean(objectives, axis=0))]


def _seconds(model: Any, X: Any, y: Any, repeats: int) -> float:
    """Return the shortest time of some fits."""
    best = np.inf
    for _ in range(repeats):
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, about their code
            begin = time.perf_counter()
            model.fit(X, y)
            best = min(best, time.perf_counter() - begin)
    return float(best)


def _objective(X: Any, y: Any, loss: str, alpha: float, l2: float) -> Callable[[Any], float]:
    """Return the normalised risk with its penalty as a function of the ``(C, d)`` weights."""
    risk = SurrogateRisk(loss, alpha=alpha)
    return lambda weights: risk.value(y, softmax(X @ weights.T, axis=1)) + 0.5 * l2 * float((weights**2).sum())


if __name__ == "__main__":
    main()
