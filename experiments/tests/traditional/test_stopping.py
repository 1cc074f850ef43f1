"""What stopping early does."""

from experiments.store import Store, run_cells
from experiments.traditional.stopping import cells, table_of_iterations


def test_stopping_early_is_a_table_of_its_own(real_data, tmp_path):
    tables, iterations = ["new-thyroid"], (5, 20)
    store = Store(tmp_path)
    assert table_of_iterations(store, "authors", tables, iterations) is None
    run_cells(cells(real_data, protocol="authors", tables=tables, n_splits=2, iterations=iterations), store)
    lines = table_of_iterations(store, "authors", tables, iterations).splitlines()
    assert lines[0] == "| authors' λ and α | new-thyroid |"
    assert len(lines) == 2 + 3 * len(iterations)
    assert all(50.0 < float(line.split("|")[2]) <= 100.0 for line in lines[2:])
