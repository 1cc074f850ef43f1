"""Compare single models, competitors and combinations on many real tables."""

from collections.abc import Sequence
from functools import partial

from experiments.registry import Experiment
from experiments.store import Store
from experiments.tabular import against
from experiments.tabular.data import load_set, set_names
from experiments.tabular.methods import entries
from experiments.tabular.report import write_report
from experiments.tabular.run import N_SPLITS, cells
from mauc._validation import check_choice

__all__ = ["experiment"]


def experiment(
    *,
    data_home: str | None,
    set_: Sequence[str] | None,
    method: Sequence[str] | None,
    tables: str | None,
    autogluon: str | None,
    budget: Sequence[int] | None,
    quick: bool,
) -> Experiment:
    """Plan all sets and methods unless some are named; with ``autogluon``, the stack and AutoGluon alone."""
    known = set_names(tables=tables)
    sets = [check_choice("--set", s, known) for s in set_ or set_names(tables=tables, quick=quick)]
    names = [entry.name for entry in entries()]
    only = [check_choice("--method", name, names) for name in method] if method else None
    n_splits = 1 if quick else N_SPLITS

    def check(_: Store) -> None:
        for name in sets:
            load_set(name, data_home, tables)

    if autogluon is not None:
        budgets = list(budget or against.BUDGETS)
        work = against.cells(autogluon, data_home, tables, budgets=budgets, sets=sets, n_splits=n_splits)
        return Experiment(work, partial(against.write_report, sets=sets, budgets=budgets), check)
    work = cells(data_home, tables=tables, sets=sets, n_splits=n_splits, quick=quick, only=only)
    return Experiment(work, partial(write_report, sets=sets, depth="quick" if quick else "full"), check)
