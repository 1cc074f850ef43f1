"""What wins on real tables: single models, competitors and combinations, over many sets."""

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
    data_home: str | None,
    set_: Sequence[str] | None,
    method: Sequence[str] | None,
    n_splits: int | None,
    tables: str | None,
    openml: bool,
    quick: bool,
) -> Experiment:
    """All sets and methods unless some are named."""
    known = set_names(openml=True, tables=tables)
    sets = [check_choice("--set", s, known) for s in set_ or set_names(openml=openml, tables=tables, quick=quick)]
    names = [entry.name for entry in entries()]
    only = [check_choice("--method", name, names) for name in method] if method else None
    splits = n_splits or (2 if quick else N_SPLITS)

    def check(store: Store) -> None:
        for name in sets:
            load_set(name, data_home, tables)
        if tables is not None:
            check_unchanged(tables, sets, store.folder)

    work = cells(data_home, tables=tables, sets=sets, n_splits=splits, quick=quick, only=only)
    return Experiment(work, partial(write_report, sets=sets, depth="quick" if quick else "full"), check)
