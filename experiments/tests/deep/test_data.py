"""Data of the deep experiments: names, files, what is dropped and cut."""

import numpy as np
import pytest
from sklearn.utils import Bunch

from experiments.deep import data as deep_data
from experiments.deep import run as deep
from experiments.deep.data import PAPER_SETS, DeepData, capped, load, parts_of, resolve
from experiments.deep.run import cells, run


def test_names(features):
    assert {resolve(name) for name in PAPER_SETS} == {f"simulated-{name}" for name in PAPER_SETS}
    assert resolve("kddcup99") == "kddcup99"
    named = resolve("cifar100-imb", features)
    assert named.startswith("cifar100-imb-")
    assert resolve("cifar100-imb", features) == named
    np.savez(features, X=np.zeros((3, 2)), y=[0, 1, 2])
    assert resolve("cifar100-imb", features) != named, "another file, other results"


def test_features_of_a_file(features):
    data = load("cifar100-imb", features=features)
    assert data.names == ("ant", "bee", "cat")
    assert data.counts.tolist() == [60, 25, 12]
    assert data.X.dtype == np.float32
    notes = " ".join(data.notes)
    assert "Classes with fewer than 10 rows are dropped: dog (4)." in notes
    assert "97 rows, 6 features, 3 classes of 12 to 60." in notes
    parts = parts_of(data, 0)
    assert np.sort(np.concatenate([parts.train, parts.validation, parts.test])).tolist() == list(range(97))
    np.testing.assert_allclose(parts.X[parts.train].mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(parts.X[parts.train].std(axis=0), 1.0, atol=1e-6)
    assert not np.array_equal(parts.test, parts_of(data, 1).test)
    result = run("cifar100-imb", None, features, "CE", 0, "cpu", True)
    assert result["test"] > 0.5
    assert {name for pair in result["rare_pairs"] for name in pair[:2]} == {"ant", "bee", "cat"}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("simulated-inaturalist", (700, 150, 150)),
        ("inaturalist-0123abcd", (700, 150, 150)),
        ("caltech101", (800, 100, 100)),
    ],
)
def test_the_papers_split(name, sizes):
    """70/15/15 of iNaturalist, of which the rarest class of 14 rows has 10, 2 and 2."""
    y = np.repeat([0, 1], [986, 14])
    parts = parts_of(DeepData(name, np.zeros((1000, 1), dtype=np.float32), y, ("a", "b"), ()), 0)
    assert tuple(len(part) for part in (parts.train, parts.validation, parts.test)) == sizes
    if name != "caltech101":
        assert [int(y[part].sum()) for part in (parts.train, parts.validation, parts.test)] == [10, 2, 2]


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((3, 2))}, r"features must hold the arrays X and y, got f.npz with X: make it with"),
        (
            {"X": np.zeros(3), "y": [0, 1, 1]},
            r"must have one row of X and one class in y per sample, got X of shape \(3,\)",
        ),
        ({"X": [[np.nan], [1.0]], "y": [0, 1]}, "features must be finite, got NaN or infinity in X"),
        ({"X": np.zeros((12, 1)), "y": [0] * 12}, "the data must have two classes of 10 rows or more, got 1"),
        (
            {"X": np.array([[None]]), "y": [0]},
            r"features must be an .npz file of numbers, got f.npz \(holds Python objects",
        ),
    ],
)
def test_files_that_do_not_fit(tmp_path, arrays, message):
    file = save(tmp_path / "f.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load("cifar100-imb", features=str(file))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resolve("mnist"), "dataset must be one of 'cifar100-imb', 'user-imb', 'inaturalist', 'kddcup99'"),
        (lambda: resolve("kddcup99", "f.npz"), "dataset must be one of cifar100-imb, user-imb, inaturalist where feat"),
        (lambda: cells("kddcup99", methods=["SVM"]), "method must be one of 'CE', 'CE-balanced'"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_kddcup99(monkeypatch):
    """Its rare classes are dropped, its common ones cut in a quick run, and outliers clipped."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [50_400, 80, 12, 5])
    X = rng.normal(size=(len(y), 3)).astype(np.float32)
    X[0, 0], X[:, 2] = 1e6, 0.1
    names = ["smurf", "normal", "imap", "spy"]
    monkeypatch.setattr(deep_data.datasets, "load", lambda *a, **k: Bunch(X=X, y=y, target_names=names))
    assert load("kddcup99").counts.tolist() == [50_400, 80, 12]
    data = load("kddcup99", quick=True)
    assert data.counts.tolist() == [50_000, 80, 12]
    assert "spy (5)" in " ".join(data.notes)
    parts = parts_of(load("kddcup99"), 0)
    assert np.abs(parts.X).max() <= 10
    np.testing.assert_allclose(parts.X[:, 2], 0.0, atol=1e-6)


def images(monkeypatch, **more):
    """Real images as the loader gives them, but for their size."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), [60, 40, 30])
    bunch = Bunch(
        X=rng.normal(size=(130, 4)).astype(np.float32), y=y, target_names=list("abc"), DESCR="Photos.", **more
    )
    monkeypatch.setattr(deep_data.datasets, "load", lambda *a, **k: bunch)
    return bunch


def test_the_papers_images_are_real_where_a_folder_is_given(monkeypatch):
    """Rows beyond the set are neither trained on nor in its sizes; they are tested with the test part, and apart."""
    images(monkeypatch, extra=np.arange(130) % 2 == 1)
    assert resolve("cifar100-imb", None, "folder") == "cifar100-imb"
    data = load("cifar100-imb", "folder")
    assert data.counts.tolist() == [30, 20, 15]
    parts = parts_of(data, 0)
    own = np.concatenate([parts.train, parts.validation, parts.test])
    assert np.sort(own).tolist() == list(range(0, 130, 2))
    assert len(parts.train) == 52
    assert parts.counts.sum() == 52
    assert parts.large.tolist() == [*parts.test, *range(1, 130, 2)]
    np.testing.assert_allclose(parts.X[parts.train].mean(axis=0), 0.0, atol=1e-6)
    result = run("cifar100-imb", "folder", None, "CE", 0, "cpu", True)
    assert set(result["large"]) == {"test", "rare_pairs", "shares"}
    assert result["large"]["test"] != result["test"]
    assert any("65 further images" in note for note in result["notes"])


def test_photographs_of_one_lesion_stay_together(monkeypatch):
    group = np.arange(130) // 2
    images(monkeypatch, group=group)
    data = load("ham10000-part", "folder")
    assert resolve("ham10000-part") == "ham10000-part"
    for seed in range(3):
        parts = parts_of(data, seed)
        assert parts.large is None
        of_part = [set(group[rows]) for rows in (parts.train, parts.validation, parts.test)]
        assert sum(map(len, of_part)) == len(set.union(*of_part)) == 65


def test_capped():
    y = np.repeat([0, 1, 2], [50, 5, 9])
    rows = capped(y, 9, 0)
    assert np.bincount(y[rows]).tolist() == [9, 5, 9]
    assert (np.diff(rows) > 0).all()
    assert deep._cap(np.array([1000, 100, 10]), 60) == 25
