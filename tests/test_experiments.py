"""The experiments run from a checkout; their own tests are under ``experiments/tests``."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_a_quick_experiment_writes_its_page(tmp_path, capsys):
    """The smallest one: one method on a small simulated set."""
    pytest.importorskip("torch", reason="needs the extra mauc[torch]")
    pytest.importorskip("matplotlib", reason="needs the extra mauc[plot]")
    from experiments.__main__ import main

    arguments = ["deep", "--dataset", "simulated-small", "--method", "CE", "--quick", "--device", "cpu"]
    main([*arguments, "--out", str(tmp_path)])
    page = tmp_path / "deep-simulated-small-quick.md"
    assert f"wrote {page}" in capsys.readouterr().out
    assert "| CE |" in page.read_text(encoding="utf-8")


def test_nothing_in_the_package_imports_them():
    for file in (ROOT / "src" / "mauc").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert "from experiments" not in text, file
        assert "import experiments" not in text, file
