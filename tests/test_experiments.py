"""The experiments run from a checkout; their own tests are under ``experiments/tests``."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_a_quick_experiment_writes_its_page(tmp_path):
    """The smallest one: one method on a small simulated set."""
    pytest.importorskip("torch", reason="needs the extra mauc[torch]")
    pytest.importorskip("matplotlib", reason="needs the extra mauc[plot]")
    command = [sys.executable, "-m", "experiments", "deep", "--dataset", "simulated-small", "--method", "CE"]
    command += ["--quick", "--device", "cpu", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "deep-simulated-small-quick.md"
    assert f"wrote {page}" in done.stdout
    assert "| CE |" in page.read_text(encoding="utf-8")


def test_nothing_in_the_package_imports_them():
    for file in (ROOT / "src" / "mauc").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert "from experiments" not in text, file
        assert "import experiments" not in text, file
