"""Which columns of a table a model needs, in as much time as there is."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc.metrics import Importance, mauc_importance
from mauc.tables.holdout import some_of_each
from mauc.tables.read import Table

__all__ = ["importance_within"]

MOST_ROWS, FEWEST_ROWS = 5_000, 500
MOST_REPEATS = 10


def importance_within(
    seconds: float,
    scores: Callable[[Table], Any],
    table: Table,
    labels: NDArray[Any],
    classes: NDArray[Any],
    *,
    between: Sequence[tuple[str, str]] = (),
    seed: int = 0,
    watch: Callable[[str], None] | None = None,
) -> tuple[list[Importance], str]:
    """:func:`mauc.metrics.mauc_importance` by as many shuffles and rows as the seconds allow, and how many, in words.

    None, and why, where one shuffle of each column would take three times as long.
    """
    rows = some_of_each(labels, MOST_ROWS, seed)
    one = _seconds_of(scores, table.iloc[rows])
    if one * table.shape[1] > seconds:
        rows = some_of_each(labels, FEWEST_ROWS, seed)
        one = _seconds_of(scores, table.iloc[rows])
    needs = one * table.shape[1]
    if needs > 3 * seconds:
        return [], f"the columns were not shuffled, which would take {needs:.0f} s: raise --time-limit"
    n_repeats = int(np.clip(seconds / max(needs, 1e-9), 1, MOST_REPEATS))
    found = mauc_importance(
        scores,
        table.iloc[rows],
        labels[rows],
        labels=classes,
        between=between,
        n_repeats=n_repeats,
        random_state=seed,
        watch=watch,
    )
    shuffles = "once" if n_repeats == 1 else f"{n_repeats} times"
    return found, f"each column shuffled {shuffles} among {len(rows)} rows judged by"


def _seconds_of(scores: Callable[[Table], Any], table: Table) -> float:
    began = time.perf_counter()
    scores(table)
    return time.perf_counter() - began
