"""Adding a surrogate is one class and one entry: no other file changes, and every way to a model takes its name."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from cases import assert_close, evaluate
from pair_loss import PairLoss

from mauc import MAUCClassifier, SurrogateRisk, mauc_score
from mauc.activations import activate
from mauc.boosting import lightgbm_objective
from mauc.surrogates import SURROGATES, Piece, Surrogate


@dataclass(frozen=True)
class Hyperbola(Surrogate):
    """``√((α − t)² + 1) + α − t``: smooth, convex, falling. Thrown away after the test."""

    name: ClassVar[str] = "hyperbola"
    alpha: float = 1.0

    def loss(self, t):
        return np.hypot(self.alpha - t, 1.0) + self.alpha - t

    def derivative(self, t):
        return -(self.alpha - t) / np.hypot(self.alpha - t, 1.0) - 1.0

    @property
    def pieces(self):
        return (Piece(-np.inf, np.inf, None),)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(SURROGATES, Hyperbola.name, Hyperbola)


def draw():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 20, 10])
    return rng.normal(size=(70, 4)) + np.eye(4)[y], y


def test_the_risk_and_the_torch_loss_take_its_name():
    X, y = draw()
    scores = np.exp(X[:, :3]) / np.exp(X[:, :3]).sum(axis=1, keepdims=True)
    oracle = SurrogateRisk("hyperbola", alpha=0.5, scheme="pairwise").value_and_gradient(y, scores)
    assert_close(evaluate(SurrogateRisk("hyperbola", alpha=0.5), y, scores), oracle, 1e-6)
    torch = pytest.importorskip("torch")

    for activation, given in (("softmax", X[:, :3]), ("identity", scores)):
        logits = torch.tensor(given, requires_grad=True)
        loss = PairLoss("hyperbola", alpha=0.5, activation=activation)(logits, torch.as_tensor(y))
        loss.backward()
        assert loss.item() == pytest.approx(oracle[0], rel=1e-10)
    np.testing.assert_allclose(logits.grad.numpy(), oracle[1], atol=1e-9)


def test_classifiers_take_its_name():
    X, y = draw()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MAUCClassifier("hyperbola", l2=1e-2, tol=1e-4).fit(X, y).score(X, y) > 0.75


def test_boosting_takes_its_name():
    lightgbm = pytest.importorskip("lightgbm")
    X, y = draw()
    objective = lightgbm_objective("hyperbola")
    assert objective.risk.surrogate == Hyperbola()
    params = {"objective": objective, "num_class": int(y.max()) + 1, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train({**params, "min_data_in_leaf": 3}, lightgbm.Dataset(X, y), 10)
    assert mauc_score(y, activate(booster.predict(X), "softmax")) > 0.75


def test_it_is_gone_again():
    SURROGATES.pop("hyperbola")
    with pytest.raises(ValueError, match="surrogate must be one of"):
        SurrogateRisk("hyperbola")
