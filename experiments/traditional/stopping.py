"""What the authors' settings owe to stopping early: test scores after more and more iterations of their solver."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.report_parts import markdown_table
from experiments.score_tables import done
from experiments.store import Cell, Store
from experiments.traditional.run import AUTHORS_SETTINGS, LOSSES, parts_of, with_authors_penalty
from experiments.tuning import Method, run_method

__all__ = ["ITERATIONS", "NAME", "cells", "table_of_iterations"]

ITERATIONS = (5, 20, 100, 500)
NAME = "stopping early"


def cells(
    data_home: str | None,
    *,
    protocol: str,
    tables: Sequence[str],
    n_splits: int,
    iterations: Sequence[int] = ITERATIONS,
) -> list[Cell]:
    """Return one cell per split and table, on unit rows, with all losses and numbers of iterations."""
    return [
        Cell((*_prefix(protocol, table), f"{split:02d}"), _compute, (table, data_home, protocol, split, iterations))
        for split in range(n_splits)
        for table in tables
    ]


def _prefix(protocol: str, table: str) -> tuple[str, ...]:
    return ("full", protocol, "rows", table, NAME)


def _compute(table: str, data_home: str | None, protocol: str, split: int, iterations: Sequence[int]) -> dict[str, Any]:
    parts = parts_of(table, data_home, protocol, "rows", split)
    out: dict[str, Any] = {}
    for loss, (penalty, alpha) in zip(LOSSES, AUTHORS_SETTINGS[table], strict=True):
        out[loss] = []
        for max_iter in iterations:
            model = with_authors_penalty(loss, penalty, alpha, max_iter)
            fixed = Method(NAME, lambda model=model: model, ({},))
            out[loss].append(run_method(fixed, parts)["test"])
    return out


def table_of_iterations(
    store: Store, protocol: str, tables: Sequence[str], iterations: Sequence[int] = ITERATIONS
) -> str | None:
    """Tabulate the mean test score × 100 by loss and number of iterations; None where nothing was run."""
    prefixes = [_prefix(protocol, table) for table in tables]
    found = [[store.read((*prefix, split)) for split in done(store, prefix)] for prefix in prefixes]
    if not all(found):
        return None
    rows = [
        [f"{loss}, {number} iterations", *(f"{100 * np.mean([r[loss][k] for r in runs]):.2f}" for runs in found)]
        for loss in LOSSES
        for k, number in enumerate(iterations)
    ]
    return markdown_table(["authors' λ and α", *tables], rows)
