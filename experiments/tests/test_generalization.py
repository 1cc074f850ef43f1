"""The generalisation experiment: its draws, its cells, and that its advice is true."""

import numpy as np
import pytest

from experiments.generalization import (
    TEST,
    TRAIN,
    cells,
    draw,
    measure,
    problem,
    write_report,
)
from experiments.store import Store
from mauc.theory import imbalance


def test_larger_samples_hold_the_smaller():
    classes = problem()
    small, _ = draw(classes, np.array([5, 3, 2]), 4, TRAIN)
    large, y = draw(classes, np.array([9, 3, 7]), 4, TRAIN)
    for k, n in enumerate((5, 3, 2)):
        begin = (0, 5, 8)[k]
        np.testing.assert_array_equal(small[begin : begin + n], large[y == k][:n])
    for repetition, purpose in ((5, TRAIN), (4, TEST)):
        other, _ = draw(classes, np.array([5, 3, 2]), repetition, purpose)
        assert not np.isin(small, other).any()


def test_measure():
    result = measure((40, 20, 10), 3)
    assert result == measure((40, 20, 10), 3)
    assert result["rate"] == pytest.approx(imbalance(np.repeat([0, 1, 2], [40, 20, 10])).rate)
    for what in ("train", "test", "mauc", "bound"):
        assert len(result[what]) == 3
    assert np.mean(result["test"]) > np.mean(result["train"])
    assert min(result["bound"]) > max(np.subtract(result["test"], result["train"]))


def test_the_advice_is_true():
    """As many samples more: of the rare class they close the gap, of the frequent one they hardly do."""
    gaps = {}
    for name, counts in {"base": (200, 40, 8), "frequent": (260, 40, 8), "rare": (200, 40, 68)}.items():
        result = measure(counts, 10, 2000)
        gaps[name] = np.subtract(result["test"], result["train"])
    assert (gaps["rare"] < gaps["base"]).all()
    assert gaps["rare"].mean() < 0.7 * gaps["base"].mean()
    assert abs(gaps["frequent"].mean() / gaps["base"].mean() - 1) < 0.1


def test_report(tmp_path):
    store = Store(tmp_path / "cells")
    grid = cells(quick=True)
    known = measure((40, 20, 10), 2, 100)
    for k, cell in enumerate(grid):
        result = {"class_counts": list(cell.arguments[0]), "rate": known["rate"] * (1 + k / 10)}
        result["test"] = [risk * (1 + k / 10) for risk in known["test"]]
        store.write(cell.key, {**known, **result})
    page, figure = write_report(store, tmp_path, quick=True)
    assert figure.read_bytes().startswith(b"\x89PNG")
    text = page.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "+" in line]
    assert len(rows) == len(grid)
    assert "correlation" in text
    assert "more samples of the rare class close" in text
    assert (page.name, figure.name) == ("generalization.md", "generalization.png")
