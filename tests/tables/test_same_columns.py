"""New tables become like the training table: dates, booleans, bad cells and unknown categories."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.columns import read_kinds, same_columns
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


@pytest.mark.parametrize(
    ("trained", "new", "n_bad"), [(HOURS, ["2024-01-02", "soon", None], 1), (HOURS, ZONED[:3], 3), (ZONED, HOURS[:3], 3)]
)
def test_dates_that_are_not_known_are_told(trained, new, n_bad):
    found, told = numbers_of(trained, new)
    assert len(told) == 1
    assert told[0].endswith(f"{n_bad} in all): treated as missing")
    assert np.isfinite(found[0]).all() == (n_bad == 1)
