"""Names and cells that others wrote: never commands to a terminal, nor formulas to a spreadsheet."""

import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mauc._cli.main import _run as run_command
from mauc._text import as_cell, of_cell, visible

QUICK = ("--no-importance", "--no-report")
HOSTILE = ["\x1b[2Jyew", "el\u202em\x07", "o\x9bak\r\x7f", "a[red]sh\n:cat:"]
UNSAFE = [chr(c) for c in (*range(9), *range(11, 32), *range(127, 160))] + list("\u202a\u202e\u2066\u2069\u061c\u200f")


def check_harmless(text):
    assert not [c for c in text if c in UNSAFE], ascii(text)


@given(st.text(st.characters(codec=None)))
def test_what_is_shown_holds_no_control_characters(text):
    shown = visible(text)
    check_harmless(shown)
    assert "\n" not in shown
    assert visible(shown) == shown
    check_harmless(visible(text, lines=True))


def test_what_is_written_so_is_shown_so():
    for text in ("größer 文", "میخواهم ن\u200cو", "👩\u200d🚀", "1\u202f000 %", "a\\x1b"):
        assert visible(text) == text
    assert visible("a\x1b\n") == r"a\x1b\n"
    assert visible("a\tb\nc", lines=True) == "a\tb\nc"


@given(st.text(st.sampled_from("'=+-@ \t\r＝1.5e a"), max_size=6))
def test_cells_come_back(text):
    assert of_cell(as_cell(text)) == text
    assert of_cell(text) == text or as_cell(of_cell(text)) == text


def test_formulas_are_quoted_and_numbers_are_not():
    for text in ("=1+1", "+a", "-a", "@SUM(A1)", "\tx", "\rx", " =1", "＝1", "'=1", "-1+cmd|' /C calc'!A0", "--5"):
        assert as_cell(text) == "'" + text
    for value in ("-0.5", "+.5e-7", "-1", "oak", "a=1", "", "-inf", -0.5, None, True, "'tis", "+", "--"):
        assert as_cell(value) is value


@pytest.fixture
def hostile(trees):
    names = dict(zip(["yew", "elm", "oak", "ash"], HOSTILE, strict=True))
    table = trees.assign(species=trees["species"].map(names)).rename(columns={"plot": "pl\x1b[31mot"})
    table["un\x1bit"] = "cm"
    table.to_parquet("ta\x1bble.parquet")  # CSV files have no way to hold a carriage return and be read by all
    return table


def test_control_characters_never_reach_the_terminal(run, hostile):
    fit = ("fit", "ta\x1bble.parquet", "--target", "species", "--out", "m\x1b.skops", "--report", "r\x1b.html")
    predict = ("predict", "m\x1b.skops", "ta\x1bble.parquet", "--out", "s\x1b.csv", "--keep", "pl\x1b[31mot")
    evaluate = ("evaluate", "s\x1b.csv", "--target", "species", "--compare", "t\x1b.csv", "--report", "q\x1b.html")
    seen = []
    for call in (fit, predict, evaluate):
        if call is evaluate:
            shutil.copy("s\x1b.csv", "t\x1b.csv")
        for more in ((), ("--json",)):
            result = run(*call, *more)
            assert result.exit_code == 0, result.output
            check_harmless(result.output)
            if more:
                json.loads(result.stdout)
            else:
                seen.append(result.stdout)
    assert r"wrote m\x1b.skops" in seen[0]
    assert r"\x1b[2Jyew" in seen[0]
    assert r"a[red]sh\n:cat:" in seen[0]
    assert r"pl\x1b[31mot" in seen[0]
    assert r"s\x1b.csv" in seen[2]


@pytest.fixture
def run_script(monkeypatch, capsys):
    """Run the command as its script does, with the output that it prints and its exit code."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mauc", *arguments])
        code = run_command()
        return code, capsys.readouterr()

    return call


def test_failures_and_tracebacks_are_harmless(run, run_script, hostile):
    for call in (
        ("fit", "ta\x1bble.parquet", "--target", "spe\x1bcies"),
        ("fit", "no\x1bne.csv", "--target", "x"),
        ("predict", "ta\x1bble.parquet", "ta\x1bble.parquet"),
        ("evaluate", "ta\x1bble.parquet", "--target", "species"),
        ("evaluate", "ta\x1bble.parquet", "--target", "species", "--report", "."),
    ):
        result = run(*call)
        assert result.exit_code in (1, 2)
        check_harmless(result.output)
    for call, expected in (
        (["fit", "no\x1bne.csv", "--target", "x", "--debug"], 1),
        (["fit", "ta\x1bble.parquet", "x\x1by", "--target", "species"], 2),
    ):
        code, printed = run_script(*call)
        assert code == expected, printed.err
        check_harmless(printed.out + printed.err)
        assert r"\x1b" in printed.err


def test_formulas_are_quoted_and_read_back(run, trees):
    table = trees.rename(columns={"species": "=species"})
    table["=species"] = table["=species"].map({"yew": "=1+1", "elm": "-elm", "oak": "'+oak", "ash": "-1"})
    table["note"] = np.where(table.index == 3, '=HYPERLINK("x")', np.where(table.index == 4, "-0.5", "fine"))
    table.to_csv("t.csv", index=False)
    assert run("fit", "t.csv", "--target", "=species", "--drop", "note", *QUICK).exit_code == 0
    written = {}
    for options in ((), ("--raw-cells",)):
        result = run("predict", "model.skops", "t.csv", "--keep", "note", "--keep", "height", *options)
        assert result.exit_code == 0, result.output
        assert ("use --raw-cells" in result.stderr) == (not options)
        written[options] = cells = pd.read_csv("scores.csv", dtype=str)
        judged = run("evaluate", "scores.csv", "--target", "=species", "--json", "--no-report")
        assert judged.exit_code == 0, judged.output
        found = json.loads(judged.stdout)
        assert {c["class"] for c in found["classes"]} == {"=1+1", "-elm", "'+oak", "-1"}
        written[options, "score"] = found["models"][0]["mauc"]["score"]
    assert written[(), "score"] == written[("--raw-cells",), "score"]
    raw, cells = written[("--raw-cells",)], written[()]
    assert raw["=species"].tolist() == table["=species"].tolist()
    assert raw["note"].tolist() == table["note"].tolist()
    assert list(cells.columns[:5]) == ["note", "height", "'=species", "trained_on", "predicted"]
    for name in cells.columns:
        assert [of_cell(v) for v in cells[name]] == raw[of_cell(name)].tolist() or name == "height"
        assert all(as_cell(of_cell(v)) == v for v in cells[name].dropna())
    assert cells["height"].equals(raw["height"]), "numbers stay numbers"


def test_predict_never_overwrites_a_column(run, fails, model, trees, tmp_path):
    before = trees.rename(columns={"plot": "score:oak"}).assign(plot=trees["plot"])
    before.to_csv("scored.csv", index=False)
    words = fails("predict", "model.skops", "scored.csv", "--keep", "score:oak")
    assert "--keep 'score:oak' of scored.csv has the name of a column that mauc predict writes" in words
    trees.assign(trained_on="never").to_csv("marked.csv", index=False)
    assert "--keep 'trained_on' of marked.csv has the name" in fails(
        "predict", "model.skops", "marked.csv", "--keep", "trained_on"
    )
    trees.assign(predicted=1).to_csv("twice.csv", index=False)
    assert "--keep 'predicted' of twice.csv" in fails("predict", "model.skops", "twice.csv", "--keep", "predicted")
    assert not (tmp_path / "scores.csv").exists()
    renamed = trees.rename(columns={"species": "score:oak"})
    renamed.to_csv("t.csv", index=False)
    assert run("fit", "t.csv", "--target", "score:oak", *QUICK).exit_code == 0
    assert "the target 'score:oak' of t.csv has the name" in fails("predict", "model.skops", "t.csv")
    renamed.drop(columns="score:oak").to_csv("new.csv", index=False)
    assert run("predict", "model.skops", "new.csv").exit_code == 0


def test_a_target_that_is_named_as_scores_are_is_no_score(run, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 9)
    table = pd.DataFrame(rng.normal(size=(27, 3)), columns=["score:0", "score:1", "score:2"]).assign(**{"score:y": y})
    table.to_csv(tmp_path / "s.csv", index=False)
    result = run("evaluate", "s.csv", "--target", "score:y", "--json", "--no-report")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["absent"] == []


@pytest.mark.skipif(os.name == "nt", reason="needs ulimit")
@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_results_that_fit_in_part_are_an_error(tmp_path, unbuffered):
    """Without a buffer, Python writes once, and drops what the disk does not take."""
    command = f"ulimit -f 1; exec '{sys.executable}' -m mauc evaluate --help > help.txt"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "mauc: no space left for the output: free some, or send it to another place\n",
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("buffered", [True, False])
def test_a_full_disk_under_the_results_says_so(run_script, tmp_path, monkeypatch, buffered):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k % 2},{k},{-k}\n" for k in range(8))
    (tmp_path / "s.csv").write_text(f"y,0,1\n{rows}")
    for call in (["--help"], ["evaluate", "s.csv", "--target", "y", "--json"]):
        full = open("/dev/full", "wb", -1 if buffered else 0)  # noqa: SIM115, the stream closes it
        with io.TextIOWrapper(full, write_through=not buffered) as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            code, printed = run_script(*call)
        assert code == 1
        assert [t for t in printed.err.splitlines() if not t.startswith("note: ")] == [
            "mauc: no space left for the output: free some, or send it to another place"
        ]
