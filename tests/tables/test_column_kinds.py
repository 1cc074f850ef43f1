"""Columns are told apart by what they hold, whatever type pandas gave them."""

from decimal import Decimal

import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

import pandas as pd

from mauc._tables.columns import column_kinds, describe_kinds


def test_each_kind():
    table = pd.DataFrame(
        {
            "number": [1.0, None, 3.0],
            "yes": pd.Series([True, None, False], dtype=object),
            "price": pd.Series([Decimal("1.5"), None, Decimal("2")], dtype=object),
            "soil": pd.Categorical(["sand", "clay", None]),
            "day": ["2021-01-01", None, "2021-05-01"],
            "moment": pd.date_range("2021-01-01", periods=3),
            "empty": pd.Series([None, None, None], dtype=object),
        }
    )
    kinds = column_kinds(table)
    assert list(kinds.values()) == ["number", "number", "number", "category", "date", "date", "category"]
    words = pd.DataFrame({"note": [f"leaf {k} of a tree" for k in range(50)]})
    assert column_kinds(words) == {"note": "text"}
    assert column_kinds(words, most_categories=50) == {"note": "category"}


def test_in_words():
    kinds = {f"x{k}": "number" for k in range(6)} | {"day": "date"}
    assert describe_kinds(kinds) == "7: 6 numbers (x0, x1, x2, x3, …), 1 date (day)"
