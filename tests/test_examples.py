"""Every example runs, in an empty folder, without a warning."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a script as the main module; returns what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PL_GLOBAL_SEED", "0")  # Lightning's seed is set back afterwards

    def call(name):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert list(tmp_path.iterdir()) == []
        return capsys.readouterr().out

    return call


def scores(text):
    return [float(x) for x in re.findall(r"MAUC (0\.\d+)", text)]


# Lightning calls what torch 2.13 deprecates, and on machines with many cores it asks for workers.
@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:The '(train|val)_dataloader' does not have many workers:UserWarning")
def test_train_lightning(run):
    pytest.importorskip("lightning", reason="needs lightning")
    out = run("train_lightning.py")
    assert scores(out)[0] > 0.98
    epochs, order = re.search(r"epochs (\d+), next one's order (\d+)", out).groups()
    assert order == epochs


@pytest.mark.slow
def test_train_distributed(tmp_path):
    torchrun = [sys.executable, "-W", "error", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    command = [*torchrun, EXAMPLES / "train_distributed.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    assert "2 processes" in done.stdout
    assert scores(done.stdout)[0] > 0.97
