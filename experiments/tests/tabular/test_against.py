"""The stack against AutoGluon: its process, its failures, and the page."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from experiments.store import Store
from experiments.tabular import autogluon_process, experiment
from experiments.tabular.against import autogluon_scores, cells, write_report


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
assert 'missing' not in (folder / 'train.csv').read_text()
rows = (folder / "test.csv").read_text().splitlines()[1:]
size = [row.split(",")[0] for row in rows]
(folder / "scores.csv").write_text("0,1,2\\n" + "\\n".join(f"{s},0,0" for s in size))
told = {"version": "9", "fit_seconds": task["seconds"], "predict_seconds": 0.5}
(folder / "result.json").write_text(json.dumps(told))
"""


def autogluon_run(tables, tmp_path, lines):
    _, cell = cells(interpreter(tmp_path, lines), None, tables, budgets=[7], sets=["ant"], n_splits=1)
    return cell.function(*cell.arguments)


def test_autogluon_has_the_budget_and_the_table_as_it_comes(tables, tmp_path):
    found = autogluon_run(tables, tmp_path, GOOD)
    assert (found["fit_seconds"], found["predict_seconds"], found["version"]) == (7, 0.5, "9")
    assert found["test"] > 0.5
    assert found["matrix"][0][1] > 0.6
    assert found["matrix"][1][2] == 0.5
    assert (found["train_counts"], found["test_counts"]) == ([18, 12, 6], [12, 8, 4])


@pytest.mark.parametrize(
    ("lines", "failed"),
    [
        ("sys.exit('no such library')", "exit 1: no such library"),
        ("(folder / 'result.json').write_text(json.dumps({'failed': 'too few rows'}))", "too few rows"),
    ],
)
def test_a_failure_is_stored_and_ranks_nothing(tables, tmp_path, lines, failed):
    found = autogluon_run(tables, tmp_path, lines)
    assert found["failed"] == failed
    assert found["test"] == 0.5


def test_a_process_that_does_not_end_is_ended(tmp_path):
    python = interpreter(tmp_path, "import time; time.sleep(60)")
    X = pd.DataFrame({"size": [1.0, 2.0]})
    scores, details = autogluon_scores(python, 7, X, np.array([0, 1]), X, 2, grace=-6.5)
    assert scores is None
    assert details == {"failed": "no end -6 s after its budget", "fit_seconds": 0.5}


def test_the_process_of_autogluon(tmp_path, monkeypatch):
    """Columns for all classes, in their order; what fails is written down."""

    def run(train, target, test, task, folder):
        if task["seconds"] == 0:
            raise ValueError("no time")
        assert (list(train["a"]), list(target), list(test["a"])) == ([1, 2], [2, 0], [5])
        assert list(train["kind"]) == ["3", "4"], "a category is no number, even where it looks like one"
        return pd.DataFrame({"2": [0.75], "0": [0.25]}), {"chosen": "it"}

    monkeypatch.setattr(autogluon_process, "fit_and_score", run)
    monkeypatch.setattr(autogluon_process, "version", lambda package: "1.0")
    monkeypatch.setattr(autogluon_process.os, "sched_setaffinity", lambda *cores: None, raising=False)
    pd.DataFrame({"a": [1, 2], "kind": [3, 4]}).to_csv(tmp_path / "train.csv", index=False)
    pd.DataFrame({"a": [5], "kind": ["rotary"]}).to_csv(tmp_path / "test.csv", index=False)
    pd.DataFrame({"class": [2, 0]}).to_csv(tmp_path / "target.csv", index=False)
    task = {"seconds": 3, "cores": 1, "n_classes": 3, "texts": ["kind"]}
    (tmp_path / "task.json").write_text(json.dumps(task))
    autogluon_process.main(tmp_path)
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "scores.csv"), [[0.25, 0.0, 0.75]])
    assert json.loads((tmp_path / "result.json").read_text()) == {"chosen": "it", "version": "1.0"}
    (tmp_path / "task.json").write_text(json.dumps(task | {"seconds": 0}))
    autogluon_process.main(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["failed"] == "ValueError: no time"


def test_the_page(tables, tmp_path):
    store, out = Store(tmp_path / "out" / "cells"), tmp_path / "out"
    sets = ["ant", "bee", "cow"]
    options = {"data_home": None, "method": None, "budget": [7], "quick": True}
    plan = experiment(set_=sets, tables=tables, autogluon="python", **options)
    assert [cell.key for cell in plan.cells[:2]] == [
        ("against", "ant", f"{name}, 7 s", "00") for name in ("MAUC stacking", "AutoGluon")
    ]
    quality = {"MAUC stacking": 0.9, "AutoGluon": 0.8}
    for _, s, method, split in (cell.key for cell in plan.cells):
        name = method.split(",")[0]
        run = {
            "test": quality[name],
            "matrix": [[None, quality[name]], [quality[name], None]],
            "train_counts": [6, 3],
            "test_counts": [4, 2],
            "fit_seconds": 5.0,
            "predict_seconds": 0.25,
        }
        if name == "AutoGluon":
            run |= {"version": "1.0", **({"without_rare_classes": "ValueError: few"} if s == "bee" else {})}
            if s == "cow":
                run |= {"failed": "no time"}
                del run["predict_seconds"]
        store.write(("against", s, method, split), run)
    (page,) = plan.report(store, out)
    text = page.read_text()
    assert "AutoGluon 1.0" in text
    assert "| MAUC stacking, 7 s | 90.00 | 1.0 | 90.00 | 5.00 | 0.25 |  |  |  |" in text
    assert "| AutoGluon, 7 s | 80.00 | 2.0 | 80.00 | 5.00 | 0.25 | +10.00 | 3–0 | 0.2500 |" in text
    assert "- AutoGluon, 7 s on cow: no model (no time)" in text
    assert "- AutoGluon, 7 s on bee: without the rare classes, after ValueError: few" in text
    assert "| bee | 15 | 2 | 2 | **90.00** | 80.00 |" in text
    assert write_report(Store(tmp_path / "none"), tmp_path, sets=["ant"], budgets=[7]) == []
