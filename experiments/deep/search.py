"""Search settings: as many for every method, with the same rates, decays and dropouts.

Every setting is tried on the first seeds; the best of each method by validation is then fitted on the others.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from experiments.datasets.images import IMAGES
from experiments.deep.data import resolve
from experiments.deep.methods import METHODS, Method, Recipe, recipe_of
from experiments.deep.run import run
from experiments.device import check_device
from experiments.store import Cell, Store
from mauc._validation import check_choice, check_whole

__all__ = ["best_of", "label", "search", "searched_methods", "settings_of"]

RATE_FACTORS = (0.3, 1.0, 3.0)
"""Times the recipe's learning rate."""
DECAYS = (1e-6, 1e-4, 1e-2)
"""The optimiser's own weight decay: with Adam the L2 penalty whose gradient it scales, not AdamW's."""
DROPOUTS = (0.0, 0.5)
MOST_SETTINGS = len(RATE_FACTORS) * len(DECAYS) * len(DROPOUTS)
"""A method without parameters of its own has no more."""


def search(
    dataset: str,
    data_home: str | None,
    features: str | None,
    methods: Sequence[str] | None,
    *,
    settings: int,
    tuning_seeds: int,
    seeds: int,
    device: str,
    quick: bool,
) -> tuple[list[Cell], Callable[[Store], list[Cell]]]:
    """Return the cells of all settings on the first seeds, and a function for those of the best ones on the others.

    ``settings`` are tried of each method, and the mean validation score over ``tuning_seeds`` chooses. All methods of
    :func:`searched_methods` are searched if none are named.
    """
    check_whole("tuning_seeds", tuning_seeds, least=1, most=seeds, advice="--seeds are at least as many")
    names = [check_choice("method", m, tuple(METHODS)) for m in methods or searched_methods(dataset)]
    place = check_device(device).type
    prefix = ("tuned-quick" if quick else "tuned", resolve(dataset, features, data_home), place)
    recipe = recipe_of(dataset, quick=quick)
    choices = {method: settings_of(METHODS[method], recipe, settings) for method in names}

    def cell(method: str, choice: dict[str, Any], seed: int) -> Cell:
        arguments = (dataset, data_home, features, method, seed, place, quick, choice)
        together = (method, seed) if seed < tuning_seeds else ("best", seed)
        return Cell((*prefix, method, label(choice), f"{seed:02d}"), run, arguments, together)

    def chosen(store: Store, method: str) -> dict[str, Any] | None:
        cells = [[cell(method, choice, seed) for seed in range(tuning_seeds)] for choice in choices[method]]
        if not all(each.key in store for of_setting in cells for each in of_setting):
            return None
        return choices[method][best_of([[store.read(each.key) for each in of_setting] for of_setting in cells])]

    def then(store: Store) -> list[Cell]:
        best = {method: chosen(store, method) for method in names}
        return [
            cell(method, choice, seed)
            for seed in range(tuning_seeds, seeds)
            for method, choice in best.items()
            if choice is not None
        ]

    first = [
        cell(method, choice, seed) for seed in range(tuning_seeds) for method in names for choice in choices[method]
    ]
    return first, then


def searched_methods(dataset: str) -> tuple[str, ...]:
    """Return the methods that a search takes if none are named.

    These are all but the samplers, whose neighbour searches run on the host for minutes in each of thousands of fits,
    and on images, whose classes all fit into a batch, covered batches.
    """
    covered = dataset not in IMAGES
    return tuple(m.name for m in METHODS.values() if m.sampler is None and (covered or m.min_per_class is None))


def settings_of(method: Method, recipe: Recipe, number: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Return the settings that a search tries of a method.

    Which rates, decays and dropouts are combined is drawn once for all methods; each value of a method's own
    parameters then comes up as often as any other, up to one.

    Examples
    --------
    >>> from experiments.deep.methods import METHODS, RECIPES
    >>> from experiments.deep.search import settings_of
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
    """Return the name of a setting in the keys of its results."""
    return ", ".join(f"{key} {v:g}" if isinstance(v, float) else f"{key} {v}" for key, v in choice.items())


def best_of(runs: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """Return the index of the setting with the highest mean on the validation parts; a diverged fit has 0."""
    return int(np.argmax([np.mean([run["validation"] or 0.0 for run in each]) for each in runs]))
