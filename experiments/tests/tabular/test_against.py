"""The stack against other libraries: their process, their failures, and the page."""

import json
import sys
import types

import numpy as np
import pandas as pd
import pytest

from experiments.store import Store
from experiments.tabular import experiment, rival_process
from experiments.tabular.against import Contest, cells, write_report


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("ant", "bee", "cow"):
        y = np.repeat(list("xyz"), [30, 20, 10])
        table = pd.DataFrame(
            {"size": rng.normal(size=60) + 3 * (y == "x"), "kind": rng.choice(["a", "b"], 60), "class": y}
        )
        table.loc[3, "kind"] = None
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    return str(tmp_path)


def interpreter(tmp_path, lines):
    """A program that is called as Python is: with the file to run, and the folder of the task."""
    path = tmp_path / "python"
    head = f"#!{sys.executable}\nimport json, sys\nfrom pathlib import Path\nfolder = Path(sys.argv[2])\n"
    path.write_text(f"{head}{lines}\n")
    path.chmod(0o755)
    return str(path)


GOOD = """
task = json.loads((folder / "task.json").read_text())
rows = (folder / "test.csv").read_text().splitlines()[1:]
size = [row.split(",")[0] for row in rows]
(folder / "scores.csv").write_text("0,1,2\\n" + "\\n".join(f"{s},0,0" for s in size))
told = {"version": "9", "fit_seconds": task["seconds"], "predict_seconds": 0.5}
(folder / "result.json").write_text(json.dumps(told))
"""


def rival(tables, tmp_path, lines, grace=60.0):
    contest = Contest(None, tables, 1, interpreter(tmp_path, lines), grace)
    (cell,) = (
        cell
        for cell in cells(contest, rivals=["autogluon"], budgets=[7], sets=["ant"], n_splits=1)
        if "AutoGluon, 7 s" in cell.key
    )
    return cell.function(*cell.arguments)


def test_a_rival_has_the_budget_and_the_table_as_it_comes(tables, tmp_path):
    found = rival(tables, tmp_path, GOOD + "assert 'missing' not in (folder / 'train.csv').read_text()")
    assert (found["fit_seconds"], found["predict_seconds"], found["version"], found["cores"]) == (7, 0.5, "9", 1)
    assert found["test"] > 0.5
    assert found["matrix"][0][1] > 0.6
    assert found["matrix"][1][2] == 0.5
    assert (found["train_counts"], found["test_counts"]) == ([18, 12, 6], [12, 8, 4])


@pytest.mark.parametrize(
    ("lines", "grace", "failed"),
    [
        ("sys.exit('no such library')", 60.0, "exit 1: no such library"),
        ("(folder / 'result.json').write_text(json.dumps({'failed': 'too few rows'}))", 60.0, "too few rows"),
        ("import time; time.sleep(60)", -6.9, "no end -7 s after its budget"),
    ],
)
def test_a_rival_that_fails_is_told_and_ranks_nothing(tables, tmp_path, lines, grace, failed):
    found = rival(tables, tmp_path, lines, grace)
    assert found["failed"] == failed
    assert found["test"] == 0.5


def test_the_process_of_a_rival(tmp_path, monkeypatch):
    """Columns for all classes, in their order; what fails is written down."""

    def run(train, target, test, task, folder):
        if task["seconds"] == 0:
            raise ValueError("no time")
        assert (list(train["a"]), list(target), list(test["a"])) == ([1, 2], [2, 0], [5])
        assert list(train["kind"]) == ["3", "4"], "a category is no number, even where it looks like one"
        return pd.DataFrame({"2": [0.75], "0": [0.25]}), {"chosen": "it"}

    monkeypatch.setitem(rival_process.RIVALS, "autogluon", (run, "numpy"))
    monkeypatch.setattr(rival_process.os, "sched_setaffinity", lambda *cores: None, raising=False)
    pd.DataFrame({"a": [1, 2], "kind": [3, 4]}).to_csv(tmp_path / "train.csv", index=False)
    pd.DataFrame({"a": [5], "kind": ["rotary"]}).to_csv(tmp_path / "test.csv", index=False)
    pd.DataFrame({"class": [2, 0]}).to_csv(tmp_path / "target.csv", index=False)
    task = {"rival": "autogluon", "seconds": 3, "cores": 1, "n_classes": 3, "texts": ["kind"]}
    (tmp_path / "task.json").write_text(json.dumps(task))
    rival_process.main(tmp_path)
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "scores.csv"), [[0.25, 0.0, 0.75]])
    assert json.loads((tmp_path / "result.json").read_text()) == {"version": np.__version__, "chosen": "it"}
    (tmp_path / "task.json").write_text(json.dumps(task | {"seconds": 0}))
    rival_process.main(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["failed"] == "ValueError: no time"


@pytest.mark.parametrize(("n_classes", "metric"), [(2, "roc_auc"), (3, "roc_auc_ovo")])
def test_autogluon_is_asked_again_without_the_rare_classes(tmp_path, monkeypatch, n_classes, metric):
    asked = []

    class TabularPredictor:
        model_best = "best"

        def __init__(self, label, *, learner_kwargs, **options):
            self.kept = learner_kwargs
            assert (label, options["eval_metric"]) == (rival_process.TARGET, metric)

        def fit(self, train, *, time_limit, **options):
            asked.append((self.kept, options["num_cpus"]))
            assert list(train[rival_process.TARGET]) == [0, 1]
            assert time_limit > 0
            if self.kept:
                raise ValueError("a class of one row")
            return self

        def predict_proba(self, test, *, as_pandas):
            return pd.DataFrame({0: [1.0]})

        def leaderboard(self):
            return pd.DataFrame({"model": ["m"], "score_val": [0.5], "fit_time": [1.0]})

    monkeypatch.setitem(sys.modules, "autogluon", types.ModuleType("autogluon"))
    module = types.ModuleType("autogluon.tabular")
    module.TabularPredictor = TabularPredictor
    monkeypatch.setitem(sys.modules, "autogluon.tabular", module)
    train, target, test = pd.DataFrame({"a": [1, 2]}), pd.Series([0, 1]), pd.DataFrame({"a": [3]})
    task = {"seconds": 30, "cores": 2, "n_classes": n_classes}
    scores, told = rival_process.autogluon(train, target, test, task, tmp_path)
    assert asked == [({"label_count_threshold": 1}, 2), ({}, 2)]
    assert told["without_rare_classes"] == "ValueError: a class of one row"
    assert told["chosen"] == "best"
    assert list(scores.columns) == [0]


def contest_of(tables, python):
    return experiment(
        data_home=None,
        set_=["ant", "bee", "cow"],
        method=None,
        n_splits=1,
        tables=tables,
        against=["autogluon", "flaml"],
        budget=[7],
        cores=1,
        rival_python=python,
        quick=False,
    )


def test_the_interpreter_of_the_rivals(tables, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="--rival-python must be a program, got none/python: name the python of"):
        contest_of(tables, "none/python")
    monkeypatch.chdir(tmp_path)
    path = interpreter(tmp_path, "")
    assert contest_of(tables, "./python").cells[0].arguments[0].python == path, "it runs in another folder"


def test_the_page(tables, tmp_path):
    store = Store(tmp_path / "out" / "cells")
    plan = contest_of(tables, None)
    assert [cell.key for cell in plan.cells[:3]] == [
        ("against", "ant", f"{name}, 7 s", "00") for name in ("MAUC stacking", "AutoGluon", "FLAML")
    ]
    quality = {"MAUC stacking": 0.9, "AutoGluon": 0.8, "FLAML": 0.7}
    for _, s, method, split in (cell.key for cell in plan.cells):
        name = method.split(",")[0]
        run = {
            "test": quality[name],
            "matrix": [[None, quality[name]], [quality[name], None]],
            "train_counts": [6, 3],
            "test_counts": [4, 2],
            "fit_seconds": 5.0,
            "predict_seconds": 0.25,
            "cores": 1,
        }
        if name == "AutoGluon":
            run |= {"version": "1.0", **({"without_rare_classes": "ValueError: few"} if s == "bee" else {})}
        if name == "FLAML" and s == "cow":
            run |= {"failed": "no time"}
            del run["predict_seconds"]
        store.write(("against", s, method, split), run)
    (page,) = plan.report(store, tmp_path / "out")
    text = page.read_text()
    assert "AutoGluon 1.0" in text
    assert "| MAUC stacking, 7 s | 90.00 | 1.0 | 90.00 | 5.00 | 0.25 |  |  |  |" in text
    assert "| AutoGluon, 7 s | 80.00 | 2.0 | 80.00 | 5.00 | 0.25 | +10.00 | 3–0 | 0.5000 |" in text
    assert "- FLAML, 7 s on cow: no model (no time)" in text
    assert "- AutoGluon, 7 s on bee: without the rare classes, after ValueError: few" in text
    assert "| bee | 15 | 2 | **90.00** | 80.00 | 70.00 |" in text
    assert write_report(Store(tmp_path / "none"), tmp_path, sets=["ant"], rivals=["flaml"], budgets=[7]) == []
