"""The methods of the deep experiments, and the paper's settings."""

from itertools import product

import numpy as np
import pytest
import torch
from pair_loss import PairLoss

from experiments.deep.methods import METHODS, RECIPES
from experiments.deep.paper import PAPER, PAPER_PAIRS, PAPER_SHARES
from experiments.deep.run import OF_THE_FIT
from experiments.deep.search import label, settings_of
from mauc.nn import LogitAdjustedLoss


def test_methods():
    names = tuple(METHODS)
    assert len(set(names)) == len(names) == 26
    assert set(PAPER) < set(names), "every row of the paper's tables"
    assert all(set(table) == set(PAPER) for table in (*PAPER_PAIRS.values(), PAPER_SHARES))
    assert {"CE-balanced", "plug-in on CE", "squared, covered", "exponential, covered", "hinge, covered"} < set(names)
    assert {m.sampler for m in METHODS.values()} - {None} == {"BM", "MM", "IHT", "NM", "TL"}
    counts = np.array([50, 20, 0, 4])
    for method in METHODS.values():
        for choice in (*method.grid, *settings_of(method, RECIPES["cifar100-imb"], 12)):
            options = {key: value for key, value in choice.items() if key not in OF_THE_FIT}
            if method.surrogate:
                options = {"surrogate": method.surrogate, "alpha": 1.0, **options}
            loss = method.loss(counts, 10, **options)
            assert loss(torch.zeros(3, 4), torch.tensor([0, 1, 3])).isfinite(), method.name


def test_the_sum_is_of_both_terms():
    """With the frequencies of the training set; of covered batches, with the batch's."""
    counts, y = np.array([50, 20, 4]), torch.tensor([0, 0, 1, 2])
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    risk = PairLoss("exponential", alpha=4.0)(logits, y)
    options = {"surrogate": "exponential", "alpha": 4.0, "log_loss": 0.3}
    for name, sizes in (("softmax", counts), ("softmax, covered", np.array([2, 1, 1]))):
        both = METHODS[f"adjusted CE + exponential, {name}"].loss(counts, 10, **options)(logits, y)
        torch.testing.assert_close(both, risk + 0.3 * LogitAdjustedLoss(sizes)(logits, y))
    covered = METHODS["adjusted CE, covered"].loss(counts, 10)(logits, y)
    torch.testing.assert_close(covered, LogitAdjustedLoss([2, 1, 1])(logits, y))


def test_ldam_is_reweighted_in_its_own_row_alone():
    counts = np.array([50, 20, 4])
    assert METHODS["LDAM"].loss(counts, 10).drw_epoch is None
    assert METHODS["LDAM-DRW"].loss(counts, 10).drw_epoch == 8
    assert METHODS["LDAM"].loss(counts, 10, scale=10.0).margin.max() == 5.0


def test_every_method_has_as_many_settings():
    """The same rates, decays and dropouts, and its own parameters as evenly as can be."""
    recipe = RECIPES["cifar100-imb"]
    shared = [{key: c[key] for key in OF_THE_FIT} for c in settings_of(METHODS["CE"], recipe, 12)]
    assert len({tuple(c.values()) for c in shared}) == 12
    for method in METHODS.values():
        choices = settings_of(method, recipe, 12)
        assert len({label(choice) for choice in choices}) == 12, method.name
        if method.rates is None:
            assert [{key: c[key] for key in OF_THE_FIT} for c in choices] == shared
        own = [tuple(c[key] for key in method.own) for c in choices]
        times = [own.count(values) for values in product(*method.own.values())]
        assert max(times) - min(times) <= 1, method.name
        assert settings_of(method, recipe, 12) == choices
    assert {c["learning_rate"] for c in shared} == {3e-4, 1e-3, 3e-3}
    with pytest.raises(ValueError, match="settings must be a whole number from 1 to 18, got 19"):
        settings_of(METHODS["CE"], recipe, 19)
