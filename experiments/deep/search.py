"""What a search tries of each method: as many settings for every one, and the same rates, decays and dropouts."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from experiments.deep.methods import METHODS, Method, Recipe
from mauc._validation import check_whole

__all__ = ["DECAYS", "DROPOUTS", "MOST_SETTINGS", "RATE_FACTORS", "best_of", "in_words", "label", "settings_of"]

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
    """A setting as the name of its results."""
    return ", ".join(f"{key} {v:g}" if isinstance(v, float) else f"{key} {v}" for key, v in choice.items())


def best_of(runs: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """Which of several settings has the highest mean on the validation parts; a fit that never was finite has 0."""
    return int(np.argmax([np.mean([run["validation"] or 0.0 for run in each]) for each in runs]))


def in_words(methods: Iterable[str], number: int, seeds: int) -> str:
    """What so many settings are drawn from, and chosen by so many seeds, for a reader of the tables."""
    own = "; ".join(
        f"{name}: {', '.join(f'{key} {_listed(values)}' for key, values in METHODS[name].own.items())}"
        for name in methods
        if name in METHODS and METHODS[name].own
    )
    chosen_by = "The validation part of the first seed of each set chooses"
    if seeds > 1:
        chosen_by = f"The validation parts of the first {seeds} seeds of each set choose"
    return (
        f"Every method has {number} settings, drawn once by a fixed seed: learning rate {_listed(RATE_FACTORS)} times "
        f"that of the set (DeepAUC, whose optimiser is its own: {_listed(METHODS['DeepAUC'].rates or ())}), weight "
        f"decay {_listed(DECAYS)} (the optimiser's own L2 penalty, not AdamW's), dropout {_listed(DROPOUTS)}, in the "
        "same combinations for every method; and of each method's own parameters, every combination as often as any "
        f"other up to one. {own}. {chosen_by}; what was chosen "
        "is judged on all seeds. The samplers BM, MM, IHT, NM and TL, and on images covered batches, are left out of "
        "a search unless they are named: the neighbour searches of the samplers run on the host, for minutes in each "
        "of thousands of fits."
    )


def _listed(values: Iterable[Any]) -> str:
    return " / ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
