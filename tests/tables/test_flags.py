"""Flags: each kind of leak and flattering split is found, and honest tables have none."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier

from mauc import mauc_interval, mauc_score
from mauc._tables.data import stratified
from mauc._tables.flags import NO_SCORE, column_mauc, flag_columns, flag_duplicates, flag_groups, flag_leaks
from mauc._tables.saved_scores import cell_hashes
from mauc.metrics import Interval, mauc_importance
from mauc.model_selection import some_of_each


@pytest.fixture
def iris():
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


def test_each_kind_is_found_and_honest_columns_are_not(iris):
    table, labels = iris
    rng = np.random.default_rng(0)
    n = len(table)
    odd = {
        "Id": ("counter", np.arange(1, n + 1)),
        "shuffled": ("counter", rng.permutation(n).astype(float)),
        "gaps": ("counter", np.cumsum(rng.integers(1, 50, n))),
        "copy": ("target", np.where(labels == "setosa", "x", np.where(labels == "virginica", "z", "y"))),
        "leak": ("target", pd.Series(labels).astype("category").cat.codes + rng.normal(0, 0.01, n)),
        "serial": ("code", [f"A{k:05d}" for k in rng.permutation(n)]),
        "patient_id": ("code", rng.choice(10**6, n, replace=False)),
    }
    fine = {
        "unit": "cm",
        "empty": np.nan,
        "seen": pd.date_range("2021-01-01", periods=n).astype(str),
        "notes": [f"leaf {k} of the third tree" for k in range(n)],
        "price": rng.choice(10**6, n, replace=False),
        "soil": rng.choice(["sand", "clay"], n),
        "gap": np.where(rng.random(n) < 0.5, np.nan, 1.0),
    }
    table = table.assign(**{name: values for name, (_, values) in odd.items()}, **fine)
    found, _ = flag_columns(table, labels, "species")
    assert {d.column: d.kind for d in found} == {name: kind for name, (kind, _) in odd.items()}
    assert [flag.column for flag in found] == list(odd)
    alone = {d.column: d.mauc for d in found}
    assert alone["Id"] > 0.97
    assert alone["copy"] == alone["leak"] == 1.0
    assert 0.35 < alone["serial"] < 0.65
    assert all(repr(d.column) in d.text for d in found)
    text = {d.column: d.text for d in found}
    question = "will you have it at prediction time?"
    assert text["copy"] == f"column 'copy' alone predicts 'species' almost perfectly (MAUC 1.000); {question}"
    assert "column 'serial' has a new value in nearly every row, like an ID (MAUC 0." in text["serial"]


def test_a_leak_of_many_classes_is_found_as_numbers_and_as_text():
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(100), 30))
    place = rng.permutation(100)[codes]
    table = pd.DataFrame(
        {
            "grade": place + rng.uniform(0, 0.9, len(codes)),
            "word": [f"w{k}" for k in place],
            "x": rng.normal(size=len(codes)),
        }
    )
    found, _ = flag_columns(table, np.char.add("class ", codes.astype(str)), "y")
    assert [(flag.column, flag.kind) for flag in found] == [("grade", "target"), ("word", "target")]
    assert found[0].mauc > 0.999


def test_whole_numbers_are_flagged_by_the_name_of_an_id():
    ids = ["IDs", "PatientIDs", "customerids", "Unnamed: 0", "id_2", "RowNumber", "key 2", "Nr."]
    others = ["no_of_visits", "row_height", "valid", "acid", "covid", "NumberOfRooms", "keyboard"]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(10**6, 60, replace=False) for name in [*ids, *others]})
    found, _ = flag_columns(table, np.repeat(["a", "b"], 30), "y")
    assert [(flag.column, flag.kind) for flag in found] == [(name, "code") for name in ids]


def test_scores_of_a_column_are_learnt_without_the_row():
    own = pd.Series([f"row {k}" for k in range(60)])
    assert column_mauc(own, np.repeat(["a", "b"], 30)) == 0.5, "a value never seen says nothing"


def test_class_labels_one_row_and_tiny_tables():
    table = pd.DataFrame({"x": [1.0, 2.0, 5.0], "k": [1, 1, 1]})
    assert flag_columns(table, np.array(["a", "b", "c"]), "y") == ([], table.shape[1])


def test_rows_in_both_parts():
    table = pd.DataFrame({"x": [1.0, 2.0, 1.0, np.nan, np.nan, 7.0], "s": ["a", "b", "a", None, None, "c"]})
    (found,) = flag_duplicates(cell_hashes(table), [(np.array([0, 1, 3]), np.array([2, 4, 5]))])
    assert (found.kind, found.column) == ("rows", None)
    assert found.text.startswith("2 test rows duplicate training rows (66.7 % of the test rows): use --drop-duplicates")
    assert flag_duplicates(cell_hashes(table), [(np.array([0, 2]), np.array([1, 3]))]) == []
    counted = table.assign(Id=range(6))
    assert flag_duplicates(cell_hashes(counted), [(np.array([0, 1, 3]), np.array([2, 4, 5]))]) == []
    (found,) = flag_duplicates(cell_hashes(counted), [(np.array([0, 1, 3]), np.array([2, 4, 5]))], ignore=["Id"])
    assert "2 test rows duplicate training rows in all columns that are not flagged (66.7 %" in found.text
    assert found.text.endswith(": keep related rows together with --group"), "they are not dropped"
    (found,) = flag_duplicates(cell_hashes(table), [(np.array([0, 1, 3]), np.array([2, 4, 5]))], grouped=True)
    assert found.text.endswith(": use --drop-duplicates")
    assert flag_duplicates(cell_hashes(table), [(np.array([0, 1]), np.array([2]))], ignore=list(table)) == []
    (one,) = flag_duplicates(cell_hashes(table), [(np.array([0, 1]), np.array([2, 5]))])
    assert one.text.startswith("1 test row duplicates a training row (50.0 %")
    coded = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (200, 5)))
    assert flag_duplicates(cell_hashes(coded), [(np.arange(150), np.arange(150, 200))]) == []


def as_numbers(table):
    """Numbers as they are, other values as codes in their order."""
    columns = {
        name: values if values.dtype.kind in "iufb" else pd.factorize(values, sort=True)[0]
        for name, values in table.items()
    }
    return pd.DataFrame(columns).fillna(-1.0)


def forest(table, labels, train):
    """Fitted on some rows; values as codes are those of the whole table."""
    model = RandomForestClassifier(30, min_samples_leaf=2, class_weight="balanced", random_state=0)
    return model.fit(table.iloc[train], labels[train])


def no_time(*_):
    """A scorer without time for a score."""
    return NO_SCORE


def flags_after(table, labels, target="y", *, scored=True):
    """The flags after a training with a random split."""
    numbers = as_numbers(table)
    train, test = stratified(labels, 0.25, 0)
    model = forest(numbers, labels, train)
    score = mauc_score(labels[test], model.predict_proba(numbers.iloc[test]))

    def fit_and_score(part, train, test):
        inside = as_numbers(part)
        model = forest(inside, labels, train)
        scores = model.predict_proba(inside.iloc[test])
        return mauc_interval(labels[test], scores, labels=model.classes_, absent="ignore")

    importance = mauc_importance(model, numbers.iloc[test], labels[test], n_repeats=1)
    scorer = fit_and_score if scored else no_time
    leaks = flag_leaks(table, labels, train, test, target, score, importance, scorer)
    return leaks + flag_groups(table, labels, train, test, scorer)


def taxis(n=1500):
    """Cash tips are not recorded, as in the taxi rides of New York."""
    rng = np.random.default_rng(0)
    paid = rng.choice(["cash", "card"], n, p=[0.3, 0.7])
    fare = rng.gamma(2.0, 6.0, n)
    tip = np.where((paid == "card") & (rng.random(n) < 0.9), 0.2 * fare, 0.0)
    table = pd.DataFrame({"fare": fare, "tip": tip, "distance": fare / 3 + rng.normal(size=n)})
    table["zone"] = rng.choice([f"Zone {k}" for k in range(50)], n)
    return table, paid


def congress(n_persons=250):
    """A person has a party, and several terms; age and state say a little."""
    rng = np.random.default_rng(1)
    terms = rng.integers(2, 9, n_persons)
    person = np.repeat(np.arange(n_persons), terms)
    party = rng.choice(["D", "R", "I"], n_persons, p=[0.48, 0.45, 0.07])
    table = pd.DataFrame(
        {
            "bioguide": [f"{chr(65 + k % 26)}{k:06d}" for k in rng.permutation(10**6)[:n_persons][person]],
            "state": rng.choice([f"S{k}" for k in range(30)], n_persons)[person],
            "born": rng.integers(1900, 1980, n_persons)[person],
            "age": rng.normal(50, 8, len(person)) + 2.0 * (party[person] == "R"),
        }
    )
    return table, party[person]


@pytest.mark.parametrize("scored", [False, True])
def test_a_column_without_which_nothing_is_left(scored):
    (found,) = flags_after(*taxis(), "payment", scored=scored)
    assert (found.kind, found.column) == ("leak", "tip")
    assert found.mauc == pytest.approx(0.95, abs=0.02)
    assert found.text.startswith("column 'tip' alone predicts 'payment' (MAUC 0.9")
    assert found.text.endswith(" without it); will you have it at prediction time?")


def test_a_column_that_leaks_one_class_of_three():
    table, paid = taxis()
    paid = np.where((paid == "cash") & (np.arange(len(paid)) % 3 == 0), "free", paid)
    (found,) = flags_after(table, paid, "payment", scored=True)
    assert (found.kind, found.column) == ("leak", "tip")
    assert 0.7 < found.mauc < 0.9


@pytest.mark.parametrize("scored", [False, True])
def test_codes_that_recur(scored):
    (found,) = flags_after(*congress(), "party", scored=scored)
    assert (found.kind, found.column) == ("group", "bioguide")
    assert found.text.startswith("column 'bioguide' holds codes that are in both training and test rows")
    assert found.text.endswith("if new rows will have new codes, use --group bioguide")
    assert ("with whole groups held out)" in found.text) == scored


def test_numbers_as_codes_and_codes_that_say_nothing():
    table, labels = congress()
    numbered = table.assign(member_id=pd.factorize(table.pop("bioguide"))[0] * 7919 % 10007)
    (found,) = flags_after(numbered, labels, "party", scored=False)
    assert found.column == "member_id"
    rng = np.random.default_rng(0)
    train, test = stratified(labels, 0.25, 0)
    shuffled = numbered.assign(member_id=rng.permutation(numbered["member_id"]))
    assert flag_groups(shuffled[["member_id"]], labels, train, test, no_time) == []
    unique = pd.DataFrame({"id": [f"A{k:05d}" for k in range(len(labels))]})
    assert flag_groups(unique, labels, train, test, no_time) == [], "no code recurs"
    graded = pd.DataFrame({"number": np.repeat(np.arange(40), 20)})
    train, test = stratified(np.repeat(["a", "b"], 400), 0.25, 0)
    assert flag_groups(graded, np.repeat(["a", "b"], 400), train, test, no_time) == [], "it measures"


@pytest.mark.parametrize(
    ("load", "scored"),
    [(load_wine, True), (load_iris, True), (load_breast_cancer, False), (load_digits, True)],
    ids=lambda f: getattr(f, "__name__", str(f))[5:],
)
def test_honest_tables_are_not_flagged(load, scored):
    data = load(as_frame=True)
    labels = np.char.add("class ", data.target.to_numpy().astype(str))
    rows = some_of_each(labels, 500, 0, at_least=20)
    assert flags_after(data.data.iloc[rows], labels[rows], scored=scored) == []
    assert load is load_digits or flag_columns(data.data, labels, "y")[0] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "balance", "dermatology", "ecoli", "new-thyroid", "pageblocks", "segment-imb", "shuttle", "svmguide2", "yeast",
    ],
)  # fmt: skip
def test_tables_of_the_paper_are_not_flagged(name):
    folder = os.environ.get("MAUC_DATA_HOME")
    if folder is None:
        pytest.skip("needs the data sets of the paper: set MAUC_DATA_HOME")
    with np.load(Path(folder) / "traditional" / f"{name}.npz") as data:
        X, y = data["X"], np.char.add("class ", data["y"].astype(str))
    rows = some_of_each(y, 4_000, 0)
    names, counts = np.unique(y[rows], return_counts=True)
    rows = rows[np.isin(y[rows], names[counts >= 4])]
    table = pd.DataFrame(X[rows], columns=[f"x{k}" for k in range(X.shape[1])])
    assert flags_after(table, y[rows]) == []


def test_differences_within_chance_are_not_flagged():
    table, labels = congress()
    train, test = stratified(labels, 0.25, 0)
    for lower, n_flags in ((0.86, 0), (0.7, 1)):
        scores = iter([Interval(score, score - 0.04, score + 0.04, 0.02) for score in (0.9, lower)])
        assert len(flag_groups(table, labels, train, test, lambda *_, scores=scores: next(scores))) == n_flags


def test_no_time_for_the_other_score():
    table, labels = congress()
    train, test = stratified(labels, 0.25, 0)
    (found,) = flag_groups(table, labels, train, test, no_time)
    assert "MAUC" not in found.text
    assert flag_leaks(table, labels, train, test, "party", 0.9, [], no_time) == []


def test_flags_found_before_the_deadline_are_kept(monkeypatch):
    times = iter([0.0, 0.0, 2.0])
    monkeypatch.setattr("mauc._tables.flags.time.monotonic", lambda: next(times))
    labels = np.repeat(["a", "b"], 30)
    table = pd.DataFrame({"x": np.tile([1.0, 2.0], 30), "leak": labels == "a", "late": labels == "b"})
    found, n_checked = flag_columns(table, labels, "y", deadline=1.0)
    assert ([flag.column for flag in found], n_checked) == (["leak"], 2)
