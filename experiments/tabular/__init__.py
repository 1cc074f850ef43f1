"""Compare single models, competitors and combinations on many real tables."""

import os
import shutil
import sys
from collections.abc import Sequence
from functools import partial

from experiments.registry import Experiment
from experiments.store import Store
from experiments.tabular.against import BUDGETS, RIVALS, Contest
from experiments.tabular.against import cells as rival_cells
from experiments.tabular.against import write_report as write_contest
from experiments.tabular.data import load_set, set_names
from experiments.tabular.methods import entries
from experiments.tabular.report import write_report
from experiments.tabular.run import N_SPLITS, cells
from mauc._validation import check_choice, invalid

__all__ = ["experiment"]

RIVAL_SPLITS = 3


def experiment(
    *,
    data_home: str | None,
    set_: Sequence[str] | None,
    method: Sequence[str] | None,
    n_splits: int | None,
    tables: str | None,
    against: Sequence[str] | None,
    budget: Sequence[int] | None,
    cores: int,
    rival_python: str | None,
    quick: bool,
) -> Experiment:
    """Plan all sets and methods unless some are named; with ``against``, the stack and other libraries alone."""
    known = set_names(tables=tables)
    sets = [check_choice("--set", s, known) for s in set_ or set_names(tables=tables, quick=quick)]
    names = [entry.name for entry in entries()]
    only = [check_choice("--method", name, names) for name in method] if method else None
    splits = n_splits or (2 if quick else N_SPLITS)

    def check(_: Store) -> None:
        for name in sets:
            load_set(name, data_home, tables)

    if against:
        rivals = [check_choice("--against", rival, tuple(RIVALS)) for rival in against]
        budgets = list(budget or BUDGETS)
        contest = Contest(data_home, tables, cores, _interpreter(rival_python))
        work = rival_cells(contest, rivals=rivals, budgets=budgets, sets=sets, n_splits=n_splits or RIVAL_SPLITS)
        return Experiment(work, partial(write_contest, sets=sets, rivals=rivals, budgets=budgets), check)
    work = cells(data_home, tables=tables, sets=sets, n_splits=splits, quick=quick, only=only)
    return Experiment(work, partial(write_report, sets=sets, depth="quick" if quick else "full"), check)


def _interpreter(given: str | None) -> str:
    """Return the absolute path, because the other library runs in another folder."""
    if given is None:
        return sys.executable
    found = shutil.which(given)
    if found is None:
        advice = "name the python of the environment that has the other libraries"
        raise invalid("--rival-python", "must be a program", given, advice)
    return os.path.abspath(found)
