"""The simulation of intervals and tests: its lines run, and its page has them all."""

import numpy as np

from experiments.inference import LINES, cells, simulate, write_report
from experiments.store import Store


def test_a_line_depends_on_its_number_alone():
    place = next(k for k, line in enumerate(LINES) if line.name.startswith("two samples"))
    found = simulate(place, 40)
    assert found == simulate(place, 40)
    assert found["rate"] < 0.3
    assert found["simple"] is None


def test_the_simple_method_finds_differences_that_do_not_exist():
    place = next(k for k, line in enumerate(LINES) if line.name.startswith("a level against the others, 8"))
    found = simulate(place, 20)
    assert found["rate"] < 0.3 < found["simple"]


def test_the_page_has_a_row_for_every_line(tmp_path):
    store = Store(tmp_path / "cells")
    for cell in cells(quick=True):
        store.write(cell.key, {"rate": 0.5, "simple": None, "draws": 20})
    (page,) = write_report(store, tmp_path, quick=True)
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == [line.name for line in LINES]
    assert len(np.unique(rows)) == len(LINES)
