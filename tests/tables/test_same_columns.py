"""New tables become like the training table: dates, booleans, bad cells and unknown categories."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.columns import check_finite, read_kinds, same_columns
from mauc._tables.errors import Failure
from mauc._tables.read import as_read
from mauc.ensemble import TableColumns

HOURS = pd.Series(pd.date_range("2024-01-01", periods=60, freq="7h"))
DAYS = pd.Series(pd.date_range("2024-01-01", periods=60))
ZONED = HOURS.dt.tz_localize("UTC")


def numbers_of(trained, new):
    """Return the numbers that a column becomes in a new table, and the warnings."""
    table = as_read(pd.DataFrame({"a": trained}))
    columns = TableColumns().fit(table)
    model = SimpleNamespace(kinds=read_kinds(table), columns=columns)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        known, _ = same_columns(as_read(pd.DataFrame({"a": new})), model, Path("t"))
        found = columns.transform(known)
    return found, [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("trained", "new", "expected"),
    [
        (HOURS, DAYS[:2], DAYS[:2].dt.strftime("%Y-%m-%d %H:%M:%S")),
        (HOURS, ["2024-01-01T07:00", "2024-01-02"], ["2024-01-01 07:00:00", "2024-01-02 00:00:00"]),
        (HOURS, HOURS[:2] + pd.Timedelta("250ms"), HOURS[:2]),
        (HOURS + pd.Timedelta("250ms"), HOURS[:2], HOURS[:2].dt.strftime("%Y-%m-%d %H:%M:%S.%f")),
        (DAYS, HOURS[:5], HOURS[:5].dt.normalize()),
        (DAYS.dt.strftime("%m/%d/%Y"), DAYS[:2], ["01/01/2024", "01/02/2024"]),
        (ZONED, ZONED[:4].dt.tz_convert("Asia/Tokyo"), ZONED[:4]),
        (ZONED.dt.tz_convert("Asia/Tokyo").astype(str), ZONED[:4], ZONED[:4]),
        (ZONED, ["2024-01-01 02:00+02", "2024-01-01T07:00:00.5Z"], ZONED[:2]),
    ],
)
def test_dates_are_known_however_they_are_written(trained, new, expected):
    found, told = numbers_of(trained, new)
    assert not told
    np.testing.assert_array_equal(found, numbers_of(trained, expected)[0])
    assert np.isfinite(found).all()


def test_a_column_that_was_empty_in_training_may_be_missing():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [None, None]})
    model = SimpleNamespace(kinds=read_kinds(table), columns=TableColumns().fit(table))
    known, extra = same_columns(table[["a"]], model, Path("t"))
    np.testing.assert_array_equal(model.columns.transform(known), [[-0.5], [0.5]])
    assert not extra


def test_missing_columns_without_names_hint_at_the_header():
    table = pd.DataFrame({"column_1": [1.0, 2.0], "column_2": [3.0, 4.0]})
    model = SimpleNamespace(kinds=read_kinds(table), columns=TableColumns().fit(table))
    with pytest.raises(Failure, match=r"if the first line of the file is a row, use --no-header"):
        same_columns(pd.DataFrame({"1": [2.0], "3": [4.0]}), model, Path("t"))


@pytest.mark.parametrize(
    ("trained", "new", "n_bad"),
    [(HOURS, ["2024-01-02", "soon", None], 1), (HOURS, ZONED[:3], 3), (ZONED, HOURS[:3], 3)],
)
def test_dates_that_are_not_known_are_told(trained, new, n_bad):
    found, told = numbers_of(trained, new)
    assert len(told) == 1
    assert told[0].endswith(f"{n_bad} in all): treated as missing")
    assert np.isfinite(found[0]).all() == (n_bad == 1)


TRUTHS = pd.Series([True, False, None] * 20, dtype=object)


@pytest.mark.parametrize(
    "words", [["True", "FALSE", None], [" true", "False", None], [True, False, None], [1, 0, None]]
)
def test_truth_values_with_gaps_are_numbers(words):
    expected, told = numbers_of(TRUTHS, [True, False, None])
    assert not told
    np.testing.assert_array_equal(expected, [[0.5], [-0.5], [np.nan]])
    np.testing.assert_array_equal(numbers_of(TRUTHS, words)[0], expected)
    found, told = numbers_of(TRUTHS, [*words, "maybe"])
    np.testing.assert_array_equal(found, [*expected, [np.nan]])
    assert told == [
        "column 'a' held numbers in training and has a value that is not a number, such as 'maybe' in row 4: treated "
        "as missing"
    ]


def test_a_cell_of_numbers_in_text_is_not_lost_silently():
    found, told = numbers_of([str(k) for k in range(60)], ["3", "three", None])
    np.testing.assert_array_equal(found, [[3.0 - 29.5], [np.nan], [np.nan]])
    assert ["such as 'three' in row 2: treated as missing" in each for each in told] == [True]


@pytest.mark.parametrize("bad", [np.inf, "inf", "-1e400", pytest.param(10**400, id="10**400"), 1e300, [1]])
@pytest.mark.parametrize("trained", [np.arange(60) / 7, [f"{k}.5" for k in range(60)], TRUTHS])
def test_a_bad_cell_costs_one_cell(trained, bad):
    found, told = numbers_of(trained, pd.Series([1, bad, None, 0], dtype=object))
    np.testing.assert_array_equal(found, numbers_of(trained, pd.Series([1, None, None, 0], dtype=object))[0])
    assert [each.startswith("column 'a' of t holds ") for each in told] == [True]
    assert told[0].endswith("(first: row 2, 1 in all): treated as missing")


def test_words_are_no_bad_cells():
    assert numbers_of(["inf", "sup"] * 30, ["inf", "sup"])[1] == []


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([np.inf, 1], "has 1 infinite number (first: row 1)"),
        (["2", "inf", "Infinity"], "has 2 infinite numbers (first: row 2)"),
        ([1, 10**400], "has 1 infinite number (first: row 2)"),
        (["1", "1e300"], "holds 1e+300 (row 2)"),
    ],
)
def test_bad_cells_of_training_are_refused_with_their_column(cells, words):
    table = as_read(pd.DataFrame({"word": ["inf", "sup", "inf"][: len(cells)], "a": pd.Series(cells, dtype=object)}))
    with pytest.raises(Failure, match=re.escape(f"column 'a' of t {words}")):
        check_finite(table, Path("t"))


def test_unknown_categories_are_told():
    assert numbers_of(["sand", "clay"] * 30, ["peat", "sand", None])[1] == [
        "column 'a' of t holds values that the training rows do not have, such as 'peat' (1 row): these are treated as "
        "unknown"
    ]
