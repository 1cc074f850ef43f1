"""Running times: the loops are the definition, and what is timed in part is marked."""

import pytest
import torch
from pair_loss import pair_loss

from experiments import runtime
from experiments.runtime import (
    CROSS_ENTROPY,
    LOSSES,
    PAPER,
    SETS,
    batches_of_an_epoch,
    cells,
    measure,
    naive_terms,
    selected_terms,
    write_report,
)
from experiments.store import Store


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)
    yield
    runtime._problem.cache_clear()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("way", "terms"), [("selected", selected_terms), ("naive", naive_terms)])
def test_the_loops_are_the_definition(loss, way, terms):
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(20, 4, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.tensor([0, 1, 3, 1] * 5)
    every = list(terms(scores, y, runtime.elementwise(loss, 0.6)))
    assert len(every) == runtime.n_terms(way, y)
    value = torch.stack(every).sum()
    exact = pair_loss(scores, y, surrogate=loss, alpha=0.6, activation="identity")
    torch.testing.assert_close(value, exact, rtol=1e-10, atol=1e-12)
    (slope,), (expected,) = torch.autograd.grad(value, scores), torch.autograd.grad(exact, scores)
    torch.testing.assert_close(slope, expected, rtol=1e-10, atol=1e-12)


def test_an_epoch_is_the_training_part():
    assert [batches_of_an_epoch(name) for name in SETS] == [19, 610, 58]  # 80 %, 80 % and 70 %


def test_measure_and_report(tmp_path):
    """On a small copy of User-Imb; steps in full where the budget allows."""
    small = {"samples": 400, "n_features": 40}
    state = torch.get_rng_state()
    whole = measure("user-imb", "squared", "accelerated", "cpu", 30.0, **small)
    assert torch.equal(torch.get_rng_state(), state)
    assert whole["share"] == 1.0
    assert whole["batches"] == 10
    part = measure("user-imb", "squared", "accelerated", "cpu", 0.0, **small)
    assert part["share"] == pytest.approx(0.3)
    selected, naive = (measure("user-imb", "hinge", way, "cpu", 0.01, **small) for way in ("selected", "naive"))
    assert naive["share"] < selected["share"] <= 0.1, "one batch at most"
    assert naive["seconds"] > selected["seconds"] > 0
    store = Store(tmp_path / "cells")
    for cell in cells(sets=["user-imb"], device="cpu"):
        store.write(cell.key, whole if cell.key[-1] == "accelerated" else naive)
    page, figure = write_report(store, tmp_path, "cpu")
    assert figure.read_bytes().startswith(b"\x89PNG")
    rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines() if line.startswith("| user-imb")]
    assert [row[1] for row in rows] == [CROSS_ENTROPY, *LOSSES]
    for row, *paper in zip(rows[1:], *PAPER["user-imb"].values(), strict=True):
        assert not row[2].startswith("≈")
        assert row[3:9:2] == paper
        assert row[6].startswith("≈"), "marked as worked out from a part"
    assert write_report(store, tmp_path, "cuda") == []
