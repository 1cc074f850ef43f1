"""Networks, and scores that rank as the softmax does."""

import numpy as np
import torch

from experiments.deep.networks import network, ranking
from mauc import mauc_score
from mauc.plugin import balanced_posterior


def test_ranking_scores_are_the_softmax_without_its_ties():
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    y = np.arange(50) % 4
    scores = ranking(logits).numpy()
    p = logits.softmax(1).numpy()
    np.testing.assert_allclose(scores, np.log(p / (1 - p)), rtol=1e-9)
    assert mauc_score(y, scores) == mauc_score(y, p)
    prior = np.array([0.7, 0.2, 0.06, 0.04])
    s = balanced_posterior(p, prior)
    np.testing.assert_allclose(ranking(logits, torch.from_numpy(np.log(prior))), np.log(s / (1 - s)), rtol=1e-9)
    sure = ranking(torch.tensor([[40.0, 0.0], [50.0, 0.0]]))
    assert sure[1, 0] > sure[0, 0], "softmax is 1 for both"


def test_networks():
    one, other = network(5, (8, 4), 3, seed=1), network(5, (8, 4), 3, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert [type(layer).__name__ for layer in one][:3] == ["Linear", "BatchNorm1d", "ReLU"]
    cosine = network(5, (8,), 3, seed=1, cosine_scale=30.0)
    assert cosine(torch.randn(6, 5)).abs().max() <= 30.0 + 1e-4


def test_dropout_changes_no_weight():
    plain, dropped = network(5, (8, 4), 3, seed=1), network(5, (8, 4), 3, seed=1, dropout=0.5)
    assert [type(layer).__name__ for layer in dropped][:5] == ["Linear", "BatchNorm1d", "ReLU", "Dropout", "Linear"]
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), dropped.parameters(), strict=True))
