"""The traditional experiments as cells and report."""

from collections.abc import Sequence
from functools import partial

from mauc._validation import check_choice
from mauc.experiments.registry import Experiment
from mauc.experiments.store import Store
from mauc.experiments.traditional import run, stopping
from mauc.experiments.traditional.report import write_report
from mauc.experiments.tuning import PREPROCESSINGS

__all__ = ["experiment"]


def experiment(
    *,
    data_home: str | None = None,
    protocol: str = "authors",
    preprocessing: str = "both",
    tables: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_splits: int = 15,
    quick: bool = False,
) -> Experiment:
    """All tables and methods unless some are named; names are checked as options of the command."""
    check_choice("--splits", protocol, run.PROTOCOLS)
    check_choice("--preprocessing", preprocessing, ("both", *PREPROCESSINGS))
    chosen = [check_choice("--table", name, run.TABLES) for name in tables or run.TABLES]
    known = [method.name for method in run.methods(chosen[0])]
    only = [check_choice("--method", name, known) for name in methods] if methods else None
    kinds = PREPROCESSINGS if preprocessing == "both" else (preprocessing,)
    cells = run.cells(
        data_home, protocol=protocol, preprocessings=kinds, tables=chosen, n_splits=n_splits, quick=quick, only=only
    )
    if "rows" in kinds and only is None and not quick:
        cells += stopping.cells(data_home, protocol=protocol, tables=chosen, n_splits=n_splits)

    def check(_: Store) -> None:
        for name in chosen:
            run.parts_of(name, data_home, protocol, kinds[0], 0)

    depth = "quick" if quick else "full"
    report = partial(write_report, protocol=protocol, preprocessings=kinds, tables=chosen, depth=depth)
    return Experiment(cells, report, check)
