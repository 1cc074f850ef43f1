"""The experiments by name: what each shows, what it needs installed, and how it becomes cells and a report.

The experiment NAME is the function ``experiment(**options)`` of ``mauc.experiments.NAME``, imported when it is run: the
list must be readable without torch, matplotlib or imbalanced-learn.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from mauc.experiments.store import Cell, Store

__all__ = ["EXPERIMENTS", "Experiment", "load"]

PLOT = {"matplotlib": "plot"}
SAMPLERS = {"imblearn": "bench", **PLOT}
TORCH = {"torch": "torch", "lightning": "torch", "torchmetrics": "torch", **PLOT}
EXPERIMENTS: dict[str, tuple[str, dict[str, str]]] = {
    "acceleration": ("Loops over all pairs against the exact schemes (the paper's acceleration figure).", PLOT),
    "generalization": ("Gap between training and test risk over size and imbalance, and what closes it.", PLOT),
    "traditional": ("Nine tables, fifteen splits, all methods (the paper's Figures 1 and 2).", SAMPLERS),
    "deep": ("Deep networks with every method on one set (the paper's Tables 2 to 4).", {**TORCH, **SAMPLERS}),
    "runtime": ("Seconds per epoch of the exact losses, of loops over class pairs, and of plain loops.", TORCH),
    "consistency": ("More and more samples: which losses come to the Bayes MAUC.", TORCH),
    "tabular": ("Real tables: models, competitors, combinations; tests.", {**SAMPLERS, "lightgbm": "boosting"}),
}
"""By name: what it shows, and the modules it needs with the extras of mauc that install them."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure whose options are settled."""

    cells: Sequence["Cell"]
    """What is to be computed; a cell names its result, and brings the function that computes it."""
    report: Callable[["Store", Path], list[Path]]
    """Writes pages and figures of the results in a store into a folder; returns the files."""
    check: Callable[["Store"], object] | None = None
    """Reads the data before anything is computed, so that what is missing is told at once."""
    then: Callable[["Store"], Sequence["Cell"]] | None = None
    """Cells that follow from the results of the first."""
    minutes: float | None = None
    """After so many no cell is begun; what is missing then is computed by the next run."""

    def run(self, folder: Path, *, jobs: int = 1, console: "Console | None" = None) -> list[Path]:
        """Compute the cells that ``folder/cells`` lacks, then write the report into the folder; returns its files."""
        from mauc.experiments.store import Store, run_cells

        store = Store(folder / "cells")
        if self.check is not None:
            self.check(store)
        stop_at = None if self.minutes is None else time.time() + 60.0 * self.minutes
        run_cells(self.cells, store, jobs=jobs, console=console, stop_at=stop_at)
        if self.then is not None:
            run_cells(self.then(store), store, jobs=jobs, console=console, stop_at=stop_at)
        return self.report(store, folder)


def load(name: str, **options: Any) -> Experiment:
    """The experiment of that name with these options; an ImportError in one line where something is not installed."""
    _, needs = EXPERIMENTS[name]
    missing = {module: extra for module, extra in needs.items() if find_spec(module) is None}
    if missing:
        extras = ",".join(sorted(set(missing.values())))
        what = f"{' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed"
        raise ImportError(f"mauc bench {name} needs {what}: pip install 'mauc[{extras}]'")
    planned: Experiment = import_module(f"mauc.experiments.{name}").experiment(**options)
    return planned
