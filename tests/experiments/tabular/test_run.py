"""The tabular experiment: sets, splits, methods, cells and the report."""

import numpy as np
import pytest

pytest.importorskip("imblearn", reason="needs the extra mauc[bench]")
pytest.importorskip("matplotlib", reason="needs the extra mauc[plot]")
pytest.importorskip("rich", reason="needs the extra mauc[cli]")
pytest.importorskip("lightgbm", reason="needs the extra mauc[boosting]")

from sklearn.utils import Bunch

from mauc import datasets
from mauc.experiments.store import Store, run_cells
from mauc.experiments.tabular import data as tabular_data
from mauc.experiments.tabular import report as tabular_report
from mauc.experiments.tabular import run as tabular
from mauc.experiments.tabular.data import (
    DEVELOPMENT,
    LOOKED_AT,
    OPENML,
    QUICK_SETS,
    SETS,
    check_unchanged,
    load_set,
    set_names,
)
from mauc.experiments.tabular.methods import OURS, Task, entries
from mauc.experiments.tabular.report import _rare_auc, read_results, write_report
from mauc.experiments.tabular.run import cells, task_of

NAMES = [entry.name for entry in entries()]
COMBINATIONS = [OURS, f"{OURS}, weights alone", "average", "best by CV"]


@pytest.fixture(autouse=True)
def fresh():
    load_set.cache_clear()
    task_of.cache_clear()


@pytest.fixture(scope="module")
def task():
    """Three classes, one of them of two samples."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 25, 2])
    X = rng.normal(size=(67, 3)) + 2.0 * np.eye(3)[y]
    return Task(X, y, X + 0.1 * rng.normal(size=X.shape), 3, True)


def test_set_names(tmp_path):
    assert set(DEVELOPMENT).isdisjoint(OPENML)
    assert set(DEVELOPMENT) <= set(SETS)
    assert set(SETS) == set(datasets.names())
    assert set(QUICK_SETS) <= set(SETS)
    assert set_names() == SETS
    assert set_names(quick=True) == QUICK_SETS
    assert set_names(openml=True) == (*SETS, *OPENML)
    with pytest.raises(ValueError, match=r"tables must be a folder with CSV files, got .*: name another folder"):
        set_names(tables=tmp_path)
    for name in ("zebra.csv", "ant.csv", "notes.txt"):
        (tmp_path / name).write_text("")
    assert set_names(tables=tmp_path) == (*SETS, "ant", "zebra")
    (tmp_path / "yeast.csv").write_text("")
    with pytest.raises(ValueError, match=r"tables must hold sets of other names, got yeast\.csv: rename that file"):
        set_names(tables=tmp_path)


def test_a_folder_of_tables(tmp_path):
    rows = ["1,a,x", ",b,y", "3,,z", "5,b,x", "1,a,alone"]
    (tmp_path / "mixed.csv").write_text("\n".join(["size,kind,class", *rows[:4], *rows[:4], rows[4]]))
    X, y = load_set("mixed", None, str(tmp_path))
    np.testing.assert_array_equal(y, [0, 1, 2, 0] * 2, "a class of one row is left out")
    np.testing.assert_array_equal(X[:4, 0], [1, np.nan, 3, 5])
    np.testing.assert_array_equal(X[:4, 1:], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])


def test_a_table_keeps_all_its_rows(tmp_path):
    y = np.repeat(["a", "b", "c"], [700, 300, 3])
    (tmp_path / "large.csv").write_text("\n".join(["x,class", *(f"{k},{c}" for k, c in enumerate(y))]))
    np.testing.assert_array_equal(np.bincount(load_set("large", None, str(tmp_path))[1]), [700, 300, 3])


def test_a_changed_table_is_refused(tmp_path):
    (tmp_path / "own.csv").write_text("x,class\n1,a\n")
    (tmp_path / "other.csv").write_text("x,class\n2,a\n")
    results = tmp_path / "cells"
    check_unchanged(tmp_path, ["own", "yeast"], results)
    (tmp_path / "other.csv").write_text("x,class\n3,a\n")
    check_unchanged(tmp_path, ["own", "other", "yeast"], results)
    (tmp_path / "own.csv").write_text("x,class\n1,b\n")
    with pytest.raises(ValueError, match=r"must be those that .* has results of, got a changed .*own\.csv: choose"):
        check_unchanged(tmp_path, ["own", "other"], results)
    check_unchanged(tmp_path, ["own"], tmp_path / "elsewhere")


@pytest.mark.parametrize(("text", "came"), [("x,class\n1,a\n2,\n", "rows without one"), ("class\na\nb\n", "no other")])
def test_a_table_without_classes(tmp_path, text, came):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(ValueError, match=f"must have a class for every row in its last column, got {came}"):
        load_set("bad", None, str(tmp_path))


def test_missing_numbers_are_those_of_the_training_part(tmp_path):
    rows = [f"{k if k % 5 else ''},{'ab'[k % 2]}" for k in range(1, 41)]
    (tmp_path / "gaps.csv").write_text("\n".join(["x,class", *rows]))
    task, y_test = task_of("gaps", None, 0, True, str(tmp_path))
    assert np.isfinite(task.X_train).all()
    assert np.isfinite(task.X_test).all()
    assert ((task.X_train == 0).sum() + (task.X_test == 0).sum()) == 8
    assert len(y_test) == len(task.X_test)


def test_a_table_of_one_class(tmp_path):
    (tmp_path / "one.csv").write_text("x,class\n1,a\n2,a\n3,b\n")
    with pytest.raises(ValueError, match="one must have two classes of two rows or more, got 1 of 2: is the class"):
        load_set("one", None, str(tmp_path))


def test_a_table_of_a_folder_is_split_and_judged(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [30, 20, 4])
    X = rng.normal(size=(54, 2)) + 2.0 * y[:, None]
    lines = [f"{a},{b},{c}" for (a, b), c in zip(X, y, strict=True)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,class", *lines]))
    work = cells(None, tables=tmp_path, sets=["own"], n_splits=1, quick=True, only=["LR"])
    store = Store(tmp_path / "cells")
    run_cells(work, store)
    run = store.read(("quick", "own", "LR", "00"))
    assert 0.5 < run["test"] <= 1.0
    assert sum(run["test_counts"]) + sum(run["train_counts"]) == 54


def test_methods():
    assert len(set(NAMES)) == len(NAMES)
    assert [entry.name for entry in entries(quick=True)] == NAMES
    assert {entry.family for entry in entries()} == {"ours", "paper", "others", "combinations"}
    assert {"LR", "BM", "MM", "IHT", "NM", "TL"} == {entry.name for entry in entries() if entry.family == "paper"}


# Hardness by cross-validated forests takes longer than all the others together.
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n == "IHT" else []) for n in NAMES])
@pytest.mark.filterwarnings("ignore")
def test_every_method_takes_classes_of_two_samples(task, name):
    outcome = next(entry for entry in entries(quick=True) if entry.name == name).run(task)
    assert outcome.scores.shape == (67, 3)
    assert np.isfinite(outcome.scores).all()
    assert outcome.fit_seconds >= 0


@pytest.mark.filterwarnings("ignore")
def test_combinations_are_made_of_the_same_fits(task):
    runs = {entry.name: entry.run(task) for entry in entries(quick=True) if entry.name in COMBINATIONS}
    assert list(runs[OURS].params["weights"]) == ["lr", "lr_strong", "mauc", "kernel", "et", "rf", "hgb"]
    if runs[OURS].params["penalty"] is None:
        np.testing.assert_allclose(runs[OURS].scores, runs[f"{OURS}, weights alone"].scores)
    assert runs["best by CV"].params["model"] in runs[OURS].params["weights"]
    np.testing.assert_allclose(runs["average"].scores.sum(axis=1), 1.0)


def test_splits(made_up_data):
    task, y_test = task_of("ecoli", str(made_up_data), 1, True)
    X, y = load_set("ecoli", str(made_up_data))
    assert len(task.y_train) + len(y_test) == len(y) == 336
    assert len(task.y_train) == pytest.approx(0.6 * 336, abs=3)
    assert set(task.y_train) == set(y_test) == set(range(8))
    np.testing.assert_allclose(task.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(task.X_train.std(axis=0), 1.0)
    again, _ = task_of("ecoli", str(made_up_data), 0, True)
    assert len(again.X_train) == len(task.X_train)
    assert not np.array_equal(again.X_train, task.X_train)
    assert X.shape[1] == task.X_test.shape[1]


def test_large_sets_keep_their_rare_classes(monkeypatch):
    y = np.repeat([0, 1, 2, 3], [1000, 300, 7, 1])
    X = np.column_stack([np.arange(1308.0), np.ones(1308)])
    monkeypatch.setattr(tabular_data.datasets, "load", lambda name, home: Bunch(X=X, y=y))
    X, y = load_set("kddcup99", None)
    np.testing.assert_array_equal(np.bincount(y), [200, 200, 7])
    assert X.shape == (407, 1), "a constant column says nothing"
    load_set.cache_clear()
    np.testing.assert_array_equal(X, load_set("kddcup99", None)[0])


def test_openml(monkeypatch):
    data = np.array([[1.0, 0], [np.nan, 1], [3.0, np.nan], [5.0, 1]] * 3)
    fetched = Bunch(
        data=data,
        feature_names=["size", "kind"],
        categories={"kind": ["a", "b"]},
        target=np.array(list("xyzx") * 3),
        details={"name": "flags"},
    )
    asked = []
    monkeypatch.setattr(tabular_data.sklearn_datasets, "fetch_openml", lambda **given: asked.append(given) or fetched)
    X, y = load_set("openml-flags", None)
    assert asked[0]["data_id"] == 285
    np.testing.assert_array_equal(y[:4], [0, 1, 2, 0])
    np.testing.assert_array_equal(X[:4, 0], [1, np.nan, 3, 5])
    np.testing.assert_array_equal(X[:4, 1:], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])
    with pytest.raises(ValueError, match="openml-anneal must be OpenML's data set 2, got 'flags'"):
        load_set("openml-anneal", None)


def test_unknown_set():
    with pytest.raises(ValueError, match="set must be one of 'balance', "):
        load_set("iris", None)


def test_cells(made_up_data, tmp_path):
    work = cells(made_up_data, sets=["balance", "ecoli"], n_splits=2, only=["LR", "ET"])
    assert [cell.key for cell in work[:4]] == [
        ("full", "balance", "LR", "00"),
        ("full", "balance", "ET", "00"),
        ("full", "ecoli", "LR", "00"),
        ("full", "ecoli", "ET", "00"),
    ]
    assert len(cells(made_up_data)) == len(SETS) * len(NAMES) * tabular.N_SPLITS
    store = Store(tmp_path / "cells")
    quick = cells(made_up_data, sets=["new-thyroid"], n_splits=1, quick=True, only=["LR", OURS])
    assert run_cells(quick, store) == 2
    assert run_cells(quick, store) == 0
    run = store.read(("quick", "new-thyroid", OURS, "00"))
    assert 0.5 < run["test"] <= 1.0
    assert sum(run["test_counts"]) + sum(run["train_counts"]) == 215
    files = write_report(store, tmp_path, sets=QUICK_SETS, depth="quick")
    names = [file.name for file in files]
    assert names == ["tabular.md", "tabular.csv", "tabular-sets.png"], "ranks need three sets"
    assert "| method | new-thyroid | mean | rank | fit s |" in files[0].read_text(), "sets without results are left out"


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


def test_report(faked, tmp_path):
    page, numbers, *figures = write_report(faked, tmp_path, sets=SOME)
    assert len(figures) == 2
    lines = numbers.read_text().splitlines()
    assert len(lines) == 1 + len(SOME) * 4
    assert "own,MAUC stacking,2,95.5000,0.5000,100.0000,0.2500" in lines
    text = page.read_text()
    assert "over 2 splits, stratified, 60 % training" in text
    judged, chosen = text.index("## Sets that nothing was chosen on (3)"), text.index("the defaults were chosen on (3)")
    assert judged < text.index("own, other, third.") < chosen < text.index("balance, ecoli, shuttle.")
    assert text.count("| MAUC stacking | 94.50 | 1.0 | 100.00 | 0.25 |  |  |  |") == 2
    assert text.count("| ET | 92.50 | 2.0 | 100.00 | 0.25 | +2.00 | 3–0 | 0.7500 |") == 2
    assert "corrected by Holm for 3 methods; its least p there is, before that, 2.5e-01." in text
    assert "| MAUC stacking | **95.50 ± 0.50** | **94.50 ± 0.50** | **93.50 ± 0.50** | 94.50 | 1.0 | 0.25 |" in text
    assert not list(tmp_path.glob(".part-*"))


def test_sets_that_were_looked_at_stand_by_themselves(faked, tmp_path):
    for name in LOOKED_AT[:3]:
        for k, method in enumerate((OURS, "ET", "average", "LR")):
            faked.write(("full", name, method, "00"), {**fake_run(0.9 - 0.01 * k), "fit_seconds": 7.0})
    text = write_report(faked, tmp_path, sets=(*SOME, *LOOKED_AT[:3]))[0].read_text()
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Sets that nothing was chosen on (3)",
        "## Sets that one rule was mended after (3)",
        "## These together (6)",
        "## Sets that the defaults were chosen on (3)",
        "## Every set",
    ]
    assert set(LOOKED_AT).isdisjoint((*SETS, *OPENML))
    assert "over 1 to 2 splits" in text
    assert "| 90.00 | 1.0 | 7.00 |" in text, "seconds are those of the sets of a table"
    assert "| 94.50 | 1.0 | 0.25 |" in text


def test_many_sets_have_a_line_each(tmp_path, monkeypatch):
    monkeypatch.setattr(tabular_report, "FIGURE_SETS", 2)
    monkeypatch.setattr(tabular_report, "SHOWN", 2)
    store = Store(tmp_path / "cells")
    for name, lead in (("ant", 0.0), ("bee", 0.0), ("cat", 0.2), ("dog", 0.0)):
        for k, method in enumerate((OURS, "ET", "LR")):
            store.write(("full", name, method, "00"), fake_run(0.7 - 0.05 * k + (lead if method == "LR" else 0.0)))
    page, *files = write_report(store, tmp_path, sets=("ant", "bee", "cat", "dog"))
    text = page.read_text()
    assert "| set | rows | classes | largest : smallest | MAUC stacking | ET | best of the others |" in text
    assert "| ant | 37 | 3 | 7 | **70.00 ± 0.00** | 65.00 ± 0.00 |  |" in text
    assert "| cat | 37 | 3 | 7 | 70.00 ± 0.00 | 65.00 ± 0.00 | LR 80.00 |" in text
    assert "tabular-sets.png" not in {file.name for file in files}


def test_methods_are_compared_on_the_same_splits(faked):
    faked.path(("full", "balance", "ET", "01")).unlink()
    results = read_results(faked, SOME, "full")
    assert {len(by_set["balance"]) for by_set in results.values()} == {1}
    faked.path(("full", "balance", "ET", "00")).unlink()
    assert "ET" not in read_results(faked, SOME, "full")


def test_no_results_no_report(tmp_path):
    assert write_report(Store(tmp_path / "cells"), tmp_path) == []


def test_rarest_pairs():
    run = fake_run(0.9)
    assert _rare_auc(run) == 1.0, "one of three pairs: classes 1 and 2"
    run["matrix"][1][2] = run["matrix"][2][1] = None
    assert _rare_auc(run) == 0.5
