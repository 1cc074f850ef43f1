"""Batches, and a fit that diverges."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra mauc[torch]")
pytest.importorskip("lightning", reason="needs the extra mauc[torch]")
pytest.importorskip("imblearn", reason="needs the extra mauc[bench]")
pytest.importorskip("matplotlib", reason="needs the extra mauc[plot]")
pytest.importorskip("rich", reason="needs the extra mauc[cli]")

import torch
from torch import nn

from mauc.experiments.deep.fit import Batches, Features, InOrder, Schedule, Shuffled, fit
from mauc.experiments.deep.networks import network
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
