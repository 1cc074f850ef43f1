"""Which loss ranks best on long-tailed data? Networks trained from scratch on CIFAR-10-LT and CIFAR-100-LT, small
networks on features of images, on KDD Cup 99 and on imbalanced letters and digits.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from experiments.longtail.data import SETS, Data, load
from experiments.longtail.losses import LOSSES
from experiments.longtail.page import write_report
from experiments.longtail.train import Run, recipe_for
from experiments.registry import Experiment
from experiments.store import Cell, Store
from mauc._validation import check_choice

__all__ = ["experiment"]

METHODS = (
    "mauc", "adjusted:tau=1", "adjusted:tau=0", "weighted", "adjusted:tau=1.25", "adjusted:tau=1.5",
    "vs:gamma=0.05,tau=1", "vs:gamma=0.15,tau=1", "cb-focal:beta=0.9999,gamma=1", "ldam:margin=0.5,scale=30",
)  # fmt: skip
"""The recommended loss and its rivals, of which those with parameters need tuning."""


def experiment(
    *,
    set_: Sequence[str] | None = None,
    part: str = "validation",
    method: Sequence[str] | None = None,
    seeds: int = 3,
    epochs: int | None = None,
    batch: int | None = None,
    rate: float | None = None,
    optimizer: str | None = None,
    decay: float | None = None,
    blocks: int | None = None,
    data_home: str | None = None,
    quick: bool = False,
) -> Experiment:
    """Train each method on each set; a quick run trains two losses on digits for two epochs."""
    if quick:
        set_, method, seeds, epochs = set_ or ["digits-imb"], method or ["adjusted:tau=1", "mauc"], 1, epochs or 2
    sets = [check_choice("--set", name, SETS) for name in set_ or SETS]
    methods = list(method or METHODS)
    for each in methods:
        check_choice("--method", each.partition(":")[0], tuple(LOSSES))
    changes = {
        "epochs": epochs, "batch": batch, "rate": rate, "optimizer": optimizer, "decay": decay, "blocks": blocks
    }  # fmt: skip
    depth = "quick" if quick else "full"
    settings = ", ".join(f"{key} {value}" for key, value in changes.items() if value is not None) or "as is"
    cells = [
        Cell((depth, part, name, settings, each, f"{seed:02d}"), measure, (name, data_home, part, each, seed, changes))
        for name in sets
        for seed in range(seeds)
        for each in methods
    ]

    def check(_: Store) -> None:
        for name in sets:
            load(name, data_home, part=part, seed=0)

    def report(store: Store, folder: Path) -> list[Path]:
        return write_report(store, folder, depth)

    return Experiment(cells, report, check)


def measure(
    name: str, data_home: str | None, part: str, method: str, seed: int, changes: dict[str, Any]
) -> dict[str, Any]:
    """Train one network and return its settings and test scores."""
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    data = _data(name, data_home, part, seed if part == "validation" else 0)
    recipe = recipe_for(data, **changes)
    found = Run(data, method, recipe, seed).train()
    return {"set": name, "part": part, "method": method, "seed": seed, **vars(recipe), **found}


@lru_cache(maxsize=1)
def _data(name: str, data_home: str | None, part: str, seed: int) -> Data:
    return load(name, data_home, part=part, seed=seed).to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
