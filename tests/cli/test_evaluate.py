"""``mauc evaluate``: scores of any program."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc import compare_mauc, mauc_interval, multiclass_auc_report

CLASSES = ["ash", "elm", "oak"]


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(CLASSES, [8, 20, 60])
    values = rng.normal(size=(88, 3)) + 1.5 * (y[:, None] == CLASSES)
    table = pd.DataFrame(values, columns=CLASSES).assign(truth=y, remark="x")
    table.to_csv(tmp_path / "a.csv", index=False)
    other = table.copy()
    other[CLASSES] += rng.normal(size=(88, 3))
    other[["truth", "oak", "elm", "ash"]].to_csv(tmp_path / "b.csv", index=False)
    return table, other


def test_classes_in_another_table_are_asked_for(run, scores):
    scores[0].drop(columns="truth").to_csv("without.csv", index=False)
    result = run("evaluate", "without.csv", "--target", "diagnosis")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "--target 'diagnosis' is not a column of without.csv; its columns are ash, elm, oak, remark; " in said
    assert "if another table of the same rows has it, name that table with --truth" in said


def test_numbers_and_report(run, scores, tmp_path):
    table, other = scores
    result = run("evaluate", "a.csv", "--target", "truth", "--compare", "b.csv", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    expected = mauc_interval(table["truth"], table[CLASSES])
    assert found["models"][0]["mauc"] == pytest.approx(vars(expected))
    test = compare_mauc(table["truth"], other[CLASSES], table[CLASSES])
    assert found["tests"][0]["difference"] == pytest.approx(test.difference)
    assert found["tests"][0]["pvalue"] == pytest.approx(test.pvalue)
    assert [path.name for path in (tmp_path / "mauc-report").iterdir()] == ["evaluation.html"], "not that of mauc fit"
    people = run("evaluate", "a.csv", "--target", "truth", "--compare", "b.csv", "--report", "r.html")
    for words in (
        "Models compared",
        "a.csv",
        "b.csv",
        "Weakest class pairs; the intervals of all 3 pairs hold together\n",
        "wrote r.html",
    ):
        assert words in people.stdout


@pytest.mark.parametrize(("level", "shown"), [(0.57, "57 %"), (0.9999999, "99.99999 %")])
def test_the_level_is_shown_with_all_its_digits(run, scores, tmp_path, level, shown):
    options = ("--compare", "b.csv", "--report", "r.html", "--level", level)
    result = run("evaluate", "a.csv", "--target", "truth", *options)
    assert result.exit_code == 0, result.output
    assert f"   {shown} interval 0." in result.stdout
    heading = next(line for line in result.stdout.splitlines() if line.strip().startswith("model"))
    assert f" {shown}" in heading
    page = (tmp_path / "r.html").read_text()
    assert f"{shown} interval 0." in page
    assert f"{shown} interval, axis from" in page


def test_folders_are_made_aloud_and_never_at_the_root(run, fails, scores, tmp_path):
    assert run("evaluate", "a.csv", "--target", "truth").stderr == "", "nobody typed mauc-report"
    evaluate = ("evaluate", "a.csv", "--target", "truth", "--report")
    made = run(*evaluate, tmp_path / "new" / "er" / "r.html")
    assert f"making the folder {tmp_path}/new/er" in made.stderr
    assert (tmp_path / "new" / "er" / "r.html").exists()
    assert run(*evaluate, tmp_path / "new" / "er" / "r.html").stderr == ""
    words = fails(*evaluate, "/no-such-folder-of-mauc/r.html")
    assert "--report /no-such-folder-of-mauc/r.html needs the folder /no-such-folder-of-mauc at the root" in words
    assert "check the name, or make the folder first" in words
    assert not Path("/no-such-folder-of-mauc").exists()


def test_prefix_and_a_class_without_rows(run, scores, tmp_path):
    table, _ = scores
    named = table.rename(columns={c: f"p_{c}" for c in CLASSES}).assign(p_fir=0.0)
    named.to_csv("p.csv", index=False)
    result = run("evaluate", "p.csv", "--target", "truth", "--prefix", "p_", "--json", "--no-report")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["absent"] == ["fir"]
    assert "classes without a row are left out: fir\n" in result.stderr
    named.assign(**{f"p_{k}": 0.0 for k in range(8)}).to_csv("p.csv", index=False)
    result = run("evaluate", "p.csv", "--target", "truth", "--prefix", "p_", "--no-report")
    assert "classes without a row are left out: fir, 0, 1, 2, 3, 4, 5, 6, …\n" in result.stderr


def test_a_prefix_is_found(run, fails, scores):
    table, _ = scores
    named = table.rename(columns={c: f"p_{c}" for c in CLASSES}).assign(p_value="x")
    named.to_csv("p.csv", index=False)
    result = run("evaluate", "p.csv", "--target", "truth", "--json", "--no-report")
    assert result.exit_code == 0, result.output
    assert (
        json.loads(result.stdout)["models"][0]["mauc"]["score"] == mauc_interval(table["truth"], table[CLASSES]).score
    )
    named.assign(**{f"logit {c}": 0.0 for c in CLASSES}).to_csv("two.csv", index=False)
    words = fails("evaluate", "two.csv", "--target", "truth")
    assert "columns 'logit ash' and 'p_ash' for the class 'ash': choose one with --prefix" in words


def test_truth_in_another_table(run, fails, scores):
    table, _ = scores
    table[CLASSES].to_csv("s.csv", index=False)
    table[["truth"]].to_csv("t.csv", index=False)
    assert run("evaluate", "s.csv", "--target", "truth", "--truth", "t.csv", "--no-report").exit_code == 0
    words = fails("evaluate", "t.csv", "--target", "truth", "--truth", "s.csv", code=2)
    assert "--truth s.csv has no column 'truth', but t.csv has: name the scores first" in words


def test_truth_of_other_rows_is_refused(run, fails, scores):
    table, _ = scores
    table[["truth"]].iloc[::-1].to_csv("t.csv", index=False)
    words = fails("evaluate", "a.csv", "--target", "truth", "--truth", "t.csv")
    assert "a.csv has other classes in 'truth' than t.csv (first: row 1)" in words


def test_an_empty_target_beside_the_truth_is_no_other_class(run, scores):
    table, _ = scores
    table.assign(truth=None).to_csv("s.csv", index=False)
    table[["truth"]].to_csv("t.csv", index=False)
    done = run("evaluate", "s.csv", "--target", "truth", "--truth", "t.csv", "--no-report")
    assert done.exit_code == 0, done.output


def test_classes_that_differ_only_as_texts_stay_apart(run, tmp_path):
    text = "score:1,score:1.0,score:2,truth\n.9,.1,.1,1\n.1,.9,.1,1.0\n.1,.1,.9,2\n"
    (tmp_path / "s.csv").write_text(text)
    done = run("evaluate", "s.csv", "--target", "truth", "--no-report", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["absent"] == []
    assert json.loads(done.stdout)["models"][0]["mauc"]["score"] == 1.0


def test_a_blank_in_the_name_of_a_score_column_loses_no_rows(fails, scores):
    table, _ = scores
    table.rename(columns={c: f"score:{c}" for c in CLASSES} | {"ash": "score: ash"}).to_csv("s.csv", index=False)
    words = fails("evaluate", "s.csv", "--target", "truth")
    assert re.search(
        r"no column 'score:ash' with the scores of class 'ash', first in row \d+; the nearest column", words
    )
    assert "is 'score: ash'" in words


def test_rows_without_a_class_are_left_out_everywhere(run, fails, scores):
    table, other = scores
    for name, frame in (("a.csv", table), ("b.csv", other)):
        frame.assign(truth=frame["truth"].where(frame.index % 5 > 0)).to_csv(name, index=False)
    evaluate = ("evaluate", "a.csv", "--target", "truth", "--compare", "b.csv", "--no-report", "--json")
    assert "leave them out with --drop-unlabelled" in fails(*evaluate)
    found = json.loads(run(*evaluate, "--drop-unlabelled").stdout)
    kept = table.index % 5 > 0
    expected = compare_mauc(table["truth"][kept], other[CLASSES][kept], table[CLASSES][kept])
    assert found["tests"][0]["difference"] == pytest.approx(expected.difference)
    table["truth"] = table["truth"].where(kept)
    table.assign(elm=table["elm"].where(table.index != 6)).to_csv("a.csv", index=False)
    words = fails(*evaluate, "--drop-unlabelled")
    assert "column 'elm' of a.csv has a score that is missing (row 7)" in words, "as in the file"


def test_a_class_with_one_row_leaves_the_interval(run, scores):
    table, _ = scores
    table.iloc[7:].to_csv("one.csv", index=False)
    result = run("evaluate", "one.csv", "--target", "truth")
    assert result.exit_code == 0, result.output
    assert "95 % interval" in result.stdout
    assert "Class ash has a single test row" in result.stdout


def test_four_rows_do_not_prove_a_difference(run):
    right = pd.DataFrame(
        {"truth": ["elm", "elm", "oak", "oak"], "elm": [1.0, 0.9, 0.2, 0.1], "oak": [0.0, 0.1, 0.8, 0.9]}
    )
    right.to_csv("right.csv", index=False)
    right.assign(elm=1 - right["elm"], oak=1 - right["oak"]).to_csv("wrong.csv", index=False)
    result = run("evaluate", "right.csv", "--target", "truth", "--compare", "wrong.csv", "--json", "--no-report")
    assert result.exit_code == 0, result.output
    (test,) = json.loads(result.stdout)["tests"]
    assert test["difference"] == -1.0
    assert 0.04 < test["pvalue"] < 0.1
    assert test["low"] == -1.0
    assert test["high"] > -0.1


def test_failures(fails, scores):
    table, _ = scores
    words = fails("evaluate", "a.csv", "--target", "truht", code=2)
    assert "did you mean 'truth'?" in words
    table.rename(columns={"oak": "Oak"}).to_csv("named.csv", index=False)
    words = fails("evaluate", "named.csv", "--target", "truth")
    assert re.search(
        r"no column 'oak' with the scores of class 'oak', first in row \d+; the nearest column is 'Oak'", words
    )
    table.assign(elm=np.where(table.index == 4, np.nan, 0.0)).to_csv("nan.csv", index=False)
    assert "has a score that is missing (row 5)" in fails("evaluate", "nan.csv", "--target", "truth")
    table.assign(elm=np.inf).to_csv("inf.csv", index=False)
    assert "has a score that is infinite" in fails("evaluate", "inf.csv", "--target", "truth")
    table.assign(elm="x").to_csv("text.csv", index=False)
    assert "column 'elm' of text.csv must hold numbers" in fails("evaluate", "text.csv", "--target", "truth")
    table.iloc[:50].to_csv("short.csv", index=False)
    words = fails("evaluate", "a.csv", "--target", "truth", "--compare", "short.csv")
    assert "short.csv has 50 rows and a.csv has 88" in words
    table.iloc[::-1].to_csv("turned.csv", index=False)
    words = fails("evaluate", "a.csv", "--target", "truth", "--compare", "turned.csv")
    assert "the same rows in the same order" in words
    assert "given twice" in fails("evaluate", "a.csv", "--target", "truth", "--compare", "a.csv", code=2)
    assert "--level must be" in fails("evaluate", "a.csv", "--target", "truth", "--level", 2, code=2)
    table.iloc[20:30].assign(truth="elm").to_csv("single.csv", index=False)
    assert "has one class" in fails("evaluate", "single.csv", "--target", "truth")


def test_groups_of_rows(run, scores):
    table, other = scores
    table = table.assign(patient=[f"0{k // 4}" for k in range(len(table))])
    table.drop(columns="patient").to_csv("a.csv", index=False)
    table[["truth", "patient"]].to_csv("truth.csv", index=False)
    table.to_csv("with.csv", index=False)
    expected = mauc_interval(table["truth"], table[CLASSES], groups=table["patient"])
    test = compare_mauc(table["truth"], other[CLASSES], table[CLASSES], groups=table["patient"])
    for files in (("with.csv",), ("a.csv", "--truth", "truth.csv")):
        call = ("evaluate", *files, "--target", "truth", "--group", "patient", "--compare", "b.csv", "--no-report")
        found = json.loads(run(*call, "--json").stdout)
        assert found["models"][0]["mauc"] == pytest.approx(vars(expected))
        assert found["tests"][0]["pvalue"] == pytest.approx(test.pvalue)
        assert found["notes"][0].startswith("The 88 test rows are in 22 groups")
    unknown = run("evaluate", "with.csv", "--target", "truth", "--group", "patients")
    assert unknown.exit_code == 2
    assert "--group 'patients' is not a column of with.csv; did you mean 'patient'?" in " ".join(unknown.stderr.split())


def test_subgroups_of_rows(run, scores):
    table, _ = scores
    table = table.assign(sex=np.where(np.arange(len(table)) % 3 == 0, "f", "m"))
    table.to_csv("with.csv", index=False)
    call = ("evaluate", "with.csv", "--target", "truth", "--by", "sex", "--report", "r.html")
    expected = multiclass_auc_report(table["truth"], table[CLASSES], subgroups=table["sex"], output_dict=True)
    found = json.loads(run(*call, "--json").stdout)["subgroups"]
    assert [one["level"] for one in found] == ["f", "m"]
    for one in found:
        same = expected["subgroups"][one["level"]]
        assert (one["mauc"], one["pvalue_holm"], one["rows"]) == pytest.approx(
            (same["auc"], same["holm"], same["support"])
        )
    assert "Subgroups, each minus the mean of the others" in run(*call).stdout
    assert 'id="h-subgroups"' in Path("r.html").read_text(encoding="utf-8")


def test_the_predicted_classes_of_mauc_predict_are_judged(run, tmp_path):
    """Not those of the highest scores: the model decides otherwise."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["a", "b", "c"], 300)
    table = pd.DataFrame(rng.random((300, 3)), columns=["score:a", "score:b", "score:c"]).assign(truth=truth)
    table.assign(predicted=truth).to_csv(tmp_path / "right.csv", index=False)
    table.to_csv(tmp_path / "highest.csv", index=False)
    found, highest = (
        run("evaluate", name, "--target", "truth", "--json", "--no-report") for name in ("right.csv", "highest.csv")
    )
    assert json.loads(found.stdout)["models"][0]["accuracy"] == 1.0
    assert json.loads(highest.stdout)["models"][0]["accuracy"] < 0.5
    assert "(predicted class: column 'predicted')" in run("evaluate", "right.csv", "--target", "truth").output
    assert (
        "(predicted class: the one with the highest score, ties in equal parts)"
        in run("evaluate", "highest.csv", "--target", "truth").output
    )


@pytest.mark.parametrize(
    ("classes", "predicted", "said"),
    [
        (["01", "02", "10"], None, "(predicted class: column 'predicted')"),
        (["1", "1.0", "b"], None, "(predicted class: column 'predicted')"),
        (["NA", "oak", "fir"], None, "(predicted class: column 'predicted')"),
        (["true", "false", "maybe"], None, "(predicted class: column 'predicted')"),
        (["oak", "elm", "fir"], "0.93", "holds '0.93', which is not a class: accuracies use the class with the "),
        (["oak", "elm", "fir"], "", "which is not a class"),
    ],
)
def test_a_column_of_predictions_is_read_as_classes_are(run, tmp_path, classes, predicted, said):
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(classes, [60, 30, 10]))
    scores = 0.1 * rng.random((100, 3)) + (truth[:, None] == classes)
    table = pd.DataFrame(scores, columns=[f"score:{c}" for c in classes]).assign(truth=truth)
    table.assign(predicted=truth if predicted is None else predicted).to_csv(tmp_path / "s.csv", index=False)
    done = run("evaluate", "s.csv", "--target", "truth", "--no-report")
    assert said in done.output + done.stderr
    assert (
        json.loads(run("evaluate", "s.csv", "--target", "truth", "--no-report", "--json").stdout)["models"][0][
            "accuracy"
        ]
        == 1.0
    )


def test_whole_numbers_that_were_read_as_floats_are_classes(run, tmp_path):
    """A missing cell makes the column of predictions a column of floats."""
    truth = np.repeat([1, 2], 20)
    table = pd.DataFrame(
        {"1": np.arange(40.0), "2": -np.arange(40.0), "truth": truth, "predicted": truth.astype(float)}
    )
    table.loc[0, "predicted"] = None
    table.to_parquet(tmp_path / "s.parquet")
    done = run("evaluate", "s.parquet", "--target", "truth", "--no-report", "--json")
    assert json.loads(done.stdout)["models"][0]["accuracy"] == 39 / 40
    assert "holds unknown classes in 1 row" in done.stderr


def test_predictions_that_name_no_class_count_as_wrong(run, tmp_path):
    truth = np.repeat(["a", "b"], 20)
    table = pd.DataFrame({"score:a": np.arange(40.0), "score:b": -np.arange(40.0), "truth": truth, "predicted": truth})
    table.loc[:4, "predicted"] = "c"
    table.to_csv(tmp_path / "s.csv", index=False)
    done = run("evaluate", "s.csv", "--target", "truth", "--no-report", "--json")
    assert json.loads(done.stdout)["models"][0]["accuracy"] == 35 / 40
    assert "holds unknown classes in 5 rows, such as 'c': they count as wrong" in done.stderr


@pytest.mark.parametrize("prefix", ["", "score:", "p_"])
@pytest.mark.parametrize("classes", [["TRUE", "FALSE"], ["true", "false"], ["1.0", "2.0"]])
def test_classes_that_a_reader_changes_are_found_as_the_file_writes_them(run, tmp_path, classes, prefix):
    table = pd.DataFrame({prefix + c: [1 - k, k, k, k] for k, c in enumerate(classes)})
    table.assign(truth=[classes[k] for k in (0, 1, 0, 1)]).to_csv(tmp_path / "s.csv", index=False)
    done = run("evaluate", "s.csv", "--target", "truth", "--no-report", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["models"][0]["mauc"]["score"] == 0.75


def test_rows_in_another_order_within_classes_are_refused(run, fails, scores):
    table, other = scores
    table = table.assign(id=range(100, 188), note="x", fir=0.5, code=[[1]] * 88)
    other = table.assign(**other[CLASSES], note=None, fir=np.arange(88.0) / 88, predicted="oak", code=[[2]] * 88)
    turned = other.sort_values(["truth", "id"], ascending=[True, False], ignore_index=True)
    for name, frame in (("a", table), ("b", other.drop(columns="note")), ("turned", turned), ("other", other)):
        frame.to_parquet(f"{name}.parquet")
    call = ("evaluate", "a.parquet", "--target", "truth", "--no-report", "--compare")
    assert run(*call, "b.parquet").exit_code == 0, "numbers with fractions, predictions and lists may differ"
    words = fails(*call, "turned.parquet")
    assert "turned.parquet and a.parquet must have the same rows in the same order" in words
    assert "got other cells in column 'id' (first: row 1): sort both files alike, or leave the column out" in words
    assert "other cells in column 'note'" in fails(*call, "other.parquet")
    turned[["truth", "id"]].to_csv("t.csv", index=False)
    table.drop(columns=["truth", "code"]).to_csv("s.csv", index=False)
    assert "in column 'id'" in fails("evaluate", "s.csv", "--target", "truth", "--truth", "t.csv")
