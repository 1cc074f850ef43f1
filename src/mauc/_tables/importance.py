"""Compute the permutation importance of a table's columns within a number of seconds."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.flags import column_recall
from mauc._tables.read import Table
from mauc.metrics import Importance, mauc_importance
from mauc.model_selection import some_of_each

PLANS = ((100, 1), (500, 1), (2_000, 1), (2_000, 5))
"""Rows and shuffles, from the quickest plan to the most precise one."""
NO_TIME = "no time for permutation importance: raise the time limit"


def importance_within(
    seconds: float,
    scores: Callable[[Table], Any],
    table: Table,
    labels: NDArray[Any],
    classes: NDArray[Any],
    *,
    groups: NDArray[Any] | None = None,
    seed: int = 0,
    watch: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Importance], str]:
    """Return :func:`mauc.metrics.mauc_importance` of test rows, and a sentence on how it was computed.

    Each column is shuffled five times among up to 2,000 rows. If this would take longer than 80 % of the ``seconds``,
    there are fewer shuffles, then fewer rows, then only the columns that predict best alone. If it takes longer than
    expected, nothing is returned. Two runs with the same plan give the same numbers.
    """
    if len(np.unique(labels)) < 2:
        return [], "no permutation importance: the test rows are of one class"
    stop, planned, n_all = clock() + seconds, 0.8 * seconds, table.shape[1]

    def seconds_of(rows: Any) -> float:
        """Return about how long it takes to shuffle every column once."""
        began = clock()
        scores(table.iloc[rows])
        return n_all * (clock() - began)

    def check_time(column: str) -> None:
        if clock() > stop:
            raise TimeoutError
        watch(column)

    most, n_repeats = PLANS[0]
    rows = some_of_each(labels, most, seed, at_least=min(100, most // 5))
    once = seconds_of(rows)
    for more, repeats in PLANS[1:]:
        if repeats * once > planned:  # more rows take at least as long
            break
        others = some_of_each(labels, more, seed)
        if len(others) > len(rows):
            longer = seconds_of(others)
            if repeats * longer > planned:
                break
            once = longer
        rows, n_repeats, most = others, repeats, more
    columns, n_columns = [str(name) for name in table.columns], max(1, int(planned / max(once, 1e-9) * n_all))
    if n_columns < n_all:
        alone = [column_recall(table[name].iloc[rows], labels[rows]) for name in columns]
        columns = [columns[k] for k in np.argsort(-np.array(alone), kind="stable")[:n_columns]]
    try:
        found = mauc_importance(
            scores,
            table.iloc[rows],
            labels[rows],
            labels=classes,
            columns=columns,
            groups=None if groups is None else groups[rows],
            n_repeats=n_repeats,
            random_state=seed,
            watch=check_time,
        )
    except TimeoutError:
        return [], NO_TIME
    some = f"the {len(columns)} of {n_all} columns that predict best alone, each"
    which = "each column" if len(columns) == n_all else some
    shuffles = "once" if n_repeats == 1 else f"{n_repeats} times"
    reduced = (most, n_repeats) != PLANS[-1] or len(columns) < n_all
    limit = "; a longer time limit allows more" if reduced else ""
    return found, f"{which} shuffled {shuffles} among {len(rows):,} test rows{limit}"
