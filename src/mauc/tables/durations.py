"""About how long a fit takes: what the size of a table allows is decided before it is begun.

Seconds of one core, measured at 300 to 75,000 rows, 5 to 40 columns and 3 to 12 classes; right within a
factor of two or so there, and on the long side where they err. :func:`slowness` compares this machine with that one.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mauc.ensemble import default_estimators

__all__ = ["ROWS_OF_ONE_FOLD", "Size", "StackPlan", "parts_of_stack", "seconds_of", "slowness"]

# Seconds of the work in `slowness` where the durations were measured.
REFERENCE = 0.0135
MOST_NODES = 1_000_000  # of a forest, which are about 100 MB in memory and in the model's file
FEWEST_TREES = 50
ROWS_OF_ONE_FOLD = 20_000  # at most, to learn the weights from where there is a single fold
FULL_TREES = 300
# Those that gain most for their time come first where not all can be had.
BY_VALUE = ("lr", "mauc", "hgb", "lr_strong", "kernel", "et", "mlp", "et_deep", "rf")
NEEDED = ("lr", "mauc", "hgb")
FORESTS = ("et", "et_deep", "rf")
FEWER_ROWS = (20_000, 5_000)


class Size(NamedTuple):
    """Of a table of numbers."""

    rows: int
    columns: int
    classes: int


def seconds_of(model: str, size: Size, n_trees: int = FULL_TREES) -> float:
    """One fit of a model of the stack, by its name there.

    >>> seconds_of("rf", Size(20_000, 20, 5)) > 10 * seconds_of("hgb", Size(200, 20, 5))
    True
    """
    n, d, c = size
    cells = n * d * c
    trees = n_trees * n * math.log2(max(n, 2)) * (1.0 + 0.4 * math.sqrt(d))
    return {
        "lr": 0.01 + 1.0e-7 * cells,
        "lr_strong": 0.01 + 1.0e-7 * cells,
        "mauc": 0.04 + 2.0e-7 * cells,
        "kernel": 0.05 + 2.2e-5 * n * c,
        "et": 1.5e-3 * n_trees + 4.5e-8 * trees,
        "mlp": 0.05 + 9e-4 * n,
        "et_deep": 1.5e-3 * n_trees + 6.0e-8 * trees,
        "rf": 1.5e-3 * n_trees + 1.0e-7 * trees,
        "hgb": 100 * c * (5e-4 + d * (1.7e-4 + 0.9e-8 * n)),
    }[model]


@dataclass(frozen=True, eq=False)
class StackPlan:
    """Models of a stack, the rows and folds they are fitted on, and how long that takes."""

    models: tuple[tuple[str, Any], ...]
    rows: int
    """How many of the training rows are used at all."""
    n_folds: int
    seconds: float


def parts_of_stack(size: Size, seconds: float, n_folds: int, seed: int = 0) -> StackPlan:
    """The largest stack that fits into so many seconds: with all folds and trees, with fewer, with fewer models, with
    fewer rows. The smallest one may take longer than there is.

    >>> table = Size(75_000, 20, 5)
    >>> for seconds in (1000, 20, 10):
    ...     plan = parts_of_stack(table, seconds, n_folds=1)
    ...     print(plan.rows, *(name for name, _ in plan.models))
    75000 lr lr_strong mauc kernel mlp hgb
    75000 lr lr_strong mauc hgb
    20000 lr mauc hgb
    """
    trees = _most_trees(size.rows)
    tried = []
    if n_folds > 1:
        # Boosting takes longest where rows are few and classes many, and gains least.
        quick = [name for name in BY_VALUE if name != "hgb"]
        options = ((BY_VALUE, trees), (BY_VALUE, min(100, trees)), (quick, min(100, trees)))
        tried = [_plan(names, size, n_folds, n_trees, seed) for names, n_trees in options]
    for rows in (size.rows, *(fewer for fewer in FEWER_ROWS if fewer < size.rows)):
        some = size._replace(rows=rows)
        n_trees = min(100, _most_trees(rows))
        tried.append(_plan(BY_VALUE, some, 1, n_trees, seed))
        names = list(NEEDED)
        for name in BY_VALUE:
            if name not in names and _plan([*names, name], some, 1, n_trees, seed).seconds <= seconds:
                names.append(name)
        tried.append(_plan(names, some, 1, n_trees, seed))
    return next((plan for plan in tried if plan.seconds <= seconds), tried[-1])


def _most_trees(rows: int) -> int:
    return int(min(FULL_TREES, MOST_NODES / (2 / 3 * rows)))


def _plan(names: Sequence[str], size: Size, n_folds: int, n_trees: int, seed: int) -> StackPlan:
    """Without forests where they would have too few trees; one fold is fitted on few rows where there are many."""
    names = [name for name in names if n_trees >= FEWEST_TREES or name not in FORESTS]
    models = [(name, model) for name, model in default_estimators(seed, max(1, n_trees)) if name in names]
    in_fold = size._replace(rows=min(size.rows, ROWS_OF_ONE_FOLD)) if n_folds == 1 else size
    cells = in_fold.rows * size.classes
    combining = 1.2e-5 * cells if n_folds == 1 else 0.5 + (2e-4 if size.rows <= 5000 else 4e-5) * cells
    total = sum(seconds_of(name, size, n_trees) + n_folds * seconds_of(name, in_fold, n_trees) for name in names)
    return StackPlan(tuple(models), size.rows, n_folds, total + combining)


def slowness() -> float:
    """How many times longer this machine takes, at this moment, than the one where the durations were measured."""
    from sklearn.ensemble import ExtraTreesClassifier

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 10)), rng.integers(0, 3, 1000)
    trees = ExtraTreesClassifier(10, min_samples_leaf=3, random_state=0)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        trees.fit(X, y)
        took.append(time.perf_counter() - began)
    return max(0.5, min(took) / REFERENCE)
