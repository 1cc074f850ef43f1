"""``mauc predict`` of a folder: the scores of one file, part by part, also after a stop."""

import os
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")

import pandas as pd

from mauc._cli import predict_parts


def write_parts(folder, table, edges=(0, 60, 100, 160)):
    folder.mkdir()
    for k, (begin, end) in enumerate(pairwise(edges)):
        table.iloc[begin:end].to_parquet(folder / f"part-{k}.parquet", index=False)


@pytest.fixture
def parts(model, trees, tmp_path):
    """A folder of three parts, beside the model."""
    table = trees.sample(frac=1.0, random_state=0).assign(extra=1.0, code=[f"{k:03}" for k in range(160)])
    write_parts(tmp_path / "big", table)
    table.to_parquet(tmp_path / "big.parquet", index=False)
    return table


def read(folder):
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))], ignore_index=True)


def test_a_folder_gives_the_scores_of_one_file(run, parts, tmp_path, monkeypatch):
    monkeypatch.setattr(predict_parts, "batch_rows", lambda n_columns: 25)
    whole = run("predict", "model.skops", "big.parquet", "--keep", "code")
    done = run("predict", "model.skops", "big", "--keep", "code")
    assert (whole.exit_code, done.exit_code) == (0, 0), done.output
    assert "160 rows scored for 4 classes of 'species'" in done.stdout
    assert "extra columns are ignored: extra" in done.stderr
    assert "part 3 of 3: part-2.parquet, 60 rows" in done.stderr
    found, expected = read(tmp_path / "scores"), pd.read_csv("scores.csv", dtype={"code": str})
    assert set(found.columns) - set(expected.columns) <= {"trained_on"}
    pd.testing.assert_frame_equal(found[expected.columns], expected, check_dtype=False, rtol=1e-12)
    for table in ("scores", "scores.csv"):
        judged = run("evaluate", table, "--target", "species", "--no-report")
        assert judged.exit_code == 0, judged.output


def test_a_stopped_run_goes_on(run, parts, tmp_path, monkeypatch):
    """The part that was being written is not there; those before it stay as they are."""
    score, calls = predict_parts.score_rows, []

    def stop_in_the_second(rows, loaded, shown):
        calls.append(str(shown))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return score(rows, loaded, shown)

    monkeypatch.setattr(predict_parts, "score_rows", stop_in_the_second)
    assert run("predict", "model.skops", "big").exit_code != 0
    assert [path.name for path in (tmp_path / "scores").iterdir()] == ["part-0.parquet"]
    before = (tmp_path / "scores" / "part-0.parquet").stat().st_mtime_ns
    done = run("predict", "model.skops", "big")
    assert done.exit_code == 0, done.output
    assert "1 of 3 files were scored before by this model, and are left as they are" in done.stderr
    assert "100 rows scored" in done.stdout
    assert (tmp_path / "scores" / "part-0.parquet").stat().st_mtime_ns == before
    assert len(read(tmp_path / "scores")) == 160
    assert len(calls) == 4


def test_files_of_others_are_not_overwritten(run, fails, parts, tmp_path):
    assert run("predict", "model.skops", "big").exit_code == 0
    words = fails("predict", "model.skops", "big", "--keep", "code")
    assert "scores/part-0.parquet is there already and is of another model, other options or another" in words
    path = tmp_path / "big" / "part-1.parquet"
    parts.iloc[60:99].to_parquet(path, index=False)
    assert "scores/part-1.parquet is there already and is of another" in fails("predict", "model.skops", "big")
    (tmp_path / "other").mkdir()
    parts.to_parquet(tmp_path / "other" / "part-0.parquet")
    words = fails("predict", "model.skops", "big", "--out", "other")
    assert "other/part-0.parquet is there already and is not of mauc predict: remove it" in words


def test_parts_without_rows_are_left_out(run, parts, tmp_path):
    parts.iloc[:0].to_parquet(tmp_path / "big" / "part-1.parquet", index=False)
    done = run("predict", "model.skops", "big")
    assert "120 rows scored" in done.stdout, done.output
    assert sorted(path.name for path in (tmp_path / "scores").iterdir()) == ["part-0.parquet", "part-2.parquet"]


def test_bad_folders(run, fails, parts, tmp_path):
    predict = ("predict", "model.skops", "big")
    assert "--out big is the folder of the table" in fails(*predict, "--out", "big")
    assert "--out must be a folder for the scores of a folder" in fails(*predict, "--out", "s.csv", code=2)
    assert "--out - cannot take the scores of a folder" in fails(*predict, "--out", "-", code=2)
    assert "--keep 'nobody' is not a column of big" in fails(*predict, "--keep", "nobody", code=2)
    write_parts(tmp_path / "short", parts.drop(columns="height"))
    assert "height" in fails("predict", "model.skops", "short", "--out", "s")
    assert not list((tmp_path / "s").glob("*")) if (tmp_path / "s").exists() else True
    (tmp_path / "big" / "part-9.csv").write_text("a\n1\n")
    assert "big/part-9.csv is not Parquet" in fails(*predict)
    os.remove(tmp_path / "big" / "part-9.csv")
    parts.assign(predicted=np.nan).to_parquet(tmp_path / "big" / "part-3.parquet", index=False)
    assert "part-0.parquet has no column 'predicted', but" in fails(*predict)
