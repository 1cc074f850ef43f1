"""IDs, groups and classes keep every digit and letter from the file to the scores."""

import numpy as np
import pandas as pd
import pytest

QUICK = ("--effort", "quick", "--no-importance", "--no-report", "--seed", "0")
LONG = 4_000_123_412_341_234


def written(values):
    """Cells as text, empty where a value is None."""
    return ["" if value is None else str(value) for value in values]


@pytest.fixture
def scored(tmp_path):
    rng = np.random.default_rng(0)
    y = np.array(["ash", "elm", "oak"])[rng.integers(0, 3, 400)]
    table = pd.DataFrame(rng.normal(size=(400, 3)) + 2 * (y[:, None] == ["ash", "elm", "oak"]))
    return table.set_axis(["ash", "elm", "oak"], axis=1).assign(cls=y)


IDS = {
    "16 digits": [LONG + k for k in range(400)],
    "19 digits beside an empty cell": [None, *(1000 * LONG + k for k in range(399))],
    "21 digits": [10**5 * LONG + k for k in range(400)],
    "21 digits beside an empty cell": [None, *(10**5 * LONG + k for k in range(399))],
    "digits and one word": ["first", *(1000 * LONG + k for k in range(399))],
}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_shuffled_files_are_refused(fails, run, scored, tmp_path, kind, form):
    ids = IDS[kind]
    if form == "csv":
        table = scored.assign(id=written(ids))
    elif kind.startswith("21") or "word" in kind:
        table = scored.assign(id=[None if each is None else str(each) for each in ids])
    else:
        table = scored.assign(id=pd.array(ids, dtype="Int64"))

    def write(rows, name):
        path = f"{name}.{form}"
        rows.to_csv(path, index=False) if form == "csv" else rows.to_parquet(path, index=False)
        return path

    order = np.r_[0, 1 + np.random.default_rng(0).permutation(399)]  # an empty cell stays where it is
    shuffled = table.iloc[order]
    a, b = write(table, "a"), write(shuffled.drop(columns="cls"), "b")
    words = fails("evaluate", a, "--target", "cls", "--compare", b, "--no-report")
    assert "must have the same rows in the same order, got other cells in column 'id'" in words
    truth, alone = write(shuffled[["id", "cls"]], "truth"), write(table.drop(columns="cls"), "alone")
    words = fails("evaluate", alone, "--target", "cls", "--truth", truth, "--no-report")
    assert "must have the same rows in the same order, got other cells in column 'id'" in words
    same = write(table.drop(columns="cls"), "same")
    assert run("evaluate", a, "--target", "cls", "--compare", same, "--no-report").exit_code == 0


def test_kept_columns_are_written_as_they_were_read(run, model, trees, tmp_path):
    columns = {
        "long": [1000 * LONG + k for k in range(4)] + [None],
        "whole": [1, 2, 3, 4, None],
        "well": ["0E0", "1E1", "1.10", "007", "1.0"],
        "truth": ["TRUE", "false", "True", "NA", "?"],
        "blank": [" a", "b ", "-1", "+2", "null"],
        "height": ["1.50", "2", "", "1e0", "3.000"],
    }
    table = trees.head(5).astype(object).assign(**{name: written(cells) for name, cells in columns.items()})
    table.to_csv("new.csv", index=False)
    keep = [word for name in columns for word in ("--keep", name)]
    result = run("predict", model, "new.csv", "--missing", "?", *keep)
    assert result.exit_code == 0, result.output
    found = pd.read_csv("scores.csv", dtype=str, keep_default_na=False)
    for name, cells in columns.items():
        assert found[name].tolist() == written(cells), name
    assert found["species"].tolist() == table["species"].tolist()
    as_numbers = table.assign(long=pd.array(columns["long"], dtype="Int64"), height=[1.5, 2, None, 1, 3])
    as_numbers.to_parquet("new.parquet")
    assert run("predict", model, "new.parquet", "--keep", "long").exit_code == 0
    again = pd.read_csv("scores.csv", dtype=str, keep_default_na=False)
    assert again["long"].tolist() == written(columns["long"])
    pd.testing.assert_frame_equal(
        again.filter(like="score:"), found.filter(like="score:"), obj="a copy changes no feature"
    )


@pytest.fixture
def patients():
    """Twelve patients of ten rows, whose class and measurement they mostly share; one row is not labelled."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(12), 10)
    y = np.array(["ill", "well"])[patient % 2]
    table = pd.DataFrame({"x": rng.normal(patient % 2, 1.0), "patient": written(1000 * LONG + patient), "y": y})
    last = pd.DataFrame({"x": [0.5], "patient": [""], "y": [""]})
    return pd.concat([table, last], ignore_index=True)


def test_groups_of_long_numbers_stay_apart(run, patients):
    named = patients.assign(patient=patients["patient"].map(lambda each: each and f"p{each}"))
    patients.to_csv("long.csv", index=False)
    named.to_csv("named.csv", index=False)
    printed = []
    for name in ("long.csv", "named.csv"):
        scores = pd.read_csv(name, dtype=str, keep_default_na=False)
        x = scores.pop("x").astype(float)
        scores.assign(ill=-x, well=x).to_csv("scores.csv", index=False)
        result = run(
            *("evaluate", "scores.csv", "--target", "y", "--group", "patient", "--drop-unlabelled", "--no-report")
        )
        assert result.exit_code == 0, result.output
        fit = run("fit", name, "--target", "y", "--group", "patient", "--drop-unlabelled", *QUICK)
        assert fit.exit_code == 0, fit.output
        printed.append(result.stdout)
    assert printed[0] == printed[1]


def test_groups_that_floats_merged_are_refused(patients):
    from mauc import fit_table

    table = patients.iloc[:-1].assign(patient=[float(each) for each in patients["patient"].iloc[:-1]])
    with pytest.raises(ValueError, match=r"column 'patient' .* holds 4.00012e\+18, too large to be read exactly: use"):
        fit_table(table, "y", group="patient", effort="quick")


def test_classes_keep_their_names(run, trees):
    names = {"oak": "1E1", "elm": "10", "yew": "2E1", "ash": "5"}
    trees.assign(species=trees["species"].map(names)).to_csv("t.csv", index=False)
    assert run("fit", "t.csv", "--target", "species", *QUICK).exit_code == 0
    assert run("predict", "model.skops", "t.csv").exit_code == 0
    found = pd.read_csv("scores.csv", dtype=str)
    assert sorted(name for name in found.columns if name.startswith("score:")) == [
        *("score:10", "score:1E1", "score:2E1", "score:5")
    ]
    assert found["species"].tolist() == trees["species"].map(names).tolist()
    assert set(found["predicted"]) <= set(names.values())
    judged = run("evaluate", "scores.csv", "--target", "species", "--no-report")
    assert judged.exit_code == 0, judged.output
    assert "4 classes" in judged.stdout or "1E1" in judged.stdout


def test_an_empty_cell_is_no_class_beside_long_numbers(fails, trees):
    names = {"oak": "123456789012345678901", "elm": "18000123412341234567", "yew": "w", "ash": ""}
    trees.assign(species=trees["species"].map(names)).to_csv("t.csv", index=False)
    n = int((trees["species"] == "ash").sum())
    assert f"column 'species' of t.csv has no class in {n} rows" in fails("fit", "t.csv", "--target", "species", *QUICK)
