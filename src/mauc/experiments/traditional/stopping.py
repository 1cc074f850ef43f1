"""What the authors' settings owe to stopping early: test scores after more and more iterations of their solver."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mauc.experiments.report_parts import markdown_table
from mauc.experiments.store import Cell, Store
from mauc.experiments.traditional.run import AUTHORS_SETTINGS, LOSSES, parts_of, with_authors_penalty
from mauc.experiments.tuning import Method, run_method

__all__ = ["ITERATIONS", "NAME", "cells", "table_of_iterations"]

ITERATIONS = (5, 20, 100, 500)
NAME = "stopping early"


def cells(data_home: str | Path | None, *, protocol: str, tables: Sequence[str], n_splits: int) -> list[Cell]:
    """One cell per split and table, on unit rows, with all losses and iterations."""
    home = None if data_home is None else str(data_home)
    return [
        Cell(_key(protocol, table, f"{split:02d}"), _compute, (table, home, protocol, split))
        for split in range(n_splits)
        for table in tables
    ]


def _key(protocol: str, table: str, split: str) -> tuple[str, ...]:
    return ("full", protocol, "rows", table, NAME, split)


def _compute(table: str, data_home: str | None, protocol: str, split: int) -> dict[str, Any]:
    parts = parts_of(table, data_home, protocol, "rows", split)
    out: dict[str, Any] = {}
    for loss, (penalty, alpha) in zip(LOSSES, AUTHORS_SETTINGS[table], strict=True):
        out[loss] = []
        for max_iter in ITERATIONS:
            model = with_authors_penalty(loss, penalty, alpha, max_iter)
            fixed = Method(NAME, lambda model=model: model, ({},), "ours")
            out[loss].append(run_method(fixed, parts)["test"])
    return out


def table_of_iterations(store: Store, protocol: str, tables: Sequence[str]) -> str | None:
    """Mean test score × 100 by loss and number of iterations; None where nothing was run."""
    rows = []
    found = {t: sorted(store.path(_key(protocol, t, "x")).parent.glob("*.json")) for t in tables}
    if not all(found.values()):
        return None
    for loss in LOSSES:
        for k, iterations in enumerate(ITERATIONS):
            row = [f"{loss}, {iterations} iterations"]
            for table in tables:
                scores = [store.read(_key(protocol, table, path.stem))[loss][k] for path in found[table]]
                row.append(f"{100 * np.mean(scores):.2f}")
            rows.append(row)
    return markdown_table(["authors' λ and α", *tables], rows)
