"""Methods of the deep experiments, with the paper's settings for each set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from mauc._typing import Ints
from mauc.experiments.deep.fit import Schedule
from mauc.nn.baselines import ClassBalancedLoss, FocalLoss, LDAMLoss
from mauc.nn.deepauc import DeepAUCLoss
from mauc.nn.modules import MAUCLoss

__all__ = ["METHODS", "PAPER", "RECIPES", "Method", "Recipe", "method_names", "recipe_of"]

LOSSES = ("squared", "exponential", "hinge")
LDAM_SCALE, LDAM_MARGIN = 30.0, 0.5
"""Its authors'."""
DRW_FROM = 0.8
"""Share of the epochs after which LDAM re-weighs the classes: its authors' 160 of 200."""


@dataclass(frozen=True)
class Recipe:
    """Network and schedules of a set."""

    hidden: tuple[int, ...]
    plain: Schedule
    """Of every method that is not named below."""
    ours: Mapping[str, tuple[Schedule, float]]
    """Schedule and alpha of each of the paper's losses."""
    quick_epochs: int

    def shortened(self) -> "Recipe":
        """For a quick run."""
        cut = {name: (replace(s, max_epochs=self.quick_epochs), alpha) for name, (s, alpha) in self.ours.items()}
        return replace(self, plain=replace(self.plain, max_epochs=self.quick_epochs), ours=cut)


def _all(schedule: Schedule, *alphas: float) -> dict[str, tuple[Schedule, float]]:
    return {name: (schedule, alpha) for name, alpha in zip(LOSSES, alphas, strict=True)}


_CIFAR = Schedule("adam", 1e-3, 1e-6, 0.99, 5, 1000, 50)
_USER = Schedule("sgd", 5e-3, 1e-4, 0.97, 1, 32, 50)
_INATURALIST = Schedule("adam", 1e-5, 1e-6, 0.99, 5, 8196, 50)
_KDD = replace(_CIFAR, max_epochs=15)
_SMALL = replace(_CIFAR, batch_size=250, max_epochs=10)

RECIPES: dict[str, Recipe] = {
    "cifar100-imb": Recipe(
        (1024, 256),
        _CIFAR,
        {
            "squared": (Schedule("adam", 1.2e-3, 5e-6, 0.97, 5, 1000, 50), 1.0),
            "exponential": (Schedule("adam", 1e-3, 1e-6, 0.99, 5, 1000, 48), 4.0),
            "hinge": (Schedule("adam", 1e-3, 5e-5, 0.99, 3, 1000, 50), 4.0),
        },
        quick_epochs=10,
    ),
    # The paper does not say for how many epochs.
    "user-imb": Recipe((128, 64), _USER, _all(_USER, 0.5, 2.0, 2.0), quick_epochs=5),
    # The paper gives the batch, the rate and "three fully connected layers"; widths, epochs and alphas are ours.
    "inaturalist": Recipe((1024, 1024), _INATURALIST, _all(_INATURALIST, 1.0, 4.0, 4.0), quick_epochs=5),
    # Not in the paper: the settings of CIFAR-100-Imb on the network of User-Imb.
    "kddcup99": Recipe((128, 64), _KDD, _all(_KDD, 1.0, 4.0, 4.0), quick_epochs=5),
    "small": Recipe((32,), _SMALL, _all(_SMALL, 1.0, 4.0, 4.0), quick_epochs=2),
}

PAPER: dict[str, tuple[float, float, float]] = {
    "CE": (59.80, 55.26, 66.84),
    "BM": (59.07, 58.95, 78.18),
    "MM": (58.52, 55.35, 67.07),
    "IHT": (60.56, 55.87, 67.08),
    "NM": (60.24, 54.52, 66.74),
    "TL": (60.28, 52.99, 66.77),
    "FOCAL": (60.03, 55.34, 66.97),
    "CBCE": (60.04, 58.91, 77.71),
    "CBFOCAL": (60.42, 58.75, 71.12),
    "LDAM": (60.26, 56.47, 73.18),
    "DeepAUC": (60.27, 59.93, 62.48),
    "squared": (61.90, 60.64, 79.67),
    "exponential": (62.08, 60.94, 84.87),
    "hinge": (59.64, 59.52, 79.16),
}
"""Table 2 of the paper, MAUC × 100: CIFAR-100-Imb, User-Imb, iNaturalist."""


def recipe_of(dataset: str, *, quick: bool = False) -> Recipe:
    """The settings of a set, real or simulated."""
    recipe = RECIPES[dataset.removeprefix("simulated-")]
    return recipe.shortened() if quick else recipe


@dataclass(frozen=True)
class Method:
    """A row of the tables."""

    name: str
    loss: Callable[..., nn.Module]
    """From the class sizes of the training part, the epochs, and what the grid gives."""
    surrogate: str | None = None
    """Takes schedule and alpha of this loss in the recipe."""
    optimizer: str | None = None
    """Other than the recipe's."""
    sampler: str | None = None
    """Name of the sampler that resamples the training part first."""
    min_per_class: int | None = None
    """Samples of every class in every batch; None: plain batches."""
    plug_in: bool = False
    """Rank by Theorem 2 instead of the softmax."""
    cosine_scale: float | None = None
    """Last layer of cosines, times this."""
    grid: tuple[Mapping[str, Any], ...] = ({},)
    """Changes of the loss (and ``learning_rate``) that the validation part chooses from."""

    @property
    def is_ours(self) -> bool:
        return self.surrogate is not None or self.plug_in


def _cross_entropy(counts: Ints, epochs: int) -> nn.Module:
    return nn.CrossEntropyLoss()


def _balanced(counts: Ints, epochs: int) -> nn.Module:
    weight = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return nn.CrossEntropyLoss(weight=torch.tensor(weight, dtype=torch.float32))


def _ldam(counts: Ints, epochs: int) -> nn.Module:
    # The network multiplies by the scale, so that its softmax is the one that was trained: s (z − Δ) = s z − s Δ.
    margin = LDAM_SCALE * LDAM_MARGIN
    return LDAMLoss(np.maximum(counts, 1), max_margin=margin, scale=1.0, drw_epoch=int(DRW_FROM * epochs))


def _deep_auc(counts: Ints, epochs: int, *, priors: str) -> nn.Module:
    return DeepAUCLoss(len(counts), class_counts=np.maximum(counts, 1) if priors == "set" else None)


def _mauc(counts: Ints, epochs: int, *, surrogate: str, alpha: float) -> nn.Module:
    return MAUCLoss(surrogate, alpha=alpha)


# PPD-AdaGrad: one step for PPD-SG that serves both 17 and 100 classes was not found.
_DEEP_AUC_GRID = tuple({"priors": p, "learning_rate": rate} for p in ("set", "batch") for rate in (0.01, 0.1))

_ENTRIES = (
    Method("CE", _cross_entropy),
    Method("CE-balanced", _balanced),
    Method("plug-in on CE", _cross_entropy, plug_in=True),
    *(Method(name, _cross_entropy, sampler=name) for name in ("BM", "MM", "IHT", "NM", "TL")),
    Method("FOCAL", lambda counts, epochs: FocalLoss()),
    Method("CBCE", lambda counts, epochs: ClassBalancedLoss(np.maximum(counts, 1))),
    Method("CBFOCAL", lambda counts, epochs: ClassBalancedLoss(np.maximum(counts, 1), loss="focal")),
    Method("LDAM", _ldam, cosine_scale=LDAM_SCALE),
    Method("DeepAUC", _deep_auc, optimizer="ppd", grid=_DEEP_AUC_GRID),
    *(Method(name, _mauc, surrogate=name) for name in LOSSES),
    *(Method(f"{name}, covered", _mauc, surrogate=name, min_per_class=4) for name in LOSSES),
)

METHODS: dict[str, Method] = {method.name: method for method in _ENTRIES}
"""Every method by its name, in the order of the tables."""


def method_names() -> tuple[str, ...]:
    """Names of the methods.

    Examples
    --------
    >>> from mauc.experiments.deep.methods import method_names
    >>> method_names()[:4]
    ('CE', 'CE-balanced', 'plug-in on CE', 'BM')
    """
    return tuple(METHODS)
