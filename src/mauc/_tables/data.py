"""From a table to rows that can be trained on: classes, features, what rows belong together, how they are split."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.dates import as_iso, check_order, order_of, with_iso_dates
from mauc._tables.errors import Failure
from mauc._tables.features import check_finite, check_single, kinds_of
from mauc._tables.holdout import by_group, by_time, stratified
from mauc._tables.read import Table, classes_of, column, labelled, without_repeats
from mauc._typing import Ints

__all__ = ["Data", "Wanted", "data_of", "groups_of"]


@dataclass(frozen=True)
class Wanted:
    """Which columns and rows of a table are meant, and for what."""

    target: str
    time_column: str | None = None
    group: str | None = None
    drop: tuple[str, ...] = ()
    min_rows: int = 1
    drop_unlabelled: bool = False
    dates: str | None = None
    drop_duplicates: bool = False


@dataclass(frozen=True, eq=False)
class Data:
    """Rows with a class each."""

    path: Path
    """Where they come from, as messages name it."""
    target: str
    labels: NDArray[Any]
    features: Table
    kinds: dict[str, str]
    left_out: str = ""
    """Classes that have too few rows, in words."""
    times: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    order: tuple[str, ...] | None = None
    """The classes from the lowest to the highest, where the target has an ordered data type."""

    def without(self, names: Sequence[str]) -> "Data":
        """Without these columns."""
        kinds = {name: kind for name, kind in self.kinds.items() if name not in names}
        if not kinds:
            raise Failure(f"--drop-suspects leaves no column of {self.path}: choose by --drop which ones to leave out")
        return replace(self, features=self.features[list(kinds)], kinds=kinds)

    def split(self, share: float, seed: int) -> tuple[Ints, Ints]:
        """Rows to train on and test rows: the latest, whole groups, or any."""
        if self.times is not None:
            return by_time(self.labels, self.times, share)
        if self.groups is not None:
            return by_group(self.labels, self.groups, share, seed)
        return stratified(self.labels, share, seed)


def data_of(table: Table, wanted: Wanted, path: Path) -> Data:
    """The rows of a table that was read, or that the user has."""
    check_order(wanted.dates)
    target = wanted.target
    order = table.attrs.get("ordered", {}).get(target)
    if wanted.drop_duplicates:
        table = without_repeats(table, path)
    single = column(table, target, "--target", path).to_frame()
    check_single(single, path, "choose another --target")
    if wanted.drop_unlabelled:
        table = table[labelled(single[target], target, path)].reset_index(drop=True)
        single = table[[target]]
    labels = classes_of(single[target], target, path)
    options = (("--time-column", wanted.time_column), ("--group", wanted.group))
    others = {option: column(table, name, option, path) for option, name in options if name}
    for option, values in others.items():
        check_single(values.to_frame(), path, f"choose another {option}")
    for name in wanted.drop:
        column(table, name, "--drop", path)
    kept, left_out = _frequent(labels, wanted.min_rows)
    if left_out:
        warnings.warn(f"left out: {left_out}", stacklevel=2)
    used = {target, *wanted.drop, *(name for _, name in options if name)}
    features = table.drop(columns=list(used))[kept]
    if not features.notna().to_numpy().any():
        raise Failure(
            f"{path} has no column besides {target!r} that holds a value: a model needs at least one to learn from"
        )
    check_single(features, path, "spread them over columns, or leave the column out with --drop")
    check_finite(features, path)
    features, kinds = with_iso_dates(features.reset_index(drop=True), kinds_of(features), wanted.dates, path)
    _check_no_singles(labels[kept])
    times = others.get("--time-column")
    groups = others.get("--group")
    return Data(
        path,
        target,
        labels[kept],
        features,
        kinds,
        left_out,
        times=None if times is None else times_of(times[kept], str(wanted.time_column), path, wanted.dates),
        groups=None if groups is None else groups_of(groups[kept], str(wanted.group), path),
        order=None if order is None else tuple(order),
    )


def _frequent(labels: NDArray[Any], min_rows: int) -> tuple[NDArray[np.bool_], str]:
    """Which rows are of classes with so many, and in words which classes are not."""
    names, counts = np.unique(labels, return_counts=True)
    kept = np.isin(labels, names[counts >= min_rows])
    if len(np.unique(labels[kept])) < 2:
        raise Failure(f"fewer than two classes have {min_rows} rows: lower --min-rows, or collect more rows")
    rare, n_rows = names[counts < min_rows].tolist(), int((~kept).sum())
    if not rare:
        return kept, ""
    which = ", ".join(map(repr, rare[:8])) + (", …" if len(rare) > 8 else "")
    classes = "1 class" if len(rare) == 1 else f"{len(rare)} classes"
    rows = "1 row" if n_rows == 1 else f"{n_rows} rows"
    return kept, f"{classes} of fewer than {min_rows} rows ({rows} in all): {which}"


def times_of(values: Any, name: str, path: Path, order: str | None) -> NDArray[np.float64]:
    """Numbers as they are, all else as dates; 01/02/2024 is refused where it may be either of two days."""
    import pandas as pd

    without = f"column {name!r} of {path} has rows without a time: fill them in or drop them"
    if values.isna().any():
        raise Failure(without)
    found = order_of(values, order)
    if found == "open":
        raise Failure(
            f"column {name!r} of {path} holds dates such as {values.iloc[0]}, which could be either of two days: "
            "say which with --dates day-first or --dates month-first"
        )
    try:
        if values.dtype.kind in "iuf":
            times = values
        elif found == "month-first":
            times = pd.to_datetime(values, dayfirst=False, utc=True).astype("int64")
        else:
            turned = as_iso(values) if found == "day-first" else None
            times = pd.to_datetime(values if turned is None else turned, format="ISO8601", utc=True).astype("int64")
    except (ValueError, TypeError):
        raise Failure(
            f"column {name!r} of {path} holds neither numbers nor dates like 2024-03-31: write them so, "
            "or choose another --time-column"
        ) from None
    array = np.asarray(times, dtype=np.float64)
    if not np.isfinite(array).all():
        raise Failure(without)
    return array


def groups_of(values: Any, name: str, path: Path, option: str = "--group") -> NDArray[Any]:
    """The group of each row, as text; every row must have one."""
    missing = int(values.isna().sum())
    if missing:
        rows = "1 row" if missing == 1 else f"{missing} rows"
        raise Failure(
            f"column {name!r} of {path} has no group in {rows}: fill them in, drop them, or leave {option} out"
        )
    return np.asarray(values.astype(str).to_numpy())


def _check_no_singles(labels: NDArray[Any]) -> None:
    names, counts = np.unique(labels, return_counts=True)
    single = names[counts == 1].tolist()
    if single:
        which = (
            f"class {single[0]!r} has" if len(single) == 1 else f"{len(single)} classes, such as {single[0]!r}, have"
        )
        raise Failure(
            f"{which} a single row, which cannot be both trained on and judged by: add rows, join classes, "
            "or leave such classes out with --min-rows 2"
        )
