"""Reading tables: the formats, and every way in which that can fail."""

import sys
from contextlib import nullcontext
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.columns import describe_columns
from mauc._tables.data import parse_times
from mauc._tables.errors import Failure, Usage
from mauc._tables.flags import flag_columns
from mauc._tables.read import (
    as_in_text,
    class_labels,
    drop_duplicates,
    get_column,
    nearest,
    read_table,
    rows_with_lists,
)
from mauc.ensemble import TableColumns

FRAME = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})


@pytest.mark.parametrize(("name", "separator"), [("t.csv", ","), ("t.tsv", "\t"), ("t.csv", ";"), ("t.csv.gz", ",")])
def test_text_tables(tmp_path, name, separator):
    FRAME.to_csv(tmp_path / name, sep=separator, index=False)
    with pytest.warns(UserWarning, match="with semicolons") if separator == ";" else nullcontext():
        pd.testing.assert_frame_equal(read_table(tmp_path / name), FRAME)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    FRAME.set_index(pd.Index(["u", "u"], name="id")).to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    assert read["b"].tolist() == ["x", "y"]
    assert read.index.tolist() == [0, 1], "rows have numbers, whatever index pandas saved"
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(Failure, match="cannot be read as Parquet"):
        read_table(tmp_path / "bad.parquet")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(Failure, match="needs pyarrow: pip install 'mauc\\[parquet\\]', or save the table as CSV"):
        read_table(tmp_path / "t.parquet")


def test_dates_and_categories_read_as_in_text(tmp_path):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    days = pd.to_datetime(["2021-01-02", "2021-03-04", None])
    frame = pd.DataFrame({"day": days, "hour": days + pd.Timedelta("1h"), "kind": pd.Categorical(["x", "y", "x"])})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    read, text = (read_table(tmp_path / name) for name in ("t.parquet", "t.csv"))
    pd.testing.assert_frame_equal(read.astype("str"), text.astype("str"))


def test_dates_with_a_time_zone_are_read_in_utc(tmp_path):
    """Around the end of daylight saving, an hour of local time recurs."""
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    at = pd.Series(pd.date_range("2024-10-26 23:30", periods=4, freq="h", tz="UTC")).dt.tz_convert("Europe/Berlin")
    expected = [f"2024-10-{day}:30:00+0000" for day in ("26 23", "27 00", "27 01", "27 02")]
    several = pd.Series([at[0], *at.dt.tz_convert("UTC")[1:]], dtype=object)
    for each in (at, at.dt.tz_convert("UTC"), at.astype(object), at.astype("timestamp[us, tz=Europe/Berlin][pyarrow]")):
        assert as_in_text(each.to_frame("at"))["at"].tolist() == expected
    assert as_in_text(several.to_frame("at"))["at"].tolist()[0] == "2024-10-27 01:30:00+02:00", "as in a CSV file"
    at.to_frame("at").to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet")["at"].tolist() == expected
    at.to_frame("at").to_csv(tmp_path / "t.csv", index=False)
    for times in (read_table(tmp_path / "t.csv")["at"], as_in_text(at.to_frame("at"))["at"]):
        assert np.diff(parse_times(times, "at", Path("t"), None)).min() > 0
    nanoseconds = pd.Series(pd.to_datetime([1_700_000_000_000_000_001, None, 1_700_000_000_000_000_002], unit="ns"))
    assert as_in_text(nanoseconds.to_frame("at"))["at"].tolist()[2] == "2023-11-14 22:13:20.000000002"


def test_columns_of_other_types_read_as_in_text(tmp_path):
    frame = pd.DataFrame(
        {
            "month": pd.PeriodIndex(["2024-01", None, "2024-03"], freq="M"),
            "range": pd.cut(pd.Series([1, 99, 5]), [0, 3, 9]),
            "day": pd.Series([pd.Timestamp("2024-01-05").date(), None, pd.Timestamp("2024-03-01").date()]),
            "arrow": pd.Series(pd.to_datetime(["2024-01-05", None, "2024-03-01"])),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    if find_spec("pyarrow"):
        frame["arrow"] = frame["arrow"].astype("date32[pyarrow]")
    read, text = as_in_text(frame), read_table(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read.fillna("").astype("str"), text.fillna("").astype("str"))
    for took in (pd.to_timedelta(["90min", None]), pd.array(pd.to_timedelta(["90min", None])).astype(object)):
        np.testing.assert_array_equal(as_in_text(pd.DataFrame({"took": took}))["took"], [5400.0, np.nan])
    with pytest.raises(Failure, match=r"column 'wave' must hold real numbers, dates or texts, got complex numbers"):
        as_in_text(pd.DataFrame({"wave": [1j, 2.0]}))


def test_decimals_are_numbers(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    rng = np.random.default_rng(0)
    cents = rng.choice(10**6, 60, replace=False)
    price = [None, *(Decimal(int(c)) / 100 for c in cents[1:])]
    count = [Decimal(int(c)) for c in np.resize(cents[:11], 60)]
    frame = pd.DataFrame({"price": price, "count": count, "kind": ["a", "b", "c"] * 20})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    read, text = (read_table(tmp_path / name) for name in ("t.parquet", "t.csv"))
    pd.testing.assert_frame_equal(read, text)
    assert flag_columns(read[["price", "count"]], frame["kind"].to_numpy(), "kind")[0] == [], "no code"
    assert class_labels(read["count"], "count", tmp_path).tolist() == [str(c) for c in count]
    for form in (
        frame["price"].astype(pd.ArrowDtype(pa.decimal128(12, 2))),
        pd.Series([pd.NA, *price[1:]], dtype=object),
    ):
        pd.testing.assert_series_equal(as_in_text(form.to_frame("price"))["price"], read["price"])


def test_lists_of_pyarrow_are_found():
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    for values in ([[1], None, [2, 3]], [{"a": 1}, None, {"a": 2}]):
        assert rows_with_lists(pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values)))) == [0, 2]


def test_times_with_a_zone_are_the_same_beside_any_gap():
    times = [pd.Timestamp("2024-01-01 10:00", tz="Europe/Berlin"), pd.Timestamp("2024-01-02 10:00", tz="UTC")]
    none, na = (as_in_text(pd.DataFrame({"t": pd.Series([gap, times[0]], dtype=object)})) for gap in (None, pd.NA))
    pd.testing.assert_frame_equal(none, na)


def test_two_columns_of_one_name(tmp_path):
    for header in ("x,y,x", '"x",NA,x'):
        (tmp_path / "t.csv").write_text(f"{header}\n1,2,3\n")
        with pytest.raises(Failure, match="has two columns named 'x': rename one of them"):
            read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(",x,,x.1\n1,2,3,4\n")
    assert read_table(tmp_path / "t.csv").shape == (1, 4), "names may be left out"


def test_columns_read_as_text(tmp_path):
    (tmp_path / "t.csv").write_text("code,n\n01,01\n,2\n")
    read = read_table(tmp_path / "t.csv", ["code", "other"])
    assert read["code"].tolist()[0] == "01"
    assert read["code"].isna().tolist() == [False, True]
    assert read["n"].tolist() == [1, 2]


def test_codes_keep_their_leading_zeros(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code,count,x\n007,1,01\n,2,02\n10,3,03\n")
    plain, kept = read_table(path), read_table(path, codes=["code", "count", "absent"])
    assert plain["code"].tolist()[0] == 7
    assert kept["code"].tolist()[::2] == ["007", "10"]
    assert kept["code"].isna().tolist() == [False, True, False]
    assert kept["count"].tolist() == [1, 2, 3], "numbers stay numbers"
    assert kept["x"].tolist() == [1, 2, 3], "features too"


def test_files_that_are_no_tables(tmp_path):
    (tmp_path / "patients.csv").write_text("a\n1\n")
    with pytest.raises(Failure, match=r"File not found: .*; did you mean 'patients.csv'\?"):
        read_table(tmp_path / "patient.csv")
    with pytest.raises(Failure, match="is a folder"):
        read_table(tmp_path)
    (tmp_path / "t.xls").write_bytes(b"x")
    with pytest.raises(Failure, match=r"must end in \.csv, \.tsv, \.xlsx or \.parquet"):
        read_table(tmp_path / "t.xls")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be read as a table"),
        (b"a,b\n", "has no rows"),
        (b"a,b\n1,2,3,4\n5\n6,7,8\n1,2,3,4,5\n", "cannot be read as a table"),
    ],
)
def test_unreadable_text(tmp_path, content, words):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(Failure, match=words):
        read_table(tmp_path / "t.csv")


def test_unknown_column(tmp_path):
    path = tmp_path / "t.csv"
    with pytest.raises(Usage, match=r"--target 'speces' is not a column of .*; did you mean 'Species'\?"):
        get_column(pd.DataFrame({"Species": [1], "height": [2]}), "speces", "--target", path)
    with pytest.raises(Usage, match="its columns are a, b"):
        get_column(FRAME, "zzzzzz", "--target", path)
    assert nearest("HIGHT", ["height", "weight", "soil"])[0] == "height"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a", None, "b"], r"has no class in 1 row \(first: row 2\): fill them in, or leave them out"),
        ([1.5, 2.0, 3.0], "holds measurements such as 1.5, not classes"),
        ([1.0, np.inf], "holds infinite numbers, not classes"),
        ([1.0, -3e20], "holds -3e\\+20, too large to be read exactly: use texts as classes"),
        ([["a"], ["b"]], r"holds lists \(first: row 1\), not classes: choose another column"),
        (["a", "b", " a"], "holds 'a' and ' a', which differ only in blanks: write them alike"),
        (["a", "a", "a"], "has one class, 'a': multiclass AUC needs two or more"),
        (
            np.arange(1000) ** 2 // 7,
            r"holds measurements such as 0 and 1 \(9\d\d numbers in 1000 rows\), not classes: choose another",
        ),
    ],
)
def test_columns_that_are_no_classes(tmp_path, values, words):
    with pytest.raises(Failure, match=words):
        class_labels(pd.Series(values), "y", tmp_path / "t.csv")


@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0], ["1", "2"], [" 1", "2 "]])
def test_classes_are_strings(tmp_path, values):
    assert class_labels(pd.Series(values), "y", tmp_path).tolist() == ["1", "2"]


def test_equal_values_of_several_types_are_different_classes(tmp_path):
    values = pd.Series([1, True, "yes", 1, True], dtype=object)
    assert class_labels(values, "y", tmp_path).tolist() == ["1", "True", "yes", "1", "True"]


def test_whole_numbers_that_may_be_classes(tmp_path):
    codes, rare = np.arange(1000) % 500, np.repeat([3, 10**6, 5 * 10**6], 9)
    often = np.tile(np.arange(150) ** 2, 20)
    for values in (codes, rare, often):
        assert len(class_labels(pd.Series(values), "y", tmp_path)) == len(values)
    prices = pd.Series(np.arange(1000) ** 2)
    assert len(class_labels(prices, "y", tmp_path, as_named=True)) == 1000, "scores name them as classes"


def test_separators_within_quotes_do_not_count(tmp_path):
    path = tmp_path / "quoted.csv"
    path.write_text('"a;b;c;d",target\n1,x\n2,y\n', encoding="utf-8")
    assert list(read_table(path).columns) == ["a;b;c;d", "target"]


def test_parts_of_a_second_are_kept(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")
    times = pd.to_datetime(["2024-01-01 00:00:00.250", "2024-01-01 00:00:00.500"])
    pd.DataFrame({"at": times}).to_parquet(tmp_path / "t.parquet")
    assert list(read_table(tmp_path / "t.parquet")["at"]) == [
        "2024-01-01 00:00:00.250000",
        "2024-01-01 00:00:00.500000",
    ]


def test_repeated_rows_are_taken_once(tmp_path):
    frame = pd.DataFrame({"x": [1, 1, 2, 1], "y": ["a", "a", "b", "b"], "z": [[1], [1], [1], [1]]})
    for table in (frame, frame[["x", "y"]]):
        with pytest.warns(UserWarning, match=r"1 duplicate row of t\.csv is dropped"):
            assert drop_duplicates(table, Path("t.csv"))["x"].tolist() == [1, 2, 1]


def test_kinds_of_columns():
    pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
    n = 60
    table = pd.DataFrame(
        {
            **{f"x{k}": np.arange(n) * 0.5 for k in range(6)},
            "soil": ["sand", "clay"] * (n // 2),
            "plot": ["a1", "b2", "c3"] * (n // 3),
            "day": pd.date_range("2021-01-01", periods=n).astype(str),
            "note": [f"leaf {k} of a tree" for k in range(n)],
            "written": [f"{k}.5" for k in range(n)],
            "empty": pd.Series([None] * n, dtype=object),
        }
    )
    expected = "11: 7 numbers (x0, x1, x2, x3, …), 2 categories (soil, plot), 1 date (day), 1 text (note)"
    assert describe_columns(TableColumns().fit(table)) == expected
