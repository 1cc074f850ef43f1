"""Leaks and flattering splits are named, and honest tables raise no alarm."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier

from mauc import mauc_score
from mauc._tables.data import some_of_each, stratified
from mauc._tables.flags import find_leaks, flag_codes, flag_leaks, flag_times
from mauc.metrics import mauc_importance


def as_numbers(table):
    """Numbers as they are, dates as days, other values as codes in their order."""
    columns = {}
    for name, values in table.items():
        if values.dtype.kind in "iufb":
            columns[name] = values
        elif str(values.iloc[0]).startswith("20"):
            columns[name] = pd.to_datetime(values).astype("int64") / 1e15
        else:
            columns[name] = pd.factorize(values, sort=True)[0]
    return pd.DataFrame(columns).fillna(-1.0)


def forest(table, labels, train):
    """Fitted on some rows; values as codes are those of the whole table."""
    model = RandomForestClassifier(30, min_samples_leaf=2, class_weight="balanced", random_state=0)
    return model.fit(table.iloc[train], labels[train])


def asked(table, labels, target="y", *, scored=True, **options):
    """What is found after a training with a random split."""
    numbers = as_numbers(table)
    train, test = stratified(labels, 0.25, 0)
    model = forest(numbers, labels, train)
    score = mauc_score(labels[test], model.predict_proba(numbers.iloc[test]))

    def fit_and_score(part, train, test):
        inside = as_numbers(part)
        model = forest(inside, labels, train)
        return mauc_score(labels[test], model.predict_proba(inside.iloc[test]), labels=model.classes_, absent="ignore")

    importance = mauc_importance(model, numbers.iloc[test], labels[test], n_repeats=1)
    given = fit_and_score if scored else None
    return find_leaks(
        table, labels, train, test, target, score=score, importance=importance, fit_and_score=given, **options
    )


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
    (found,) = asked(*taxis(), "payment", scored=scored)
    assert (found.kind, found.column) == ("leak", "tip")
    assert found.mauc == pytest.approx(0.95, abs=0.02)
    assert found.text.startswith("column 'tip' alone predicts 'payment' almost perfectly (MAUC 0.9")
    assert found.text.endswith(" without it); will you have it at prediction time?")


@pytest.mark.parametrize("scored", [False, True])
def test_codes_that_recur(scored):
    (found,) = asked(*congress(), "party", scored=scored)
    assert (found.kind, found.column) == ("group", "bioguide")
    assert found.text.startswith("column 'bioguide' holds codes that are in both training and test rows")
    assert found.text.endswith("if new rows will have new codes, use --group bioguide")
    assert ("with whole groups held out)" in found.text) == scored
    assert asked(*congress(), "party", scored=False, random_split=False) == [], "the user chose the split"


def test_numbers_as_codes_and_codes_that_say_nothing():
    table, labels = congress()
    numbered = table.assign(member_id=pd.factorize(table.pop("bioguide"))[0] * 7919 % 10007)
    (found,) = asked(numbered, labels, "party", scored=False)
    assert found.column == "member_id"
    rng = np.random.default_rng(0)
    train, test = stratified(labels, 0.25, 0)
    shuffled = numbered.assign(member_id=rng.permutation(numbered["member_id"]))
    assert flag_codes(shuffled[["member_id"]], labels, train, test) == []
    unique = pd.DataFrame({"id": [f"A{k:05d}" for k in range(len(labels))]})
    assert flag_codes(unique, labels, train, test) == [], "no code recurs"
    graded = pd.DataFrame({"number": np.repeat(np.arange(40), 20)})
    train, test = stratified(np.repeat(["a", "b"], 400), 0.25, 0)
    assert flag_codes(graded, np.repeat(["a", "b"], 400), train, test) == [], "it measures"


def drifting(n=1200):
    """The class depends on x, the other way round every hundred days."""
    rng = np.random.default_rng(2)
    day = np.sort(rng.integers(0, 400, n))
    x = rng.normal(size=n)
    labels = np.where(x * (-1) ** (day // 100) + 0.3 * rng.normal(size=n) > 0, "up", "down")
    return pd.DataFrame({"day": (pd.Timestamp("2020-01-01") + pd.to_timedelta(day, "D")).astype(str), "x": x}), labels


def test_later_rows_that_are_predicted_worse():
    (found,) = asked(*drifting())
    assert (found.kind, found.column) == ("time", "day")
    assert found.text.endswith("if the model is for later rows, use --time-column day")
    table, labels = drifting()
    assert flag_times(table, labels) == [], "not without the score both ways"
    steady = np.where(table["x"] > 0, "up", "down")
    assert asked(table.assign(x=table["x"] + np.random.default_rng(0).normal(size=len(table))), steady) == []


@pytest.mark.parametrize("load", [load_wine, load_iris, load_breast_cancer, load_digits], ids=lambda f: f.__name__[5:])
@pytest.mark.parametrize("scored", [False, True])
def test_honest_tables_raise_no_alarm(load, scored):
    data = load(as_frame=True)
    labels = np.char.add("class ", data.target.to_numpy().astype(str))
    rows = some_of_each(labels, 500, 0, at_least=20)
    assert asked(data.data.iloc[rows], labels[rows], scored=scored) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "balance", "dermatology", "ecoli", "new-thyroid", "pageblocks", "segment-imb", "shuttle", "svmguide2", "yeast",
    ],
)  # fmt: skip
def test_tables_of_the_paper_raise_no_alarm(name):
    folder = os.environ.get("MAUC_DATA_HOME")
    if folder is None:
        pytest.skip("needs the data sets of the paper: set MAUC_DATA_HOME")
    with np.load(Path(folder) / "traditional" / f"{name}.npz") as data:
        X, y = data["X"], np.char.add("class ", data["y"].astype(str))
    rows = some_of_each(y, 4_000, 0)
    names, counts = np.unique(y[rows], return_counts=True)
    rows = rows[np.isin(y[rows], names[counts >= 4])]
    table = pd.DataFrame(X[rows], columns=[f"x{k}" for k in range(X.shape[1])])
    assert asked(table, y[rows]) == []


def test_differences_that_chance_makes_are_not_told():
    table, labels = congress()
    train, test = stratified(labels, 0.25, 0)
    for lower, told in ((0.86, 0), (0.7, 1)):
        scores = iter([0.9, lower])
        assert len(flag_codes(table, labels, train, test, lambda *_, scores=scores: next(scores))) == told


def test_no_time_for_the_other_score():
    table, labels = congress()
    train, test = stratified(labels, 0.25, 0)
    (found,) = flag_codes(table, labels, train, test, lambda *_: float("nan"))
    assert "MAUC" not in found.text
    assert flag_times(*drifting(), lambda *_: float("nan")) == []
    assert flag_leaks(table, labels, train, test, "party", 0.9, []) == []
