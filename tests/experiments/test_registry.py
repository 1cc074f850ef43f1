"""The list of experiments: what each needs, and that its cells can go to other processes."""

import pickle
import sys

import pytest

pytest.importorskip("typer", reason="needs the extra mauc[cli]")

from typer.testing import CliRunner

from mauc.cli import app
from mauc.experiments.registry import EXPERIMENTS, Experiment, load
from mauc.experiments.store import Cell

TABLES = {"data_home": None, "method": None, "n_splits": 1, "quick": False}
OPTIONS = {
    "traditional": {**TABLES, "splits": "authors", "preprocessing": "both", "table": ["ecoli"]},
    "tabular": {
        **TABLES,
        "set_": ["ecoli"],
        "tables": None,
        "openml": False,
        "against": None,
        "budget": None,
        "cores": 1,
        "rival_python": None,
    },
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
    """Before anything is computed, and with the extras that bring it."""
    needs = EXPERIMENTS[name][1]
    for module in needs:
        monkeypatch.setitem(sys.modules, module, None)
    result = CliRunner().invoke(app, ["bench", name, "--out", str(tmp_path / "out")])
    extras = ",".join(sorted(set(needs.values())))
    are = "is" if len(needs) == 1 else "are"
    assert result.exit_code == 1
    assert result.stderr == (
        f"mauc: mauc bench {name} needs {' and '.join(needs)}, which {are} not installed: "
        f"pip install 'mauc[{extras}]'\n"
    )
    assert not (tmp_path / "out").exists()


def test_the_data_are_read_before_anything_is_computed(tmp_path):
    def missing(store):
        raise OSError(f"no data for {store.folder.parent.name}")

    never = Cell(("a",), pytest.fail, ("computed",))
    with pytest.raises(OSError, match="no data for out"):
        Experiment([never], lambda store, folder: [], missing).run(tmp_path / "out")
    assert not (tmp_path / "out").exists()
