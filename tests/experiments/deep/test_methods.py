"""The methods of the deep experiments, and the paper's settings."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra mauc[torch]")
pytest.importorskip("lightning", reason="needs the extra mauc[torch]")
pytest.importorskip("imblearn", reason="needs the extra mauc[bench]")
pytest.importorskip("matplotlib", reason="needs the extra mauc[plot]")
pytest.importorskip("rich", reason="needs the extra mauc[cli]")

import torch

from mauc.experiments.deep.data import PAPER_SETS
from mauc.experiments.deep.fit import Schedule
from mauc.experiments.deep.methods import METHODS, PAPER, RECIPES, method_names, recipe_of


def test_methods():
    names = method_names()
    assert len(set(names)) == len(names) == 19
    assert set(PAPER) < set(names), "every row of the paper's table"
    assert {"CE-balanced", "plug-in on CE", "squared, covered", "exponential, covered", "hinge, covered"} < set(names)
    assert {m.sampler for m in METHODS.values()} - {None} == {"BM", "MM", "IHT", "NM", "TL"}
    counts = np.array([50, 20, 0, 4])
    for method in METHODS.values():
        for choice in method.grid:
            options = {key: value for key, value in choice.items() if key != "learning_rate"}
            if method.surrogate:
                options = {"surrogate": method.surrogate, "alpha": 1.0}
            loss = method.loss(counts, 10, **options)
            assert loss(torch.zeros(3, 4), torch.tensor([0, 1, 3])).isfinite(), method.name


def test_the_papers_settings():
    cifar, user, large = (RECIPES[name] for name in PAPER_SETS)
    assert cifar.hidden == (1024, 256)
    assert cifar.ours["squared"] == (Schedule("adam", 0.0012, 5e-6, 0.97, 5, 1000, 50), 1.0)
    assert cifar.ours["exponential"] == (Schedule("adam", 0.001, 1e-6, 0.99, 5, 1000, 48), 4.0)
    assert cifar.ours["hinge"] == (Schedule("adam", 0.001, 5e-5, 0.99, 3, 1000, 50), 4.0)
    assert user.hidden == (128, 64)
    assert [alpha for _, alpha in user.ours.values()] == [0.5, 2.0, 2.0]
    assert replace(user.plain, max_epochs=0) == Schedule("sgd", 0.005, 1e-4, 0.97, 1, 32, 0)
    assert (large.plain.batch_size, large.plain.learning_rate) == (8196, 1e-5)
    quick = recipe_of("simulated-cifar100-imb", quick=True)
    assert {s.max_epochs for s, _ in quick.ours.values()} == {quick.plain.max_epochs} == {10}
