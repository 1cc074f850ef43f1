"""The sets of the tabular experiment: bundled, or from a folder."""

import numpy as np
import pytest
from sklearn.utils import Bunch

from experiments import datasets
from experiments.datasets.images import IMAGES
from experiments.tabular import data as tabular_data
from experiments.tabular.data import DEVELOPMENT, QUICK_SETS, SETS, load_set, set_names


def test_set_names(tmp_path):
    assert set(DEVELOPMENT) <= set(SETS)
    assert set(SETS) == set(datasets.names()) - set(IMAGES), "features of images are no tables"
    assert set(QUICK_SETS) <= set(SETS)
    assert set_names() == SETS
    assert set_names(quick=True) == QUICK_SETS
    with pytest.raises(ValueError, match=r"tables must be a folder with CSV files, got .*: name another folder"):
        set_names(tables=tmp_path)
    for name in ("zebra.csv", "ant.csv", "notes.txt"):
        (tmp_path / name).write_text("")
    assert set_names(tables=tmp_path) == (*SETS, "ant", "zebra")
    (tmp_path / "yeast.csv").write_text("")
    with pytest.raises(ValueError, match=r"tables must hold sets of other names, got yeast\.csv: rename that file"):
        set_names(tables=tmp_path)


def test_a_folder_of_tables(tmp_path):
    rows = ["1,a,x", ",b,y", "3,,z", "5,b,x", "1,a,alone"]
    (tmp_path / "mixed.csv").write_text("\n".join(["size,kind,class", *rows[:4], *rows[:4], rows[4]]))
    X, y = load_set("mixed", None, str(tmp_path))
    np.testing.assert_array_equal(y, [0, 1, 2, 0] * 2, "a class of one row is left out")
    np.testing.assert_array_equal(X[:4, 0], [1, np.nan, 3, 5])
    np.testing.assert_array_equal(X[:4, 1:], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])


def test_a_table_keeps_all_its_rows(tmp_path):
    y = np.repeat(["a", "b", "c"], [700, 300, 3])
    (tmp_path / "large.csv").write_text("\n".join(["x,class", *(f"{k},{c}" for k, c in enumerate(y))]))
    np.testing.assert_array_equal(np.bincount(load_set("large", None, str(tmp_path))[1]), [700, 300, 3])


@pytest.mark.parametrize(("text", "came"), [("x,class\n1,a\n2,\n", "rows without one"), ("class\na\nb\n", "no other")])
def test_a_table_without_classes(tmp_path, text, came):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(ValueError, match=f"must have a class for every row in its last column, got {came}"):
        load_set("bad", None, str(tmp_path))


def test_a_table_of_one_class(tmp_path):
    (tmp_path / "one.csv").write_text("x,class\n1,a\n2,a\n3,b\n")
    with pytest.raises(ValueError, match="one must have two classes of two rows or more, got 1 of 2: is the class"):
        load_set("one", None, str(tmp_path))


def test_large_sets_keep_their_rare_classes(monkeypatch):
    y = np.repeat([0, 1, 2, 3], [1000, 300, 7, 1])
    X = np.column_stack([np.arange(1308.0), np.ones(1308)])
    monkeypatch.setattr(tabular_data.datasets, "load", lambda name, home: Bunch(X=X, y=y))
    X, y = load_set("kddcup99", None)
    np.testing.assert_array_equal(np.bincount(y), [200, 200, 7])
    assert X.shape == (407, 1), "a constant column says nothing"
    load_set.cache_clear()
    np.testing.assert_array_equal(X, load_set("kddcup99", None)[0])


def test_unknown_set():
    with pytest.raises(ValueError, match="set must be one of 'balance', "):
        load_set("iris", None)
