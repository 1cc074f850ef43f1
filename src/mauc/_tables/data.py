"""Turn a table into labelled rows with features, and split them into training rows and test rows."""

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype

from mauc._tables.columns import check_finite, date_order, dates_to_iso, read_kinds, with_iso_dates
from mauc._tables.errors import Failure, option_name
from mauc._tables.options import Options
from mauc._tables.read import (
    Table,
    as_label,
    check_single,
    class_labels,
    count_of,
    drop_duplicates,
    get_column,
    has_class,
)
from mauc._tables.text import EXACT, Reading
from mauc._typing import Ints
from mauc._validation import listing
from mauc.ensemble.odds import MOST_NUMBERS

TYPES = {"integer": "int", "floating": "float", "boolean": "bool"}
"""Types of classes, by the name that pandas infers; texts, and values of several types, are text."""
Split = tuple[Ints, Ints]


@dataclass(frozen=True, eq=False)
class Data:
    """The features and the class of each row, and its time and group if the options name them."""

    path: Path
    """The table, for messages."""
    target: str
    labels: NDArray[Any]
    features: Table
    kinds: dict[str, str]
    """How to read each column again: ``"number"``, ``"other"`` or ``"day first"``."""
    positions: Ints
    """Places of the rows among all rows that could be used."""
    n_rows: int
    """Number of all rows that could be used."""
    left_out: str = ""
    """Classes with too few rows, in words."""
    times: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    order: tuple[str, ...] | None = None
    """The classes from lowest to highest, if the target has an ordered data type or holds numbers."""
    class_type: str = "text"
    """Type of the values in the target: ``"text"``, ``"int"``, ``"float"`` or ``"bool"``."""
    reading: Reading = field(default_factory=Reading)
    """How the file was read."""

    @cached_property
    def codes(self) -> Ints:
        """``(N,)`` the class of each row as a number, which is quicker to compare than a text."""
        return np.asarray(np.unique(self.labels, return_inverse=True)[1])

    def sample(self, rows: Ints) -> "Data":
        """Return some of the rows."""
        times, groups = (None if each is None else each[rows] for each in (self.times, self.groups))
        features = self.features.iloc[rows].reset_index(drop=True)
        labels, positions = self.labels[rows], self.positions[rows]
        return replace(self, labels=labels, features=features, positions=positions, times=times, groups=groups)

    def split(self, share: float, seed: int) -> Split:
        """Return training rows and test rows: the latest, whole groups, or random."""
        if self.times is not None:
            return by_time(self.codes, self.times, share)
        if self.groups is not None:
            return by_group(self.codes, self.groups, share, seed)
        return stratified(self.codes, share, seed)


def prepare(table: Table, options: Options, path: Path) -> Data:
    """Return the rows and columns of a table that the options select."""
    target = options.target
    order = table.attrs.get("ordered", {}).get(target)
    if options.drop_duplicates:
        table = drop_duplicates(table, path)
    table.attrs = {}  # pandas would copy it with every column
    single = get_column(table, target, option_name("target"), path).to_frame()
    check_single(single, path, f"choose another {option_name('target')}")
    if options.drop_unlabelled:
        table = table[has_class(np.asarray(single[target].notna()), target, path)].reset_index(drop=True)
        single = table[[target]]
    labels = class_labels(single[target], target, path)
    named = {option_name("time-column"): options.time_column, option_name("group"): options.group}
    others = {option: get_column(table, name, option, path) for option, name in named.items() if name}
    for option, values in others.items():
        check_single(values.to_frame(), path, f"choose another {option}")
    for name in options.drop:
        get_column(table, name, option_name("drop"), path)
    rows, left_out = _frequent(labels, target, options.min_rows)
    if left_out:
        warnings.warn(f"left out: {left_out}", stacklevel=2)
    features = table.drop(columns=list({target, *options.drop, *filter(None, named.values())}))[rows]
    if not features.notna().to_numpy().any():
        raise Failure(f"{path} has no column besides {target!r} that holds a value: a model needs at least one")
    check_single(features, path, f"spread them over columns, or leave the column out with {option_name('drop')}")
    check_finite(features, path)
    features, kinds = with_iso_dates(features.reset_index(drop=True), read_kinds(features), options.dates, path)
    labels = labels[rows]
    times, groups = (None if values is None else values[rows] for values in map(others.get, named))
    class_type = TYPES.get(infer_dtype(single[target], skipna=True), "text")
    if order is None and class_type in ("int", "float") and len(np.unique(labels)) <= MOST_NUMBERS:
        order = sorted(np.unique(labels).tolist(), key=float)
    return Data(
        path,
        target,
        labels,
        features,
        kinds,
        np.arange(len(labels)),
        len(labels),
        left_out,
        times=None if times is None else parse_times(times, str(options.time_column), path, options.dates),
        groups=None if groups is None else parse_groups(groups, str(options.group), path, option_name("group")),
        order=None if order is None else tuple(order),
        class_type=class_type,
    )


def _frequent(labels: NDArray[Any], target: str, min_rows: int, most: int = 5_000) -> tuple[NDArray[np.bool_], str]:
    """Return which rows belong to classes of at least ``min_rows`` rows, and the other classes in words.

    Refuses fewer than two such classes, classes of one row, and so many classes that their scores fill gigabytes.
    """
    names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    frequent = counts >= min_rows
    n_classes = int(frequent.sum())
    if n_classes < 2:
        raise Failure(
            f"fewer than two classes have {min_rows} rows or more: lower {option_name('min-rows')}, or collect more "
            "rows"
        )
    single = names[frequent & (counts == 1)].tolist()
    if single:
        which = (
            f"class {single[0]!r} has" if len(single) == 1 else f"{len(single)} classes, such as {single[0]!r}, have"
        )
        raise Failure(
            f"{which} a single row, and training and testing need one each: add rows, merge classes, or leave such "
            f"classes out with {option_name('min-rows')} 2"
        )
    if n_classes > most:
        raise Failure(
            f"{option_name('target')} {target!r} has {n_classes:,} classes, and mauc fit takes at most {most:,}: merge "
            f"classes, or leave out rare ones with {option_name('min-rows')}"
        )
    rare = names[~frequent].tolist()
    if not rare:
        return frequent[codes], ""
    classes = "1 class" if len(rare) == 1 else f"{len(rare)} classes"
    number = count_of(int(counts[~frequent].sum()))
    shown = listing(list(map(repr, rare)))
    return frequent[codes], f"{classes} of fewer than {min_rows} rows ({number} in all): {shown}"


def parse_times(values: Any, name: str, path: Path, order: str | None) -> NDArray[Any]:
    """Return times as numbers; refuse dates that could have the day or the month first.

    Whole numbers stay as they are: as float64, nanoseconds of one microsecond would be equal.
    """
    missing = f"column {name!r} of {path} has rows without a time: fill them in or drop them"
    if values.isna().any():
        raise Failure(missing)
    found = date_order(values, order)
    if found == "ambiguous":
        raise Failure(
            f"column {name!r} of {path} holds dates such as {values.iloc[0]}, which could have the day or the month "
            f"first: say which with {option_name('dates')} day-first or {option_name('dates')} month-first"
        )
    try:
        if values.dtype.kind in "iuf":
            times = values.astype(f"{values.dtype.kind}8")
        elif found == "month-first":
            times = pd.to_datetime(values, dayfirst=False, utc=True).astype("int64")
        else:
            iso = dates_to_iso(values) if found == "day-first" else values
            if iso.isna().any():
                raise ValueError
            times = pd.to_datetime(iso, format="ISO8601", utc=True).astype("int64")
    except (ValueError, TypeError):
        raise Failure(
            f"column {name!r} of {path} holds neither numbers nor dates like 2024-03-31: write them like this, or "
            f"choose another {option_name('time-column')}"
        ) from None
    array = np.asarray(times)
    if not np.isfinite(array).all():
        raise Failure(missing)
    return array


def parse_groups(values: Any, name: str, path: Path, option: str) -> NDArray[Any]:
    """Return the group of each row as text, without blanks around it; every row must have one."""
    missing = int(values.isna().sum())
    if missing:
        raise Failure(
            f"column {name!r} of {path} has no group in {count_of(missing)}: fill them in, drop them, or leave "
            f"{option} out"
        )
    if values.dtype.kind == "f" and (values.abs() >= EXACT).any():
        huge = values.abs().max()
        raise Failure(f"column {name!r} of {path} holds {huge:g}, too large to be read exactly: use texts as groups")
    return np.asarray(values.map(as_label))


def stratified(labels: Any, share: float, seed: int) -> Split:
    """Split at random within each class; a class of two rows or more is in both parts.

    >>> import numpy as np
    >>> train, test = stratified(np.repeat(["a", "b", "c"], [20, 3, 2]), 0.25, seed=0)
    >>> [int(np.sum(test < 20)), int(np.sum((test >= 20) & (test < 23))), int(np.sum(test >= 23))]
    [5, 1, 1]
    """
    rng = np.random.default_rng(seed)
    held = np.zeros(len(labels), dtype=bool)
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    for rows in np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1]):
        members = rng.permutation(rows)
        wanted = int(np.clip(np.rint(share * len(members)), 1, max(1, len(members) - 1)))
        if len(members) > 1:
            held[members[:wanted]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def by_time(labels: Any, times: Any, share: float) -> Split:
    """Hold out the latest rows; rows of one time stay together."""
    order = np.argsort(times, kind="stable")
    cut = times[order[min(len(times) - 1, int(np.ceil((1.0 - share) * len(times))))]]
    held = times >= cut
    if held.all():
        raise Failure(
            f"the rows of {option_name('time-column')} cannot be split into earlier and later ones: use more rows, or "
            "leave it out"
        )
    advice = f"change the share of test rows with {option_name('holdout')}"
    return _checked(labels, held, f"before the test rows in time; {advice}")


def by_group(labels: Any, groups: Any, share: float, seed: int) -> Split:
    """Hold out whole groups; a class that occurs in two groups or more is in both parts where possible."""
    rng = np.random.default_rng(seed)
    _, codes = np.unique(labels, return_inverse=True)
    names, of_row = np.unique(groups, return_inverse=True)
    counts = np.zeros((len(names), codes.max() + 1), dtype=np.int64)
    np.add.at(counts, (of_row, codes), 1)
    sizes, in_groups = counts.sum(axis=1), (counts > 0).sum(axis=0)
    in_training = counts.sum(axis=0)
    held = np.zeros(len(names), dtype=bool)

    def is_free(group: int) -> bool:
        """Return whether the other training groups have every class of this group."""
        present = counts[group] > 0
        return not held[group] and bool(np.all(in_training[present] > counts[group][present]))

    def hold_out(group: int) -> None:
        held[group] = True
        np.subtract(in_training, counts[group], out=in_training)

    for label in np.argsort(in_groups, kind="stable"):
        if in_groups[label] > 1 and not counts[held, label].any():
            free = [g for g in rng.permutation(np.flatnonzero(counts[:, label])) if is_free(g)]
            if free:
                hold_out(min(free, key=lambda g: sizes[g]))
    n_wanted = share * len(labels) - sizes[held].sum()
    for group in rng.permutation(len(names)):
        if sizes[group] / 2 <= n_wanted and is_free(group):
            hold_out(group)
            n_wanted -= sizes[group]
    return _checked(labels, held[of_row], f"in two groups or more; add groups, or leave {option_name('group')} out")


def _checked(labels: Any, held: Any, advice: str) -> Split:
    """Return both parts; each must hold two classes that are in the training part."""
    known = np.unique(labels[~held])
    test = np.isin(labels, known) & held
    if len(known) < 2 or len(np.unique(labels[test])) < 2:
        raise Failure(f"the split leaves fewer than two classes to train or test on: two classes must be {advice}")
    return np.flatnonzero(~held), np.flatnonzero(test)
