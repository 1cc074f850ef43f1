"""The tabular experiment as cells and report."""

from collections.abc import Sequence
from functools import partial

from mauc._validation import check_choice
from mauc.experiments.registry import Experiment
from mauc.experiments.store import Store
from mauc.experiments.tabular.data import check_unchanged, load_set, set_names
from mauc.experiments.tabular.methods import entries
from mauc.experiments.tabular.report import write_report
from mauc.experiments.tabular.run import N_SPLITS, cells

__all__ = ["experiment"]


def experiment(
    *,
    data_home: str | None = None,
    sets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_splits: int | None = None,
    tables: str | None = None,
    openml: bool = False,
    quick: bool = False,
) -> Experiment:
    """All sets and methods unless some are named; names are checked as options of the command."""
    known = set_names(openml=True, tables=tables)
    given = set_names(openml=openml, tables=tables, quick=quick)
    chosen = [check_choice("--set", name, known) for name in sets or given]
    names = [entry.name for entry in entries()]
    only = [check_choice("--method", name, names) for name in methods] if methods else None
    splits = n_splits or (2 if quick else N_SPLITS)

    def check(store: Store) -> None:
        for name in chosen:
            load_set(name, data_home, tables)
        if tables is not None:
            check_unchanged(tables, chosen, store.folder)

    work = cells(data_home, tables=tables, sets=chosen, n_splits=splits, quick=quick, only=only)
    return Experiment(work, partial(write_report, sets=chosen, depth="quick" if quick else "full"), check)
