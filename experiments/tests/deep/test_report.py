"""Tables 2 to 4 from results on disk."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from experiments.deep.methods import METHODS
from experiments.deep.report import read_results, write_report
from experiments.deep.run import BAYES, cells
from experiments.store import Store, run_cells

PNG = b"\x89PNG"


class Breaks(nn.Module):
    """Cross-entropy that is not a number after so many calls."""

    def __init__(self, after):
        super().__init__()
        self.calls, self.after = 0, after

    def forward(self, logits, y):
        self.calls += 1
        value = nn.functional.cross_entropy(logits, y)
        return value * torch.nan if self.calls > self.after else value


def test_a_run_that_diverges_is_told(monkeypatch, tmp_path):
    """At once: no score. Later: the best epoch before, and the epoch in which it happened."""
    monkeypatch.setitem(METHODS, "CE", replace(METHODS["CE"], loss=lambda counts, epochs: Breaks(0)))
    monkeypatch.setitem(METHODS, "FOCAL", replace(METHODS["FOCAL"], loss=lambda counts, epochs: Breaks(7)))
    store = Store(tmp_path / "cells")
    run_cells(cells("simulated-small", methods=["CE", "FOCAL", "TL"], seeds=1, device="cpu", quick=True), store)
    results = read_results(store, "simulated-small", "cpu", quick=True)
    at_once, later = results["CE"][0], results["FOCAL"][0]
    assert (at_once["diverged"], at_once["test"], at_once["epoch"]) == (1, None, None)
    assert (later["diverged"], later["epoch"], len(later["validation_scores"])) == (2, 1, 1)
    assert later["test"] > 0.4
    page, figure = write_report(store, tmp_path, "simulated-small", "cpu", quick=True)
    text = page.read_text()
    assert "CE diverged: seed 0 in epoch 1" in text
    overall = next(line for line in text.splitlines() if line.startswith("| CE |"))
    assert overall.startswith("| CE | – | – | – of 2 |")
    assert overall.endswith("| 1 of 1 |")
    assert figure.read_bytes().startswith(PNG)


def test_report(tmp_path, features):
    store = Store(tmp_path / "cells")
    names = ["CE", "LDAM", "DeepAUC", "exponential"]
    every = cells("cifar100-imb", features=features, methods=names, seeds=2, device="cpu", quick=True)
    run_cells(every, store)
    name = every[0].key[1]
    files = write_report(store, tmp_path, name, "cpu", quick=True)
    assert [file.name for file in files] == [f"deep-{name}-quick.md", f"deep-{name}-quick.png"]
    text = files[0].read_text()
    head = next(line for line in text.splitlines() if line.startswith("| method | test"))
    assert head.endswith("| diverged | paper |")
    assert any(line.startswith("| exponential |") and line.endswith("| 62.08 |") for line in text.splitlines())
    tests = 100 * np.array([store.read(c.key)["test"] for c in every if c.key[3] == "CE"])
    assert f"{tests.mean():.2f} ± {tests.std():.2f}" in text
    for part in ("(Table 2)", "(Table 3)", "(Table 4)", "hidden layers of 1,024 and 256", "over seeds (2)"):
        assert part in text
    head = next(line for line in text.splitlines() if line.startswith("| method | bee over cat | cat over bee |"))
    assert head.endswith("| paper, 4th | paper, 5th |")
    pair = [store.read(c.key)["rare_pairs"][0] for c in every if c.key[3] == "CE"]
    there, back = (100 * np.array([row[k] for row in pair]) for k in (3, 4))
    row = f"| CE | {there.mean():.2f} ± {there.std():.2f} | {back.mean():.2f} ± {back.std():.2f} |"
    assert any(line.startswith(row) and line.endswith("| 58.44 | 56.17 |") for line in text.splitlines())
    assert write_report(store, tmp_path, "kddcup99", "cpu") == []


@pytest.mark.usefixtures("undrawn")
def test_simulated_reports_have_the_ceiling_and_not_the_papers_numbers(tmp_path):
    store = Store(tmp_path / "cells")
    run_cells(cells("simulated-small", methods=["CE"], seeds=1, device="cpu", quick=True), store)
    page, _ = write_report(store, tmp_path, "simulated-small", "cpu", quick=True)
    text = page.read_text()
    assert "The Bayes MAUC" in text
    assert f"| {BAYES} |" in text
    assert "| paper |" not in text
