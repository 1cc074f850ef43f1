"""``mauc predict`` of a table in parts: the scores of the whole, part by part; a run that was stopped goes on."""

import json
import sys
from functools import partial

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")

import pandas as pd

from mauc._tables.parts import MANIFEST

command = sys.modules["mauc._cli.predict"]
EDGES = {"a": slice(0, 70), "b": slice(70, 70), "c": slice(70, 160)}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(command, "predict_parts", partial(command.predict_parts, part_rows=32))


@pytest.fixture
def kind():
    return "parquet"


@pytest.fixture
def big(trees, tmp_path, kind):
    """The trees in parts, one without a row; dates are dates in Parquet."""
    trees["number"] = np.where(trees.index < 100, trees.index, np.nan)
    (tmp_path / "big").mkdir()
    for name, rows in EDGES.items():
        part = trees.iloc[rows]
        if kind == "csv":
            part.to_csv(tmp_path / "big" / f"{name}.csv", index=False)
        else:
            part.assign(seen=pd.to_datetime(part["seen"])).to_parquet(tmp_path / "big" / f"{name}.parquet", index=False)
    return trees


def written(folder):
    """Rows of all files of a folder, in order, and their names."""
    files = sorted(p for p in folder.iterdir() if p.name != MANIFEST)
    tables = [pd.read_csv(p) if p.suffix == ".csv" else pd.read_parquet(p) for p in files]
    return pd.concat([t for t in tables if len(t)], ignore_index=True), [p.name for p in files]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_parts_are_scored_as_the_whole(run, model, big, tmp_path, kind):
    big.to_csv("whole.csv", index=False)
    assert run("predict", model, "whole.csv", "--out", "whole-scores.csv", "--keep", "number").exit_code == 0
    result = run("predict", model, "big", "--out", "scores", "--keep", "number", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert (said["rows"], said["parts"]) == (160, 6)
    assert "of these 160 rows were training rows" in result.stderr
    found, names = written(tmp_path / "scores")
    assert names == [f"{name}.{kind}" for name in ("a-00000", "a-00001", "a-00002", "c-00000", "c-00001", "c-00002")]
    pd.testing.assert_frame_equal(found, pd.read_csv("whole-scores.csv"), check_dtype=False, rtol=1e-12)
    options = ("--target", "species", "--no-report", "--json")
    whole, parts = (json.loads(run("evaluate", p, *options).stdout) for p in ("whole-scores.csv", "scores"))
    assert parts["models"][0]["mauc"] == pytest.approx(whole["models"][0]["mauc"], rel=1e-10)


def test_a_run_that_was_stopped_goes_on(run, fails, model, big, tmp_path, monkeypatch):
    predict = ("predict", model, "big", "--out")
    at_once = run(*predict, "at-once")
    assert at_once.exit_code == 0
    score_rows, calls = command.score_rows, []

    def stopped(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return score_rows(*arguments)

    monkeypatch.setattr(command, "score_rows", stopped)
    assert run(*predict, "scores").exit_code != 0
    assert len(written(tmp_path / "scores")[1]) == 3
    words = fails("evaluate", "scores", "--target", "species")
    assert "the scores in scores are incomplete: run the same mauc predict again to complete them" in words
    result = run(*predict, "scores")
    assert result.exit_code == 0, result.output
    assert "3 of the 6 files existed already" in result.stderr
    assert len(calls) == 4 + 3, "what is there is not scored again"
    again = run(*predict, "scores")
    for words in ("of these 160 rows were training rows", "extra columns are ignored: number"):
        assert [words in each.stderr for each in (at_once, result, again)] == [True] * 3
    notes = [each.stderr.partition("rows were training rows")[0].rpartition("note: ")[2] for each in (at_once, again)]
    assert notes[0] == notes[1]
    for path in (tmp_path / "at-once").iterdir():
        assert (tmp_path / "scores" / path.name).read_bytes() == path.read_bytes()


def test_scores_of_something_else_are_not_mixed(run, fails, model, big, tmp_path, kind):
    predict = ("predict", model, "big", "--out")
    assert run(*predict, "scores").exit_code == 0
    assert "holds scores of a run with other options" in fails(*predict, "scores", "--keep", "plot")
    (tmp_path / "big" / f"b.{kind}").unlink()
    assert "--out scores holds scores of another table, or one that has changed" in fails(*predict, "scores")
    assert "--out big is the folder of the table itself" in fails(*predict, "big")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / f"x.{kind}").write_bytes(b"")
    assert "--out other holds other tables" in fails(*predict, "other")
    assert "two parts are named 'a'" in fails("predict", model, "big", f"other/../big/../big/a.{kind}", "--out", "new")
    assert not (tmp_path / "new").exists()


def test_what_is_wrong_names_the_part_and_its_rows(fails, model, big, tmp_path, kind):
    part = big.iloc[70:].assign(height=np.where(np.arange(90) == 40, np.inf, 1.0))
    if kind == "csv":
        part.to_csv(tmp_path / "big" / "c.csv", index=False)
    else:
        part.assign(seen=pd.to_datetime(part["seen"])).to_parquet(tmp_path / "big" / "c.parquet", index=False)
    words = fails("predict", model, "big", "--out", "scores")
    assert f"column 'height' of big/c.{kind} (rows 33 to 64) has 1 infinite number (first: row 9)" in words
    assert len(written(tmp_path / "scores")[1]) == 4, "what was whole stays"
