"""``mauc fit`` and ``mauc predict``: from a table to scores, and every way to fail."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc import mauc_score
from mauc._tables.data import parse_times

QUICK = ("--no-importance", "--no-report")


def without_known(stderr):
    """Lines of the standard error but the one that tells of rows that were trained on."""
    return [line for line in stderr.splitlines() if "training row" not in line]


def test_fit_predict_evaluate(run, trees, tmp_path):
    fitted = run("fit", "trees.csv", "--target", "species", "--no-importance", "--out", "sub/m.skops")
    assert fitted.exit_code == 0, fitted.output
    assert re.search(r"MAUC \(every[^\d]*0\.\d{4}   95 % interval 0\.\d{4} to 0\.\d{4}", fitted.stdout)
    for words in ("Classes", "Weakest class pairs", "wrote sub/m.skops", "wrote mauc-report/index.html"):
        assert words in fitted.stdout
    assert "<h1>trees.csv: predicting species</h1>" in (tmp_path / "mauc-report/index.html").read_text()

    predicted = run("predict", "sub/m.skops", "trees.csv", "--keep", "plot")
    assert predicted.exit_code == 0, predicted.output
    scores = pd.read_csv("scores.csv")
    assert list(scores.columns) == [
        "plot", "species", "trained_on", "predicted", "score:ash", "score:elm", "score:oak", "score:yew",
    ]  # fmt: skip
    expected = mauc_score(trees["species"], scores.filter(like="score:"))
    assert expected > 0.8

    judged = run("evaluate", "scores.csv", "--target", "species", "--json", "--no-report")
    assert judged.exit_code == 0, judged.output
    found = json.loads(judged.stdout)
    assert found["models"][0]["mauc"]["score"] == pytest.approx(expected)


def test_classes_and_kept_columns_with_leading_zeros(run, trees):
    coded = trees.assign(
        species=trees["species"].map({"oak": "001", "elm": "010", "yew": "100", "ash": "101"}),
        plot=trees["plot"].map("{:03d}".format),
    )
    coded.to_csv("coded.csv", index=False)
    assert run("fit", "coded.csv", "--target", "species", *QUICK).exit_code == 0
    assert run("predict", "model.skops", "coded.csv", "--keep", "plot").exit_code == 0
    scores = pd.read_csv("scores.csv", dtype=str)
    assert list(scores.columns[2:4]) == ["trained_on", "predicted"]
    assert list(scores.columns[4:]) == ["score:001", "score:010", "score:100", "score:101"]
    assert scores["species"].tolist() == coded["species"].tolist()
    assert scores["plot"].tolist() == coded["plot"].tolist()
    assert run("evaluate", "scores.csv", "--target", "species", "--no-report").exit_code == 0


def test_json_is_one_object_and_quiet_is_silent(run, trees):
    result = run("fit", "trees.csv", "--target", "species", "--no-importance", "--json", "--no-report")
    found = json.loads(result.stdout)
    assert found["files"] == {"model": "model.skops", "scores": "model.scores.npz"}
    assert sum(found["training_rows"].values()) + found["rows"] == len(trees)
    assert set(found["training_rows"]) == set(trees["species"])
    quiet = run("predict", "model.skops", "trees.csv", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")
    told = json.loads(run("predict", "model.skops", "trees.csv", "--json").stdout)
    assert told["rows"] == len(trees)
    assert told["classes"] == ["ash", "elm", "oak", "yew"]


def test_time_and_group_columns(run, trees):
    for option, name in (("--time-column", "seen"), ("--group", "plot")):
        result = run(
            "fit", "trees.csv", "--target", "species", "--no-importance", option, name, "--json", "--no-report"
        )
        assert result.exit_code == 0, result.output
        rest = trees.drop(columns=name)
        rest.to_csv("rest.csv", index=False)
        assert run("predict", "model.skops", "rest.csv").exit_code == 0, "the column is no feature"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--effort", "much"), "--effort must be quick, normal or best, got 'much'"),
        (
            ("--decide", "often"),
            "--decide must be balanced, accuracy or a table of costs such as costs.csv, got 'often'",
        ),
        (("--holdout", 1.5), "--holdout must be a finite number strictly between 0 and 1, got 1.5"),
        (("--time-column", "seen", "--group", "plot"), "leave one of them out"),
        (("--drop", "species"), "--drop 'species' is also the column of --target"),
        (("--group", "species"), "--target 'species' cannot also be --group or --time-column"),
        (("--group", "plots"), "--group 'plots' is not a column of trees.csv; did you mean 'plot'?"),
        (("--drop", "soils"), "--drop 'soils' is not a column of trees.csv; did you mean 'soil'?"),
    ],
)
def test_wrong_options(fails, trees, options, words):
    assert words in fails("fit", "trees.csv", "--target", "species", *options, code=2)


def test_unknown_target(fails, trees):
    assert "did you mean 'species'?" in fails("fit", "trees.csv", "--target", "specie", code=2)


def test_without_a_target_the_columns_are_named(fails, trees, tmp_path):
    said = " ".join(fails("fit", "trees.csv", code=2).split())
    assert "--target is required: name the column of trees.csv that holds the class of each row, " in said
    assert f"one of {', '.join(trees.columns[:8])}" in said
    (tmp_path / "parts").mkdir()
    for part in ("a", "b"):
        trees[["soil", "species"]].to_parquet(tmp_path / "parts" / f"{part}.parquet", index=False)
    assert "one of soil, species" in fails("evaluate", "parts", code=2)
    assert "one of soil, species" in fails("evaluate", "trees.csv", "--truth", "parts/a.parquet", code=2)


def test_tables_that_cannot_be_trained_on(fails, trees, tmp_path):
    single = trees.assign(species=trees["species"].where(trees.index > 0, "fir"))
    single.to_csv("single.csv", index=False)
    words = fails("fit", "single.csv", "--target", "species", "--no-importance")
    assert "class 'fir' has a single row" in words
    assert "--min-rows 2" in words
    trees.assign(species="oak").to_csv("one.csv", index=False)
    assert "has one class, 'oak'" in fails("fit", "one.csv", "--target", "species")
    trees.assign(height=np.inf).to_csv("inf.csv", index=False)
    words = fails("fit", "inf.csv", "--target", "species")
    assert "column 'height' of inf.csv has 160 infinite numbers (first: row 1)" in words
    trees[["species"]].to_csv("alone.csv", index=False)
    assert "has no column besides 'species'" in fails("fit", "alone.csv", "--target", "species")
    assert "File not found: nowhere.csv" in fails("fit", "nowhere.csv", "--target", "species")
    words = fails("fit", "trees.csv", "--target", "species", "--time-column", "soil")
    assert "without a time" in words
    words = fails("fit", "trees.csv", "--target", "species", "--group", "soil")
    assert re.search(r"column 'soil' of trees.csv has no group in \d+ rows: fill them in", words)
    trees.assign(seen=pd.to_datetime(trees["seen"]).dt.strftime("%d_%m_%Y")).to_csv("days.csv", index=False)
    words = fails("fit", "days.csv", "--target", "species", "--time-column", "seen")
    assert (
        "holds neither numbers nor dates like 2024-03-31: write them like this, or choose another --time-column"
        in words
    )
    trees.assign(height=-1e39).to_csv("huge.csv", index=False)
    words = fails("fit", "huge.csv", "--target", "species")
    assert "column 'height' of huge.csv holds -1e+39 (row 1), and the largest allowed number is 3.4e+38" in words
    assert not (tmp_path / "model.skops").exists()


def test_min_rows_leaves_classes_out(run, trees):
    trees.assign(species=trees["species"].where(trees.index > 0, "fir")).to_csv("single.csv", index=False)
    result = run(
        "fit", "single.csv", "--target", "species", "--no-importance", "--min-rows", 2, "--json", "--report", "r.html"
    )
    assert result.exit_code == 0, result.output
    left_out = "1 class of fewer than 2 rows (1 row in all): 'fir'"
    assert f"note: left out: {left_out}" in result.stderr
    assert left_out.replace("'", "&#39;") in Path("r.html").read_text()
    assert "fir" not in json.loads(result.stdout)["training_rows"]


def test_columns_that_changed_since_fit(run, fails, model, trees):
    trees.rename(columns={"height": "heights"}).to_csv("renamed.csv", index=False)
    words = fails("predict", model, "renamed.csv")
    assert "renamed.csv lacks 1 column that the model was trained on: 'height' ('height' may now be 'heights')" in words
    text = trees.astype({"height": object})
    text.loc[7, "height"] = "tall"
    text.to_csv("text.csv", index=False)
    told = run("predict", model, "text.csv")
    assert told.exit_code == 0, told.output
    assert "'height' held numbers in training and has a value that is not a number, such as 'tall'" in told.stderr
    changed = pd.read_csv("scores.csv")
    trees.assign(height=trees["height"].where(trees.index != 7)).to_csv("gap.csv", index=False)
    run("predict", model, "gap.csv")
    pd.testing.assert_frame_equal(changed, pd.read_csv("scores.csv"))
    more = trees.assign(extra=1)[["extra", *reversed(trees.columns)]]
    more.to_csv("more.csv", index=False)
    result = run("predict", model, "more.csv")
    assert result.exit_code == 0, result.output
    assert "extra columns are ignored: extra" in result.stderr
    first = pd.read_csv("scores.csv")
    run("predict", model, "trees.csv")
    pd.testing.assert_frame_equal(first, pd.read_csv("scores.csv"))
    trees.assign(soil="peat").to_csv("peat.csv", index=False)
    assert run("predict", model, "peat.csv").exit_code == 0, "an unknown category is no error"
    trees.assign(soil=7).to_csv("seven.csv", index=False)
    assert run("predict", model, "seven.csv").exit_code == 0
    trees.assign(height=trees["height"].where(trees.index != 7, -np.inf)).to_csv("inf.csv", index=False)
    told = run("predict", model, "inf.csv")
    assert "column 'height' of inf.csv holds -inf (first: row 8, 1 in all): treated as missing" in told.stderr
    pd.testing.assert_frame_equal(changed, pd.read_csv("scores.csv"))


def test_dates_in_another_format_count_as_missing(run, model, trees):
    days = pd.to_datetime(trees["seen"])
    trees.assign(seen=np.nan).to_csv("none.csv", index=False)
    assert run("predict", model, "none.csv", "--out", "none-scores.csv").exit_code == 0
    for name, form, first in (("dots", "%d.%m.%Y", "01.01.2021"), ("whole", "%Y%m%d", "20210101")):
        trees.assign(seen=days.dt.strftime(form)).to_csv(f"{name}.csv", index=False)
        told = run("predict", model, f"{name}.csv")
        assert told.exit_code == 0, told.output
        said = " ".join(told.stderr.split())
        assert f"column 'seen' of {name}.csv had dates of the form %Y-%m-%d in training" in said
        assert f"here holds '{first}' (row 1, 160 in all): treated as missing" in said
        pd.testing.assert_frame_equal(pd.read_csv("scores.csv"), pd.read_csv("none-scores.csv"))
    trees.assign(seen=trees["seen"].where(trees.index % 2 == 0, "?")).to_csv("gaps.csv", index=False)
    quiet = run("predict", model, "gaps.csv")
    assert (quiet.exit_code, without_known(quiet.stderr)) == (0, []), "what skrub takes for missing is no other format"


def test_a_column_that_was_empty_in_training_is_ignored(run, trees):
    trees.assign(notes=np.nan).to_csv("trees.csv", index=False)
    assert run("fit", "trees.csv", "--target", "species", *QUICK).exit_code == 0
    assert run("predict", "model.skops", "trees.csv", "--out", "empty.csv").exit_code == 0
    trees.assign(notes="many words").to_csv("words.csv", index=False)
    told = run("predict", "model.skops", "words.csv")
    assert told.exit_code == 0, told.output
    assert "column 'notes' was empty in training and is ignored" in told.stderr
    pd.testing.assert_frame_equal(pd.read_csv("scores.csv"), pd.read_csv("empty.csv"))


def test_codes_stay_as_they_are_written(run, trees):
    code = np.where(trees["species"] == "oak", "01", np.where(trees["species"] == "elm", "2", "x"))
    flag = pd.Series(trees.index % 3 == 0, dtype=object).where(trees.index != 1, None)
    table = trees.assign(code=code, flag=flag)
    table.to_csv("codes.csv", index=False)
    assert run("fit", "codes.csv", "--target", "species", *QUICK).exit_code == 0
    scores = {}
    for name, rows in (("all", table), ("some", table[code != "x"])):
        rows.to_csv(f"{name}.csv", index=False)
        result = run("predict", "model.skops", f"{name}.csv", "--out", f"{name}-scores.csv")
        assert result.exit_code == 0, result.output
        scores[name] = pd.read_csv(f"{name}-scores.csv").filter(like="score:").to_numpy()
    np.testing.assert_allclose(scores["some"], scores["all"][code != "x"], atol=1e-6)


def test_lists_are_refused(fails, model, trees):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    trees.assign(sizes=[[1, k % 2] for k in range(len(trees))]).to_parquet("lists.parquet")
    words = fails("fit", "lists.parquet", "--target", "species")
    assert "column 'sizes' of lists.parquet holds lists (first: row 1)" in words
    assert "leave the column out with --drop" in words
    for call, advice in (
        (("fit", "lists.parquet", "--target", "sizes"), "choose another --target"),
        (("fit", "lists.parquet", "--target", "species", "--group", "sizes"), "choose another --group"),
        (("predict", model, "lists.parquet", "--keep", "sizes"), "do not keep it"),
        (("evaluate", "lists.parquet", "--target", "sizes"), "choose another column"),
    ):
        words = fails(*call)
        assert "column 'sizes' of lists.parquet holds lists (first: row 1), not " in words
        assert words.endswith(advice)


def test_outputs_spare_the_files_of_the_command(fails, model, trees, tmp_path):
    import os

    before = {name: (tmp_path / name).read_bytes() for name in (model, "trees.csv")}
    (tmp_path / "link.csv").symlink_to("trees.csv")
    fit = ("fit", "trees.csv", "--target", "species", "--no-importance")
    for call in (
        (*fit, "--out", "trees.csv"),
        (*fit, "--out", "m", "--report", "./m"),
        (*fit, "--report", "link.csv"),
        ("predict", model, "trees.csv", "--out", model),
        ("predict", model, "trees.csv", "--out", tmp_path / "trees.csv"),
        ("evaluate", "trees.csv", "--target", "species", "--report", "trees.csv"),
        ("evaluate", "trees.csv", "--target", "species", "--compare", "b.csv", "--report", "b.csv"),
    ):
        assert "would overwrite" in fails(*call)
    os.mkfifo(tmp_path / "pipe")
    assert "pipe is not a regular file" in fails("predict", model, "trees.csv", "--out", "pipe")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_names_that_cannot_be_written_are_refused_before_training(fails, trees, tmp_path):
    (tmp_path / "a.skops").symlink_to("b.skops")
    (tmp_path / "b.skops").symlink_to("a.skops")
    before = {path.name for path in tmp_path.iterdir()}
    fit = ("fit", "trees.csv", "--target", "species", *QUICK, "--out")
    for out, words in (
        ("a.skops", "(Too many levels of symbolic links): choose another name"),
        (f"{'x' * 300}.skops", "(File name too long): choose another name"),
        (f"new/{'x' * 300}/m.skops", "(File name too long): choose another name"),
    ):
        assert f"--out {out} cannot be written {words}" in fails(*fit, out)
    words = "--out - would be standard output, which cannot take a model file: name a file"
    assert words in fails(*fit, "-", code=2)
    assert {path.name for path in tmp_path.iterdir()} == before


def test_names_say_what_is_written(fails, model, trees, tmp_path):
    fit = ("fit", "trees.csv", "--target", "species", "--no-importance")
    cases = {
        ("predict", model, "trees.csv", "--out", "scores.xlsx"): "is CSV, so it must end in .csv",
        ("predict", model, "trees.csv", "--out", "scores.csv.gz"): "must end in .csv",
        (*fit, "--out", "other.csv"): "other.csv is a model file, so it must end in .skops",
        (*fit, "--report", "other.csv"): "other.csv is a page, so it must end in .html",
        ("evaluate", "trees.csv", "--target", "species", "--report", "other.csv"): "must end in .html",
    }
    trees.to_csv("other.csv")
    before = {path.name for path in tmp_path.iterdir()}
    for call, words in cases.items():
        assert words in fails(*call, code=2)
    assert {path.name for path in tmp_path.iterdir()} == before
    pd.testing.assert_index_equal(pd.read_csv("other.csv", index_col=0).columns, trees.columns)


def test_model_files_of_another_kind(fails, run, model, trees, tmp_path):
    import skops.io
    from sklearn.linear_model import LogisticRegression

    (tmp_path / "text.skops").write_text("no model")
    skops.io.dump(LogisticRegression(), tmp_path / "other.skops")
    tag = {"format": "mauc model 6"}
    skops.io.dump(tag, tmp_path / "tag.skops")
    skops.io.dump(tag | dict.fromkeys(("classifier", "kinds", "target", "about"), 3), tmp_path / "3.skops")
    for name in ("text.skops", "other.skops", "tag.skops", "3.skops"):
        assert f"{name} is damaged or not a mauc model" in fails("predict", name, "trees.csv")
    assert "File not found: nowhere.skops" in fails("predict", "nowhere.skops", "trees.csv")
    assert f"the model comes first: mauc predict {model} trees.csv" in fails("predict", "trees.csv", model, code=2)
    assert "--out" not in fails("predict", "trees.csv", "trees.csv"), "no hint that would overwrite the data"
    assert f"{model} is a model file, not a table" in fails("evaluate", model, "--target", "species")
    assert "is a folder" in fails("predict", tmp_path, "trees.csv")


@pytest.mark.parametrize(
    "part",
    [
        *({"class_type": each} for each in ("int", "date", ["int"], 3, None)),
        *({"commas": each} for each in ("points", None, ["decimal"])),
        *({"missing": each} for each in ("?", None, (1,))),
        {"pointed": (None,)},
    ],
)
def test_parts_of_another_type_are_refused(fails, model, trees, part):
    from dataclasses import replace

    from mauc._tables.model_file import read_model, write_model

    write_model(Path(model), replace(read_model(Path(model)), **part))
    assert "is damaged or not a mauc model" in fails("predict", model, "trees.csv")


def test_untrusted_types_are_listed_and_refused(fails, run, model, trees):
    from sklearn.impute import SimpleImputer
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline

    from mauc._tables.model_file import read_model, write_model

    changed = read_model(Path(model))
    features = changed.columns.transform(trees[list(changed.kinds)])
    codes = np.searchsorted(changed.classes, trees["species"])
    for name in changed.classifier.named_estimators_:
        other = make_pipeline(SimpleImputer(), GaussianNB()).fit(features, codes)
        changed.classifier.named_estimators_[name] = other
    write_model(Path(model), changed)
    words = fails("predict", model, "trees.csv")
    assert "holds types that mauc does not know" in words
    assert "sklearn.naive_bayes.GaussianNB" in words
    assert "--trust" in words
    assert not Path("scores.csv").exists()
    assert run("predict", model, "trees.csv", "--trust").exit_code == 0


def test_max_size_allows_more(fails, run, model, trees):
    words = fails("predict", model, "trees.csv", "--max-size", 1e-5)
    assert "model.skops holds " in words or "model.skops unpacks from" in words
    assert "raise --max-size if you trust the file" in words
    Path("zeros.csv.gz").write_bytes(gzip.compress(b"x,species\n" + b"0,a\n1,b\n" * 500_000))
    for call in (("fit", "zeros.csv.gz"), ("evaluate", "zeros.csv.gz")):
        assert "zeros.csv.gz unpacks from" in fails(*call, "--target", "species", "--max-size", 0.001)


def test_no_permission_and_no_space(fails, run, model, trees, tmp_path, monkeypatch):
    import errno

    import mauc._cli.files as files
    from mauc import _io

    before = (tmp_path / model).read_bytes()
    fit = ("fit", "trees.csv", "--target", "species", *QUICK, "--quiet")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        words = fails(*fit)
        assert "no space left to write model.skops, which is unchanged: free some, or choose" in words
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "access", lambda *_: False)
        assert "no permission to write model.skops: choose another --out" in fails(*fit)
    with monkeypatch.context() as patch:
        patch.setattr(_io, "_replace", lambda *_: (_ for _ in ()).throw(PermissionError(13, "denied")))
        assert "no permission for model.skops" in fails(*fit)
    assert "must be a file, got the folder" in fails(*fit, "--out", tmp_path)
    assert "trees.csv is a file" in fails(*fit, "--out", "trees.csv/model.skops")
    assert (tmp_path / model).read_bytes() == before, "whole or not at all"
    assert not list(tmp_path.glob(".part-*"))


def test_debug_shows_the_error(run, trees):
    from mauc._tables.errors import Failure

    result = run("fit", "nowhere.csv", "--target", "species", "--debug")
    assert isinstance(result.exception, Failure)


def test_streams_and_days_first(run, fails, trees, tmp_path):
    """A German export through standard input, its model, and new rows whose dates alone would leave the order open."""
    days = pd.to_datetime(trees["seen"])
    german = trees.assign(seen=days.dt.strftime("%d/%m/%Y")).to_csv(sep=";", decimal=",", index=False)
    result = run("fit", "-", "--target", "species", "--no-importance", stdin=german)
    assert result.exit_code == 0, result.output
    assert "standard input is read as a table with semicolons between columns, with decimal commas" in result.stderr
    assert "column 'seen' of standard input holds dates with the day first, such as" in result.stderr
    trees.to_csv("iso.csv", index=False)
    assert run("predict", "model.skops", "iso.csv").exit_code == 0
    trees[days.dt.day <= 12].assign(seen=days.dt.strftime("%d/%m/%Y")).to_csv("open.csv", index=False)
    shown = run("predict", "model.skops", "open.csv", "--out", "-")
    expected = pd.read_csv("scores.csv")[days.dt.day <= 12]
    assert "although" not in shown.stderr, "points, but every number is surely a decimal"
    assert without_known(shown.stderr) == []
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(shown.stdout)), expected.reset_index(drop=True))
    trees.assign(seen="12/31/2024").to_csv("us.csv", index=False)
    told = run("predict", "model.skops", "us.csv")
    assert told.exit_code == 0, told.output
    assert "had dates with the day first in training" in told.stderr
    assert "--out - and --json both write" in fails("predict", "model.skops", "iso.csv", "--out", "-", "--json", code=2)


def test_a_cell_that_is_no_date_costs_itself(run, trees, tmp_path):
    """In new rows, and in those of training."""
    days = pd.to_datetime(trees["seen"]).dt.strftime("%d/%m/%Y")
    trees.assign(seen=days).to_csv("t.csv", index=False)
    trees.assign(seen=days.mask(trees.index == 7, "-")).to_csv("dash.csv", index=False)
    for name in ("t", "dash"):
        fit = run("fit", f"{name}.csv", "--target", "species", "--out", f"{name}.skops", "--no-importance")
        assert fit.exit_code == 0, fit.output
        assert "1 date (seen)" in fit.stdout
    assert "column 'seen' of dash.csv holds dates, and '-' among them (1 in all): treated as missing" in fit.stderr
    odd = {2: "-", 5: "unknown", 11: "31/02/2024"}
    found = {}
    for name, cells in (("clean", {}), ("odd", odd)):
        trees.assign(seen=days.where(~days.index.isin(cells), days.index.map(cells))).head(20).to_csv("new.csv")
        told = run("predict", "t.skops", "new.csv", "--out", f"{name}.csv")
        assert told.exit_code == 0, told.output
        found[name] = pd.read_csv(f"{name}.csv").filter(like="score:")
    assert "here holds '-' (row 3, 3 in all): treated as missing" in told.stderr
    changed = (found["clean"] != found["odd"]).any(axis=1)
    assert set(np.flatnonzero(changed)) <= set(odd)


@pytest.mark.parametrize("bad", ["inf", "1e39"])
def test_a_number_that_is_too_large_is_told_beside_a_missing_one(fails, trees, bad):
    cells = trees["height"].astype(object)
    cells[3], cells[4] = "?", bad
    trees.assign(height=cells).to_csv("t.csv", index=False)
    assert "column 'height' of t.csv h" in fails("fit", "t.csv", "--target", "species")


def test_scores_on_standard_output_are_utf8(model, trees, tmp_path):
    trees.head(3).assign(note="漢").to_csv("new.csv", index=False)
    call = [sys.executable, "-m", "mauc", "predict", model, "new.csv", "--keep", "note", "--out", "-"]
    done = subprocess.run(call, env={**os.environ, "PYTHONIOENCODING": "cp1252"}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert pd.read_csv(io.BytesIO(done.stdout), encoding="utf-8")["note"].tolist() == ["漢"] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_of_files_that_are_not_utf8(run, trees):
    table, model = os.fsdecode(b"na\xefve.csv"), os.fsdecode(b"mod\xe8le.skops")
    trees.to_csv(table, index=False)
    for call in (
        ("fit", table, "--target", "species", "--out", model, "--no-importance"),
        ("predict", model, table, "--out", os.fsdecode(b"\xe9.csv")),
        ("evaluate", os.fsdecode(b"\xe9.csv"), "--target", "species"),
    ):
        result = run(*call)
        assert result.exit_code == 0, result.output


def write(name, header, *columns):
    Path(name).write_text("\n".join([header, *map(";".join, zip(*columns, strict=True))]))


@pytest.mark.parametrize(("sign", "step"), [(",", 10_001), (".", 100_001)])
def test_commas_and_points_mean_the_same_in_new_rows(run, sign, step):
    price = step * np.arange(1, 61)
    grouped = [f"{each:,}".replace(",", "." if sign == "," else ",") for each in price]
    weight = [f"{each}{sign}5" for each in range(60)]
    write("t.csv", "w;price;y", weight, grouped, np.repeat(["a", "b", "c"], 20))
    assert run("fit", "t.csv", "--target", "y", *QUICK).exit_code == 0
    expected = None
    for prices in (price.astype(str), grouped):
        write("new.csv", "w;price", "123456789", prices[:9])
        result = run("predict", "model.skops", "new.csv", "--out", "-")
        assert result.exit_code == 0, result.output
        assert "missing" not in result.stderr
        expected = expected or result.stdout
        assert result.stdout == expected


def test_missing_means_the_same_in_new_rows(run, trees):
    from mauc import load_model

    trees["height"] = trees["height"].round(3)
    trees.fillna({"height": -999}).to_csv("signs.csv", index=False)
    trees.to_parquet("gaps.parquet")
    assert run("fit", "signs.csv", "--target", "species", *QUICK, "--missing", "-999").exit_code == 0
    scores = [run("predict", "model.skops", name, "--out", "-").stdout for name in ("signs.csv", "gaps.parquet")]
    assert scores[0] == scores[1] != ""
    both = ("--missing", "clay", "--missing", "-1")
    trees.fillna({"height": -1}).replace({"soil": {"clay": None}}).to_csv("other.csv", index=False)
    trees.fillna({"height": -999}).to_csv("signs.csv", index=False)
    added = [run("predict", "model.skops", f"{name}.csv", *both, "--out", "-").stdout for name in ("signs", "other")]
    assert added[0] == added[1] != scores[0]
    model = load_model("model.skops")
    found = [model.decision_function(frame) for frame in (trees.fillna({"height": -999}), trees)]
    pd.testing.assert_frame_equal(*found)


def test_days_first_in_the_time_column(run, fails, trees):
    fit = ("fit", "t.csv", "--target", "species", "--time-column", "seen", *QUICK, "--json")
    days = pd.to_datetime(trees["seen"])
    trees.to_csv("t.csv", index=False)
    expected = json.loads(run(*fit).stdout)
    trees.assign(seen=days.dt.strftime("%d.%m.%Y")).to_csv("t.csv", index=False)
    assert json.loads(run(*fit).stdout)["models"] == expected["models"]
    trees.assign(seen=days.dt.strftime("%m/%d/%Y")).to_csv("t.csv", index=False)
    assert json.loads(run(*fit).stdout)["models"] == expected["models"]
    trees.assign(seen="01/02/2024").to_csv("t.csv", index=False)
    assert "which could have the day or the month first: say which with --dates day-first" in fails(*fit)
    assert "--dates must be day-first or month-first, got 'x'" in fails(*fit, "--dates", "x", code=2)


@pytest.mark.parametrize("between", ["/", "."])
def test_what_is_told_of_dates_holds_whatever_stands_between_the_numbers(between):
    told = pd.Series([between.join(day) for day in (("01", "03", "2024"), ("02", "01", "2024"))])
    for order, first in (("month-first", 0), ("day-first", 1)):
        assert np.argmin(parse_times(told, "seen", Path("t"), order)) == first


def test_groups_go_to_every_interval(run, trees):
    call = ("fit", "trees.csv", "--target", "species", "--group", "plot", "--cv", 3, "--json", *QUICK)
    found = json.loads(run(*call, "--out", "a.skops").stdout)
    assert found["notes"][0] == (
        "The 160 test rows are in 16 groups: intervals and tests allow for that. "
        "With fewer than 30 groups they are rough."
    )
    mauc = found["models"][0]["mauc"]
    run(*call, "--drop", "height", "--out", "b.skops")
    again = json.loads(run("compare", "a.skops", "b.skops", "--json").stdout)
    assert again["models"][0]["mauc"] == pytest.approx(mauc)
    assert again["notes"][0].startswith("The 160 test rows are in 16 groups")
    kept = json.loads(run("evaluate", "a.scores.npz", "--json", "--no-report").stdout)
    assert kept["models"][0]["mauc"] == pytest.approx(mauc)
