"""How long a default stack takes to predict 600 rows and one row, and AutoGluon with as much time to train.

``MAUC_DATA_HOME=… python -m benchmarks.stack_prediction [--rival-python PYTHON] [SET …]``: sets of the tabular
experiment, by default two of those with 600 rows or more. Each fit of the stack takes up to ``--seconds``. With
``--rival-python``, the interpreter of an environment that has AutoGluon, AutoGluon is fitted twice for as long on the
same rows, once for each number of rows to predict. Prints wall-clock times; the stack's are the shortest of five.
"""

import argparse
import os
import warnings
from typing import Any

import numpy as np

from benchmarks.measure import alternate, seconds
from experiments.report_parts import machine, markdown_table
from experiments.tabular.against import autogluon_scores
from experiments.tabular.data import load_frame
from mauc import MAUCStackingClassifier

ROWS = (600, 1)


def rows_of(name: str, limit: int, rival_python: str | None) -> list[list[str]]:
    """Return one line of the table for each number of rows to predict."""
    frame, y = load_frame(name, None)
    order = np.random.default_rng(0).permutation(len(y))
    train = order[: len(y) // 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack = MAUCStackingClassifier(time_limit=limit, n_jobs=os.cpu_count()).fit(frame.iloc[train], y[train])
    out = []
    for n in ROWS:
        X = frame.iloc[np.resize(order, n)]
        theirs: float | None = None
        if rival_python is not None:
            rows, cores = (frame.iloc[train], y[train], X), os.cpu_count() or 1
            _, details = autogluon_scores(rival_python, limit, *rows, int(y.max()) + 1, cores=cores)
            theirs = details.get("predict_seconds")
        ours, _ = alternate(lambda X=X: stack.predict_proba(X), lambda: None, repeat=5)
        ratio = "" if theirs is None else f"{ours / theirs:.2f}"
        out.append([name, str(n), seconds(ours), "" if theirs is None else seconds(theirs), ratio])
    return out


def main(arguments: Any = None) -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stack_prediction", description=__doc__)
    parser.add_argument("sets", nargs="*", default=["yeast", "shuttle"])
    parser.add_argument("--seconds", type=int, default=60, help="time limit of each fit (default: 60)")
    parser.add_argument("--rival-python", help="Python of the environment that has AutoGluon")
    options = parser.parse_args(arguments)
    lines = [line for name in options.sets for line in rows_of(name, options.seconds, options.rival_python)]
    print(f"{markdown_table(['set', 'rows', 'stack', 'AutoGluon', 'ratio'], lines)}\n\n{machine()}")


if __name__ == "__main__":
    main()
