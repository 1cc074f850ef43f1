"""Files as strangers save them: encodings, separators, decimal signs, Excel, streams, gaps and dates."""

import gzip
import io
import re
import sys
import tracemalloc
import types
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.columns import date_order, dates_to_iso, with_iso_dates
from mauc._tables.errors import Failure, Usage
from mauc._tables.read import class_labels, has_class, read_table, warn_of_missing_signs
from mauc._tables.text import STDIN, Reading

FRAME = pd.DataFrame({"größe": [1.5, 2.25, 0.5], "ort": ["Köln", "Lübeck", "Łódź"]})
SIMPLE = FRAME.assign(ort=["Köln", "Lübeck", "Gießen"])


def read(path, **options):
    """Return the table and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read_table(path, **options)
    return table, [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("encoding", "separator", "decimal", "says"),
    [
        ("utf-8", ",", ".", None),
        ("utf-8-sig", ",", ".", None),
        ("utf-16", "\t", ".", "in UTF-16, with tabs between columns"),
        (
            "cp1252",
            ";",
            ",",
            "in Windows-1252, with semicolons between columns, with decimal commas; choose",
        ),
        ("utf-8", "|", ".", "with bars between columns"),
        ("utf-8", ",", ",", "with decimal commas"),
    ],
)
def test_encodings_separators_and_decimal_commas(tmp_path, encoding, separator, decimal, says):
    frame = SIMPLE if encoding == "cp1252" else FRAME
    frame.to_csv(tmp_path / "t.csv", sep=separator, decimal=decimal, encoding=encoding, index=False)
    table, said = read(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(table, frame)
    assert len(said) == (says is not None)
    assert says is None or f"t.csv is read as a table {says}" in said[0]


def test_encodings_that_are_told_or_cannot_be(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, encoding="cp1250", index=False)
    table, _ = read(path, how=Reading(encoding="cp1250"))
    pd.testing.assert_frame_equal(table, FRAME)
    with pytest.raises(Usage, match="--encoding 'klingon' is unknown: use one such as utf-8, cp1252"):
        read_table(path, how=Reading(encoding="klingon"))
    path.write_bytes(b"a,b\n\x81,1\n")
    assert read(path)[1] == [f"{path} is read as a table in Latin-1; choose another with --encoding"]
    path.write_bytes(b"a,b\n" + b"x" * (1 << 20) + "ü".encode()[:1])
    assert "Windows-1252" in read(path)[1][0], "cut off within a letter, in a later block"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(Failure, match="has bytes of value 0: if it is not a text file, give it the right suffix"):
        read_table(path)
    FRAME.to_csv(path, encoding="utf-16-le", index=False)
    pd.testing.assert_frame_equal(read(path, how=Reading(encoding="utf-16-le"))[0], FRAME)


def test_rows_with_more_cells_than_names(tmp_path):
    """pandas would take the first cell of each for the name of the row: classes would come from another column."""
    path = tmp_path / "t.csv"
    path.write_text("id,kind,a\n1,p,1,\n2,q,3,\n")
    assert read_table(path).to_numpy().tolist() == [[1, "p", 1], [2, "q", 3]], "separators at the ends of rows"
    for rows in ("1,p,1,7\n2,q,3,8\n", "1,p,1,\n2,q,3,8\n"):
        path.write_text("id,kind,a\n" + rows)
        with pytest.raises(
            Failure, match=r"t\.csv has rows with more cells than its first line, which has 3: name every"
        ):
            read_table(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_blank_line_of_a_single_column_is_a_missing_value(tmp_path, encoding):
    path = tmp_path / "t.csv"
    for text in ("x\n0.1\n\n4.0\n \n2.0\n", "\r\nx\r\n0.1\r\n\r\n4.0\r\n \r\n2.0\r\n\r\n\r\n"):
        path.write_bytes(text.encode(encoding))
        np.testing.assert_array_equal(read(path)[0]["x"], [0.1, np.nan, 4.0, np.nan, 2.0])
    path.write_text("x,y\n1,2\n\n3,4\n")
    assert len(read_table(path)) == 2, "of several columns no cell is missing"


def test_the_separator_is_the_one_that_fits_the_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"length, mm";"a,b";kind\n1,5;x;"p;q"\n2,5;y;r\n')
    table, _ = read(path)
    assert list(table.columns) == ["length, mm", "a,b", "kind"]
    assert table["length, mm"].tolist() == [1.5, 2.5]
    assert table["kind"].tolist() == ["p;q", "r"]


def test_commas_in_numbers_are_taken_where_they_leave_no_doubt(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("open;sure;big;code;word\n1,234;0,5;1.234;1,5;1,5 kg\n2,345;1,25;12.345;2,5;x\n")
    table, said = read(path, codes=["code"])
    assert table["open"].tolist() == [1.234, 2.345], "another column tells what a comma is"
    assert table["big"].tolist() == [1234, 12345], "and with it what a point is"
    assert table["code"].tolist() == ["1,5", "2,5"]
    assert table["word"].tolist() == ["1,5 kg", "x"]
    path.write_text('n,m\n"1,234","1,234,567"\n"2,345",3.5\n')
    table, said = read(path)
    assert table["n"].tolist() == [1234, 2345]
    assert table["m"].tolist() == [1234567, 3.5]
    assert "with commas between thousands" in said[0]
    path.write_text("n;x\n1,234;a\n12;b\n")
    table, said = read(path)
    assert table["n"].tolist() == ["1,234", "12"]
    assert "numbers such as 1,234, whose comma may mark decimals or thousands: it is read as text" in (said[0])


def test_points_among_decimal_commas_are_no_thousands_after_a_zero(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sure;share;big;mixed\n1,5;0.125;1.234;0.125\n2,5;0.250;?;1,5\n")
    table, _ = read(path, how=Reading(missing=("?",)))
    assert table["share"].tolist() == [0.125, 0.25]
    assert table["big"].dropna().tolist() == [1234], "beside a gap too"
    assert table["mixed"].tolist() == ["0.125", "1,5"]
    path.write_text("n;x\n1,234;a\n999.125;b\n")
    table, said = read(path)
    assert table["n"].tolist() == ["1,234", "999.125"], "1234 and 999.125, or 1.234 and 999125"
    assert "may mark decimals or thousands" in said[0]


@pytest.mark.parametrize(
    ("text", "learnt", "expected", "words"),
    [
        ("w;p\n12;1.234\n9;2.100\n", "decimal", [1234, 2100], None),
        ("w;p\n12;1.234\n9;n.a.\n", "decimal", ["1234", "n.a."], None),
        ("w;p\n12,5;1.234\n9;1500\n", "decimal", [1234, 1500], None),
        ("w;p\n12;1,234\n9;0,125\n", "decimal", [1.234, 0.125], None),
        ('w,p\n12,"101,234"\n', "thousands", [101234], None),
        ("w;p\n12;1.234\n", "thousands", [1.234], None),
        ("w;p\n12.5;1.25\n", "decimal", [1.25], None),
        ("w;p\n12.5;1.234\n", "decimal", [1.234], "12.5, although the training table had decimal commas"),
        ("w;p\n12,5;1.234\n9;1.25\n", "decimal", [1.234, 1.25], "are read with decimal points in 'p'"),
        ("w;p\n12,5;1,234\n", "thousands", [1.234], "12,5, although the training table had decimal points"),
    ],
)
def test_new_rows_have_the_commas_of_the_training_table(tmp_path, text, learnt, expected, words):
    (tmp_path / "t.csv").write_text(text)
    table, said = read(tmp_path / "t.csv", how=Reading(commas=learnt))
    assert table["p"].tolist() == expected
    warned = [each for each in said if "although the training table had" in each]
    assert len(warned) == (words is not None)
    assert words is None or words in warned[0]


def test_columns_that_had_points_beside_commas_keep_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sure;share;big\n1,5;0.125;1.234\n2,5;1.250;\n")
    table, said = read(path)
    found = table.attrs["reading"]
    assert (found.commas, found.pointed) == ("decimal", ("share",))
    again, also_said = read(path, how=found)
    pd.testing.assert_frame_equal(again, table)
    assert said == also_said
    path.write_text("sure;share;big\n1;1.125;1.234\n")
    assert read(path, how=found)[0].iloc[0].tolist() == [1, 1.125, 1234]


def test_points_in_cells_of_excel_are_no_thousands(tmp_path):
    pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")
    pd.DataFrame({"x": [1.234, 2.345], "y": ["1,234", "2,345"]}).to_excel(tmp_path / "t.xlsx", index=False)
    table, _ = read(tmp_path / "t.xlsx", how=Reading(commas="decimal"))
    assert table.to_numpy().tolist() == [[1.234, 1.234], [2.345, 2.345]]


def test_classes_named_as_gaps_are_and_what_counts_as_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\nNA,None,1\n2,NA,NA\n-999,oak,2\n3,,3\n")
    table, _ = read(path, names=["y", "z"])
    assert table["x"].isna().tolist() == [True, False, False, False]
    assert table["y"].tolist()[:3] == ["None", "NA", "oak"]
    assert table["y"].isna().tolist() == [False, False, False, True]
    assert table["z"].isna().tolist() == [False, True, False, False], "beside numbers NA is a gap"
    with pytest.raises(Failure, match=r"has no class in 1 row .*or leave them out with --drop-unlabelled"):
        class_labels(table["y"], "y", path)
    with pytest.warns(UserWarning, match="1 row of .* without a class in 'y' is left out"):
        kept = has_class(np.asarray(table["y"].notna()), "y", path)
    with pytest.warns(UserWarning, match="has a class named (NA|None); if it means missing, use --missing (NA|None)"):
        assert class_labels(table["y"][kept], "y", path).tolist() == ["None", "NA", "oak"]
    table, _ = read(path, names=["y"], how=Reading(missing=("NA", "-999")))
    assert table["y"].isna().tolist() == [False, True, False, True]
    assert table["x"].isna().tolist() == [True, False, True, False]
    pd.DataFrame({"x": [1, -999], "y": ["a", "NA"]}).to_parquet(tmp_path / "t.parquet")
    table, _ = read(tmp_path / "t.parquet", how=Reading(missing=("NA", "-999")))
    assert table.isna().to_numpy().tolist() == [[False, False], [True, True]]


def test_streams(tmp_path, monkeypatch):
    def give(content):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))

    give(FRAME.to_csv(index=False).encode())
    pd.testing.assert_frame_equal(read_table(STDIN), FRAME)
    give(b"PK,PAR1\n1,x\n")
    assert list(read_table(STDIN).columns) == ["PK", "PAR1"]
    give(b"a,b\n")
    with pytest.raises(Failure, match=r"^standard input has no rows"):
        read_table(STDIN)
    FRAME.to_csv(tmp_path / "t.csv.gz", index=False)
    give((tmp_path / "t.csv.gz").read_bytes())
    pd.testing.assert_frame_equal(read_table(STDIN), FRAME)
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    parquet = io.BytesIO()
    FRAME.to_parquet(parquet)
    give(parquet.getvalue())
    assert read_table(STDIN)["ort"].tolist() == FRAME["ort"].tolist()


@pytest.fixture
def book(tmp_path):
    """An Excel file as people have them: a margin, two sheets, an error, a date, a code, NA as a class."""
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "trees"
    day = pd.Timestamp("2024-03-31")
    rows = (
        ["code", "height", "seen", "kind"],
        ["007", 1.5, day, "NA"],
        ["10", "#DIV/0!", day, "oak"],
        ["3", 2, None, "elm"],
    )
    for k, row in enumerate(rows):
        for j, value in enumerate(row):
            sheet.cell(k + 3, j + 2, value)
    made.create_sheet("notes").append(["a;b;c", "b"])
    made["notes"].append(["1;2;3", 2])
    made.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def test_excel(book):
    table, said = read(book, names=["kind"], codes=["code"])
    assert list(table.columns) == ["code", "height", "seen", "kind"]
    assert table["code"].tolist() == ["007", "10", "3"]
    np.testing.assert_array_equal(table["height"], [1.5, np.nan, 2.0])
    assert table["seen"].tolist()[:2] == ["2024-03-31"] * 2
    assert table["kind"].tolist() == ["NA", "oak", "elm"]
    assert any("has 2 sheets, and 'trees' is read; --sheet names another" in words for words in said)
    assert any("has 1 cell with an error such as #DIV/0!, read as missing" in words for words in said)
    assert read_table(book, how=Reading(sheet="notes")).to_numpy().tolist() == [["1;2;3", 2]]
    with pytest.raises(Usage, match=r"--sheet 'x' is not a sheet of .*; its sheets are trees, notes$"):
        read_table(book, how=Reading(sheet="x"))


def test_of_many_sheets_the_first_are_named(book):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")
    many = openpyxl.load_workbook(book)
    for k in range(7):
        many.create_sheet(f"s{k}")
    many.save(book)
    with pytest.raises(Usage, match=r"its sheets are trees, notes, s0, s1, s2, s3, s4, s5, …$"):
        read_table(book, how=Reading(sheet="x"))


def test_files_that_are_no_workbooks(tmp_path, book, monkeypatch):
    (tmp_path / "bad.xlsx").write_bytes(b"x")
    with pytest.raises(Failure, match=r"bad\.xlsx cannot be read as an Excel file .*: save it again, or as CSV"):
        read_table(tmp_path / "bad.xlsx")
    with pytest.raises(Failure, match="raise --max-size"):
        read_table(book, max_size=1e-6)


def test_excel_without_openpyxl(tmp_path, monkeypatch):
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(Failure, match=r"needs openpyxl: pip install 'mauc\[excel\]', or save the sheet as CSV"):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    ("values", "order", "told"),
    [
        (["31/12/2024", "1/2/2024"], "day-first", "day-first"),
        (["01.02.2024", None], "day-first", "month-first"),
        (["12/31/2024 10:30", "01/02/2024 9:00"], "month-first", "month-first"),
        (["01/02/2024"], "ambiguous", "month-first"),
        (["31/12/2024", "12/31/2024"], None, None),
        (["2024-12-31"], None, None),
        (["oak", "1/2/2024"], None, None),
        (["-", "31/02/2024", "13/02/2024", "unknown", "1/2/2024"], "day-first", "day-first"),
        (["12/31/2024", *["31/12/2024"] * 10], "day-first", "day-first"),
        ([1.5, 2.5], None, None),
    ],
)
def test_day_or_month_first(values, order, told):
    assert date_order(pd.Series(values)) == order
    assert date_order(pd.Series(values), "month-first") == told


def test_days_first_become_iso():
    turned = dates_to_iso(pd.Series(["31/12/2024", None, "1/2/2024 10:30", "2024-01-05"], index=[3, 5, 7, 9]))
    assert turned.loc[[3, 7, 9]].tolist() == ["2024-12-31", "2024-02-01 10:30", "2024-01-05"]
    assert turned.isna().tolist() == [False, True, False, False]
    odd = pd.Series(["31/02/2024", "-", "unknown", "12/31/2024", "31/12/2024"])
    assert dates_to_iso(odd).isna().tolist() == [True, True, True, True, False], "each costs itself"
    assert dates_to_iso(odd, "month-first").isna().tolist() == [True, True, True, False, True]


def test_one_column_tells_of_another(tmp_path):
    table = pd.DataFrame({"a": ["01/02/2024"], "b": ["31/12/2024"], "n": [1]})
    kinds = {"a": "other", "b": "other", "n": "number"}
    with pytest.warns(UserWarning, match="holds dates with the day first"):
        found, new = with_iso_dates(table, kinds, None, Path("t"))
    assert found["a"].tolist() == ["2024-02-01"]
    assert new == {"a": "day first", "b": "day first", "n": "number"}
    with pytest.warns(UserWarning, match="read with the month first; if the day is first, use --dates day-first"):
        assert with_iso_dates(table[["a"]], {"a": "other"}, None, Path("t"))[1] == {"a": "other"}
    with pytest.warns(UserWarning, match="with the day first"):
        assert with_iso_dates(table[["a"]], {"a": "other"}, "day-first", Path("t"))[1] == {"a": "day first"}


def test_a_damaged_gzip_file_is_to_be_copied_again(tmp_path):
    packed = gzip.compress(b"a,b\n" + b"1,x\n" * 300_000)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed)
    read_table(path)
    for damaged in (packed[:-12], packed[:-8] + bytes(4) + packed[-4:], packed[:14] + bytes(9) + packed[23:]):
        path.write_bytes(damaged)
        with pytest.raises(
            Failure, match=r"t\.csv\.gz cannot be read as a table \(.*\): it is damaged, copy or download"
        ):
            read_table(path)


def with_sheet(path, change):
    """The workbook with the XML of its first sheet changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    changed = change(members[sheet].decode())
    assert changed.encode() != members[sheet]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**members, sheet: changed.encode()}.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("tag", ["A1:B31", "A1:XFD1048576", None])
def test_every_row_of_a_sheet_is_read_whatever_size_it_claims(tmp_path, tag):
    pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")
    frame = pd.DataFrame({"x": range(60), "y": ["a", "b"] * 30, "z": 0.5})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    said = "" if tag is None else f'<dimension ref="{tag}" />'
    path = with_sheet(tmp_path / "t.xlsx", lambda xml: re.sub(r"<dimension [^>]*/>", said, xml))
    pd.testing.assert_frame_equal(read_table(path), frame)


@pytest.mark.parametrize(
    "pair", [r'(<row r="3".*?</row>)(<row r="4".*?</row>)', r'(<c r="A3".*?</c>)(<c r="B3".*?</c>)']
)
def test_rows_and_cells_out_of_order_are_refused(tmp_path, pair):
    """openpyxl reads a sheet from top to bottom, and would skip a row or a cell that comes too late."""
    pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")
    pd.DataFrame({"x": range(3), "y": [5, 6, 7]}).to_excel(tmp_path / "t.xlsx", index=False)
    path = with_sheet(tmp_path / "t.xlsx", lambda xml: re.sub(pair, r"\2\1", xml))
    words = r"t\.xlsx cannot be read as an Excel file \(the rows or cells of '.*sheet1\.xml' are out of order\): save"
    with pytest.raises(Failure, match=words):
        read_table(path)


def test_formulas_without_a_result_and_merged_cells_are_told(tmp_path):
    """A program that is no spreadsheet writes formulas without results."""
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")
    made = openpyxl.Workbook()
    for row in (["x", "y", "z"], [1, "=A2+1", "a"], [2, "=A3+1", "b"], [3, '=""', "c"]):
        made.active.append(row)
    made.active.merge_cells("C2:C4")
    made.save(tmp_path / "t.xlsx")
    path = with_sheet(tmp_path / "t.xlsx", lambda xml: xml.replace("<f>A2+1</f><v />", "<f>A2+1</f><v>2</v>"))
    path = with_sheet(path, lambda xml: xml.replace('<c r="B4">', '<c r="B4" t="str">'))
    table, told = read(path)
    assert table["y"].isna().tolist() == [False, True, True]
    assert table["z"].isna().tolist() == [False, True, True]
    assert told == [
        f"{path} has 1 formula without a result, read as missing: open it in a spreadsheet and save it",
        f"{path} has 1 range of merged cells, of which all but the first cell are read as missing: unmerge and fill "
        "them",
    ]


def test_a_long_cell_hides_no_separator(tmp_path):
    (tmp_path / "t.csv").write_text(f"x;y;z\n1;a;{'n' * 131_073}\n2;b,c;\n")
    table, told = read(tmp_path / "t.csv")
    assert table.shape == (2, 3)
    assert told == [f"{tmp_path / 't.csv'} is read as a table with semicolons between columns"]


NAMED = "xl/worksheets/sheet1.xml"


def with_members(path, change):
    """The workbook with its members changed, a dict of name to bytes."""
    with zipfile.ZipFile(path) as archive:
        members = change({name: archive.read(name) for name in archive.namelist()})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def with_name(name):
    def change(members):
        short = NAMED.partition("/")[2]
        return {
            name if each == NAMED else each: data.replace(short.encode(), name.partition("/")[2].encode())
            for each, data in members.items()
        }

    return change


def with_bytes(change):
    return lambda members: {**members, NAMED: change(members[NAMED])}


@pytest.mark.parametrize(
    "change",
    [
        with_name("xl/sheets/sheet1.xml"),
        with_bytes(lambda xml: ('<?xml version="1.0" encoding="UTF-16"?>' + xml.decode()).encode("utf-16")),
        with_bytes(lambda xml: re.sub(rb'<row r="2"', rb"<row", xml)),
    ],
    ids=["folder", "utf-16", "no number"],
)
def test_rows_out_of_order_are_found_however_the_sheet_is_written(tmp_path, change):
    pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")
    frame = pd.DataFrame({"x": range(3), "y": [5, 6, 7]})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    pd.testing.assert_frame_equal(read_table(with_members(tmp_path / "t.xlsx", change)), frame)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    with_sheet(tmp_path / "t.xlsx", lambda xml: re.sub(r'(<row r="3".*?</row>)(<row r="4".*?</row>)', r"\2\1", xml))
    with pytest.raises(Failure, match=r"\(the rows or cells of '.*' are out of order\): save it again"):
        read_table(with_members(tmp_path / "t.xlsx", change))


def test_only_the_sheet_that_is_read_must_be_in_order(book):
    with_sheet(book, lambda xml: re.sub(r'(<row r="3".*?</row>)(<row r="4".*?</row>)', r"\2\1", xml))
    with pytest.raises(Failure, match="are out of order"):
        read_table(book, how=Reading(sheet="trees"))
    assert len(read_table(book, how=Reading(sheet="notes")))


def test_a_sheet_with_entities_is_refused(tmp_path):
    pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")
    pd.DataFrame({"x": range(3)}).to_excel(tmp_path / "t.xlsx", index=False)
    bomb = '<!DOCTYPE worksheet [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><worksheet'
    path = with_sheet(tmp_path / "t.xlsx", lambda xml: xml.replace("<worksheet", bomb, 1))
    with pytest.raises(
        Failure, match=r"\('xl/worksheets/sheet1\.xml' declares entities, which may unpack to any size\)"
    ):
        read_table(path)


def test_options_for_reading_are_refused_where_they_have_no_effect(tmp_path, book):
    FRAME.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(Usage, match=r"--encoding is for text files, and .*t\.parquet is not one: leave it out"):
        read_table(tmp_path / "t.parquet", how=Reading(encoding="cp1250"))
    with pytest.raises(Usage, match="--encoding is for text files"):
        read_table(book, how=Reading(encoding="cp1250"))
    with pytest.raises(Usage, match="--separator is for text files"):
        read_table(book, how=Reading(separator=";"))


def test_a_cell_far_out_takes_no_memory(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra mauc[excel]")

    def far(cell):
        made = openpyxl.Workbook()
        made.active["A1"], made.active["A2"], made.active["Z3"] = "x", 1, 5
        made.save(tmp_path / "t.xlsx")
        row = cell.lstrip("XFDZ")
        return with_sheet(tmp_path / "t.xlsx", lambda xml: xml.replace("Z3", cell).replace('r="3"', f'r="{row}"'))

    path = far("Z20000")
    tracemalloc.start()
    table = read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (table.shape, table.iloc[1, -1]) == ((2, 26), 5)
    assert peak < 1e6, "an array of all cells would take four times as much"
    with pytest.raises(Failure, match=r"t\.xlsx holds a sheet of 3 rows or more and 16384 columns.*: raise --max-size"):
        read_table(far("XFD1048576"), max_size=2e-4)
    with pytest.raises(Failure, match="holds a row beyond the last of a sheet, 1048576"):
        read_table(far("Z1048577000"))


def test_gzipped_text_unpacks_within_max_size(tmp_path, monkeypatch):
    packed = gzip.compress(b"x,y\n" + b"1,a\n" * 5_000_000)
    (tmp_path / "t.csv.gz").write_bytes(packed)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(packed)))
    for path in (tmp_path / "t.csv.gz", STDIN):
        tracemalloc.start()
        with pytest.raises(
            Failure,
            match=r"unpacks from \S+ to over 0\.002\d* GB, and at most 0\.002 GB more than its size are allowed: raise",
        ):
            read_table(path, max_size=0.002)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10e6
    (tmp_path / "t.csv").write_bytes(b"x,y\n" + b"1,a\n" * 9)
    assert len(read_table(tmp_path / "t.csv", max_size=0.0)) == 9, "a plain file is no archive"


IRIS = "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n7.0,3.2,4.7,1.4,versicolor\n"
CARS = "vhigh,vhigh,2,2,small\nvhigh,low,2,4,small\nlow,low,3,4,big\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (IRIS, "utf-8"),
        (CARS, "utf-8-sig"),
        ("5,1,1,1,2\n3,4,1,1,2\n", "utf-16"),
        ("Bo,5.1,3.5\nJo,4.9,3.0\n", "cp1252"),
        ("8.8,1.001,3\n6.3,0.994,5\n", "utf-8"),
        ("506,37,812\n498,40,790\n", "utf-8"),
    ],
)
def test_a_file_without_a_header_loses_no_row(tmp_path, text, encoding):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding=encoding)
    table, said = read(path)
    cells = [line.split(",") for line in text.splitlines()]
    assert list(table.columns) == [f"column_{k + 1}" for k in range(len(cells[0]))]
    assert len(table) == len(cells)
    assert str(table.iloc[0, 0]) == cells[0][0]
    assert any("seems to have no header, so its first line is read as a row" in words for words in said)
    assert not any("no header" in words for words in read(path, how=Reading(header=False))[1])


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n1,a\n2,b\n",
        "2019,2020,2021\n1.5,2.5,3.5\n",
        "400.5,401.0,401.5,class\n0.1,0.2,0.3,a\n0.1,0.2,0.3,b\n",
        "0,1,2,3\n5.1,3.5,1.4,0.2\n",
        "1,10,11,2\n0.1,0.2,0.3,0.4\n",
        "name\nname\nother\n",
        "male,age\nmale,3\nfemale,4\n",
        "y,007,10,7\n007,0.1,0.2,0.3\n7,0.1,0.2,0.3\n",
        "y,1.5,10.5,2.5\n1.5,0.1,0.2,0.3\n2.5,0.1,0.2,0.3\n",
        "kind,1.5,10.5,2.5\na,0.1,0.2,0.3\na,0.1,0.2,0.3\n",
    ],
)
def test_a_header_is_a_header(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert list(map(str, read(path)[0].columns)) == text.split("\n")[0].split(",")
    path.write_text(IRIS)
    assert list(read(path, how=Reading(header=True))[0].columns)[-1] == "setosa"


def test_separators_that_are_told_and_lines_that_end_elsewhere(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a|b|c,d|e|f\n1|2|3,4|5|6\n")
    assert read(path)[0].shape == (1, 5)
    assert list(read(path, how=Reading(separator=","))[0].columns) == ["a|b|c", "d|e|f"]
    path.write_text("y,score:a|b|c,score:d|e|f\na|b|c,0.5,0.5\n")
    assert read(path)[0].shape == (1, 3), "as mauc predict writes it"
    path.write_text("y;score:a,b;score:c,d\nx;1;2\n")
    assert read(path)[0].shape == (1, 3)
    path.write_text("y,score:yew\u2028a;b;c,score:oak\u2028a;b;c\nyew\u2028a;b;c,0.5,0.5\n", encoding="utf-8")
    assert read(path)[0].shape == (1, 3)
    path.write_text("\u2028x,y\n1,2\n", encoding="utf-8")
    assert list(read(path)[0].columns) == ["\u2028x", "y"]
    path.write_text("a\tb,c\n1\t2,3\n")
    for each in ("tab", "\\t", "\t"):
        assert list(read(path, how=Reading(separator=each))[0].columns) == ["a", "b,c"]
    with pytest.raises(Usage, match="--separator must be comma, semicolon, tab or bar, got '::'"):
        read(path, how=Reading(separator="::"))
    FRAME.to_parquet(tmp_path / "t.parquet")
    for how, words in (
        (Reading(separator=";"), "--separator is for text"),
        (Reading(header=False), "--header/--no-header is for text and Excel"),
    ):
        with pytest.raises(Usage, match=words):
            read_table(tmp_path / "t.parquet", how=how)


def test_signs_among_numbers_are_hinted_at(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z,w\n1,?,a,1\n?,2,1,2\n3,3,b,3\n4,-,c,4\n5,5,2,5\n")

    def said(**options):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warn_of_missing_signs(read_table(path, **options), {"w"}, path)
        return [str(each.message) for each in told]

    assert said(codes=["w"]) == [
        f"column 'y' of {path} holds numbers, and '-' in 1 of 5 rows, so it is read as text; to read numbers with "
        "missing values use --missing '-'",
    ], "a ? is missing among numbers"
    assert said(how=Reading(missing=("?", "-"))) == []
    path.write_text("x,y\n?,1\n-,1\nunknown,1\n" + "2,1\n" * 4)
    assert said()[0].endswith("use --missing '-' --missing unknown")
