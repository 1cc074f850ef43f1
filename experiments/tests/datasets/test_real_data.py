"""The files themselves: what the library says of them is so."""

import itertools

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets.catalogue import TABLES

# Classes of two samples, which stand in more than one part of the authors' splits.
OVERLAPPING = {"ecoli": {2, 3}, "shuttle": {1}}


@pytest.mark.parametrize("name", TABLES)
def test_table_is_that_of_the_paper(name, real_data):
    """The loader checks rows, features and class sizes."""
    bunch = datasets.load(name, real_data)
    assert bunch.X.dtype == np.float64
    assert bunch.X.flags.c_contiguous
    assert np.isfinite(bunch.X).all()
    assert bunch.y.dtype == np.int64
    assert len(bunch.DESCR.splitlines()) == 2
    assert "MIT" in bunch.DESCR


@pytest.mark.parametrize("name", TABLES)
def test_splits_are_those_of_the_authors(name, real_data):
    bunch = datasets.load(name, real_data)
    n_samples, n_classes = len(bunch.y), len(bunch.target_names)
    assert len(bunch.splits) == 15
    shared = set()
    for parts in bunch.splits:
        for part, share in zip(parts, (0.2, 0.4, 0.4), strict=True):
            assert part.dtype == np.int64
            assert len(np.unique(part)) == len(part)
            assert part.min() >= 0
            assert part.max() < n_samples
            assert len(part) / n_samples == pytest.approx(share, abs=0.02)
            assert len(np.unique(bunch.y[part])) == n_classes
        assert len(np.unique(np.concatenate(parts))) == n_samples
        for a, b in itertools.combinations(parts, 2):
            shared |= set(bunch.y[np.intersect1d(a, b)].tolist())
    assert shared == OVERLAPPING.get(name, set())


def test_class_names_fit_the_data(real_data):
    balance = datasets.load("balance", real_data)
    torque = balance.X[:, 0] * balance.X[:, 1] - balance.X[:, 2] * balance.X[:, 3]
    names = np.array(balance.target_names)[balance.y]
    assert np.array_equal(names, np.array(["balanced", "left", "right"])[np.sign(torque).astype(int)])

    ecoli = datasets.load("ecoli", real_data)  # lipoproteins score 1 in the third feature, "lip"
    lipoproteins = {ecoli.target_names[code] for code in ecoli.y[ecoli.X[:, 2] == 1.0]}
    assert {"imL", "omL"} <= lipoproteins
    assert "imS" not in lipoproteins

    thyroid = datasets.load("new-thyroid", real_data)  # thyroxin is the second feature
    thyroxin = {name: thyroid.X[thyroid.y == code, 1].mean() for code, name in enumerate(thyroid.target_names)}
    assert thyroxin["hypo"] < thyroxin["normal"] < thyroxin["hyper"]


@pytest.mark.slow
def test_kddcup99(real_data):
    bunch = datasets.load("kddcup99", real_data, dtype=np.float32)
    assert bunch.X.shape == (494_021, 118)
    assert bunch.X.dtype == np.float32
    assert len(bunch.feature_names) == 118
    sizes = dict(zip(bunch.target_names, np.bincount(bunch.y).tolist(), strict=True))
    assert len(sizes) == 23
    assert sizes["smurf"] == max(sizes.values()) == 280_790
    assert sizes["spy"] == min(sizes.values()) == 2
    assert sizes["normal"] == 97_278
    assert np.array_equal(bunch.X[:, 38:].sum(axis=1), np.full(494_021, 3.0))
    first = dict(zip(bunch.feature_names, bunch.X[0].tolist(), strict=True))
    assert (first["src_bytes"], first["dst_bytes"], first["service=http"], first["flag=SF"]) == (181, 5450, 1, 1)
