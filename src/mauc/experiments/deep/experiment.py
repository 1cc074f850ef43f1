"""The deep experiments as cells and report."""

from collections.abc import Sequence
from functools import partial

from mauc.experiments.deep.data import load
from mauc.experiments.deep.report import write_report
from mauc.experiments.deep.run import cells
from mauc.experiments.registry import Experiment

__all__ = ["experiment"]


def experiment(
    *,
    dataset: str,
    data_home: str | None = None,
    features: str | None = None,
    methods: Sequence[str] | None = None,
    seeds: int = 3,
    device: str = "auto",
    quick: bool = False,
) -> Experiment:
    """One set, with every method unless some are named."""
    work = cells(
        dataset, data_home=data_home, features=features, methods=methods, seeds=seeds, device=device, quick=quick
    )
    _, name, place, *_ = work[0].key
    return Experiment(
        work,
        partial(write_report, name=name, device=place, quick=quick),
        check=lambda _: load(dataset, data_home, features, quick),
    )
