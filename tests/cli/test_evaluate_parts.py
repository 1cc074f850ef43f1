"""``mauc evaluate`` of tables in parts: words, numbers and page of one file, and errors that name the part."""

import inspect
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")

import pandas as pd

from mauc._cli.evaluate import evaluate

CLASSES = ["ash", "elm", "fir", "oak"]


def make_scores(n=600, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    y = rng.choice(CLASSES, n, p=[0.05, 0.15, 0.2, 0.6])
    z = rng.normal(size=(n, 4)) + 1.5 * (y[:, None] == CLASSES)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return pd.DataFrame(np.round(p, 1) if ties else p, columns=CLASSES).assign(truth=y, remark="x")


def write_parts(table, folder, edges=(0, 0, 7, 250, 250, 600)):
    """Parts of uneven sizes, some of them without a row."""
    folder.mkdir(parents=True)
    for k, (begin, end) in enumerate(pairwise(edges)):
        table.iloc[begin:end].to_parquet(folder / f"{k}.parquet", index=False)


def numbers(result):
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    found.pop("files")
    return found


def make_predictions(n=600):
    """Scores as mauc predict writes them, with all that an evaluation looks at."""
    rng = np.random.default_rng(1)
    table = make_scores(n).rename(columns={c: f"score:{c}" for c in CLASSES})
    table["score:yew"] = 0.125
    table["predicted"] = np.where(rng.random(n) < 0.3, "oak", table["truth"])
    table["trained_on"] = np.where(rng.random(n) < 0.1, "yes", "no")
    table["patient_id"] = [f"p{k // 4:03}" for k in range(n)]
    table["sex"] = rng.choice(["f", "m"], n)
    table["day"] = pd.date_range("2024-01-01", periods=n, freq="7h")
    table["mark"] = rng.choice(["a", "?"], n)
    return table


def both_ways(run, tmp_path, monkeypatch, tables, *options):
    """The output and the report of one file for each table, and of parts in folders of the same names."""
    outputs = []
    for way in ("file", "parts"):
        folder = tmp_path / way
        folder.mkdir(exist_ok=True)
        for k, (name, table) in enumerate(tables.items()):
            path = folder / f"{name}.parquet"
            if way == "file":
                table.to_parquet(path, index=False)
            elif not path.exists():
                write_parts(table, path, (0, 7, 7, 250 + k, 600))
        monkeypatch.chdir(folder)
        done = run("evaluate", "s.parquet", *options)
        page = Path("mauc-report/evaluation.html")
        said = re.sub(r" of \w+\.parquet/\d\.parquet", "", done.stderr)
        outputs.append((done.exit_code, said, done.stdout, page.read_text() if page.exists() else None))
    return outputs


OTHERS = make_predictions().assign(**{f"score:{c}": make_scores(seed=3)[c] for c in CLASSES})
TABLES = {
    "s": make_predictions(),
    "o": OTHERS,
    "t": make_predictions()[["truth", "patient_id"]],
    "shuffled": OTHERS.sort_values(["truth", "day"], ascending=[True, False]).sort_index(key=lambda k: k % 7),
    "gaps": make_predictions().assign(truth=lambda t: t["truth"].where(t.index % 5 > 0)),
    "marks": make_predictions().assign(truth=lambda t: t["truth"].where(t["mark"] == "a", "?")),
}
TARGET = ("--target", "truth")
OPTIONS = {
    "target": [(), ("--target", "tru"), ("--target", "day"), ("--target", "patient_id"), TARGET],
    "compare": [
        (*TARGET, "--compare", "o.parquet"),
        (*TARGET, "--compare", "shuffled.parquet"),
        (*TARGET, "--compare", "o.parquet", "--compare", "o.parquet"),
    ],
    "truth": [
        (*TARGET, "--truth", "t.parquet"),
        ("--truth", "t.parquet"),
        (*TARGET, "--truth", "shuffled.parquet"),
    ],
    "prefix": [(*TARGET, "--prefix", "score:"), (*TARGET, "--prefix", "p_")],
    "group": [(*TARGET, "--group", "patient_id", "--compare", "o.parquet"), (*TARGET, "--group", "nobody")],
    "by": [(*TARGET, "--by", "sex"), (*TARGET, "--by", "sex", "--group", "patient_id"), (*TARGET, "--by", "day")],
    "bins": [(*TARGET, "--bins", "4096"), (*TARGET, "--bins", "4096", "--by", "sex")],
    "level": [(*TARGET, "--level", "0.8"), (*TARGET, "--level", "2")],
    "drop_unlabelled": [
        (*TARGET, "--truth", "gaps.parquet"),
        (*TARGET, "--truth", "gaps.parquet", "--drop-unlabelled", "--by", "sex"),
    ],
    "missing": [
        (*TARGET, "--truth", "marks.parquet"),
        (*TARGET, "--truth", "marks.parquet", "--drop-unlabelled", "--missing", "?"),
        (*TARGET, "--missing", "0.125"),
        (*TARGET, "--group", "mark", "--missing", "?"),
    ],
    "encoding": [(*TARGET, "--encoding", "cp1250")],
    "separator": [(*TARGET, "--separator", "tab")],
    "header": [(*TARGET, "--no-header")],
    "sheet": [(*TARGET, "--sheet", "x")],
    "report": [(*TARGET, "--report", "mauc-report/evaluation.html"), (*TARGET, "--report", "page.csv")],
    "no_report": [(*TARGET, "--no-report")],
    "max_size": [(*TARGET, "--max-size", "0")],
}


def test_every_option_has_a_case():
    assert {"scores", *OPTIONS} == set(inspect.signature(evaluate).parameters)


@pytest.mark.parametrize("option", OPTIONS)
def test_parts_give_what_one_file_gives(run, tmp_path, monkeypatch, option):
    """The same words, numbers and page, whatever is asked for."""
    for case in OPTIONS[option]:
        for form in ((), ("--json",)):
            one, parts = both_ways(run, tmp_path, monkeypatch, TABLES, *case, *form)
            assert one == parts


@pytest.mark.parametrize("ties", [True, False])
def test_parquet_gives_what_text_gives(run, tmp_path, ties):
    table = make_scores(ties=ties)
    write_parts(table, tmp_path / "parts")
    table.to_csv(tmp_path / "w.csv", index=False)
    options = ("--target", "truth", "--json", "--no-report")
    expected, found = (numbers(run("evaluate", name, *options)) for name in ("w.csv", "parts"))
    assert (expected["models"][0].pop("name"), found["models"][0].pop("name")) == ("w.csv", "parts")
    assert found == expected


def test_shuffled_rows_are_refused_in_parts(run, fails, tmp_path):
    """Whose classes agree: only the cells of other columns show it."""
    table = make_predictions().sort_values("truth", ignore_index=True)
    other = table.sort_values(["truth", "patient_id"], ascending=[True, False], ignore_index=True)
    write_parts(table, tmp_path / "a")
    write_parts(other, tmp_path / "b", (0, 300, 600))
    words = fails("evaluate", "a", "--target", "truth", "--compare", "b")
    assert "b and a must have the same rows in the same order, got other cells in column 'patient_id'" in words
    assert "(first: row 1 of b/0.parquet)" in words


def test_predictions_and_training_rows_count_in_parts(run, tmp_path):
    table = make_predictions()
    write_parts(table, tmp_path / "parts")
    done = run("evaluate", "parts", "--target", "truth", "--json", "--no-report")
    assert numbers(done)["models"][0]["accuracy"] == (table["predicted"] == table["truth"]).mean()
    n_trained = (table["trained_on"] == "yes").sum()
    assert numbers(done)["notes"][0].startswith(f"{n_trained} of these 600 rows were training rows")
    assert "column 'patient_id' of parts holds codes that recur" in done.stderr


def test_parts_are_read_in_the_order_of_their_numbers(run, tmp_path):
    table = make_scores(1100)
    (tmp_path / "parts").mkdir()
    for k in range(11):
        rows = table.iloc[100 * k : 100 * k + 100].drop(columns="truth")
        rows.to_parquet(tmp_path / "parts" / f"part-{k}.parquet", index=False)
    table[["truth"]].to_parquet(tmp_path / "t.parquet", index=False)
    table.to_parquet(tmp_path / "w.parquet", index=False)
    options = ("--target", "truth", "--json", "--no-report")
    expected = numbers(run("evaluate", "w.parquet", *options))["models"][0]["mauc"]
    in_text_order = sorted(f"parts/part-{k}.parquet" for k in range(11))
    for files in (["parts"], in_text_order):
        done = run("evaluate", *files, "--truth", "t.parquet", *options)
        assert numbers(done)["models"][0]["mauc"] == expected
        assert "are read in the order of their numbers: part-0.parquet, part-1.parquet, part-2.parquet, part-" in (
            done.stderr
        )
    as_typed = ["parts/part-0.parquet", *reversed(in_text_order[1:])]
    done = run("evaluate", *as_typed, "--truth", "t.parquet", *options)
    assert numbers(done)["models"][0]["mauc"] != expected, "an order of the user's own stays"
    assert "numbers" not in done.stderr


def test_whole_numbers_that_float64_merges_are_refused(fails, tmp_path):
    table = make_scores()
    big = (table["elm"] * 100).astype("int64") + 2**60
    table.assign(elm=big).to_parquet(tmp_path / "s.parquet", index=False)
    table.assign(elm=big).to_csv(tmp_path / "s.csv", index=False)
    for name in ("s.parquet", "s.csv"):
        words = fails("evaluate", name, "--target", "truth")
        assert f"column 'elm' of {name} holds whole numbers of 2**53 or more, of which float64 merges some" in words


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["007", "7", "10"], {"007", "7", "10"}),
        ([1.0, 2.0, 10.0], {"1", "2", "10"}),
        ([True, False, True], {"True", "False"}),
        ([" a", "b ", "c"], {"a", "b", "c"}),
    ],
)
def test_classes_are_written_as_in_the_whole(run, tmp_path, values, shown):
    rng = np.random.default_rng(0)
    y = np.repeat(np.array(values, dtype=object), 20)
    table = pd.DataFrame({"y": y, **{name: rng.normal(size=60) for name in sorted(shown)}}).infer_objects()
    write_parts(table, tmp_path / "parts", (0, 20, 40, 60))
    found = numbers(run("evaluate", "parts", "--target", "y", "--json", "--no-report"))
    assert {c["class"] for c in found["classes"]} == shown


def test_what_is_wrong_names_the_part(fails, run, tmp_path):
    table = make_scores()

    def refused(change, *options, code=1):
        parts = tmp_path / "bad"
        write_parts(table, parts)
        change(table.iloc[250:600].copy()).to_parquet(parts / "4.parquet", index=False)
        words = fails("evaluate", "bad", "--target", "truth", *options, code=code)
        for path in parts.iterdir():
            path.unlink()
        parts.rmdir()
        return words

    def with_gap(t):
        t.iloc[4, 1] = np.nan
        return t

    assert "column 'elm' of bad has a score that is missing (row 5 of bad/4.parquet)" in refused(with_gap)
    assert "infinite" in refused(lambda t: t.assign(elm=np.inf))
    words = refused(lambda t: t.drop(columns="fir"))
    assert "bad/4.parquet has no column 'fir', but bad/0.parquet has" in words
    assert "bad/0.parquet has no column 'yew', but bad/4.parquet has" in refused(lambda t: t.assign(yew=1.0))
    words = refused(lambda t: t.assign(elm=t["elm"].astype("float32")))
    assert "column 'elm' of bad/4.parquet holds float, and double in parts before it" in words
    words = refused(lambda t: t.assign(truth=t["truth"].where(t["truth"] != "elm")))
    assert re.search(r"column 'truth' of bad has no class in \d+ rows \(first: row \d+ of bad/4\.parquet\)", words)
    assert "did you mean 'truth'?" in refused(lambda t: t, "--target", "truht", code=2)
    words = refused(lambda t: t.assign(truth=np.where(np.arange(350) == 9, "yew", t["truth"])))
    assert "bad has no column 'yew' with the scores of class 'yew', first in row 10 of bad/4.parquet" in words


def test_random_bytes_in_a_part_are_damage_and_no_scores(fails, tmp_path):
    """They decode to numbers: the range that the file gives for the column excludes them."""
    options = {"compression": None, "use_dictionary": False, "index": False}
    folder = tmp_path / "scores"
    folder.mkdir()
    table = make_scores()
    for k in range(2):
        table.iloc[300 * k : 300 * (k + 1)].to_parquet(folder / f"{k}.parquet", **options)
    data = (folder / "1.parquet").read_bytes()
    at = data.index(table["elm"].to_numpy()[310:330].tobytes())
    noise = np.random.default_rng(0).bytes(160)
    (folder / "1.parquet").write_bytes(data[:at] + noise + data[at + 160 :])
    words = fails("evaluate", "scores", "--target", "truth")
    assert "scores/1.parquet is damaged: column 'elm' holds" in words
    assert "which the file gives as its range: write the file again" in words
    table.iloc[300:].to_parquet(folder / "1.parquet", **options, write_page_checksum=True)
    data = (folder / "1.parquet").read_bytes()
    at = data.index(table["elm"].to_numpy()[310:330].tobytes())
    (folder / "1.parquet").write_bytes(data[:at] + table["elm"].to_numpy()[:20].tobytes() + data[at + 160 :])
    words = fails("evaluate", "scores", "--target", "truth")
    assert "scores/1.parquet cannot be read as Parquet" in words
    assert "CRC checksum verification failed" in words


def test_the_share_that_is_read_is_told(tmp_path):
    from mauc._tables.parts import find_files, open_table
    from mauc._tables.text import Reading

    write_parts(make_scores(), tmp_path / "scores", (0, 150, 600))
    table, told = open_table(find_files([tmp_path / "scores"], "SCORES"), Reading()), []
    table.tell = told.append
    list(table.slices(["ash", "elm"], 300))
    place = f"reading 2 columns of {table.display}, part"
    assert told == [f"{place} 1 of 2: 0%", f"{place} 2 of 2: 25%", f"{place} 2 of 2: 75%"]


def test_types_are_compared_past_an_empty_part(fails, tmp_path):
    table = make_scores()
    (tmp_path / "parts").mkdir()
    for k, truth in enumerate((None, 1, "elm")):
        rows = table.head(30 if k else 0)
        rows.assign(truth=truth).astype({"truth": object}).to_parquet(tmp_path / "parts" / f"{k}.parquet", index=False)
    words = fails("evaluate", "parts", "--target", "truth")
    assert "column 'truth' of parts/2.parquet holds string, and int64 in parts before it" in words


def test_files_that_are_no_parts_of_one_table(fails, tmp_path, little_memory):
    table = make_scores()
    write_parts(table, tmp_path / "parts", (0, 300, 600))
    evaluate = ("evaluate", "--target", "truth")
    assert "File not found: nowhere.parquet" in fails(*evaluate, "parts", "nowhere.parquet")
    assert "names parts/0.parquet twice" in fails(*evaluate, "parts", "parts/0.parquet", code=2)
    (tmp_path / "empty").mkdir()
    assert "the folder empty holds no file that ends in" in fails(*evaluate, "empty")
    (tmp_path / "empty" / "t.xlsx").touch()
    assert fails(*evaluate, "empty").endswith("must be: save it as Parquet"), "no line of Python for CSV"
    assert "File not found: a.parquet" in fails("evaluate", "a.parquet", "b.parquet")  # without --target too
    table.iloc[::-1].to_parquet(tmp_path / "turned.parquet")
    words = fails(*evaluate, "parts", "--compare", "turned.parquet")
    assert "turned.parquet has other classes in 'truth' than parts (first: row 1)" in words
    table.iloc[:599].drop(columns="truth").to_parquet(tmp_path / "short.parquet")
    assert "short.parquet has 599 rows and parts has 600" in fails(*evaluate, "parts", "--compare", "short.parquet")
    (tmp_path / "parts" / "1.parquet").write_bytes(b"PAR1 cut off")
    assert "parts/1.parquet cannot be read as Parquet" in fails(*evaluate, "parts")
    table.assign(elm="x").to_parquet(tmp_path / "text.parquet", index=False)
    little_memory()
    assert "column 'elm' of text.parquet must hold numbers" in fails(*evaluate, "text.parquet")


def test_csv_in_parts_is_to_be_saved_as_parquet(run, fails, tmp_path, little_memory):
    """The message holds a line of Python that does it, for several files and for one that does not fit."""
    codes = dict(zip(CLASSES, ("01", "02", "03", "04"), strict=True))
    table = make_scores().replace({"truth": codes}).rename(columns=codes)
    for name in ("s.csv", "t.csv"):
        table.to_csv(tmp_path / name, index=False)
    evaluate = ("evaluate", "--target", "truth", "--json", "--no-report")
    whole = numbers(run(*evaluate, "s.csv"))
    several = fails(*evaluate, "s.csv", "t.csv")
    little_memory()
    alone = fails(*evaluate, "s.csv")
    assert alone == several
    said, _, line = alone.partition("save it by ")
    assert "s.csv is not Parquet, and a table in several files or larger than memory must be" in said
    exec(line.replace("10**6", "200"), {"pandas": pd})
    found = numbers(run(*evaluate, *sorted(path.name for path in tmp_path.glob("s-*.parquet"))))
    for each in (found, whole):
        del each["models"][0]["name"]
    assert found == whole


def test_groups_that_do_not_fit_in_memory_are_refused(run, fails, tmp_path, monkeypatch):
    make_predictions().to_parquet(tmp_path / "s.parquet", index=False)
    monkeypatch.setattr("mauc._cli.judging.GIB", 100_000.0)
    monkeypatch.setattr("mauc._cli.judging.available_memory", lambda: 20_000.0)
    assert run("evaluate", "s.parquet", "--target", "truth", "--no-report").exit_code == 0
    words = fails("evaluate", "s.parquet", "--target", "truth", "--by", "sex")
    assert "s.parquet has 600 rows, which need 1.9 GiB of memory with --group or --by, and 0.2 are free" in words


def test_long_ids_beside_a_missing_one_are_compared_in_parts(run, fails, tmp_path):
    table = make_scores().assign(id=pd.array(4 * 10**18 + np.arange(600), dtype="Int64"))
    table.loc[3, "id"] = pd.NA
    other = table.copy()
    other.loc[[300, 301], "id"] = table["id"].iloc[[301, 300]].to_numpy()
    for name, rows in (("a", table), ("b", table), ("swapped", other)):
        write_parts(rows, tmp_path / name)
    evaluate = ("evaluate", "a", "--target", "truth", "--no-report", "--compare")
    assert run(*evaluate, "b").exit_code == 0
    assert "cells in column 'id' (first: row 51 of swapped/4.parquet)" in fails(*evaluate, "swapped")


def test_lists_are_no_classes_and_no_groups(fails, tmp_path):
    table = make_scores().assign(sizes=[[1, k % 2] for k in range(600)])
    write_parts(table, tmp_path / "s")
    for options in (("--target", "sizes"), ("--target", "truth", "--group", "sizes")):
        words = fails("evaluate", "s", *options)
        assert "column 'sizes' of s holds lists, not single values: choose another column" in words


@pytest.mark.parametrize("kind", ["probabilities", "logits"])
def test_bins(run, tmp_path, kind):
    table = make_scores()
    if kind == "logits":
        table[CLASSES] = 9.0 * np.log(table[CLASSES])
    write_parts(table, tmp_path / "s")
    exact = numbers(run("evaluate", "s", "--target", "truth", "--no-report", "--json"))["models"][0]
    done = run("evaluate", "s", "--target", "truth", "--bins", "65536", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert abs(found["mauc"]["score"] - exact["mauc"]["score"]) <= found["mauc"]["bound"] + 1e-12
    assert found["mauc"]["stderr"] == pytest.approx(exact["mauc"]["stderr"], rel=1e-2)
    assert abs(found["ova"]["score"] - exact["ova"]["score"]) <= found["ova"]["bound"] + 1e-12
    assert found["classes"] == table["truth"].value_counts().to_dict()
    words = run("evaluate", "s", "--target", "truth", "--bins", "65536").stdout
    assert f"{found['mauc']['score']:.6f} ± {found['mauc']['bound']:.1g}" in words
    assert not Path("mauc-report").exists()


def test_bins_do_not_keep_rows(fails, tmp_path):
    table = make_scores()
    table.to_parquet(tmp_path / "s.parquet")
    evaluate = ("evaluate", "s.parquet", "--target", "truth", "--bins")
    assert "--bins has no effect with --group, which needs" in fails(*evaluate, "64", "--group", "remark", code=2)
    assert "--bins must be from 8 to 16777216, got 1" in fails(*evaluate, "1", code=2)
