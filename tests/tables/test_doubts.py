"""Columns and rows that may deceive: each kind is found, and honest ones are left alone."""

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from mauc._tables.flags import column_scores, flag_columns, flag_duplicates, flagged_columns


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
        "unit": ("constant", "cm"),
        "empty": ("constant", np.nan),
        "serial": ("code", [f"A{k:05d}" for k in rng.permutation(n)]),
        "patient_id": ("code", rng.choice(10**6, n, replace=False)),
    }
    fine = {
        "seen": pd.date_range("2021-01-01", periods=n).astype(str),
        "notes": [f"leaf {k} of the third tree" for k in range(n)],
        "price": rng.choice(10**6, n, replace=False),
        "soil": rng.choice(["sand", "clay"], n),
        "gap": np.where(rng.random(n) < 0.5, np.nan, 1.0),
    }
    table = table.assign(**{name: values for name, (_, values) in odd.items()}, **fine)
    found = flag_columns(table, labels, "species")
    assert {d.column: d.kind for d in found} == {name: kind for name, (kind, _) in odd.items()}
    assert flagged_columns(found) == list(odd)
    alone = {d.column: d.mauc for d in found}
    assert alone["Id"] > 0.97
    assert alone["copy"] == alone["leak"] == 1.0
    assert 0.35 < alone["serial"] < 0.65
    assert np.isnan(alone["unit"])
    assert all(repr(d.column) in d.text for d in found)
    text = {d.column: d.text for d in found}
    question = "will you have it at prediction time?"
    assert text["copy"] == f"column 'copy' alone predicts 'species' almost perfectly (MAUC 1.000); {question}"
    assert "column 'serial' is different in nearly every row, like an ID (MAUC 0." in text["serial"]
    assert found[0].to_json()["kind"] == "counter"


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_measurements_raise_no_doubt(load):
    data = load(as_frame=True)
    assert flag_columns(data.data, data.target.to_numpy().astype(str), "y") == []


def test_scores_of_a_column_are_learnt_without_the_row():
    labels = np.repeat(["a", "b"], 30)
    own = pd.Series([f"row {k}" for k in range(60)])
    rows, scores = column_scores(own, labels)
    assert len(rows) == 60
    np.testing.assert_allclose(scores[:, 0], scores[0, 0]), "a value never seen says nothing"


def test_class_labels_one_row_and_tiny_tables():
    table = pd.DataFrame({"x": [1.0, 2.0, 5.0], "k": [1, 1, 1]})
    (found,) = flag_columns(table, np.array(["a", "b", "c"]), "y")
    assert found.kind == "constant"


def test_rows_in_both_parts():
    table = pd.DataFrame({"x": [1.0, 2.0, 1.0, np.nan, np.nan, 7.0], "s": ["a", "b", "a", None, None, "c"]})
    (found,) = flag_duplicates(table, np.array([0, 1, 3]), np.array([2, 4, 5]))
    assert (found.kind, found.column) == ("rows", None)
    assert found.text.startswith("2 test rows duplicate training rows (66.7 % of the test rows): drop duplicates")
    assert flag_duplicates(table, np.array([0, 2]), np.array([1, 3])) == []
    counted = table.assign(Id=range(6))
    assert flag_duplicates(counted, np.array([0, 1, 3]), np.array([2, 4, 5])) == []
    (found,) = flag_duplicates(counted, np.array([0, 1, 3]), np.array([2, 4, 5]), ignore=["Id"])
    assert "2 test rows duplicate training rows in all columns that are not flagged (66.7 %" in found.text
    (one,) = flag_duplicates(table, np.array([0, 1]), np.array([2, 5]))
    assert one.text.startswith("1 test row duplicates a training row (50.0 %")


def test_decimals_are_numbers_not_codes():
    from decimal import Decimal

    rng = np.random.default_rng(0)
    values = [Decimal(f"{x:.6f}") for x in rng.normal(size=60)]
    table = pd.DataFrame({"price": pd.Series(values, dtype=object)})
    assert flag_columns(table, rng.choice(["a", "b"], 60), "y") == []
