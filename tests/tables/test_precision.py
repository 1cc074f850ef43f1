"""Numbers and times are float64 until their median is subtracted, whatever they are written as."""

from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
pytest.importorskip("skrub", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.columns import with_iso_dates
from mauc._tables.flags import column_mauc, column_recall, flag_columns
from mauc._tables.read import as_read
from mauc.ensemble import TableColumns
from mauc.ensemble.columns import transformer_for

N = 300
CODES = np.arange(N) % 3
LABELS = np.array(["a", "b", "c"])[CODES]
SECONDS = np.round(1_700_000_000.0 + 20.0 * CODES + np.random.default_rng(0).uniform(0.0, 18.0, N), 3)
"""Twenty seconds for each class, in one minute of 2023: float32 counts such seconds by 128."""
DATES = pd.Series(pd.to_datetime((SECONDS * 1000).astype("int64"), unit="ms"))


def beside(sign, cells):
    """Cells as text, one of which is a sign."""
    return pd.Series([str(cell) for cell in cells]).where(np.arange(N) != 5, sign)


WRITTEN = {
    "float64": pd.Series(SECONDS),
    "int64": pd.Series(np.floor(SECONDS).astype("int64")),
    "Int64 with gaps": pd.Series(np.floor(SECONDS).astype("int64"), dtype="Int64").mask(np.arange(N) == 5),
    "numbers as text": pd.Series([str(t) for t in SECONDS]),
    "numbers beside ?": beside("?", SECONDS),
    "decimals": pd.Series([Decimal(str(t)) for t in SECONDS], dtype=object),
    "datetime64[ns]": DATES.astype("datetime64[ns]"),
    "datetime64[ms]": DATES.astype("datetime64[ms]"),
    "dates with a zone": DATES.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"),
    "dates as objects": DATES.astype(object),
    "ISO dates": DATES.astype(str),
    "ISO dates beside ?": beside("?", DATES.dt.strftime("%Y-%m-%d %H:%M:%S.%f")),
    "days first": DATES.dt.strftime("%d/%m/%Y %H:%M:%S.%f"),
    "months first": DATES.dt.strftime("%m/%d/%Y %H:%M:%S.%f"),
    "durations": DATES - pd.Timestamp(0),
    "durations as objects": (DATES - pd.Timestamp(0)).astype(object),
}


def separates(numbers):
    """Whether numbers of one class are all below those of the next, in float32, as trees take them."""
    single, known = np.asarray(numbers, dtype=np.float32), ~np.isnan(np.asarray(numbers, dtype=float))
    ends = [(min(single[known & each]), max(single[known & each])) for each in (k == CODES for k in range(3))]
    return ends[0][1] < ends[1][0] and ends[1][1] < ends[2][0]


@pytest.mark.parametrize("form", WRITTEN)
def test_float64_until_centred_on_every_path(form):
    raw = pd.DataFrame({"t": WRITTEN[form]})
    table = as_read(raw)
    with pytest.warns(UserWarning, match="with the day first") if form == "days first" else nullcontext():
        table = with_iso_dates(table, {"t": "other"}, "day-first", Path("t"))[0]
    for frame in (table, raw):
        numbers = TableColumns().fit_transform(frame)
        assert any(separates(column) for column in numbers.T), "the models"
    if form != "months first":
        numbers = TableColumns(quick=True).fit_transform(table)
        assert any(separates(column) for column in numbers.T), "the models in a few seconds"
    assert column_mauc(table["t"], LABELS) > 0.99, "the flags of leaks"
    assert column_recall(table["t"], LABELS) > 0.95, "the choice of columns for importance"
    assert [flag.kind for flag in flag_columns(table, LABELS, "y", nearly_perfect=0.99)[0]] == ["target"]


def test_arrays_are_centred_too():
    array = SECONDS[:, None]
    centred = transformer_for("auto", array, own_models=False, random_state=0).fit_transform(array)
    assert separates(centred[:, 0])
