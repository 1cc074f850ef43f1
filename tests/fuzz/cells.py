"""Cells of a column, in files and in parts of them: each is read, compared and copied as what it is."""

import re
import tempfile
import warnings
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from mauc._tables.read import as_label, read_with_copies
from mauc._tables.saved_scores import cell_hashes
from mauc._tables.text import Reading

MISSING = ("", "NA", "null", "NaN", "None")
EXTRA = ("?", "-", "unknown", "TRUE", "false", "1.5", "-0.25", "1e-7", "=m", "Łódź")
TRUTHS = {"TRUE": "1", "false": "0"}
WELLS = ("1E1", "10", "2E1", "20", "0E0", "0", "1.10", "1.1", "007", "7", "7.0", "1e400", "2e400", "12A")


def run(rng: np.random.Generator) -> None:
    """Write a column of cells, and compare what is read with what the definitions below say."""
    cells = _drawn(rng)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the reader reports
        table, copies = _read(cells, Path(folder), copied=["cell"])
        hashes = cell_hashes(table)["cell"]
        half = int(rng.integers(1, len(cells)))
        parts = [cell_hashes(_read(part, Path(folder))[0])["cell"] for part in (cells[:half], cells[half:])]
        codes = _read(cells, Path(folder), codes=["cell"])[0]["cell"]
    assert copies["cell"].tolist() == cells, "a copy is as it is written"
    known = np.array([cell not in MISSING for cell in cells])
    assert table["cell"].notna().tolist() == known.tolist()
    assert np.concatenate(parts)[known].tolist() == hashes[known].tolist(), "a cell is the same beside any other"
    there = np.array(cells)[known].tolist()
    _check_same([_value(cell) for cell in there], hashes[known].tolist())
    are_numbers = all(isinstance(_value(cell), Decimal | float) and cell not in TRUTHS for cell in there)
    _check_same([_code(cell, are_numbers) for cell in there], [as_label(code) for code in codes[known]])


def _drawn(rng: np.random.Generator) -> list[str]:
    """Long or short integers, or codes, with gaps and other cells among them."""
    n = int(rng.integers(3, 30))
    first = int(rng.choice([0, 2**53, 10**15, 10**18, 2**63, 10**20, 10**29])) * int(rng.choice([1, 1, 1, -1]))
    cells = [str(first + int(k)) for k in rng.integers(0, 40, n)]
    kind = rng.random()
    if kind < 0.3:
        cells = rng.choice(WELLS, n).tolist()
    elif kind < 0.4:
        cells = [f"{cell}.0" for cell in cells]
    for others, share in ((MISSING, rng.choice([0.0, 0.2])), (EXTRA, rng.choice([0.0, 0.0, 0.1]))):
        cells = [str(rng.choice(others)) if rng.random() < share else cell for cell in cells]
    return cells


def _read(cells, folder, copied=(), codes=()):
    """Return a table of the cells, and copies."""
    lines = [f"{k},{cell}" for k, cell in enumerate(cells)]
    (folder / "t.csv").write_text("\n".join(["row,cell", *lines]) + "\n", encoding="utf-8")
    return read_with_copies(folder / "t.csv", copied, codes=codes, how=Reading(header=True, separator=","))


def _value(cell: str) -> object:
    """What a cell is: a number, beyond the largest float infinite, a truth value as 1 or 0, or a text."""
    try:
        number = Decimal(TRUTHS.get(cell, cell))
    except InvalidOperation:
        return cell
    return float(number) if abs(number) > Decimal("1e308") else number


def _code(cell: str, among_numbers: bool) -> str:
    """What a code is: the cell as it is written; 12.0 is 12 among numbers."""
    if among_numbers:
        return re.sub(r"^([+-]?(?:0|[1-9]\d*))\.0$", r"\1", cell)
    return cell


def _check_same(expected: list[object], found: list[object]) -> None:
    """Check that cells are the same exactly where they should be."""
    pairs = set(zip(expected, found, strict=True))
    assert len(pairs) == len(set(expected)) == len(set(found)), sorted(map(str, pairs))
