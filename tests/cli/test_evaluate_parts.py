"""``mauc evaluate`` of tables in parts: numbers and page of the table read whole, and errors that name the part."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")

import pandas as pd

CLASSES = ["ash", "elm", "fir", "oak"]


def make_scores(n=600, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    y = rng.choice(CLASSES, n, p=[0.05, 0.15, 0.2, 0.6])
    z = rng.normal(size=(n, 4)) + 1.5 * (y[:, None] == CLASSES)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return pd.DataFrame(np.round(p, 1) if ties else p, columns=CLASSES).assign(truth=y, remark="x")


def write_parts(table, folder, edges=(0, 0, 7, 250, 250, 600)):
    """Parts of uneven sizes, some of them without a row."""
    folder.mkdir()
    for k, (begin, end) in enumerate(pairwise(edges)):
        table.iloc[begin:end].to_parquet(folder / f"{k}.parquet", index=False)


def numbers(result):
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    found.pop("files")
    return found


def assert_same(found, expected):
    """The same tree, numbers to twelve digits."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)
    else:
        assert found == expected


def page(path):
    """The report without what it says of files, numbers to nine digits."""
    text = re.sub(r"\d\.\d{10,}(e-\d+)?", lambda found: f"{float(found[0]):.9g}", path.read_text())
    return re.sub(r"\bparts\b|\bw\.parquet\b", "", text)


@pytest.mark.parametrize("ties", [True, False])
def test_parts_give_what_the_whole_gives(run, tmp_path, ties):
    table = make_scores(ties=ties)
    write_parts(table, tmp_path / "parts")
    table.to_parquet(tmp_path / "w.parquet", index=False)
    options = ("--target", "truth", "--json")
    whole = run("evaluate", "w.parquet", *options, "--report", "whole.html")
    in_parts = run("evaluate", "parts", *options, "--report", "parts.html")
    assert "parts (5 files" in in_parts.stderr
    expected, found = numbers(whole), numbers(in_parts)
    assert found["models"][0].pop("name") == "parts"
    expected["models"][0].pop("name")
    assert_same(found, expected)
    assert page(tmp_path / "parts.html") == page(tmp_path / "whole.html")


def test_comparison_truth_and_prefix(run, tmp_path):
    """A class without a row, the target in a table of its own, scores of two models."""
    a, b = (make_scores(seed=0).assign(**make_scores(seed=seed)[CLASSES]) for seed in (0, 1))
    a["yew"], b["yew"] = 0.1, 0.2
    truth = a[["truth"]]
    a, b = (t.drop(columns="truth").rename(columns={c: f"p_{c}" for c in [*CLASSES, "yew"]}) for t in (a, b))
    for name, table, edges in (("a", a, (0, 10, 600)), ("b", b, (0, 599, 600)), ("t", truth, (0, 300, 600))):
        write_parts(table, tmp_path / name, edges)
        table.to_parquet(tmp_path / f"{name}.parquet")
    options = ("--target", "truth", "--prefix", "p_", "--level", 0.9, "--json", "--no-report")
    whole = run("evaluate", "a.parquet", "--compare", "b.parquet", "--truth", "t.parquet", *options)
    in_parts = run("evaluate", "a/0.parquet", "a/1.parquet", "--compare", "b", "--truth", "t", *options)
    expected, found = numbers(whole), numbers(in_parts)
    assert found["absent"] == ["yew"]
    assert [m.pop("name") for m in found["models"]] == ["0.parquet and 1 more", "b"]
    assert [m.pop("name") for m in expected["models"]] == ["a.parquet", "b.parquet"]
    for each in (*found["tests"], *expected["tests"]):
        del each["model"], each["against"]
    assert_same(found, expected)


def test_a_single_file_is_read_in_parts_where_it_does_not_fit(run, tmp_path, little_memory):
    table = make_scores()
    table.to_parquet(tmp_path / "w.parquet", index=False)
    options = ("evaluate", "w.parquet", "--target", "truth", "--json", "--no-report")
    whole = run(*options)
    little_memory()
    in_parts = run(*options)
    assert whole.stderr == ""
    assert re.search(r"w\.parquet \(0\.0\d* MB\) is read in parts", in_parts.stderr)
    assert_same(numbers(in_parts), numbers(whole))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["007", "7", "10"], {"007", "7", "10"}),
        ([1.0, 2.0, 10.0], {"1", "2", "10"}),
        ([True, False, True], {"True", "False"}),
        ([" a", "b ", "c"], {"a", "b", "c"}),
    ],
)
def test_classes_are_written_as_in_the_whole(run, tmp_path, values, shown):
    rng = np.random.default_rng(0)
    y = np.repeat(np.array(values, dtype=object), 20)
    table = pd.DataFrame({"y": y, **{name: rng.normal(size=60) for name in sorted(shown)}}).infer_objects()
    write_parts(table, tmp_path / "parts", (0, 20, 40, 60))
    found = numbers(run("evaluate", "parts", "--target", "y", "--json", "--no-report"))
    assert {c["class"] for c in found["classes"]} == shown


def test_what_is_wrong_names_the_part(fails, run, tmp_path):
    table = make_scores()

    def refused(change, *options, code=1):
        parts = tmp_path / "bad"
        write_parts(table, parts)
        change(table.iloc[250:600].copy()).to_parquet(parts / "4.parquet", index=False)
        words = fails("evaluate", "bad", "--target", "truth", *options, code=code)
        for path in parts.iterdir():
            path.unlink()
        parts.rmdir()
        return words

    def with_gap(t):
        t.iloc[4, 1] = np.nan
        return t

    assert "column 'elm' of bad/4.parquet has a score that is missing (row 5)" in refused(with_gap)
    assert "infinite" in refused(lambda t: t.assign(elm=np.inf))
    words = refused(lambda t: t.drop(columns="fir"))
    assert "bad/4.parquet has no column 'fir', but bad/0.parquet has" in words
    assert "bad/0.parquet has no column 'yew', but bad/4.parquet has" in refused(lambda t: t.assign(yew=1.0))
    words = refused(lambda t: t.assign(elm=t["elm"].astype("float32")))
    assert "column 'elm' of bad/4.parquet holds float, and double in parts before it" in words
    words = refused(lambda t: t.assign(truth=t["truth"].where(t["truth"] != "elm")))
    assert "column 'truth' of bad/4.parquet has no class in row" in words
    assert "did you mean 'truth'?" in refused(lambda t: t, "--target", "truht", code=2)


def test_types_are_compared_past_an_empty_part(fails, tmp_path):
    table = make_scores()
    (tmp_path / "parts").mkdir()
    for k, truth in enumerate((None, 1, "elm")):
        rows = table.head(30 if k else 0)
        rows.assign(truth=truth).astype({"truth": object}).to_parquet(tmp_path / "parts" / f"{k}.parquet", index=False)
    words = fails("evaluate", "parts", "--target", "truth")
    assert "column 'truth' of parts/2.parquet holds string, and int64 in parts before it" in words


def test_files_that_are_no_parts_of_one_table(fails, tmp_path, little_memory):
    table = make_scores()
    write_parts(table, tmp_path / "parts", (0, 300, 600))
    evaluate = ("evaluate", "--target", "truth")
    assert "File not found: nowhere.parquet" in fails(*evaluate, "parts", "nowhere.parquet")
    assert "names parts/0.parquet twice" in fails(*evaluate, "parts", "parts/0.parquet", code=2)
    (tmp_path / "empty").mkdir()
    assert "the folder empty holds no file that ends in" in fails(*evaluate, "empty")
    (tmp_path / "empty" / "t.xlsx").touch()
    assert fails(*evaluate, "empty").endswith("must be: save it as Parquet"), "no line of Python for CSV"
    assert "File not found: a.parquet" in fails("evaluate", "a.parquet", "b.parquet")  # without --target too
    table.iloc[::-1].to_parquet(tmp_path / "turned.parquet")
    words = fails(*evaluate, "parts", "--compare", "turned.parquet")
    assert "turned.parquet has other classes in 'truth' than parts (first: row 1)" in words
    table.iloc[:599].drop(columns="truth").to_parquet(tmp_path / "short.parquet")
    assert "short.parquet has 599 rows and parts has 600" in fails(*evaluate, "parts", "--compare", "short.parquet")
    (tmp_path / "parts" / "1.parquet").write_bytes(b"PAR1 cut off")
    assert "parts/1.parquet cannot be read as Parquet" in fails(*evaluate, "parts")
    table.assign(elm="x").to_parquet(tmp_path / "text.parquet", index=False)
    little_memory()
    assert "column 'elm' of text.parquet must hold numbers" in fails(*evaluate, "text.parquet")


def test_csv_in_parts_is_to_be_saved_as_parquet(run, fails, tmp_path, little_memory):
    """The message holds a line of Python that does it, for several files and for one that does not fit."""
    codes = dict(zip(CLASSES, ("01", "02", "03", "04"), strict=True))
    table = make_scores().replace({"truth": codes}).rename(columns=codes)
    for name in ("s.csv", "t.csv"):
        table.to_csv(tmp_path / name, index=False)
    evaluate = ("evaluate", "--target", "truth", "--json", "--no-report")
    whole = numbers(run(*evaluate, "s.csv"))
    several = fails(*evaluate, "s.csv", "t.csv")
    little_memory()
    alone = fails(*evaluate, "s.csv")
    assert alone == several
    said, _, line = alone.partition("save it by ")
    assert "s.csv is not Parquet, and a table in several files or larger than memory must be" in said
    exec(line.replace("10**6", "200"), {"pandas": pd})
    found = numbers(run(*evaluate, *sorted(path.name for path in tmp_path.glob("s-*.parquet"))))
    for each in (found, whole):
        del each["models"][0]["name"]
    assert_same(found, whole)
