"""The experiments by name.

The experiment NAME is the function ``experiment(**options)`` of ``experiments.NAME``. It is imported when it runs, so
the list can be read without torch, matplotlib or imbalanced-learn.
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
    "acceleration": ("Compare loops over all pairs with the exact schemes (the paper's acceleration figure).", ()),
    "generalization": ("Measure the gap between training and test risk over size and imbalance.", ()),
    "traditional": ("Compare linear methods on nine tables (the paper's Figures 1 and 2).", ("imblearn",)),
    "deep": ("Train networks with every method on one set (the paper's Tables 2 to 4).", ("torch",)),
    "runtime": ("Measure seconds per epoch of the exact losses and of loops (the paper's running times).", ("torch",)),
    "consistency": ("Show which losses approach the Bayes MAUC as samples grow.", ("torch",)),
    "tabular": ("Compare the stack with single models and other libraries.", ("imblearn", "lightgbm")),
    "longtail": ("Compare losses on long-tailed data, end to end.", ("torch",)),
    "inference": ("Simulate the coverage of intervals and the size of tests.", ()),
}
"""By name: a description, and the modules that the fits need. Every report needs matplotlib."""


@dataclass(frozen=True)
class Experiment:
    """The fits and the report of one experiment, with its options applied."""

    cells: Sequence["Cell"]
    """The fits to compute."""
    report: Callable[["Store", Path], list[Path]]
    """Write pages and figures of the results in a store into a folder; return the files."""
    check: Callable[["Store"], object] | None = None
    """Read the data before anything is computed, so that a missing file is reported at once."""
    then: Callable[["Store"], Sequence["Cell"]] | None = None
    """Return further cells, which depend on the results of the first."""


def load(name: str, *, with_report: bool = True, **options: Any) -> Experiment:
    """Return the experiment of that name with these options; ImportError where a module is not installed."""
    _, needs = EXPERIMENTS[name]
    missing = [module for module in (*needs, *(["matplotlib"] if with_report else [])) if find_spec(module) is None]
    if missing:
        what = f"{' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed"
        raise ImportError(f"{name} needs {what}: pip install -r experiments/requirements.txt")
    planned: Experiment = import_module(f"experiments.{name}").experiment(**options)
    return planned
