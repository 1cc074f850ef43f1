"""Batches, and fits: the best epoch, dropout, rates, divergence."""

import numpy as np
import pytest
import torch
from torch import nn

from experiments.deep.fit import Batches, Features, InOrder, Schedule, Shuffled, fit, scores_of
from experiments.deep.networks import network
from mauc import mauc_score
from mauc.nn import ClassCoverageBatchSampler


def test_batches():
    """Every row before any is seen again; as many batches as asked for; the same for one seed."""
    X, y = Features(np.arange(20.0, dtype=np.float32)[:, None], torch.device("cpu")), torch.arange(20)
    rows = np.arange(3, 14)
    batches = Batches(X, y, rows, Shuffled(len(rows), 4, seed=7), 2)
    epochs = [[batch[1].tolist() for batch in batches] for _ in range(3)]
    assert [len(epoch) for epoch in epochs] == [2, 2, 2]
    seen = [label for epoch in epochs for batch in epoch for label in batch]
    assert sorted(seen[:11]) == list(range(3, 14))
    assert sorted(seen[11:22]) == list(range(3, 14))
    again = Batches(X, y, rows, Shuffled(len(rows), 4, seed=7), 2)
    assert [[batch[1].tolist() for batch in again] for _ in range(3)] == epochs
    covered = Batches(X, y, rows, ClassCoverageBatchSampler(rows % 3, 6, min_per_class=2), 4)
    assert all((np.bincount(batch[1].numpy() % 3, minlength=3) >= 2).all() for batch in covered)


def test_logits_that_are_not_finite_end_a_fit():
    place = torch.device("cpu")
    X = Features(np.full((8, 2), np.inf, dtype=np.float32), place)
    y = torch.arange(8) % 2
    train = Batches(X, y, np.arange(8), Shuffled(8, 4, 0), 2)
    result = fit(
        network(2, (), 2, seed=0),
        nn.CrossEntropyLoss(),
        Schedule("sgd", 0.1, 0.0, 1.0, 1, 4, 3),
        train,
        InOrder(X, np.arange(8)),
        y.numpy(),
    )
    assert (result.diverged, result.scores, result.best_epoch) == (1, [], None)


def problem(loss=None, schedule=None, *, dropout=0.0, seed=0, epochs=4):
    """A fit of three classes, 60 rows of them to train on and 30 to validate."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = Features((rng.normal(size=(90, 5)) + np.eye(3, 5)[y]).astype(np.float32), torch.device("cpu"))
    train = Batches(X, torch.from_numpy(y), np.arange(60), Shuffled(60, 20, seed), 3)
    held = InOrder(X, np.arange(60, 90))
    model = network(5, (8,), 3, seed=seed, dropout=dropout)
    schedule = schedule or Schedule("adam", 0.01, 0.0, 0.5, 1, 20, epochs)
    return fit(model, loss or nn.CrossEntropyLoss(), schedule, train, held, y[60:], seed=seed), held, y[60:]


def test_the_network_is_left_at_its_best_epoch():
    result, held, y = problem(schedule=Schedule("sgd", 5.0, 0.0, 1.0, 1, 20, 8))
    assert result.best_epoch < 8, "a rate so high that later epochs are worse"
    assert not result.network.training
    assert mauc_score(y, scores_of(result.network, held)) == pytest.approx(max(result.scores), abs=1e-12)


def test_dropout_is_drawn_from_the_seed():
    torch.manual_seed(1)
    first, *_ = problem(dropout=0.5)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    again, *_ = problem(dropout=0.5)
    assert torch.equal(torch.get_rng_state(), state)
    assert (again.losses, again.scores) == (first.losses, first.scores)
    assert problem(dropout=0.0)[0].losses != first.losses


def test_rates_fall_in_steps(monkeypatch):
    """As SGD by hand: rate .1, .1, .01, .01."""
    rates = []
    step = torch.optim.SGD.step
    monkeypatch.setattr(
        torch.optim.SGD, "step", lambda self, *a: (rates.append(self.param_groups[0]["lr"]), step(self, *a))
    )
    problem(schedule=Schedule("sgd", 0.1, 0.0, 0.1, 2, 20, 4))
    np.testing.assert_allclose(rates[::3], [0.1, 0.1, 0.01, 0.01])
    assert len(rates) == 12
