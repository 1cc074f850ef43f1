"""Steps that are recorded and replayed are the steps."""

import numpy as np
import pytest
import torch

from experiments.deep.fit import Batches, Features, InOrder, Schedule, Shuffled, fit
from experiments.deep.methods import METHODS
from experiments.deep.networks import network

NAMES = [
    "CE", "CBFOCAL", "LDAM-DRW", "DeepAUC", "adjusted CE", "squared", "hinge", "adjusted CE + exponential, sigmoid",
]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_replayed_steps_are_the_steps(name, optimizer):
    """Rates that fall, stages that end, batches of two sizes, dropout: the same losses, scores and weights."""
    method = METHODS[name]
    rng = np.random.default_rng(0)
    y = np.arange(430) % 5
    place = torch.device("cuda")
    X = Features((rng.normal(size=(430, 7)) + 2 * np.eye(5, 7)[y]).astype(np.float32), place)
    classes = torch.from_numpy(y).to(place)
    options = {"priors": "set"} if name == "DeepAUC" else {}
    if method.surrogate:
        options = {"surrogate": method.surrogate, "alpha": 1.0}
    results = []
    for replay in (False, True):
        train = Batches(X, classes, np.arange(330), Shuffled(330, 20, 0), 17)
        schedule = Schedule(method.optimizer or optimizer, 0.05, 1e-4, 0.5, 2, 20, 8)
        loss = method.loss(np.bincount(y), 8, **options)
        model = network(7, (16,), 5, seed=0, cosine_scale=method.cosine_scale, dropout=0.2)
        held = InOrder(X, np.arange(330, 430))
        results.append(fit(model, loss, schedule, train, held, y[330:], seed=0, replay=replay))
    taken, replayed = results
    np.testing.assert_allclose(replayed.losses, taken.losses, rtol=1e-3)
    np.testing.assert_allclose(replayed.scores, taken.scores, atol=5e-3)
    for a, b in zip(replayed.network.parameters(), taken.network.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-3)
