"""Tables and figures of the tabular experiment."""

import pytest

from experiments.store import Store
from experiments.tabular.data import (
    LOOKED_AT,
    SETS,
)
from experiments.tabular.methods import OURS
from experiments.tabular.report import _rare_auc, every_set, read_results, write_report


def fake_run(test):
    matrix = [[None, test, 0.5], [test, None, 1.0], [0.5, 1.0, None]]
    return {
        "test": test,
        "params": {},
        "fit_seconds": 0.25,
        "matrix": matrix,
        "test_counts": [9, 5, 1],
        "train_counts": [12, 8, 2],
    }


SOME = ("balance", "ecoli", "shuttle", "own", "other", "third")


@pytest.fixture
def faked(tmp_path):
    store = Store(tmp_path / "cells")
    for s, name in enumerate(SOME):
        for m, method in enumerate((OURS, "ET", "average", "LR")):
            for split in range(2):
                run = fake_run(0.95 - 0.02 * m - 0.01 * (s % 3) + 0.01 * split)
                store.write(("full", name, method, f"{split:02d}"), run)
    return store


@pytest.mark.usefixtures("undrawn")
def test_report(faked, tmp_path):
    page, numbers, figure = write_report(faked, tmp_path, sets=SOME)
    assert figure.name == "tabular-ranks.png"
    lines = numbers.read_text().splitlines()
    assert len(lines) == 1 + len(SOME) * 4
    assert "own,MAUC stacking,2,95.5000,0.5000,100.0000,0.2500" in lines
    text = page.read_text()
    assert "over 2 splits, stratified, 60 % training" in text
    judged, chosen = (
        text.index("## Held-out sets (3)"),
        text.index("Bundled sets on which the stack was developed (3)"),
    )
    assert judged < text.index("own, other, third.") < chosen < text.index("balance, ecoli, shuttle.")
    assert "<details><summary>All 4 methods" not in text, "a few methods are not folded away"
    assert text.count("<details>") == text.count("\n\n</details>") == 2, "the tables of sets"
    assert text.count("| MAUC stacking | 94.50 | 1.0 | 100.00 | 0.25 |  |  |  |") == 2
    assert text.count("| ET | 92.50 | 2.0 | 100.00 | 0.25 | +2.00 | 3–0 | 0.7500 |") == 2
    assert "corrected by Holm for 3 methods; the smallest p that it can give, before correction, is 2.5e-01." in text
    assert "| balance | 37 | 3 | 7 | **95.50 ± 0.50** | 93.50 ± 0.50 | 91.50 ± 0.50 | 89.50 ± 0.50 |  |" in text
    assert not list(tmp_path.glob(".part-*"))


@pytest.mark.usefixtures("undrawn")
def test_sets_that_were_looked_at_stand_by_themselves(faked, tmp_path):
    for name in LOOKED_AT[:3]:
        for k, method in enumerate((OURS, "ET", "average", "LR")):
            faked.write(("full", name, method, "00"), {**fake_run(0.9 - 0.01 * k), "fit_seconds": 7.0})
    text = write_report(faked, tmp_path, sets=(*SOME, *LOOKED_AT[:3]))[0].read_text()
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Held-out sets (3)",
        "## Public sets on which the stack was developed (3)",
        "## Bundled sets on which the stack was developed (3)",
        "## Every set",
    ]
    assert set(LOOKED_AT).isdisjoint(SETS)
    assert "over 1 to 2 splits" in text
    assert "| MAUC stacking | 90.00 | 1.0 | 100.00 | 7.00 |" in text, "seconds are those of the sets of a table"
    assert "| MAUC stacking | 94.50 | 1.0 | 100.00 | 0.25 |" in text


def test_a_line_of_a_set_names_a_better_method_that_is_not_shown(tmp_path):
    store = Store(tmp_path / "cells")
    for name, lead in (("ant", 0.0), ("bee", 0.0), ("cat", 0.2), ("dog", 0.0)):
        for k, method in enumerate((OURS, "ET", "LR")):
            store.write(("full", name, method, "00"), fake_run(0.7 - 0.05 * k + (lead if method == "LR" else 0.0)))
    sets = ("ant", "bee", "cat", "dog")
    text = every_set(read_results(store, sets, "full"), sets, most_methods=2)
    assert "| set | rows | classes | largest : smallest | MAUC stacking | ET | best of the others |" in text
    assert "| ant | 37 | 3 | 7 | **70.00** | 65.00 |  |" in text
    assert "| cat | 37 | 3 | 7 | 70.00 | 65.00 | LR 80.00 |" in text


def test_no_results_no_report(tmp_path):
    assert write_report(Store(tmp_path / "cells"), tmp_path) == []


def test_rarest_pairs():
    run = fake_run(0.9)
    assert _rare_auc(run) == 1.0, "one of three pairs: classes 1 and 2"
    run["matrix"][1][2] = run["matrix"][2][1] = None
    assert _rare_auc(run) == 0.5
