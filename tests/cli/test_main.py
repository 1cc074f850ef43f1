"""The command ``mauc``: what it prints, and how it fails."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra mauc[cli]")

from rich.console import Console
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from mauc import MAUCClassifier, __version__
from mauc._cli import app
from mauc._cli.summary import importance_table
from mauc.ensemble import MAUCStackingClassifier, default_estimators
from mauc.metrics import Importance

demo = sys.modules["mauc._cli.demo"]


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_help_names_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert "multiclass AUC" in result.output
    for command in ("demo", "fit", "predict", "evaluate", "compare"):
        assert re.search(rf"^\W*{command}\b", result.output, re.MULTILINE)


def test_without_arguments_it_helps():
    result = run()
    assert result.exit_code in (0, 2)
    assert "Usage" in result.output


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "mauc", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "demo" in done.stdout
    assert done.stderr == ""


def test_version_and_completion(monkeypatch):
    assert run("--version").stdout == f"mauc {__version__}\n"
    shellingham = pytest.importorskip("shellingham", reason="typer detects the shell by it")
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("bash", "/bin/bash"))  # none above a detached process
    assert "complete" in run("--show-completion", "bash").stdout


def test_class_names_that_the_terminal_cannot_show(tmp_path):
    pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    rows = "".join(f"{'ü文'[k % 2]},{k},{-k}\n" for k in range(20))
    (tmp_path / "s.csv").write_text(f"y,ü,文\n{rows}", encoding="utf-8")
    call = [sys.executable, "-c", "from mauc._cli import main; main()", "evaluate", "s.csv", "--target", "y"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*call, "--no-report"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "\\u6587" in done.stdout
    assert '"\\u6587"' in run("evaluate", tmp_path / "s.csv", "--target", "y", "--json", "--no-report").stdout


def test_zero_has_no_sign():
    console = Console(width=80)
    with console.capture() as shown:
        console.print(*importance_table([Importance("height", None, -1e-6, -0.1, 0.1, 0.05)], "how"))
    assert " 0.0000 " in shown.get()
    assert "-0.0000" not in shown.get()


def few_models():
    """Return a small stack and two linear models, which train in a second."""
    return {
        "MAUC stacking": MAUCStackingClassifier(default_estimators(n_trees=3)[:2], cv=2),
        "MAUC exponential": MAUCClassifier("exponential", l2=0.01),
        "LR": LogisticRegression(max_iter=200),
    }


def test_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "models", few_models)
    result = run("demo")
    assert result.exit_code == 0, result.output
    ovo = float(re.search(r"MAUC \(every[^\d]*(\d\.\d{4})", result.output)[1])
    low, high = map(float, re.search(r"95 % interval (\d\.\d{4}) to (\d\.\d{4})", result.output).groups())
    ova = float(re.search(r"MAUC, one-vs-rest[^\d]*(\d\.\d{4})", result.output)[1])
    assert 0.9 < low < ovo < high <= 1.0
    assert ova == pytest.approx(ovo, abs=0.002)  # all digits have about as many test rows
    assert 0.9 < ova <= 1.0
    assert "Weakest class pairs" in result.output
    rows = re.findall(r"│\s*(\d)\s*│\s*\d+\s*│\s*(\d)\s*│\s*\d+\s*│\s*(\d\.\d+)\s*│\s*\S+–(\S+)\s*│", result.output)
    assert len(rows) == 5
    ends = [float(row[-1]) for row in rows]
    assert ends == sorted(ends)
    assert float(rows[0][2]) < ovo
    assert all(row[0] != row[1] for row in rows)
    assert "Models compared; p: paired test against the first" in result.output
    for model in few_models():
        assert re.search(rf"^ {model} +0\.\d{{4}} +0\.\d{{4}}–[01]\.\d{{4}} ", result.output, re.MULTILINE)
    assert "wrote mauc-report/demo.html" in result.output, "not over the report of mauc fit"
    page = (tmp_path / "mauc-report/demo.html").read_text()
    assert f'id="headline">{ovo:.3f}<' in page
    again = run("demo", "--json", "--out", "other.html")
    found = json.loads(again.stdout)
    assert found["models"][0]["mauc"]["score"] == pytest.approx(ovo, abs=1e-4)
    assert [t["against"] for t in found["tests"]] == ["MAUC stacking"] * 2
    assert (tmp_path / "other.html").read_text() == page, "training repeats itself"
    assert "2 models, combined to rank by multiclass AUC" in page


@pytest.mark.slow
def test_readme_has_the_numbers_of_the_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = json.loads(run("demo", "--json").stdout)
    interval = found["models"][0]["mauc"]
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert f"**{100 * interval['score']:.1f} % of the time**" in readme
    assert f"95 % interval is {100 * interval['low']:.1f} to {100 * interval['high']:.1f} %" in readme
    assert len(found["models"]) == 6
    # Every other model is below the winner, by more than chance.
    assert max(model["mauc"]["score"] for model in found["models"][1:]) < found["models"][0]["mauc"]["score"]
    assert max(test["pvalue_holm"] for test in found["tests"]) < 0.001


def test_the_digits_of_the_demo():
    X_train, y_train, X_test, y_test = demo.imbalanced_digits()
    assert (np.bincount(y_train) > 85).tolist() == [True] * 5 + [False] * 5
    assert np.bincount(y_train)[5:].tolist() == [10, 9, 9, 9, 9]
    assert np.bincount(y_test).min() >= 20  # enough to see a difference of the rare ones
    rows = {row.tobytes() for row in X_train}
    assert not any(row.tobytes() in rows for row in X_test)


def test_unknown_command():
    result = run("train")
    assert result.exit_code == 2
    assert "train" in result.stderr
