"""A small table with every kind of column, and the command in an empty folder."""

import contextlib

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra mauc[cli]")
pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd
from typer.testing import CliRunner

from mauc._cli import app


def make_trees(n=160, seed=0):
    rng = np.random.default_rng(seed)
    code = np.sort(rng.choice(4, n, p=[0.5, 0.3, 0.12, 0.08]))
    rng.shuffle(code)
    table = pd.DataFrame(
        {
            "height": rng.normal(code, 0.8),
            "soil": np.where(rng.random(n) < 0.3, "clay", np.where(code % 2, "sand", "loam")),
            "seen": pd.date_range("2021-01-01", periods=16, freq="13D").repeat(-(-n // 16))[:n].astype(str),
            "plot": rng.integers(0, 16, n),
            "species": np.array(["oak", "elm", "yew", "ash"])[code],
        }
    )
    table.loc[rng.random(n) < 0.1, "height"] = np.nan
    table.loc[3:5, "soil"] = None
    return table


@pytest.fixture
def trees(tmp_path):
    table = make_trees()
    table.to_csv(tmp_path / "trees.csv", index=False)
    return table


@pytest.fixture
def run(tmp_path, monkeypatch, small_stack):
    """The command, in which ``mauc fit`` trains the small stack."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, stdin=None):
        return CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)

    return call


@pytest.fixture(scope="session")
def fitted(tmp_path_factory, use_small_stack):
    """The bytes of a model file of ``trees.csv``."""
    folder = tmp_path_factory.mktemp("fitted")
    make_trees().to_csv(folder / "trees.csv", index=False)
    call = "fit trees.csv --target species --no-importance --no-report --quiet"
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        use_small_stack(patch)
        result = CliRunner().invoke(app, call.split())
    assert (result.exit_code, result.output) == (0, "")
    return (folder / "model.skops").read_bytes()


@pytest.fixture
def model(run, trees, tmp_path, fitted):
    """A folder with a fitted model."""
    (tmp_path / "model.skops").write_bytes(fitted)
    return "model.skops"


@pytest.fixture
def fails(run):
    """Run a command that must fail in one or two plain lines; returns them."""

    def call(*arguments, code=1):
        result = run(*arguments)
        assert result.exit_code == code, result.output
        assert isinstance(result.exception, SystemExit)
        assert "Traceback" not in result.output
        lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
        assert 1 <= len(lines) <= 2, lines
        assert lines[0].startswith("mauc: ")
        return " ".join(lines)

    return call


@pytest.fixture
def little_memory(monkeypatch):
    """A call after which single files do not fit in memory, and are read in parts."""
    return lambda: monkeypatch.setattr("mauc._tables.parts.available_memory", lambda: 10.0)
