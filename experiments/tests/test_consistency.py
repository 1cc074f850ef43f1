"""The consistency experiment: its cells, what they measure, and the table."""

import numpy as np
import pytest
import torch

from experiments import consistency
from experiments.consistency import BAYES, METHODS, SIZES, cells, measure, write_report
from experiments.store import Store, run_cells
from mauc.nn import LogitAdjustedLoss
from mauc.surrogates import SURROGATES


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def small(method, n, steps):
    """Test MAUC on 300 samples of each class."""
    return measure(method, n, 0, steps, 300)["test"]


def test_cells():
    assert {f"MAUC {name}" for name in SURROGATES} < set(METHODS), "each surrogate"
    every = cells()
    assert len({cell.key for cell in every}) == len(every) == 3 * len(SIZES) * (1 + len(METHODS))
    assert not {cell.key for cell in every} & {cell.key for cell in cells(quick=True)}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(method):
    assert 0.6 < small(method, 300, 40) < small(BAYES, 300, 0) + 0.01


def test_terms_of_the_adjusted_losses():
    """All with the frequencies of what is drawn."""
    counts, y = np.array([50, 20, 4]), torch.tensor([0, 0, 1, 2])
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    alone = consistency._loss(consistency.ADJUSTED, counts)(logits, y)
    torch.testing.assert_close(alone, LogitAdjustedLoss(counts)(logits, y))
    risk = consistency._loss("MAUC exponential", counts)(logits, y)
    both = consistency._loss(consistency.BOTH, counts)(logits, y)
    torch.testing.assert_close(both, risk + LogitAdjustedLoss(counts)(logits, y))
    covered = consistency._loss(consistency.COVERED, counts)(logits, y)
    torch.testing.assert_close(covered, alone)


def test_the_same_seed_gives_the_same_numbers():
    first, again = (small("MAUC exponential", 100, 20) for _ in range(2))
    assert first == again


def test_more_samples_come_closer():
    few, many = (small("MAUC exponential", n, 100) for n in (100, 1000))
    assert few < many < small(BAYES, 100, 0) + 0.01


def test_report(tmp_path):
    store = Store(tmp_path / "cells")
    some = [c for c in cells(quick=True) if c.key[1] in (BAYES, "cross-entropy")]
    run_cells([cell for cell in some if cell.key[1] == BAYES], store)
    assert write_report(store, tmp_path, quick=True) == [], "nothing to compare yet"
    for cell in some:
        if cell.key[1] != BAYES:
            store.write(cell.key, {"test": 0.8, "diverged": None, "machine": "Measured there."})
    store.write(("quick", "MAUC hinge", "000300", "00"), {"test": None, "diverged": 1})
    page, figure = write_report(store, tmp_path, quick=True)
    assert figure.read_bytes().startswith(b"\x89PNG")
    lines = page.read_text().splitlines()
    ceiling = store.read(some[0].key)["test"]
    assert "| method | N = 300 | N = 1,000 | N = 3,000 | diverged |" in lines
    gap = f"{100 * (ceiling - 0.8):.2f}"
    assert f"| cross-entropy | {gap} | {gap} | {gap} |  |" in lines
    assert "| MAUC hinge | – | – | – | 1 |" in lines
    assert lines[0].endswith(" Measured there."), "not where the page is written"
    assert np.isfinite(ceiling)
