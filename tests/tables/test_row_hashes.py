"""Row hashes: equal rows match whatever file they came from, different rows do not."""

import io

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.read import read_table
from mauc._tables.saved_scores import (
    column_digests,
    known_rows,
    row_hashes,
    trained_note,
    training_hashes,
    were_trained_on,
)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "exact": rng.normal(size=n) * 10.0 ** rng.integers(-8, 9, n),
            "single": rng.normal(size=n).astype(np.float32),
            "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 9, n)),
            "whole": rng.integers(-(10**9), 10**9, n),
            "yes": rng.random(n) < 0.5,
            "soil": pd.Categorical(rng.choice(["sand", "clay", "a|b"], n)),
            "note": [None if k % 7 == 0 else f"tree {k}" for k in range(n)],
            "day": pd.date_range("2021-01-01", periods=n),
        }
    )


def test_csv_and_parquet_give_the_same_rows(table, tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    from_csv, from_parquet = (read_table(tmp_path / name) for name in ("t.csv", "t.parquet"))
    np.testing.assert_array_equal(row_hashes(from_csv), row_hashes(from_parquet))
    assert len(np.unique(row_hashes(from_csv))) == len(table)
    assert column_digests(from_csv) == column_digests(from_parquet)
    kept = training_hashes(from_parquet.iloc[:200])
    assert known_rows(from_csv, kept) == (200, True)
    assert np.flatnonzero(were_trained_on(from_csv, kept)).tolist() == list(range(200))


def test_date_order_rows_and_columns_does_not_matter_and_values_do(table):
    hashes = row_hashes(table)
    turned = table.iloc[::-1, ::-1].reset_index(drop=True)
    np.testing.assert_array_equal(row_hashes(turned), hashes[::-1])
    np.testing.assert_array_equal(training_hashes(turned), training_hashes(table))
    assert known_rows(table.assign(more=1.0), training_hashes(table), list(table.columns)) == (300, True)
    for name, value in {"exact": 0.25, "soil": "loam", "note": "", "gaps": 0.5, "yes": None}.items():
        changed = table.astype({name: object})
        changed.loc[3, name] = value
        assert np.flatnonzero(row_hashes(changed) != hashes).tolist() == [3], name
    swapped = table.rename(columns={"gaps": "whole", "whole": "gaps"})
    assert known_rows(swapped, training_hashes(table)) == (0, True), "the same value in another column is no match"


def test_a_slip_in_one_cell_leaves_the_other_rows_alone(table):
    """A column of numbers with one word in it is read as text."""
    text = table[["whole"]].to_csv(index=False).replace(str(table["whole"][5]), "unknown")
    slipped = pd.read_csv(io.StringIO(text))
    assert slipped["whole"].dtype.kind == "O"
    assert np.flatnonzero(row_hashes(slipped) != row_hashes(table[["whole"]])).tolist() == [5]


def test_missing_values_and_zeros_have_one_hash():
    for values in ([np.nan, None, pd.NA], [0.0, -0.0, False], [7, 7.0, "7"]):
        assert len(np.unique(row_hashes(pd.DataFrame({"x": pd.Series(values, dtype=object)})))) == 1
    last_digit = np.nextafter(0.1, 1.0)
    assert len(np.unique(row_hashes(pd.DataFrame({"x": [0.1, last_digit]})))) == 1
    assert len(np.unique(row_hashes(pd.DataFrame({"x": 1e9 + np.arange(1000) / 10})))) == 1000


def test_the_kept_hashes_are_bounded_and_still_estimate():
    table = pd.DataFrame({"x": np.arange(20_000.0)})
    kept = training_hashes(table, most=2_000)
    assert len(kept) < 2_300
    n_known, exact = known_rows(pd.DataFrame({"x": np.arange(10_000.0, 40_000.0)}), kept)
    assert not exact
    assert n_known == pytest.approx(10_000, rel=0.1)
    assert known_rows(table + 0.5, kept) == (0, False)
    assert known_rows(table, kept[:1]) == (0, False), "no hash below the limit"


def test_note():
    assert trained_note(0, 10) == ""
    assert trained_note(1, 10).startswith("1 of these 10 rows was trained on")
    assert trained_note(776, 1000, exact=False).startswith("about 776 of these 1000 rows were trained on")
