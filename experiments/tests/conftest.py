"""A data folder of the right format, made up; and the real one, which ``MAUC_DATA_HOME`` names."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from experiments.datasets.catalogue import TABLES

settings.register_profile(
    "experiments", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("experiments")

# Read now: the tests of the loader clear it, for they test its own default.
DATA_HOME = os.environ.get("MAUC_DATA_HOME")


@pytest.fixture(scope="session")
def real_data():
    """The folder of the authors' files and of KDD Cup 99."""
    if not DATA_HOME or not Path(DATA_HOME, "traditional", "ecoli.npz").is_file():
        pytest.skip("no data files: name their folder by MAUC_DATA_HOME")
    return Path(DATA_HOME)


@pytest.fixture(scope="session")
def made_up_data(tmp_path_factory):
    """Tables of the right shape and class sizes, filled with noise around the classes."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "traditional").mkdir()
    rng = np.random.default_rng(0)
    for name in ("balance", "new-thyroid", "ecoli"):
        table = TABLES[name]
        y = np.repeat(np.arange(len(table.class_sizes)), table.class_sizes)
        X = rng.normal(size=(len(y), table.n_features)) + rng.normal(size=(len(table.class_sizes), table.n_features))[y]
        parts = {"train": [], "validation": [], "test": []}
        for _ in range(15):
            # As in the authors' release, a class of two samples is in every part.
            order = rng.permutation(len(y))
            rare = np.flatnonzero(np.bincount(y)[y] < 10)
            cuts = len(y) * 6 // 10, len(y) * 8 // 10
            for part, rows in zip(parts.values(), np.split(order, cuts), strict=True):
                part.append(np.concatenate([np.setdiff1d(rows, rare), rare]))
        shortest = {part: min(map(len, rows)) for part, rows in parts.items()}
        arrays = {part: np.array([r[len(r) - shortest[part] :] for r in rows]) for part, rows in parts.items()}
        np.savez(folder / "traditional" / f"{name}.npz", X=X, y=y, **arrays)
    return folder


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are made but not drawn, which takes longest; the test of each report draws its own."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: file.write(b"\x89PNG"))
