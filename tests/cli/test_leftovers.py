"""What commands leave behind: the files they name, nothing in the home, nothing in the temporary folder."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._lazy import needing
from mauc._tables.errors import Failure
from mauc._tables.model_file import read_model

FIT = ("fit", "trees.csv", "--target", "species", "--effort", "quick", "--no-importance", "--no-report")


@pytest.fixture
def command(tmp_path):
    """A call of ``mauc`` in a process of its own, with a home and a temporary folder that are new and empty."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    own = ("MPLCONFIGDIR", "SKB_DATA_DIRECTORY", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    inherited = {name: value for name, value in os.environ.items() if name not in own}

    def call(*arguments, **variables):
        environment = {**inherited, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), **variables}
        started = [sys.executable, "-m", "mauc", *map(str, arguments)]
        return subprocess.Popen(
            started, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return call


def left(tmp_path):
    return sorted(p.name for name in ("home", "tmp") for p in (tmp_path / name).rglob("*"))


@pytest.mark.parametrize(
    "call", [("predict", "model.skops", "trees.csv"), pytest.param(FIT, marks=pytest.mark.slow)], ids=["predict", "fit"]
)
def test_nothing_is_left_in_home_or_in_the_temporary_folder(command, model, tmp_path, call):
    made = command(*call, "--quiet")
    assert made.communicate() == ("", "")
    assert left(tmp_path) == []


@pytest.mark.slow
def test_a_home_that_nobody_can_create_is_no_obstacle(command, model, tmp_path):
    scored = command("predict", "model.skops", "trees.csv", "--quiet", HOME=str(tmp_path / "trees.csv" / "home"))
    assert scored.communicate() == ("", "")
    assert (tmp_path / "scores.csv").exists()
    assert left(tmp_path) == []


def test_python_leaves_the_home_alone_too(tmp_path, monkeypatch):
    """skrub creates a folder in the home unless this variable names another."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("SKB_DATA_DIRECTORY", "SKRUB_DATA_DIRECTORY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    with needing("cli", "this"):
        assert os.path.isdir(os.environ["SKB_DATA_DIRECTORY"])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_outlives_a_command_that_is_ended(command, tmp_path, number):
    pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((600_000, 6)), columns=list("abcdef"))
    (tmp_path / "parts").mkdir()
    frame.assign(y=rng.choice(list("abcdef"), len(frame))).to_parquet(tmp_path / "parts" / "one.parquet")
    judged = command("evaluate", "parts", "--target", "y", "--no-report")
    assert "is read in parts" in judged.stderr.readline()
    judged.send_signal(number)
    assert judged.wait() == 128 + number
    judged.communicate()
    assert left(tmp_path) == []


def test_closed_streams_are_told(command, trees, tmp_path):
    call = f"{sys.executable} -m mauc evaluate - --target species"
    for closed, words in (("<&-", "standard input is closed: name a file"), (">&-", "standard output is closed: send")):
        done = subprocess.run(["bash", "-c", f"{call} {closed}"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith(f"mauc: {words}")
        assert len(done.stderr.splitlines()) == 1


def test_errors_that_say_nothing_about_the_model_are_told_as_they_are(model, monkeypatch, tmp_path):
    import skops.io

    def broken(*_, **__):
        raise PermissionError(13, "Permission denied", "/home/nobody")

    monkeypatch.setattr(skops.io, "loads", broken)
    with pytest.raises(PermissionError, match="/home/nobody"):
        read_model(tmp_path / "model.skops")
    monkeypatch.setattr(skops.io, "loads", lambda *_, **__: 1 / 0)
    with pytest.raises(Failure, match="cannot be loaded"):
        read_model(tmp_path / "model.skops")
