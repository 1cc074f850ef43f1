"""``python -m experiments traditional`` from end to end."""

import re
import subprocess
import sys

import numpy as np
import pytest

from experiments.__main__ import main
from experiments.store import Store

PNG = b"\x89PNG"


def bench(*arguments):
    main(["traditional", *map(str, arguments)])


@pytest.mark.usefixtures("undrawn")
def test_two_methods_end_to_end(real_data, tmp_path, capsys):
    protocol = "authors"
    arguments = ("--out", tmp_path, "--data-home", real_data, "--table", "balance", "--quick")
    arguments += ("--method", "MAUC exponential", "--method", "LR, tuned")
    bench(*arguments)
    shown = capsys.readouterr().out
    written = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    stems = [f"traditional-{protocol}-{kind}" for kind in ("rows", "standard")]
    pages = {f"{stem}{end}" for stem in stems for end in (".md", "-figure1.png", "-figure2.png")}
    kept = {
        f"cells/quick/{protocol}/{kind}/balance/{name}/{split}.json"
        for kind in ("rows", "standard")
        for name in ("MAUC exponential", "LR, tuned")
        for split in ("00", "01")
    }
    assert written == pages | kept
    assert all(f"wrote {tmp_path / page}\n" in shown for page in pages)
    for page in pages:
        content = (tmp_path / page).read_bytes()
        assert (
            content.startswith(PNG)
            if page.endswith("png")
            else b"| method | balance | mean | rank | fit ms |" in content
        )
    store, text = Store(tmp_path / "cells"), (tmp_path / f"{stems[0]}.md").read_text()
    for name in ("MAUC exponential", "LR, tuned"):
        runs = [store.read(("quick", protocol, "rows", "balance", name, split)) for split in ("00", "01")]
        tests = 100 * np.array([run["test"] for run in runs])
        assert (tests > 80).all()
        assert re.search(rf"\| {re.escape(name)} \| \**{tests.mean():.2f} ± {tests.std():.2f}\** \|", text)
    # Again: nothing is computed, all that is asked for is written.
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}
    (tmp_path / f"{stems[0]}.md").unlink()
    bench(*arguments, "--preprocessing", "rows")
    assert (tmp_path / f"{stems[0]}.md").is_file()
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}


def test_a_table_that_is_missing_is_told_in_one_line(made_up_data, tmp_path, monkeypatch):
    """Not the first table alone: no cell is computed for want of the last one."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "empty"))
    arguments = ("--data-home", made_up_data, "--table", "balance", "--table", "svmguide2", "--method", "LR, C=1")
    with pytest.raises(SystemExit, match="experiments: svmguide2 needs the file"):
        bench("--out", tmp_path / "out", *arguments, "--quick")


def test_the_plain_entry_needs_neither_typer_nor_rich_nor_matplotlib(made_up_data, tmp_path):
    """It computes what the command then only has to report."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('typer', 'rich', 'matplotlib')));"
        "from experiments.__main__ import main; main(['traditional', '--no-report', *sys.argv[1:]])"
    )
    arguments = ["--out", str(tmp_path), "--data-home", str(made_up_data), "--table", "new-thyroid", "--quick"]
    arguments += ["--splits", "80-10-10", "--preprocessing", "rows", "--method", "LR, C=1"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=True, text=True)
    assert "2 fits, 0 already computed" in done.stderr
    assert "2 of 2 in" in done.stderr
    cell, _ = tmp_path.rglob("*.json")
    stamp = cell.stat().st_mtime_ns
    bench(*arguments)
    assert (tmp_path / "traditional-80-10-10-rows.md").is_file()
    assert cell.stat().st_mtime_ns == stamp
