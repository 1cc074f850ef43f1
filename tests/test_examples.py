"""Every example runs as it says it is run, in an empty folder, without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
# Lightning calls what torch 2.13 deprecates, and on machines with many cores it asks for workers.
LEAF_SPEC = "ignore:`isinstance(treespec, LeafSpec)` is deprecated:FutureWarning"
FEW_WORKERS = [f"ignore:The '{kind}_dataloader' does not have many workers:UserWarning" for kind in ("train", "val")]


def run(command, folder, **environment):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
    return done.stdout


def scores(text):
    return [float(x) for x in re.findall(r"MAUC (0\.\d+)", text)]


def test_train_loop(tmp_path):
    pytest.importorskip("torch", reason="needs the extra mauc[torch]")
    cross_entropy, mauc = scores(run([sys.executable, "-W", "error", EXAMPLES / "train_loop.py"], tmp_path))
    assert mauc > 0.99
    assert cross_entropy > 0.99


def test_train_lightning(tmp_path):
    pytest.importorskip("lightning", reason="needs the extra mauc[torch]")
    allowed = [option for message in (LEAF_SPEC, *FEW_WORKERS) for option in ("-W", message)]
    out = run([sys.executable, "-W", "error", *allowed, EXAMPLES / "train_lightning.py"], tmp_path)
    assert scores(out)[0] > 0.98
    epochs, order = re.search(r"epochs (\d+), last one's order (\d+)", out).groups()
    assert int(order) == int(epochs) - 1


@pytest.mark.slow
def test_train_distributed(tmp_path):
    torchrun = [sys.executable, "-W", "error", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    out = run([*torchrun, EXAMPLES / "train_distributed.py"], tmp_path, PYTHONWARNINGS="error")
    assert "2 processes" in out
    assert scores(out)[0] > 0.97
