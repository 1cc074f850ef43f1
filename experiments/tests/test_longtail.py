"""The long-tail experiment: it runs, resumes, and its page is what its runs say."""

from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.__main__ import main
from experiments.longtail import page
from experiments.longtail.losses import make
from mauc.nn import MAUCLoss

RESULTS = Path(__file__).parents[2] / "docs" / "results"
METHODS = ("mauc", "adjusted:tau=1", "logistic:alpha=16,weight=1")


@pytest.fixture
def home(tmp_path):
    """Letters, drawn: 26 classes of 300 rows, thinned by the experiment itself."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(26), 300)
    np.savez(tmp_path / "letter.npz", X=rng.normal(size=(7800, 16)) + np.eye(26, 16)[y], y=y)
    return tmp_path


def test_runs_are_kept_and_join_the_published_ones(home, capfd):
    call = ["longtail", "--set", "letter-imb", "--seeds", "1", "--epochs", "1", "--data-home", str(home)]
    call += ["--out", str(home / "out"), *(word for method in METHODS for word in ("--method", method))]
    main(call)
    runs = page.read_runs(home / "out" / "longtail.csv")
    new = [run for run in runs if run["set"] == "letter-imb" and run["epochs"] == 1]
    assert {run["method"] for run in new} == set(METHODS)
    assert all(0.5 < run["mauc"] <= 1.0 for run in new)
    assert len(runs) == len(new) + len(page.read_runs(page.PUBLISHED))
    capfd.readouterr()
    main(call)
    assert "3 fits, 3 already computed" in capfd.readouterr().err


def test_a_quick_run_needs_no_file(tmp_path):
    main(["longtail", "--quick", "--out", str(tmp_path)])
    assert {run["method"] for run in page.read_runs(tmp_path / "longtail.csv")} == {"mauc", "adjusted:tau=1"}


def test_the_recommended_loss_is_the_candidate_that_was_chosen():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(200, 12, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 12, (200,), generator=generator)
    counts = torch.bincount(y, minlength=12) * 7
    candidate = make("soft-class:alpha=8,weight=2", counts)
    candidate.log_prior = (counts / counts.sum()).double().log()
    torch.testing.assert_close(2.0 * MAUCLoss(counts)(z, y), candidate(z, y))


def test_the_page_is_what_the_runs_say():
    assert page.page(page.read_runs(RESULTS / "longtail.csv")) == (RESULTS / "longtail.md").read_text(encoding="utf-8")
