"""Scores kept beside a model: written whole, read with care, compared only with what belongs to them."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.errors import Failure
from mauc._tables.model_file import SCHEMA
from mauc._tables.saved_scores import (
    SavedScores,
    check_same_table,
    column_digests,
    common_rows,
    read_saved_scores,
    scores_path,
    write_saved_scores,
)

LABELS = np.repeat(["oak", "elm", "yew"], 4)
TABLE = pd.DataFrame({"x": np.arange(12.0), "soil": ["a", None] * 6})


@pytest.fixture
def kept():
    rows = np.arange(0, 12, 2)
    repeats = [np.random.default_rng(k).random((6, 3)) for k in range(2)]
    return SavedScores("a model", "y", "folds", 12, rows, LABELS[rows], np.unique(LABELS), repeats, column_digests(TABLE))


def write_archive(path, content):
    """What looks like a model file from outside."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(SCHEMA, content)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.skops"
    write_archive(path, "a model")
    return path


def test_what_is_written_comes_back(kept, model):
    path = write_saved_scores(model, kept)
    assert path == scores_path(model) == model.with_name("m.scores.npz")
    first = path.read_bytes()
    found = read_saved_scores(model)
    for name in ("about", "target", "how", "n_rows", "columns"):
        assert getattr(found, name) == getattr(kept, name)
    for name in ("rows", "labels", "classes", "repeats"):
        np.testing.assert_array_equal(getattr(found, name), getattr(kept, name))
    assert write_saved_scores(model, kept).read_bytes() == first, "equal runs write equal files"


def test_files_that_do_not_belong(kept, model):
    with pytest.raises(Failure, match=r"m\.scores\.npz, the scores that .* was judged by, is not there: put it back"):
        read_saved_scores(model)
    write_saved_scores(model, kept)
    write_archive(model, "another model")
    with pytest.raises(Failure, match=r"holds the scores of another model than .* is: fit again"):
        read_saved_scores(model)
    np.savez(scores_path(model), text=np.array(["a", "b", "c", "d"]), rows=np.arange(3))
    with pytest.raises(Failure, match="is no file of scores that mauc fit wrote"):
        read_saved_scores(model)
    scores_path(model).write_bytes(b"PK no archive")
    with pytest.raises(Failure, match="is no file of scores that mauc fit wrote"):
        read_saved_scores(model)
    nan = [np.full((6, 3), np.nan)]
    write_saved_scores(model, replace(kept, repeats=nan))
    with pytest.raises(Failure, match="is no file of scores that mauc fit wrote"):
        read_saved_scores(model)
    with pytest.raises(Failure, match=r"file not found: .*: name a model file"):
        read_saved_scores(model.with_name("nowhere.skops"))


def test_tables_that_differ_are_refused(kept):
    names = ("a", "b")
    check_same_table(kept, replace(kept, columns={"x": kept.columns["x"], "new": "1"}), names)
    changed = column_digests(TABLE.assign(x=TABLE["x"].to_numpy()[::-1]))
    for other, words in (
        (replace(kept, columns=changed), "column 'x' differs between the tables of a and b"),
        (replace(kept, n_rows=13), "a is of a table of 12 rows and b of one of 13"),
        (replace(kept, target="z"), "a was trained to tell 'y' and b 'z'"),
        (replace(kept, classes=np.array(["oak", "elm", "fir"])), "a and b score different classes"),
    ):
        with pytest.raises(Failure, match=words):
            check_same_table(kept, other, names)


def test_common_rows(kept):
    rows = np.arange(0, 12, 3)
    other = replace(kept, rows=rows, labels=LABELS[rows], repeats=[np.arange(12.0).reshape(4, 3)])
    labels, (mine, theirs), groups = common_rows([kept, other], ("a", "b"))
    assert groups is None
    assert labels.tolist() == ["oak", "elm"], "rows 0 and 6"
    np.testing.assert_array_equal(mine, [repeat[[0, 3]] for repeat in kept.repeats])
    np.testing.assert_array_equal(theirs, [other.repeats[0][[0, 2]]])
    with pytest.raises(Failure, match="the classes of the rows of b and a differ"):
        common_rows([kept, replace(other, labels=np.roll(other.labels, 1))], ("a", "b"))
    with pytest.raises(Failure, match="the models were judged by different rows: fit with the same --seed"):
        common_rows([kept, replace(other, rows=rows + 20)], ("a", "b"))


def test_a_fingerprint_is_of_the_values_in_their_order():
    assert column_digests(TABLE) == column_digests(TABLE.copy())
    assert column_digests(TABLE)["soil"] != column_digests(TABLE.iloc[::-1])["soil"]
