"""Neural networks on the paper's image and user sets, real or simulated, and on further images (Tables 2 to 4)."""

from collections.abc import Sequence
from pathlib import Path

from experiments.registry import Experiment
from experiments.store import Store

__all__ = ["experiment"]


def experiment(
    *,
    dataset: str,
    data_home: str | None,
    features: str | None,
    method: Sequence[str] | None,
    seeds: int,
    device: str,
    quick: bool,
    tuned: bool = False,
    settings: int = 12,
    tuning_seeds: int = 2,
    summary: bool = False,
) -> Experiment:
    """Plan the fits of one set, with every method unless some are named; a quick run has one seed.

    ``tuned``: each method with the best of ``settings``. ``summary``: compute nothing, write the pages of all sets.
    """
    if summary:
        from experiments.deep.summary import write_all

        return Experiment([], write_all)
    from experiments.deep.data import load
    from experiments.deep.run import cells
    from experiments.deep.search import search

    then = None
    if tuned:
        every, then = search(
            dataset,
            data_home,
            features,
            method,
            settings=settings,
            tuning_seeds=tuning_seeds,
            seeds=seeds,
            device=device,
            quick=quick,
        )
    else:
        n_seeds = 1 if quick else seeds
        every = cells(dataset, data_home, features, methods=method, seeds=n_seeds, device=device, quick=quick)
    _, name, place, *_ = every[0].key

    def check(_: Store) -> object:
        return load(dataset, data_home, features, quick)

    def report(store: Store, folder: Path) -> list[Path]:
        from experiments.deep.report import write_report  # needs matplotlib, which computing does not

        return write_report(store, folder, name, place, quick=quick, tuned=tuned)

    return Experiment(every, report, check, then)
