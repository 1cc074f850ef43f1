"""Compute cells and print a line of each, where rich and typer are not installed."""

import time
from collections.abc import Sequence

from mauc.experiments.store import Cell, Store, compute, missing_of

__all__ = ["print_cells"]


def print_cells(cells: Sequence[Cell], store: Store, jobs: int, stop_at: float | None) -> None:
    """Compute the cells that the store lacks, in so many processes; after ``stop_at`` none is begun.

    A cell that fails is told on stderr and the others go on: a long run is not lost to one method.
    """
    missing, began, done = missing_of(cells, store), time.time(), 0
    print(f"{len(cells)} fits, {len(cells) - len(missing)} of them there already", flush=True)
    for keys in compute(missing, store, jobs=jobs, stop_at=stop_at, keep_going=True):
        done += len(keys)
        for key in keys:
            result = store.read(key)
            shown = " ".join(f"{k} {100 * v:.2f}" for k in ("validation", "test") if (v := result.get(k)) is not None)
            seconds = result.get("fit_seconds", 0.0)
            pace = f"{done} of {len(missing)} in {time.time() - began:.0f} s"
            print(f"{pace}: {' / '.join(key[3:])}: {shown}, {seconds:.2f} s to fit", flush=True)
    if done < len(missing):
        print(f"{len(missing) - done} are left: run the same command again", flush=True)
