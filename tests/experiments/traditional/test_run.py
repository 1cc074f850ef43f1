"""The paper's traditional experiments: cells, protocols, the authors' penalty, and the command end to end."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("imblearn", reason="needs the extra mauc[bench]")
pytest.importorskip("matplotlib", reason="needs the extra mauc[plot]")
pytest.importorskip("typer", reason="needs the extra mauc[cli]")

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from typer.testing import CliRunner

from mauc import SurrogateRisk
from mauc.cli import app
from mauc.experiments.store import Store, run_cells
from mauc.experiments.traditional import run as traditional
from mauc.experiments.traditional import stopping as traditional_stopping
from mauc.experiments.traditional.margins import margins
from mauc.experiments.traditional.report import BEST_OF_OURS, read_results, write_report
from mauc.experiments.traditional.run import AUTHORS_SETTINGS, PROTOCOLS, TABLES, cells, methods, parts_of
from mauc.experiments.traditional.stopping import table_of_iterations

PNG = b"\x89PNG"


@pytest.fixture(autouse=True)
def _fresh():
    traditional._load.cache_clear()


def bench(*arguments):
    return CliRunner().invoke(app, ["bench", "traditional", *map(str, arguments)])


def blobs(sizes=(30, 20, 10, 8)):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), 5)) + np.eye(len(sizes), 5)[y], y


@pytest.mark.parametrize(("loss", "factor"), [("squared", 2.0), ("exponential", 1.0), ("hinge", 1.0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_authors_penalty_in_our_terms(loss, factor):
    X, y = blobs()
    model = traditional.with_authors_penalty(loss, 0.6, 0.9, max_iter=25)
    assert (model.solver, model.alpha, model.max_iter) == ("nesterov", 0.9, 25)
    for _ in range(2):
        model.fit(X, y)
        l2 = factor * 0.6 / (4 * 3)
        risk = SurrogateRisk(loss, alpha=0.9).value(y, model.predict_proba(X))
        assert model.objective_ == pytest.approx(risk + 0.5 * l2 * (model.coef_**2).sum(), rel=1e-10)
        assert model.l2 == 0.6, "a second fit starts from the same penalty"


def test_the_authors_penalty_survives_a_failed_fit():
    X, y = blobs()
    model = traditional.with_authors_penalty("squared", 0.6, 0.9, max_iter=1)
    with pytest.raises(ConvergenceWarning):
        model.fit(X, y)
    assert model.l2 == 0.6


def test_the_authors_settings_are_those_of_each_table():
    assert tuple(AUTHORS_SETTINGS) == TABLES
    for table in TABLES:
        by_name = {m.name: m for m in methods(table)}
        for loss, (penalty, alpha) in zip(("squared", "exponential", "hinge"), AUTHORS_SETTINGS[table], strict=True):
            method = by_name[f"MAUC {loss}, authors' settings"]
            model = method.make(**method.grid[0])
            assert (model.surrogate, model.l2, model.alpha, model.max_iter) == (loss, penalty, alpha, 100)


def test_methods():
    full, quick = methods("ecoli"), methods("ecoli", quick=True)
    names = [m.name for m in full]
    assert len(set(names)) == len(names)
    assert names == [m.name for m in quick]
    for name in ("LR", "BM", "MM", "IHT", "NM", "TL"):
        assert {f"{name}, C=1", f"{name}, tuned"} <= set(names), "both ways"
    assert {"LR-balanced, tuned", "HGB", "BRF", "ET", "forest", "plug-in on LR", "plug-in on forest"} <= set(names)
    assert all(len(q.grid) <= len(f.grid) for q, f in zip(quick, full, strict=True))
    assert {m.family for m in full} == {"ours", "paper", "others"}
    assert max(p["alpha"] for m in full if m.name == "MAUC exponential" for p in m.grid) == 10.0
    for method in full:
        for params in method.grid:
            assert hasattr(method.make(**params), "fit")


def test_cells():
    every = cells("folder")
    assert len(every) == 15 * 2 * 9 * len(methods("ecoli"))
    assert len({cell.key for cell in every}) == len(every)
    some = cells(
        None, protocol="80-10-10", preprocessings=("rows",), tables=["yeast"], n_splits=2, quick=True, only=["ET"]
    )
    assert [cell.key for cell in some] == [("quick", "80-10-10", "rows", "yeast", "ET", s) for s in ("00", "01")]


@pytest.mark.parametrize("preprocessing", ["rows", "standard"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_parts(made_up_data, protocol, preprocessing):
    file = np.load(made_up_data / "traditional" / "ecoli.npz")
    parts = parts_of("ecoli", str(made_up_data), protocol, preprocessing, 3)
    rows = {name: getattr(parts, f"X_{name}") for name in ("train", "validation", "test")}
    if protocol == "authors":
        for name in rows:
            np.testing.assert_array_equal(getattr(parts, f"y_{name}"), file["y"][file[name][3]])
    else:
        n = len(file["y"])
        sizes = [len(part) for part in rows.values()]
        assert sum(sizes) == n
        np.testing.assert_allclose(sizes, [0.8 * n, 0.1 * n, 0.1 * n], atol=2)
        together = np.vstack(list(rows.values()))
        assert len(np.unique(together.round(12), axis=0)) == n, "no row is in two parts"
        assert set(np.unique(parts.y_train)) == set(range(8))
        other = parts_of("ecoli", str(made_up_data), protocol, preprocessing, 4)
        assert not np.array_equal(np.sort(other.X_test[:, 0]), np.sort(parts.X_test[:, 0]))
    if preprocessing == "rows":
        np.testing.assert_allclose(np.linalg.norm(rows["test"], axis=1), 1.0)
    else:
        np.testing.assert_allclose(rows["train"].mean(axis=0), 0.0, atol=1e-12)


def test_the_authors_protocol_needs_their_splits(monkeypatch):
    """OpenML has the tables, not the splits."""
    X, y = blobs()
    monkeypatch.setattr(traditional, "_load", lambda *args: Bunch(X=X, y=y, splits=None, name="ecoli"))
    with pytest.raises(ValueError, match="80-10-10"):
        parts_of("ecoli", None, "authors", "rows", 0)
    assert len(parts_of("ecoli", None, "80-10-10", "rows", 0).y_train) == pytest.approx(0.8 * len(y), abs=2)
    monkeypatch.undo()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_methods_end_to_end(real_data, tmp_path, protocol):
    arguments = ("--out", tmp_path, "--data-home", real_data, "--splits", protocol, "--table", "balance", "--quick")
    arguments += ("--n-splits", 2, "--method", "MAUC exponential", "--method", "LR, tuned")
    result = bench(*arguments)
    assert result.exit_code == 0, result.output
    written = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    stems = [f"traditional-{protocol}-{kind}" for kind in ("rows", "standard")]
    pages = {f"{stem}{end}" for stem in stems for end in (".md", "-figure1.png", "-figure2.png")}
    kept = {
        f"cells/quick/{protocol}/{kind}/balance/{name}/{split}.json"
        for kind in ("rows", "standard")
        for name in ("MAUC exponential", "LR, tuned")
        for split in ("00", "01")
    }
    assert written == pages | kept
    assert all(f"wrote {tmp_path / page}" in result.output.replace("\n", "") or page in result.output for page in pages)
    for page in pages:
        content = (tmp_path / page).read_bytes()
        assert (
            content.startswith(PNG)
            if page.endswith("png")
            else b"| method | balance | mean | rank | fit ms |" in content
        )
    store, text = Store(tmp_path / "cells"), (tmp_path / f"{stems[0]}.md").read_text()
    for name in ("MAUC exponential", "LR, tuned"):
        runs = [store.read(("quick", protocol, "rows", "balance", name, split)) for split in ("00", "01")]
        tests = 100 * np.array([run["test"] for run in runs])
        assert (tests > 80).all()
        assert re.search(rf"\| {re.escape(name)} \| \**{tests.mean():.2f} ± {tests.std():.2f}\** \|", text)
    # Again: nothing is computed, everything is written.
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}
    assert bench(*arguments).exit_code == 0
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}


def test_any_choice_of_methods_gives_a_report(made_up_data, tmp_path):
    arguments = ("--out", tmp_path, "--data-home", made_up_data, "--table", "new-thyroid", "--quick", "--n-splits", 1)
    result = bench(*arguments, "--preprocessing", "rows", "--method", "LR-balanced, C=1", "--method", "NM, C=1")
    assert result.exit_code == 0, repr(result.exception)
    assert (tmp_path / "traditional-authors-rows.md").is_file()


def test_several_tables_and_processes(made_up_data, tmp_path):
    arguments = ["--out", tmp_path, "--data-home", made_up_data, "--quick", "--n-splits", 1, "--jobs", 2]
    for name in ("balance", "new-thyroid", "ecoli"):
        arguments += ["--table", name]
    for name in ("MAUC squared", "LR, C=1", "plug-in on LR"):
        arguments += ["--method", name]
    result = bench(*arguments, "--preprocessing", "standard")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "traditional-authors-standard.md").read_text()
    assert "Friedman: χ² = " in text
    assert "hyper-parameters chosen on the validation part alone" in text
    assert (tmp_path / "traditional-authors-standard-ranks.png").read_bytes().startswith(PNG)


def test_a_table_that_is_missing_is_told_in_one_line(made_up_data, tmp_path, monkeypatch):
    """Not the first table alone: no cell is computed for want of the last one."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "empty"))
    arguments = ("--data-home", made_up_data, "--table", "balance", "--table", "svmguide2", "--method", "LR, C=1")
    result = bench("--out", tmp_path / "out", *arguments, "--n-splits", 1, "--quick")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.stderr.startswith("mauc: ")
    assert "svmguide2" in result.stderr


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
    assert not list(tmp_path.glob(".part-*"))


def test_a_method_without_results_everywhere_is_left_out(faked):
    faked.write(("full", "authors", "rows", "balance", "ET", "00"), fake_run(0.9, 0.9))
    results = read_results(faked, "authors", "rows", ["balance", "new-thyroid"], "full")
    assert "ET" not in results
    assert json.loads(faked.path(("full", "authors", "rows", "balance", "ET", "00")).read_text())["test"] == 0.9


def test_methods_are_compared_on_the_same_splits(faked):
    """As after a second, shorter run with another method."""
    faked.path(("full", "authors", "rows", "balance", "MAUC hinge", "00")).unlink()
    results = read_results(faked, "authors", "rows", ["balance"], "full")
    assert {name: len(by_table["balance"]) for name, by_table in results.items()} == dict.fromkeys(results, 1)
    assert results["MAUC squared"]["balance"][0]["test"] == pytest.approx(0.92)
    assert results[BEST_OF_OURS]["balance"][0]["test"] == pytest.approx(0.96)


def test_the_margins_say_what_they_are_over(faked, tmp_path):
    tables = ["balance", "new-thyroid", "svmguide2"]
    (page, *_) = write_report(faked, tmp_path, preprocessings=("rows",), tables=tables)
    lines = [line for line in page.read_text().split("## Margins")[1].splitlines() if line.startswith("| ")]
    assert lines[0] == "| difference of means | balance | new-thyroid | svmguide2 | mean |"
    assert lines[1] == "| the paper's Figure 1 | +5.30 | +1.30 | +1.40 | +2.67 |"
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| exponential − best of the authors' code",
        "| chosen by validation − best of the authors' code",
    ], "competitors that were not all run give no margin"
    assert lines[2].split(" | ")[1] == f"{93.0 - 94.98:+.2f}"


def test_margins_over_all_competitors():
    ours = {f"MAUC {loss}": {"balance": 90.0 + k} for k, loss in enumerate(traditional.LOSSES)}
    others = {"LR, C=1": 80.0, "MM, C=1": 85.0, "LR, tuned": 91.5, "MM, tuned": 88.0, "LR-balanced, tuned": 91.0}
    means = ours | {name: {"balance": score} for name, score in others.items()} | {"chosen": {"balance": 91.0}}
    rows = margins(means, ["balance"], ["LR", "MM"], "chosen", "80-10-10").splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["+5.30", "+12.00", "+7.00", "+0.50", "+0.00"]


def test_stopping_early_is_a_table_of_its_own(real_data, tmp_path):
    store = Store(tmp_path)
    assert table_of_iterations(store, "authors", ["new-thyroid"]) is None
    work = traditional_stopping.cells(real_data, protocol="authors", tables=["new-thyroid"], n_splits=2)
    run_cells(work, store)
    lines = table_of_iterations(store, "authors", ["new-thyroid"]).splitlines()
    assert lines[0] == "| authors' λ and α | new-thyroid |"
    assert len(lines) == 2 + 3 * len(traditional_stopping.ITERATIONS)
    assert all(50.0 < float(line.split("|")[2]) <= 100.0 for line in lines[2:])
