"""Saved scores and row hashes: written whole, read with care, matched only where they belong."""

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.errors import Failure
from mauc._tables.model_file import SCHEMA
from mauc._tables.read import as_in_text, read_table
from mauc._tables.saved_scores import (
    SavedScores,
    cell_hashes,
    check_same_table,
    column_digests,
    common_rows,
    read_saved_scores,
    row_hashes,
    scores_path,
    trained_note,
    write_saved_scores,
)

LABELS = np.repeat(["oak", "elm", "yew"], 4)
TABLE = pd.DataFrame({"x": np.arange(12.0), "soil": ["a", None] * 6})


def hashes_of(table):
    return row_hashes(cell_hashes(table))


def digests_of(table):
    return column_digests(cell_hashes(table))


@pytest.fixture
def saved():
    rows = np.arange(0, 12, 2)
    scores = np.random.default_rng(0).random((6, 3))
    classes = np.unique(LABELS)
    predicted = classes[scores.argmax(axis=1)]
    return SavedScores(
        "a model", "y", "folds", 12, rows, LABELS[rows], classes, scores, digests_of(TABLE), predicted=predicted
    )


def write_archive(path, content):
    """What looks like a model file from outside."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(SCHEMA, content)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.skops"
    write_archive(path, "a model")
    return path


def test_what_is_written_comes_back(saved, model):
    path = write_saved_scores(model, saved)
    assert path == scores_path(model) == model.with_name("m.scores.npz")
    first = path.read_bytes()
    found = read_saved_scores(model)
    for name in ("about", "target", "how", "n_rows", "columns"):
        assert getattr(found, name) == getattr(saved, name)
    for name in ("rows", "labels", "classes", "scores"):
        np.testing.assert_array_equal(getattr(found, name), getattr(saved, name))
    assert write_saved_scores(model, saved).read_bytes() == first, "equal runs write equal files"


def test_files_that_do_not_belong(saved, model):
    with pytest.raises(Failure, match=r"File not found: .*m\.scores\.npz, the test scores of .*: put it back"):
        read_saved_scores(model)
    write_saved_scores(model, saved)
    write_archive(model, "another model")
    with pytest.raises(Failure, match=r"holds the scores of another model than .*: fit again"):
        read_saved_scores(model)
    np.savez(scores_path(model), text=np.array(["a", "b", "c", "d"]), rows=np.arange(3))
    with pytest.raises(Failure, match="is damaged or was not written by mauc fit"):
        read_saved_scores(model)
    scores_path(model).write_bytes(b"PK no archive")
    with pytest.raises(Failure, match="is damaged or was not written by mauc fit"):
        read_saved_scores(model)
    write_saved_scores(model, replace(saved, scores=np.full((6, 3), np.nan)))
    with pytest.raises(Failure, match="is damaged or was not written by mauc fit"):
        read_saved_scores(model)
    with pytest.raises(Failure, match=r"File not found: .*: name a model file"):
        read_saved_scores(model.with_name("nowhere.skops"))


def test_tables_that_differ_are_refused(saved):
    names = ("a", "b")
    check_same_table(saved, replace(saved, columns={"x": saved.columns["x"], "new": "1"}), names)
    changed = digests_of(TABLE.assign(x=TABLE["x"].to_numpy()[::-1]))
    for other, words in (
        (replace(saved, columns=changed), "column 'x' differs between the tables of a and b"),
        (replace(saved, n_rows=13), "the table of a has 12 rows and that of b 13"),
        (replace(saved, target="z"), "a predicts 'y' and b predicts 'z'"),
        (replace(saved, classes=np.array(["oak", "elm", "fir"])), "a and b score different classes"),
    ):
        with pytest.raises(Failure, match=words):
            check_same_table(saved, other, names)


def test_common_rows(saved):
    rows = np.arange(0, 12, 3)
    other = replace(saved, rows=rows, labels=LABELS[rows], scores=np.arange(12.0).reshape(4, 3))
    labels, (mine, theirs), groups = common_rows([saved, other], ("a", "b"))
    assert groups is None
    assert labels.tolist() == ["oak", "elm"], "rows 0 and 6"
    np.testing.assert_array_equal(mine, saved.scores[[0, 3]])
    np.testing.assert_array_equal(theirs, other.scores[[0, 2]])
    with pytest.raises(Failure, match="the classes of the rows of b and a differ"):
        common_rows([saved, replace(other, labels=np.roll(other.labels, 1))], ("a", "b"))
    with pytest.raises(Failure, match="the models were tested on different rows: fit with the same --seed"):
        common_rows([saved, replace(other, rows=rows + 20)], ("a", "b"))


def test_a_fingerprint_is_of_the_values_in_their_order():
    assert digests_of(TABLE) == digests_of(TABLE.copy())
    assert digests_of(TABLE)["soil"] != digests_of(TABLE.iloc[::-1])["soil"]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "exact": rng.normal(size=n) * 10.0 ** rng.integers(-8, 9, n),
            "single": rng.normal(size=n).astype(np.float32),
            "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 9, n)),
            "whole": rng.integers(-(10**9), 10**9, n),
            "yes": rng.random(n) < 0.5,
            "soil": pd.Categorical(rng.choice(["sand", "clay", "a|b"], n)),
            "note": [None if k % 7 == 0 else f"tree {k}" for k in range(n)],
            "day": pd.date_range("2021-01-01", periods=n),
        }
    )


def test_csv_and_parquet_give_the_same_rows(table, tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    from_csv, from_parquet = (read_table(tmp_path / name) for name in ("t.csv", "t.parquet"))
    np.testing.assert_array_equal(hashes_of(from_csv), hashes_of(from_parquet))
    assert len(np.unique(hashes_of(from_csv))) == len(table)
    assert digests_of(from_csv) == digests_of(from_parquet)
    hashes = hashes_of(from_parquet.iloc[:200])
    assert np.flatnonzero(np.isin(hashes_of(from_csv), hashes)).tolist() == list(range(200))


def test_date_order_rows_and_columns_does_not_matter_and_values_do(table):
    hashes = hashes_of(table)
    turned = table.iloc[::-1, ::-1].reset_index(drop=True)
    np.testing.assert_array_equal(hashes_of(turned), hashes[::-1])
    for name, value in {"exact": 0.25, "soil": "loam", "note": "", "gaps": 0.5, "yes": None}.items():
        changed = table.astype({name: object})
        changed.loc[3, name] = value
        assert np.flatnonzero(hashes_of(changed) != hashes).tolist() == [3], name
    swapped = table.rename(columns={"gaps": "whole", "whole": "gaps"})
    assert not np.isin(hashes_of(swapped), hashes).any(), "the same value in another column is no match"


def test_a_slip_in_one_cell_leaves_the_other_rows_alone(table):
    """A column of numbers with one word in it is read as text."""
    text = table[["whole"]].to_csv(index=False).replace(str(table["whole"][5]), "unknown")
    slipped = pd.read_csv(io.StringIO(text))
    assert slipped["whole"].dtype.kind == "O"
    assert np.flatnonzero(hashes_of(slipped) != hashes_of(table[["whole"]])).tolist() == [5]


def test_missing_values_and_zeros_have_one_hash():
    for values in ([np.nan, None, pd.NA], [0.0, -0.0, False], [7, 7.0, "7"]):
        assert len(np.unique(hashes_of(pd.DataFrame({"x": pd.Series(values, dtype=object)})))) == 1
    last_digit = np.nextafter(0.1, 1.0)
    assert len(np.unique(hashes_of(pd.DataFrame({"x": [0.1, last_digit]})))) == 1
    assert len(np.unique(hashes_of(pd.DataFrame({"x": 1e9 + np.arange(1000) / 10})))) == 1000


@pytest.mark.parametrize(
    "series",
    [
        [{first + k for k in range(400)} for first in (1, 2**53, 4_000_123_412_341_234, 4_000_123_412_341_234_567)],
        [{2**63 + k for k in range(400)}, {10**30 + k for k in range(400)}],
    ],
)
def test_whole_numbers_count_with_all_digits(series):
    for numbers in series:
        whole = sorted(numbers)
        forms = [pd.Series(whole), pd.Series(whole, dtype=object), pd.Series([f" {n}" for n in whole])]
        forms += [pd.Series([f"{n}.0" for n in whole]), pd.Series([*whole, None], dtype=object)[:-1]]
        forms += [pd.Series(whole, dtype="Int64")] if whole[-1] < 2**63 else []
        hashes = [cell_hashes(form.to_frame("id"))["id"] for form in forms]
        assert len(np.unique(hashes[0])) == 400
        for other in hashes[1:]:
            np.testing.assert_array_equal(other, hashes[0])


@pytest.mark.parametrize("number", [0.0, -3.0, 2.0**53, -(2.0**63), 2.0**63, 1e30, 0.1, -1e-300, np.inf])
def test_a_number_has_one_hash_in_every_form(number):
    forms = [pd.Series([number]), pd.Series([str(number)]), pd.Series([number], dtype="Float64")]
    forms += [pd.Series([int(number)]), pd.Series([str(int(number))])] if float(number).is_integer() else []
    assert len({int(cell_hashes(form.to_frame("x"))["x"][0]) for form in forms}) == 1


def test_a_cell_has_one_hash_beside_any_other():
    """The type of a column, and how dates are written, depend on all of its cells."""
    for alone, beside in (
        ([7, 12], [7, 12, None]),
        ([7, 12], [7, 12, 0.5]),
        ([7, 12], ["7", "12", "?"]),
        ([True, False], ["TRUE", "false", "?"]),
        (["2024-01-01"], ["2024-01-01 00:00:00", "2024-01-01 10:00:00"]),
        (["2024-01-01 10:00:00"], ["2024-01-01T10:00:00.000000"]),
    ):
        found, expected = (cell_hashes(as_in_text(pd.DataFrame({"x": each})))["x"] for each in (beside, alone))
        np.testing.assert_array_equal(found[: len(expected)], expected)


def test_note():
    assert trained_note(0, 10) == ""
    assert trained_note(1, 10).startswith("1 of these 10 rows was a training row")
    assert trained_note(776, 1000).startswith("776 of these 1,000 rows were training rows")
