"""Where users got stuck: each way of the commands that ended in an error or a wrong number goes on."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")

QUICK = ("--no-importance", "--no-report")


def test_names_with_separators_come_back(run, trees):
    odd = {"oak": "a|b|c", "elm": "d|e|f", "yew": "g;h", "ash": "i\u2028j"}
    trees.assign(species=trees["species"].map(odd)).to_csv("odd.csv", index=False)
    assert run("fit", "odd.csv", "--target", "species", *QUICK, "--separator", "comma").exit_code == 0
    assert run("predict", "model.skops", "odd.csv").exit_code == 0
    found = run("evaluate", "scores.csv", "--target", "species", "--no-report", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["models"][0]["mauc"]["score"] > 0.8


def test_a_class_that_training_left_out_is_left_out_of_the_judgement(run, fails, trees):
    trees.loc[0, "species"] = "fir"
    trees.to_csv("trees.csv", index=False)
    assert run("fit", "trees.csv", "--target", "species", *QUICK, "--min-rows", "2").exit_code == 0
    assert run("predict", "model.skops", "trees.csv").exit_code == 0
    call = ("evaluate", "scores.csv", "--target", "species", "--no-report", "--compare", "other.csv")
    pd.read_csv("scores.csv").to_csv("other.csv", index=False)
    found = run(*call)
    assert found.exit_code == 0, found.output
    assert "1 row of scores.csv left out: the model does not know the classes 'fir'" in found.stderr
    whole = json.loads(run(*call, "--json").stdout)
    for name in ("scores", "other"):
        pd.read_csv(f"{name}.csv").to_parquet(f"{name}.parquet")
    streamed = run(*(each.replace(".csv", ".parquet") for each in call), "--json")
    assert "1 row of scores.parquet left out" in streamed.stderr
    for one, other in zip(json.loads(streamed.stdout)["models"], whole["models"], strict=True):
        assert one["mauc"] == pytest.approx(other["mauc"])
    scores = pd.read_csv("scores.csv")
    scores.assign(species=scores["species"].replace("oak", "Oak")).to_csv("other.csv", index=False)
    assert "has no column 'score:Oak'" in fails("evaluate", "other.csv", "--target", "species")
    scores.rename(columns=lambda name: name.replace("score:", "p_")).to_csv("other.csv", index=False)
    assert "has no column 'ash'" in fails("evaluate", "other.csv", "--target", "species"), "not our names: a slip"


def test_saved_scores_are_evaluated(run, fails, trees):
    made = run("fit", "trees.csv", "--target", "species", *QUICK, "--json", "--cv", "3")
    found = run("evaluate", "model.scores.npz", "--no-report", "--json")
    assert found.exit_code == 0, found.output
    fitted, saved = (json.loads(each.stdout)["models"][0] for each in (made, found))
    for name in ("mauc", "accuracy", "balanced_accuracy"):
        assert fitted[name] == saved[name], "the same scores and the same decisions"
    assert re.search(r"holds scores of MAUCStackingClassifier: .*; 3-fold cross-validation", found.stderr)
    call = ("evaluate", "model.scores.npz")
    assert "is not the target of model.scores.npz, 'species'" in fails(*call, "--target", "soil", code=2)
    words = fails(*call, "--compare", "trees.csv", code=2)
    assert words.endswith("their classes: compare models with mauc compare a.skops b.skops")
    assert fails(*call, "--truth", "trees.csv", code=2).endswith("their classes: leave --truth out")
    for option in (("--missing", "?"), ("--encoding", "cp1250"), ("--sheet", "x"), ("--group", "g"), ("--by", "g")):
        words = fails(*call, *option, code=2)
        assert "model.scores.npz holds the scores, classes and groups of mauc fit, where --missing, --enc" in words
        assert words.endswith("have no effect: leave them out")
    assert "--drop-unlabelled, --group and --by have no effect" in fails(*call, "--drop-unlabelled", code=2)


def test_fit_without_a_header_and_without_flag_duplicates(run, trees):
    trees = trees.assign(height=trees["height"].fillna(0.5).round(3), soil=trees["soil"].fillna("clay"))
    pd.concat([trees, trees]).to_csv("t.csv", index=False, header=False)
    call = ("fit", "t.csv", "--target", "column_5", *QUICK, "--drop-duplicates")
    for more in ((), ("--no-header",)):
        made = run(*call, *more, "--json")
        assert made.exit_code == 0, made.output
        assert "160 duplicate rows of t.csv are dropped" in made.stderr
        assert ("seems to have no header" in made.stderr) == (not more)
        found = json.loads(made.stdout)
        assert sum(found["training_rows"].values()) + len(np.load("model.scores.npz")["rows"]) == 160
    assert run("predict", "model.skops", "t.csv").exit_code == 0
    assert len(pd.read_csv("scores.csv")) == 320


def test_columns_without_a_value_are_told(fails, trees):
    trees[["species"]].assign(x=None, y="").to_csv("t.csv", index=False)
    told = fails("fit", "t.csv", "--target", "species", *QUICK)
    assert "t.csv has no column besides 'species' that holds a value" in told


def test_values_that_training_did_not_have_are_told_with_their_column(run, model, trees):
    trees.assign(soil=np.where(trees.index < 3, "peat", trees["soil"])).to_csv("new.csv", index=False)
    found = run("predict", model, "new.csv")
    assert found.exit_code == 0, found.output
    told = "column 'soil' of new.csv holds values that the training rows do not have, such as 'peat' (3 rows)"
    assert found.stderr.count(told) == 1
    assert "columns [0]" not in found.stderr
    known = run("predict", model, "trees.csv")
    assert "that the training rows do not have" not in known.stderr


def test_rows_that_were_trained_on_are_named(run):
    frame = load_wine(as_frame=True).frame
    frame.to_csv("wine.csv", index=False)
    assert run("fit", "wine.csv", "--target", "target", *QUICK, "--no-refit").exit_code == 0
    result = run("predict", "model.skops", "wine.csv")
    assert "133 of these 178 rows were training rows" in result.stderr
    scores = pd.read_csv("scores.csv")
    assert scores["trained_on"].value_counts().to_dict() == {"yes": 133, "no": 45}
    result = run("evaluate", "scores.csv", "--target", "target", "--no-report")
    assert result.exit_code == 0, result.output
    assert "133 of these 178 rows were training rows" in result.stdout, "a note of the report"

    frame.assign(ash=frame["ash"] + 1e-3).to_csv("others.csv", index=False)
    result = run("predict", "model.skops", "others.csv")
    assert "training rows" not in result.stderr
    assert "trained_on" not in pd.read_csv("scores.csv")


def test_tables_that_are_not_read_are_told(fails, model, trees, tmp_path, monkeypatch):
    (tmp_path / "big").mkdir()
    trees.to_csv(tmp_path / "big" / "a.csv", index=False)
    words = fails("fit", "big", "--target", "species")
    assert "big is a folder: name a file in it that ends in" in words
    assert "big/a.csv is not Parquet, and the files of a folder must be" in fails("predict", model, "big")
    monkeypatch.setattr("mauc._tables.parts.available_memory", lambda: 10_000.0)
    assert "trees.csv does not fit in memory" in fails("fit", "trees.csv", "--target", "species")
    words = fails("predict", model, "trees.csv")
    assert "trees.csv does not fit in memory (" in words
    assert words.endswith("are free): save it as Parquet in a folder, and name the folder")


def test_codes_of_patients_are_told_where_scores_are_evaluated(run):
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.random((90, 2)), columns=["a", "b"])
    scores.assign(y=rng.choice(["a", "b"], 90), patient_id=np.arange(90) % 30).to_csv("s.csv", index=False)
    call = ("evaluate", "s.csv", "--target", "y", "--no-report")
    assert "column 'patient_id' of s.csv holds codes that recur" in run(*call).stderr
    assert "holds codes" not in run(*call, "--group", "patient_id").stderr
    rooms = np.arange(90) % 30
    scores.assign(y=np.where(rooms < 15, "a", "b"), room_number=rooms).to_csv("s.csv", index=False)
    assert "holds codes" not in run(*call).stderr, "a number that measures"


def test_a_word_among_numbers_of_new_rows_is_told_once(run, model, trees):
    trees.assign(height=trees["height"].astype(object).where(trees.index > 3, "unknown")).to_csv("new.csv", index=False)
    found = run("predict", model, "new.csv")
    assert "'height' held numbers in training and has 4 values that are not numbers, such as 'unknown'" in found.stderr
    assert "read as text" not in found.stderr
