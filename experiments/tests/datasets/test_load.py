"""The door: bundled sets, folders, OpenML without OpenML, and every way it can go wrong."""

import http.client
import itertools
import urllib.error

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from experiments import datasets
from experiments.datasets.catalogue import DERMATOLOGY_EXTRA, TABLES

ON_OPENML = {"balance": 11, "dermatology": 35, "ecoli": 39, "new-thyroid": 40682, "yeast": 181}


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


def fake_openml(monkeypatch, bunch):
    calls = []

    def fetch(**arguments):
        calls.append(arguments)
        if isinstance(bunch, BaseException):
            raise bunch
        return bunch

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch)
    return calls


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


def test_openml_has_the_five_that_are_the_same_data():
    assert {name: table.openml_id for name, table in TABLES.items() if table.openml_id} == ON_OPENML
    assert all(bool(table.not_on_openml) == (table.openml_id is None) for table in TABLES.values())


def test_balance_from_openml(tmp_path, monkeypatch):
    X = np.array(list(itertools.product(range(1, 6), repeat=4)), dtype=np.float64)
    label = np.array(["B", "L", "R"])[np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]).astype(int)]
    fetched = Bunch(data=X, target=label.astype(object), feature_names=list("abcd"), categories={})
    calls = fake_openml(monkeypatch, fetched)
    bunch = datasets.load("balance", tmp_path)
    assert calls == [{"data_id": 11, "as_frame": False, "parser": "liac-arff"}]
    assert np.array_equal(bunch.X, X)
    assert np.array_equal(np.array(list("BLR"))[bunch.y], label)
    assert bunch.splits is None
    assert "OpenML data set 11, without the paper's splits" in bunch.DESCR


def test_dermatology_from_openml_is_the_authors_table(tmp_path, monkeypatch):
    """Categories become numbers again; incomplete rows and the one that the authors lack go."""
    rng = np.random.default_rng(0)
    sizes = TABLES["dermatology"].class_sizes
    labels = [str(code + 1) for code, size in enumerate(sizes) for _ in range(size)]
    true = np.column_stack([rng.integers(0, 4, (len(labels), 33)), rng.integers(10, 70, len(labels))]).astype(float)
    given = np.vstack([true, np.array(DERMATOLOGY_EXTRA), true[:2]])
    given[-2:, -1] = np.nan
    names = [f"f{k}" for k in range(34)]
    order = ["2", "0", "3", "1"]
    data = given.copy()
    for column in range(33):
        data[:, column] = [order.index(str(int(value))) for value in given[:, column]]
    target = np.array([*labels, "4", "1", "1"], dtype=object)
    fake_openml(
        monkeypatch, Bunch(data=data, target=target, feature_names=names, categories=dict.fromkeys(names[:33], order))
    )
    bunch = datasets.load("dermatology", tmp_path)
    assert np.array_equal(bunch.X, true)
    assert np.bincount(bunch.y).tolist() == sizes


def test_another_table_under_that_number_is_refused(tmp_path, monkeypatch):
    fetched = Bunch(data=np.zeros((3, 7)), target=["cp", "im", "new"], feature_names=list("abcdefg"), categories={})
    fake_openml(monkeypatch, fetched)
    with pytest.raises(ConnectionError, match=r"data set 39 did not come \(class sizes \[1, 1, 0.* for \[143, 77, 2"):
        datasets.load("ecoli", tmp_path)


@pytest.mark.parametrize(
    "error",
    [
        urllib.error.URLError("no route"),
        TimeoutError(),
        http.client.IncompleteRead(b""),
        ValueError("md5 of the file differs"),
    ],
)
def test_off_line(tmp_path, monkeypatch, error):
    fake_openml(monkeypatch, error)
    with pytest.raises(ConnectionError) as caught:
        datasets.load("ecoli", tmp_path)
    message = str(caught.value)
    assert message.startswith(
        f"ecoli needs the file {tmp_path / 'traditional' / 'ecoli.npz'}, which was not found, and"
    )
    assert f"OpenML's data set 39 did not come ({str(error) or type(error).__name__}): try again online, or" in message
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pageblocks", "OpenML's page-blocks is the full table of 5473 rows, this one KEEL's sample of 548"),
        ("segment-imb", "OpenML's segment is balanced, this one the authors' own subsample"),
        ("shuttle", "OpenML's shuttle is the full table of 58000 rows, this one KEEL's sample of 2175"),
        ("svmguide2", "OpenML does not have it"),
    ],
)
def test_sets_that_only_the_file_has(tmp_path, name, reason):
    with pytest.raises(FileNotFoundError, match=f"{name}.npz, which was not found, and {reason}: put the file there"):
        datasets.load(name, tmp_path)
