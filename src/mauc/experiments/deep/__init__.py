"""Neural networks on the paper's three image and user sets, real or simulated (Tables 2 to 4)."""

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
    data_home: str | None,
    features: str | None,
    method: Sequence[str] | None,
    seeds: int,
    device: str,
    quick: bool,
) -> Experiment:
    """One set, with every method unless some are named; a quick run has one seed."""
    work = cells(dataset, data_home, features, methods=method, seeds=1 if quick else seeds, device=device, quick=quick)
    _, name, place, *_ = work[0].key
    report = partial(write_report, name=name, device=place, quick=quick)
    return Experiment(work, report, check=lambda _: load(dataset, data_home, features, quick))
