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

MOST_ROWS, FEWEST_ROWS = 2_000, 500
REPEATS = 5


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
    """:func:`mauc.metrics.mauc_importance`, and by how many shuffles and rows, in words.

    Five shuffles among up to 2,000 rows; one, and among 500, where these would take longer than so many seconds; none,
    and why, where even that would. A table that is not large gets the same numbers however fast the machine is.
    """
    if len(np.unique(labels)) < 2:
        return [], "the columns were not shuffled: the rows judged by are of one class"
    for most, n_repeats in ((MOST_ROWS, REPEATS), (MOST_ROWS, 1), (FEWEST_ROWS, 1)):
        rows = some_of_each(labels, most, seed)
        needs = n_repeats * table.shape[1] * _seconds_of(scores, table.iloc[rows])
        if needs <= seconds:
            break
    else:
        return [], f"the columns were not shuffled, which would take {needs:.0f} s: raise --time-limit"
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
