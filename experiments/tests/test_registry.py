"""The list of experiments: what each needs, and that its cells can go to other processes."""

import pickle
import sys

import pytest

from experiments.__main__ import main
from experiments.registry import EXPERIMENTS, load

TABLES = {"data_home": None, "method": None, "quick": False}
OPTIONS = {
    "traditional": {**TABLES, "splits": "authors", "preprocessing": "both", "table": ["ecoli"]},
    "tabular": {**TABLES, "set_": ["ecoli"], "tables": None, "autogluon": None, "budget": None},
    "deep": {
        "dataset": "simulated-small",
        "data_home": None,
        "features": None,
        "method": None,
        "seeds": 2,
        "device": "cpu",
        "quick": False,
    },
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_cells_can_be_sent_to_another_process(name):
    for module in EXPERIMENTS[name][1]:
        pytest.importorskip(module)
    cells = list(load(name, **OPTIONS.get(name, {})).cells)
    assert len({cell.key for cell in cells}) == len(cells) > 1
    assert pickle.loads(pickle.dumps(cells)) == cells


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_not_installed_is_told_in_one_line(name, monkeypatch, tmp_path):
    """Before anything is computed, and with the file that lists it."""
    needs = [*EXPERIMENTS[name][1], "matplotlib"]
    for module in needs:
        monkeypatch.setitem(sys.modules, module, None)
    are = "is" if len(needs) == 1 else "are"
    with pytest.raises(SystemExit) as stopped:
        main([name, "--out", str(tmp_path / "out")])
    assert str(stopped.value) == (
        f"experiments: {name} needs {' and '.join(needs)}, which {are} not installed: "
        "pip install -r experiments/requirements.txt"
    )
    assert not (tmp_path / "out").exists()


def test_missing_data_stop_the_run_before_anything_is_computed(tmp_path):
    with pytest.raises(SystemExit, match="no-such-folder"):
        main(["traditional", "--data-home", str(tmp_path / "no-such-folder"), "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_help_lists_the_experiments(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*EXPERIMENTS, "longtail"))
