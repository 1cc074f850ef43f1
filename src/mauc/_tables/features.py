"""Mixed columns → numbers, and what changed in the columns since the model was trained."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mauc._tables.dates import DAY_FIRST, as_at_training
from mauc._tables.errors import Failure
from mauc._tables.read import Table, nearest, rows_with_lists

__all__ = ["check_dates", "check_finite", "check_single", "kinds_of", "make_features", "same_columns", "text_columns"]

# Forests take numbers as float32.
LARGEST = float(np.finfo(np.float32).max)


def make_features(seed: int = 0) -> Any:
    """Categories, dates, free text and numbers with gaps as scaled numbers for a linear model, unfitted."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from mauc.ensemble import TableColumns

    return make_pipeline(
        TableColumns(seed), SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )


def kinds_of(table: Table) -> dict[str, str]:
    """``"number"`` or ``"other"`` for each column; truth values are numbers, with gaps or without."""
    from pandas.api.types import infer_dtype

    def is_number(values: Any) -> bool:
        return values.dtype.kind in "iufb" or (values.dtype == object and infer_dtype(values) == "boolean")

    return {name: "number" if is_number(table[name]) else "other" for name in table.columns}


def text_columns(kinds: Mapping[str, str]) -> list[str]:
    """Columns to read as they are written: a code such as 01 must not become the number 1."""
    return [name for name, kind in kinds.items() if kind != "number"]


def check_single(table: Table, path: Path, advice: str = "spread them over columns") -> None:
    """One value per cell: lists, as Parquet may hold them, are refused."""
    for name in table.columns:
        bad = rows_with_lists(table[name])
        if bad:
            raise Failure(
                f"column {name!r} of {path} holds lists (first: row {bad[0] + 1}), not single values: {advice}"
            )


def check_dates(table: Table, features: Any, path: Path) -> None:
    """Warn of dates that are written otherwise than at training: they count as missing."""
    import pandas as pd

    columns = features[0] if hasattr(features, "steps") else features
    steps_of = getattr(columns.vectorizer_, "all_processing_steps_", {})
    for name, steps in steps_of.items():
        values = table[name]
        for step in steps:
            kind = type(step).__name__
            if kind == "CleanNullStrings" and values.dtype.kind == "O":
                values = step.transform(values)
            elif kind == "ToDatetime":
                dates = pd.to_datetime(values, format=step.format_, errors="coerce", utc=True)
                odd = np.flatnonzero(np.asarray(dates.isna() & values.notna()))
                if len(odd):
                    form = f" of the form {step.format_}" if step.format_ else ""
                    warnings.warn(
                        f"column {name!r} of {path} held dates{form} when the model was trained, and now holds "
                        f"{values.iloc[odd[0]]!r} (row {odd[0] + 1}, {len(odd)} in all): taken as missing",
                        stacklevel=2,
                    )


def check_finite(table: Table, path: Path) -> None:
    """Missing numbers are filled in, infinite or huge ones are refused: they are slips, and would drown all others."""
    for name in table.columns:
        if table[name].dtype.kind != "f":
            continue
        numbers = np.asarray(table[name], dtype=np.float64)
        bad = np.flatnonzero(np.isinf(numbers))
        if len(bad):
            many = "an infinite number" if len(bad) == 1 else f"{len(bad)} infinite numbers"
            raise Failure(
                f"column {name!r} of {path} has {many} (first: row {bad[0] + 1}): correct or empty such cells"
            )
        huge = np.flatnonzero(np.abs(numbers) > LARGEST)
        if len(huge):
            raise Failure(
                f"column {name!r} of {path} holds {numbers[huge[0]]:g} (row {huge[0] + 1}), and numbers may reach "
                f"{LARGEST:.2g}: correct or empty such cells, or use another unit"
            )


def same_columns(table: Table, kinds: Mapping[str, str], path: Path) -> tuple[Table, list[str]]:
    """The columns of the model, in its order and of its kinds; and the names of those it does not know."""
    names = [str(c) for c in table.columns]
    missing = [name for name in kinds if name not in names]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
        close = nearest(missing[0], [n for n in names if n not in kinds])
        hint = f" ({missing[0]!r} may now be {close[0]!r})" if close else ""
        raise Failure(
            f"{path} lacks {_columns(len(missing))} that the model was trained on: {shown}{hint}\n"
            "add them under these names, or train again with mauc fit"
        )
    known = table[list(kinds)].copy()
    for name, kind in kinds.items():
        values = known[name]
        # Numbers that are none now are for the features, which take them as missing and say so.
        if kind != "number" and values.dtype.kind in "iufb":
            known[name] = values.astype(object).where(values.notna(), None).map(str, na_action="ignore")
    known = as_at_training(known, [name for name, kind in kinds.items() if kind == DAY_FIRST], path)
    return known, [name for name in names if name not in kinds]


def _columns(n: int) -> str:
    return "a column" if n == 1 else f"{n} columns"
