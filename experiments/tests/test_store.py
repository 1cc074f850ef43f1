"""Results on disk: complete or not at all, never computed twice, and not lost to a kill."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from experiments.store import Cell, Store, run_cells
from experiments.tests.experiment_work import fail_at, full_disk, record, square


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


def files(store):
    return sorted(str(p.relative_to(store.folder)) for p in store.folder.rglob("*") if p.is_file())


def test_write_and_read(store):
    key = ("full", "authors", "LR, C=1", "00")
    assert key not in store
    result = {"test": 0.25, "params": {"C": 10.0}, "matrix": [[None, 1.0], [0.5, None]], "name": "größer"}
    store.write(key, result)
    assert key in store
    assert store.read(key) == result
    assert files(store) == ["full/authors/LR, C=1/00.json"]
    store.write(key, {"test": 1.0})
    assert store.read(key) == {"test": 1.0}


def test_keys_with_slashes_and_dots(store):
    for key in (("a/b", "c/d"), ("a.b", "c.d"), ("one",)):
        store.write(key, {"key": list(key)})
        assert key in store
    assert store.read(("a/b", "c/d")) == {"key": ["a/b", "c/d"]}
    assert store.read(("a.b", "c.d")) == {"key": ["a.b", "c.d"]}
    assert ("a", "b") not in store
    for path in (store.path(key) for key in (("a/b", "c/d"), ("/abs", "x"))):
        assert path.resolve().is_relative_to(store.folder.resolve())
        assert len(path.relative_to(store.folder).parts) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_cells_are_computed_once(store, tmp_path, jobs):
    log = tmp_path / "log"
    cells = [Cell(("run", str(x)), record, (x, str(log))) for x in range(6)]
    assert run_cells(cells[:4], store, jobs=jobs) == 4
    assert run_cells(cells, store, jobs=jobs) == 2
    assert run_cells(cells, store, jobs=jobs) == 0
    assert sorted(log.read_text().split()) == list("012345")
    assert [store.read(cell.key) for cell in cells] == [square(x) for x in range(6)]


def process(x):
    time.sleep(0.05)
    return {"process": os.getpid()}


def test_cells_that_belong_together_run_in_one_process(store):
    cells = [Cell((str(x),), process, (x,), ("even",) if x % 2 == 0 else None) for x in range(8)]
    assert run_cells(cells, store, jobs=2) == 8
    assert len({store.read(cell.key)["process"] for cell in cells[::2]}) == 1
    assert all(cell.key in store for cell in cells)


@pytest.mark.parametrize("remains", [b"", b'{"square": 4, "lo', b"\0\0\0", b"\xff"])
def test_a_damaged_result_is_computed_again_and_named(store, tmp_path, remains):
    log = tmp_path / "log"
    cells = [Cell(("run", str(x)), record, (x, str(log))) for x in range(3)]
    run_cells(cells, store)
    damaged = store.path(cells[1].key)
    damaged.write_bytes(remains)
    with pytest.raises(ValueError, match=r"1\.json is empty or cut off: run the experiment"):
        store.read(cells[1].key)
    with pytest.warns(UserWarning, match=f"{damaged} is empty or cut off, and is computed again"):
        assert run_cells(cells, store) == 1
    assert [store.read(cell.key) for cell in cells] == [square(x) for x in range(3)]
    assert log.read_text().split() == ["0", "1", "2", "1"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_is_no_fault_of_the_cell(store, tmp_path, jobs):
    with pytest.raises(OSError, match="No space left on device") as caught:
        run_cells([Cell(("run", "0"), full_disk, (str(tmp_path / "x"),))], store, jobs=jobs)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "x"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_names_its_cell_and_keeps_the_others(store, jobs):
    cells = [Cell(("run", "table", str(x)), fail_at, (x, 2)) for x in range(3)]
    with pytest.raises(RuntimeError, match=r"run / table / 2: KeyError: 'no such thing'") as caught:
        run_cells(cells, store, jobs=jobs)
    assert cells[2].key not in store
    if jobs == 1:
        assert isinstance(caught.value.__cause__, KeyError)
        assert all(cell.key in store for cell in cells[:2])
    mended = [Cell(cell.key, fail_at, (x, None)) for x, cell in enumerate(cells)]
    run_cells(mended, store)
    assert all(cell.key in store for cell in cells)


def test_progress_is_shown(store, capsys):
    run_cells([Cell(("a", "b"), square, (1,))], store)
    shown = capsys.readouterr().err
    assert "1 fits, 0 already computed" in shown
    assert "1 of 1 in 0 s: a / b" in shown


def test_a_failure_need_not_stop_the_others(store, capsys):
    cells = [Cell(("run", str(x)), fail_at, (x, 1)) for x in range(3)]
    assert run_cells(cells, store, keep_going=True) == 2
    assert "run / 1: KeyError: 'no such thing'" in capsys.readouterr().err


SCRIPT = """
import os, sys, time
from pathlib import Path
from experiments.store import Cell, Store, run_cells

folder, stop_in = Path(sys.argv[1]), sys.argv[2]
replace = os.replace

def work(x):
    with open(folder / "log", "a") as file:
        file.write(f"{x}\\n")
    if x == 3 and stop_in == "function":
        (folder / "stuck").touch()
        time.sleep(600)
    return {"x": x, "long": "y" * 100_000}

def stuck(source, target):
    if stop_in == "write" and target.name == "3.json":
        (folder / "stuck").touch()
        time.sleep(600)
    replace(source, target)

os.replace = stuck
run_cells([Cell(("run", str(x)), work, (x,)) for x in range(6)], Store(folder / "cells"))
"""


@pytest.mark.parametrize("stop_in", ["function", "write"])
def test_a_kill_loses_the_cell_in_flight_only(tmp_path, stop_in):
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path), stop_in], stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            if (tmp_path / "stuck").exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        assert (tmp_path / "stuck").exists(), "it never came to the cell"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    store = Store(tmp_path / "cells")
    assert [x for x in range(6) if ("run", str(x)) in store] == [0, 1, 2]
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), "never"], check=True, capture_output=True)
    assert [store.read(("run", str(x)))["x"] for x in range(6)] == list(range(6))
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2", "3", "3", "4", "5"]
    for path in store.folder.rglob("*.json"):
        json.loads(path.read_text())
