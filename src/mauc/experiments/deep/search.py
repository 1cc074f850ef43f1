"""What a search tries of each method: as many settings for every one, and the same rates, decays and dropouts."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from mauc._validation import check_whole
from mauc.experiments.deep.methods import Method, Recipe

__all__ = ["DECAYS", "DROPOUTS", "MOST_SETTINGS", "RATE_FACTORS", "label", "settings_of"]

RATE_FACTORS = (0.3, 1.0, 3.0)
"""Times the recipe's learning rate."""
DECAYS = (1e-6, 1e-4, 1e-2)
"""The optimiser's own weight decay: with Adam the L2 penalty whose gradient it scales, not AdamW's."""
DROPOUTS = (0.0, 0.5)
MOST_SETTINGS = len(RATE_FACTORS) * len(DECAYS) * len(DROPOUTS)
"""More would be more than a method without parameters of its own has."""


def settings_of(method: Method, recipe: Recipe, number: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """The settings that a search tries of a method.

    Which rates, decays and dropouts stand together is drawn once for all methods; each value of a method's own
    parameters then comes up as often as any other, up to one.

    Examples
    --------
    >>> from mauc.experiments.deep.methods import METHODS, RECIPES
    >>> from mauc.experiments.deep.search import settings_of
    >>> settings_of(METHODS["FOCAL"], RECIPES["cifar100-imb"], 2)[1]
    {'learning_rate': 0.001, 'weight_decay': 0.01, 'dropout': 0.0, 'gamma': 2.0}
    """
    check_whole("settings", number, least=1, most=MOST_SETTINGS)
    rates = method.rates or tuple(float(f"{factor * recipe.plain.learning_rate:.3g}") for factor in RATE_FACTORS)
    rng = np.random.default_rng(seed)
    shared = rng.permutation(list(product(range(len(rates)), range(len(DECAYS)), range(len(DROPOUTS)))))[:number]
    own = [dict(zip(method.own, values, strict=True)) for values in product(*method.own.values())]
    order = np.concatenate([rng.permutation(len(own)) for _ in range(-(-number // len(own)))])
    return [
        {"learning_rate": rates[r], "weight_decay": DECAYS[w], "dropout": DROPOUTS[d], **own[k]}
        for (r, w, d), k in zip(shared, order, strict=False)
    ]


def label(choice: Mapping[str, Any]) -> str:
    """A setting as the name of its results."""
    return ", ".join(f"{key} {v:g}" if isinstance(v, float) else f"{key} {v}" for key, v in choice.items())
