"""Nothing cached from another test, one thread, and a file of features."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _fresh():
    import torch

    from experiments.deep import data, run

    torch.set_num_threads(1)
    yield
    data.load.cache_clear()
    run._prepared.cache_clear()


@pytest.fixture
def features(tmp_path):
    """Blobs of named classes, one of them with too few rows."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(["ant", "bee", "cat", "dog"], [60, 25, 12, 4]))
    X = rng.normal(size=(len(y), 6)) + 2 * np.eye(4, 6)[np.unique(y, return_inverse=True)[1]]
    np.savez(tmp_path / "blobs.npz", X=X, y=y)
    return str(tmp_path / "blobs.npz")
