"""The experiments by name: what each shows, what it needs installed, and how it becomes cells and a report.

An experiment is a module with a function ``experiment(**options)`` that returns an :class:`Experiment`. It is imported
when it is run: the list must be readable without torch, matplotlib or imbalanced-learn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from mauc.experiments.store import Cell, Store

__all__ = ["EXPERIMENTS", "Entry", "Experiment", "load"]

EXTRAS = {
    "imblearn": "bench",
    "lightgbm": "boosting",
    "lightning": "torch",
    "matplotlib": "plot",
    "torch": "torch",
    "torchmetrics": "torch",
}
"""Which extra of mauc installs a module."""
TORCH = ("torch", "lightning", "torchmetrics")


def _nothing(store: "Store") -> None:
    pass


@dataclass(frozen=True)
class Experiment:
    """A table or figure whose options are settled."""

    cells: Sequence["Cell"]
    """What is to be computed; a cell names its result, and brings the function that computes it."""
    report: Callable[["Store", Path], list[Path]]
    """Writes pages and figures of the results in a store into a folder; returns the files."""
    check: Callable[["Store"], object] = _nothing
    """Reads the data before anything is computed, so that what is missing is told at once."""

    def run(self, folder: Path, *, jobs: int = 1, console: "Console | None" = None) -> list[Path]:
        """Compute the cells that ``folder/cells`` lacks, then write the report into the folder; returns its files."""
        from mauc.experiments.store import Store, run_cells

        store = Store(folder / "cells")
        self.check(store)
        run_cells(self.cells, store, jobs=jobs, console=console)
        return self.report(store, folder)


@dataclass(frozen=True)
class Entry:
    """An experiment in the list."""

    title: str
    module: str
    needs: tuple[str, ...]
    """Modules that mauc does not always come with."""


EXPERIMENTS = {
    "acceleration": Entry(
        "Loops over all pairs against the exact schemes, loss and gradient apart (the paper's acceleration figure).",
        "mauc.experiments.acceleration",
        ("matplotlib",),
    ),
    "generalization": Entry(
        "Gap between training and test risk over size and imbalance, and which samples close it.",
        "mauc.experiments.generalization",
        ("matplotlib",),
    ),
    "traditional": Entry(
        "Nine tables, fifteen splits, all methods (the paper's Figures 1 and 2).",
        "mauc.experiments.traditional.experiment",
        ("imblearn", "matplotlib"),
    ),
    "deep": Entry(
        "Deep networks with every method on one set (the paper's Tables 2, 3 and 4).",
        "mauc.experiments.deep.experiment",
        (*TORCH, "imblearn", "matplotlib"),
    ),
    "runtime": Entry(
        "Seconds per epoch of the exact losses, of loops over class pairs, and of plain loops.",
        "mauc.experiments.runtime",
        (*TORCH, "matplotlib"),
    ),
    "consistency": Entry(
        "A flexible network and more and more samples: which losses come to the Bayes MAUC.",
        "mauc.experiments.consistency",
        (*TORCH, "matplotlib"),
    ),
    "tabular": Entry(
        "Real tables: single models, competitors and combinations, with ranks and tests.",
        "mauc.experiments.tabular.experiment",
        ("imblearn", "lightgbm", "matplotlib"),
    ),
}


def load(name: str, **options: Any) -> Experiment:
    """The experiment of that name with these options; an ImportError in one line where something is not installed."""
    entry = EXPERIMENTS[name]
    missing = [module for module in entry.needs if find_spec(module) is None]
    if missing:
        extras = ",".join(sorted({EXTRAS[module] for module in missing}))
        are = "is" if len(missing) == 1 else "are"
        what = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        raise ImportError(f"mauc bench {name} needs {what}, which {are} not installed: pip install 'mauc[{extras}]'")
    planned: Experiment = import_module(entry.module).experiment(**options)
    return planned
