"""The long-tail experiment: it runs, resumes, and its page is what its runs say."""

from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.__main__ import main
from experiments.longtail import page, stability
from experiments.longtail.losses import make
from mauc.nn import MAUCLoss

RESULTS = Path(__file__).parents[2] / "docs" / "results"
METHODS = ("mauc", "adjusted:tau=1", "weighted")


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


def test_limited_forms_keep_the_slope_within_that_of_cross_entropy():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(60, 12, generator=generator, requires_grad=True)
    y = torch.cat([torch.zeros(50, dtype=torch.long), torch.arange(1, 11)])
    counts = torch.bincount(y, minlength=12) + 1
    (of_log,) = torch.autograd.grad(make("adjusted:tau=1", counts)(z, y), z)
    slopes = {}
    for form in ("", ",rows=1", ",free=1"):
        (slopes[form],) = torch.autograd.grad(make(f"limited:alpha=8,weight=2,rho=1{form}", counts)(z, y), z)
        assert slopes[form].norm() <= (2.0 if "free" in form else 1.0) * of_log.norm() * 1.0001
    assert slopes[""].norm() < slopes[",free=1"].norm()


def test_a_short_stability_run_resumes(tmp_path, monkeypatch, capsys):
    one = stability.Setting("overlap", 3, 0.0, 16, "SGD, cosine", True, "bfloat16", steps=3)
    monkeypatch.setattr(stability, "settings", lambda: iter([one]))
    out = tmp_path / "stability.csv"
    monkeypatch.setattr("sys.argv", ["stability", "--seeds", "2", "--out", str(out)])
    stability.main()
    lines = out.read_text()
    assert len(lines.splitlines()) == 1 + 2 * len(stability.LOSSES)
    stability.main()
    assert out.read_text() == lines
    assert "overlap, 3 classes, 0 % noise" in page.steady_tables(out)


@pytest.mark.parametrize("data", ["words", "digits", "gauss"])
def test_networks_of_every_kind_of_data_learn(data):
    one = stability.Setting(data, 10, 0.0, 64, "AdamW", True, steps=60)
    drawn = stability.draw(data, 10, 0.0)
    mauc, accuracy = stability.train(one, MAUCLoss(torch.bincount(drawn[1], minlength=10)), drawn, 0)
    assert mauc > 55.0
    assert accuracy > 12.0


def test_the_page_is_what_the_runs_say():
    assert page.page(page.read_runs(page.PUBLISHED)) == (RESULTS / "longtail.md").read_text(encoding="utf-8")
