"""Bundled sets, folders, and every way in which a file can be wrong."""

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets.catalogue import TABLES


def write_table(folder, name="new-thyroid", **changed):
    """A file in the authors' format with random features."""
    table = TABLES[name]
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(len(table.classes)), table.class_sizes)).astype(np.int16)
    rows = np.arange(len(y), dtype=np.int32)
    arrays = {"X": rng.normal(size=(len(y), table.n_features)), "y": y}
    arrays |= {part: np.tile(rows[k::3][:50], (15, 1)) for k, part in enumerate(("train", "validation", "test"))}
    arrays |= changed
    path = folder / "traditional" / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    return arrays


def test_names():
    assert len(datasets.names()) == 17
    assert set(TABLES) < set(datasets.names())


@pytest.mark.parametrize("name", ["digits-imb", "wine-imb"])
def test_bundled_sets_need_nothing(name):
    bunch = datasets.load(name)
    again = datasets.load(name)
    assert bunch.X.dtype == np.float64
    assert bunch.splits is None
    assert np.array_equal(bunch.X, again.X)
    assert np.array_equal(bunch.y, again.y)
    assert len(bunch.target_names) == bunch.y.max() + 1
    assert len(bunch.DESCR.splitlines()) == 2


def test_table_from_a_folder(tmp_path):
    arrays = write_table(tmp_path)
    bunch = datasets.load("new-thyroid", tmp_path)
    assert np.array_equal(bunch.X, arrays["X"])
    assert np.array_equal(bunch.y, arrays["y"])
    assert len(bunch.splits) == 15
    for part, key in zip(bunch.splits[3], ("train", "validation", "test"), strict=True):
        assert np.array_equal(part, arrays[key][3])
    assert bunch.target_names == ["hyper", "hypo", "normal"]


def test_default_folder_is_in_that_of_scikit_learn(tmp_path):
    write_table(tmp_path / "scikit_learn_data" / "mauc")
    assert datasets.load("new-thyroid").splits is not None


def test_argument_wins_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MAUC_DATA_HOME", str(tmp_path / "absent"))
    write_table(tmp_path)
    assert datasets.load("new-thyroid", str(tmp_path)).splits is not None
    with pytest.raises(ValueError, match=r"the environment variable MAUC_DATA_HOME must be a folder, got .*absent"):
        datasets.load("new-thyroid")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": None}, "y is not a file in the archive"),
        ({"X": np.zeros((215, 4))}, r"X of shape \(215, 4\) for 215 rows and 5 features"),
        ({"y": np.zeros(215, dtype=np.int16)}, r"class sizes \[215, 0, 0\] for \[35, 30, 150\]"),
        ({"test": np.full((15, 3), 215)}, "a split that names rows beyond the last"),
    ],
)
def test_wrong_file(tmp_path, changed, message):
    write_table(tmp_path, **changed)
    with pytest.raises(ValueError, match=f"new-thyroid.npz must hold the arrays X, y, train.*got {message}.*: fetch"):
        datasets.load("new-thyroid", tmp_path)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut short"])
def test_damaged_file(tmp_path, content):
    write_table(tmp_path)
    (tmp_path / "traditional" / "new-thyroid.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"new-thyroid.npz must hold the arrays .*: fetch the file again"):
        datasets.load("new-thyroid", tmp_path)


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"name must be one of 'balance', .*got 'iris'"):
        datasets.load("iris")
    with pytest.raises(ValueError, match=r"data_home must be a folder, got .*absent', which does not exist: name the"):
        datasets.load("ecoli", tmp_path / "absent")
    with pytest.raises(ValueError, match="data_home must be a folder, got 3: name the folder that holds traditional/"):
        datasets.load("ecoli", 3)


def test_a_file_that_is_missing(tmp_path):
    message = r"ecoli needs the file .*ecoli.npz, which was not found: put it there; its arrays X, y, train, validation"
    with pytest.raises(FileNotFoundError, match=message):
        datasets.load("ecoli", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"caltech101.npz, which was not found: put it there"):
        datasets.load("caltech101", tmp_path)
