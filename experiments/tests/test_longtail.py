"""The long-tail experiment: it runs, resumes, and its page is what its runs say."""

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from experiments.longtail import __main__ as command  # noqa: E402
from experiments.longtail import page  # noqa: E402
from experiments.longtail.losses import make  # noqa: E402
from mauc.nn import MAUCLoss  # noqa: E402

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture
def home(tmp_path):
    """Letters, drawn: 26 classes of 300 rows, thinned by the experiment itself."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(26), 300)
    np.savez(tmp_path / "letter.npz", X=rng.normal(size=(7800, 16)) + np.eye(26, 16)[y], y=y)
    return tmp_path


def test_runs_are_kept_and_skipped(home, tmp_path, capsys):
    (tmp_path / "methods.txt").write_text("mauc\nadjusted:tau=1\nlogistic:alpha=16,weight=1\n")
    out = tmp_path / "runs.jsonl"
    call = ["--set", "letter-imb", "--methods", str(tmp_path / "methods.txt"), "--seeds", "0", "--epochs", "1"]
    call += ["--data-home", str(home), "--out", str(out), "--lanes", "2"]
    command.main(call)
    runs = [json.loads(line) for line in out.read_text().splitlines()]
    assert {run["method"] for run in runs} == {"mauc", "adjusted:tau=1", "logistic:alpha=16,weight=1"}
    assert all(0.0 <= run["mauc_softmax"][0] <= 1.0 and run["finite"] for run in runs)
    capsys.readouterr()
    command.main(call)
    assert capsys.readouterr().out == "", "all runs are there"


def test_the_recommended_loss_is_the_candidate_that_was_chosen():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 5, (60,), generator=generator)
    counts = torch.bincount(y, minlength=5) * 7
    candidate = make("soft-class:alpha=8,weight=2", counts)
    candidate.log_prior = (counts / counts.sum()).double().log()
    torch.testing.assert_close(2.0 * MAUCLoss(counts)(z, y), candidate(z, y))


def test_the_page_is_what_the_runs_say():
    assert page.page(page._read(RESULTS / "longtail.csv")) == (RESULTS / "longtail.md").read_text(encoding="utf-8")
