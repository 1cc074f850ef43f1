"""How long a default stack takes to predict, against asking each of its models itself, and how far the scores differ.

``MAUC_DATA_HOME=… python -m benchmarks.stack_prediction [--tables FOLDER] [set …]``: sets of the tabular
experiment, by default four of those that come with the library; a fit of each takes ten seconds or more. Time of the
processor, the shortest of several; the first prediction after loading, which reads the models, by itself.
"""

import pickle
import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.measure import alternate, seconds
from experiments.report_parts import machine, markdown_table
from experiments.tabular.data import load_frame
from experiments.tabular.run import split_rows
from mauc._typing import Floats
from mauc.ensemble import MAUCStackingClassifier
from mauc.ensemble.bases import class_scores
from mauc.ensemble.fitting import FoldAverage

SETS = ("ecoli", "balance", "yeast", "dermatology")


def asked(stack: Any, X: Any) -> Floats:
    """The combination of what the models say themselves, each of the columns that were made for it."""
    whole = X if stack.columns_ is None else stack.columns_.transform(X)
    by_fold = [columns.transform(X) for columns in stack._fold_columns]
    scores = []
    for model in stack.estimators_:
        if isinstance(model, FoldAverage):
            scores.append(model.mean_scores(by_fold or [X] * len(model.estimators)))
        else:
            scores.append(class_scores(model, whole, len(stack.classes_)))
    return stack._combination.scores(np.array(scores))


def row(name: str, tables: str | None) -> list[str]:
    """One line of the table."""
    frame, y = load_frame(name, None, tables)
    train, test = split_rows(y, 0)
    X = frame.iloc[test]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack = pickle.loads(pickle.dumps(MAUCStackingClassifier().fit(frame.iloc[train], y[train])))
    began = time.process_time()
    found = stack.predict_proba(X)
    first = time.process_time() - began
    expected = asked(stack, X)
    ours, theirs = alternate(
        lambda: stack.predict_proba(X), lambda: asked(stack, X), repeat=7, repeat_theirs=3, clock=time.process_time
    )
    sizes = [str(size) for size in (*X.shape, len(stack.classes_), stack._combination.used.sum())]
    times = [seconds(first), seconds(ours), seconds(theirs), f"{theirs / ours:.1f}"]
    return [name, *sizes, *times, f"{np.abs(found / expected - 1.0).max():.1e}"]


if __name__ == "__main__":
    names = sys.argv[1:]
    folder = names[1] if names[:1] == ["--tables"] else None
    header = ["set", "rows", "columns", "classes", "models used", "first", "stack", "models", "ratio", "difference"]
    lines = [row(name, folder) for name in (names[2:] if folder else names) or SETS]
    print(f"{markdown_table(header, lines)}\n\n{machine()}")
