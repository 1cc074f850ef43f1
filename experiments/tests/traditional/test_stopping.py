"""What stopping early does."""

from experiments.store import Store, run_cells
from experiments.traditional import stopping as traditional_stopping
from experiments.traditional.stopping import table_of_iterations


def test_stopping_early_is_a_table_of_its_own(real_data, tmp_path, monkeypatch):
    monkeypatch.setattr(traditional_stopping, "ITERATIONS", (5, 20))
    store = Store(tmp_path)
    assert table_of_iterations(store, "authors", ["new-thyroid"]) is None
    work = traditional_stopping.cells(real_data, protocol="authors", tables=["new-thyroid"], n_splits=2)
    run_cells(work, store)
    lines = table_of_iterations(store, "authors", ["new-thyroid"]).splitlines()
    assert lines[0] == "| authors' λ and α | new-thyroid |"
    assert len(lines) == 2 + 3 * len(traditional_stopping.ITERATIONS)
    assert all(50.0 < float(line.split("|")[2]) <= 100.0 for line in lines[2:])
