"""``mauc fit``: leaderboard, decisions, flags, importance, cross-validation; and ``mauc compare``."""

import io
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")

import pandas as pd
from rich.console import Console
from sklearn.datasets import load_iris

from mauc import compare_mauc, mauc_score
from mauc._cli.output import Output
from mauc._cli.progress import TrainingProgress
from mauc._tables.data import stratified
from mauc._tables.decide import read_costs
from mauc._tables.errors import Failure
from mauc._tables.model_file import read_model
from mauc._tables.saved_scores import read_saved_scores
from mauc.ensemble.workers import Workers

FIT = ("fit", "trees.csv", "--target", "species", "--no-report")
QUICK = (*FIT, "--no-importance")


MEMBERS = ["extra trees", "logistic regression"]


def test_the_members_of_the_stack_are_the_leaderboard(run, trees):
    result = run("fit", "trees.csv", "--target", "species", "--no-importance", "--no-refit")
    assert result.exit_code == 0, result.output
    lines = re.findall(r"^(.+): validation MAUC (\d\.\d{4}), \d+\.\d s$", result.stderr, re.MULTILINE)
    assert [name for name, _ in lines] == MEMBERS, "a line for each, as it is done"
    shown = re.findall(
        r"^ ([^\d\n]+?) +(\d\.\d{4}) +\d\.\d{4} +(?:\d\.\d{4}–\d\.\d{4}|–) +(\S+) ", result.stdout, re.MULTILINE
    )
    names = [name for name, *_ in shown]
    assert set(names) >= {*MEMBERS, "class frequencies"}
    assert re.search(r"class frequencies +0\.5000 +0\.5000 +– ", result.stdout), "constant scores have no interval"
    assert shown[0][2] == "–"
    assert {name: score for name, score, _ in shown}.items() >= dict(lines[:1]).items(), "one number, one name"
    assert (
        "Chosen on 120 validation rows (training rows, scored by models that were not trained on them): "
        f"{names[0]}. The test rows played no part" in result.stdout
    )
    assert "mauc-report/index.html" in result.stdout
    assert "cut" not in result.stdout
    assert re.search(r"^wrote model.skops$", result.stdout, re.MULTILINE)
    again = run("fit", "trees.csv", "--target", "species", "--no-importance", "--out", "again.skops")
    assert "wrote again.skops, fitted again on all 160 rows after the test" in again.stdout

    _, test = stratified(trees["species"].to_numpy(str), 0.25, 0)
    model, saved = read_model(Path("model.skops")), read_saved_scores(Path("model.skops"))
    np.testing.assert_array_equal(saved.rows, test)
    scores = model.scores(trees.drop(columns="species").iloc[test])
    np.testing.assert_allclose(saved.scores, scores)
    shares = trees["species"].value_counts(normalize=True)[model.classes]
    np.testing.assert_allclose(scores.mean(axis=0), shares, atol=0.1, err_msg="they are calibrated")
    assert f"{mauc_score(trees['species'].iloc[test], scores):.4f}" in result.stdout
    assert run("predict", "model.skops", "trees.csv").exit_code == 0


def test_json_holds_the_comparison_and_the_decisions(run, trees):
    result = run(*FIT, "--json", "--time-limit", 600, "--no-refit")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    found = json.loads(result.stdout)
    board = found["leaderboard"]
    assert board["winner"] == found["models"][0]["name"]
    assert {entry["name"] for entry in board["entries"]} >= {"class frequencies", *MEMBERS}
    assert found["cut"] == board["cut"] == []
    assert found["flags"] == []
    columns = found["importance"]["columns"]
    assert {each["column"] for each in columns} == {"height", "soil", "seen", "plot"}
    assert columns[0]["drop"] == max(each["drop"] for each in columns)
    assert columns[0]["drop"] > 2 * columns[0]["stderr"] > 0
    assert found["importance"]["how"] == "each column shuffled 5 times among 40 test rows"

    assert run("predict", "model.skops", "trees.csv").exit_code == 0
    scores = pd.read_csv("scores.csv")
    _, test = stratified(trees["species"].to_numpy(str), 0.25, 0)
    right = scores["predicted"] == scores["species"]
    chosen = found["models"][0]
    assert chosen["accuracy"] == pytest.approx(right.iloc[test].mean())
    assert chosen["balanced_accuracy"] == pytest.approx(right.iloc[test].groupby(scores["species"]).mean().mean())
    assert (found["decide"], found["guess"]["label"]) == ("balanced", "oak")
    assert found["guess"]["balanced_accuracy"] == 0.25
    assert found["guess"]["accuracy"] == pytest.approx((trees["species"].iloc[test] == "oak").mean())


def test_decisions_follow_what_they_are_chosen_for(run, fails, trees):
    costs = pd.DataFrame(1.0 - np.eye(4), index=["yew", "oak", "elm", "ash"], columns=["yew", "oak", "elm", "ash"])
    costs.loc[:, "ash"] = [0.01, 0.01, 0.01, 0.0]
    costs.to_csv("costs.csv")
    named = {}
    for goal in ("balanced", "accuracy", "costs.csv"):
        result = run(*QUICK, "--decide", goal)
        assert result.exit_code == 0, result.output
        words = {"balanced": "balanced accuracy", "accuracy": "accuracy"}.get(goal, "the costs in costs.csv")
        assert f"(predicted classes chosen for {words})" in result.stdout
        assert run("predict", "model.skops", "trees.csv").exit_code == 0
        named[goal] = pd.read_csv("scores.csv")["predicted"].value_counts()
    assert named["costs.csv"].get("ash", 0) > 100, "what costs nearly nothing is decided for"
    assert named["accuracy"].get("oak", 0) > named["balanced"].get("oak", 0), "the largest class counts more"
    costs.drop(columns="oak").to_csv("costs.csv")
    assert "costs.csv has no column 'oak'" in fails(*QUICK, "--decide", "costs.csv")
    costs.astype(object).replace(1.0, "much").to_csv("costs.csv")
    assert "costs.csv must hold a number in every cell" in fails(*QUICK, "--decide", "costs.csv")
    pd.concat([costs, costs.tail(1)]).to_csv("costs.csv")
    assert "costs.csv has two rows 'ash'" in fails(*QUICK, "--decide", "costs.csv")
    pd.concat([costs, costs[["elm"]]], axis=1).to_csv("costs.csv")
    assert "costs.csv has two columns 'elm'" in fails(*QUICK, "--decide", "costs.csv")
    (0.0 * costs).to_csv("costs.csv")
    assert fails(*QUICK, "--decide", "costs.csv").startswith("mauc: costs.csv must hold different costs in a row")


def test_costs_of_classes_that_look_like_numbers_or_gaps(tmp_path):
    table = pd.DataFrame(1.0 - np.eye(3), index=["01", "NA", "1"], columns=["01", "NA", "1"])
    table.to_csv(tmp_path / "costs.csv")
    found = read_costs(str(tmp_path / "costs.csv"), np.array(["01", "1", "NA"]))
    np.testing.assert_array_equal(found, 1.0 - np.eye(3))
    table.to_csv(tmp_path / "costs.csv", sep=";")
    np.testing.assert_array_equal(read_costs(str(tmp_path / "costs.csv"), np.array(["01", "1", "NA"])), found)
    for text in ("x\ny\n", "x\n"):
        (tmp_path / "costs.csv").write_text(text)
        with pytest.raises(Failure, match="has no row '01': it needs a row for each true class"):
            read_costs(str(tmp_path / "costs.csv"), np.array(["01", "1", "NA"]))


def test_the_test_rows_play_no_part_in_the_choice(run, trees, monkeypatch):
    """Whatever the classes of the test rows are, the same models are trained and the same one is chosen."""
    _, test = stratified(trees["species"].to_numpy(str), 0.25, 0)
    train = np.setdiff1d(np.arange(160), test)
    monkeypatch.setattr("mauc._tables.data.stratified", lambda *_: (train, test))
    told = []
    for swap in (False, True):
        labels = trees["species"].copy()
        if swap:
            labels.iloc[test] = labels.iloc[test].to_numpy()[::-1]
        trees.assign(species=labels).to_csv("trees.csv", index=False)
        told.append(json.loads(run(*QUICK, "--json").stdout))
    first, second = ([(e["validation"], e["weight"]) for e in t["leaderboard"]["entries"]] for t in told)
    assert first == second
    assert told[0]["leaderboard"]["winner"] == told[1]["leaderboard"]["winner"]
    assert told[0]["models"][0]["mauc"] != told[1]["models"][0]["mauc"]


def test_groups_and_times_choose_by_their_own_kind(run, trees):
    result = run(*QUICK, "--group", "plot", "--json")
    assert result.exit_code == 0, result.output
    assert "(whole groups of training rows, scored by" in json.loads(result.stdout)["leaderboard"]["chosen_by"]
    result = run(*QUICK, "--time-column", "seen", "--json")
    assert result.exit_code == 0, result.output
    assert (
        "30 validation rows (the latest fifth of the training rows)"
        in json.loads(result.stdout)["leaderboard"]["chosen_by"]
    )


@pytest.fixture
def iris():
    data = load_iris(as_frame=True)
    table = data.data.set_axis(list("abcd"), axis=1).assign(kind=data.target_names[data.target])
    table.insert(0, "Id", np.arange(1, 151))
    table.to_csv("iris.csv", index=False)
    return table


def test_flags_are_printed_and_columns_are_used(run, trees, iris):
    call = ("fit", "iris.csv", "--target", "kind", "--no-importance", "--report", "r.html")
    told = run(*call)
    page = Path("r.html").read_text()
    assert page.index("looks like a row number") < page.index("Every pair of classes"), "beside the score"
    assert re.search(r"note: column 'Id' looks like a row number \(MAUC 0\.9\d\d alone\)", told.stderr)
    assert "flagged columns are used; to leave them out add --drop Id" in told.stderr
    assert list(read_model(Path("model.skops")).kinds) == ["Id", "a", "b", "c", "d"]
    found = json.loads(run(*call, "--json").stdout)
    assert [flag["kind"] for flag in found["flags"] if flag["column"]] == ["counter"]
    assert "flagged" not in run(*call, "--drop", "Id").stderr
    assert list(read_model(Path("model.skops")).kinds) == list("abcd")


def test_duplicates_are_noted(run, trees):
    pd.concat([trees, trees]).to_csv("trees.csv", index=False)
    result = run(*QUICK)
    assert re.search(r"note: \d+ test rows duplicate training rows", result.stderr)


def test_cross_validation_scores_every_row(run, trees):
    result = run(*QUICK, "--cv", 2, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["tested_on"] == "2-fold cross-validation"
    assert found["rows"] == len(trees)
    saved = read_saved_scores(Path("model.skops"))
    expected = mauc_score(saved.labels, saved.scores, labels=saved.classes)
    assert found["models"][0]["mauc"]["score"] == pytest.approx(expected)
    assert {model["name"] for model in found["models"]} >= {*MEMBERS[1:], "class frequencies"}
    whole = read_model(Path("model.skops")).scores(trees.drop(columns="species"))
    assert not np.allclose(whole, saved.scores, atol=1e-3), "their models did not see the row"


def test_cross_validation_in_groups_and_in_words(run, trees):
    result = run(*FIT, "--cv", 3, "--group", "plot")
    assert result.exit_code == 0, result.output
    assert "(3-fold cross-validation of whole groups)" in result.stdout
    assert "In each fold, a model is chosen on the training rows and tested." in result.stdout
    assert "training 4 of 4: logistic regression: validation MAUC" in result.stderr
    assert "(predicted classes chosen for balanced accuracy)" in result.stdout
    assert "Permutation importance (MAUC drop): each column shuffled 5 times among" in result.stdout


def test_compare(run, fails, trees, tmp_path):
    call = (*QUICK, "--cv", 2)
    assert run(*call, "--out", "a.skops").exit_code == 0
    assert run(*call, "--out", "b.skops", "--drop", "height").exit_code == 0
    result = run("compare", "a.skops", "b.skops", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    a, b = read_saved_scores(Path("a.skops")), read_saved_scores(Path("b.skops"))
    expected = compare_mauc(a.labels, b.scores, a.scores).difference
    assert found["tests"][0]["difference"] == pytest.approx(expected)
    assert found["tests"][0]["difference"] < 0
    shown = run("compare", "a.skops", "b.skops")
    assert "; 2-fold cross-validation" in shown.stdout
    assert run(*QUICK, "--out", "c.skops").exit_code == 0
    some = run("compare", "a.skops", "c.skops")
    assert some.exit_code == 0, some.output
    assert "a.skops has 160 test rows; the comparison uses the 40 that all models share" in some.stderr

    trees.assign(height=trees["height"] + 1).to_csv("trees.csv", index=False)
    assert run(*QUICK, "--out", "d.skops").exit_code == 0
    assert "column 'height' differs between the tables of a.skops and d.skops" in fails("compare", "a.skops", "d.skops")
    assert "needs two different model files or more" in fails("compare", "a.skops", code=2)
    assert "--level must be a number strictly between 0 and 1" in fails(
        "compare", "a.skops", "b.skops", "--level", 2, code=2
    )
    words = fails("compare", "trees.csv", "a.skops")
    assert "trees.csv is not a model file" in words
    assert "mauc evaluate" in words
    (tmp_path / "b.scores.npz").unlink()
    assert "File not found: b.scores.npz, the test scores of b.skops" in fails("compare", "a.skops", "b.skops")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--time-limit", 0), "--time-limit must be a finite number above 0, got 0"),
        (("--cv", 3, "--time-column", "seen"), "--cv tests on all rows in turn and --time-column on the latest"),
        (("--cv", 3, "--holdout", 0.25), "--cv tests on all rows in turn and --holdout on a share of them"),
    ],
)
def test_wrong_options(fails, trees, options, words):
    assert words in fails(*QUICK, *options, code=2)


def test_what_the_time_limit_cut_is_said_everywhere(run, trees, monkeypatch):
    monkeypatch.setattr("mauc.ensemble.workers.Workers", lambda n_workers=None: Workers(0))
    call = ("fit", "trees.csv", "--target", "species", "--no-importance", "--time-limit", 0.5, "--report", "r.html")
    told = run(*call)
    assert told.exit_code == 0, told.output
    cut = "extra trees, logistic regression were not trained: the limit allows only a small forest"
    assert cut in told.stdout
    assert "A faster machine may choose another model; with 10 seconds or more, the stack is trained." in told.stdout
    assert "Only one model was trained: small forest" in told.stdout
    assert cut in Path("r.html").read_text()
    found = json.loads(run(*call, "--json").stdout)
    assert any(text.endswith(cut) for text in found["cut"])
    assert found["leaderboard"]["winner"] == "small forest"
    assert run("predict", "model.skops", "trees.csv").exit_code == 0


def test_progress_in_a_terminal_shows_model_fold_time_and_best():
    output = Output()
    screen = io.StringIO()
    output.errors = Console(file=screen, force_terminal=True, width=140, highlight=False, color_system=None)
    with TrainingProgress(output, time.monotonic() + 60.0) as progress:
        progress.ends("lr", 0.8765, 0.1)
        progress.begins("rf", "fold 2 of 5")
        progress.ends("rf", 0.9, 3.21)
    text = screen.getvalue()
    assert "random forest: fold 2 of 5" in text
    assert re.search(r"(60|59) s left", text)
    assert "best so far 0.8765, logistic regression" in text
    assert "random forest: validation MAUC 0.9000, 3.2 s" in text


def test_progress_elsewhere_is_one_line_for_each_model(capsys):
    for output, lines in ((Output(), 1), (Output(quiet=True), 0), (Output(as_json=True), 0)):
        with TrainingProgress(output, 0.0) as progress:
            progress.begins("a", "fold 1 of 5")
            progress.ends("a", 0.75, 3.21)
        seen = capsys.readouterr()
        assert seen.err == "a: validation MAUC 0.7500, 3.2 s\n" * lines
        assert seen.out == ""


def test_records_of_single_rows_are_left_out(run, fails, trees, tmp_path):
    trees["plot"] = [f"plot {k}" for k in trees["plot"]]
    trees.to_csv("trees.csv", index=False)
    call = ("fit", "trees.csv", "--target", "species", "--no-importance", "--no-report", "--group", "plot", "--json")
    assert run(*call, "--out", "with.skops").exit_code == 0
    told = run(*call, "--out", "without.skops", "--no-row-records")
    assert json.loads(told.stdout)["files"] == {"model": "without.skops"}
    assert {path.name for path in tmp_path.glob("with*")} == {"with.skops", "with.scores.npz", "without.skops"}
    saved = np.load("with.scores.npz")
    assert saved["groups"].dtype.kind == "i", "no names of groups"
    assert len(read_model(Path("with.skops")).trained) > 0
    assert len(read_model(Path("without.skops")).trained) == 0
    assert "trained_on" not in run("predict", "without.skops", "trees.csv", "--out", "-").stdout
    assert "File not found: without.scores.npz" in fails("compare", "with.skops", "without.skops")


def test_names_of_groups_and_their_numbers_give_the_same_interval(run, trees):
    made = run("fit", "trees.csv", "--target", "species", "--no-importance", "--no-report", "--group", "plot", "--json")
    found = run("evaluate", "model.scores.npz", "--no-report", "--json")
    first, second = (json.loads(each.stdout)["models"][0]["mauc"] for each in (made, found))
    assert first == second
