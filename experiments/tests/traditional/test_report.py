"""Tables, margins and figures of the traditional experiments."""

import numpy as np
import pytest

from experiments.plots import rare_pairs
from experiments.store import Store
from experiments.traditional import report
from experiments.traditional.report import BEST_OF_OURS, read_results, write_report

PNG = b"\x89PNG"


def fake_run(score, validation, n_classes=3):
    matrix = [[None if i == j else score for j in range(n_classes)] for i in range(n_classes)]
    return {
        "test": score,
        "validation": validation,
        "params": {},
        "fit_seconds": 0.012,
        "search_seconds": 0.1,
        "matrix": matrix,
        "test_counts": [50, 20, 5],
        "counts": [500, 200, 50],
        "machine": "Measured there.",
    }


@pytest.fixture
def faked(tmp_path):
    """Three tables, two splits, all three losses and LR, with scores that are easy to check."""
    store = Store(tmp_path / "cells")
    scores = {"MAUC squared": 0.90, "MAUC exponential": 0.92, "MAUC hinge": 0.94, "LR, tuned": 0.80}
    for t, table in enumerate(("balance", "new-thyroid", "svmguide2")):
        for name, score in scores.items():
            for split in range(2):
                # Squared is best on the first split's validation part, hinge on the second's.
                validation = {"MAUC squared": 0.99 - split, "MAUC hinge": 0.9}.get(name, 0.1)
                run = fake_run(score + 0.02 * split - 0.1 * t, validation)
                store.write(("full", "authors", "rows", table, name, f"{split:02d}"), run)
    return store


def test_the_best_of_ours_is_chosen_on_validation(faked):
    results = read_results(faked, "authors", "rows", ["balance"], "full")
    assert set(results) == {"MAUC squared", "MAUC exponential", "MAUC hinge", "LR, tuned", BEST_OF_OURS}
    assert [run["test"] for run in results[BEST_OF_OURS]["balance"]] == [pytest.approx(0.90), pytest.approx(0.96)]


def test_report(faked, tmp_path):
    tables = ["balance", "new-thyroid", "svmguide2"]
    files = write_report(faked, tmp_path, preprocessings=("rows", "standard"), tables=tables)
    stem = "traditional-authors-rows"
    assert [f.name for f in files] == [f"{stem}.md", f"{stem}-figure1.png", f"{stem}-figure2.png", f"{stem}-ranks.png"]
    assert all(f.read_bytes().startswith(PNG) for f in files[1:])
    text = files[0].read_text()
    lines = [line for line in text.split("## Margins")[0].splitlines() if line.startswith("| ")]
    assert lines[0] == "| method | balance | new-thyroid | svmguide2 | mean | rank | fit ms |"
    assert lines[1] == "| MAUC hinge | **95.00 ± 1.00** | **85.00 ± 1.00** | **75.00 ± 1.00** | 85.00 | 1.0 | 12 |"
    assert lines[-1].startswith("| LR, tuned | 81.00 ± 1.00 | 71.00 ± 1.00 |")
    assert "over 2 splits (authors), preprocessing `rows`" in text
    margins = [line for line in text.split("## Margins")[1].splitlines() if line.startswith("| ")]
    assert margins[0] == "| difference of means | balance | new-thyroid | svmguide2 | mean |"
    assert margins[1] == "| the paper's Figure 1 | +5.30 | +1.30 | +1.40 | +2.67 |"
    assert [line.split(" | ")[0] for line in margins[2:]] == [
        "| exponential − best of the authors' code",
        "| chosen by validation − best of the authors' code",
    ], "competitors that were not all run give no margin"
    assert margins[2].split(" | ")[1] == f"{93.0 - 94.98:+.2f}"
    assert text.startswith("This page shows the paper's Figures 1 and 2 on the authors' own splits (about 20/40/40")
    assert "## The rarest pairs (Figure 2)" in text
    assert text.endswith("\n\nMeasured there.\n"), "not where the page is written"
    assert not list(tmp_path.glob(".part-*"))


def test_rare_pairs_are_shown_by_direction(tmp_path):
    """Every method a line, pairs by the sizes in the whole table, a pair of no split left out, and low values."""
    runs = [fake_run(0.9, 0.9) for _ in range(2)]
    for run in runs:
        run["test_counts"] = [1, 20, 50]
        run["matrix"] = [[None, 0.1, 0.2], [0.6, None, 0.8], [0.9, 1.0, None]]
    runs[1]["matrix"][2] = [0.7, None, None]
    results = {"MAUC squared": {"balance": runs}, "LR, tuned": {"balance": [fake_run(0.95, 0.9)]}}
    found = report._rare(results, ["balance"])
    np.testing.assert_allclose(found["MAUC squared"]["balance"], [80, 100, 20, 80, 10, 60])
    sizes = report._pair_sizes(results, ["balance"])
    assert sizes == {"balance": [(200, 50), (50, 200), (500, 50), (50, 500), (500, 200), (200, 500)]}
    (axes,) = rare_pairs(found, sizes, floor=70.0).axes
    ours, others = axes.get_lines()
    np.testing.assert_allclose(ours.get_ydata(), [80, 100, np.nan, 80, np.nan, np.nan])
    np.testing.assert_allclose(others.get_ydata(), 95.0)
    assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["200|50", "50|200"]
    runs[0]["matrix"][2][1] = None
    assert np.isnan(report._rare(results, ["balance"])["MAUC squared"]["balance"][1])
    (whole,) = rare_pairs(found, sizes).axes
    np.testing.assert_allclose(whole.get_lines()[0].get_ydata(), found["MAUC squared"]["balance"])


def test_methods_are_compared_on_the_same_splits(faked):
    """As after a second, shorter run with another method."""
    faked.path(("full", "authors", "rows", "balance", "MAUC hinge", "00")).unlink()
    results = read_results(faked, "authors", "rows", ["balance"], "full")
    assert {name: len(by_table["balance"]) for name, by_table in results.items()} == dict.fromkeys(results, 1)
    assert results["MAUC squared"]["balance"][0]["test"] == pytest.approx(0.92)
    assert results[BEST_OF_OURS]["balance"][0]["test"] == pytest.approx(0.96)
