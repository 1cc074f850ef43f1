"""The experiments by name: what each shows, what it needs installed, and how it becomes cells and a report.

The experiment NAME is the function ``experiment(**options)`` of ``experiments.NAME``, imported when it is run: the
list must be readable without torch, matplotlib or imbalanced-learn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.store import Cell, Store

__all__ = ["EXPERIMENTS", "Experiment", "load"]

EXPERIMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "acceleration": ("Loops over all pairs against the exact schemes (the paper's acceleration figure).", ()),
    "generalization": ("Gap between training and test risk over size and imbalance, and what closes it.", ()),
    "traditional": ("Nine tables, fifteen splits, all methods (the paper's Figures 1 and 2).", ("imblearn",)),
    "deep": ("Deep networks with every method on one set (the paper's Tables 2 to 4).", ("torch",)),
    "runtime": ("Seconds per epoch of the exact losses, of loops over class pairs, and of plain loops.", ("torch",)),
    "consistency": ("More and more samples: which losses come to the Bayes MAUC.", ("torch",)),
    "tabular": ("Real tables: models, competitors, combinations; tests.", ("imblearn", "lightgbm")),
}
"""By name: what it shows, and the modules it needs to compute. Every report needs matplotlib."""


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


def load(name: str, *, with_report: bool = True, **options: Any) -> Experiment:
    """The experiment of that name with these options; an ImportError in one line where something is not installed."""
    _, needs = EXPERIMENTS[name]
    missing = [module for module in (*needs, *(["matplotlib"] if with_report else [])) if find_spec(module) is None]
    if missing:
        what = f"{' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed"
        raise ImportError(f"{name} needs {what}: pip install -r experiments/requirements.txt")
    planned: Experiment = import_module(f"experiments.{name}").experiment(**options)
    return planned
