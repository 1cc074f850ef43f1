"""Linear models on the paper's nine tables, against its competitors and ours (Figures 1 and 2)."""

from collections.abc import Sequence
from functools import partial

from experiments.registry import Experiment
from experiments.store import Store
from experiments.traditional import run, stopping
from experiments.traditional.report import write_report
from experiments.tuning import PREPROCESSINGS
from mauc._validation import check_choice

__all__ = ["experiment"]


def experiment(
    *,
    data_home: str | None,
    splits: str,
    preprocessing: str,
    table: Sequence[str] | None,
    method: Sequence[str] | None,
    quick: bool,
) -> Experiment:
    """Plan all tables and methods unless some are named."""
    check_choice("--splits", splits, run.PROTOCOLS)
    check_choice("--preprocessing", preprocessing, ("both", *PREPROCESSINGS))
    tables = [check_choice("--table", name, run.TABLES) for name in table or run.TABLES]
    known = [m.name for m in run.methods(tables[0])]
    only = [check_choice("--method", name, known) for name in method] if method else None
    n_splits = 2 if quick else run.N_SPLITS
    kinds = PREPROCESSINGS if preprocessing == "both" else (preprocessing,)
    cells = run.cells(
        data_home, protocol=splits, preprocessings=kinds, tables=tables, n_splits=n_splits, quick=quick, only=only
    )
    if "rows" in kinds and only is None and not quick:
        cells += stopping.cells(data_home, protocol=splits, tables=tables, n_splits=n_splits)

    def check(_: Store) -> None:
        for name in tables:
            run.parts_of(name, data_home, splits, kinds[0], 0)

    depth = "quick" if quick else "full"
    report = partial(write_report, protocol=splits, preprocessings=kinds, tables=tables, depth=depth)
    return Experiment(cells, report, check)
